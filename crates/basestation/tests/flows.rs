//! Whole transfers between two airtcp hosts over a link and a station, in virtual time.

mod reader;

use std::time::Duration;

use airtcp_basestation::station::Status;
use airtcp_basestation::{Policy, Station, StationConfig};
use airtcp_link::{Arq, Link};
use airtcp_stack::host::{Host, HostConfig, SocketId};
use airtcp_stack::tcp::{Info, MarkAware};
use airtcp_types::{ByteCount, Instant, Node, PortId, Rate};

use reader::{Reader, pattern};

/// The parameters of a transfer.
#[derive(Clone)]
struct Course {
    radio: &'static str,
    wire: &'static str,
    arq: Arq,
    policy: Policy,
    /// Whether the mobile suppresses duplicate ACKs by the marks.
    is_aware: bool,
    sender: &'static str,
    server: &'static str,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            radio: "error 20% seed 1",
            wire: "rate 100mbit delay 20ms limit 1000",
            arq: Arq::MacLink,
            policy: Policy::TcpEcn,
            is_aware: true,
            sender: "sack/cubic",
            server: "192.168.0.2:5001",
        }
    }
}

/// A path on which the fixed host sends and the mobile reads.
struct Path {
    now: Instant,
    fixed: Host,
    wire: Link,
    station: Station,
    mobile: Host,
    sender: SocketId,
    reader: Reader,
    written: u64,
}

fn host(addresses: [&str; 2], secret: u8) -> HostConfig {
    let mut config = HostConfig::new(addresses.map(|cidr| cidr.parse().unwrap()));
    config.secret = [secret; 16];
    config
}

impl Path {
    fn new(course: &Course) -> Self {
        let now = Instant::ZERO;
        let mut config = host(["10.0.0.1/8", "fd00::1/64"], 1);
        config.tcp.sender.combination = course.sender.parse().unwrap();
        let mut fixed = Host::new(config);
        let mut config = host(["192.168.0.2/24", "fd01::2/64"], 2);
        config.tcp.mark_aware = course.is_aware.then(MarkAware::default);
        let mut mobile = Host::new(config);
        let server = course.server.parse().unwrap();
        let listener = mobile.tcp_listen(server, 1).unwrap();
        let sender = fixed.tcp_connect(now, server, None).unwrap();
        let wire = course.wire.parse().unwrap();
        let station = StationConfig {
            radio: course.radio.parse().unwrap(),
            arq: course.arq,
            policy: course.policy,
            ..StationConfig::default()
        };
        Self {
            now,
            fixed,
            wire: Link::new(&wire, &wire).unwrap(),
            station: Station::new(&station).unwrap(),
            mobile,
            sender,
            reader: Reader::new(listener),
            written: 0,
        }
    }

    fn work(&mut self) {
        let now = self.now;
        loop {
            let mut is_moved = self.write() | self.reader.read(&mut self.mobile, now);
            while let Some((_, packet)) = self.fixed.poll_transmit(now) {
                self.wire.handle_packet(now, PortId(0), packet);
                is_moved = true;
            }
            while let Some((port, packet)) = self.wire.poll_transmit(now) {
                match port {
                    PortId(0) => self.fixed.handle_packet(now, PortId(0), packet),
                    _ => self.station.handle_packet(now, PortId(0), packet),
                }
                is_moved = true;
            }
            while let Some((port, packet)) = self.station.poll_transmit(now) {
                match port {
                    PortId(0) => self.wire.handle_packet(now, PortId(1), packet),
                    _ => self.mobile.handle_packet(now, PortId(0), packet),
                }
                is_moved = true;
            }
            while let Some((_, packet)) = self.mobile.poll_transmit(now) {
                self.station.handle_packet(now, PortId(1), packet);
                is_moved = true;
            }
            if !is_moved {
                return;
            }
        }
    }

    fn write(&mut self) -> bool {
        if !self.fixed.readiness(self.sender).is_ok_and(|ready| ready.writable) {
            return false;
        }
        let data: Vec<u8> = (self.written..self.written + 65_536).map(pattern).collect();
        let sent = self.fixed.tcp_send(self.now, self.sender, &data).unwrap_or(0);
        self.written += sent as u64;
        sent > 0
    }

