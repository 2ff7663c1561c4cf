//! What happens to packets that are taken back from the radio.

use std::cell::Cell;
use std::collections::BTreeSet;

use super::*;
use crate::radio::{FrameNo, Unsent};

type PassAgain = fn(&mut Radio, Instant, Unsent, Packet) -> Option<FrameNo>;

/// Passes 200 packets; at each deadline takes back what waits, and passes it again. Returns the
/// numbers in the order of their arrival.
fn drained_at_each_step(arq: Arq, seed: u64, pass_again: PassAgain) -> Vec<u32> {
    let mut radio = radio(&format!("biterror 5e-5 queue 1000 seed {seed}"), arq);
    let (mut now, mut arrived) = (Instant::ZERO, Vec::new());
    for sent in 0..200 {
        radio.pass(now, ALL, numbered(sent, 1_460));
    }
    while let Some(due) = radio.poll_timeout() {
        now = due;
        while let Some((_, packet)) = radio.poll_transmit(now) {
            arrived.push(number(&packet));
        }
        for (unsent, packet) in radio.drain(now, ALL, &|_| true) {
            assert!(pass_again(&mut radio, now, unsent, packet).is_some());
        }
    }
    let counters = radio.counters(Way::Forth);
    assert_eq!(counters.received, counters.forwarded + counters.channel_lost);
    arrived
}

fn copies(arrived: &[u32]) -> usize {
    arrived.len() - arrived.iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn a_frame_that_arrived_is_not_delivered_again_after_a_drain() {
    for (_, arq) in Arq::ALL {
        let with = |pass_again: PassAgain| {
            let arrived = (0..5).map(|seed| drained_at_each_step(arq, seed, pass_again));
            arrived.map(|arrived| (copies(&arrived), arrived.len())).collect::<Vec<_>>()
        };
        let again = with(|radio, now, unsent, packet| radio.pass_again(now, ALL, unsent, packet));
        assert!(again.iter().all(|(copies, _)| *copies == 0), "{arq}: {again:?}");
        assert!(again.iter().all(|(_, arrived)| *arrived > 50), "{arq}: {again:?}");
        // As new packets, those with a lost link ACK arrive twice.
        let new = with(|radio, now, _, packet| radio.pass(now, ALL, packet));
        assert_eq!(new.iter().any(|(copies, _)| *copies > 0), arq.acknowledges(), "{arq}: {new:?}");
    }
}

#[test]
fn a_packet_that_was_taken_back_keeps_its_number() {
    let mut radio = radio("queue 3", Arq::Mac);
    let now = Instant::from_millis(5);
    let frames: Vec<_> = (0..3).map(|n| radio.pass(now, ALL, numbered(n, 10)).unwrap()).collect();
    let taken = radio.drain(now, ALL, &|_| true);
    let numbers: Vec<_> = taken.iter().map(|(unsent, _)| unsent.no).collect();
    assert_eq!(numbers, frames[1..], "the first is in transmission");
    assert!(frames[1..].iter().all(|frame| !radio.holds(*frame)));
    for (unsent, packet) in taken {
        assert_eq!(radio.pass_again(now, ALL, unsent, packet), Some(unsent.no));
        assert!(radio.holds(unsent.no));
    }
    let next = radio.pass(now, ALL, numbered(3, 10)).unwrap();
    assert!(frames.iter().all(|frame| *frame < next));
}

#[test]
fn a_drain_of_nothing_new_examines_nothing() {
    let mut radio = radio("", Arq::Mac);
    let now = Instant::from_millis(5);
    let mobile = MobileNo(1);
    radio.join(now, mobile, "").unwrap();
    for n in 0..4 {
        radio.pass(now, ALL, numbered(n, 10));
        radio.pass(now, mobile, numbered(n, 10));
    }
    let examined = Cell::new(0);
    let refuse = |_: &Packet| {
        examined.set(examined.get() + 1);
        false
    };
    let mut drain = |of| {
        assert!(radio.drain(now, of, &refuse).is_empty());
        examined.take()
    };
    assert_eq!([drain(mobile), drain(mobile)], [4, 0], "the others' packets are not examined");
    assert_eq!([drain(ALL), drain(ALL)], [3, 0], "one of them is in transmission");
    radio.pass(now, mobile, numbered(4, 10));
    assert!(radio.drain(now, mobile, &refuse).is_empty());
    assert_eq!(examined.take(), 5);
}
