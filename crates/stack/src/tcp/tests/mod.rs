//! Packet scripts: one connection, the hand-written segments of its peer, and virtual time.
//!
//! A [`Script`] starts a connection in a named state. `send!` delivers a segment of the peer at a
//! time (milliseconds), `recv!` asserts what the connection sends, and `recv_nothing!` that it
//! sends nothing. Sequence numbers are relative: the data of both ends starts at 1.

mod accurate;
mod ack;
mod blind;
mod cases;
mod clocks;
mod close;
mod deferral;
mod ecn;
mod hack;
mod handshake;
mod hold;
mod keepalive;
mod linger;
mod numbers;
mod pipe;
mod requirements;
mod reset;
mod scripts;
mod shrink;
mod switch;
mod together;
mod transfer;
mod window;
mod withhold;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use airtcp_types::mark::TCP_ECN_MARK;
use airtcp_types::{FlowId, Instant, SeqNumber};
use airtcp_wire::ip;
use airtcp_wire::options::{
    AccEcn, Hack, HackAck, HackForm, SackBlocks, TcpOptions, Timestamps, TxNumbers,
};
use airtcp_wire::tcp::{Flags, Segment, parse};

use super::*;
use crate::counters::Counters;

/// The initial sequence numbers of this end and of the peer. This end's number wraps soon, so that
/// every script crosses the wrap.
const ISS: SeqNumber = SeqNumber(u32::MAX - 2000);
const IRS: SeqNumber = SeqNumber(0x1000_0000);
const TS_OFFSET: u32 = 5_000_000;
/// The peer's TSval at time zero.
const PEER_TS: u32 = 100;
const PEER_WINDOW: u16 = 32_000;

/// A segment in a script; fields that do not matter keep their defaults.
#[derive(Clone, PartialEq, Eq, Default)]
struct Seg {
    flags: &'static str,
    seq: u32,
    ack: Option<u32>,
    data: Vec<u8>,
    window: Option<u16>,
    sack: Vec<(u32, u32)>,
    /// TSval and TSecr, if a script uses them.
    ts: Option<(u32, u32)>,
    mss: Option<u16>,
    wscale: Option<u8>,
    sack_permitted: bool,
    /// The form of HACK's option; its value is not compared.
    hack: Option<HackForm>,
    /// The form of a special ACK, and the number of the corrupted segment.
    hack_ack: Option<(HackForm, u32)>,
    /// The number of a transmission and the echo; zero means none.
    numbers: Option<(u32, u32)>,
    /// The mark of TCP-ECN.
    marked: bool,
    /// The ECN field of the IP header.
    ecn: u8,
    /// AE, CWR and ECE as a number (RFC 9768), instead of the letters E and W.
    ace: Option<u8>,
    /// The AccECN option.
    accecn: Option<AccEcn>,
}

impl std::fmt::Debug for Seg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] {}+{}", self.flags, self.seq, self.data.len())?;
        write!(f, " ack {:?} win {:?} sack {:?}", self.ack, self.window, self.sack)?;
        write!(f, " ts {:?} mss {:?}", self.ts, self.mss)?;
        write!(f, " wscale {:?} sackOK {}", self.wscale, self.sack_permitted)?;
        write!(f, " hack {:?} {:?}", self.hack, self.hack_ack)?;
        write!(f, " numbers {:?} ecn {}", self.numbers, self.ecn)?;
        write!(f, " ace {:?} accecn {:?}", self.ace, self.accecn)
    }
}

/// `seg!("FA", seq, ack = n, len = n, ...)`.
macro_rules! seg {
    ($flags:literal, $seq:expr $(, $field:ident = $value:expr)*) => {{
        let mut seg = Seg { flags: $flags, ..Default::default() };
        seg.seq = $seq;
        $(seg!(@set seg, $field, $value);)*
        seg
    }};
    (@set $seg:ident, ack, $value:expr) => { $seg.ack = Some($value) };
    (@set $seg:ident, len, $value:expr) => { $seg.data = stream($seg.seq, $value) };
    (@set $seg:ident, window, $value:expr) => { $seg.window = Some($value) };
    (@set $seg:ident, mss, $value:expr) => { $seg.mss = Some($value) };
    (@set $seg:ident, wscale, $value:expr) => { $seg.wscale = Some($value) };
    (@set $seg:ident, ts, $value:expr) => { $seg.ts = Some($value) };
    (@set $seg:ident, sack, $value:expr) => { $seg.sack = $value.to_vec() };
    (@set $seg:ident, sack_permitted, $value:expr) => { $seg.sack_permitted = $value };
    (@set $seg:ident, hack, $value:expr) => { $seg.hack = Some($value) };
    (@set $seg:ident, hack_ack, $value:expr) => { $seg.hack_ack = Some($value) };
    (@set $seg:ident, marked, $value:expr) => { $seg.marked = $value };
    (@set $seg:ident, ecn, $value:expr) => { $seg.ecn = $value };
    (@set $seg:ident, ace, $value:expr) => { $seg.ace = Some($value) };
    (@set $seg:ident, accecn, $value:expr) => { $seg.accecn = $value };
    (@set $seg:ident, numbers, $value:expr) => { $seg.numbers = Some($value) };
}

