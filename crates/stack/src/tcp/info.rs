//! Details of a connection, with the names of `ss -ti`.

use std::fmt;
use std::time::Duration;

use airtcp_recovery::{PathModel, Transmission, TxState};
use airtcp_types::{ByteCount, Instant, Rate};
use serde::Serializer;

use super::send::SendHalf;
use super::{Connection, State, Unreachable};
use crate::Counters;

/// A snapshot of a connection, with the fields of `ss -ti`; [`Display`](fmt::Display) prints the
/// line of `ss`.
///
/// Windows are in bytes; the printed line shows cwnd, ssthresh, unacked, lost and sacked in
/// segments, as `ss` does. Durations are serialised as milliseconds, rates as bits per second.
/// Fields of `ss` that this stack does not keep are missing.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Info {
    /// The state of the connection.
    pub state: State,
    /// Whether timestamps are in use.
    pub ts: bool,
    /// Whether SACK is in use.
    pub sack: bool,
    /// Whether ECN is in use (RFC 3168 or RFC 9768).
    pub ecn: bool,
    /// Counters of AccECN, if it is in use (RFC 9768).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accecn: Option<AccEcnInfo>,
    /// Whether header checksums (HACK) are in use.
    pub hack: bool,
    /// Whether transmissions are numbered.
    pub tx_numbers: bool,
    /// The sender's strategies, as `detection/control[/judges]`; empty before ESTABLISHED.
    pub combination: String,
    /// The window scale of the peer's windows and of this end's windows (shifts).
    pub wscale: (u8, u8),
    /// The retransmission time-out.
    #[serde(serialize_with = "millis")]
    pub rto: Duration,
    /// The number of consecutive back-offs.
    pub backoff: u32,
    /// Smoothed round-trip time.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub rtt: Option<Duration>,
    /// The mean deviation of the round-trip time.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub rttvar: Option<Duration>,
    /// The delay of delayed ACKs.
    #[serde(serialize_with = "millis")]
    pub ato: Duration,
    /// Payload bytes of a full segment that this end sends.
    pub mss: ByteCount,
    /// The maximum size of packets sent: the minimum of path, device and peer.
    pub pmtu: ByteCount,
    /// Payload bytes of a full segment of the peer, estimated.
    pub rcvmss: ByteCount,
    /// The congestion window.
    pub cwnd: ByteCount,
    /// The slow-start threshold, once set.
    pub ssthresh: Option<ByteCount>,
    /// The path model of the congestion control, if it has one (`bbr`, `bbr3`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_model: Option<PathModel>,
    /// Payload bytes sent, including retransmissions.
    pub bytes_sent: ByteCount,
    /// Payload bytes retransmitted.
    pub bytes_retrans: ByteCount,
    /// Payload bytes acknowledged by the peer, each once. Linux also counts SYN and FIN as one byte
    /// each.
    pub bytes_acked: ByteCount,
    /// Payload bytes received, each once.
    pub bytes_received: ByteCount,
    /// Segments sent.
    pub segs_out: u64,
    /// Segments received.
    pub segs_in: u64,
    /// Segments sent with data.
    pub data_segs_out: u64,
    /// Segments received with new data.
    pub data_segs_in: u64,
    /// cwnd per round-trip time, in bit/s.
    pub send: Rate,
    /// Time since data was last sent.
    #[serde(serialize_with = "millis")]
    pub lastsnd: Duration,
    /// Time since data was last received.
    #[serde(serialize_with = "millis")]
    pub lastrcv: Duration,
    /// Time since an ACK was last received.
    #[serde(serialize_with = "millis")]
    pub lastack: Duration,
    /// The pacing rate, if the sender paces.
    pub pacing_rate: Option<Rate>,
    /// The last delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// Bytes known to be delivered.
    pub delivered: ByteCount,
    /// Whether `delivery_rate` was limited by the application.
    pub app_limited: bool,
    /// Time with unsent or unacknowledged data.
    #[serde(serialize_with = "millis")]
    pub busy: Duration,
    /// The part of `busy` that was limited by the peer's window.
    #[serde(serialize_with = "millis")]
    pub rwnd_limited: Duration,
    /// The part of `busy` that was limited by the send buffer.
    #[serde(serialize_with = "millis")]
    pub sndbuf_limited: Duration,
    /// Bytes sent and not cumulatively acknowledged.
    pub unacked: ByteCount,
    /// Retransmitted segments in flight.
    pub retrans_out: u64,
    /// Retransmitted segments, including SYNs.
    pub retrans: u64,
    /// Bytes lost and not yet retransmitted.
    pub lost: ByteCount,
    /// Transmissions marked lost since the connection started; it wraps.
    pub segs_lost: u32,
    /// Those of `segs_lost` that a judge considers random, so that the congestion control does not
    /// react to them.
    pub segs_lost_random: u32,
    /// Bytes selectively acknowledged.
    pub sacked: ByteCount,
    /// The number of DSACKs received (RFC 2883).
    pub dsack_dups: u64,
    /// The maximum reordering, in segments, of a segment that was sent once; zero if none was seen.
    pub reordering: u32,
    /// The number of ACKs that showed reordering.
    pub reord_seen: u32,
    /// The number of unanswered window probes or keep-alives.
    pub probes: u32,
    /// The receiver's estimate of the round-trip time.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub rcv_rtt: Option<Duration>,
    /// The current limit of the receive buffer.
    pub rcv_space: ByteCount,
    /// The advertised receive window.
    pub rcv_wnd: ByteCount,
    /// The smallest round-trip time.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub minrtt: Option<Duration>,
    /// The advertised window of the peer.
    pub snd_wnd: ByteCount,
    /// Bytes received and not read.
    pub recv_q: ByteCount,
    /// Bytes written and not acknowledged.
    pub send_q: ByteCount,
    /// The last ICMP error about outstanding data, if no ACK has arrived since (RFC 9293 section
    /// 3.9.2.2). It did not end the connection, but may explain why no ACK arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_error: Option<Unreachable>,
}

