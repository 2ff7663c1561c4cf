//! Classification of losses by the receiver's two algorithms (thesis 3.6).
//!
//! [`Arrivals`] processes each data packet. Biaz compares the duration of a loss with the shortest
//! gap between packets; Spike uses the relative one-way trip time.

use std::time::Duration;

use airtcp_types::Instant;

use crate::config::{Biaz, NetworkKind};

/// The period of a window, which covers one to two of them.
const WINDOW: Duration = Duration::from_secs(10);
/// An increase of the trip time below this is noise.
const NOISE: Duration = Duration::from_millis(1);
/// The number of queued packets up to which there is no congestion.
const ALLOWED: u32 = 3;

/// The minimum and maximum of the last 10 to 20 seconds, because clocks drift, and routes and rates
/// change.
#[derive(Clone, Copy, Debug)]
struct Window {
    turned: Instant,
    /// The bounds of the previous and the current period.
    bounds: [Option<(i64, i64)>; 2],
}

impl Window {
    const fn new() -> Self {
        Self { turned: Instant::ZERO, bounds: [None; 2] }
    }

    fn add(&mut self, now: Instant, value: i64) {
        if now.since(self.turned) > WINDOW {
            let stale = now.since(self.turned) > 2 * WINDOW;
            self.bounds = [self.bounds[1].filter(|_| !stale), None];
            self.turned = now;
        }
        let (least, most) = self.bounds[1].unwrap_or((value, value));
        self.bounds[1] = Some((least.min(value), most.max(value)));
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        match self.bounds {
            [Some((least, most)), Some(now)] => Some((least.min(now.0), most.max(now.1))),
            [earlier, now] => now.or(earlier),
        }
    }
}

/// The last packet in order of transmission.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    sent: u32,
    transmission: u64,
    stalled: bool,
}

impl Last {
    const fn new(arrival: &Arrival, stalled: bool) -> Self {
        let Arrival { at, sent, transmission, .. } = *arrival;
        Self { at, sent, transmission, stalled }
    }
}

/// A received data packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) transmission: u64,
    /// The sending time, in microseconds of the sender's clock.
    pub(crate) sent: u32,
    pub(crate) size: usize,
    /// Whether the sender paused before it.
    pub(crate) pause: bool,
}

/// The cause of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    Congestive,
    Wireless,
    /// The packet was lost during a stall, and says nothing about the path.
    Stalled,
}

/// The result of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    /// The cause of losing the transmissions missing directly before it, if any.
    pub(crate) loss: Loss,
    /// The packet was sent before the end of a stall, and must not be measured.
    pub(crate) stalled: bool,
}

/// The state of both algorithms.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    kind: NetworkKind,
    biaz: Biaz,
    last: Option<Last>,
    /// The gaps between two full packets sent consecutively, in nanoseconds.
    gaps: Window,
    full: usize,
    /// The trip time of the first packet, to which the others are relative.
    origin: Option<u32>,
    /// Relative one-way trip times, in microseconds.
    trips: Window,
    least_of_epoch: Option<i64>,
    in_spike: bool,
    /// The trip time of the last packet.
    trip: Option<i64>,
    /// The end of the last stall.
    stalled_until: Instant,
}

impl Arrivals {
    pub(crate) const fn new(kind: NetworkKind, biaz: Biaz) -> Self {
        Self {
            kind,
            biaz,
            last: None,
            gaps: Window::new(),
            full: 0,
            origin: None,
            trips: Window::new(),
            least_of_epoch: None,
            in_spike: false,
            trip: None,
            stalled_until: Instant::ZERO,
        }
    }

    /// Sets the kind of network.
    pub(crate) const fn set_kind(&mut self, kind: NetworkKind) {
        self.kind = kind;
    }

    /// Handles a packet; returns the cause of losing the transmissions missing directly before it.
    /// A trip time that rises by more than `jump` from one packet to the next is not a queue but a
    /// stalled machine: packets sent before the end of the stall say nothing about the path.
    pub(crate) fn on_data(&mut self, arrival: Arrival, jump: Option<Duration>) -> Verdict {
        let trip = self.relative(&arrival);
        let rise = trip - self.trip.replace(trip).unwrap_or(trip);
        if jump.is_some_and(|jump| rise > jump.as_micros() as i64) {
            self.stalled_until = arrival.at;
        }
        let least = self.trips.bounds().map_or(trip, |(least, _)| least);
        let waited = Duration::from_micros((trip - least).max(0) as u64);
        if arrival.at < self.stalled_until + waited {
            if self.last.is_none_or(|last| last.transmission < arrival.transmission) {
                self.last = Some(Last::new(&arrival, true));
            }
            return Verdict { loss: Loss::Stalled, stalled: true };
        }
        self.trips.add(arrival.at, trip);
        self.on_trip(trip);
        let congestive = match self.kind {
            NetworkKind::WirelessLastHop => !self.is_wireless(&arrival),
            NetworkKind::General => self.in_spike,
        };
        let loss = match congestive {
            // Packets missing directly after the last stalled packet were dropped for the same
            // reason.
            _ if self.last.is_some_and(|last| last.stalled) => Loss::Stalled,
            true => Loss::Congestive,
            false => Loss::Wireless,
        };
        self.on_gap(&arrival);
        Verdict { loss, stalled: false }
    }