macro_rules! send {
    ($script:ident, $ms:expr, $($seg:tt)*) => { $script.send_at($ms, seg!($($seg)*)) };
}
macro_rules! recv {
    ($script:ident, $ms:expr, $($seg:tt)*) => { $script.recv_at($ms, &seg!($($seg)*)) };
}
macro_rules! recv_nothing {
    ($script:ident, $ms:expr) => {
        $script.recv_nothing_at($ms)
    };
}
use {recv, recv_nothing, seg, send};

/// `len` bytes of the stream that both ends send, starting at the number `seq`.
fn stream(seq: u32, len: usize) -> Vec<u8> {
    (seq..).take(len).map(|n| (n % 251) as u8).collect()
}

fn flow() -> FlowId {
    let end = |text: &str| text.parse::<SocketAddr>().unwrap();
    FlowId { local: end("10.0.0.1:80"), remote: end("10.0.0.2:40000") }
}

/// One connection under test.
struct Script {
    conn: Connection,
    counters: Counters,
    outlet: Outlet,
    now: Instant,
    /// Whether the peer's segments carry timestamps.
    timestamps: bool,
    /// The sequence number of the next byte to write.
    written: u32,
}

/// A configuration without side effects: an MSS of 1000, no timestamps, no window scaling, no
/// delayed ACKs.
fn plain() -> TcpConfig {
    let mut config = delayed();
    config.sender.profile.delayed_acks = false;
    config
}

/// As [`plain`], with delayed ACKs.
fn delayed() -> TcpConfig {
    let mut config =
        TcpConfig { mtu: 1040, timestamps: false, window_scaling: false, ..TcpConfig::default() };
    // Without pacing and tail loss probes: only the retransmission timer sends by itself.
    config.sender.combination = "sack/cubic".parse().unwrap();
    config
}

impl Script {
    fn of(conn: Connection, now: Instant) -> Self {
        let (counters, outlet) = Default::default();
        Self { conn, counters, outlet, now, timestamps: false, written: 1 }
    }

    /// Closes the connection for the application, with this linger time.
    fn close_within(&mut self, limit: Duration) -> bool {
        self.conn.set_linger(Some(limit));
        self.conn.close(self.now)
    }

    fn connecting(config: &TcpConfig) -> Self {
        let now = Instant::from_millis(0);
        let conn = Connection::connect(now, flow(), ISS, TS_OFFSET, config);
        Self::of(conn, now)
    }

    /// SYN-RECEIVED after a SYN with everything that `config` offers.
    fn syn_received(config: &TcpConfig) -> Self {
        let now = Instant::from_millis(0);
        let syn = Script::syn_of(config);
        let wire = syn.to_wire();
        let conn =
            Connection::accept(now, flow(), ISS, TS_OFFSET, config, &wire.segment(&syn.data));
        Self::of(conn, now)
    }

    fn syn_of(config: &TcpConfig) -> Seg {
        Seg {
            flags: "S",
            window: Some(PEER_WINDOW),
            mss: Some(config.mtu - 40),
            wscale: config.window_scaling.then_some(0),
            sack_permitted: config.sack,
            ts: config.timestamps.then_some((PEER_TS, 0)),
            hack: config.offers_hack().then_some(config.hack_form),
            numbers: config.offers_tx_numbers().then_some((0, 0)),
            ace: (config.ecn == EcnMode::Accurate).then_some(0b111),
            ..Seg::default()
        }
    }

