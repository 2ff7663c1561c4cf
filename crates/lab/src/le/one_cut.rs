//! LE with a round trip a quarter longer between cuts.
//!
//! LE 2.2.3 cuts again if more than an RTT has passed. The ACK of the first repair comes one RTT after the cut, and it may be the
//! third that tells of the rest: in the proof of LE 2.2 that is no second cut. Whether it is one depends on whether that ACK took a
//! little more or less than SRTT; the ACKs of our receiver take 22 µs more at 10 Mbit/s when they have SACK blocks.

use airtcp_recovery::detection::Le;
use airtcp_recovery::registry::{Entry, WireNeeds};
use airtcp_recovery::{AckView, Board, Choice, EpisodeEnd, Findings, LossDetection, View};
use airtcp_types::ByteCount;

static ENTRY: Entry<dyn LossDetection> = Entry {
    name: "le-one-cut",
    parameter: "",
    example: None,
    summary: "LE with 1.25 SRTT between cuts",
    source: "LE 2.2, the proof",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: None,
    make: |parameter, _| match parameter {
        None => Ok(Box::new(OneCut::default())),
        Some(_) => Err("it takes no parameter".to_owned()),
    },
};

pub(super) fn detection() -> Choice<dyn LossDetection> {
    Choice::new(&ENTRY, None).expect("it needs no parameter")
}

#[derive(Debug, Default)]
struct OneCut(Le);

impl LossDetection for OneCut {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        self.0.on_ack(ack, view, out);
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.0.on_timeout(view);
    }

    fn on_undo(&mut self, view: &View<'_>) {
        self.0.on_undo(view);
    }

    fn pipe(&self, board: &Board) -> ByteCount {
        self.0.pipe(board)
    }

    fn episode_end(&self, view: &View<'_>) -> EpisodeEnd {
        match self.0.episode_end(view) {
            EpisodeEnd::After(round_trip) => EpisodeEnd::After(round_trip * 5 / 4),
            other => other,
        }
    }
}