/// The counters of AccECN (RFC 9768): packets and payload bytes by the ECN field with which they
/// arrived, named as in Linux's `struct tcp_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[non_exhaustive]
pub struct AccEcnInfo {
    /// Sent packets that the peer received with CE, including control packets and retransmissions.
    pub delivered_ce: u64,
    /// Sent payload bytes that the peer received with CE.
    pub delivered_ce_bytes: ByteCount,
    /// Sent payload bytes that the peer received with ECT(0).
    pub delivered_e0_bytes: ByteCount,
    /// Sent payload bytes that the peer received with ECT(1).
    pub delivered_e1_bytes: ByteCount,
    /// Packets received with CE.
    pub received_ce: u64,
    /// Payload bytes received with CE.
    pub received_ce_bytes: ByteCount,
    /// Payload bytes received with ECT(0).
    pub received_e0_bytes: ByteCount,
    /// Payload bytes received with ECT(1).
    pub received_e1_bytes: ByteCount,
}

impl AccEcnInfo {
    /// The names and values that `ss` prints.
    fn counts(&self) -> [(&'static str, u64); 8] {
        [
            ("delivered_ce", self.delivered_ce),
            ("delivered_ce_bytes", self.delivered_ce_bytes.0),
            ("delivered_e0_bytes", self.delivered_e0_bytes.0),
            ("delivered_e1_bytes", self.delivered_e1_bytes.0),
            ("received_ce", self.received_ce),
            ("received_ce_bytes", self.received_ce_bytes.0),
            ("received_e0_bytes", self.received_e0_bytes.0),
            ("received_e1_bytes", self.received_e1_bytes.0),
        ]
    }
}

/// The counters of a connection.
#[derive(Debug)]
pub(super) struct Tally {
    established: bool,
    segs_out: u64,
    segs_in: u64,
    data_segs_out: u64,
    data_segs_in: u64,
    bytes_sent: ByteCount,
    bytes_retrans: ByteCount,
    bytes_received: ByteCount,
    retrans_segs: u64,
    syn_retrans: u64,
    lost_segs: u32,
    lost_random: u32,
    last_snd: Instant,
    last_rcv: Instant,
    last_ack: Instant,
    watches: Stopwatches,
}

/// Stopwatches for the three kinds of [`Time`], in 32 bytes.
#[derive(Debug, Default)]
struct Stopwatches {
    running: [bool; 3],
    /// The state of each stopwatch. Stopped: the origin plus the measured time. Running: the time
    /// at which it would have started if it had run without pauses. Each form is the time elapsed
    /// since the other one.
    marks: [Instant; 3],
}

#[derive(Clone, Copy)]
enum Time {
    Busy,
    RwndLimited,
    SndbufLimited,
}

impl Stopwatches {
    fn run(&mut self, now: Instant, time: Time, on: bool) {
        let (running, mark) = (&mut self.running[time as usize], &mut self.marks[time as usize]);
        if *running != on {
            *running = on;
            *mark = Instant::ZERO + now.since(*mark);
        }
    }

