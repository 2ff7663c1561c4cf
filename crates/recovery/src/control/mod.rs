//! Congestion control: how much may be in flight, and how fast it may leave.

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
    /// The time: the handshake is complete.
    pub now: Instant,
    /// The sender's maximum segment size: payload bytes of a full segment.
    pub smss: ByteCount,
    /// The initial window (RFC 6928).
    pub initial_window: ByteCount,
    /// L of RFC 3465: how many segments one ACK may count for in slow start.
    pub byte_counting_limit: u32,
    /// Whether the first slow start ends when round trips grow (HyStart++, RFC 9406).
    pub hystart: bool,
    /// Whether a reduced window is rounded down to whole segments.
    pub whole_segments: bool,
    /// Whether the peer sends SACK blocks (RFC 2018).
    pub sack: bool,
    /// The round-trip time so far: of the handshake, or the smoothed one where the strategy
    /// replaces another on a live connection. `None` if none was measured.
    pub rtt: Option<Duration>,
    /// The rate that the path has lately carried for this and other connections to the same peer,
    /// this one's share.
    pub rate: Option<Rate>,
    /// Seeds the random choices of a strategy: the same seed makes the same choices.
    pub seed: u64,
}

impl ControlParams {
    /// Parameters with `byte_counting_limit` 2, no HyStart++, SACK, nothing known of the path and
    /// seed 0.
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

/// An event at the sender that is not an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// When it happened.
    pub now: Instant,
    /// Bytes in flight after it.
    pub pipe: ByteCount,
    /// Bytes delivered since the connection began (C.delivered of draft-ietf-ccwg-bbr).
    pub delivered: ByteCount,
    /// What happened.
    pub kind: NoticeKind,
}

impl Notice {
    /// A notice of `kind` at `now`, with `pipe` bytes in flight and none delivered yet.
    pub const fn new(now: Instant, pipe: ByteCount, kind: NoticeKind) -> Self {
        Self { now, pipe, delivered: ByteCount::ZERO, kind }
    }
}

/// The kind of a [`Notice`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoticeKind {
    /// A transmission, or several that left together, was judged lost. A reduction, if there is
    /// one, is a notice of its own.
    Lost(Loss),
    /// Reduce the window: once per recovery. It is the start of fast recovery unless `cause` is
    /// [`Cause::Mark`].
    Reduce {
        /// FlightSize before (RFC 5681 section 2). It can exceed cwnd by segments that limited
        /// transmit and waiting judges let out, which do not count.
        flight_size: ByteCount,
        /// Why.
        cause: Cause,
    },
    /// The retransmission timer expired.
    Timeout {
        /// FlightSize before.
        flight_size: ByteCount,
        /// Whether it is the first for this data: later ones leave ssthresh alone (RFC 5681
        /// section 3.1).
        first: bool,
    },
    /// Recovery is over.
    RecoveryOver,
    /// Nothing was outstanding for a while, and new data is about to leave. The pacing rate is read
    /// again before it does.
    Idle {
        /// For how long.
        time: Duration,
        /// Whether cwnd is to fall to the restart window, min(IW, cwnd) (RFC 5681 section 4.1).
        restart: bool,
        /// Whether the application limited the rate before.
        app_limited: bool,
    },
    /// Less than half of the window was in use for five minutes: halve it, down to the initial
    /// window at least (RFC 7661 section 4.4.3).
    Unused,
    /// The last reduction was spurious: take it back.
    Undo {
        /// The reduction was for a time-out in a recovery, and that recovery goes on: it ends with
        /// [`NoticeKind::RecoveryOver`].
        resumes: bool,
    },
    /// A full segment has this many bytes from now on. The windows stay as they are in bytes, but
    /// for their floors.
    SegmentSize(ByteCount),
    /// This control replaces another on a live connection, and continues from these values.
    TakeOver {
        /// The window.
        cwnd: ByteCount,
        /// The slow-start threshold, if it is set.
        ssthresh: Option<ByteCount>,
    },
}