    /// ESTABLISHED at time zero, opened by the peer.
    #[track_caller]
    fn established(config: &TcpConfig) -> Self {
        let mut script = Self::syn_received(config);
        let (flags, ace) = match config.ecn {
            EcnMode::Accurate => ("SAW", 0b010),
            _ => ("SA", 0),
        };
        assert_eq!(script.take(0).unwrap().flags, flags);
        script.timestamps = config.timestamps;
        send!(script, 0, "A", 1, ack = 1, ace = ace);
        assert_eq!(script.conn.state(), State::Established);
        recv_nothing!(script, 0);
        script
    }

    #[track_caller]
    fn fin_wait_2(config: &TcpConfig) -> Self {
        let mut script = Self::established(config);
        script.conn.shutdown(script.now);
        recv!(script, 0, "FA", 1, ack = 1);
        send!(script, 0, "A", 1, ack = 2);
        assert_eq!(script.conn.state(), State::FinWait2);
        script
    }

    #[track_caller]
    fn close_wait(config: &TcpConfig) -> Self {
        let mut script = Self::established(config);
        send!(script, 0, "FA", 1, ack = 1);
        recv!(script, 0, "A", 1, ack = 2);
        assert_eq!(script.conn.state(), State::CloseWait);
        script
    }

    #[track_caller]
    fn time_wait(config: &TcpConfig) -> Self {
        let mut script = Self::fin_wait_2(config);
        send!(script, 0, "FA", 1, ack = 2);
        recv!(script, 0, "A", 2, ack = 2);
        assert_eq!(script.conn.state(), State::TimeWait);
        script
    }

    /// Advances the time to `ms`, and handles every deadline at its time. Segments sent before `ms`
    /// must be received by the script in time.
    #[track_caller]
    fn advance(&mut self, ms: u64) {
        let until = Instant::from_millis(ms);
        assert!(until >= self.now, "time runs backwards");
        while let Some(at) = self.conn.poll_timeout().filter(|at| *at <= until) {
            let at = at.max(self.now);
            self.now = at;
            let before = self.conn.poll_timeout();
            self.conn.on_timeout(at, &mut self.counters);
            if at < until
                && let Some(packet) =
                    self.conn.poll_transmit(at, &mut self.counters, &mut self.outlet)
            {
                panic!("sent at {at:?}, before {until:?}: {:?}", Seg::from_packet(&packet.data));
            }
            if self.conn.poll_timeout() == before {
                // The deadline needs a call of `poll_transmit`.
                break;
            }
        }
        self.now = until;
    }

    #[track_caller]
    fn send_at(&mut self, ms: u64, seg: Seg) {
        self.advance(ms);
        let mut seg = seg;
        if self.timestamps && seg.ts.is_none() {
            seg.ts = Some((PEER_TS + ms as u32, TS_OFFSET + ms as u32));
        }
        let wire = seg.to_wire();
        self.conn.on_segment(self.now, &wire.segment(&seg.data), &mut self.counters);
    }

    #[track_caller]
    fn take(&mut self, ms: u64) -> Option<Seg> {
        self.advance(ms);
        let packet = self.conn.poll_transmit(self.now, &mut self.counters, &mut self.outlet)?;
        Some(Seg::from_packet(&packet.data))
    }

    #[track_caller]
    fn recv_at(&mut self, ms: u64, expected: &Seg) {
        let Some(seg) = self.take(ms) else { panic!("nothing sent, expected {expected:?}") };
        // Fields that the script does not name are not compared.
        let mut shown = seg.clone();
        shown.window = expected.window.and(seg.window);
        shown.ts = expected.ts.and(seg.ts);
        match expected.ace {
            Some(_) => shown.flags = without_ecn(seg.flags),
            None => assert!(shown.ace.take().is_some_and(|ace| ace < 0b100), "AE: {seg:?}"),
        }
        assert_eq!(&shown, expected);
    }

    #[track_caller]
    fn recv_nothing_at(&mut self, ms: u64) {
        if let Some(seg) = self.take(ms) {
            panic!("sent {seg:?}");
        }
    }

    /// Writes the next `len` bytes of the stream.
    #[track_caller]
    fn write(&mut self, len: usize) {
        let data = stream(self.written, len);
        assert_eq!(self.conn.send(self.now, &data, &mut self.outlet), Ok(len));
        self.written += len as u32;
    }

    /// Reads all available data.
    fn read(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buf = [0; 700];
        while let Ok(n @ 1..) = self.conn.recv(self.now, &mut buf) {
            all.extend_from_slice(&buf[..n]);
        }
        all
    }
}

