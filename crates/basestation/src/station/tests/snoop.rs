//! Snoop, for comparison. Segments have 1000 bytes, the first starts at 1.

use airtcp_link::Arq;

use super::*;

fn snoop(radio: &str, arq: Arq) -> Script {
    Script::open_with(radio, |config| (config.policy, config.arq) = (Policy::Snoop, arq))
}

fn data(number: u32) -> Seg {
    Seg::data(1 + 1_000 * number, 1_000)
}

#[test]
fn what_the_radio_lost_is_sent_again_from_here_on_the_first_duplicate_ack() {
    let mut script = snoop("down 30ms 1ms", Arq::Off);
    (0..4).for_each(|n| script.fixed(data(n)));
    script.run(50);
    assert_eq!(script.marks(), [(1_001, false), (2_001, false), (3_001, false)]);
    (0..3).for_each(|_| script.mobile(Seg::ack(1, 1)));
    script.run(60);
    assert_eq!(script.marks(), [(1, false)]);
    assert!(script.acks().is_empty());
    script.mobile(Seg::ack(1, 4_001));
    script.run(70);
    assert_eq!(script.acks(), [4_001]);
    let status = script.station.status(script.now);
    assert_eq!((status.counters.hidden, status.counters.sent_again, status.cached), (3, 1, 0));
    script.run(10_000);
    assert!(script.out.is_empty());
}

#[test]
fn what_was_lost_on_the_way_here_and_what_is_sent_again_is_the_fixed_hosts() {
    let mut script = snoop("", Arq::Off);
    [0, 2, 3].into_iter().for_each(|n| script.fixed(data(n)));
    script.run(50);
    script.mobile(Seg::ack(1, 1_001));
    (0..3).for_each(|_| script.mobile(Seg::ack(1, 1_001)));
    script.run(60);
    assert_eq!(script.acks(), [1_001; 4]);
    script.fixed(data(1));
    script.run(70);
    script.mobile(Seg::ack(1, 1_001));
    script.run(75);
    assert_eq!(script.acks(), [1_001], "the fixed host counts on it");
    assert_eq!(script.station.counters().sent_again, 0);
}

#[test]
fn without_any_ack_a_timer_sends_the_first_again_ever_more_slowly_and_gives_up() {
    let mut script = snoop("", Arq::Off);
    script.fixed(data(0));
    script.fixed(data(1));
    script.run(90);
    assert_eq!(script.marks(), [(1, false), (1_001, false)]);
    script.run(150);
    assert_eq!(script.marks(), [(1, false)]);
    script.run(1_000_000);
    let marks = script.marks();
    let count = |seq: u32| marks.iter().filter(|mark| mark.0 == seq).count();
    // The mobile can acknowledge nothing as long as it lacks the first.
    assert_eq!((count(1), count(1_001)), (9, 0));
    let status = script.station.status(script.now);
    assert_eq!((status.cached, script.station.poll_timeout()), (0, None));
}

#[test]
fn the_timer_does_not_repeat_what_lies_above_a_loss_on_the_wired_side() {
    let mut script = snoop("", Arq::Off);
    [0, 2, 3].into_iter().for_each(|n| script.fixed(data(n)));
    script.run(50);
    script.mobile(Seg::ack(1, 1_001));
    script.run(60);
    script.out.clear();
    // The mobile has the two, and a copy would only cause a duplicate ACK.
    script.run(2_000);
    assert_eq!((script.marks(), script.station.counters().sent_again), (vec![], 0));
    // What it waits for is repeated once it has passed here and no ACK follows.
    script.fixed(data(1));
    script.run(10_000);
    let numbers: Vec<u32> = script.marks().iter().map(|mark| mark.0).collect();
    assert!(numbers.len() > 1 && numbers.iter().all(|seq| *seq == 1_001), "{numbers:?}");
    // Nothing is kept forever.
    script.run(1_000_000);
    let status = script.station.status(script.now);
    assert_eq!((status.cached, script.station.poll_timeout()), (0, None));
}

#[test]
fn what_the_radio_still_has_is_not_sent_again() {
    let mut script = snoop("tries 2 down 30ms 2560us", Arq::MacLink);
    script.fixed(data(0));
    (0..10).for_each(|_| script.put(Side::Wired, other(1_000)));
    script.fixed(data(1));
    script.run(33);
    (0..3).for_each(|_| script.mobile(Seg::ack(1, 1)));
    script.run(60);
    assert!(script.acks().is_empty());
    let numbers: Vec<u32> = script.marks().iter().map(|mark| mark.0).collect();
    assert_eq!(numbers, [1_001, 1]);
    let counters = script.station.counters();
    assert_eq!((counters.hidden, counters.sent_again), (3, 0));
}

#[test]
fn so_much_is_cached_and_no_more_and_forgotten_with_its_flow() {
    let mut script = snoop("queue 1000", Arq::Off);
    script.station.cache_limit = 5_500;
    (0..20).for_each(|n| script.fixed(data(n)));
    let status = script.station.status(script.now);
    assert_eq!(status.cached, 5 * 1_040);
    assert!(status.memory > 5 * 1_040);
    script.fixed(Seg { flags: "R", ..Seg::data(20_001, 0) });
    assert_eq!(script.station.status(script.now).cached, 0);
    script.run(10_000);
    assert_eq!(script.marks().len(), 20 + 1, "the reset too, and nothing twice");
}
