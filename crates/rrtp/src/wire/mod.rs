//! Packets as they stand on the wire: version 1. All numbers are big-endian.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------+---------------+-------------------------------+
//! |version| type  |     flags     |  the sender's round-trip time |
//! +-------+-------+---------------+-------------------------------+
//! |                    connection id, 64 bits                     |
//! |                                                               |
//! +---------------------------------------------------------------+
//! |        CRC-32C of everything before and after this field      |
//! +---------------------------------------------------------------+
//! |                     what the type asks for                    |
//! ```
//!
//! `docs/rrtp.md` has a diagram of each type.

pub(crate) const VERSION: u8 = 2;
/// What every packet begins with.
pub(crate) const HEADER: usize = 16;
/// Header bytes of a data packet.
pub(crate) const DATA_HEADER: usize = HEADER + 12;
/// No end may ask for smaller packets than this: each costs memory and headers.
pub(crate) const LEAST_PACKET: u16 = 64;
/// A SYN is padded to this, so that no reply to it is larger.
pub(crate) const SYN_LEN: usize = 40;
/// Bytes of a report without losses and without feedback.
const REPORT: usize = 20;
const FEEDBACK: usize = 32;
/// Bytes of a range of losses.
pub(crate) const RANGE: usize = 6;
/// Bytes of a report without losses and without feedback, with its header.
pub(crate) const LEAST_REPORT: usize = HEADER + REPORT;
/// Bytes of a PING.
pub(crate) const PING_LEN: usize = HEADER + 8;
/// The most packets in one range of losses.
pub(crate) const RANGE_MAX: u64 = 0x7fff;

const SYN: u8 = 0;
const SYN_ECHO: u8 = 1;
const START: u8 = 2;
const START_ECHO: u8 = 3;
const DATA: u8 = 4;
const ACK: u8 = 5;
const CACK: u8 = 6;
const NACK: u8 = 7;
const SACK: u8 = 8;
const FEED: u8 = 9;
const PING: u8 = 10;
const CLOSE: u8 = 11;
const VERSIONS: u8 = 12;

const FIN: u8 = 1;
const PAUSE: u8 = 2;
const RATE_BIT: u8 = 4;
const RECOVERY_BIT: u8 = 32;
const NONCE: u8 = 64;
const TRAIN_SHIFT: u8 = 3;
const HAS_ECHO: u8 = 1;
const CONGESTED: u8 = 2;
const HAS_TRAIN: u8 = 4;
const NONCE_SUM: u8 = 8;

/// What a server gave a client to bring back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    /// When it was made, in nanoseconds of the server's clock.
    pub(crate) made: u64,
    pub(crate) mac: u64,
}

/// What one end tells the other of itself at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    /// Its packets are no larger, UDP payload in bytes.
    pub(crate) packet_size: u16,
    /// So many packets may be sent to it before it says more.
    pub(crate) window: u32,
}

/// The place of a packet in a train that leaves at once, to be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Train {
    No,
    First,
    Middle,
    Last,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Data<'a> {
    /// Its place in the stream.
    pub(crate) number: u32,
    /// Rises with every transmission, the first or another.
    pub(crate) transmission: u32,
    /// When it left, in microseconds of the sender's clock.
    pub(crate) sent: u32,
    /// The stream ends with it.
    pub(crate) fin: bool,
    /// The sender had nothing to send before it: the gap to the packet before says nothing.
    pub(crate) pause: bool,
    /// It turns with each new rate, and averages begin anew.
    pub(crate) rate_bit: bool,
    /// Turns with each reduction of the rate for losses: what left before it is no evidence against
    /// the rate after it.
    pub(crate) recovery_bit: bool,
    pub(crate) train: Train,
    /// A bit of the packet's number that only its receiver learns, the same in all its
    /// transmissions.
    pub(crate) nonce: bool,
    pub(crate) payload: &'a [u8],
}

impl Data<'_> {
    /// Bytes of its packet.
    pub(crate) const fn len(&self) -> usize {
        DATA_HEADER + self.payload.len()
    }
}

/// Why a report was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReportKind {
    Ack,
    Cack,
    Nack,
    Sack,
    Feedback,
}

/// What a receiver knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report<'a> {
    pub(crate) kind: ReportKind,
    /// All packets before it have come.
    pub(crate) next: u32,
    /// The sum, modulo two, of the nonces of all these packets (as in RFC 3540): proof that they
    /// have.
    pub(crate) nonce_sum: bool,
    /// There is room for the packets before it.
    pub(crate) limit: u32,
    /// The newest transmission that has come.
    pub(crate) newest: u32,
    /// The sending time of the last packet that came, and for how many microseconds the report has
    /// waited since.
    pub(crate) echo: Option<(u32, u32)>,
    pub(crate) lost: Lost<'a>,
    pub(crate) feedback: Option<Feedback>,
}

