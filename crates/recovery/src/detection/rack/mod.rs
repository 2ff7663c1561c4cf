//! `rack`: a transmission is lost if one sent sufficiently later was delivered (RFC 8985).

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, TxNo};

use super::sweep::{Sweep, earlier_arrived};
use super::{Findings, LossDetection};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::Transmission;
use crate::view::{AckView, Phase, View};

pub(crate) const RACK: Entry<dyn LossDetection> = Entry {
    name: "rack",
    parameter: "",
    example: None,
    summary: "compares transmission times, with a reordering window; detects lost retransmissions; tail loss probes",
    source: "RFC 8985",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: Some("newreno"),
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Rack::default()) as _),
};

/// RFC 8985 section 6.2 step 4: the number of recoveries without DSACK after which the window
/// shrinks again.
const PERSIST: u8 = 16;

/// RACK. The sender implements the tail loss probe; see [`LossDetection::wants_probes`].
#[derive(Debug, Default)]
pub struct Rack {
    /// RACK.segment and RACK.rtt: the latest transmission known to be delivered, and its RTT.
    newest: Option<(TxNo, Duration)>,
    sweep: Sweep,
    /// RACK.fack: the end of the highest data known to be delivered.
    fack: ExtSeq,
    reordering: ReorderingWindow,
    /// RACK.reo_wnd.
    window: Duration,
    timer: Option<Instant>,
}

/// The reordering state of RFC 8985 section 6.2 step 4.
#[derive(Clone, Debug)]
struct ReorderingWindow {
    seen: bool,
    /// RACK.dsack_round: until this is acknowledged, further DSACKs do not count.
    dsack_round: Option<ExtSeq>,
    multiplier: u16,
    persist: u8,
    was_in_recovery: bool,
}

impl Default for ReorderingWindow {
    fn default() -> Self {
        Self {
            seen: false,
            dsack_round: None,
            multiplier: 1,
            persist: PERSIST,
            was_in_recovery: false,
        }
    }
}

impl ReorderingWindow {
    /// Step 4: returns the reordering window, by which a segment may be late without being lost.
    fn window(&mut self, ack: &AckView<'_>, view: &View<'_>) -> Duration {
        let in_recovery = matches!(view.phase, Phase::Recovery | Phase::Loss);
        let exits = std::mem::replace(&mut self.was_in_recovery, in_recovery) && !in_recovery;
        self.dsack_round = self.dsack_round.filter(|round| ack.ack < *round);
        if ack.dsack.is_some() && self.dsack_round.is_none() {
            self.dsack_round = Some(view.board.snd_nxt());
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSIST;
        } else if exits {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                (self.multiplier, self.persist) = (1, PERSIST);
            }
        }
        if !self.seen && (in_recovery || has_dup_thresh_sacked(view)) {
            return Duration::ZERO;
        }
        let quarter = view.rtt.min().unwrap_or_default() / 4;
        quarter.saturating_mul(u32::from(self.multiplier)).min(view.rtt.srtt().unwrap_or_default())
    }
}

fn has_dup_thresh_sacked(view: &View<'_>) -> bool {
    let (board, thresh) = (view.board, view.dup_thresh as usize);
    let sacked = board.sacked_ranges().iter().flat_map(|range| board.starting_in(range));
    board.sacked() > ByteCount::ZERO && sacked.take(thresh).count() >= thresh
}

impl Rack {
    /// Steps 2 and 3: the latest delivered transmission, and whether a segment was reordered.
    fn update(&mut self, ack: &AckView<'_>, view: &View<'_>) {
        let fack = self.fack;
        let mut newest: Option<(TxNo, Duration)> = None;
        for delivered in ack.newly {
            self.fack = self.fack.max(delivered.range.end);
            self.reordering.seen |= delivered.first_end() < fack && delivered.resent == 0;
            if !earlier_arrived(delivered, ack, view)
                && newest.is_none_or(|(tx, _)| tx < delivered.tx)
            {
                newest = Some((delivered.tx, ack.now.since(delivered.sent_at)));
            }
        }
        if let Some((tx, rtt)) = newest {
            let newest = self.newest.map_or(tx, |(newest, _)| newest.max(tx));
            self.newest = Some((newest, rtt));
        }
    }

    /// Step 5.
    fn detect(&mut self, view: &View<'_>, out: &mut Findings) {
        self.timer = None;
        let Some((newest, rtt)) = self.newest else { return };
        let patience = rtt + self.window;
        let is_lost = |sent: &Transmission| sent.sent_at + patience <= view.now;
        let waits = self.sweep.judge(view.board, newest, out, is_lost);
        self.timer = waits.map(|sent| sent.sent_at + patience);
    }
}

impl LossDetection for Rack {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        self.update(ack, view);
        self.window = self.reordering.window(ack, view);
        self.detect(view, out);
    }

    fn on_timer(&mut self, view: &View<'_>, out: &mut Findings) {
        self.detect(view, out);
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timer
    }

    fn on_timeout(&mut self, _: &View<'_>) {
        self.timer = None;
    }

    fn on_undo(&mut self, view: &View<'_>) {
        // The transmissions delivered before the undo were misleading.
        (self.newest, self.timer) = (None, None);
        self.sweep = Sweep::from_oldest(view.board);
    }

    fn survives_timeout(&self, now: Instant, sent: &Transmission) -> bool {
        self.newest.is_some_and(|(_, rtt)| sent.sent_at + rtt + self.window > now)
    }

    fn wants_probes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
