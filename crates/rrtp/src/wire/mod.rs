//! The wire format, version 2. All numbers are big-endian.
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
//! |                 fields that depend on the type                |
//! ```
//!
//! `docs/rrtp.md` has a diagram of each type.

pub(crate) const VERSION: u8 = 2;
/// The length of the common header in bytes.
pub(crate) const HEADER: usize = 16;
/// The length of the header of a data packet in bytes.
pub(crate) const DATA_HEADER: usize = HEADER + 12;
/// The minimum packet size that an end can request: small packets cost memory and headers.
pub(crate) const LEAST_PACKET: u16 = 64;
/// The length to which a SYN is padded, so that no response to it is longer.
pub(crate) const SYN_LEN: usize = 40;
/// The length of the fields of a report without losses and feedback.
const REPORT: usize = 20;
const FEEDBACK: usize = 32;
/// The length of a range of losses in bytes.
pub(crate) const RANGE: usize = 6;
/// The length of a report without losses and feedback, with its header.
pub(crate) const LEAST_REPORT: usize = HEADER + REPORT;
/// The length of a PING in bytes.
pub(crate) const PING_LEN: usize = HEADER + 8;
/// The maximum number of packets in a range of losses.
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

/// A cookie that a server gives to a client, which returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    /// The time at which it was made, in nanoseconds of the server's clock.
    pub(crate) made: u64,
    pub(crate) mac: u64,
}

/// The parameters that each end announces at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    /// The maximum packet size that this end sends and accepts, in bytes of UDP payload.
    pub(crate) packet_size: u16,
    /// The number of packets that may be sent to this end before it extends the window.
    pub(crate) window: u32,
}

/// The position of a packet in a train, which leaves back to back to be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Train {
    No,
    First,
    Middle,
    Last,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Data<'a> {
    /// The position in the stream.
    pub(crate) number: u32,
    /// The transmission number, which increases with every transmission.
    pub(crate) transmission: u32,
    /// The sending time, in microseconds of the sender's clock.
    pub(crate) sent: u32,
    /// The last packet of the stream.
    pub(crate) fin: bool,
    /// The sender paused before this packet, so that the gap before it is not measured.
    pub(crate) pause: bool,
    /// Toggles with each new rate, for which averages restart.
    pub(crate) rate_bit: bool,
    /// Toggles with each reduction of the rate because of losses: packets sent before say nothing
    /// about the rate after it.
    pub(crate) recovery_bit: bool,
    pub(crate) train: Train,
    /// A random bit of the packet number, the same in all its transmissions, which only a receiver
    /// of the packet knows.
    pub(crate) nonce: bool,
    pub(crate) payload: &'a [u8],
}

impl Data<'_> {
    /// The length of the packet in bytes.
    pub(crate) const fn len(&self) -> usize {
        DATA_HEADER + self.payload.len()
    }
}

/// The reason for a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReportKind {
    Ack,
    Cack,
    Nack,
    Sack,
    Feedback,
}

/// The state of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report<'a> {
    pub(crate) kind: ReportKind,
    /// All packets before this number have been received.
    pub(crate) next: u32,
    /// The sum modulo two of the nonces of all these packets (as in RFC 3540), which proves their
    /// receipt.
    pub(crate) nonce_sum: bool,
    /// The end of the window: there is room for the packets before this number.
    pub(crate) limit: u32,
    /// The newest transmission received.
    pub(crate) newest: u32,
    /// The sending time of the last packet received, and the time in microseconds since then.
    pub(crate) echo: Option<(u32, u32)>,
    pub(crate) lost: Lost<'a>,
    pub(crate) feedback: Option<Feedback>,
}

/// The measurements of an epoch by a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Feedback {
    /// The first transmission of the epoch.
    pub(crate) since: u32,
    /// The time between consecutive transmissions in nanoseconds, as sent and as received.
    pub(crate) send_gap: u32,
    pub(crate) receive_gap: u32,
    /// The gap between packets of the last train in nanoseconds, the larger of both ends'.
    pub(crate) train_gap: Option<u32>,
    /// Packets were queued during the whole epoch, a sign of incipient congestion.
    pub(crate) congested: bool,
    pub(crate) counts: Counts,
}

/// The fate of the packets sent since a reduction of the rate, from the first one received on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// The transmission number of the first one received.
    pub(crate) first_counted: u32,
    /// The numbers of losses by cause.
    pub(crate) congestive: u32,
    pub(crate) wireless: u32,
    /// The number of packets received.
    pub(crate) received: u32,
}

/// Ranges of lost packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lost<'a>(&'a [u8]);

/// A range of packets lost for the same cause.
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
    /// Requests a report: everything before `next` was sent, and `sent` has to be echoed.
    Ping {
        next: u32,
        sent: u32,
    },
    Close {
        code: u8,
    },
    /// The sender supports only the version in the header.
    Versions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) connection: u64,
    /// The sender's round-trip time in microseconds; zero if unknown.
    pub(crate) rtt: u64,
    pub(crate) body: Body<'a>,
}

/// The reason for rejecting a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Malformed {
    /// The CRC is wrong.
    Checksum,
    /// The CRC is correct, but the version is another one.
    Version { version: u8, syn: bool, connection: u64 },
    /// The packet is too short, of unknown type, or has invalid values.
    Format,
}

/// The fields of a packet that have not been read yet.
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
        // The header up to here, and the types SYN and VERSION, are the same in all versions.
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

    /// Appends the packet to `out`; returns its length in bytes.
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

/// Whether a datagram belongs to a train, from which the receiver measures the path.
pub fn is_probe(datagram: &[u8]) -> bool {
    matches!(datagram, [kind, flags, ..] if kind & 15 == DATA && flags >> TRAIN_SHIFT & 3 != 0)
}

impl Params {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.packet_size.to_be_bytes());
        out.extend(self.window.to_be_bytes());
    }
}

/// A writer of ranges of lost packets.
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

/// The length in bytes of the longest report without losses.
const LARGEST_REPORT: usize = LEAST_REPORT + FEEDBACK;

/// Returns the maximum number of lost packets in a report if packets have `size` bytes: the number
/// of ranges that fit.
pub(crate) const fn most_lost(size: usize) -> usize {
    let size = if size < LARGEST_REPORT { LARGEST_REPORT } else { size };
    (size - LEAST_REPORT) / RANGE
}

/// Returns the number nearest to `near` whose low 32 bits are `wire`.
pub(crate) const fn expand(near: u64, wire: u32) -> u64 {
    let distance = wire.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(distance as i64)
}

/// Encodes with five bits of exponent and eleven of mantissa: a precision of 1/1000, up to 2^42 us.
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
