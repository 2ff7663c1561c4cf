//! Congestion control: decides how much data may be in flight, and the pacing rate.

mod bbr;
mod bbr3;
mod cubic;
mod fixed;
mod hystart;
mod reno;
mod vegas;
mod veno;
mod westwood;

use std::fmt::Debug;
use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, Rate};

use crate::judge::Cause;
use crate::view::AckView;

pub(crate) use bbr::BBR;
pub use bbr::Bbr;
pub(crate) use bbr3::BBR3;
pub use bbr3::Bbr3;
pub(crate) use cubic::CUBIC;
pub use cubic::Cubic;
pub(crate) use fixed::FIXED;
pub use fixed::Fixed;
pub(crate) use reno::RENO;
pub use reno::Reno;
pub(crate) use vegas::VEGAS;
pub use vegas::Vegas;
pub(crate) use veno::VENO;
pub use veno::Veno;
pub use westwood::Westwood;
pub(crate) use westwood::{WESTWOOD, WESTWOOD_PLUS};

/// Parameters for the construction of a strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ControlParams {
    /// The time of construction: the end of the handshake, or the time of the replacement.
    pub now: Instant,
    /// The sender's maximum segment size: payload bytes of a full segment.
    pub smss: ByteCount,
    /// The initial window (RFC 6928).
    pub initial_window: ByteCount,
    /// L of RFC 3465: the most segments by which one ACK increases cwnd in slow start.
    pub byte_counting_limit: u32,
    /// Whether the first slow start also ends when the RTT grows (HyStart++, RFC 9406).
    pub hystart: bool,
    /// Whether a reduced window is rounded down to whole segments.
    pub whole_segments: bool,
    /// Whether the peer sends SACK blocks (RFC 2018).
    pub sack: bool,
    /// The RTT: that of the handshake, or the smoothed RTT if the strategy replaces another on a
    /// live connection. `None` if none was measured.
    pub rtt: Option<Duration>,
    /// This connection's share of the rate that the path has recently carried for connections to
    /// the same peer.
    pub rate: Option<Rate>,
    /// The seed for random choices of a strategy, any number: the same seed makes the same choices.
    pub seed: u64,
}

impl ControlParams {
    /// Parameters with SACK, `byte_counting_limit` 2, no HyStart++, no RTT, no rate and seed 0.
    pub const fn new(smss: ByteCount, initial_window: ByteCount) -> Self {
        Self {
            now: Instant::ZERO,
            smss,
            initial_window,
            byte_counting_limit: 2,
            hystart: false,
            whole_segments: false,
            sack: true,
            rtt: None,
            rate: None,
            seed: 0,
        }
    }
}

/// An event at the sender other than an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// When it happened.
    pub now: Instant,
    /// Bytes in flight after the event.
    pub pipe: ByteCount,
    /// Bytes delivered since the connection started (C.delivered of draft-ietf-ccwg-bbr).
    pub delivered: ByteCount,
    /// The event.
    pub kind: NoticeKind,
}

impl Notice {
    /// Returns a notice of `kind` at `now`, with `pipe` bytes in flight and none delivered yet.
    pub const fn new(now: Instant, pipe: ByteCount, kind: NoticeKind) -> Self {
        Self { now, pipe, delivered: ByteCount::ZERO, kind }
    }
}

/// The kind of a [`Notice`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoticeKind {
    /// A transmission, or several that were sent together, was lost. If the loss reduces the
    /// window, a separate [`NoticeKind::Reduce`] follows.
    Lost(Loss),
    /// Reduce the window. It comes once per recovery, and starts fast recovery unless `cause` is
    /// [`Cause::Mark`].
    Reduce {
        /// FlightSize before the reduction (RFC 5681 section 2). It can exceed cwnd by the segments
        /// sent by limited transmit and while judges defer a response; those do not count.
        flight_size: ByteCount,
        /// The cause.
        cause: Cause,
    },
    /// The retransmission timer expired.
    Timeout {
        /// FlightSize before the time-out.
        flight_size: ByteCount,
        /// Whether this is the first time-out for the data: later ones do not change ssthresh (RFC
        /// 5681 section 3.1).
        first: bool,
    },
    /// The recovery has ended.
    RecoveryOver,
    /// Nothing was outstanding for a while, and new data is about to be sent. The sender reads the
    /// pacing rate again before it sends.
    Idle {
        /// How long nothing was outstanding.
        time: Duration,
        /// Whether to reduce cwnd to the restart window, min(IW, cwnd) (RFC 5681 section 4.1).
        restart: bool,
        /// Whether the application limited the rate before.
        app_limited: bool,
    },
    /// Less than half of the window was used for five minutes: halve it, but not below the initial
    /// window (RFC 7661 section 4.4.3).
    Unused,
    /// The last reduction was spurious: restore the window and ssthresh.
    Undo {
        /// Whether the reduction was that of a time-out during a recovery. That recovery then
        /// continues until [`NoticeKind::RecoveryOver`].
        resumes: bool,
    },
    /// The size of a full segment is now this many bytes. The windows keep their size in bytes,
    /// except for their minimums.
    SegmentSize(ByteCount),
    /// This control replaces another on a live connection, and continues from these values.
    TakeOver {
        /// The window.
        cwnd: ByteCount,
        /// The slow-start threshold, if it is set.
        ssthresh: Option<ByteCount>,
    },
}

