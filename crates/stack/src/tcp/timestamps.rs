//! Timestamps (RFC 7323): sending, echoing, and PAWS.

use std::cmp::Ordering;
use std::time::Duration;

use airtcp_types::{ExtSeq, Instant};
use airtcp_wire::options::Timestamps as Wire;

/// The age of TS.Recent after which the peer's clock may have wrapped (RFC 7323 section 5.5).
const OUTDATED: Duration = Duration::from_secs(24 * 24 * 3600);

/// The timestamp clocks of both ends of a connection. The local clock counts milliseconds from a
/// secret offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamps {
    offset: u32,
    /// TS.Recent.
    recent: u32,
    recent_at: Instant,
}

impl Timestamps {
    /// Creates the state: the local clock has the value `offset` at the origin, and the peer's
    /// clock is unknown.
    pub(super) const fn new(offset: u32) -> Self {
        Self { offset, recent: 0, recent_at: Instant::ZERO }
    }

    /// The option for a segment that is sent now.
    pub(super) fn option(&self, now: Instant) -> Wire {
        Wire { val: self.val(now), ecr: self.recent }
    }

    fn val(&self, now: Instant) -> u32 {
        self.offset.wrapping_add(now.as_millis() as u32)
    }

    /// Records the peer's first timestamp, from its SYN.
    pub(super) fn start(&mut self, now: Instant, val: u32) {
        self.recent = val;
        self.recent_at = now;
    }

    /// Whether a segment with this TSval is an old duplicate (PAWS, RFC 7323 section 5.3 R1).
    pub(super) fn is_old(&self, now: Instant, val: u32) -> bool {
        self.order(val) == Ordering::Less && now.since(self.recent_at) < OUTDATED
    }

    /// Records the TSval of an acceptable segment if it is the one to echo (RFC 7323 section 4.3
    /// (2)). Segments beyond the last ACK sent are skipped, so that the delay of a delayed ACK is
    /// measured.
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        val: u32,
        seq: ExtSeq,
        last_ack_sent: ExtSeq,
    ) {
        if seq <= last_ack_sent && !self.is_old(now, val) {
            self.start(now, val);
        }
    }

    /// Compares a TSval with the last one received.
    pub(super) fn order(&self, val: u32) -> Ordering {
        (val.wrapping_sub(self.recent) as i32).cmp(&0)
    }

    /// The time at which this end created the TSval that was echoed as `ecr`; `None` if it cannot
    /// have done so. A peer that has not received a timestamp echoes zero.
    pub(super) fn echo(&self, now: Instant, ecr: u32) -> Option<Instant> {
        if ecr == 0 {
            return None;
        }
        let age = self.val(now).wrapping_sub(ecr);
        let made = now.as_millis().checked_sub(u64::from(age))?;
        (age <= i32::MAX as u32).then_some(Instant::from_millis(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_the_instant_it_was_made_across_the_wrap() {
        let clock = Timestamps::new(u32::MAX - 5);
        let made = Instant::from_millis(3);
        let now = Instant::from_millis(100);
        assert_eq!(clock.echo(now, clock.option(made).val), Some(made));
        assert_eq!(clock.echo(made, clock.option(now).val), None, "made in the future");
        assert_eq!(clock.echo(now, 0), None, "none was heard");
    }

    // Shows: RFC7323-5.5
    #[test]
    fn paws_refuses_what_is_older_until_24_days_have_passed() {
        let mut clock = Timestamps::new(0);
        clock.start(Instant::ZERO, 100);
        assert!(clock.is_old(Instant::from_millis(1), 99));
        assert!(!clock.is_old(Instant::from_millis(1), 100));
        assert!(!clock.is_old(Instant::ZERO + OUTDATED, 99));
    }

    // Shows: RFC7323-5.4-2, RFC7323-4.1
    #[test]
    fn our_clock_comes_round_after_49_days() {
        let clock = Timestamps::new(7);
        let at = |millis| clock.option(Instant::from_millis(millis)).val;
        assert!((0..255_000).all(|ms| at(ms + 1) == at(ms) + 1));
        assert_eq!((at(1 << 32), at((1 << 32) - 1)), (at(0), at(0).wrapping_sub(1)));
    }

    #[test]
    fn a_segment_beyond_the_last_ack_is_not_echoed() {
        let mut clock = Timestamps::new(0);
        clock.start(Instant::ZERO, 100);
        clock.on_segment(Instant::ZERO, 105, ExtSeq(11), ExtSeq(10));
        assert_eq!(clock.option(Instant::ZERO).ecr, 100);
        clock.on_segment(Instant::ZERO, 105, ExtSeq(10), ExtSeq(10));
        assert_eq!(clock.option(Instant::ZERO).ecr, 105);
    }
}
