//! Trains, from which the receiver measures the path's capacity: before the rate is known, and
//! periodically after that.

use std::time::Duration;

use airtcp_types::Instant;

use crate::wire::Train;

/// The number of packets between two trains.
const TRAIN_EVERY: u64 = 32;
/// The duration of a train at the current rate; a train has 2 to 16 packets.
const TRAIN_TIME: f64 = 1e-3;
const LONGEST_TRAIN: u64 = 16;
/// The number of failed trains after which probing stops.
const FAILURES: u32 = 3;
/// The gap below which a pair is too short to measure (11 Mbit/s): a longer train follows.
const COARSE: Duration = Duration::from_millis(1);

/// The state of the initial measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Probe {
    /// A pair has to be sent, after this number of failures.
    Wanted(u32),
    /// The pair measured this rate, so high that a longer train has to confirm it.
    Longer(f64),
    /// A train is in flight: the time to wait for its result, and the failures before it.
    Sent {
        until: Instant,
        failures: u32,
        longer: bool,
    },
    Done,
}

/// The end of probing without a confirmed measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Outcome {
    /// Nothing was measured.
    GivenUp,
    /// Only the pair was measured: its rate.
    Pair(f64),
}

#[derive(Clone, Debug)]
pub(super) struct Probing {
    probe: Probe,
    /// The remaining packets of a train, and its length.
    train: (u64, u64),
    since_train: u64,
}

impl Probing {
    pub(super) const fn new() -> Self {
        Self { probe: Probe::Wanted(0), train: (0, 0), since_train: 0 }
    }

    /// Ends probing because the rate is known.
    pub(super) const fn end(&mut self) {
        self.probe = Probe::Done;
    }

    /// Returns the time at which a data packet may leave whose paced time is `paced`.
    pub(super) const fn data_at(&self, paced: Instant) -> Instant {
        match self.probe {
            _ if self.train.0 > 0 => Instant::ZERO,
            Probe::Sent { until, .. } => until,
            _ => paced,
        }
    }

    /// Ends a train early, because there is no packet to send.
    pub(super) const fn end_train(&mut self) {
        self.train.0 = 0;
    }

    /// Starts a train when a data packet may leave, if a train is due and there is enough to send.
    /// It fails if the receiver has not reported it by `until`. The rate and the length of a full
    /// packet are in bits.
    pub(super) fn begin_train(
        &mut self,
        until: Instant,
        (rate, packet): (f64, f64),
        has_train: impl Fn(u64) -> bool,
    ) -> Option<Outcome> {
        if self.train.0 > 0 {
            return None;
        }
        let mut outcome = None;
        if let Probe::Sent { failures, .. } = self.probe {
            self.probe = if failures + 1 >= FAILURES {
                outcome = Some(Outcome::GivenUp);
                Probe::Done
            } else {
                Probe::Wanted(failures + 1)
            };
        }
        let count = match self.probe {
            Probe::Wanted(_) => 2,
            Probe::Longer(_) => LONGEST_TRAIN,
            Probe::Done if self.since_train >= TRAIN_EVERY => {
                let packets = TRAIN_TIME * rate / packet;
                (packets.ceil() as u64 + 1).clamp(2, LONGEST_TRAIN)
            }
            Probe::Done | Probe::Sent { .. } => return outcome,
        };
        let enough = has_train(count);
        match self.probe {
            Probe::Longer(pair) if !enough => {
                (self.probe, outcome) = (Probe::Done, Some(Outcome::Pair(pair)));
            }
            Probe::Wanted(failures) if enough => {
                self.probe = Probe::Sent { until, failures, longer: false };
            }
            Probe::Longer(_) => self.probe = Probe::Sent { until, failures: 0, longer: true },
            _ => {}
        }
        if enough {
            (self.train, self.since_train) = ((count, count), 0);
        }
        outcome
    }

