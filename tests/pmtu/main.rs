//! Paths narrower than their ends, with real packets: the kernel as a router that sends ICMP
//! errors, and a link that drops large packets silently. The peer is the kernel's TCP.
//!
//! Without namespaces or TUN devices the tests are skipped with the reason; with
//! `AIRTCP_REQUIRE_NETNS=1` they fail instead.

mod narrow;

use std::net::SocketAddr;

use airtcp_link::{Link, LinkSpec};
use airtcp_stack::HostConfig;
use airtcp_stack::counters::Counters;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Cidr, Service, or_skip, peer, requirements};
use airtcp_types::{ByteCount, Node};
use narrow::Narrow;

const BYTES: u64 = 8 << 20;
const MTU: u32 = 1280;

fn link() -> Link {
    let spec: LinkSpec = "rate 200mbit delay 2ms limit 1000".parse().expect("a link");
    Link::new(&spec, &spec).expect("a link")
}

fn stack() -> Host {
    Host::Stack(Box::new(HostConfig::new([])))
}

/// Transfers data in both directions, and returns the resulting path MTU.
async fn both_ways<N: Node + Send + 'static>(dumbbell: &Dumbbell<N>, is_ipv6: bool) -> ByteCount {
    let at = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, is_ipv6), 0);
    let kernel = dumbbell.right().namespace();
    let stack = dumbbell.left().stack().expect("the left host is ours").clone();

    let sink = kernel.serve(at, Service::Sink, Some("cubic")).expect("a kernel server");
    let address = sink.address();
    let sending = dumbbell.left().namespace().spawn({
        let stack = stack.clone();
        async move {
            let mut stream = stack.connect(address).await?;
            let arrived = peer::upload(&mut stream, 1, BYTES).await?;
            Ok::<_, std::io::Error>((arrived, stream.info()?))
        }
    });
    let (arrived, info) = sending.await.expect("a task").expect("our connection");
    assert_eq!(arrived, BYTES);

    let echo = kernel.serve(at, Service::Echo, Some("cubic")).expect("a kernel server");
    let address = echo.address();
    let echoing = dumbbell.left().namespace().spawn(async move {
        let stream = stack.connect(address).await?;
        peer::echo(stream, 2, BYTES).await
    });
    assert_eq!(echoing.await.expect("a task").expect("our connection"), BYTES);
    info.pmtu
}

fn counters<N: Node + Send + 'static>(dumbbell: &Dumbbell<N>) -> Counters {
    dumbbell.left().stack().expect("the left host is ours").counters()
}

/// A router's ICMP errors lower the path MTU without a time-out. The router is the kernel of the
/// stack's namespace, between the stack and the link: its device for the link is the narrow one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packet_too_big_is_obeyed_without_a_time_out() {
    if or_skip(requirements()).is_none() {
        return;
    }
    for is_ipv6 in [false, true] {
        let dumbbell = Dumbbell::build(Plan::new(stack(), link(), Host::Kernel)).expect("hosts");
        let router = dumbbell.left().namespace();
        // The router needs its own addresses to send errors from.
        for address in ["10.80.0.77/32", "fd80::77/128"] {
            let address: Cidr = address.parse().expect("an address");
            router.add_address("link0", address).expect("an address more");
        }
        router.set_mtu("link0", MTU).expect("a narrow link");
        assert_eq!(both_ways(&dumbbell, is_ipv6).await, ByteCount(MTU.into()));
        let counters = counters(&dumbbell);
        // The second connection starts with the path MTU of the first.
        assert_eq!(counters.tcp_ext_pmtu_lowered, 1, "{counters:?}");
        assert_eq!((counters.tcp_ext_timeouts, counters.tcp_ext_pmtu_black_holes), (0, 0));
        let messages = match is_ipv6 {
            false => counters.icmp_in_dest_unreachs,
            true => counters.icmp6_in_pkt_too_bigs,
        };
        assert!(messages > 0, "{counters:?}");
        dumbbell.stop().expect("a link that ran to the end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_black_hole_for_large_packets_is_passed() {
    if or_skip(requirements()).is_none() {
        return;
    }
    for (is_ipv6, found) in [(false, 1064), (true, 1280)] {
        let node = Narrow::new(link(), MTU as usize);
        let plan = Plan::over(stack(), node, Host::Kernel, |_, _| {});
        let dumbbell = Dumbbell::build(plan).expect("hosts");
        let kernel = dumbbell.right().namespace();
        kernel
            .set_sysctl("net.ipv4.tcp_mtu_probing", "1")
            .expect("the kernel's own black-hole mode");
        assert_eq!(both_ways(&dumbbell, is_ipv6).await, ByteCount(found));
        let counters = counters(&dumbbell);
        assert_eq!(counters.tcp_ext_pmtu_black_holes, 2, "one for each connection: {counters:?}");
        assert_eq!(counters.tcp_ext_pmtu_lowered, 0);
        assert!(dumbbell.look(|driver| driver.node().dropped()) > 0);
        dumbbell.stop().expect("a link that ran to the end");
    }
}
