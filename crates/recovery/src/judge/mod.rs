//! Judges: they classify losses, for example as congestion or as random.
//!
//! Without a judge every loss is congestion: repaired and answered by a reduction, both at once.
//! Judges are asked in the registry's rank order, and the first with an opinion wins: one that
//! knows a cause speaks before one that only waits.

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
    /// A queue was full.
    Congestion,
    /// The link damaged the segment.
    Corruption,
    /// Nothing was lost; it is late.
    Reordering,
    /// The retransmission timer ran out.
    Timeout,
    /// The path takes no segment of that size.
    TooBig,
    /// Nothing was lost; a queue marked it (RFC 3168).
    Mark,
    /// The link lost the segment, and no queue was full.
    Random,
}

impl Cause {
    /// The cause's name, as in traces.
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

    /// Whether a loss of this cause is a sign of congestion and counts in
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
    /// After so long, and a millisecond at least, if the data is still missing then: it is judged
    /// again.
    After(Duration),
    /// Not for this finding.
    Never,
}

/// The response to a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ruling {
    /// When to send the data again.
    pub repair: When,
    /// When to reduce the congestion window.
    pub reduce: When,
    /// What the loss is taken to come from.
    pub cause: Cause,
}

impl Ruling {
    /// The default: congestion, repaired and answered at once.
    pub const CONGESTION: Self =
        Self { repair: When::Now, reduce: When::Now, cause: Cause::Congestion };
}

/// Findings and requests that a judge adds on an ACK.
#[derive(Debug, Default)]
pub struct Raised {
    pub(crate) losses: Vec<(TxNo, Ruling)>,
    pub(crate) reduce: Option<Cause>,
    pub(crate) restart_rto: bool,
    pub(crate) judge_again: bool,
}

impl Raised {
    /// Reports a loss that the ACK itself signals, with its cause.
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

    /// Requests that deferred losses are judged again now.
    pub fn judge_again(&mut self) {
        self.judge_again = true;
    }
}

/// Decides the response to a loss. The order of work is documented at
/// [`LossDetection`](crate::LossDetection).
pub trait LossJudge: Debug + Send {
    /// Hears an ACK, before detection works it (step 4).
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Raised) {
        let _ = (ack, view, out);
    }

    /// Hears that a transmission of the segment at `seq` arrived with a good header and corrupted
    /// data (HACK 3.3).
    ///
    /// A special ACK acknowledges nothing, so that [`on_ack`](Self::on_ack) and the order of work
    /// do not apply to it.
    fn on_special_ack(&mut self, seq: ExtSeq, view: &View<'_>, out: &mut Raised) {
        let _ = (seq, view, out);
    }

    /// Rules on a suspect or a loss (steps 7 and 9); `None` leaves it to the next judge.
    ///
    /// `lost` is the transmission that was found. If a tail loss probe has repaired it, it is no
    /// longer on the board. `again` says that the time of an earlier [`When::After`] has come and
    /// the data is still missing.
    fn rule(
        &mut self,
        finding: &Finding,
        lost: &Transmission,
        view: &View<'_>,
        again: bool,
    ) -> Option<Ruling>;

    /// Whether the peer reported the loss that `repair` repairs to this judge alone, by a special
    /// ACK. At SND.UNA such a repair restarts the retransmission timer.
    fn was_reported(&self, repair: &Transmission) -> bool {
        let _ = repair;
        false
    }

    /// How many RTTVAR the retransmission time-out is to be above SRTT, in place of RFC 6298's
    /// four.
    ///
    /// The parameter of a judge sets it (`rr:K`), so that no registry entry can state it.
    fn rto_variances(&self) -> Option<u32> {
        None
    }

    /// The share of transmissions that the link loses at random, from 0 to 1, by the losses that
    /// this judge ruled [`Cause::Random`]; zero if it does not measure one.
    fn random_share(&self) -> f64 {
        0.0
    }

    /// Whether it asks for less in flight for a while, to measure the share of random losses. A
    /// control that measures the smallest round-trip time in this way may do so sooner.
    fn wants_low_load(&self) -> bool {
        false
    }

    /// Starts with what the judge of another connection to the same peer has counted.
    fn inherit(&mut self, known: &RandomLosses) {
        let _ = known;
    }

    /// What it has counted of random losses, for [`inherit`](Self::inherit) of the next connection
    /// to the same peer. `None` if it has counted nothing itself; [`RandomLosses::NONE`] if what it
    /// knew has proved wrong.
    fn learned(&self) -> Option<RandomLosses> {
        None
    }

    /// The retransmission timer ran out: what was waited for is overtaken.
    fn on_timeout(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// Gives memory back: nothing has been sent or received for long.
    fn shrink(&mut self) {}
}
