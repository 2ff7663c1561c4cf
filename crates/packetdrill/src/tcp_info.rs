//! A connection in the form of Linux's `struct tcp_info`. Fields that the stack does not have are
//! zero.

use std::time::Duration;

use airtcp_recovery::{Phase, Sender, Transmission, TxState};
use airtcp_stack::tcp::{Info, State};
use airtcp_types::{ByteCount, Rate, SendRule};

/// `sizeof(struct tcp_info)` in Linux 6.18, which packetdrill uses.
pub(crate) const LEN: usize = 280;
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;

/// `tcpi_reordering` of a connection without a sender.
const DUP_THRESH: u32 = 3;

/// Bits of `tcpi_options`.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALE: u8 = 4;
const ECN: u8 = 8;

/// Encodes the `struct tcp_info` of a connection that advertises an MSS of `advertised` bytes.
pub(crate) fn encode(info: &Info, sender: Option<&Sender>, advertised: u16) -> [u8; LEN] {
    let mut out = Writer([0; LEN]);
    let segments = |bytes: ByteCount| bytes.0.div_ceil(info.mss.0.max(1)) as u32;
    let millis = |time: Duration| time.as_millis() as u32;
    let scaled = if info.wscale == (0, 0) { 0 } else { WINDOW_SCALE };
    let options = [(info.ts, TIMESTAMPS), (info.sack, SACK), (info.ecn, ECN)];
    let options = options.iter().filter(|(on, _)| *on).fold(scaled, |all, (_, bit)| all | bit);
    out.0[..8].copy_from_slice(&[
        state(info.state),
        sender.map_or(0, ca_state),
        info.backoff as u8,
        info.probes as u8,
        info.backoff as u8,
        options,
        (info.wscale.0 & 15) | (info.wscale.1 << 4),
        u8::from(info.app_limited),
    ]);
    out.u32(8, &[micros(Some(info.rto)), micros(Some(info.ato))]);
    out.u32(16, &[info.mss.0 as u32, info.rcvmss.0 as u32]);
    let lost = segments(info.lost) + sender.map_or(0, repairs);
    out.u32(24, &[segments(info.unacked), segments(info.sacked), lost]);
    out.u32(36, &[info.retrans_out as u32]);
    out.u32(44, &[millis(info.lastsnd), 0, millis(info.lastrcv), millis(info.lastack)]);
    out.u32(
        60,
        &[info.pmtu.0 as u32, info.rcv_wnd.0 as u32, micros(info.rtt), micros(info.rttvar)],
    );
    out.u32(76, &[info.ssthresh.map_or(INFINITE, segments), segments(info.cwnd)]);
    let dup_thresh = sender.map_or(DUP_THRESH, Sender::dup_thresh);
    let reordering = dup_thresh.max(info.reordering);
    out.u32(84, &[advertised.into(), reordering, micros(info.rcv_rtt), info.rcv_space.0 as u32]);
    out.u32(100, &[info.retrans as u32]);
    out.u64(104, &[info.pacing_rate.map_or(u64::MAX, per_second), u64::MAX]);
    out.u64(120, &[info.bytes_acked.0, info.bytes_received.0]);
    out.u32(136, &[info.segs_out as u32, info.segs_in as u32]);
    out.u32(144, &[(info.send_q - info.unacked).0 as u32, micros(info.minrtt)]);
    out.u32(152, &[info.data_segs_in as u32, info.data_segs_out as u32]);
    out.u64(160, &[info.delivery_rate.map_or(0, per_second), wide_micros(info.busy)]);
    out.u64(176, &[wide_micros(info.rwnd_limited), wide_micros(info.sndbuf_limited)]);
    out.u32(192, &[segments(info.delivered)]);
    out.u64(200, &[info.bytes_sent.0, info.bytes_retrans.0]);
    out.u32(216, &[info.dsack_dups as u32, info.reord_seen]);
    out.u32(228, &[info.snd_wnd.0 as u32, info.rcv_wnd.0 as u32]);
    if let Some(accecn) = info.accecn {
        let bytes = |bytes: ByteCount| bytes.0 as u32;
        out.u32(196, &[accecn.delivered_ce as u32]);
        out.u32(
            248,
            &[
                accecn.received_ce as u32,
                bytes(accecn.delivered_e1_bytes),
                bytes(accecn.delivered_e0_bytes),
                bytes(accecn.delivered_ce_bytes),
                bytes(accecn.received_e1_bytes),
                bytes(accecn.received_e0_bytes),
                bytes(accecn.received_ce_bytes),
            ],
        );
    }
    out.0
}

struct Writer([u8; LEN]);

impl Writer {
    fn u32(&mut self, at: usize, values: &[u32]) {
        self.put(at, values.iter().flat_map(|value| value.to_ne_bytes()));
    }

    fn u64(&mut self, at: usize, values: &[u64]) {
        self.put(at, values.iter().flat_map(|value| value.to_ne_bytes()));
    }

    fn put(&mut self, at: usize, bytes: impl Iterator<Item = u8>) {
        self.0[at..].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    }
}

fn micros(time: Option<Duration>) -> u32 {
    time.map_or(0, |time| time.as_micros() as u32)
}

fn wide_micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

fn per_second(rate: Rate) -> u64 {
    rate.bytes_per_sec()
}

/// Returns the number of lost segments whose retransmission is in flight: Linux counts them as lost
/// until they are acknowledged.
fn repairs(sender: &Sender) -> u32 {
    let is_repair = |sent: &Transmission| {
        sent.resent > 0 && sent.state == TxState::InFlight && sent.rule != SendRule::ProbeAgain
    };
    sender.board().in_order_sent().filter(is_repair).count() as u32
}

/// Linux's numbers of the states.
const fn state(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// `TCP_CA_Open`, `TCP_CA_Disorder`, `TCP_CA_CWR`, `TCP_CA_Recovery` or `TCP_CA_Loss`.
fn ca_state(sender: &Sender) -> u8 {
    match sender.phase() {
        Phase::Open => u8::from(sender.board().sacked() > ByteCount::ZERO),
        Phase::Cwr => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}
