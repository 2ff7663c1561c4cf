//! Spreads transmissions over time (draft-ietf-ccwg-bbr, "Pacing Rate" and "Send Quantum").
//!
//! Data is sent in quanta. After each, the pacer waits for the time that the quantum takes at the
//! pacing rate. The draft gives no credit to a sender that wakes up late, which then never reaches
//! its rate. This pacer lets it catch up on the delay, up to two milliseconds or one quantum,
//! whichever is longer. Half a quantum of the credit shortens the following gaps; the rest is sent
//! at once, because a sender that always wakes up late would not catch up otherwise.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

/// The most time that a late sender catches up on, unless one quantum is longer.
const CREDIT: Duration = Duration::from_millis(2);
/// The quantum, as time at the pacing rate, if the control returns none.
const QUANTUM: Duration = Duration::from_millis(1);
const LARGEST_QUANTUM: ByteCount = ByteCount(64 * 1024);
/// The shortest time between quanta of 64 KiB or more, which makes them larger above 5 Gbit/s: with
/// a timer for each of them, a sender on a TUN device would lose a third of its throughput.
const SHORTEST_GAP: Duration = Duration::from_micros(100);

/// Releases bytes at a rate, one quantum at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// Zero without pacing.
    rate: Rate,
    quantum: ByteCount,
    /// The rest of the current quantum.
    left: ByteCount,
    /// When the bytes sent so far have taken their time at the pacing rate.
    next: Instant,
    /// Whether data has waited for `next`.
    waited: bool,
    /// When to ask again for data that waits; [`Instant::ZERO`] if none does, which keeps every
    /// connection small.
    wakes: Instant,
}

impl Pacer {
    /// Sets the rate and the quantum; `None` as rate turns pacing off.
    ///
    /// A higher rate shortens the current wait.
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

    /// Returns the pacing rate; `None` without pacing.
    pub(crate) fn rate(&self) -> Option<Rate> {
        (self.rate.bytes_per_sec() > 0).then_some(self.rate)
    }

    /// Returns when available data may be sent, if that is later than `now`.
    pub(crate) fn blocked_until(&mut self, now: Instant) -> Option<Instant> {
        self.rate()?;
        let blocked = self.left == ByteCount::ZERO && self.next > now;
        self.waited |= blocked;
        blocked.then_some(self.next)
    }

    /// Returns whether available data has to wait; [`wakes_at`](Self::wakes_at) then returns until
    /// when.
    pub(crate) fn holds_back(&mut self, now: Instant) -> bool {
        let until = self.blocked_until(now);
        self.wakes = until.unwrap_or(self.wakes);
        until.is_some()
    }

    /// Returns when waiting data may be sent.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        Some(self.wakes).filter(|at| *at > Instant::ZERO)
    }

    /// Handles the expiry of that deadline.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.wakes <= now {
            self.wakes = Instant::ZERO;
        }
    }

    /// Records that no data waits for the pacer, so that the next data is not late.
    pub(crate) const fn end_wait(&mut self) {
        self.waited = false;
    }

    /// Records that `bytes` are sent now.
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

    /// Sends for `time` from `begin`, with each wake-up late by `late`; returns when each segment
    /// was sent.
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
    fn the_pacer_keeps_its_rate_with_late_wake_ups() {
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
