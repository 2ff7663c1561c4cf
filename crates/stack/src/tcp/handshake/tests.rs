//! The handshake without a connection: the offered and negotiated options, the times of SYNs, and
//! the measurement of their ACK.

use std::time::Duration;

use airtcp_types::{FlowId, Instant, SeqNumber};
use airtcp_wire::options::TcpOptions;
use airtcp_wire::payload::Payload;
use airtcp_wire::tcp::{Flags, Segment};

use super::attempt::{Expired, Handshake};
use crate::tcp::TcpConfig;
use crate::tcp::config::MIN_MSS;

const NOW: Instant = Instant::ZERO;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn of(config: &TcpConfig) -> Handshake {
    let end = |text: &str| text.parse().unwrap();
    let flow = FlowId { local: end("10.0.0.1:80"), remote: end("10.0.0.2:40000") };
    Handshake::new(NOW, &flow, config)
}

/// A handshake whose SYN was sent.
fn asked() -> Handshake {
    let mut handshake = of(&TcpConfig::default());
    assert_eq!(handshake.poll_syn(false).map(|syn| syn.sent), Some(1));
    handshake
}

/// A passive handshake whose SYN-ACK was sent.
fn answered(wait: Option<Duration>) -> Handshake {
    let mut handshake = of(&TcpConfig::default());
    handshake.accept(NOW, wait);
    assert_eq!(handshake.poll_syn(true).map(|syn| syn.sent), Some(1));
    handshake
}

fn syn_ack(options: TcpOptions) -> Segment<'static> {
    Segment {
        seq: SeqNumber(0),
        ack: SeqNumber(0),
        flags: Flags { syn: true, ..Flags::ACK },
        reserved: 0,
        ecn: 0,
        window: 0,
        options,
        payload: Payload::default(),
        size: None,
    }
}

/// The duration of each wait until the attempt fails, in seconds. Every due SYN is sent.
fn waits(handshake: &mut Handshake, from: Instant) -> Vec<u64> {
    let (mut now, mut waits) = (from, Vec::new());
    loop {
        let at = handshake.deadline();
        waits.push(at.since(now).as_secs());
        now = at;
        match handshake.on_timeout(now) {
            Expired::No => panic!("its deadline is now"),
            Expired::Again => assert!(handshake.poll_syn(false).is_some()),
            Expired::TimedOut => return waits,
        }
    }
}

#[test]
fn a_syn_offers_what_the_settings_say_and_leaves_once() {
    for on in [true, false] {
        let config = TcpConfig { sack: on, window_scaling: on, ..TcpConfig::default() };
        let mut handshake = of(&config);
        let syn = handshake.poll_syn(false).unwrap();
        assert!(syn.flags.syn);
        assert_eq!((syn.options.mss, syn.options.sack_permitted), (Some(1_460), on));
        assert_eq!(syn.options.window_scale, on.then(|| config.window_scale()));
        assert!(handshake.poll_syn(false).is_none());
    }
}

#[test]
fn options_that_both_ends_offer_are_negotiated() {
    let theirs = |options| {
        let mut handshake = asked();
        let agreed = handshake.negotiate(&syn_ack(options));
        handshake.answer_again();
        let ours = handshake.poll_syn(true).unwrap().options;
        assert_eq!(ours.sack_permitted, agreed.sack);
        assert_eq!(ours.window_scale.is_some(), agreed.scales.is_some());
        (agreed.sack, agreed.scales, handshake.finish(NOW, None).peer_mss)
    };
    let ours = TcpConfig::default().window_scale();
    let all = TcpOptions {
        mss: Some(1_000),
        window_scale: Some(3),
        sack_permitted: true,
        ..TcpOptions::default()
    };
    assert_eq!(theirs(all), (true, Some((3, ours)), 1_000));
    assert_eq!(theirs(TcpOptions::default()), (false, None, 536));
    let absurd = TcpOptions { mss: Some(1), window_scale: Some(15), ..all };
    assert_eq!(theirs(absurd), (true, Some((14, ours)), MIN_MSS));
}

