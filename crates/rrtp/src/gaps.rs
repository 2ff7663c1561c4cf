//! The receiver's averages of the gaps between packets, as sent and as received (thesis 3.4.1).
//!
//! Both averages are of the same packets, which carry their sending times, so that a report never
//! compares different periods. A gap is divided by the number of transmissions that it spans, so
//! that a loss does not look like a slow receiver.

use std::time::Duration;

use airtcp_types::Instant;

use crate::wire::{Data, Train};

/// The number of gaps in an epoch.
pub(crate) const EPOCH: u32 = 10;
const LONG: f64 = 50.0;
const SHORT: f64 = 10.0;
/// The minimum time of a measured gap: at more than one packet per millisecond (11 Mbit/s), a gap
/// spans several packets.
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);
/// The relative difference above which the averages disagree.
const DISAGREE: f64 = 0.1;
/// The number of such epochs after which the short average replaces the long one.
const PATIENCE: u32 = 5;

/// A long and a short running average, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Averages {
    count: f64,
    long: f64,
    short: f64,
}

impl Averages {
    /// Adds a gap: the plain mean at first, then the weights of Fig. 3.4.
    fn add(&mut self, gap: f64) {
        self.count += 1.0;
        self.long += (gap - self.long) / self.count.min(LONG);
        self.short += (gap - self.short) / self.count.min(SHORT);
    }

    fn disagree(&self) -> bool {
        (self.short - self.long).abs() > DISAGREE * self.long
    }
}

/// The start of a gap.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    sent: u32,
    transmission: u64,
}

/// The result of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Epoch {
    /// The first transmission in the averages.
    pub(crate) since: u64,
    pub(crate) send_gap: Duration,
    pub(crate) receive_gap: Duration,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    mark: Option<Mark>,
    /// The rate bit of the newest packet.
    rate_bit: bool,
    send: Averages,
    receive: Averages,
    /// Whether the next gap is not measured.
    skipped: bool,
    /// The number of gaps measured since the last skipped one.
    measured: u32,
    half_epoch: Option<Duration>,
    in_epoch: u32,
    since: u64,
    disagreements: u32,
}

impl Gaps {
    /// Handles a packet with the full number `transmission`; returns the epoch that it completes.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        transmission: u64,
        data: &Data<'_>,
    ) -> Option<Epoch> {
        let here = Mark { at: now, sent: data.sent, transmission };
        let Some(mark) = self.mark.filter(|mark| mark.transmission < transmission) else {
            if self.mark.is_none() {
                (self.mark, self.since) = (Some(here), transmission);
                self.rate_bit = data.rate_bit;
            }
            return None;
        };
        if data.rate_bit != self.rate_bit {
            let Self { half_epoch, measured, .. } = *self;
            let (mark, rate_bit, since) = (Some(here), data.rate_bit, transmission);
            *self = Self { mark, rate_bit, half_epoch, measured, since, ..Self::default() };
            return None;
        }
        if data.pause || std::mem::take(&mut self.skipped) {
            self.mark = Some(here);
            return None;
        }
        let span = now.since(mark.at);
        // All packets of a train but the first leave ahead of their paced time, and do not show the
        // rate.
        if span < SHORTEST || matches!(data.train, Train::Middle | Train::Last) {
            return None;
        }
        let steps = (transmission - mark.transmission) as f64;
        let sent = f64::from(data.sent.wrapping_sub(mark.sent)) * 1e3;
        self.send.add(sent / steps);
        self.receive.add(span.as_nanos() as f64 / steps);
        self.mark = Some(here);
        self.measured = self.measured.saturating_add(1);
        self.in_epoch += 1;
        (self.in_epoch >= EPOCH).then(|| self.end_epoch(transmission))
    }

    /// Returns half the duration of the last complete epoch; `None` until an epoch's number of gaps
    /// has been measured since the last skipped packet: if packets are skipped all the time, that
    /// is a property of the path.
    pub(crate) fn half_epoch(&self) -> Option<Duration> {
        self.half_epoch.filter(|_| self.measured >= EPOCH)
    }

    /// Skips the next gap: the next packet waited for something other than a queue.
    pub(crate) const fn skip(&mut self) {
        (self.skipped, self.measured) = (true, 0);
    }

    fn end_epoch(&mut self, transmission: u64) -> Epoch {
        let disagree = self.receive.disagree();
        self.disagreements = if disagree { self.disagreements + 1 } else { 0 };
        let nanos = |gap: f64| Duration::from_nanos(gap as u64);
        let [send_gap, receive_gap] = [self.send, self.receive]
            .map(|averages| nanos(if disagree { averages.short } else { averages.long }));
        let epoch = Epoch { since: self.since, send_gap, receive_gap };
        if self.disagreements >= PATIENCE {
            self.disagreements = 0;
            self.send.long = self.send.short;
            self.receive.long = self.receive.short;
        }
        self.half_epoch = Some(receive_gap.max(SHORTEST) * EPOCH / 2);
        (self.in_epoch, self.since) = (0, transmission);
        epoch
    }
}

/// Measures trains: packets sent back to back, and the gaps between them on arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trains {
    first: Option<Mark>,
    /// The number of packets received after the first one.
    came: u64,
}