/// A lost transmission, and the state of the connection when it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// Where its bytes begin.
    pub start: ExtSeq,
    /// How many they are.
    pub bytes: ByteCount,
    /// What the loss is taken to mean.
    pub cause: Cause,
    /// When it left.
    pub sent_at: Instant,
    /// Bytes in flight just after it left, its own included (P.tx_in_flight of
    /// draft-ietf-ccwg-bbr).
    pub tx_in_flight: ByteCount,
    /// Bytes delivered before it left (P.delivered).
    pub prior_delivered: ByteCount,
    /// Bytes lost to congestion since it left (C.lost - P.lost), its own included if its cause is
    /// congestion: see [`Cause::is_congestion`].
    pub lost_since_sent: ByteCount,
    /// Whether the application limited the rate when it left (P.is_app_limited).
    pub app_limited: bool,
}

/// The state of a control, for traces and `ss`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlState {
    /// The slow-start threshold; `None` while it is not set.
    pub ssthresh: Option<ByteCount>,
    /// Its mode, in one word.
    pub mode: &'static str,
}

/// The model of the network path that a control goes by, as `ss -ti` prints it for BBR. The names
/// are those of draft-ietf-ccwg-bbr.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct PathModel {
    /// The state of its state machine.
    pub state: &'static str,
    /// The bandwidth that it sends by: the smaller of `max_bw` and `bw_shortterm`.
    pub bw: Rate,
    /// The smallest round-trip time of late; `None` before the first.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub min_rtt: Option<Duration>,
    /// The pacing rate over `bw`.
    pub pacing_gain: f64,
    /// The window over the product of `bw` and `min_rtt`.
    pub cwnd_gain: f64,
    /// The largest delivery rate of late.
    pub max_bw: Rate,
    /// The bound on `bw` until the next probe; `None` while it is not set.
    pub bw_shortterm: Option<Rate>,
    /// What may be in flight without too much loss (bytes); `None` while it is not set.
    pub inflight_longterm: Option<ByteCount>,
    /// The bound on what is in flight until the next probe; `None` while it is not set.
    pub inflight_shortterm: Option<ByteCount>,
    /// How much more is acknowledged at once than `bw` explains.
    pub extra_acked: ByteCount,
    /// Whether the path was ever full.
    pub full_bw_reached: bool,
    /// Round trips so far.
    pub round_count: u64,
}

/// Decides how much may be in flight.
///
/// Windows are bytes; cwnd is never under one SMSS, ssthresh never under two. The order in which
/// one ACK is worked is written at [`LossDetection`](crate::LossDetection): notices come before
/// [`on_ack`](Self::on_ack).
///
/// What a control takes over from the sender, such as its rate in recovery, its registry entry
/// says: [`Entry::takes_over`](crate::Entry::takes_over).
pub trait CongestionControl: Debug + Send {
    /// Works an ACK.
    fn on_ack(&mut self, ack: &AckView<'_>);

    /// Works any other event.
    fn on_notice(&mut self, notice: &Notice);

    /// The congestion window.
    fn window(&self) -> ByteCount;

    /// Whether it is in slow start. The default compares the window with the threshold of
    /// [`state`](Self::state), which must not call it in turn.
    fn in_slow_start(&self) -> bool {
        self.state().ssthresh.is_none_or(|ssthresh| self.window() < ssthresh)
    }

    /// The pacing rate; `None` if the control has none. The sender reads it before the first
    /// segment, after each ACK, timeout and [`NoticeKind::Idle`].
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// The most bytes that may leave at once when paced (C.send_quantum of draft-ietf-ccwg-bbr);
    /// `None` for a millisecond at the pacing rate, two segments at least and 64 KiB at most. The
    /// pacer makes quanta of 64 KiB and more last 100 µs at least: they grow above 5 Gbit/s.
    fn send_quantum(&self) -> Option<ByteCount> {
        None
    }

    /// The state that it shows.
    fn state(&self) -> ControlState;

    /// Its model of the path; `None` if it has none.
    fn path_model(&self) -> Option<PathModel> {
        None
    }

    /// Its estimate of the bandwidth; `None` before the first, and if it makes none. The default is
    /// that of [`path_model`](Self::path_model).
    fn bandwidth(&self) -> Option<Rate> {
        self.path_model().map(|model| model.bw).filter(|&bw| bw > Rate::ZERO)
    }
}