/// What a receiver measured over an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Feedback {
    /// The first transmission of the epoch.
    pub(crate) since: u32,
    /// Time from one transmission to the next, in nanoseconds: as they left, and as they came.
    pub(crate) send_gap: u32,
    pub(crate) receive_gap: u32,
    /// Nanoseconds between packets of the last train, the larger of both ends'.
    pub(crate) train_gap: Option<u32>,
    /// Packets waited in a queue all through the epoch, a sign of incipient congestion.
    pub(crate) congested: bool,
    pub(crate) counts: Counts,
}

/// What became of the packets that left after a reduction of the rate, counted from the first of
/// them that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// The transmission of that one.
    pub(crate) first_counted: u32,
    /// Losses, and what they were judged to be.
    pub(crate) congestive: u32,
    pub(crate) wireless: u32,
    /// Those that have come.
    pub(crate) received: u32,
}

/// Packets that are lost, as ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lost<'a>(&'a [u8]);

/// A range of lost packets, of one cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LostRange {
    pub(crate) first: u32,
    pub(crate) count: u16,
    pub(crate) congestive: bool,
}

impl<'a> Lost<'a> {
    pub(crate) fn ranges(self) -> impl Iterator<Item = LostRange> + 'a {
        self.0.chunks_exact(RANGE).map(|range| {
            let count = u16::from_be_bytes([range[4], range[5]]);
            LostRange {
                first: u32::from_be_bytes([range[0], range[1], range[2], range[3]]),
                count: count & RANGE_MAX as u16,
                congestive: count > RANGE_MAX as u16,
            }
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body<'a> {
    Syn {
        sent: u32,
    },
    SynEcho {
        cookie: Cookie,
        echo: u32,
    },
    Start {
        cookie: Cookie,
        attempt: u8,
        params: Params,
    },
    StartEcho {
        params: Params,
    },
    Data(Data<'a>),
    Report(Report<'a>),
    /// Asks for a report: everything before `next` was sent, and `sent` is to be echoed.
    Ping {
        next: u32,
        sent: u32,
    },
    Close {
        code: u8,
    },
    /// The sender of this speaks only the version in the header.
    Versions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) connection: u64,
    /// The round-trip time that the sender knows of, in microseconds; zero if none.
    pub(crate) rtt: u64,
    pub(crate) body: Body<'a>,
}

/// A packet that is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Malformed {
    /// The CRC is not that of its bytes.
    Checksum,
    /// A sound packet of another version.
    Version { version: u8, syn: bool, connection: u64 },
    /// Too short, of an unknown type, or with values that there cannot be.
    Format,
}

/// Where a packet's fields end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed::Format)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_be_bytes)
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[HEADER..])
}

