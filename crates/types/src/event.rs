//! Events, in one vocabulary for every observer.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

use crate::{ByteCount, ExtSeq, Instant, Packet, Rate, SeqRange, TxNo};

/// The two ends of a flow, as the node that reports sees them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowId {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// In two steps for IPv4: every packet's flow is looked up.
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

/// Something that happened at a node.
///
/// Nodes make events only when an observer asked for them; off, they cost one test of a flag.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// To which flow; `None` where the node looks at packets and knows no flows, as a link.
    pub flow: Option<FlowId>,
    /// What.
    pub kind: EventKind,
}

/// Why the sender let a transmission leave.
///
/// Every transmission names one. The last column of the engine's sending step is this list: what is
/// not here is not sent.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum SendRule {
    /// Data never sent before, within the windows (RFC 5681 section 3).
    NewData,
    /// The first repair of a recovery, sent whatever the pipe holds (RFC 5681 section 3.2 step 3,
    /// RFC 6675 section 5 step 4.3).
    FastRetransmit,
    /// Data judged lost, within the windows.
    Repair,
    /// Data below SACKed data, not judged lost, because nothing else may be sent (RFC 6675 NextSeg
    /// rule 3).
    Unsacked,
    /// The highest data outstanding, once per recovery, because nothing else may be sent (RFC 6675
    /// NextSeg rule 4).
    Rescue,
    /// New data on the first two duplicate ACKs, up to two segments above cwnd (RFC 3042).
    LimitedTransmit,
    /// New data whatever the congestion window says, because no ACK has come for two round trips
    /// (RFC 8985 section 7.3).
    Probe,
    /// The highest data outstanding again, for the same reason: there is nothing new to send.
    ProbeAgain,
    /// The oldest data again, after a retransmission time-out (RFC 6298 section 5).
    Timeout,
}

impl SendRule {
    /// Whether it sends data that was sent before.
    pub const fn is_retransmission(self) -> bool {
        !matches!(self, Self::NewData | Self::LimitedTransmit | Self::Probe)
    }

    /// The rule's short name, as in traces.
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

    /// Whether it sends whatever the congestion window says.
    pub const fn exceeds_cwnd(self) -> bool {
        matches!(self, Self::FastRetransmit | Self::Probe | Self::ProbeAgain | Self::Timeout)
    }
}

/// What happened. Names are the field's own.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The connection went from one RFC 9293 state to another.
    State {
        /// The state it left, as RFC 9293 names it.
        from: &'static str,
        /// The state it is in.
        to: &'static str,
    },
    /// A transmission left.
    Sent {
        /// Its number.
        tx: TxNo,
        /// Its bytes.
        range: SeqRange,
        /// Why it left.
        rule: SendRule,
        /// Bytes held to be in the network before it.
        pipe: ByteCount,
        /// The congestion window before it.
        cwnd: ByteCount,
        /// The peer's window: what it takes beyond SND.UNA.
        rwnd: ByteCount,
    },
    /// A segment arrived and was accepted, or several that came together and were worked as one.
    Received {
        /// Its bytes; empty for a pure ACK.
        range: SeqRange,
        /// What it acknowledges.
        ack: ExtSeq,
        /// The window it offers.
        window: ByteCount,
    },
    /// The segment of the last [`Received`](Self::Received) is the first to acknowledge these
    /// transmissions.
    Acknowledged {
        /// The number of the first.
        first: TxNo,
        /// The number of the last; those between are acknowledged, too.
        last: TxNo,
    },
    /// A transmission was found lost.
    Lost {
        /// Its number.
        tx: TxNo,
        /// Its bytes.
        range: SeqRange,
        /// What the loss is taken to mean.
        cause: &'static str,
    },
    /// The congestion window is reduced: a recovery begins. A time-out is none.
    Reduced {
        /// What the loss behind it is taken to mean, or that it was a mark.
        cause: &'static str,
    },
    /// The congestion window, the slow-start threshold, the pipe or a rate changed.
    Window {
        /// The congestion window.
        cwnd: ByteCount,
        /// The slow-start threshold; `None` while it is not set.
        ssthresh: Option<ByteCount>,
        /// Bytes held to be in the network.
        pipe: ByteCount,
        /// The rate at which data leaves, if it is paced.
        pacing_rate: Option<Rate>,
        /// The control's estimate of the bandwidth, if it has one.
        bandwidth: Option<Rate>,
    },
    /// A round-trip time was measured.
    Rtt {
        /// The sample.
        sample: Duration,
        /// The smoothed value after it.
        srtt: Duration,
        /// The smallest sample so far, inherited ones included.
        min: Duration,
    },
    /// The retransmission timer ran out.
    Timeout {
        /// How often in a row.
        backoff: u32,
    },
    /// A reduction was found to be spurious and taken back.
    Undo,
    /// Something was done to a packet on its way.
    Packet {
        /// What.
        fate: Fate,
        /// The packet as it is after that; as it was, if it is no more.
        packet: Packet,
    },
}

/// What a node on the way did to a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// It is no more.
    Dropped {
        /// Why, in a word or two: `queue full`, `random loss`.
        cause: &'static str,
    },
    /// Bits of it were flipped.
    Corrupted {
        /// How many.
        bits: u32,
        /// Whether some of them are in the IP or the transport header.
        header: bool,
        /// Whether every checksum of it still holds, so that no receiver can notice.
        unnoticed: bool,
    },
    /// It was given a mark: CE (RFC 3168) by a queue, the bit of TCP-ECN because of a hole before
    /// it.
    Marked {
        /// By what, in a word or two: `codel`, `hole`.
        cause: &'static str,
    },
    /// A second one was made of it.
    Duplicated,
    /// The link layer passed it to the MAC once more.
    Retried {
        /// How often it has now.
        pass: u32,
    },
    /// It waits, because whom it is for cannot be reached.
    Held,
    /// Its window was closed, so that its receiver stops sending.
    Frozen,
    /// A node on the way made it, in the name of an end.
    Made {
        /// What for, in a word or two: `window closed`.
        cause: &'static str,
    },
}

/// As a comment in a capture says it: `dropped: queue full`.
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
