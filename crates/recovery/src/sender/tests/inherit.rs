//! Path state that connections to one peer share (RFC 9040).

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use crate::testkit::{Net, RTT, SMSS, pump, sender, supply};
use crate::{Learned, LearnedRtt, Sender, SenderConfig, Start, WireNeeds};

/// A rate of 100 segments per round trip.
fn known() -> Learned {
    Learned {
        rtt: Some(LearnedRtt { srtt: RTT, rttvar: RTT / 100, min: RTT * 9 / 10 }),
        rate: Some(Rate::from_bytes_over(ByteCount(100 * SMSS), RTT)),
        losses: None,
    }
}

fn inheriting(combination: &str, known: &Learned) -> Sender {
    let mut sender = sender(combination);
    sender.inherit(Instant::ZERO, known);
    sender
}

#[test]
fn a_control_that_paces_begins_at_the_rate_that_the_path_carried() {
    let inherited = inheriting("rack/bbr3", &known());
    // The smallest RTT is nine tenths of the usual one.
    assert_eq!(inherited.cwnd(), ByteCount(90 * SMSS));
    assert_eq!(inherited.pacing_rate(), known().rate);
    assert_eq!(inherited.rtt().min(), Some(RTT * 9 / 10));
    // No less than without an inherited rate.
    let slow = Learned { rate: Some(Rate::from_bits_per_sec(1_000)), ..Learned::default() };
    let usual = sender("rack/bbr3");
    let slow = inheriting("rack/bbr3", &slow);
    assert_eq!((slow.cwnd(), slow.pacing_rate()), (usual.cwnd(), usual.pacing_rate()));
    // A larger window without pacing would be sent as one burst.
    assert_eq!(inheriting("rack/cubic", &known()).cwnd(), ByteCount(10 * SMSS));
}

#[test]
fn the_time_out_follows_from_all_round_trip_times() {
    // The handshake alone makes the time-out 300 ms.
    let unsteady = LearnedRtt { srtt: RTT, rttvar: RTT, min: RTT };
    let sender = inheriting("rack/reno", &Learned { rtt: Some(unsteady), ..Learned::default() });
    assert_eq!(sender.rtt().rto(), Duration::from_millis(400));
}

#[test]
fn another_path_or_a_sender_that_has_sent_takes_nothing() {
    let of = |min| {
        let rtt = Some(LearnedRtt { srtt: min, rttvar: min / 2, min });
        inheriting("rack/bbr3", &Learned { rtt, ..known() }).rtt().srtt() != Some(RTT)
    };
    let ms = Duration::from_millis;
    assert_eq!([ms(9), ms(10), ms(200), ms(201)].map(of), [false, true, true, false]);
    let mut used = sender("rack/bbr3");
    pump(&mut used, Instant::ZERO, &supply(1));
    used.inherit(Instant::ZERO, &known());
    assert_eq!((used.cwnd(), used.rtt().min()), (ByteCount(10 * SMSS), Some(RTT)));
}

#[test]
fn after_a_lost_syn_one_segment_leaves_whatever_is_known() {
    let config =
        SenderConfig { combination: "rack/bbr3".parse().unwrap(), ..SenderConfig::default() };
    let mut sender = Sender::new(
        &config,
        &Start {
            now: Instant::ZERO,
            first: crate::testkit::FIRST,
            smss: ByteCount(SMSS),
            granted: WireNeeds::ALL,
            handshake_rtt: Some(RTT),
            syn_retransmitted: true,
            seed: 0,
        },
    );
    sender.inherit(Instant::ZERO, &known());
    assert_eq!(sender.cwnd(), ByteCount(SMSS));
}

#[test]
fn inherited_values_are_not_reported_as_measured() {
    let mut net = Net::new(inheriting("rack/bbr3/spike", &known()), 200, 1_000);
    net.run();
    let learned = net.sender.hand_on();
    let rtt = learned.rtt.unwrap();
    assert!(rtt.min >= RTT && rtt.srtt >= RTT, "{rtt:?}");
    assert_eq!((learned.rate, learned.losses), (None, None));
    assert_eq!(net.sender.hand_on().rtt, None, "a second time");
}
