//! Congestion control: how much may be in flight, and how fast it may leave.

mod cubic;
mod fixed;
mod hystart;
mod reno;
mod vegas;
mod veno;
mod westwood;

use std::fmt::Debug;
use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use crate::judge::Cause;
use crate::view::AckView;

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

/// What every control is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlParams {
    /// The sender's maximum segment size: payload bytes of a full segment.
    pub smss: ByteCount,
    /// The window to begin with.
    pub initial_window: ByteCount,
    /// L of RFC 3465: how many segments one ACK may count for in slow start.
    pub byte_counting_limit: u32,
    /// Whether the first slow start ends when round trips grow (HyStart++, RFC 9406).
    pub hystart: bool,
}

/// Something the sender tells its control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// So many bytes were judged lost. The reduction, if there is one, is a notice of its own.
    Lost {
        /// The bytes.
        bytes: ByteCount,
        /// What the loss is taken to mean.
        cause: Cause,
    },
    /// The window is to be reduced: once per episode.
    Reduce {
        /// FlightSize before (RFC 5681 section 2). It can exceed cwnd by what limited transmit and a
        /// judge's patience let out, which is not to be counted.
        flight_size: ByteCount,
        /// Why.
        cause: Cause,
    },
    /// The retransmission timer ran out.
    Timeout {
        /// FlightSize before.
        flight_size: ByteCount,
        /// Whether it is the first for this data: later ones leave ssthresh alone (RFC 5681
        /// section 3.1).
        first: bool,
    },
    /// The episode is over.
    EpisodeOver,
    /// Nothing was outstanding for a while, and new data is about to leave.
    Idle {
        /// For how long.
        time: Duration,
        /// Whether cwnd is to fall to the restart window, min(IW, cwnd) (RFC 5681 section 4.1).
        restart: bool,
    },
    /// For five minutes less than half of the window was in use: it is to be half of what it is, the initial window at
    /// least (RFC 7661 section 4.4.3).
    Unused,
    /// The last reduction was spurious: take it back.
    Undo,
    /// A full segment has so many bytes from now on. The windows stay as they are in bytes, but for their
    /// floors.
    SegmentSize(ByteCount),
    /// It takes the place of another control in the midst of a connection, and goes on from these.
    TakeOver {
        /// The window.
        cwnd: ByteCount,
        /// The slow-start threshold, if it is set.
        ssthresh: Option<ByteCount>,
    },
}

/// What a control would tell of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlState {
    /// The slow-start threshold; `None` while it is not set.
    pub ssthresh: Option<ByteCount>,
    /// What it is doing, in one word.
    pub mode: &'static str,
}

/// Decides how much may be in flight.
///
/// Windows are bytes; cwnd is never under one SMSS, ssthresh never under two. The order in which
/// one ACK is worked is written at [`LossDetection`](crate::LossDetection): notices come before
/// [`on_ack`](Self::on_ack).
pub trait CongestionControl: Debug + Send {
    /// Hears an ACK (step 7). `pipe` is what is in the network after it and after its losses.
    fn on_ack(&mut self, ack: &AckView<'_>, pipe: ByteCount);

    /// Hears a notice (step 6).
    fn on_notice(&mut self, now: Instant, pipe: ByteCount, notice: &Notice);

    /// The congestion window.
    fn window(&self) -> ByteCount;

    /// Whether it is in slow start.
    fn in_slow_start(&self) -> bool {
        self.state().ssthresh.is_none_or(|ssthresh| self.window() < ssthresh)
    }

    /// The rate at which data may leave; `None` for as fast as ACKs come.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// What it would tell of itself.
    fn state(&self) -> ControlState;
}
