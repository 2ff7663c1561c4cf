//! Whole transfers, for every combination in the registry.

use airtcp_types::{ByteCount, SendRule};

use crate::testkit::{Net, RTT, SMSS, laws, sender, sender_of};
use crate::{Combination, Profile};

fn every() -> impl Iterator<Item = (Combination, Profile)> {
    let profiles = [Profile::modern(), Profile::paper()];
    Combination::all().into_iter().flat_map(move |combination| {
        profiles.clone().into_iter().map(move |profile| (combination.clone(), profile))
    })
}

// Shows: RFC5681-2, RFC9937-3-1
#[test]
fn a_bulk_flow_fills_the_smaller_window_and_no_more() {
    for (combination, profile) in every() {
        laws::fills_the_window(&combination, &profile);
    }
}

// Shows: RFC5681-3.1-6
#[test]
fn one_loss_costs_one_repair_and_one_reduction() {
    for (combination, profile) in every() {
        laws::repairs_one_loss(&combination, &profile);
    }
}

// Shows: RFC8985-9.3-1, RFC5681-2
#[test]
fn whatever_is_lost_the_stream_arrives() {
    let judged = Combination::all_judged().into_iter().map(|judged| (judged, Profile::modern()));
    for (number, (combination, profile)) in every().chain(judged).enumerate() {
        for round in 0..20 {
            laws::delivers_everything(&combination, &profile, (number * 100 + round) as u64);
        }
    }
}

// Shows: RFC5681-4.3-5, RFC6675-5-5, RFC2018-5-1
#[test]
fn sack_repairs_a_burst_in_one_round_trip() {
    let lost = 10;
    let mut net = Net::new(sender("sack/fixed:40"), 400, 100);
    net.losses.extend((100..100 + lost).map(|segment| (segment, 0)));
    net.run();
    let repairs: Vec<_> = net.sent.iter().filter(|(_, t)| t.rule.is_retransmission()).collect();
    assert_eq!((repairs.len() as u64, net.sender.stats().timeouts), (lost, 0));
    assert!(repairs[0].1.rule == SendRule::FastRetransmit);
    assert!(repairs.last().unwrap().0.since(repairs[0].0) <= RTT);
    assert_eq!(net.sender.stats().reductions, 1);
}

#[test]
fn newreno_repairs_one_loss_per_round_trip() {
    let mut net = Net::new(sender("newreno/fixed:40"), 400, 100);
    net.options = false;
    net.losses.extend([(100, 0), (102, 0), (104, 0)]);
    net.run();
    let repairs: Vec<_> = net.sent.iter().filter(|(_, t)| t.rule.is_retransmission()).collect();
    assert_eq!((repairs.len(), net.sender.stats().timeouts), (3, 0));
    for pair in repairs.windows(2) {
        assert_eq!(pair[1].0.since(pair[0].0), RTT);
    }
    assert_eq!(net.sender.stats().reductions, 1);
}

#[test]
fn the_impatient_newreno_times_out_where_the_steady_one_does_not() {
    // RFC 6582 section 4: one partial ACK per loss takes longer than a time-out.
    let timeouts = |combination: &str| {
        let mut net = Net::new(sender(combination), 400, 100);
        net.options = false;
        net.losses.extend((100..112).map(|segment| (segment, 0)));
        net.run();
        net.sender.stats().timeouts
    };
    assert_eq!(timeouts("newreno/fixed:40"), 1);
    assert_eq!(timeouts("newreno:slow/fixed:40"), 0);
}

#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    for combination in ["sack/cubic", "fack/cubic", "newreno/reno", "reno/reno"] {
        let mut net = Net::new(sender(combination), 300, 40);
        net.losses.extend([(100, 0), (100, 1)]);
        net.run();
        assert_eq!(net.sender.stats().timeouts, 1, "{combination}");
        assert_eq!(net.sendings(100), 3, "{combination}");
    }
}

// Shows: RFC6298-5.4, RFC6298-5.5, RFC6298-5.6
#[test]
fn the_timer_doubles_while_nothing_arrives() {
    let mut net = Net::new(sender("sack/reno"), 20, 40);
    net.losses.extend((0..20).flat_map(|segment| (0..4).map(move |sending| (segment, sending))));
    net.run();
    let at: Vec<_> = net
        .sent
        .iter()
        .filter(|(_, t)| t.rule == SendRule::Timeout && t.range.start == crate::testkit::FIRST)
        .map(|(at, _)| at.as_millis())
        .collect();
    // The RTT of the handshake is 100 ms: SRTT 100, RTTVAR 50, RTO 300 ms, then 600, 1200, 2400.
    assert_eq!(at, [300, 900, 2_100, 4_500]);
}

#[test]
fn the_end_of_a_stream_leaves_at_any_window() {
    for combination in ["sack/fixed:1", "reno/fixed:2", "sack/cubic"] {
        let mut net = Net::new(sender(combination), 10, 40);
        // Ten full segments and a FIN.
        net.supply.end = net.supply.end + 1;
        net.supply.fin = true;
        net.losses.insert((9, 0));
        net.run();
        assert!(net.sender.board().is_empty());
        assert_eq!(net.sendings(9), 2, "what has the FIN was lost once");
    }
}

#[test]
fn a_reordered_segment_costs_nothing_in_the_end() {
    for combination in Combination::all() {
        let mut net = Net::new(sender_of(combination.clone(), Profile::modern()), 400, 40);
        net.delays.insert(150, std::time::Duration::from_millis(30));
        net.run();
        let stats = net.sender.stats();
        assert_eq!((stats.undos, stats.timeouts), (1, 0), "{combination}");
        assert_eq!(stats.reductions, 1, "{combination}: the undone one and no other");
        assert!(net.sender.cwnd() >= ByteCount(32 * SMSS), "{combination}: {}", net.sender.cwnd());
    }
}
