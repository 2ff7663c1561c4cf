//! Events of nodes, for all observers.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

use crate::{ByteCount, ExtSeq, Instant, Packet, Rate, SeqRange, TxNo};

/// The two ends of a flow, as seen by the reporting node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowId {
    /// The node's own end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
}

/// Hashes an IPv4 flow in two steps, because the flow of every packet is looked up.
impl Hash for FlowId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match (self.local, self.remote) {
            (SocketAddr::V4(local), SocketAddr::V4(remote)) => {
                let [a, b] = [local, remote].map(|end| end.ip().to_bits());
                state.write_u64(u64::from(a) << 32 | u64::from(b));
                state.write_u32(u32::from(local.port()) << 16 | u32::from(remote.port()));
            }
            ends => ends.hash(state),
        }
    }
}

/// An event at a node.
///
/// Nodes create events only if an observer asked for them; otherwise an event costs one test of a
/// flag.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// The time of the event.
    pub at: Instant,
    /// The flow of the event; `None` for nodes that do not know flows, such as links.
    pub flow: Option<FlowId>,
    /// The kind of event.
    pub kind: EventKind,
}

/// The rule by which the sender sent a transmission.
///
/// Every transmission has one; nothing is sent by any other rule.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum SendRule {
    /// Data never sent before, within the windows (RFC 5681 section 3).
    NewData,
    /// The first retransmission of a recovery, sent regardless of the pipe (RFC 5681 section 3.2
    /// step 3, RFC 6675 section 5 step 4.3).
    FastRetransmit,
    /// A retransmission of data judged lost, within the windows.
    Repair,
    /// A retransmission of data below SACKed data that is not judged lost, sent because nothing
    /// else may be sent (RFC 6675 NextSeg rule 3).
    Unsacked,
    /// A retransmission of the highest outstanding data, once per recovery, because nothing else
    /// may be sent (RFC 6675 NextSeg rule 4).
    Rescue,
    /// New data on the first two duplicate ACKs, up to two segments above cwnd (RFC 3042).
    LimitedTransmit,
    /// A tail loss probe with new data, sent regardless of the congestion window because no ACK has
    /// arrived for two round trips (RFC 8985 section 7.3).
    Probe,
    /// A tail loss probe without new data: a retransmission of the highest outstanding data.
    ProbeAgain,
    /// A retransmission of the oldest data after a retransmission time-out (RFC 6298 section 5).
    Timeout,
}

impl SendRule {
    /// Whether the rule sends data that was sent before.
    pub const fn is_retransmission(self) -> bool {
        !matches!(self, Self::NewData | Self::LimitedTransmit | Self::Probe)
    }

    /// The short name of the rule, as in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewData => "new-data",
            Self::FastRetransmit => "fast-retransmit",
            Self::Repair => "repair",
            Self::Unsacked => "unsacked",
            Self::Rescue => "rescue",
            Self::LimitedTransmit => "limited-transmit",
            Self::Probe => "probe",
            Self::ProbeAgain => "probe-again",
            Self::Timeout => "timeout",
        }
    }

    /// Whether the rule sends regardless of the congestion window.
    pub const fn exceeds_cwnd(self) -> bool {
        matches!(self, Self::FastRetransmit | Self::Probe | Self::ProbeAgain | Self::Timeout)
    }
}

