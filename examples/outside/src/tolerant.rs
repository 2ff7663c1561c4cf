//! A loss detection: a segment is lost once the receiver has data far enough above it.

use airtcp::recovery::{AckView, Entry, Findings, LossDetection, TxState, View, WireNeeds};
use airtcp::types::SeqRange;

pub static ENTRY: Entry<dyn LossDetection> = Entry {
    name: "tolerant",
    parameter: "[:N]",
    example: Some("20"),
    summary: "lost once the receiver has data N segments above it (10)",
    source: "docs/write-your-own-strategy.md",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: Some("newreno"),
    make: |parameter, _| match parameter.map_or(Ok(10), str::parse) {
        Ok(segments @ 3..=100) => Ok(Box::new(Tolerant { segments })),
        _ => Err("it takes 3 to 100 segments, as in `tolerant:20`".to_owned()),
    },
    ..Entry::BLANK
};

#[derive(Debug)]
pub struct Tolerant {
    pub segments: u64,
}

impl LossDetection for Tolerant {
    fn on_ack(&mut self, _: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        let board = view.board;
        let Some(highest) = board.sacked_ranges().last() else { return };
        let distance = view.smss * self.segments;
        for sent in board.starting_in(SeqRange::new(board.snd_una(), highest.end)) {
            // A lost retransmission waits for the retransmission timer.
            let is_missing = sent.state == TxState::InFlight && sent.resent == 0;
            // A judge that waits for it would start its wait again.
            let is_reported = view.is_deferred(sent.tx);
            if is_missing && !is_reported && highest.end.since(sent.range.end) >= distance {
                out.lost(sent.tx);
            }
        }
    }

    // No state to reset: the scoreboard has all of it.
    fn on_timeout(&mut self, _: &View<'_>) {}

    fn on_undo(&mut self, _: &View<'_>) {}
}
