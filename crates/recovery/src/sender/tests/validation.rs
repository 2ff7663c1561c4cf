//! Window validation (RFC 7661): windows that are not used.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use crate::testkit::{RTT, SMSS, ack, ms, pump, sender_of, supply};
use crate::{Combination, Profile, Sender};

fn segments(count: u64) -> ByteCount {
    ByteCount(count * SMSS)
}

/// A sender that has grown its window by sending as fast as it may, and whose application then
/// slows down.
struct Slow {
    sender: Sender,
    now: Instant,
    acked: u64,
}

impl Slow {
    /// A sender that has filled a window of at least 80 segments.
    fn new(combination: &str, profile: Profile) -> Self {
        let combination: Combination = combination.parse().expect("a known combination");
        let sender = sender_of(combination, Profile { hystart: false, ..profile });
        let mut slow = Self { sender, now: ms(0), acked: 0 };
        while slow.sender.cwnd() < segments(80) {
            slow.round(slow.sender.cwnd().0 / SMSS);
        }
        slow
    }

    /// Sends `count` segments at once, and receives the ACK of each a round trip later.
    fn round(&mut self, count: u64) {
        let (sent, _) = pump(&mut self.sender, self.now, &supply(self.acked + count));
        assert_eq!(sent.len() as u64, count, "the window has room");
        self.now += RTT;
        for _ in 0..count {
            self.acked += 1;
            self.sender.on_ack(self.now, &ack(self.acked, &[]));
        }
    }

    /// Runs rounds of `count` segments until `time` has passed.
    fn rounds_for(&mut self, time: Duration, count: u64) {
        let end = self.now + time;
        while self.now < end {
            self.round(count);
        }
    }
}

#[test]
fn a_window_unused_for_five_minutes_is_halved() {
    // RFC 7661 section 4.4.3.
    for name in ["sack/reno", "rack/cubic", "newreno/westwood"] {
        let mut slow = Slow::new(name, Profile::modern());
        let before = slow.sender.cwnd();
        slow.rounds_for(Duration::from_secs(299), 5);
        assert_eq!(slow.sender.cwnd(), before, "{name}");
        slow.rounds_for(Duration::from_secs(3), 5);
        assert_eq!(slow.sender.cwnd(), before.half(), "{name}");
        slow.rounds_for(Duration::from_secs(1_200), 5);
        // It stops at the initial window.
        assert_eq!(slow.sender.cwnd(), segments(10), "{name}");
    }
}

#[test]
fn using_half_of_the_window_validates_it() {
    let mut slow = Slow::new("sack/reno", Profile::modern());
    let before = slow.sender.cwnd();
    slow.rounds_for(Duration::from_secs(700), before.0 / SMSS / 2);
    assert_eq!(slow.sender.cwnd(), before);
}

#[test]
fn the_paper_profile_keeps_its_windows() {
    let mut slow = Slow::new("sack/reno", Profile::paper());
    let before = slow.sender.cwnd();
    slow.rounds_for(Duration::from_secs(700), 2);
    assert_eq!(slow.sender.cwnd(), before);
}

#[test]
fn a_loss_is_answered_from_what_was_acknowledged_lately() {
    // RFC 7661 section 4.4.1. Thirty segments in a round trip, then four, and the first of
    // these is lost.
    let lose = |profile: Profile| {
        let mut slow = Slow::new("sack/reno", profile);
        slow.rounds_for(Duration::from_secs(3), 30);
        let base = slow.acked;
        pump(&mut slow.sender, slow.now, &supply(base + 4));
        let sacked = [crate::testkit::segments(base + 1, base + 4)];
        slow.sender.on_ack(slow.now + RTT, &ack(base, &sacked));
        assert_eq!(slow.sender.stats().reductions, 1);
        slow.sender.control_state().ssthresh
    };
    assert_eq!(lose(Profile::modern()), Some(segments(15)));
    // Without window validation, half of the four segments in flight.
    let without = Profile { window_validation: false, ..Profile::modern() };
    assert_eq!(lose(without), Some(segments(2)));
}

#[test]
fn slow_start_ends_at_twice_what_was_outstanding() {
    // draft-ietf-ccwg-ratelimited-increase section 3, with ACKs of several segments.
    for name in ["sack/reno", "rack/cubic", "le/westwood", "newreno/veno"] {
        let combination: Combination = name.parse().expect("a known combination");
        let mut sender = sender_of(combination, Profile { hystart: false, ..Profile::modern() });
        let (mut acked, mut now) = (0, ms(0));
        for count in [10, 12, 15, 15, 15] {
            pump(&mut sender, now, &supply(acked + count));
            now += RTT;
            for step in [count - 7, 5, 2] {
                acked += step;
                sender.on_ack(now, &ack(acked, &[]));
            }
            assert!(sender.cwnd() <= segments(2 * count), "{name}: {} of {count}", sender.cwnd());
        }
        assert_eq!(sender.cwnd(), segments(30), "{name}");
    }
}
