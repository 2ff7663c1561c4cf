//! Loss detection: decides which transmissions are lost.
//!
//! A detection reads the [`Board`] and the ACK, and reports its findings. It does not change the
//! board and keeps no copy of the board's data. The judges decide what a loss means, and the
//! control decides how much data may be in flight.

mod fack;
mod le;
mod newreno;
mod rack;
mod reno;
mod sack;
mod sack1;
mod sweep;

use std::fmt::Debug;
use std::time::Duration;

use airtcp_types::{ByteCount, Instant, SendRule, TxNo};

use crate::board::Board;
use crate::run::Run;
use crate::transmission::Transmission;
use crate::view::{AckView, View};

pub(crate) use fack::FACK;
pub use fack::Fack;
pub use le::Le;
pub(crate) use le::{LE, LE_ECHO};
pub(crate) use newreno::NEWRENO;
pub use newreno::NewReno;
pub(crate) use rack::RACK;
pub use rack::Rack;
pub(crate) use reno::RENO;
pub use reno::Reno;
pub(crate) use sack::SACK;
pub use sack::Sack;
pub use sack1::SACK1;
pub(crate) use sweep::earlier_arrived;

/// A transmission that a detection reports as suspect or lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The transmission.
    pub tx: TxNo,
    /// Whether it is suspect or lost.
    pub certainty: Certainty,
    /// Whether it is retransmitted at once, even if the windows do not permit it.
    pub immediate: bool,
}

/// The certainty of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// The first sign of a loss: a segment sent later was delivered earlier.
    Suspect,
    /// Lost: the detection's threshold is reached.
    Lost,
}

/// The list to which a detection adds its findings.
#[derive(Debug, Default)]
pub struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    /// Reports the first sign that `tx` may be lost.
    pub fn suspect(&mut self, tx: TxNo) {
        self.0.push(Finding { tx, certainty: Certainty::Suspect, immediate: false });
    }

    /// Reports that `tx` is lost; it is retransmitted when the windows permit.
    pub fn lost(&mut self, tx: TxNo) {
        self.0.push(Finding { tx, certainty: Certainty::Lost, immediate: false });
    }

    /// Reports that `tx` is lost; it is retransmitted at once.
    pub fn lost_immediate(&mut self, tx: TxNo) {
        self.0.push(Finding { tx, certainty: Certainty::Lost, immediate: true });
    }

    /// Returns the findings so far.
    pub fn as_slice(&self) -> &[Finding] {
        &self.0
    }
}

/// When a recovery ends. The window is reduced at most once per recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryEnd {
    /// When everything sent before the recovery is acknowledged; the window does not grow until
    /// then.
    RecoveryPoint,
    /// As [`RecoveryEnd::RecoveryPoint`], but the window grows again from the first ACK that
    /// advances SND.UNA (RFC 5681 section 3.2 step 6).
    FirstAdvance,
    /// After this time; the window grows in the meantime.
    After(Duration),
}

/// A segment to retransmit, and the rule that selects it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair {
    /// The latest transmission of the bytes to retransmit.
    pub tx: TxNo,
    /// [`SendRule::Repair`], [`SendRule::Unsacked`] or [`SendRule::Rescue`].
    pub rule: SendRule,
}

