use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airtcp_device::TunFile;
use airtcp_link::{Link, Way};
use airtcp_types::{Chain, Event, NodeId, Observer};
use nix::ifaddrs::getifaddrs;

use super::*;
use crate::dumbbell::{Dumbbell, Host, Plan};

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

fn own_interfaces() -> BTreeSet<String> {
    getifaddrs().unwrap().map(|entry| entry.interface_name).collect()
}

fn named_namespaces() -> BTreeSet<std::ffi::OsString> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// Whether any thread of any process is in the network namespace with this inode.
fn is_inhabited(inode: u64) -> bool {
    let threads = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|process| std::fs::read_dir(process.path().join("task")).ok())
        .flat_map(|tasks| tasks.flatten());
    threads
        .filter_map(|task| std::fs::metadata(task.path().join("ns/net")).ok())
        .any(|net| net.ino() == inode)
}

fn becomes(condition: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        let holds = condition();
        if !holds {
            std::thread::sleep(Duration::from_millis(10));
        }
        holds
    })
}

#[test]
fn a_tun_and_its_addresses_are_seen_in_its_namespace_alone() {
    let Some(()) = or_skip(requirements()) else { return };
    let before = own_interfaces();
    let (one, other) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let tun = one.run(|| TunFile::open("tun0")).unwrap();
    one.configure("tun0", &[cidr("10.1.0.1/24"), cidr("fd01::1/64")], Some(1400)).unwrap();
    one.add_route("tun0", cidr("10.9.0.0/16"), Some(Ipv4Addr::new(10, 1, 0, 2).into())).unwrap();
    one.add_route("tun0", cidr("fd09::/64"), None).unwrap();

    let seen = one.interfaces().unwrap();
    assert_eq!(seen[0].name, "lo");
    assert!(seen[0].is_up);
    let tun0 = seen.iter().find(|interface| interface.name == "tun0").unwrap();
    assert!(tun0.is_up);
    for address in ["10.1.0.1/24", "fd01::1/64"] {
        assert!(tun0.addresses.contains(&cidr(address)), "{tun0:?}");
    }
    // Queried from outside the namespace, through descriptors opened inside.
    assert_eq!(tun.mtu().unwrap(), 1400);
    tun.set_mtu(1300).unwrap();
    assert_eq!(tun.mtu().unwrap(), 1300);
    // Connecting a UDP socket looks up the route and selects the source address.
    for (source, remote) in [("10.1.0.1", "10.9.1.1:9"), ("fd01::1", "[fd09::5]:9")] {
        let chosen = one.run(move || {
            let any = if remote.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            let socket = std::net::UdpSocket::bind(any).unwrap();
            socket.connect(remote).unwrap();
            socket.local_addr().unwrap().ip()
        });
        assert_eq!(chosen, source.parse::<IpAddr>().unwrap());
    }

    assert_eq!(other.interfaces().unwrap().len(), 1, "the other has loopback and nothing else");
    assert!(own_interfaces().is_subset(&before));
    assert!(matches!(other.set_up("tun0", true), Err(TestbedError::NoInterface { .. })));
    drop(tun);
    assert!(becomes(|| one.interfaces().unwrap().len() == 1), "the TUN goes with its descriptor");
}

/// Whether a connection to an unused port of the namespace is refused. An address that the
/// namespace does not have yet is routed to the device, where nothing responds.
fn is_own(namespace: &Namespace, address: &str) -> bool {
    let to = SocketAddr::new(address.parse().unwrap(), 9);
    let patience = Duration::from_millis(500);
    let connected = namespace.run(move || std::net::TcpStream::connect_timeout(&to, patience));
    connected.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[test]
fn addresses_are_usable_at_once() {
    let Some(()) = or_skip(requirements()) else { return };
    for _ in 0..50 {
        let namespace = Namespace::new().unwrap();
        let _tun = namespace.run(|| TunFile::open("tun0")).unwrap();
        namespace.configure("tun0", &[cidr("10.1.0.1/24"), cidr("fd01::1/64")], None).unwrap();
        assert!(is_own(&namespace, "10.1.0.1") && is_own(&namespace, "fd01::1"));
        namespace.add_address("tun0", cidr("fd01::2/64")).unwrap();
        assert!(is_own(&namespace, "fd01::2"));
    }
}

#[test]
fn an_address_goes_and_comes_back() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let _tun = namespace.run(|| TunFile::open("tun0")).unwrap();
    let both = [cidr("10.1.0.1/24"), cidr("fd01::1/64")];
    namespace.configure("tun0", &both, None).unwrap();
    let has = |address| {
        let seen = namespace.interfaces().unwrap();
        seen.iter().any(|interface| interface.addresses.contains(&address))
    };
    for cidr in both {
        namespace.remove_address("tun0", cidr).unwrap();
        assert!(!has(cidr));
        assert!(namespace.remove_address("tun0", cidr).is_err(), "it is gone");
        namespace.add_address("tun0", cidr).unwrap();
        assert!(has(cidr));
    }
}

