//! Queues that mark (RFC 3168, RFC 9768): fewer losses at the same rate.

use std::time::Duration;

use airtcp_link::{Counters, Link, LinkSpec, Way};
use airtcp_recovery::Combination;
use airtcp_stack::host::{Host, SocketId};
use airtcp_stack::tcp::{EcnMode, Info};
use airtcp_types::{ByteCount, Instant, Node, PortId, Rate};
use airtcp_wire::into_segments;

use crate::world::{CLIENT, CLIENT_HOST, SERVER, SERVER_HOST, host_config, server};

const TIME: Duration = Duration::from_secs(10);

/// Runs a flow over a link for ten seconds. Returns both ends' connection information, the link's
/// counters and the rate of arrival.
fn flow(
    link: &str,
    combination: &Combination,
    ecn: [EcnMode; 2],
    offload: bool,
) -> ([Info; 2], Counters, Rate) {
    let [forth, back] = [link, "delay 20ms"].map(|spec| spec.parse::<LinkSpec>().unwrap());
    let mut link = Link::new(&forth, &back).unwrap();
    let mut hosts = [(CLIENT, ecn[0]), (SERVER, ecn[1])].map(|(address, ecn)| {
        let mut config = host_config(address, combination, false);
        (config.tcp.ecn, config.segmentation_offload) = (ecn, offload);
        Host::new(config)
    });
    let mut now = Instant::ZERO;
    let listener = hosts[SERVER_HOST].tcp_listen(server(), 1).unwrap();
    let sender = hosts[CLIENT_HOST].tcp_connect(now, server(), None).unwrap();
    let (mut reader, mut received) = (None, 0);
    while now < Instant::ZERO + TIME {
        write(&mut hosts[CLIENT_HOST], now, sender);
        reader = reader.or_else(|| hosts[SERVER_HOST].tcp_accept(now, listener).unwrap());
        let mut buf = [0; 65_536];
        while let Some((socket, _)) = reader
            && let Ok(read @ 1..) = hosts[SERVER_HOST].tcp_recv(now, socket, &mut buf)
        {
            received += read as u64;
        }
        for (port, host) in (0..).zip(&mut hosts) {
            while let Some((_, packet)) = host.poll_transmit(now) {
                into_segments(packet, |one| link.handle_packet(now, PortId(port), one));
            }
        }
        let deadlines = hosts.iter().map(Node::poll_timeout).chain([link.poll_timeout()]);
        now = now.max(deadlines.flatten().min().expect("something will happen"));
        link.handle_timeout(now);
        while let Some((port, packet)) = link.poll_transmit(now) {
            hosts[usize::from(port.0)].handle_packet(now, PortId(0), packet);
        }
        hosts.iter_mut().for_each(|host| host.handle_timeout(now));
    }
    let (reader, _) = reader.expect("a connection");
    let info = [
        hosts[CLIENT_HOST].tcp(sender).unwrap().info(now),
        hosts[SERVER_HOST].tcp(reader).unwrap().info(now),
    ];
    let rate = Rate::from_bytes_over(ByteCount(received), TIME);
    (info, *link.counters(Way::Forth), rate)
}

fn write(host: &mut Host, now: Instant, sender: SocketId) {
    while host.readiness(sender).unwrap().writable
        && matches!(host.tcp_send(now, sender, &[7; 16_384]), Ok(1..))
    {}
}

/// If both ends use ECN, a marking queue loses nothing; if one does not, the queue drops what it
/// would have marked, and the rate is no higher.
#[test]
fn a_queue_that_marks_loses_nothing() {
    // Marking starts at one bandwidth-delay product.
    let link = "rate 20mbit delay 20ms mark 66 limit 2000";
    for control in ["reno", "cubic", "westwood-plus"] {
        let combination = format!("rack/{control}").parse().unwrap();
        let passive = [EcnMode::Passive, EcnMode::Passive];
        let without = [passive, [EcnMode::Active, EcnMode::Off]].map(|ecn| {
            let ([info, _], counters, rate) = flow(link, &combination, ecn, false);
            assert_eq!((info.ecn, counters.marked), (false, 0), "{control}");
            assert!(counters.queue_dropped > 0 && info.retrans > 0, "{control}");
            rate
        });
        let classic = [EcnMode::Active, EcnMode::Passive];
        let fallback = [EcnMode::Accurate, EcnMode::Passive];
        let accurate = [EcnMode::Accurate, EcnMode::PassiveAccurate];
        let all = [classic, fallback, accurate];
        for (both, offload) in all.into_iter().flat_map(|both| [(both, false), (both, true)]) {
            let ([info, peer], counters, rate) = flow(link, &combination, both, offload);
            assert_eq!(info.accecn.is_some(), both == accurate, "{control}");
            if let (Some(sent), Some(received)) = (info.accecn, peer.accecn) {
                assert_eq!(received.received_ce, counters.marked, "{control}");
                // The marks not yet reported to the sender are fewer than a round trip's.
                let late = received.received_ce - sent.delivered_ce;
                assert!(late < 200 && sent.delivered_ce > 0, "{control}: {late}");
                assert_eq!((sent.received_ce, received.delivered_ce), (0, 0), "{control}");
            }
            assert!(info.ecn && counters.marked > 0, "{control}: {counters:?}");
            assert_eq!(counters.queue_dropped, 0, "{control}");
            assert_eq!((info.bytes_retrans, info.retrans), (ByteCount::ZERO, 0), "{control}");
            let share = rate.bits_per_sec() as f64 / without[0].bits_per_sec() as f64;
            assert!(share > 0.9, "{control} {both:?}: {share} of what arrives without");
        }
    }
}

/// The JSON of a connection contains AccECN counters only if AccECN is in use.
#[test]
fn the_counters_are_in_json_where_accecn_is_in_use() {
    let link = "rate 20mbit delay 20ms mark 66 limit 2000";
    let combination: Combination = "rack/cubic".parse().unwrap();
    let json = |ecn| {
        let ([info, _], ..) = flow(link, &combination, [ecn; 2], false);
        (serde_json::to_value(&info).unwrap(), info.accecn)
    };
    let (shown, counted) = json(EcnMode::Accurate);
    let counted = counted.expect("AccECN is in use");
    assert!(counted.delivered_ce > 0);
    assert_eq!(shown["accecn"]["delivered_ce"], counted.delivered_ce);
    assert_eq!(shown["accecn"]["delivered_e0_bytes"], counted.delivered_e0_bytes.0);
    let (shown, _) = json(EcnMode::Active);
    assert_eq!((shown.get("accecn"), &shown["ecn"]), (None, &true.into()));
}