/// The kind of an event.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The connection changed its RFC 9293 state.
    State {
        /// The previous state, named as in RFC 9293.
        from: &'static str,
        /// The new state.
        to: &'static str,
    },
    /// A transmission was sent.
    Sent {
        /// Its transmission number.
        tx: TxNo,
        /// Its range of sequence numbers.
        range: SeqRange,
        /// The rule by which it was sent.
        rule: SendRule,
        /// The pipe before it: bytes estimated to be in flight.
        pipe: ByteCount,
        /// The congestion window before it.
        cwnd: ByteCount,
        /// The peer's receive window, from SND.UNA.
        rwnd: ByteCount,
    },
    /// A segment was received and accepted, or several consecutive segments processed as one.
    Received {
        /// Its range of sequence numbers; empty for a pure ACK.
        range: SeqRange,
        /// Its acknowledgement number.
        ack: ExtSeq,
        /// The window that it advertises, in bytes.
        window: ByteCount,
    },
    /// The segment of the last [`Received`](Self::Received) is the first to acknowledge these
    /// transmissions.
    Acknowledged {
        /// The first transmission number.
        first: TxNo,
        /// The last transmission number; all between are acknowledged, too.
        last: TxNo,
    },
    /// A transmission was found to be lost.
    Lost {
        /// Its transmission number.
        tx: TxNo,
        /// Its range of sequence numbers.
        range: SeqRange,
        /// The assumed cause of the loss.
        cause: &'static str,
    },
    /// The congestion window is reduced and a recovery starts. Not reported for time-outs.
    Reduced {
        /// The assumed cause of the loss, or that the cause was a congestion mark.
        cause: &'static str,
    },
    /// The congestion window, the slow-start threshold, the pipe or a rate changed.
    Window {
        /// The congestion window.
        cwnd: ByteCount,
        /// The slow-start threshold; `None` while it is not set.
        ssthresh: Option<ByteCount>,
        /// The pipe: bytes estimated to be in flight.
        pipe: ByteCount,
        /// The pacing rate, if data is paced.
        pacing_rate: Option<Rate>,
        /// The congestion control's bandwidth estimate, if it has one.
        bandwidth: Option<Rate>,
    },
    /// A round-trip time was sampled.
    Rtt {
        /// The sample.
        sample: Duration,
        /// The smoothed round-trip time after the sample.
        srtt: Duration,
        /// The smallest sample so far, including inherited ones.
        min: Duration,
    },
    /// The retransmission timer expired.
    Timeout {
        /// The number of consecutive time-outs.
        backoff: u32,
    },
    /// A reduction was found to be spurious and was undone.
    Undo,
    /// A node on the path changed, dropped or created a packet.
    Packet {
        /// The effect on the packet.
        fate: Fate,
        /// The packet after the change; as it was, if it was dropped.
        packet: Packet,
    },
}

/// The effect of a node on the path on a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// The packet was dropped.
    Dropped {
        /// The cause in a word or two, such as `queue full` or `random loss`.
        cause: &'static str,
    },
    /// Bits of the packet were flipped.
    Corrupted {
        /// The number of flipped bits.
        bits: u32,
        /// Whether some of them are in the IP or transport header.
        header: bool,
        /// Whether all checksums still hold, so that no receiver can detect the corruption.
        unnoticed: bool,
    },
    /// The packet was marked: with CE (RFC 3168) by a queue, or with the TCP-ECN bit because of a
    /// hole before it.
    Marked {
        /// The cause in a word or two, such as `codel` or `hole`.
        cause: &'static str,
    },
    /// The packet was duplicated.
    Duplicated,
    /// The link layer passed the packet to the MAC again.
    Retried {
        /// The number of the pass.
        pass: u32,
    },
    /// The packet is held because its destination is out of reach, or it is delayed.
    Held,
    /// The window in the packet was set to zero, so that its receiver stops sending.
    Frozen,
    /// The node created the packet on behalf of an endpoint.
    Made {
        /// The purpose in a word or two, such as `window closed`.
        cause: &'static str,
    },
}

/// Formats the fate as in the packet comments of a capture, such as `dropped: queue full`.
impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped { cause } => write!(f, "dropped: {cause}"),
            Self::Corrupted { bits, header, unnoticed } => {
                let s = if *bits == 1 { "" } else { "s" };
                let place = if *header { "header" } else { "payload" };
                write!(f, "corrupted: {bits} bit{s} flipped, {place} hit")?;
                if *unnoticed { f.write_str(", no checksum notices") } else { Ok(()) }
            }
            Self::Marked { cause } => write!(f, "marked: {cause}"),
            Self::Duplicated => f.write_str("duplicated"),
            Self::Retried { pass } => write!(f, "retried: pass {pass}"),
            Self::Held => f.write_str("held"),
            Self::Frozen => f.write_str("frozen: window closed"),
            Self::Made { cause } => write!(f, "made: {cause}"),
        }
    }
}
