//! The reports of a foreign agent, and the question to the old station.

use super::*;
use crate::home::{Change, Visited};

fn left(script: &mut Script, epoch: u64, to: Option<IpAddr>) {
    let now = script.now;
    script.stations[0].on_change(now, home(), Change::Left { epoch, to });
    script.drain();
}

fn arrived(script: &mut Script, epoch: u64, previous: Option<IpAddr>) {
    let now = script.now;
    script.stations[1].on_change(now, home(), Change::Arrived { epoch, previous });
    script.drain();
}

fn counters(script: &Script, of: usize) -> HandoffCounters {
    *script.stations[of].counters()
}

#[test]
fn the_items_wait_for_the_question_and_then_come_once() {
    let mut script = Script::new();
    script.lose();
    left(&mut script, 1, Some(AT[1]));
    assert_eq!(script.messages(0), Vec::<Vec<u8>>::new());
    script.run(300);
    assert_eq!(script.messages(0), Vec::<Vec<u8>>::new());
    arrived(&mut script, 1, Some(AT[0]));
    assert_eq!(script.state(1), HandoffState::Arriving);
    script.exchange();
    assert_eq!((script.state(0), script.state(1)), (HandoffState::Left, HandoffState::Here));
    let [old, new] = [0, 1].map(|of| counters(&script, of));
    assert_eq!((old.departures, old.completed, old.flows_sent, old.repeated), (1, 1, 1, 0));
    assert_eq!((new.arrivals, new.taken_over, new.flows_received, new.stale), (1, 1, 1, 0));
    assert_eq!((new.timed_out, new.adopted), (0, 0));
    // A renewal is no arrival, and the same report has no effect.
    arrived(&mut script, 2, None);
    arrived(&mut script, 1, Some(AT[0]));
    assert_eq!((counters(&script, 1).arrivals, counters(&script, 1).ignored), (1, 0));
    script.run(9_000);
    assert_eq!(counters(&script, 0).failed, 0);
}

#[test]
fn without_a_question_the_items_come_after_half_a_second() {
    let mut script = Script::new();
    left(&mut script, 1, Some(AT[1]));
    script.run(539);
    assert!(script.messages(0).is_empty());
    script.run(540);
    assert_eq!(script.messages(0).len(), 2, "the flow and the end");
    script.run(9_000);
    let old = counters(&script, 0);
    assert_eq!((old.failed, old.completed), (1, 0));
}

#[test]
fn an_old_station_that_has_not_heard_of_the_move_learns_it_by_the_question() {
    let mut script = Script::new();
    arrived(&mut script, 1, Some(AT[0]));
    script.exchange();
    assert_eq!((script.state(0), script.state(1)), (HandoffState::Left, HandoffState::Here));
    assert_eq!(counters(&script, 1).taken_over, 1);
    // The report of the home agent comes later.
    left(&mut script, 1, Some(AT[1]));
    assert_eq!((counters(&script, 0).departures, counters(&script, 0).ignored), (1, 0));
}

#[test]
fn an_old_station_that_does_not_answer_is_asked_until_fresh_packets_pass() {
    let mut script = Script::new();
    arrived(&mut script, 1, Some(AT[0]));
    let mut asked = Vec::new();
    for ms in 40..2_000 {
        script.run(ms);
        asked.extend(script.messages(1).iter().map(|_| ms));
    }
    assert_eq!(asked, [40, 140, 240, 340, 440]);
    let new = counters(&script, 1);
    assert_eq!((new.timed_out, new.adopted, new.taken_over), (1, 1, 0));
    assert_eq!(script.state(1), HandoffState::Here);
}

#[test]
fn a_question_of_an_earlier_move_or_of_another_station_changes_nothing() {
    let mut script = Script::new();
    arrived(&mut script, 5, Some(AT[0]));
    let question = script.messages(1);
    script.give(0, &question);
    script.exchange();
    script.stations[0].on_change(
        script.now,
        home(),
        Change::Arrived { epoch: 9, previous: Some(AT[1]) },
    );
    script.exchange();
    assert_eq!(script.state(0), HandoffState::Here);
    script.give(0, &question);
    assert_eq!((script.state(0), counters(&script, 0).stale), (HandoffState::Here, 1));
    let now = script.now;
    let stranger = "198.51.100.3".parse().unwrap();
    assert!(!script.stations[0].on_station(now, stranger, &question[0]));
    assert!(script.stations[0].on_station(now, AT[1], &question[0]));
}

#[test]
fn a_mobile_that_goes_to_a_place_without_a_station_takes_nothing_along() {
    let mut script = Script::new();
    script.lose();
    assert_eq!(script.kept(0), (1, 1));
    left(&mut script, 1, Some("203.0.113.1".parse().unwrap()));
    assert_eq!((script.kept(0), counters(&script, 0).discarded), ((0, 0), 1));
    assert!(script.messages(0).is_empty());
    assert!(!script.stations[0].sends_after(home()));
    // An earlier move is not carried out.
    left(&mut script, 0, None);
    assert_eq!(counters(&script, 0).ignored, 1);
}
