//! Missing packets behind which later ones have arrived: when they count as lost, and when they are
//! reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use airtcp_types::Instant;

use crate::differentiation::Loss;
use crate::wire::{Lost, LostWriter, RANGE_MAX};

/// The number of later transmissions after which a packet is lost, on a path without reordering
/// (RFC 9002 section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// The maximum number of doublings of the time between two reports of a packet.
const MOST_REPEATS: u32 = 3;

/// A missing packet behind which a later one has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    /// The transmission that revealed it; if an earlier one arrives, the packet itself was late.
    shown_by: u64,
    /// The packet was sent after this transmission.
    pub(super) after: u64,
    pub(super) loss: Loss,
    /// The number of reports of the packet.
    requests: u32,
    due: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Holes {
    by_number: BTreeMap<u64, Hole>,
    due: BTreeSet<(Instant, u64)>,
    /// The holes that were not reported yet, in order of detection.
    unreported: VecDeque<(u64, u64)>,
    /// The time by which a packet may be late (RFC 8985 section 6.2); grows if packets are late.
    reordering_window: Option<Duration>,
    /// The last transmission that contained a packet beyond all before.
    ended_by: u64,
    scratch: Vec<u64>,
    lost: LostWriter,
}

impl Holes {
    /// The number of holes.
    pub(super) fn count(&self) -> u64 {
        self.by_number.len() as u64
    }

    /// Returns the time by which a packet may be late.
    pub(super) fn patience(&self, rtt: Duration) -> Duration {
        self.reordering_window.unwrap_or(rtt / 4)
    }

    /// Adds a missing packet revealed by the transmission `shown_by`; `u64::MAX` if that is
    /// unknown.
    pub(super) fn add(&mut self, number: u64, shown_by: u64, loss: Loss, due: Instant) {
        let hole = Hole { shown_by, after: self.ended_by, loss, requests: 0, due };
        self.by_number.insert(number, hole);
        self.due.insert((due, number));
        if self.reordering_window.is_none() && shown_by < u64::MAX {
            self.unreported.push_back((shown_by, number));
        }
    }

    /// Handles a packet beyond all before, in the transmission `transmission`.
    pub(super) fn on_end(&mut self, transmission: u64) {
        self.ended_by = transmission;
    }

    /// Handles the arrival of a packet.
    pub(super) fn fill(&mut self, number: u64, transmission: u64, rtt: Duration) {
        let Some(hole) = self.by_number.remove(&number) else { return };
        self.due.remove(&(hole.due, number));
        if hole.requests > 0 && transmission < hole.shown_by {
            // The packet was late and not lost: allow more time from now on.
            let before = self.reordering_window.unwrap_or(rtt / 8);
            self.reordering_window = Some((before * 2).min(rtt).max(Duration::from_millis(1)));
        }
    }

    /// Makes holes due at once that enough later transmissions have passed; `newest` is the last
    /// transmission.
    pub(super) fn detect(&mut self, now: Instant, newest: u64) {
        if self.reordering_window.is_some() {
            self.unreported.clear();
        }
        while let Some(&(shown_by, number)) = self.unreported.front() {
            let hole = self.by_number.get_mut(&number).filter(|hole| hole.requests == 0);
            if let Some(hole) = hole {
                if shown_by + PACKET_THRESHOLD > newest + 1 {
                    return;
                }
                if hole.due > now {
                    self.due.remove(&(hole.due, number));
                    hole.due = now;
                    self.due.insert((now, number));
                }
            }
            self.unreported.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_number.clear();
        self.due.clear();
        self.unreported.clear();
    }

    /// Returns when the next hole has to be reported.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Writes at most `most` holes that are due, and schedules their next report; returns their
    /// number. Calls `lost` for those reported for the first time.
    pub(super) fn report(
        &mut self,
        now: Instant,
        most: usize,
        repeat: Duration,
        mut lost: impl FnMut(&Hole),
    ) -> usize {
        let mut numbers = std::mem::take(&mut self.scratch);
        numbers.clear();
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        numbers.extend(due.map(|(_, number)| *number).take(most));
        numbers.sort_unstable();
        self.lost.clear();
        let mut range: Option<(u64, u64, bool)> = None;
        for &number in &numbers {
            let Some(hole) = self.by_number.get_mut(&number) else { continue };
            self.due.remove(&(hole.due, number));
            if hole.requests == 0 {
                lost(hole);
            }
            hole.due = now + repeat * (1 << hole.requests.min(MOST_REPEATS));
            hole.requests += 1;
            self.due.insert((hole.due, number));
            let congestive = hole.loss == Loss::Congestive;
            range = match range {
                Some((first, count, cause))
                    if first + count == number && cause == congestive && count < RANGE_MAX =>
                {
                    Some((first, count + 1, cause))
                }
                before => {
                    if let Some((first, count, cause)) = before {
                        self.lost.push(first, count, cause);
                    }
                    Some((number, 1, congestive))
                }
            };
        }
        if let Some((first, count, cause)) = range {
            self.lost.push(first, count, cause);
        }
        let count = numbers.len();
        self.scratch = numbers;
        count
    }

    /// Returns the ranges written by the last [`report`](Self::report).
    pub(super) fn written(&self) -> Lost<'_> {
        self.lost.lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const REPEAT: Duration = Duration::from_millis(150);

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Returns the ranges reported at a time, and the number of packets reported for the first
    /// time.
    fn reported(holes: &mut Holes, millis: u64) -> (Vec<(u32, u16, bool)>, u32) {
        let mut first = 0;
        holes.report(ms(millis), 10, REPEAT, |_| first += 1);
        let ranges = holes.written().ranges();
        (ranges.map(|range| (range.first, range.count, range.congestive)).collect(), first)
    }

    #[test]
    fn adjacent_losses_of_one_cause_are_one_range_with_backed_off_requests() {
        let mut holes = Holes::default();
        for (number, loss) in [(3, Loss::Wireless), (4, Loss::Wireless), (5, Loss::Congestive)] {
            holes.add(number, 10, loss, ms(25));
        }
        assert_eq!((holes.count(), holes.next_due()), (3, Some(ms(25))));
        assert_eq!(reported(&mut holes, 24), (vec![], 0));
        let ranges = vec![(3, 2, false), (5, 1, true)];
        assert_eq!(reported(&mut holes, 25), (ranges.clone(), 3));
        for at in [175, 475, 1_075, 2_275, 3_475] {
            assert_eq!(holes.next_due(), Some(ms(at)));
            assert_eq!(reported(&mut holes, at), (ranges.clone(), 0));
        }
    }

    #[test]
    fn three_later_transmissions_make_a_loss_unless_packets_have_been_late() {
        let mut holes = Holes::default();
        holes.add(1, 3, Loss::Wireless, ms(25));
        holes.detect(ms(1), 4);
        assert_eq!(holes.next_due(), Some(ms(25)));
        holes.detect(ms(1), 5);
        assert_eq!(reported(&mut holes, 1), (vec![(1, 1, false)], 1));
        // The packet arrives, sent before the one that revealed it.
        holes.fill(1, 2, RTT);
        assert_eq!((holes.count(), holes.patience(RTT)), (0, RTT / 4));
        holes.add(6, 8, Loss::Wireless, ms(30));
        holes.detect(ms(2), 20);
        assert_eq!(holes.next_due(), Some(ms(30)));
    }
}