    fn read(&self, now: Instant, time: Time) -> Duration {
        let (running, mark) = (self.running[time as usize], self.marks[time as usize]);
        if running { now.since(mark) } else { mark.since(Instant::ZERO) }
    }
}

impl Tally {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            established: false,
            segs_out: 0,
            segs_in: 0,
            data_segs_out: 0,
            data_segs_in: 0,
            bytes_sent: ByteCount::ZERO,
            bytes_retrans: ByteCount::ZERO,
            bytes_received: ByteCount::ZERO,
            retrans_segs: 0,
            syn_retrans: 0,
            lost_segs: 0,
            lost_random: 0,
            last_snd: now,
            last_rcv: now,
            last_ack: now,
            watches: Stopwatches::default(),
        }
    }

    /// Records that the handshake is complete.
    pub(super) fn on_established(&mut self, now: Instant) {
        self.established = true;
        self.last_rcv = now;
    }

    /// Whether the handshake was completed.
    pub(super) const fn is_established(&self) -> bool {
        self.established
    }

    /// Counts received segments.
    pub(super) fn on_segments(&mut self, segments: u32) {
        self.segs_in += u64::from(segments);
    }

    /// Counts segments with `new` bytes that had not arrived before.
    pub(super) fn on_data(&mut self, now: Instant, segments: u32, new: ByteCount) {
        self.data_segs_in += u64::from(segments);
        self.bytes_received += new;
        self.last_rcv = now;
    }

    /// Bytes that arrived, each counted once.
    pub(super) const fn bytes_received(&self) -> ByteCount {
        self.bytes_received
    }

    /// Records the arrival of an ACK.
    pub(super) fn on_ack(&mut self, now: Instant) {
        self.last_ack = now;
    }

    /// Counts sent segments.
    pub(super) fn on_sent(&mut self, segments: u64) {
        self.segs_out += segments;
    }

    /// Counts a retransmission of the SYN or SYN-ACK.
    pub(super) fn on_syn_sent_again(&mut self) {
        self.syn_retrans += 1;
    }

    /// Counts sent segments with `len` bytes in total; `again`: they are retransmissions.
    pub(super) fn on_data_sent(
        &mut self,
        now: Instant,
        segments: u64,
        len: ByteCount,
        again: bool,
    ) {
        if again {
            self.retrans_segs += segments;
            self.bytes_retrans += len;
        }
        if len > ByteCount::ZERO {
            self.data_segs_out += segments;
            self.bytes_sent += len;
            self.last_snd = now;
        }
    }

    /// Records that there is data to send from now on.
    pub(super) fn busy_from(&mut self, now: Instant) {
        self.watches.run(now, Time::Busy, true);
    }

    /// Counts new losses, and starts and stops the stopwatches by the state of the send half.
    pub(super) fn settle(&mut self, now: Instant, send: &SendHalf, counters: &mut Counters) {
        if let Some(stats) = send.sender().map(|sender| sender.stats()) {
            let count = |now: u64, counted: &mut u32, counter: &mut u64| {
                *counter += u64::from((now as u32).wrapping_sub(*counted));
                *counted = now as u32;
            };
            let random = stats.segments_lost_at_random;
            count(stats.segments_lost, &mut self.lost_segs, &mut counters.tcp_ext_segs_lost);
            count(random, &mut self.lost_random, &mut counters.tcp_ext_segs_lost_random);
        }
        let busy = send.una() < send.end();
        self.watches.run(now, Time::Busy, busy);
        self.watches.run(now, Time::RwndLimited, busy && send.is_window_limited());
        self.watches.run(now, Time::SndbufLimited, busy && send.is_buffer_limited());
    }
}