    /// Returns the position of a data packet to send in its train.
    pub(super) const fn on_data_sent(&mut self) -> Train {
        let (left, count) = self.train;
        self.train.0 = left.saturating_sub(1);
        self.since_train += 1;
        match left {
            0 => Train::No,
            1 => Train::Last,
            _ if left == count => Train::First,
            _ => Train::Middle,
        }
    }

    /// Handles the measured rate of a train and the gap between its packets; returns whether the
    /// rate is valid.
    pub(super) fn on_train(&mut self, rate: f64, gap: Duration) -> bool {
        match self.probe {
            Probe::Sent { longer: false, .. } if gap < COARSE => {
                self.probe = Probe::Longer(rate);
                return false;
            }
            Probe::Sent { .. } => self.probe = Probe::Done,
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL: Instant = Instant::from_millis(9);
    const PACED: Instant = Instant::from_millis(5);

    fn begin(probing: &mut Probing, written: u64) -> Option<Outcome> {
        // 20 Mbit/s: a packet takes 0.56 ms.
        probing.begin_train(UNTIL, (2e7, 11_200.0), |count| count <= written)
    }

    /// Sends the rest of a train; returns its number of packets.
    fn send(probing: &mut Probing) -> usize {
        let mut places = Vec::new();
        while probing.data_at(PACED) == Instant::ZERO {
            places.push(probing.on_data_sent());
        }
        if let [first, middle @ .., last] = &*places {
            assert_eq!((*first, *last), (Train::First, Train::Last));
            assert!(middle.iter().all(|place| *place == Train::Middle));
        }
        places.len()
    }

    #[test]
    fn a_pair_that_came_too_fast_is_followed_by_a_longer_train() {
        let mut probing = Probing::new();
        assert_eq!(begin(&mut probing, 1), None);
        assert_eq!(probing.data_at(PACED), PACED, "one packet is no pair");
        assert_eq!(begin(&mut probing, 2), None);
        assert_eq!(probing.data_at(PACED), Instant::ZERO);
        assert_eq!(send(&mut probing), 2);
        assert_eq!(probing.data_at(PACED), UNTIL);
        assert!(!probing.on_train(5e7, COARSE / 2));
        assert_eq!(begin(&mut probing, 100), None);
        assert_eq!(send(&mut probing), 16);
        assert!(probing.on_train(4e7, COARSE / 2));
        assert_eq!(probing.data_at(PACED), PACED);
    }

    #[test]
    fn a_pair_has_to_do_where_there_is_no_more_to_send() {
        let mut probing = Probing::new();
        begin(&mut probing, 2);
        send(&mut probing);
        assert!(!probing.on_train(5e7, COARSE / 2));
        assert_eq!(begin(&mut probing, 15), Some(Outcome::Pair(5e7)));
        assert_eq!(probing.data_at(PACED), PACED);
    }

    #[test]
    fn probing_ends_after_three_pairs_without_a_result() {
        let mut probing = Probing::new();
        for expected in [None, None, Some(Outcome::GivenUp)] {
            begin(&mut probing, 2);
            assert_eq!(send(&mut probing), 2);
            assert_eq!(begin(&mut probing, 0), expected);
        }
        assert_eq!(probing.data_at(PACED), PACED);
    }

    #[test]
    fn a_train_of_a_millisecond_leaves_now_and_then() {
        let mut probing = Probing::new();
        probing.end();
        for between in [TRAIN_EVERY, TRAIN_EVERY - 3] {
            for _ in 0..between {
                assert_eq!(begin(&mut probing, 100), None);
                assert_eq!(probing.on_data_sent(), Train::No);
            }
            assert_eq!(begin(&mut probing, 100), None);
            assert_eq!(send(&mut probing), 3);
        }
        for _ in 3..TRAIN_EVERY {
            probing.on_data_sent();
        }
        begin(&mut probing, 100);
        probing.end_train();
        assert_eq!(probing.data_at(PACED), PACED, "there was nothing to send");
    }
}
