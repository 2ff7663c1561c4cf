//! Loss judges: decide what a loss means, for example congestion or a random loss.
//!
//! Without a judge every loss is congestion: the segment is retransmitted and the window reduced,
//! both at once. Judges are asked in the order of the registry, and the first ruling applies.
//! Judges that know a cause precede judges that only defer the response.

mod dcr;
mod hack;
mod rr;
mod spike;

use std::fmt::Debug;
use std::time::Duration;

use airtcp_types::{ExtSeq, TxNo};

use crate::detection::Finding;
use crate::learned::RandomLosses;
use crate::transmission::Transmission;
use crate::view::{AckView, View};

pub use dcr::Dcr;
pub(crate) use dcr::{DCR_COUNT, DCR_TIMER};
pub(crate) use hack::HACK;
pub use hack::Hack;
pub(crate) use rr::RR;
pub use rr::Rr;
pub(crate) use spike::SPIKE;
pub use spike::Spike;

/// The cause of a loss or of a reduction of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A queue overflowed.
    Congestion,
    /// The link corrupted the segment.
    Corruption,
    /// The segment is not lost; it arrives late.
    Reordering,
    /// The retransmission timer expired.
    Timeout,
    /// The segment is too large for the path.
    TooBig,
    /// The segment is not lost; a queue marked it (RFC 3168).
    Mark,
    /// The link lost the segment, and no queue overflowed.
    Random,
}

impl Cause {
    /// Returns the cause's name, as in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Corruption => "corruption",
            Self::Reordering => "reordering",
            Self::Timeout => "timeout",
            Self::TooBig => "too-big",
            Self::Mark => "mark",
            Self::Random => "random",
        }
    }

    /// Returns whether a loss of this cause is a sign of congestion and counts in
    /// [`RateSample::lost`](crate::RateSample::lost) and
    /// [`Loss::lost_since_sent`](crate::control::Loss::lost_since_sent).
    pub const fn is_congestion(self) -> bool {
        matches!(self, Self::Congestion | Self::Timeout | Self::Mark)
    }
}

/// The time of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Now.
    Now,
    /// After this time, but at least a millisecond. If the data is still missing then, the judges
    /// rule again.
    After(Duration),
    /// Never for this finding.
    Never,
}

/// The response to a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ruling {
    /// When to retransmit the data.
    pub repair: When,
    /// When to reduce the congestion window.
    pub reduce: When,
    /// The cause of the loss, for the control and for traces.
    pub cause: Cause,
}

impl Ruling {
    /// The default ruling: congestion; retransmit and reduce the window at once.
    pub const CONGESTION: Self =
        Self { repair: When::Now, reduce: When::Now, cause: Cause::Congestion };
}

/// Losses and requests that a judge adds on an ACK.
#[derive(Debug, Default)]
pub struct Raised {
    pub(crate) losses: Vec<(TxNo, Ruling)>,
    pub(crate) reduce: Option<Cause>,
    pub(crate) restart_rto: bool,
    pub(crate) judge_again: bool,
}

impl Raised {
    /// Reports a loss that the ACK itself signals, and the ruling on it.
    pub fn loss(&mut self, tx: TxNo, ruling: Ruling) {
        self.losses.push((tx, ruling));
    }

    /// Requests a reduction of the window without a loss.
    pub fn reduce(&mut self, cause: Cause) {
        self.reduce = Some(cause);
    }

    /// Requests a restart of the retransmission timer.
    pub fn restart_rto(&mut self) {
        self.restart_rto = true;
    }

    /// Requests that the judges rule on deferred losses again now.
    pub fn judge_again(&mut self) {
        self.judge_again = true;
    }
}

/// Decides the response to a loss.
///
/// The order of processing an ACK is documented at [`LossDetection`](crate::LossDetection).
pub trait LossJudge: Debug + Send {
    /// Handles an ACK, before detection (step 4).
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Raised) {
        let _ = (ack, view, out);
    }

    /// Handles a special ACK: a transmission of the segment at `seq` arrived with an intact header
    /// and corrupted data (HACK 3.3).
    ///
    /// A special ACK acknowledges nothing, so [`on_ack`](Self::on_ack) and the order of processing
    /// an ACK do not apply to it.
    fn on_special_ack(&mut self, seq: ExtSeq, view: &View<'_>, out: &mut Raised) {
        let _ = (seq, view, out);
    }

    /// Rules on a suspect or a loss (steps 7 and 9); `None` leaves the decision to the next judge.
    ///
    /// `lost` is the transmission in question. It is no longer on the board if a tail loss probe
    /// has repaired it. `again` is true if the time of an earlier [`When::After`] has passed and
    /// the data is still missing. The method can be called several times for one transmission.
    fn rule(
        &mut self,
        finding: &Finding,
        lost: &Transmission,
        view: &View<'_>,
        again: bool,
    ) -> Option<Ruling>;

    /// Returns whether a special ACK reported to this judge the loss that `repair` repairs. If so,
    /// and if the segment is at SND.UNA, its retransmission restarts the retransmission timer.
    fn was_reported(&self, repair: &Transmission) -> bool {
        let _ = repair;
        false
    }

    /// Returns the multiple of RTTVAR that the retransmission time-out adds to SRTT, instead of the
    /// four of RFC 6298; `None` for the default.
    ///
    /// A method rather than a field of the registry entry: the parameter of a judge sets it
    /// (`rr:K`).
    fn rto_variances(&self) -> Option<u32> {
        None
    }

    /// Returns the share of transmissions that the link loses at random, from 0 to 1, based on the
    /// losses that this judge ruled [`Cause::Random`]; zero if the judge does not measure it.
    fn random_share(&self) -> f64 {
        0.0
    }

    /// Returns whether the judge asks for less data in flight for a while, so that it can measure
    /// the share of random losses. A control that drains the queue to measure the smallest RTT may
    /// then do so sooner.
    fn wants_low_load(&self) -> bool {
        false
    }

    /// Starts from the counts of a judge of another connection to the same peer.
    fn inherit(&mut self, known: &RandomLosses) {
        let _ = known;
    }

    /// Returns the counts of random losses, for [`inherit`](Self::inherit) of the next connection
    /// to the same peer. `None` if the judge has counted nothing itself; [`RandomLosses::NONE`] if
    /// the counts that it inherited proved wrong.
    fn learned(&self) -> Option<RandomLosses> {
        None
    }

    /// Handles the expiry of the retransmission timer, which overtakes all deferred responses.
    fn on_timeout(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// Frees memory; called when nothing has been sent or received for a long time.
    fn shrink(&mut self) {}
}