#[test]
fn a_namespace_goes_when_it_is_dropped() {
    let Some(namespace) = or_skip(Namespace::new()) else { return };
    let inode = namespace.as_file().metadata().unwrap().ino();
    assert!(is_inhabited(inode));
    let mut child = namespace
        .spawn_child({
            let mut command = Command::new("sleep");
            command.arg("1000");
            command
        })
        .unwrap();
    let child_net = format!("/proc/{}/ns/net", child.id());
    assert_eq!(std::fs::metadata(child_net).unwrap().ino(), inode);
    drop(namespace);
    assert!(!child.wait().unwrap().success(), "the child is killed with it");
    assert!(becomes(|| !is_inhabited(inode)));
}

#[test]
fn results_and_panics_come_out() {
    let Some(namespace) = or_skip(Namespace::new()) else { return };
    assert_eq!(namespace.block_on(async { 6 * 7 }), 42);
    assert_eq!(namespace.spawn_thread(|| 43).unwrap().join().unwrap(), 43);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        namespace.run(|| panic!("inside"));
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"inside"));
    assert_eq!(namespace.run(|| 44), 44, "and it goes on");
    namespace.set_sysctl("net.ipv4.tcp_sack", "0").unwrap();
    let read = namespace.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").unwrap());
    assert_eq!(read.trim(), "0");
}

/// Calls each service at the server's host, from `client`.
async fn call_all(client: &Namespace, host: &str, ports: [u16; 3]) {
    let [echo, sink, source] =
        ports.map(|port| SocketAddr::new(host.parse::<IpAddr>().unwrap(), port));
    let size = 300_001;
    let calls = client.spawn(async move {
        let connect = async |address| peer::connect(address, Some("reno")).await;
        assert_eq!(peer::echo(connect(echo).await?, 5, size).await?, size);
        assert_eq!(peer::upload(connect(sink).await?, 6, size).await?, size);
        let stream = connect(source).await?;
        assert_eq!(peer::congestion(&stream)?, "reno");
        assert_eq!(peer::download(stream, Some(peer::source_pattern()), size).await?, size);
        std::io::Result::Ok(())
    });
    calls.await.unwrap().unwrap();
}

fn serve_all(namespace: &Namespace, host: &str) -> [Server; 3] {
    [Service::Echo, Service::Sink, Service::Source].map(|service| {
        let address = SocketAddr::new(host.parse::<IpAddr>().unwrap(), 0);
        namespace.serve(address, service, Some("reno")).unwrap()
    })
}

#[tokio::test]
async fn kernel_peers_talk_over_loopback() {
    let Some(namespace) = or_skip(Namespace::new()) else { return };
    for host in ["127.0.0.1", "::1"] {
        let servers = serve_all(&namespace, host);
        call_all(&namespace, host, servers.each_ref().map(|server| server.address().port())).await;
    }
}

#[tokio::test]
async fn kernel_peers_talk_from_namespace_to_namespace() {
    let Some(left) = or_skip(Namespace::new()) else { return };
    let right = Namespace::new().unwrap();
    left.connect("eth0", &right, "eth0").unwrap();
    left.configure("eth0", &[cidr("10.2.0.1/24"), cidr("fd02::1/64")], None).unwrap();
    right.configure("eth0", &[cidr("10.2.0.2/24"), cidr("fd02::2/64")], None).unwrap();
    for host in ["10.2.0.2", "fd02::2"] {
        let servers = serve_all(&right, host);
        call_all(&left, host, servers.each_ref().map(|server| server.address().port())).await;
    }
    drop(right);
    assert!(becomes(|| left.interfaces().unwrap().len() == 1), "a cable has two ends or none");
}