impl Connection {
    /// Returns a snapshot of the connection. Once nothing is left to send, the sender's values are
    /// the last ones, or missing after [`close`](Self::close).
    pub fn info(&self, now: Instant) -> Info {
        let tally = &self.tally;
        let keep_alives = self.keep_alive.as_ref().map_or(0, |watch| watch.unanswered());
        let mut info = Info {
            state: self.state,
            ts: self.timestamps.is_some(),
            sack: self.sack,
            ecn: self.ecn.is_on(),
            accecn: self.ecn.counts(),
            hack: self.granted().hack,
            tx_numbers: self.granted().txno_echo,
            combination: String::new(),
            wscale: (self.send.scale(), self.receive.scale()),
            rto: self.send.rto(),
            backoff: 0,
            rtt: None,
            rttvar: None,
            ato: self.acks.ato(),
            mss: ByteCount::ZERO,
            pmtu: ByteCount(u64::from(self.path_mtu())),
            rcvmss: self.acks.segment(),
            cwnd: ByteCount::ZERO,
            ssthresh: None,
            path_model: None,
            bytes_sent: tally.bytes_sent,
            bytes_retrans: tally.bytes_retrans,
            bytes_acked: ByteCount::ZERO,
            bytes_received: tally.bytes_received,
            segs_out: tally.segs_out,
            segs_in: tally.segs_in,
            data_segs_out: tally.data_segs_out,
            data_segs_in: tally.data_segs_in,
            send: Rate::ZERO,
            lastsnd: now.since(tally.last_snd),
            lastrcv: now.since(tally.last_rcv),
            lastack: now.since(tally.last_ack),
            pacing_rate: None,
            delivery_rate: None,
            delivered: ByteCount::ZERO,
            app_limited: false,
            busy: tally.watches.read(now, Time::Busy),
            rwnd_limited: tally.watches.read(now, Time::RwndLimited),
            sndbuf_limited: tally.watches.read(now, Time::SndbufLimited),
            unacked: ByteCount::ZERO,
            retrans_out: 0,
            retrans: tally.retrans_segs + tally.syn_retrans,
            lost: ByteCount::ZERO,
            segs_lost: tally.lost_segs,
            segs_lost_random: tally.lost_random,
            sacked: ByteCount::ZERO,
            dsack_dups: 0,
            reordering: 0,
            reord_seen: 0,
            probes: self.send.probes_unanswered().max(keep_alives.into()),
            rcv_rtt: self.receive.rtt(),
            rcv_space: self.receive.limit(),
            rcv_wnd: self.receive.window(),
            minrtt: None,
            snd_wnd: self.send.window(),
            recv_q: self.receive.readable(),
            send_q: self.send.buffer().len(),
            soft_error: self.closing.soft_error(),
        };
        self.add_sender(&mut info);
        info
    }