    /// Returns the trip time relative to that of the first packet.
    fn relative(&mut self, arrival: &Arrival) -> i64 {
        let trip = ((arrival.at.as_nanos() / 1_000) as u32).wrapping_sub(arrival.sent);
        let origin = *self.origin.get_or_insert(trip);
        i64::from(trip.wrapping_sub(origin) as i32)
    }

    /// Biaz, with the thesis's sigma and phi. The lower bound is inclusive: on a link of constant
    /// rate the time is exactly (n + 1) Tmin. A sender slower than the link raises the upper bound.
    fn is_wireless(&self, arrival: &Arrival) -> bool {
        let Some(last) = self.last else { return true };
        let lost = arrival.transmission.saturating_sub(last.transmission + 1);
        let Some(shortest) = self.shortest_gap().filter(|_| lost > 0 && !arrival.pause) else {
            return true;
        };
        let shortest = shortest.as_nanos() as f64;
        let sent = f64::from(arrival.sent.wrapping_sub(last.sent)) * 1e3 / (lost + 1) as f64;
        let took = arrival.at.since(last.at).as_nanos() as f64;
        let (sigma, phi, n) = (self.biaz.sigma, self.biaz.phi, lost as f64);
        // Sending times are in whole microseconds.
        (n + sigma) * shortest <= took + 1e3 && took < (n + phi) * shortest.max(sent)
    }

    fn on_gap(&mut self, arrival: &Arrival) {
        let here = Last::new(arrival, false);
        let Some(last) = self.last else {
            (self.last, self.full) = (Some(here), arrival.size);
            return;
        };
        if arrival.transmission <= last.transmission {
            return;
        }
        self.last = Some(here);
        self.full = self.full.max(arrival.size);
        let gap = arrival.at.since(last.at);
        // Packets that were read together have no gap of their own.
        let neighbours = arrival.transmission == last.transmission + 1;
        if neighbours && arrival.size == self.full && gap >= Duration::from_micros(1) {
            self.gaps.add(arrival.at, gap.as_nanos() as i64);
        }
    }

    /// Spike (Tobe et al.): starts above min + (max - min) / 2 and ends below min + (max - min)
    /// / 3.
    fn on_trip(&mut self, trip: i64) {
        let Some((least, most)) = self.trips.bounds() else { return };
        self.least_of_epoch = Some(self.least_of_epoch.map_or(trip, |before| before.min(trip)));
        let allowed = self.allowed().as_micros() as i64;
        let share = if self.in_spike { 3 } else { 2 };
        let bound = ((most - least) / share).max(allowed * 4 / share);
        self.in_spike = trip - least > bound;
    }

    /// Returns the queueing time up to which there is no congestion.
    fn allowed(&self) -> Duration {
        NOISE + self.shortest_gap().unwrap_or(Duration::ZERO) * ALLOWED
    }

    /// Returns the shortest gap between two packets: Tmin.
    pub(crate) fn shortest_gap(&self) -> Option<Duration> {
        self.gaps.bounds().map(|(least, _)| Duration::from_nanos(least.max(0) as u64))
    }