#[tokio::test]
async fn what_the_kernel_refuses_is_named() {
    let Some(namespace) = or_skip(Namespace::new()) else { return };
    let error = namespace.serve(at("192.0.2.1:80"), Service::Echo, None).unwrap_err();
    assert!(error.to_string().contains("192.0.2.1:80"), "{error}");
    let server = namespace.serve(at("127.0.0.1:0"), Service::Echo, Some("none")).unwrap_err();
    assert!(format!("{server}").contains("\"none\""), "{server}");
    let server = namespace.serve(at("127.0.0.1:0"), Service::Sink, None).unwrap();
    let address = server.address();
    let wrong = namespace
        .spawn(async move { peer::echo(peer::connect(address, None).await?, 1, 100).await });
    assert_eq!(wrong.await.unwrap().unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    drop(server);
    assert!(becomes(|| {
        namespace.block_on(async move { peer::connect(address, None).await.is_err() })
    }));
}

/// Counts the events of the node between the hosts.
#[derive(Default)]
struct LinkEvents(u64);

impl Observer for LinkEvents {
    fn on_event(&mut self, node: NodeId, _: &Event) {
        self.0 += u64::from(node == Dumbbell::LINK);
    }
}

#[tokio::test]
async fn a_stream_crosses_a_middlebox_and_stops_on_request() {
    let Some(()) = or_skip(requirements()) else { return };
    let link = |words: &str| {
        let spec = words.parse().unwrap();
        Link::new(&spec, &spec).unwrap()
    };
    let chain = Chain::new(link("delay 1ms"), link("rate 20mbit limit 1000 drop 9"));
    let set_events = |chain: &mut Chain<Link, Link>, on| {
        chain.near.set_events(on);
        chain.far.set_events(on);
    };
    let mut plan = Plan::over(Host::Kernel, chain, Host::Kernel, set_events);
    let events = Arc::new(Mutex::new(LinkEvents::default()));
    plan.observer = Some(events.clone());
    let dumbbell = Dumbbell::build(plan).unwrap();
    let course = Course { way: Way::Forth, is_ipv6: true, congestion: None };
    let mut stream = dumbbell.stream(&course).await.unwrap();
    let mut arrivals = Arrivals::of(&stream);
    stream.follow(Duration::from_millis(200), &mut arrivals).await.unwrap();
    assert!(arrivals.looks().last().unwrap().1 > arrivals.looks()[0].1);

    stream.set_going(false);
    for _ in 0..1_000 {
        // The current write is completed first.
        let written = stream.written();
        stream.wait(Duration::from_millis(10)).await.unwrap();
        if stream.written() == written && stream.arrived() == written {
            break;
        }
    }
    let written = stream.written();
    assert_eq!(stream.arrived(), written, "all of it has arrived");
    let offered = |chain: &mut Chain<Link, Link>, now| {
        (chain.near.occupancy(Way::Forth, now), chain.near.counters(Way::Forth).received)
    };
    let (_, before) = dumbbell.act(offered);
    stream.set_going(true);
    while stream.arrived() == written {
        stream.wait(Duration::from_millis(1)).await.unwrap();
    }
    assert!(dumbbell.act(offered).1 > before);
    let shown = dumbbell.left().namespace().ss().unwrap();
    assert!(shown.contains(" cwnd:") && shown.contains(" rto:"), "{shown}");
    let ended = stream.end().await.unwrap();
    assert!(ended.sender.starts_with("kernel ") && ended.retransmissions > 0, "{ended:?}");
    let repeated = dumbbell.left().namespace().retransmissions().unwrap();
    assert!(repeated >= ended.retransmissions);
    dumbbell.left().namespace().tcp_counter("TCPLossProbes").unwrap();
    assert!(dumbbell.left().namespace().tcp_counter("TCPNothing").is_err());
    dumbbell.stop().unwrap();
    // The ninth packet in each direction is dropped.
    assert!(events.lock().unwrap().0 >= 1);
}

const ROLE: &str = "AIRTCP_TESTBED_ROLE";

/// A command that runs this test alone in a process of its own, with `role` in its environment.
fn again(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(ROLE, role);
    command
}

#[test]
#[ignore = "the part that the next test kills"]
fn part_to_be_killed() {
    if std::env::var(ROLE).as_deref() != Ok("killed") {
        return;
    }
    let (one, other) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    one.connect("eth0", &other, "eth0").unwrap();
    let _tun = one.run(|| TunFile::open("tun0")).unwrap();
    one.configure("tun0", &[cidr("10.3.0.1/24")], None).unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("1000");
    let mut child = one.spawn_child(sleep).unwrap();
    println!("\ninode {}", one.as_file().metadata().unwrap().ino());
    child.wait().unwrap();
}

#[test]
fn being_killed_leaves_nothing() {
    let Some(()) = or_skip(requirements()) else { return };
    let (before, named_before) = (own_interfaces(), named_namespaces());
    let mut part =
        again("tests::part_to_be_killed", "killed").stdout(Stdio::piped()).spawn().unwrap();
    let inode: u64 = BufReader::new(part.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("inode ")?.parse().ok())
        .expect("the part says where it is");
    assert!(is_inhabited(inode));
    // SIGKILL: no destructor and no signal handler runs.
    part.kill().unwrap();
    part.wait().unwrap();
    assert!(becomes(|| !is_inhabited(inode)), "the child it had is gone too");
    assert!(own_interfaces().is_subset(&before));
    assert!(named_namespaces().is_subset(&named_before), "nothing under /run/netns");
}