impl Trains {
    /// Handles a packet; returns the gap of the train that it completes: the larger of both ends'
    /// (thesis 3.2). A train that lost a packet is not measured: packets dropped by a full queue
    /// would make the link seem many times as fast as it is.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        transmission: u64,
        data: &Data<'_>,
    ) -> Option<Duration> {
        let here = Mark { at: now, sent: data.sent, transmission };
        match data.train {
            Train::No => self.first = None,
            Train::First => (self.first, self.came) = (Some(here), 0),
            Train::Middle => self.came += 1,
            Train::Last => {
                let (first, steps) = (self.first.take()?, self.came + 1);
                if first.transmission + steps != transmission {
                    return None;
                }
                let sent = Duration::from_micros(data.sent.wrapping_sub(first.sent).into());
                let gap = now.since(first.at).max(sent);
                return Some(gap / u32::try_from(steps).ok()?);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(sent: u32) -> Data<'static> {
        Data {
            number: 0,
            transmission: 0,
            sent,
            fin: false,
            pause: false,
            rate_bit: false,
            recovery_bit: false,
            train: Train::No,
            nonce: false,
            payload: &[],
        }
    }

    /// Sends a packet every `send` microseconds, which arrives every `receive`, except for those in
    /// `lost`.
    fn epochs(
        gaps: &mut Gaps,
        numbers: std::ops::Range<u64>,
        [send, receive]: [u64; 2],
        lost: impl Fn(u64) -> bool,
    ) -> Vec<Epoch> {
        let mut ended = Vec::new();
        for number in numbers.filter(|number| !lost(*number)) {
            let at = Instant::from_nanos(number * receive * 1_000);
            ended.extend(gaps.on_data(at, number, &data((number * send) as u32)));
        }
        ended
    }

    #[test]
    fn an_epoch_is_ten_gaps_and_a_loss_is_no_slow_receiver() {
        let mut gaps = Gaps::default();
        let ended = epochs(&mut gaps, 0..101, [10_000, 11_000], |number| number % 20 == 7);
        assert_eq!(ended.len(), 9);
        for epoch in ended {
            assert_eq!(epoch.send_gap, Duration::from_micros(10_000));
            assert_eq!(epoch.receive_gap, Duration::from_micros(11_000));
        }
    }

    #[test]
    fn above_a_packet_per_millisecond_a_gap_is_a_train() {
        let mut gaps = Gaps::default();
        let ended = epochs(&mut gaps, 0..1_001, [12, 12], |_| false);
        // A gap spans 84 packets, 1008 microseconds.
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].receive_gap, Duration::from_micros(12));
    }

    #[test]
    fn the_averages_have_the_weights_of_the_thesis() {
        let mut averages = Averages::default();
        (0..50).for_each(|_| averages.add(1.0));
        averages.add(2.0);
        assert!((averages.long - 1.02).abs() < 1e-12 && (averages.short - 1.1).abs() < 1e-12);
    }

    #[test]
    fn where_the_averages_disagree_the_short_one_counts_and_stays() {
        let mut gaps = Gaps::default();
        epochs(&mut gaps, 0..51, [10_000, 10_000], |_| false);
        // Half the rate from here on, at continuing times.
        let mut at = Instant::from_nanos(50 * 10_000_000);
        let mut ended = Vec::new();
        for number in 51..151 {
            at += Duration::from_micros(20_000);
            ended.extend(gaps.on_data(at, number, &data(number as u32 * 10_000)));
        }
        let first = ended[0].receive_gap.as_secs_f64();
        assert!((0.015..0.018).contains(&first), "the short average, not the long: {first}");
        let long = gaps.receive.long;
        assert!((19.9e6..=20e6).contains(&long), "the short one has taken its place: {long}");
    }

    #[test]
    fn pauses_and_new_rates_are_no_gaps() {
        let mut gaps = Gaps::default();
        let at = Instant::from_millis;
        gaps.on_data(at(0), 0, &data(0));
        gaps.on_data(at(10), 1, &data(10_000));
        gaps.on_data(at(500), 2, &Data { pause: true, ..data(500_000) });
        gaps.on_data(at(510), 3, &data(510_000));
        assert_eq!((gaps.receive.count, gaps.receive.long), (2.0, 10e6));
        gaps.on_data(at(520), 4, &Data { rate_bit: true, ..data(520_000) });
        assert_eq!((gaps.receive.count, gaps.since), (0.0, 4));
        // The first packet at the rate, 5, was lost: the next one has the toggled bit, too.
        gaps.on_data(at(540), 6, &data(540_000));
        assert_eq!((gaps.receive.count, gaps.since), (0.0, 6));
    }

    #[test]
    fn a_train_is_measured_by_the_slower_end() {
        let mut trains = Trains::default();
        let member = |train, sent| Data { train, ..data(sent) };
        let at = Instant::from_millis;
        assert_eq!(trains.on_data(at(0), 5, &member(Train::First, 0)), None);
        assert_eq!(
            trains.on_data(at(10), 6, &member(Train::Last, 0)),
            Some(Duration::from_millis(10))
        );
        assert_eq!(trains.on_data(at(20), 7, &member(Train::Last, 0)), None, "its first was lost");
        trains.on_data(at(30), 8, &member(Train::First, 30_000));
        trains.on_data(at(31), 9, &member(Train::Middle, 32_000));
        let gap = trains.on_data(at(31), 10, &member(Train::Last, 34_000));
        assert_eq!(gap, Some(Duration::from_millis(2)));
    }

    #[test]
    fn a_train_that_a_full_queue_cut_down_is_none() {
        let mut trains = Trains::default();
        let at = Instant::from_millis;
        trains.on_data(at(0), 5, &Data { train: Train::First, ..data(0) });
        trains.on_data(at(1), 6, &Data { train: Train::Middle, ..data(0) });
        // Thirteen packets are missing: with the number of transmissions, the measured rate would
        // be seven times that of the link.
        assert_eq!(trains.on_data(at(2), 20, &Data { train: Train::Last, ..data(0) }), None);
    }
}