    fn add_sender(&self, info: &mut Info) {
        let Some(sender) = self.send.sender() else {
            if let Some(last) = &self.last_info {
                info.combination.clone_from(&last.combination);
                info.rto = last.rto;
                (info.rtt, info.rttvar, info.minrtt) = (last.rtt, last.rttvar, last.minrtt);
                (info.mss, info.cwnd, info.ssthresh) = (last.mss, last.cwnd, last.ssthresh);
                info.path_model = last.path_model;
                (info.send, info.pacing_rate) = (last.send, last.pacing_rate);
                (info.delivery_rate, info.delivered) = (last.delivery_rate, last.delivered);
                info.app_limited = last.app_limited;
                info.bytes_acked = last.bytes_acked;
                info.dsack_dups = last.dsack_dups;
                (info.reordering, info.reord_seen) = (last.reordering, last.reord_seen);
            }
            return;
        };
        let (rtt, board) = (sender.rtt(), sender.board());
        info.combination = sender.combination().to_string();
        info.backoff = sender.backoff();
        (info.rtt, info.rttvar, info.minrtt) = (rtt.srtt(), rtt.rttvar(), rtt.min());
        info.mss = sender.smss();
        info.cwnd = sender.cwnd();
        info.ssthresh = sender.control_state().ssthresh;
        info.path_model = sender.path_model();
        info.send =
            rtt.srtt().map_or(Rate::ZERO, |srtt| Rate::from_bytes_over(sender.cwnd(), srtt));
        info.pacing_rate = sender.pacing_rate();
        let measured = sender.delivery_rate();
        info.delivery_rate = measured.map(|(rate, _)| rate);
        info.app_limited = measured.is_some_and(|(_, app_limited)| app_limited);
        info.delivered = sender.delivered();
        info.bytes_acked = self.send.buffer().start().since(self.send.first());
        info.unacked = sender.snd_nxt().since(sender.snd_una());
        let again = |t: &Transmission| t.resent > 0 && t.state == TxState::InFlight;
        info.retrans_out = board.in_order_sent().filter(again).count() as u64;
        info.lost = board.lost();
        info.sacked = board.sacked();
        info.dsack_dups = sender.stats().dsacks;
        (info.reordering, info.reord_seen) = (sender.reordering(), sender.reord_seen());
    }
}