impl<'a> Packet<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let [first, flags] = reader.take()?;
        let (version, kind) = (first >> 4, first & 15);
        let rtt = decode_rtt(reader.u16()?);
        let connection = reader.u64()?;
        if reader.u32()? != checksum(bytes) {
            return Err(Malformed::Checksum);
        }
        // What stands up to here, and what SYN and VERSION mean, is the same in all versions.
        if version != VERSION && kind != VERSIONS {
            let syn = kind == SYN && bytes.len() >= SYN_LEN;
            return Err(Malformed::Version { version, syn, connection });
        }
        let body = match kind {
            SYN if bytes.len() >= SYN_LEN => Body::Syn { sent: reader.u32()? },
            SYN_ECHO => Body::SynEcho { cookie: reader.cookie()?, echo: reader.u32()? },
            START => {
                let cookie = reader.cookie()?;
                let [attempt, _] = reader.take()?;
                Body::Start { cookie, attempt, params: reader.params()? }
            }
            START_ECHO => {
                reader.u16()?;
                Body::StartEcho { params: reader.params()? }
            }
            DATA => Body::Data(Data {
                number: reader.u32()?,
                transmission: reader.u32()?,
                sent: reader.u32()?,
                fin: flags & FIN != 0,
                pause: flags & PAUSE != 0,
                rate_bit: flags & RATE_BIT != 0,
                recovery_bit: flags & RECOVERY_BIT != 0,
                train: match flags >> TRAIN_SHIFT & 3 {
                    0 => Train::No,
                    1 => Train::First,
                    2 => Train::Middle,
                    _ => Train::Last,
                },
                nonce: flags & NONCE != 0,
                payload: reader.0,
            }),
            ACK => Body::Report(reader.report(ReportKind::Ack, flags)?),
            CACK => Body::Report(reader.report(ReportKind::Cack, flags)?),
            NACK => Body::Report(reader.report(ReportKind::Nack, flags)?),
            SACK => Body::Report(reader.report(ReportKind::Sack, flags)?),
            FEED => Body::Report(reader.report(ReportKind::Feedback, flags)?),
            PING => Body::Ping { next: reader.u32()?, sent: reader.u32()? },
            CLOSE => {
                let [code] = reader.take()?;
                Body::Close { code }
            }
            VERSIONS if version != VERSION => {
                return Err(Malformed::Version { version, syn: false, connection });
            }
            VERSIONS => Body::Versions,
            _ => return Err(Malformed::Format),
        };
        Ok(Self { connection, rtt, body })
    }

    /// Appends the packet to `out`; how many bytes it has.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> usize {
        let from = out.len();
        let (kind, flags) = self.kind_and_flags();
        out.extend([VERSION << 4 | kind, flags]);
        out.extend(encode_rtt(self.rtt).to_be_bytes());
        out.extend(self.connection.to_be_bytes());
        out.extend([0; 4]);
        self.encode_body(out, from);
        let sum = checksum(&out[from..]);
        out[from + 12..from + HEADER].copy_from_slice(&sum.to_be_bytes());
        out.len() - from
    }

    fn kind_and_flags(&self) -> (u8, u8) {
        let flag = |is: bool, flag| if is { flag } else { 0 };
        match &self.body {
            Body::Syn { .. } => (SYN, 0),
            Body::SynEcho { .. } => (SYN_ECHO, 0),
            Body::Start { .. } => (START, 0),
            Body::StartEcho { .. } => (START_ECHO, 0),
            Body::Data(data) => {
                let flags = flag(data.fin, FIN)
                    | flag(data.pause, PAUSE)
                    | flag(data.rate_bit, RATE_BIT)
                    | flag(data.recovery_bit, RECOVERY_BIT)
                    | flag(data.nonce, NONCE)
                    | (data.train as u8) << TRAIN_SHIFT;
                (DATA, flags)
            }
            Body::Report(report) => {
                let kind = match report.kind {
                    ReportKind::Ack => ACK,
                    ReportKind::Cack => CACK,
                    ReportKind::Nack => NACK,
                    ReportKind::Sack => SACK,
                    ReportKind::Feedback => FEED,
                };
                let fed = report.feedback.unwrap_or_default();
                let flags = flag(report.echo.is_some(), HAS_ECHO)
                    | flag(fed.congested, CONGESTED)
                    | flag(fed.train_gap.is_some(), HAS_TRAIN)
                    | flag(report.nonce_sum, NONCE_SUM);
                (kind, flags)
            }
            Body::Ping { .. } => (PING, 0),
            Body::Close { .. } => (CLOSE, 0),
            Body::Versions => (VERSIONS, 0),
        }
    }

    fn encode_body(&self, out: &mut Vec<u8>, from: usize) {
        let mut words =
            |words: &[u32]| words.iter().for_each(|word| out.extend(word.to_be_bytes()));
        match &self.body {
            Body::Syn { sent } => {
                words(&[*sent]);
                out.resize(from + SYN_LEN, 0);
            }
            Body::SynEcho { cookie, echo } => {
                cookie.encode(out);
                out.extend(echo.to_be_bytes());
            }
            Body::Start { cookie, attempt, params } => {
                cookie.encode(out);
                out.extend([*attempt, 0]);
                params.encode(out);
            }
            Body::StartEcho { params } => {
                out.extend([0; 2]);
                params.encode(out);
            }
            Body::Data(data) => {
                words(&[data.number, data.transmission, data.sent]);
                out.extend_from_slice(data.payload);
            }
            Body::Report(report) => {
                let (echo, held) = report.echo.unwrap_or_default();
                words(&[report.next, report.limit, report.newest, echo, held]);
                if let Some(fed) = &report.feedback {
                    words(&[fed.since, fed.send_gap, fed.receive_gap]);
                    words(&[
                        fed.train_gap.unwrap_or(0),
                        fed.counts.first_counted,
                        fed.counts.congestive,
                        fed.counts.wireless,
                        fed.counts.received,
                    ]);
                }
                out.extend_from_slice(report.lost.0);
            }
            Body::Ping { next, sent } => words(&[*next, *sent]),
            Body::Close { code } => out.push(*code),
            Body::Versions => {}
        }
    }
}