#[test]
fn syns_leave_again_after_pauses_that_double_until_there_are_enough() {
    let mut handshake = asked();
    assert_eq!(handshake.on_timeout(ms(999)), Expired::No);
    assert!(handshake.poll_syn(false).is_none());
    assert_eq!(waits(&mut handshake, NOW), [1, 2, 4, 8, 16, 32, 64, 120]);
}

#[test]
fn a_syn_ack_that_crosses_a_syn_has_the_attempts_that_are_left() {
    let mut handshake = asked();
    for at in [1_000, 3_000] {
        assert_eq!(handshake.on_timeout(ms(at)), Expired::Again);
        assert!(handshake.poll_syn(false).is_some());
    }
    handshake.begin_answer(ms(4_000));
    assert_eq!(handshake.poll_syn(true).map(|syn| syn.sent), Some(1));
    // The time-out stays doubled, and two of seven retransmissions were SYNs.
    assert_eq!(waits(&mut handshake, ms(4_000)), [4, 8, 16, 32, 64, 120]);
}

#[test]
fn the_round_trip_is_measured_where_it_is_known_what_the_ack_answers() {
    let shown = |handshake: Handshake, now, echoed: Option<u64>| {
        let shown = handshake.finish(ms(now), echoed.map(ms)).shown;
        (shown.rtt.map(|rtt| rtt.as_millis()), shown.retransmitted)
    };
    let again = || {
        let mut handshake = asked();
        assert_eq!(handshake.on_timeout(ms(1_000)), Expired::Again);
        assert!(handshake.poll_syn(false).is_some());
        handshake
    };
    assert_eq!(shown(asked(), 30, None), (Some(30), false));
    assert_eq!(shown(again(), 1_030, None), (None, true));
    assert_eq!(shown(again(), 1_030, Some(1_000)), (Some(30), true));
    let mut crossed = asked();
    crossed.begin_answer(ms(10));
    assert!(crossed.poll_syn(true).is_some());
    assert_eq!(shown(crossed, 30, None), (None, false));
    let mut cookie = answered(None);
    cookie.on_cookie_sent();
    assert_eq!(shown(cookie, 30, None), (None, false));
}

#[test]
fn while_data_is_waited_for_no_syn_ack_leaves_and_the_first_ack_counts() {
    let mut handshake = answered(Some(Duration::from_secs(3)));
    assert!(handshake.defers(ms(30), false, None));
    assert_eq!(handshake.on_timeout(ms(1_000)), Expired::Again);
    assert!(handshake.poll_syn(true).is_none(), "the peer has it");
    assert_eq!(handshake.on_timeout(ms(3_000)), Expired::Again);
    assert!(handshake.poll_syn(true).is_some(), "it may answer with data");
    assert!(!handshake.defers(ms(3_050), false, None), "the time is over");
    let shown = handshake.finish(ms(3_050), None).shown;
    assert_eq!((shown.rtt, shown.retransmitted), (Some(Duration::from_millis(30)), false));
    let mut with_data = answered(Some(Duration::from_secs(3)));
    assert!(!with_data.defers(ms(30), true, None));
    assert!(!answered(None).defers(ms(30), false, None));
}

#[test]
fn strategies_that_need_what_the_syn_did_not_offer_are_refused() {
    let mut handshake = asked();
    let before = handshake.combination().clone();
    let hack = "sack/cubic/hack".parse().unwrap();
    assert!(handshake.set_combination(&hack, true).is_err());
    assert_eq!(*handshake.combination(), before);
    let cubic = "sack/cubic".parse().unwrap();
    assert_eq!(handshake.set_combination(&cubic, true), Ok(()));
    assert_eq!(*handshake.combination(), cubic);
}