/// These flags without E and W.
fn without_ecn(flags: &'static str) -> &'static str {
    let end = flags.find(['E', 'W']).unwrap_or(flags.len());
    &flags[..end]
}

/// A segment of the peer with its numbers on the wire.
struct Wire {
    seq: SeqNumber,
    ack: SeqNumber,
    flags: Flags,
    reserved: u8,
    ecn: u8,
    window: u16,
    options: TcpOptions,
}

impl Wire {
    fn segment<'a>(&self, payload: &'a [u8]) -> Segment<'a> {
        let Self { seq, ack, flags, reserved, ecn, window, options } = *self;
        let payload = payload.into();
        Segment { seq, ack, flags, reserved, ecn, window, options, payload, size: None }
    }
}

impl Seg {
    fn to_wire(&self) -> Wire {
        let has = |flag| self.flags.contains(flag);
        let sack: SackBlocks =
            self.sack.iter().map(|(start, end)| (ISS + *start, ISS + *end)).collect();
        Wire {
            seq: IRS + self.seq,
            ack: ISS + self.ack.unwrap_or(0),
            flags: {
                let flags = Flags {
                    fin: has('F'),
                    syn: has('S'),
                    rst: has('R'),
                    psh: has('P'),
                    urg: has('U'),
                    ece: has('E'),
                    cwr: has('W'),
                    ae: false,
                    ack: self.ack.is_some(),
                };
                self.ace.map_or(flags, |ace| flags.with_ace(ace))
            },
            reserved: if self.marked { TCP_ECN_MARK } else { 0 },
            ecn: self.ecn,
            window: self.window.unwrap_or(PEER_WINDOW),
            options: TcpOptions {
                mss: self.mss,
                window_scale: self.wscale,
                sack_permitted: self.sack_permitted,
                timestamps: self.ts.map(|(val, ecr)| Timestamps { val, ecr }),
                sack,
                accecn: self.accecn,
                hack: self.hack.map(|form| Hack { form, checksum: 0 }),
                hack_ack: self.hack_ack.map(|(form, seq)| HackAck { form, corrupted: ISS + seq }),
                tx_numbers: self.numbers.map(|(number, echo)| TxNumbers {
                    number: NonZeroU32::new(number),
                    echo: NonZeroU32::new(echo),
                }),
                unknown: 0,
                malformed: 0,
            },
        }
    }

    fn from_packet(packet: &[u8]) -> Self {
        let ip = ip::parse(packet).unwrap();
        let (.., segment) = parse(ip.payload).unwrap();
        let Flags { fin, syn, rst, psh, ack, ece, cwr, .. } = segment.flags;
        let names =
            [(fin, 'F'), (syn, 'S'), (rst, 'R'), (psh, 'P'), (ack, 'A'), (ece, 'E'), (cwr, 'W')];
        let text: String = names.iter().filter(|(on, _)| *on).map(|(_, c)| *c).collect();
        let known = [
            "", "A", "PA", "FA", "FPA", "S", "SA", "R", "RA", "SEW", "SAE", "AE", "AW", "PAW",
            "PAE", "SW", "SEA", "SAW", "SAEW", "AEW", "PAEW", "FAE", "FAW", "FAEW", "FPAE",
        ];
        let flags = known.into_iter().find(|flags| **flags == text).unwrap();
        let sack = segment.options.sack.as_slice().iter();
        Self {
            flags,
            seq: segment.seq.distance(ISS) as u32,
            ack: ack.then(|| segment.ack.distance(IRS) as u32),
            data: segment.payload.contiguous().into_owned(),
            window: Some(segment.window),
            sack: sack
                .map(|(start, end)| (start.distance(IRS) as u32, end.distance(IRS) as u32))
                .collect(),
            ts: segment.options.timestamps.map(|ts| (ts.val, ts.ecr)),
            mss: segment.options.mss,
            wscale: segment.options.window_scale,
            sack_permitted: segment.options.sack_permitted,
            hack: segment.options.hack.map(|hack| hack.form),
            hack_ack: segment
                .options
                .hack_ack
                .map(|special| (special.form, special.corrupted.distance(IRS) as u32)),
            numbers: segment.options.tx_numbers.map(|TxNumbers { number, echo }| {
                (number.map_or(0, NonZeroU32::get), echo.map_or(0, NonZeroU32::get))
            }),
            marked: segment.reserved & TCP_ECN_MARK != 0,
            ecn: ip.ecn,
            ace: Some(segment.flags.ace()),
            accecn: segment.options.accecn,
        }
    }
}