/// Writes the line of `ss -ti`; as in `ss`, tokens without a value are left out.
impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = |bytes: ByteCount| bytes.0.div_ceil(self.mss.0.max(1));
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        write!(f, "{}", self.state.ss_name())?;
        let spoken = [
            (self.ts, " ts"),
            (self.sack, " sack"),
            (self.ecn, " ecn"),
            (self.accecn.is_some(), " accecn"),
            (self.hack, " hack"),
            (self.tx_numbers, " tx_numbers"),
        ];
        spoken.iter().filter(|(on, _)| *on).try_for_each(|(_, name)| f.write_str(name))?;
        if !self.combination.is_empty() {
            write!(f, " {}", self.combination)?;
        }
        write!(f, " wscale:{},{} rto:{}", self.wscale.0, self.wscale.1, ms(self.rto).round())?;
        if self.backoff > 0 {
            write!(f, " backoff:{}", self.backoff)?;
        }
        if let (Some(rtt), Some(rttvar)) = (self.rtt, self.rttvar) {
            write!(f, " rtt:{:.3}/{:.3}", ms(rtt), ms(rttvar))?;
        }
        write!(f, " ato:{} mss:{} pmtu:{}", ms(self.ato).round(), self.mss, self.pmtu)?;
        write!(f, " rcvmss:{}", self.rcvmss)?;
        write!(f, " cwnd:{}", segments(self.cwnd))?;
        if let Some(ssthresh) = self.ssthresh {
            write!(f, " ssthresh:{}", segments(ssthresh))?;
        }
        let counts = [
            ("bytes_sent", self.bytes_sent.0),
            ("bytes_retrans", self.bytes_retrans.0),
            ("bytes_acked", self.bytes_acked.0),
            ("bytes_received", self.bytes_received.0),
            ("segs_out", self.segs_out),
            ("segs_in", self.segs_in),
            ("data_segs_out", self.data_segs_out),
            ("data_segs_in", self.data_segs_in),
        ];
        write_counts(f, &counts)?;
        if let Some(model) = &self.path_model {
            write_model(f, &self.combination, model)?;
        }
        write!(f, " send {}", self.send)?;
        write!(f, " lastsnd:{} lastrcv:{}", ms(self.lastsnd).round(), ms(self.lastrcv).round())?;
        write!(f, " lastack:{}", ms(self.lastack).round())?;
        if let Some(rate) = self.pacing_rate {
            write!(f, " pacing_rate {rate}")?;
        }
        if let Some(rate) = self.delivery_rate {
            write!(f, " delivery_rate {rate}")?;
        }
        write_counts(f, &[("delivered", segments(self.delivered))])?;
        if self.app_limited {
            f.write_str(" app_limited")?;
        }
        if !self.busy.is_zero() {
            write!(f, " busy:{}ms", ms(self.busy).round())?;
        }
        if !self.rwnd_limited.is_zero() {
            let share = 100.0 * ms(self.rwnd_limited) / ms(self.busy).max(f64::MIN_POSITIVE);
            write!(f, " rwnd_limited:{}ms({share:.1}%)", ms(self.rwnd_limited).round())?;
        }
        if !self.sndbuf_limited.is_zero() {
            let share = 100.0 * ms(self.sndbuf_limited) / ms(self.busy).max(f64::MIN_POSITIVE);
            write!(f, " sndbuf_limited:{}ms({share:.1}%)", ms(self.sndbuf_limited).round())?;
        }
        write_counts(f, &[("unacked", segments(self.unacked))])?;
        if self.retrans > 0 {
            write!(f, " retrans:{}/{}", self.retrans_out, self.retrans)?;
        }
        let counts = [
            ("lost", segments(self.lost)),
            ("segs_lost", self.segs_lost.into()),
            ("segs_lost_random", self.segs_lost_random.into()),
            ("sacked", segments(self.sacked)),
            ("dsack_dups", self.dsack_dups),
            ("reordering", self.reordering.into()),
            ("reord_seen", self.reord_seen.into()),
        ];
        write_counts(f, &counts)?;
        if let Some(rtt) = self.rcv_rtt {
            write!(f, " rcv_rtt:{:.3}", ms(rtt))?;
        }
        write!(f, " rcv_space:{}", self.rcv_space)?;
        if let Some(rtt) = self.minrtt {
            write!(f, " minrtt:{:.3}", ms(rtt))?;
        }
        write!(f, " rcv_wnd:{} snd_wnd:{}", self.rcv_wnd, self.snd_wnd)?;
        self.accecn.map_or(Ok(()), |accecn| write_counts(f, &accecn.counts()))
    }
}

fn write_counts(f: &mut fmt::Formatter<'_>, counts: &[(&str, u64)]) -> fmt::Result {
    counts.iter().filter(|(_, n)| *n > 0).try_for_each(|(name, n)| write!(f, " {name}:{n}"))
}

/// Writes the path model in the form that `ss` uses for BBR, with the name of the congestion
/// control and the additional fields of BBRv3. Bounds that are not set are left out.
fn write_model(f: &mut fmt::Formatter<'_>, combination: &str, model: &PathModel) -> fmt::Result {
    let control = combination.split('/').nth(1).unwrap_or_default();
    let control = control.split(':').next().unwrap_or_default();
    write!(f, " {control}:(bw:{}", model.bw)?;
    if let Some(min_rtt) = model.min_rtt {
        write!(f, ",mrtt:{:.3}", min_rtt.as_secs_f64() * 1e3)?;
    }
    write!(f, ",pacing_gain:{},cwnd_gain:{}", model.pacing_gain, model.cwnd_gain)?;
    write!(f, ",state:{},max_bw:{}", model.state, model.max_bw)?;
    if let Some(bw) = model.bw_shortterm {
        write!(f, ",bw_shortterm:{bw}")?;
    }
    let bounds = [
        ("inflight_longterm", model.inflight_longterm),
        ("inflight_shortterm", model.inflight_shortterm),
        ("extra_acked", Some(model.extra_acked)),
    ];
    for (name, bytes) in bounds {
        if let Some(bytes) = bytes {
            write!(f, ",{name}:{bytes}")?;
        }
    }
    f.write_str(")")
}

fn millis<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1e3)
}
