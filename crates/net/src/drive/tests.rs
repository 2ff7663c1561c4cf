use std::sync::{Arc, Mutex};
use std::time::Duration;

use airtcp_device::{Memory, memory};
use airtcp_types::{Checksum, Event, EventKind, Fate, NodeId, Observer, SharedBytes};

use super::*;

/// Holds each packet for a time, passes it to the other port, and reports an event.
#[derive(Default)]
struct Delay {
    hold: Duration,
    held: VecDeque<(Instant, PortId, Packet)>,
    events: VecDeque<Event>,
    late_calls: u64,
}

impl Node for Delay {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        let kind = EventKind::Packet { fate: Fate::Duplicated, packet: packet.clone() };
        self.events.push_back(Event { at: now, flow: None, kind });
        self.held.push_back((now + self.hold, PortId(1 - port.0), packet));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.late_calls += u64::from(self.poll_timeout().is_none_or(|due| due > now));
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.held.front().filter(|(due, ..)| *due <= now)?;
        let (_, port, packet) = self.held.pop_front()?;
        Some((port, packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.held.front().map(|(due, ..)| *due)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

fn packets(count: usize) -> VecDeque<Packet> {
    (0..count).map(|n| Packet::new(vec![n as u8; 40])).collect()
}

/// Returns a driver of a node that holds packets for `hold`, and the other ends of its two devices.
fn between(hold: Duration) -> (Memory, Driver<Delay, Memory>, Memory) {
    let (left, a) = memory::pair(1500, 4096);
    let (b, right) = memory::pair(1500, 8);
    let node = Delay { hold, ..Delay::default() };
    (left, Driver::new(node, [a, b], Clock::start()).unwrap(), right)
}

/// Runs the driver until `count` packets have arrived.
async fn run_until(driver: &mut Driver<Delay, Memory>, device: &mut Memory, count: usize) {
    let mut arrived = Vec::new();
    let receiving = async {
        while arrived.len() < count {
            device.recv(&mut arrived, count).await.unwrap();
        }
    };
    tokio::select! {
        ended = driver.run() => panic!("{}", ended.unwrap_err()),
        () = receiving => {}
    }
    let expected: Vec<_> = packets(count).into();
    assert_eq!(arrived, expected);
}

#[tokio::test]
async fn packets_leave_when_they_are_due_and_in_order() {
    let hold = Duration::from_millis(3);
    let (mut left, mut driver, mut right) = between(hold);
    let before = driver.clock().now();
    left.send(&mut packets(100)).await;
    run_until(&mut driver, &mut right, 100).await;
    assert!(driver.clock().now().since(before) >= hold);
    // The other end may have received the last packets before the driver reads its clock.
    assert!(driver.lateness().packets() >= 92, "{}", driver.lateness());
    assert_eq!(driver.node().late_calls, 0, "no call before its time");
    right.send(&mut packets(5)).await;
    run_until(&mut driver, &mut left, 5).await;
    assert_eq!((driver.dropped(0), driver.dropped(1)), (0, 0));
    let (first, last) = driver.span(1).unwrap();
    assert!(first.since(before) >= hold && last >= first && driver.span(0).unwrap().0 > last);
}

#[tokio::test]
async fn packets_for_a_full_device_wait_up_to_a_bound_and_are_then_counted() {
    let (mut left, mut driver, mut right) = between(Duration::ZERO);
    left.send(&mut packets(3_000)).await;
    // The device on the right, which has room for 8, is not read.
    let waiting = |driver: &Driver<Delay, Memory>| driver.work.ports[1].outbox.len();
    for _ in 0..64 {
        tokio::select! {
            biased;
            ended = driver.run() => panic!("{}", ended.unwrap_err()),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(waiting(&driver), ROOM);
    assert_eq!(driver.dropped(1), (3_000 - ROOM - 8) as u64);
    // Waiting packets arrive in order when there is room, and are counted once.
    run_until(&mut driver, &mut right, ROOM + 8).await;
    assert_eq!(waiting(&driver), 0);
    assert_eq!(driver.device(1).counters().tx_packets, (ROOM + 8) as u64);
}

#[tokio::test]
async fn a_device_that_is_gone_is_named() {
    let (left, mut driver, _right) = between(Duration::ZERO);
    drop(left);
    let error = driver.run().await.unwrap_err();
    assert!(matches!(error, DriveError::Gone { port: PortId(0), .. }), "{error}");
    assert!(error.to_string().starts_with("the device memory was removed"), "{error}");
}

#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        assert!(now > Instant::ZERO);
        self.0.push(format!("{} {crossing:?} {}", node.0, packet.len()));
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        self.0.push(format!("{} {:?}", node.0, matches!(event.kind, EventKind::Packet { .. })));
    }
}

#[tokio::test]
async fn an_observer_is_shown_packets_and_events() {
    let (mut left, mut driver, mut right) = between(Duration::from_micros(200));
    let notes = Arc::new(Mutex::new(Notes::default()));
    driver.watch(Watch::new(notes.clone(), NodeId(7)));
    driver.watch_host(0, Watch::new(notes.clone(), NodeId(6)));
    driver.watch_host(1, Watch::new(notes.clone(), NodeId(8)));
    left.send(&mut packets(1)).await;
    run_until(&mut driver, &mut right, 1).await;
    assert_eq!(notes.lock().unwrap().0, ["6 Out 40", "7 In 40", "7 true", "7 Out 40", "8 In 40"]);
}

/// Returns a TCP super-segment over IPv4 with 2500 bytes of payload in segments of 1000.
fn super_segment() -> Packet {
    let mut data = vec![0; 40];
    (data[0], data[9], data[32]) = (0x45, 6, 5 << 4);
    let payload = Arc::new((0..2500).map(|at| at as u8).collect::<Vec<_>>());
    let tail = vec![SharedBytes::new(&payload, 0..2500)];
    Packet { data, tail, segment_size: Some(1000), checksum: Checksum::Partial }
}

#[tokio::test]
async fn a_driver_in_a_task_of_its_own_ends_when_a_device_is_gone() {
    let (mut left, mut driver, mut right) = between(Duration::ZERO);
    let driving = tokio::spawn(async move { driver.run().await });
    left.send(&mut packets(1)).await;
    let mut arrived = Vec::new();
    assert_eq!(right.recv(&mut arrived, 1).await.unwrap(), 1);
    drop(left);
    let DriveError::Gone { port, .. } = driving.await.unwrap().unwrap_err() else {
        panic!("a timer failed")
    };
    assert_eq!(port, PortId(0));
}

#[tokio::test]
async fn the_node_and_its_observers_see_packets_of_mtu_size() {
    let (mut left, a) = memory::offloading_pair(1500, 8);
    let (b, mut right) = memory::pair(1500, 8);
    let mut driver = Driver::new(Delay::default(), [a, b], Clock::start()).unwrap();
    let notes = Arc::new(Mutex::new(Notes::default()));
    driver.watch(Watch::new(notes.clone(), NodeId(7)));
    driver.watch_host(0, Watch::new(notes.clone(), NodeId(6)));
    let mut expected = Vec::new();
    into_segments(super_segment(), |segment| expected.push(segment));
    left.send(&mut VecDeque::from([super_segment()])).await;
    let mut arrived = Vec::new();
    while arrived.len() < 3 {
        tokio::select! {
            ended = driver.run() => panic!("{}", ended.unwrap_err()),
            received = right.recv(&mut arrived, 8) => drop(received.unwrap()),
        }
    }
    assert_eq!(arrived, expected);
    let notes = notes.lock().unwrap();
    let crossings = |of: &str| notes.0.iter().filter(|note| note.starts_with(of)).count();
    let counts = ["6 Out 1040", "6 Out 540", "7 In 1040", "7 In 540", "7 Out 1040", "7 Out 540"];
    assert_eq!(counts.map(crossings), [2, 1, 2, 1, 2, 1]);
}
