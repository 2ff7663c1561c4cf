//! LE as its paper has it where ours does otherwise, to show what that is worth.

use airtcp_recovery::detection::Le;
use airtcp_recovery::registry::{Entry, TakesOver, WireNeeds};
use airtcp_recovery::{
    AckView, Board, Choice, EpisodeEnd, Findings, LossDetection, Transmission, View,
};
use airtcp_types::{ByteCount, SendRule};

/// With a round trip a quarter longer between cuts.
///
/// LE 2.2.3 cuts again if more than an RTT has passed. The ACK of the first repair comes one RTT after the cut, and it
/// may be the third that tells of the rest: in the proof of LE 2.2 that is no second cut. Whether it is one depends on
/// whether that ACK took a little more or less than SRTT; the ACKs of our receiver take 22 µs more at 10 Mbit/s when
/// they have SACK blocks.
static ONE_CUT: Entry<dyn LossDetection> = Entry {
    name: "le-one-cut",
    summary: "LE with 1.25 SRTT between cuts",
    source: "LE 2.2, the proof",
    make: |parameter, _| make(parameter, Variant { is_one_cut: true, ..Variant::default() }),
    ..ENTRY
};

/// With a timer that the first repair leaves alone: LE 2.2.4 resets it where the cumulative number advances.
static OWN_TIMER: Entry<dyn LossDetection> = Entry {
    name: "le-own-timer",
    summary: "LE whose repairs do not restart the timer",
    source: "LE 2.2.4",
    make: |parameter, _| make(parameter, Variant { has_own_timer: true, ..Variant::default() }),
    ..ENTRY
};

const ENTRY: Entry<dyn LossDetection> = Entry {
    name: "le",
    parameter: "",
    example: None,
    summary: "",
    source: "",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| make(parameter, Variant::default()),
};

fn make(parameter: Option<&str>, variant: Variant) -> Result<Box<dyn LossDetection>, String> {
    match parameter {
        None => Ok(Box::new(variant)),
        Some(_) => Err("it takes no parameter".to_owned()),
    }
}

pub(super) fn one_cut() -> Choice<dyn LossDetection> {
    Choice::new(&ONE_CUT, None).expect("it needs no parameter")
}

pub(super) fn own_timer() -> Choice<dyn LossDetection> {
    Choice::new(&OWN_TIMER, None).expect("it needs no parameter")
}

#[derive(Debug, Default)]
struct Variant {
    le: Le,
    is_one_cut: bool,
    has_own_timer: bool,
    /// Whether the first repair has left since the last ACK: it is what would restart the timer.
    has_repaired: bool,
}

impl LossDetection for Variant {
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
        !(self.has_own_timer && self.has_repaired)
    }

    fn episode_end(&self, view: &View<'_>) -> EpisodeEnd {
        match self.le.episode_end(view) {
            EpisodeEnd::After(round_trip) if self.is_one_cut => {
                EpisodeEnd::After(round_trip * 5 / 4)
            }
            other => other,
        }
    }
}
