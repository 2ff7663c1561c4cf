//! Strategies that record their calls and return what a test has set. They are not in the registry,
//! like a user's own strategies.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::{ByteCount, TxNo};

use crate::control::ControlParams;
use crate::detection::{Finding, Findings, RecoveryEnd};
use crate::judge::{Raised, Ruling};
use crate::registry::Entry;
use crate::transmission::Transmission;
use crate::view::{AckView, View};
use crate::{
    Choice, Combination, CongestionControl, ControlState, LossDetection, LossJudge, Notice,
    NoticeKind, Profile, Sender, TakesOver, WireNeeds,
};

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static FINDINGS: RefCell<VecDeque<(TxNo, Found)>> = const { RefCell::new(VecDeque::new()) };
    static RULINGS: RefCell<VecDeque<Option<Ruling>>> = const { RefCell::new(VecDeque::new()) };
    static RAISED: RefCell<Option<(TxNo, Ruling)>> = const { RefCell::new(None) };
    static RECOVERY_END: Cell<RecoveryEnd> = const { Cell::new(RecoveryEnd::RecoveryPoint) };
    static WINDOWS: Cell<[Option<ByteCount>; 2]> = const { Cell::new([None; 2]) };
}

/// A finding that the detection reports.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Suspect,
    Lost,
    Immediate,
}

fn note(text: String) {
    LOG.with_borrow_mut(|log| log.push(text));
}

/// Returns what was recorded since the last call.
pub(super) fn noted() -> Vec<String> {
    LOG.take()
}

/// Sets a finding that the detection reports on the next ACK.
pub(super) fn find(tx: u64, found: Found) {
    FINDINGS.with_borrow_mut(|findings| findings.push_back((TxNo(tx), found)));
}

/// Sets the next ruling of the judge; without one it makes no ruling.
pub(super) fn rule(ruling: Option<Ruling>) {
    RULINGS.with_borrow_mut(|rulings| rulings.push_back(ruling));
}

/// Sets a loss that the judge raises on the next ACK.
pub(super) fn raise(tx: u64, ruling: Ruling) {
    RAISED.set(Some((TxNo(tx), ruling)));
}

/// Sets the control's window after the next reduction, and after the next ACK.
pub(super) fn set_windows(reduced: Option<ByteCount>, acked: Option<ByteCount>) {
    WINDOWS.set([reduced, acked]);
}

/// Sets the end of recoveries that the detection returns from now on.
pub(super) fn end_recoveries(end: RecoveryEnd) {
    RECOVERY_END.set(end);
}

#[derive(Debug)]
struct Detection;

impl LossDetection for Detection {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        note(format!("detection hears {} with SND.UNA {}", ack.ack.0, view.board.snd_una().0));
        for (tx, found) in FINDINGS.take() {
            match found {
                Found::Suspect => out.suspect(tx),
                Found::Lost => out.lost(tx),
                Found::Immediate => out.lost_immediate(tx),
            }
        }
    }

    fn on_sent(&mut self, sent: &Transmission) {
        note(format!("detection sees {} leave as {}", sent.tx.0, sent.rule.name()));
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        note(format!("detection times out with {} B lost", view.board.lost()));
    }

    fn recovery_end(&self, _: &View<'_>) -> RecoveryEnd {
        RECOVERY_END.get()
    }

    fn on_undo(&mut self, _: &View<'_>) {
        note("detection undoes".to_owned());
    }
}

#[derive(Debug)]
struct Judge;

impl LossJudge for Judge {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Raised) {
        let (una, rtt) = (view.board.snd_una().0, ack.rtt.unwrap_or_default());
        note(format!("judge hears {} with SND.UNA {una}, RTT {rtt:?}", ack.ack.0));
        if let Some((tx, ruling)) = RAISED.take() {
            out.loss(tx, ruling);
        }
    }

    fn rule(
        &mut self,
        finding: &Finding,
        lost: &Transmission,
        _: &View<'_>,
        again: bool,
    ) -> Option<Ruling> {
        let ruling = RULINGS.with_borrow_mut(VecDeque::pop_front).flatten();
        let again = if again { " again" } else { "" };
        assert_eq!(lost.tx, finding.tx);
        note(format!("judge rules{again} on {:?} {}", finding.certainty, lost.tx.0));
        ruling
    }

    fn on_timeout(&mut self, _: &View<'_>) {
        note("judge times out".to_owned());
    }
}

