//! Spreads transmissions over time (draft-ietf-ccwg-bbr, "Pacing Rate" and "Send Quantum").
//!
//! Data leaves in quanta. After each, the pacer waits for the time that the quantum takes at the
//! rate. The draft gives a sender that wakes late no credit, so such a sender loses rate for good.
//! Here it makes up for the time that it was late, at most for the longer of two milliseconds and
//! one quantum. Half a quantum of that is spread over the gaps that follow; the rest leaves at
//! once, because a sender that always wakes late would never make up for it otherwise.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

/// The most time that a sender that wakes late makes up for, or one quantum if that is longer.
const CREDIT: Duration = Duration::from_millis(2);
/// Time whose data is a quantum where the control names none.
const QUANTUM: Duration = Duration::from_millis(1);
const LARGEST_QUANTUM: ByteCount = ByteCount(64 * 1024);
/// Quanta of 64 KiB are no closer to each other than this, which makes them larger above 5 Gbit/s:
/// a timer for each of them costs a sender on a TUN device a third of its throughput there.
const SHORTEST_GAP: Duration = Duration::from_micros(100);

/// Lets bytes leave at a rate, a quantum at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// Zero where nothing is paced.
    rate: Rate,
    quantum: ByteCount,
    /// What is left of the quantum that is leaving.
    left: ByteCount,
    /// When the bytes sent so far have had their time.
    next: Instant,
    /// Whether data has waited for `next`.
    waited: bool,
    /// When data that waits is to be asked for again; [`Instant::ZERO`] if none does. Every
    /// connection has it, and is to be small.
    wakes: Instant,
}

impl Pacer {
    /// Sets the rate, and the most that leaves at once; `None` paces nothing.
    ///
    /// A wait that goes on becomes shorter if the rate rises.
    pub(crate) fn set_rate(
        &mut self,
        now: Instant,
        rate: Option<Rate>,
        quantum: Option<ByteCount>,
        smss: ByteCount,
    ) {
        let new = rate.unwrap_or(Rate::ZERO);
        let default = || new.bytes_in(QUANTUM).min(LARGEST_QUANTUM).max(smss * 2);
        let quantum = quantum.unwrap_or_else(default).max(smss);
        let is_largest = quantum >= LARGEST_QUANTUM;
        self.quantum = if is_largest { quantum.max(new.bytes_in(SHORTEST_GAP)) } else { quantum };
        if self.next > now && self.rate < new {
            let ratio = self.rate.bytes_per_sec() as f64 / new.bytes_per_sec() as f64;
            self.next = now + self.next.since(now).mul_f64(ratio);
        }
        self.rate = new;
    }

    /// The rate.
    pub(crate) fn rate(&self) -> Option<Rate> {
        (self.rate.bytes_per_sec() > 0).then_some(self.rate)
    }

    /// When the data that is there to be sent may leave, if that is later than `now`.
    pub(crate) fn blocked_until(&mut self, now: Instant) -> Option<Instant> {
        self.rate()?;
        let blocked = self.left == ByteCount::ZERO && self.next > now;
        self.waited |= blocked;
        blocked.then_some(self.next)
    }

    /// Whether the data that is there to be sent has to wait; [`wakes_at`](Self::wakes_at) says how
    /// long.
    pub(crate) fn holds_back(&mut self, now: Instant) -> bool {
        let until = self.blocked_until(now);
        self.wakes = until.unwrap_or(self.wakes);
        until.is_some()
    }

