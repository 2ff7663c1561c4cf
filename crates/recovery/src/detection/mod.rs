//! Loss detection: which transmissions are lost.
//!
//! A detector reads the [`Board`] and the ACK, and reports what it found; it does not change the
//! board and keeps no second copy of what the board knows. What a loss means is for the judges, how
//! much may be sent for the control.

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

/// A finding of a detector about a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The transmission.
    pub tx: TxNo,
    /// How sure it is.
    pub certainty: Certainty,
    /// Whether the repair leaves at once, whatever the pipe holds.
    pub immediate: bool,
}

/// The certainty of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// The first sign: something sent later arrived earlier.
    Suspect,
    /// The detector's threshold is passed.
    Lost,
}

/// The list to which a detector adds its findings.
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

    /// The findings so far.
    pub fn as_slice(&self) -> &[Finding] {
        &self.0
    }
}

/// The end of a recovery. During a recovery the window is reduced only once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryEnd {
    /// Until everything sent before it is acknowledged; the window does not grow meanwhile.
    RecoveryPoint,
    /// As [`RecoveryEnd::RecoveryPoint`], but the window grows again from the first ACK that
    /// advances SND.UNA (RFC 5681 section 3.2 step 6).
    FirstAdvance,
    /// For so long; the window grows meanwhile.
    After(Duration),
}

/// A segment to retransmit, and the rule that selects it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair {
    /// The latest transmission of the bytes to be sent again.
    pub tx: TxNo,
    /// [`SendRule::Repair`], [`SendRule::Unsacked`] or [`SendRule::Rescue`].
    pub rule: SendRule,
}

/// Decides which transmissions are lost and what to repair next.
///
/// # The order in which one ACK is worked
///
/// For every combination of strategies, always, except that an ACK which tells nothing while
/// nothing is outstanding is not worked at all:
///
/// 1. **Board**: what the ACK covers is marked delivered, so that all later steps see the same.
/// 2. **RTT, rate and round**: they need the board, to tell first transmissions from later ones
///    (Karn) and to know what was in flight when.
/// 3. **Undo**: if the ACK shows the last reduction or time-out to be spurious, it is taken back.
///    Later steps then work with the restored windows, and a real loss reduces those.
/// 4. **Judges hear the ACK**, before detection, because it may carry the cause of what the
///    detector is about to find. What they raise of their own accord is carried out.
/// 5. **Marks**: the echo of a mark reduces the window (RFC 3168), unless the control answers marks
///    itself. A loss found by the same ACK then reduces it no second time.
/// 6. **Detection**: [`LossDetection::on_ack`] reports suspects and losses.
/// 7. **Judges rule** on each finding: repair when, reduce when, and why.
/// 8. **Notices** to the control, finding by finding: the loss, then the reduction, so that it
///    reduces from the window that the losses happened in, and not from one that this ACK has
///    already grown. A recovery whose time is over ends before the loss.
/// 9. **Probe verdict**: an ACK that ends a tail loss probe may show that the probe repaired a
///    loss. The judges rule on it; with no opinion of theirs it reduces the window (RFC 8985
///    section 7.4.2).
/// 10. **End of the recovery**, if the ACK reaches it. It comes after detection, so that losses of
///     the old window do not start a new recovery.
/// 11. **The control hears the ACK** and may grow the window.
/// 12. **Window validation** (RFC 7661), of the window as it is then.
/// 13. **PRR** computes what may leave (RFC 9937), from the pipe after all losses and from the
///     window that the control has set.
/// 14. **Timers and pacing**: what judges put off, the retransmission timer, the probe timer and
///     the pacing rate.
/// 15. **Sending**, with all of this known.
pub trait LossDetection: Debug + Send {
    /// Works an ACK (step 6).
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings);

    /// Works the deadline it gave by [`next_timer`](Self::next_timer).
    fn on_timer(&mut self, view: &View<'_>, out: &mut Findings) {
        let _ = (view, out);
    }

    /// Its next deadline.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// A transmission left.
    fn on_sent(&mut self, sent: &Transmission) {
        let _ = sent;
    }

    /// Several left together, none of which is told of by [`on_sent`](Self::on_sent) but from here.
    fn on_sent_together(&mut self, sent: &Run) {
        sent.transmissions().for_each(|sent| self.on_sent(&sent));
    }

    /// The retransmission timer ran out; everything in flight has been marked lost.
    fn on_timeout(&mut self, view: &View<'_>);

    /// The last reduction or time-out was spurious, and is taken back: what was judged lost and not
    /// yet sent again is in flight, and the detection is in no recovery. If the time-out broke into
    /// a recovery, that goes on: the window is reduced no second time. A detection that takes the
    /// place of another in the midst of a connection begins so, too.
    fn on_undo(&mut self, view: &View<'_>);

    /// Whether `sent` is not to be taken for lost when the retransmission timer runs out: it has
    /// not been on its way for long enough (RFC 8985 section 6.3).
    ///
    /// The answer depends on the reordering window of the detection, which only its state has.
    fn survives_timeout(&self, now: Instant, sent: &Transmission) -> bool {
        let _ = (now, sent);
        false
    }

    /// Whether the ACK of a tail loss probe is evidence of loss for it (RFC 8985 section 7).
    ///
    /// Only `rack` wants probes, and others would send as no paper says with them. One method with
    /// a default is less than a field in every registry entry.
    fn wants_probes(&self) -> bool {
        false
    }

    /// Bytes held to be in the network. Credit for duplicate ACKs is counted here: each tells of a
    /// segment that left, and none is ever added to cwnd.
    fn pipe(&self, board: &Board) -> ByteCount {
        board.in_flight()
    }

    /// What to send again next; `new_data` says whether there is data never sent that the peer's
    /// window has room for.
    fn pick(&self, view: &View<'_>, new_data: bool) -> Option<Repair> {
        let _ = new_data;
        let lost = view.board.first_lost()?;
        Some(Repair { tx: lost.tx, rule: SendRule::Repair })
    }

    /// Whether an ACK that advances SND.UNA starts the retransmission timer anew.
    fn restarts_rto(&self) -> bool {
        true
    }

    /// How long a recovery that begins now lasts. One from a time-out ends at the recovery point.
    fn recovery_end(&self, view: &View<'_>) -> RecoveryEnd {
        let _ = view;
        RecoveryEnd::RecoveryPoint
    }
}