    /// Ends an epoch; returns whether the minimum queueing time of its packets indicates incipient
    /// congestion.
    pub(crate) fn end_epoch(&mut self) -> bool {
        let least = self.trips.bounds().map_or(0, |(least, _)| least);
        let over = self.least_of_epoch.take().map_or(0, |epoch| epoch - least);
        Duration::from_micros(over.max(0) as u64) > self.allowed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = 10_000;

    impl Arrivals {
        /// Classifies without stalls.
        fn judge(&mut self, arrival: Arrival) -> bool {
            self.on_data(arrival, None).loss == Loss::Congestive
        }
    }

    fn arrivals(kind: NetworkKind) -> Arrivals {
        Arrivals::new(kind, Biaz::default())
    }

    /// A packet sent at `sent` and received at `at`, both in microseconds.
    fn arrival(transmission: u64, sent: u64, at: u64) -> Arrival {
        let at = Instant::from_nanos(at * 1_000);
        Arrival { at, transmission, sent: sent as u32, size: 1_400, pause: false }
    }

    /// Twenty packets at the rate of the link.
    fn steady(kind: NetworkKind) -> Arrivals {
        let mut arrivals = arrivals(kind);
        for number in 0..20 {
            assert!(!arrivals.judge(arrival(number, number * GAP, number * GAP + 500)));
        }
        arrivals
    }

    #[test]
    fn biaz_has_a_loss_on_the_link_take_the_time_of_its_packets() {
        for lost in [1, 3, 9] {
            let next = 20 + lost;
            let wireless = arrival(next, next * GAP, next * GAP + 500);
            assert!(!steady(NetworkKind::WirelessLastHop).judge(wireless));
            // The packets of the hole were dropped in front of the link: the next one follows at
            // once.
            let dropped = arrival(next, next * GAP, 20 * GAP + 500);
            assert!(steady(NetworkKind::WirelessLastHop).judge(dropped));
            let late = arrival(next, next * GAP, (next + 2) * GAP + 500);
            assert!(steady(NetworkKind::WirelessLastHop).judge(late));
        }
    }

    #[test]
    fn a_sender_slower_than_the_link_loses_nothing_to_congestion() {
        let mut arrivals = steady(NetworkKind::WirelessLastHop);
        let at = |number: u64| 20 * GAP + (number - 20) * 4 * GAP;
        for number in [20, 21, 22, 25] {
            assert!(!arrivals.judge(arrival(number, at(number), at(number) + 500)), "{number}");
        }
    }

    #[test]
    fn spike_has_losses_be_congestive_while_the_trip_time_is_up() {
        let mut arrivals = steady(NetworkKind::General);
        let mut congestive = |number: u64, trip: u64| {
            arrivals.judge(arrival(number, number * GAP, number * GAP + trip))
        };
        assert!(!congestive(21, 500), "no rise");
        assert!(!congestive(22, 15_000), "a packet and a half in the queue");
        assert!(congestive(24, 90_500), "above the middle");
        assert!(congestive(26, 45_000), "not yet below the lower bound");
        assert!(!congestive(28, 20_000), "over");
    }

    #[test]
    fn a_queue_that_stays_through_an_epoch_is_incipient_congestion() {
        let mut arrivals = steady(NetworkKind::General);
        assert!(!arrivals.end_epoch());
        for number in 20..30 {
            arrivals.judge(arrival(number, number * GAP, number * GAP + 50_500));
        }
        assert!(arrivals.end_epoch());
        for number in 30..40 {
            let trip = if number == 35 { 500 } else { 50_500 };
            arrivals.judge(arrival(number, number * GAP, number * GAP + trip));
        }
        assert!(!arrivals.end_epoch(), "it was empty once");
    }

    #[test]
    fn packets_from_before_a_stall_are_not_measured() {
        let mut arrivals = steady(NetworkKind::General);
        let jump = Some(Duration::from_micros(5 * GAP));
        arrivals.end_epoch();
        // Nothing arrives for the time of ten packets; then all arrive at once, with one missing.
        for number in (20..30).filter(|number| *number != 25) {
            let verdict = arrivals.on_data(arrival(number, number * GAP, 30 * GAP), jump);
            assert_eq!(verdict, Verdict { loss: Loss::Stalled, stalled: true }, "{number}");
        }
        assert!(!arrivals.end_epoch());
        // Packets missing after them were dropped during the stall. Later losses are classified
        // again; without a queue they are the link's, because the stall did not raise the minimum
        // trip time.
        let after = |number: u64| arrival(number, number * GAP, number * GAP + 500);
        let stalled = arrivals.on_data(after(31), jump);
        assert_eq!(stalled, Verdict { loss: Loss::Stalled, stalled: false });
        let verdict = arrivals.on_data(after(33), jump);
        assert_eq!(verdict, Verdict { loss: Loss::Wireless, stalled: false });
        assert_eq!(arrivals.trips.bounds(), Some((0, 0)));
        // A slower link is recognised by packets sent after the arrival of the first slow one.
        let slower = |number: u64| arrival(number, number * GAP, (33 + (number - 33) * 10) * GAP);
        assert!(arrivals.on_data(slower(34), jump).stalled);
        assert!((35..43).all(|number| arrivals.on_data(slower(number), None).stalled));
        arrivals.end_epoch();
        assert!((44..52).all(|number| !arrivals.on_data(slower(number), None).stalled));
        assert!(arrivals.end_epoch(), "what waits now is a queue");
    }

    #[test]
    fn old_measurements_expire() {
        let mut window = Window::new();
        window.add(Instant::from_millis(1), 5);
        window.add(Instant::from_millis(10_500), 7);
        assert_eq!(window.bounds(), Some((5, 7)));
        window.add(Instant::from_millis(21_000), 9);
        assert_eq!(window.bounds(), Some((7, 9)));
        window.add(Instant::from_millis(90_000), 9);
        assert_eq!(window.bounds(), Some((9, 9)));
    }
}
