//! A variant of LE that follows its paper where our LE differs, to isolate the effect.

use airtcp_recovery::detection::Le;
use airtcp_recovery::registry::{Entry, TakesOver, WireNeeds};
use airtcp_recovery::{
    AckView, Board, Choice, Findings, LossDetection, RecoveryEnd, Transmission, View,
};
use airtcp_types::{ByteCount, SendRule};

/// The first retransmission does not restart the timer: LE 2.2.4 restarts it when the cumulative
/// acknowledgement advances.
static OWN_TIMER: Entry<dyn LossDetection> = Entry {
    name: "le-own-timer",
    summary: "LE whose repairs do not restart the timer",
    source: "LE 2.2.4",
    parameter: "",
    example: None,
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| match parameter {
        None => Ok(Box::new(OwnTimer::default())),
        Some(_) => Err("it takes no parameter".to_owned()),
    },
};

pub(super) fn own_timer() -> Choice<dyn LossDetection> {
    Choice::new(&OWN_TIMER, None).expect("it needs no parameter")
}

#[derive(Debug, Default)]
struct OwnTimer {
    le: Le,
    /// Whether the first retransmission was sent since the last ACK: this is the one that would
    /// restart the timer.
    has_repaired: bool,
}

impl LossDetection for OwnTimer {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        self.has_repaired = false;
        self.le.on_ack(ack, view, out);
    }

    fn on_sent(&mut self, sent: &Transmission) {
        self.has_repaired = sent.rule == SendRule::FastRetransmit;
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.le.on_timeout(view);
    }

    fn on_undo(&mut self, view: &View<'_>) {
        self.le.on_undo(view);
    }

    fn pipe(&self, board: &Board) -> ByteCount {
        self.le.pipe(board)
    }

    fn restarts_rto(&self) -> bool {
        !self.has_repaired
    }

    fn recovery_end(&self, view: &View<'_>) -> RecoveryEnd {
        self.le.recovery_end(view)
    }
}