/// A control with a window of ten segments that records the ACKs and notices that it receives.
#[derive(Debug)]
struct Control {
    window: ByteCount,
}

impl CongestionControl for Control {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        note(format!("control hears {} with pipe {}", ack.ack.0, ack.pipe));
        let [reduced, acked] = WINDOWS.get();
        self.window = acked.unwrap_or(self.window);
        WINDOWS.set([reduced, None]);
    }

    fn on_notice(&mut self, notice: &Notice) {
        if matches!(notice.kind, NoticeKind::Reduce { .. }) {
            let [reduced, acked] = WINDOWS.get();
            self.window = reduced.unwrap_or(self.window);
            WINDOWS.set([None, acked]);
        }
        note(match notice.kind {
            NoticeKind::Lost(loss) => {
                format!("control: {} B lost, {}", loss.bytes, loss.cause.name())
            }
            NoticeKind::Reduce { flight_size, cause } => {
                format!("control: reduce from {flight_size} B, {}", cause.name())
            }
            NoticeKind::Timeout { first, .. } => format!("control: time-out, first {first}"),
            NoticeKind::RecoveryOver => "control: recovery over".to_owned(),
            NoticeKind::Idle { time, restart, .. } => {
                format!("control: idle {time:?}, restart {restart}")
            }
            NoticeKind::Unused => "control: unused".to_owned(),
            NoticeKind::Undo { resumes } => format!("control: undo, resumes {resumes}"),
            NoticeKind::SegmentSize(smss) => format!("control: segments of {smss}"),
            NoticeKind::TakeOver { cwnd, .. } => format!("control: takes over at {cwnd}"),
        });
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn state(&self) -> ControlState {
        ControlState { ssthresh: None, mode: "recording" }
    }
}

static DETECTION: Entry<dyn LossDetection> = Entry {
    name: "recording",
    parameter: "",
    example: None,
    summary: "records its calls",
    source: "this file",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |_, _| Ok(Box::new(Detection)),
};

static JUDGE: Entry<dyn LossJudge> = Entry {
    name: "recording",
    parameter: "",
    example: None,
    summary: "records its calls",
    source: "this file",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |_, _| Ok(Box::new(Judge)),
};

static CONTROL: Entry<dyn CongestionControl> = Entry {
    name: "recording",
    parameter: "",
    example: None,
    summary: "records its calls",
    source: "this file",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |_, params: &ControlParams| Ok(Box::new(Control { window: params.smss * 10 })),
};

/// Returns a sender with only recording strategies and `judges` judges.
pub(super) fn sender(judges: usize) -> Sender {
    RECOVERY_END.set(RecoveryEnd::RecoveryPoint);
    let judge = || Choice::new(&JUDGE, None).unwrap();
    let combination = Combination::default()
        .with_detection(Choice::new(&DETECTION, None).unwrap())
        .with_control(Choice::new(&CONTROL, None).unwrap())
        .with_judges((0..judges).map(|_| judge()).collect());
    crate::testkit::sender_of(combination, Profile::modern())
}

/// Returns a sender with a named detection and control and the recording judge.
pub(super) fn with_judge(combination: &str) -> Sender {
    let combination: Combination = combination.parse().unwrap();
    let judged = combination.with_judges(vec![Choice::new(&JUDGE, None).unwrap()]);
    crate::testkit::sender_of(judged, Profile::modern())
}

/// Returns a sender with a named detection and the recording control and judge.
pub(super) fn with_detection(name: &str) -> Sender {
    let combination: Combination = format!("{name}/reno").parse().unwrap();
    let recording = combination
        .with_control(Choice::new(&CONTROL, None).unwrap())
        .with_judges(vec![Choice::new(&JUDGE, None).unwrap()]);
    crate::testkit::sender_of(recording, Profile::modern())
}

/// Returns a duration in milliseconds.
pub(super) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