    /// When data may leave that was held back.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        Some(self.wakes).filter(|at| *at > Instant::ZERO)
    }

    /// Works that deadline, if it is due.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.wakes <= now {
            self.wakes = Instant::ZERO;
        }
    }

    /// No data waits for the pacer any longer: what leaves next is not late.
    pub(crate) const fn end_wait(&mut self) {
        self.waited = false;
    }

    /// `bytes` leave now.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: ByteCount) {
        let Some(rate) = self.rate() else { return };
        if self.left == ByteCount::ZERO {
            let gap = rate.time_for(self.quantum);
            let waited = std::mem::take(&mut self.waited);
            let late =
                if waited { now.since(self.next).min(CREDIT.max(gap)) } else { Duration::ZERO };
            self.next = self.next.max(now - late);
            self.left = self.quantum + rate.bytes_in(late.saturating_sub(gap / 2));
        }
        self.left -= bytes;
        self.next += rate.time_for(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: ByteCount = ByteCount(1000);

    fn pacer(bits_per_sec: u64) -> Pacer {
        let mut pacer = Pacer::default();
        pacer.set_rate(Instant::ZERO, Some(Rate::from_bits_per_sec(bits_per_sec)), None, SMSS);
        pacer
    }

    /// Sends all it may for `time` from `begin`, each wake-up late by `late`; gives when each
    /// segment left.
    fn drive(pacer: &mut Pacer, begin: Instant, time: Duration, late: Duration) -> Vec<Instant> {
        let (mut now, mut sent) = (begin, Vec::new());
        while now < begin + time {
            match pacer.blocked_until(now) {
                Some(next) => now = next + late,
                None => {
                    pacer.on_sent(now, SMSS);
                    sent.push(now);
                }
            }
        }
        sent
    }

    #[test]
    fn it_holds_its_rate_though_every_wake_up_is_late() {
        for late in [0, 300, 1900] {
            let mut pacer = pacer(8_000_000);
            let begin = Instant::from_millis(50);
            let late = Duration::from_micros(late);
            let sent = drive(&mut pacer, begin, Duration::from_secs(1), late).len();
            // 1 MB/s for one second, the first quantum, and the credit.
            assert!((998..=1_004).contains(&sent), "{sent} segments in a second, late by {late:?}");
        }
    }

    #[test]
    fn a_quantum_leaves_at_once_and_no_more() {
        let mut pacer = Pacer::default();
        let rate = Some(Rate::from_bits_per_sec(8_000_000));
        pacer.set_rate(Instant::ZERO, rate, Some(SMSS * 4), SMSS);
        let time = Duration::from_millis(12);
        let sent = drive(&mut pacer, Instant::from_millis(50), time, Duration::ZERO);
        let at = |ms: u64| sent.iter().filter(|at| **at == Instant::from_millis(50 + ms)).count();
        assert_eq!([0, 4, 8].map(at), [4; 3]);
        assert_eq!(sent.len(), 12);
    }

    #[test]
    fn quanta_are_no_closer_than_the_shortest_gap() {
        let mut pacer = Pacer::default();
        for (gigabits, gap) in [(1, 528), (4, 132), (40, 100)] {
            let rate = Some(Rate::from_bits_per_sec(gigabits * 1_000_000_000));
            pacer.set_rate(Instant::ZERO, rate, None, SMSS);
            while pacer.blocked_until(Instant::ZERO).is_none() {
                pacer.on_sent(Instant::ZERO, SMSS);
            }
            let next =
                pacer.blocked_until(Instant::ZERO).map(|at| at.since(Instant::ZERO).as_micros());
            assert_eq!(next, Some(gap), "{gigabits} Gbit/s");
            pacer = Pacer::default();
        }
    }

    #[test]
    fn after_a_stall_little_leaves_at_once() {
        let mut pacer = pacer(8_000_000);
        drive(&mut pacer, Instant::from_millis(50), Duration::from_millis(10), Duration::ZERO);
        // A stall of 100 ms gives a credit of 2 ms, which is one quantum here.
        let after = Instant::from_millis(160);
        let sent = drive(&mut pacer, after, Duration::from_millis(20), Duration::ZERO);
        for window in [4u64, 8] {
            let within =
                sent.iter().filter(|at| at.since(after).as_millis() < window.into()).count();
            assert!(within as u64 <= window * 2, "{within} in {window} ms: {sent:?}");
        }
        assert!((20..=23).contains(&sent.len()), "{}", sent.len());
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, ByteCount(1 << 40));
        assert_eq!(pacer.blocked_until(Instant::ZERO), None);
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut pacer = pacer(8_000);
        let send_all = |pacer: &mut Pacer, now| {
            let mut sent = 0;
            while pacer.blocked_until(now).is_none() {
                pacer.on_sent(now, SMSS);
                sent += 1;
            }
            pacer.end_wait();
            sent
        };
        assert_eq!(send_all(&mut pacer, Instant::ZERO), 2);
        assert_eq!(send_all(&mut pacer, Instant::from_millis(60_000)), 2);
    }

    #[test]
    fn a_higher_rate_shortens_a_wait() {
        let mut pacer = pacer(8_000);
        while pacer.blocked_until(Instant::ZERO).is_none() {
            pacer.on_sent(Instant::ZERO, SMSS);
        }
        assert_eq!(pacer.blocked_until(Instant::ZERO), Some(Instant::from_millis(2_000)));
        let now = Instant::from_millis(1_000);
        pacer.set_rate(now, Some(Rate::from_bits_per_sec(80_000)), None, SMSS);
        assert_eq!(pacer.blocked_until(now), Some(Instant::from_millis(1_100)));
    }
}