    /// Advances the time to this number of seconds; returns the goodput of that interval.
    fn run(&mut self, seconds: f64) -> Rate {
        let (from, before) = (self.now, self.reader.read);
        let end = Instant::ZERO + Duration::from_secs_f64(seconds);
        loop {
            self.work();
            let nodes: [&mut dyn Node; 4] =
                [&mut self.fixed, &mut self.wire, &mut self.station, &mut self.mobile];
            let next = nodes.iter().filter_map(|node| node.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            for node in nodes {
                if node.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
        }
        self.now = end;
        Rate::from_bytes_over(ByteCount(self.reader.read - before), end.since(from))
    }

    fn info(&self) -> Info {
        self.fixed.tcp(self.sender).unwrap().info(self.now)
    }

    fn status(&self) -> Status {
        self.station.status(self.now)
    }
}

fn mbit(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64 / 1e6
}

#[test]
fn where_the_radio_loses_nothing_the_station_costs_nothing() {
    // The radio's queue is the bottleneck, and drops: the next segments are marked, the fixed host
    // retransmits, and no duplicate ACKs are dropped.
    for server in ["192.168.0.2:5001", "[fd01::2]:5001"] {
        let goodput = |policy, is_aware| {
            let radio = "error 0%";
            let course = Course { radio, policy, is_aware, server, ..Course::default() };
            let mut path = Path::new(&course);
            let goodput = mbit(path.run(10.0));
            (goodput, path.status())
        };
        let (plain, _) = goodput(Policy::Plain, false);
        let (ours, status) = goodput(Policy::TcpEcn, true);
        assert!(status.radio[0].queue_dropped > 0 && status.counters.marked > 0);
        assert_eq!(status.counters.hidden, 0);
        assert!(plain > 4.5 && ours > plain * 0.98, "{server}: {ours} of {plain}");
    }
}

#[test]
fn where_the_radio_reorders_the_sender_is_spared_what_the_radio_repairs() {
    let run = |policy, is_aware| {
        let radio = "error 40% tries 4 seed 1";
        let mut path = Path::new(&Course { radio, policy, is_aware, ..Course::default() });
        let goodput = mbit(path.run(18.0));
        (goodput, path.info().retrans, path.status(), path.mobile.counters().clone())
    };
    let (plain, again, status, _) = run(Policy::Plain, false);
    assert!(status.radio[0].reordered > 50, "{status:?}");
    let (ours, ours_again, status, mobile) = run(Policy::TcpEcn, true);
    assert!(status.radio[0].reordered > 50 && mobile.tcp_ext_dup_acks_withheld > 500);
    assert!(ours > plain * 1.05, "{ours} Mbit/s, and {plain} without");
    assert!(ours_again < again, "{ours_again} sent again, and {again} without");
    // A receiver that ignores marks: the filter drops its duplicate ACKs.
    let (_, _, status, _) = run(Policy::TcpEcn, false);
    assert!(status.counters.hidden > 100, "{status:?}");
}

/// The time in seconds from the mobile's return to the first 250 ms in which the sender has nine
/// tenths of its former rate.
fn comes_back_after(course: &Course, lead: f64) -> f64 {
    let mut path = Path::new(course);
    path.run(3.0);
    let before = mbit(path.run(6.0));
    path.station.freeze(path.now);
    path.run(6.0 + lead);
    path.station.disconnect(path.now);
    path.run(16.0);
    path.station.reconnect(path.now);
    let step = 0.25;
    let is_back = |n: &u32| mbit(path.run(16.0 + f64::from(*n) * step)) >= 0.9 * before;
    let first = (1..=40).find(is_back).expect("it comes back");
    assert_eq!(
        path.mobile.counters().tcp_ext_paws_estab,
        0,
        "what was held is in the order of its stamps"
    );
    f64::from(first - 1) * step
}

#[test]
fn a_stopped_sender_resumes_at_once_when_the_mobile_is_back() {
    let course = Course { radio: "seed 2", sender: "rack/cubic", ..Course::default() };
    let plain = Course { policy: Policy::Plain, is_aware: false, ..course.clone() };
    let (plain, ours) = (comes_back_after(&plain, 0.0), comes_back_after(&course, 0.0));
    let warned = comes_back_after(&course, 0.06);
    println!(
        "back after {plain} s without freezing, {ours} s with it, {warned} s one round trip ahead"
    );
    assert!(plain > 1.0, "its timer has backed off: {plain} s");
    assert!(ours <= 0.5 && warned <= 0.5, "{ours} s, {warned} s");
}