/// A lost transmission, and the state of the connection when the transmission was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The sequence number of its first byte.
    pub start: ExtSeq,
    /// The number of bytes.
    pub bytes: ByteCount,
    /// The cause that the judges or the sender assign to the loss.
    pub cause: Cause,
    /// When it was sent.
    pub sent_at: Instant,
    /// Bytes in flight just after it was sent, including its own (P.tx_in_flight of
    /// draft-ietf-ccwg-bbr).
    pub tx_in_flight: ByteCount,
    /// Bytes delivered before it was sent (P.delivered).
    pub prior_delivered: ByteCount,
    /// Bytes lost to congestion since it was sent (C.lost - P.lost). Its own bytes are included if
    /// its cause is congestion: see [`Cause::is_congestion`].
    pub lost_since_sent: ByteCount,
    /// Whether the application limited the rate when it was sent (P.is_app_limited).
    pub app_limited: bool,
}

/// The state of a control, for traces and `ss`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlState {
    /// The slow-start threshold; `None` while it is not set.
    pub ssthresh: Option<ByteCount>,
    /// The mode, in one word.
    pub mode: &'static str,
}

/// A control's model of the network path, as `ss -ti` prints it for BBR. The names are those of
/// draft-ietf-ccwg-bbr.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct PathModel {
    /// The state of the control's state machine.
    pub state: &'static str,
    /// The bandwidth that the control uses: the smaller of `max_bw` and `bw_shortterm`.
    pub bw: Rate,
    /// The smallest recent RTT; `None` before the first sample.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub min_rtt: Option<Duration>,
    /// The pacing rate divided by `bw`, a ratio.
    pub pacing_gain: f64,
    /// The window divided by the product of `bw` and `min_rtt`, a ratio.
    pub cwnd_gain: f64,
    /// The largest recent delivery rate.
    pub max_bw: Rate,
    /// The upper bound of `bw` until the next probe; `None` while it is not set.
    pub bw_shortterm: Option<Rate>,
    /// The most bytes in flight without too much loss; `None` while it is not set.
    pub inflight_longterm: Option<ByteCount>,
    /// The upper bound of the bytes in flight until the next probe; `None` while it is not set.
    pub inflight_shortterm: Option<ByteCount>,
    /// The bytes acknowledged at once in excess of what `bw` explains.
    pub extra_acked: ByteCount,
    /// Whether the path was ever fully used.
    pub full_bw_reached: bool,
    /// The number of round trips so far.
    pub round_count: u64,
}

/// Decides how much data may be in flight, and the pacing rate.
///
/// Windows are in bytes; cwnd is at least one SMSS, ssthresh at least two. The order of processing
/// an ACK is documented at [`LossDetection`](crate::LossDetection): notices precede
/// [`on_ack`](Self::on_ack).
///
/// The registry entry declares which tasks the control takes over from the sender, such as the
/// response in fast recovery: [`Entry::takes_over`](crate::Entry::takes_over).
pub trait CongestionControl: Debug + Send {
    /// Processes an ACK.
    fn on_ack(&mut self, ack: &AckView<'_>);

    /// Processes any other event.
    fn on_notice(&mut self, notice: &Notice);

    /// Returns the congestion window, at least one SMSS.
    fn window(&self) -> ByteCount;

    /// Returns whether the control is in slow start. The default compares [`window`](Self::window)
    /// with the ssthresh of [`state`](Self::state); therefore `state` must not call this method.
    fn in_slow_start(&self) -> bool {
        self.state().ssthresh.is_none_or(|ssthresh| self.window() < ssthresh)
    }

    /// Returns the pacing rate; `None` if the control has none. The sender reads it before the
    /// first segment and after each ACK, time-out and [`NoticeKind::Idle`].
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Returns the most bytes that may leave at once under pacing (C.send_quantum of
    /// draft-ietf-ccwg-bbr). `None` means one millisecond at the pacing rate, at least two segments
    /// and at most 64 KiB. The pacer enlarges quanta of 64 KiB or more to at least 100 µs at the
    /// pacing rate, that is, above 5 Gbit/s.
    fn send_quantum(&self) -> Option<ByteCount> {
        None
    }

    /// Returns the state for traces and `ss`.
    fn state(&self) -> ControlState;

    /// Returns the control's model of the path; `None` if it has none.
    fn path_model(&self) -> Option<PathModel> {
        None
    }

    /// Returns the control's bandwidth estimate; `None` before the first, or if it makes none. The
    /// default is the bandwidth of [`path_model`](Self::path_model).
    fn bandwidth(&self) -> Option<Rate> {
        self.path_model().map(|model| model.bw).filter(|&bw| bw > Rate::ZERO)
    }
}
