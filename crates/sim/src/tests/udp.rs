//! UDP at a constant rate.

use airtcp_types::Rate;

use super::*;

#[test]
fn a_constant_rate_leaves_the_rest_of_the_link() {
    for way in [FlowDirection::LeftToRight, FlowDirection::RightToLeft] {
        let flows = ["udp+rate=4mbit", "rack/cubic"];
        let flows = flows.map(|sender| FlowSpec { way, ..flow(sender, BULK) }).to_vec();
        let warm_up = Duration::from_secs(2);
        let link = dumbbell("rate 10mbit delay 10ms limit 50");
        let result = run(&Scenario { warm_up, flows, ..Scenario::new("udp", link) }, None).unwrap();
        let [udp, tcp] = result.flows.as_slice() else { panic!("there are two") };
        assert_eq!(
            (udp.combination.as_str(), udp.timeouts, udp.broken),
            ("udp+rate=4mbit", None, 0)
        );
        // 4 Mbit/s for ten seconds; the first packet leaves at once.
        assert_eq!(udp.segments_sent, 40_000_000_u64.div_ceil(12_000));
        let dropped: u64 = result.links.iter().map(|link| link.counters.queue_dropped).sum();
        assert!((1..dropped).contains(&udp.lost), "{udp:?} {tcp:?} {dropped}");
        assert!((0.9 * 4e6..4e6).contains(&udp.goodput), "{}", udp.goodput);
        assert!((0.85 * 6e6..6e6).contains(&tcp.goodput), "{}", tcp.goodput);
    }
}

#[test]
fn a_size_and_a_stop_end_it_and_copies_do_not_count() {
    let stop = Duration::from_secs(2);
    let link = "rate 10mbit delay 10ms duplicate 10% corrupt 1%";
    let with = |flow| run(&one(dumbbell(link), flow), None).unwrap().flows[0].clone();
    let udp = |size: Option<u64>| flow("udp+rate=1mbit", App::Bulk { size: size.map(ByteCount) });
    let stopped = with(FlowSpec { stop: Some(stop), mtu: 250, ..udp(None) });
    assert_eq!(stopped.segments_sent, 1_000);
    // 32 bytes of each packet are headers and its number; corrupted packets are dropped.
    assert!((970 * 218..1_000 * 218).contains(&stopped.bytes), "{stopped:?}");
    assert!((1_000 - stopped.bytes / 218 - stopped.lost) <= 1, "the last has none behind it");
    let sized =
        run(&one(dumbbell("rate 10mbit delay 10ms"), udp(Some(100 * 1_468))), None).unwrap();
    let sized = &sized.flows[0];
    assert_eq!((sized.segments_sent, sized.bytes), (100, 100 * 1_468));
    // 99 intervals, plus the latency of the last packet.
    let expected = 99.0 * 0.012 + 0.0012 + 0.01;
    assert!((sized.finished.unwrap() - expected).abs() < 1e-6, "{sized:?}");
}

#[test]
fn udp_carries_bulk_alone_and_has_no_settings_of_tcp() {
    let refused = |flow| run(&one(dumbbell("rate 10mbit"), flow), None).unwrap_err().to_string();
    let ping_pong = App::PingPong { size: ByteCount(64), count: None };
    assert!(refused(flow("udp+rate=1mbit", ping_pong)).contains("udp supports only bulk"));
    let nothing = FlowSpec { sender: Sender::Udp(Rate::ZERO), ..flow("udp+rate=1mbit", BULK) };
    assert!(refused(nothing).contains("its rate is zero"));
    let sack = FlowSpec { sack: false, ..flow("udp+rate=1mbit", BULK) };
    assert!(refused(sack).contains("`sack` is an option of TCP, which udp does not have"));
}