/// Decides which transmissions are lost and which segment to retransmit next.
///
/// # Order of processing an ACK
///
/// The order is the same for every combination of strategies. Only an ACK without information for
/// the sender that arrives while nothing is outstanding is ignored.
///
/// 1. **Board**: mark the data that the ACK covers as delivered. All later steps see the same
///    board.
/// 2. **RTT, rate and round**: they read the board, to distinguish first transmissions from
///    retransmissions (Karn) and to know what was in flight at which time.
/// 3. **Undo**: if the ACK shows that the last reduction or time-out was spurious, revert it. Later
///    steps see the restored windows, and a real loss reduces those.
/// 4. **Judges see the ACK**, before detection, because the ACK may carry the cause of the losses
///    that detection finds. The losses and requests that judges raise themselves are applied.
/// 5. **Congestion marks**: the echo of a mark reduces the window (RFC 3168), unless the control
///    responds to marks itself. A loss found by the same ACK does not reduce the window again.
/// 6. **Detection**: [`LossDetection::on_ack`] reports suspects and losses.
/// 7. **Judges rule** on each finding: when to retransmit, when to reduce the window, and the
///    cause.
/// 8. **Notices** to the control, one finding after the other: the loss, then the reduction. The
///    control therefore reduces the window in which the losses happened, before this ACK grows it.
///    A recovery whose time is over ends before the loss.
/// 9. **Probe verdict**: an ACK that ends a tail loss probe may show that the probe repaired a
///    loss. The judges rule on that loss; without a ruling it reduces the window (RFC 8985 section
///    7.4.2).
/// 10. **End of the recovery**, if the ACK reaches it. This step follows detection, so that losses
///     of the old window do not start a new recovery.
/// 11. **The control sees the ACK** and may grow the window.
/// 12. **Window validation** (RFC 7661) of the resulting window.
/// 13. **PRR** computes how much this ACK allows to be sent (RFC 9937), from the pipe after all
///     losses and from the window that the control has set.
/// 14. **Timers and pacing**: deferred rulings, the retransmission timer, the probe timer and the
///     pacing rate.
/// 15. **Transmission**, based on all of the above.
pub trait LossDetection: Debug + Send {
    /// Processes an ACK (step 6). `view.board` is the board after the ACK was applied to it.
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings);

    /// Handles the expiry of the deadline that [`next_timer`](Self::next_timer) returned.
    fn on_timer(&mut self, view: &View<'_>, out: &mut Findings) {
        let _ = (view, out);
    }

    /// Returns the next deadline of the detection.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// Handles a transmission that was sent.
    fn on_sent(&mut self, sent: &Transmission) {
        let _ = sent;
    }

    /// Handles several segments that were sent together. The default calls
    /// [`on_sent`](Self::on_sent) for each; the sender does not call it for them.
    fn on_sent_together(&mut self, sent: &Run) {
        sent.transmissions().for_each(|sent| self.on_sent(&sent));
    }

    /// Handles the expiry of the retransmission timer; everything in flight has been marked lost.
    fn on_timeout(&mut self, view: &View<'_>);

    /// Handles an undo: the last reduction or time-out was spurious. Transmissions that were marked
    /// lost and not yet retransmitted are in flight again, and the detection is in no recovery. If
    /// the time-out interrupted a recovery, the sender resumes that recovery, without another
    /// reduction. A detection that replaces another on a live connection also starts with this
    /// call.
    fn on_undo(&mut self, view: &View<'_>);

    /// Returns whether `sent` stays in flight when the retransmission timer expires, because it was
    /// sent too recently (RFC 8985 section 6.3).
    ///
    /// A method rather than a field of the registry entry: the answer depends on the detection's
    /// reordering window.
    fn survives_timeout(&self, now: Instant, sent: &Transmission) -> bool {
        let _ = (now, sent);
        false
    }

    /// Returns whether the detection uses the ACK of a tail loss probe as evidence of loss (RFC
    /// 8985 section 7).
    ///
    /// Only `rack` uses probes; with other detections, probes would change the sending behaviour
    /// that their papers specify.
    fn wants_probes(&self) -> bool {
        false
    }

    /// Returns the bytes in the network. A detection that uses duplicate ACKs credits them here,
    /// one segment each, and never to cwnd.
    fn pipe(&self, board: &Board) -> ByteCount {
        board.in_flight()
    }

    /// Selects the segment to retransmit next; `new_data` is whether there is unsent data that fits
    /// in the peer's window.
    fn pick(&self, view: &View<'_>, new_data: bool) -> Option<Repair> {
        let _ = new_data;
        let lost = view.board.first_lost()?;
        Some(Repair { tx: lost.tx, rule: SendRule::Repair })
    }

    /// Returns whether an ACK that advances SND.UNA restarts the retransmission timer.
    fn restarts_rto(&self) -> bool {
        true
    }

    /// Returns when a recovery that starts now ends. A recovery after a time-out always ends at the
    /// recovery point.
    fn recovery_end(&self, view: &View<'_>) -> RecoveryEnd {
        let _ = view;
        RecoveryEnd::RecoveryPoint
    }
}
