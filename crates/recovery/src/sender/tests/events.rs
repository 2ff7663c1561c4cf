//! The sender's events for traces.

use airtcp_types::{EventKind, Instant, SendRule, TxNo};

use crate::testkit::{RTT, ack, index, ms, pump, segments, sender_with, seq, supply};
use crate::{Profile, Sender, SenderConfig, Supply};

/// Returns a sender with events and an initial window of twenty segments.
fn eventful(combination: &str) -> Sender {
    let config = SenderConfig {
        combination: combination.parse().unwrap(),
        profile: Profile { initial_window: 20, ..Profile::modern() },
        events: true,
        ..SenderConfig::default()
    };
    sender_with(&config)
}

fn events(sender: &mut Sender) -> impl Iterator<Item = EventKind> {
    std::iter::from_fn(|| sender.poll_event())
}

#[test]
fn an_event_has_the_window_at_the_transmission() {
    // RFC 6675 section 5 (C): the rescue retransmission needs room in cwnd, too. Here a peer's
    // window that has shrunk cuts it, and it does not enlarge the pipe.
    let mut sender = eventful("sack/reno");
    pump(&mut sender, Instant::ZERO, &supply(20));
    let narrow = Supply { window_edge: seq(19) + 800, ..supply(20) };
    for upto in 2..12 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        pump(&mut sender, ms(100), &narrow);
    }
    let mut rescues = 0;
    for event in events(&mut sender) {
        let EventKind::Sent { range, rule, pipe, cwnd, .. } = event else { continue };
        rescues += u64::from(rule == SendRule::Rescue);
        let is_within = pipe + range.len() <= cwnd;
        assert!(is_within || rule.exceeds_cwnd(), "{rule:?} of {range:?}, {pipe} of {cwnd}");
    }
    assert_eq!(rescues, 1);
}

#[test]
fn a_transmission_is_acknowledged_once() {
    let mut sender = eventful("sack/reno");
    let acknowledged = |sender: &mut Sender| -> Vec<_> {
        let runs = events(sender).filter_map(|event| match event {
            EventKind::Acknowledged { first, last } => Some((first.0, last.0)),
            _ => None,
        });
        runs.collect()
    };
    pump(&mut sender, Instant::ZERO, &supply(20));
    sender.on_ack(ms(100), &ack(3, &[segments(5, 7), segments(9, 12)]));
    assert_eq!(acknowledged(&mut sender), [(0, 2), (5, 6), (9, 11)]);
    // A retransmission has a number of its own.
    let (sent, _) = pump(&mut sender, ms(100), &supply(20));
    let repair = sent.iter().find(|sent| sent.rule == SendRule::FastRetransmit).unwrap();
    assert_eq!((repair.range.start, repair.tx), (seq(3), TxNo(20)));
    sender.on_ack(ms(200), &ack(4, &[segments(5, 7), segments(9, 12)]));
    assert_eq!(acknowledged(&mut sender), [(20, 20)]);
    sender.on_ack(ms(200), &ack(4, &[segments(5, 7), segments(9, 13)]));
    assert_eq!(acknowledged(&mut sender), [(12, 12)]);
}

#[test]
fn rates_and_round_trip_times_are_reported_where_there_are_any() {
    for (combination, paced, estimates) in [
        ("rack/bbr", true, true),
        ("rack/bbr3", true, true),
        ("sack/westwood-plus", false, true),
        ("sack/cubic", false, false),
    ] {
        let mut sender = eventful(combination);
        for round in 1..=10 {
            pump(&mut sender, ms(100 * (round - 1)), &supply(1_000));
            // One segment stays outstanding, so that the sender is never idle.
            let upto = index(sender.snd_nxt()) - 1;
            sender.on_ack(ms(100 * round), &ack(upto, &[]));
        }
        let (mut window, mut smallest) = (None, None);
        for event in events(&mut sender) {
            match event {
                EventKind::Window { pacing_rate, bandwidth, .. } => {
                    window = Some((pacing_rate.is_some(), bandwidth.is_some()));
                }
                EventKind::Rtt { min, .. } => smallest = Some(min),
                _ => {}
            }
        }
        assert_eq!(window, Some((paced, estimates)), "{combination}");
        assert_eq!(smallest, Some(RTT), "{combination}");
    }
}