impl<'a> Reader<'a> {
    fn cookie(&mut self) -> Result<Cookie, Malformed> {
        Ok(Cookie { made: self.u64()?, mac: self.u64()? })
    }

    fn params(&mut self) -> Result<Params, Malformed> {
        let params = Params { packet_size: self.u16()?, window: self.u32()? };
        let fits = params.packet_size >= LEAST_PACKET;
        if fits { Ok(params) } else { Err(Malformed::Format) }
    }

    fn report(&mut self, kind: ReportKind, flags: u8) -> Result<Report<'a>, Malformed> {
        let [next, limit, newest] = [self.u32()?, self.u32()?, self.u32()?];
        let echo = Some((self.u32()?, self.u32()?)).filter(|_| flags & HAS_ECHO != 0);
        let (nonce_sum, lost) = (flags & NONCE_SUM != 0, Lost::default());
        let mut report =
            Report { kind, next, nonce_sum, limit, newest, echo, lost, feedback: None };
        match kind {
            ReportKind::Ack | ReportKind::Cack => {}
            ReportKind::Feedback => {
                let [since, send_gap, receive_gap] = [self.u32()?, self.u32()?, self.u32()?];
                let train = self.u32()?;
                report.feedback = Some(Feedback {
                    since,
                    send_gap,
                    receive_gap,
                    train_gap: Some(train).filter(|_| flags & HAS_TRAIN != 0),
                    congested: flags & CONGESTED != 0,
                    counts: Counts {
                        first_counted: self.u32()?,
                        congestive: self.u32()?,
                        wireless: self.u32()?,
                        received: self.u32()?,
                    },
                });
            }
            ReportKind::Nack | ReportKind::Sack => {
                let sound = self.0.len().is_multiple_of(RANGE)
                    && (kind == ReportKind::Sack || self.0.len() == RANGE);
                if self.0.is_empty() || !sound {
                    return Err(Malformed::Format);
                }
                report.lost = Lost(self.0);
                let one = |range: LostRange| range.count == 1 || kind == ReportKind::Sack;
                if report.lost.ranges().any(|range| range.count == 0 || !one(range)) {
                    return Err(Malformed::Format);
                }
            }
        }
        Ok(report)
    }
}

impl Cookie {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.made.to_be_bytes());
        out.extend(self.mac.to_be_bytes());
    }
}

/// Whether a packet is of a train, from which the receiver measures the path.
pub fn is_probe(datagram: &[u8]) -> bool {
    matches!(datagram, [kind, flags, ..] if kind & 15 == DATA && flags >> TRAIN_SHIFT & 3 != 0)
}

impl Params {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.packet_size.to_be_bytes());
        out.extend(self.window.to_be_bytes());
    }
}

/// Ranges of losses, being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostWriter(Vec<u8>);

impl LostWriter {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn push(&mut self, first: u64, count: u64, congestive: bool) {
        debug_assert!((1..=RANGE_MAX).contains(&count));
        self.0.extend((first as u32).to_be_bytes());
        let flag = if congestive { 1 << 15 } else { 0 };
        self.0.extend((count as u16 | flag).to_be_bytes());
    }

    pub(crate) fn lost(&self) -> Lost<'_> {
        Lost(&self.0)
    }
}

/// Bytes of the largest report that has no losses.
const LARGEST_REPORT: usize = LEAST_REPORT + FEEDBACK;

/// How many lost packets a report names at most where packets have `size` bytes: as many as have
/// room for a range each.
pub(crate) const fn most_lost(size: usize) -> usize {
    let size = if size < LARGEST_REPORT { LARGEST_REPORT } else { size };
    (size - LEAST_REPORT) / RANGE
}

/// The number nearest to `near` whose low 32 bits are `wire`.
pub(crate) const fn expand(near: u64, wire: u32) -> u64 {
    let distance = wire.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(distance as i64)
}

/// Five bits of exponent, eleven of mantissa: to a thousandth, up to 2^42 microseconds.
fn encode_rtt(micros: u64) -> u16 {
    let exponent = (64 - micros.leading_zeros()).saturating_sub(11).min(31);
    let mantissa = (micros >> exponent).min(0x7ff);
    (exponent as u16) << 11 | mantissa as u16
}

fn decode_rtt(code: u16) -> u64 {
    u64::from(code & 0x7ff) << (code >> 11)
}

#[cfg(test)]
mod tests;
