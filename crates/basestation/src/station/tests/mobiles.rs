//! Several mobiles behind one station: none of them disturbs another.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use airtcp_link::Way;
use airtcp_link::radio::MobileNo;
use airtcp_types::ByteCount;
use proptest::prelude::*;

use super::super::freezer::BEACON;
use super::super::{MobileChange, MobileConfig, MobileStatus, Origin, Prefix, Reach};
use super::properties::{Step, packet_of, step};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// The flow from a fixed host to the mobile with this number.
fn flow(mobile: usize) -> FlowKey {
    let address = Ipv4Addr::new(10, 1, 0, mobile as u8);
    FlowKey {
        fixed: SocketAddr::from(([10, 0, 0, 1], 80)),
        mobile: SocketAddr::from((address, 5_000)),
    }
}

/// A mobile with a name, and the words of its radio.
fn named(mobile: usize, radio: &str) -> MobileConfig {
    MobileConfig {
        name: format!("m{mobile}"),
        addresses: vec![Prefix::host(flow(mobile).mobile.ip())],
        radio: radio.to_owned(),
        hold: None,
        hold_packets: None,
    }
}

/// A station with the mobiles 1 to `count`, and its clock.
struct World {
    station: Station,
    now: Instant,
    /// For each mobile, the time and the sequence number of each segment that it received.
    received: BTreeMap<usize, Vec<(Instant, u32)>>,
    /// The segments to the fixed host.
    acks: Vec<(SocketAddr, u32, u16)>,
}

impl World {
    fn new(radio: &str, count: usize, change: impl FnOnce(&mut StationConfig)) -> Self {
        let mut config = StationConfig {
            radio: radio.parse().unwrap(),
            policy: Policy::TcpEcn,
            mobile: (1..=count).map(|mobile| named(mobile, "")).collect(),
            ..StationConfig::default()
        };
        change(&mut config);
        let station = Station::new(&config).unwrap();
        Self { station, now: Instant::ZERO, received: BTreeMap::new(), acks: Vec::new() }
    }

    fn drain(&mut self) {
        while let Some((side, of, packet)) = self.station.poll_sent(self.now) {
            let segment = Segment::read(&packet).unwrap();
            if side == Side::Wired {
                self.acks.push((segment.src, segment.ack.0, segment.window));
                continue;
            }
            let to = &self.station.mobiles[of];
            let is_its = to.addresses.iter().any(|own| own.contains(segment.dst.ip()));
            assert!(is_its || of == MobileNo::OTHERS, "{} for {}", segment.dst, to.name);
            let IpAddr::V4(address) = segment.dst.ip() else { panic!("{}", segment.dst) };
            let mobile = usize::from(address.octets()[3]);
            self.received.entry(mobile).or_default().push((self.now, segment.seq.0));
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.station.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            self.station.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
        self.station.handle_timeout(self.now);
        self.drain();
    }

    fn fixed(&mut self, mobile: usize, seg: &Seg) {
        let FlowKey { fixed, mobile } = flow(mobile);
        self.station.handle_packet(self.now, Side::Wired.port(), seg.packet(fixed, mobile));
        self.drain();
    }

    fn mobile(&mut self, mobile: usize, seg: &Seg) {
        let FlowKey { fixed, mobile } = flow(mobile);
        self.station.handle_packet(self.now, Side::Wireless.port(), seg.packet(mobile, fixed));
        self.drain();
    }

    /// Sends a segment to a mobile, which acknowledges it.
    fn open(&mut self, mobile: usize) {
        self.fixed(mobile, &Seg::data(0, 1_000));
        self.run(SECOND / 10);
        self.mobile(mobile, &Seg::ack(1, 1_000));
        self.run(SECOND / 10);
    }

    fn status(&self, name: &str) -> MobileStatus {
        let all = self.station.mobiles(self.now);
        all.into_iter().find(|mobile| mobile.name == name).unwrap()
    }

    fn numbers(&self, mobile: usize) -> Vec<u32> {
        let received = self.received.get(&mobile).map_or(&[][..], Vec::as_slice);
        received.iter().map(|(_, seq)| *seq).collect()
    }
}

fn data(number: u32) -> Seg {
    Seg::data(1_000 * number, 1_000)
}

#[test]
fn a_mobile_that_leaves_is_alone_in_being_gone() {
    let mut world = World::new("", 2, |_| {});
    world.station.set_mobile_events(true);
    (1..=2).for_each(|mobile| world.open(mobile));
    world.acks.clear();
    let left = world.now;
    world.station.leave(left, "m1").unwrap();
    (1..=2).for_each(|mobile| world.fixed(mobile, &data(1)));
    world.run(SECOND);
    assert_eq!((world.numbers(1), world.numbers(2)), (vec![0], vec![0, 1_000]));
    assert_eq!(world.acks, [(flow(1).mobile, 1_000, 0)], "one sender is stopped");
    let (one, other) = (world.status("m1"), world.status("m2"));
    assert_eq!((one.reach, one.held, one.frozen, one.departures), (Reach::Gone, 1, 1, 1));
    assert_eq!((other.reach, other.held, other.frozen, other.flows), (Reach::There, 0, 0, 1));
    assert!((one.reach_seconds - 1.0).abs() < 1e-9 && !one.connected && other.connected);
    assert_eq!((one.counters.held, other.counters.held), (1, 0));
    assert_eq!(world.station.status(world.now).reach, Reach::There, "the others");
    world.station.join(world.now, "m1").unwrap();
    world.run(SECOND);
    assert_eq!(world.numbers(1), [0, 1_000]);
    let one = world.status("m1");
    assert_eq!((one.reach, one.held, one.frozen), (Reach::There, 0, 0));
    assert_eq!((one.traffic[0].packets, one.traffic[1].packets), (2, 1));
    let events = std::iter::from_fn(|| world.station.poll_mobile_event());
    let events: Vec<_> =
        events.map(|event| (event.at, event.mobile.to_string(), event.change)).collect();
    let reach = |at, reach| (at, "m1".to_owned(), MobileChange::Reach(reach));
    assert_eq!(events, [reach(left, Reach::Gone), reach(left + SECOND, Reach::There)]);
}

#[test]
fn a_name_that_no_mobile_has_is_refused() {
    let mut world = World::new("", 1, |_| {});
    for name in ["m2", "", "others"] {
        let error = world.station.leave(world.now, name).unwrap_err();
        assert_eq!(world.station.join(world.now, name), Err(error.clone()));
        assert!(error.to_string().starts_with(&format!("no mobile has the name `{name}`")));
    }
    assert_eq!(world.status("m1").reach, Reach::There);
    assert!(World::new("", 0, |_| {}).station.mobiles(Instant::ZERO).is_empty());
}

#[test]
fn each_mobile_has_its_own_bound_on_absence() {
    let mut world = World::new("", 2, |config| config.absence = 10 * SECOND);
    (1..=2).for_each(|mobile| world.open(mobile));
    for name in ["m1", "m2"] {
        world.station.leave(world.now, name).unwrap();
        world.run(6 * SECOND);
    }
    // The first one has been gone for 12 s, the second one for 6 s.
    (1..=2).for_each(|mobile| world.fixed(mobile, &data(1)));
    let (one, other) = (world.status("m1"), world.status("m2"));
    assert_eq!((one.reach, one.held, one.frozen), (Reach::Lost, 0, 0));
    assert_eq!((other.reach, other.held, other.frozen), (Reach::Gone, 1, 1));
    world.run(6 * SECOND);
    let other = world.status("m2");
    assert_eq!((other.reach, other.held, other.frozen), (Reach::Lost, 0, 0));
    assert_eq!((other.counters.held_dropped, other.counters.let_go), (1, 1));
    let (one, all) = (world.status("m1").counters, world.station.counters());
    assert_eq!((one.held_dropped, all.held_dropped, all.let_go), (0, 1, 1));
}

#[test]
fn a_flood_for_a_mobile_that_is_gone_takes_the_room_of_no_other() {
    let mut world = World::new("", 2, |config| {
        config.hold = ByteCount::from_kib(192);
        config.mobile[1].hold_packets = Some(3);
    });
    (1..=2).for_each(|mobile| world.open(mobile));
    for name in ["m1", "m2"] {
        world.station.leave(world.now, name).unwrap();
    }
    (1..1_000).for_each(|n| world.fixed(1, &data(n)));
    (1..10).for_each(|n| world.fixed(2, &data(n)));
    let (one, other) = (world.status("m1"), world.status("m2"));
    assert!(one.held_bytes <= 64 << 10 && one.held > 40, "{} {}", one.held, one.held_bytes);
    assert_eq!(one.counters.held_dropped, 999 - one.held as u64);
    assert_eq!((other.held, other.counters.held_dropped), (3, 6));
}

#[test]
fn a_mobile_that_is_heard_has_its_own_reach_until_another_takes_its_place() {
    let mut world = World::new("", 0, |config| config.heard = 2);
    world.station.set_mobile_events(true);
    (1..=3).for_each(|mobile| world.open(mobile));
    let names: Vec<_> = world
        .station
        .mobiles(world.now)
        .into_iter()
        .map(|mobile| (mobile.name, mobile.origin))
        .collect();
    let heard = |name: &str| (name.to_owned(), Origin::Heard);
    let others = ("others".to_owned(), Origin::Others);
    assert_eq!(names, [heard("10.1.0.1"), heard("10.1.0.2"), others.clone()]);
    assert!(world.station.status(world.now).mobile_full > 0);
    world.station.leave(world.now, "10.1.0.1").unwrap();
    (1..=3).for_each(|mobile| world.fixed(mobile, &data(1)));
    world.run(SECOND);
    let received = [1, 2, 3].map(|mobile| world.numbers(mobile).len());
    assert_eq!(received, [1, 2, 2]);
    // The first mobile has been silent for longest, but a packet waits for it.
    world.run(60 * SECOND);
    world.mobile(3, &Seg::ack(1, 2_000));
    world.run(SECOND);
    assert_eq!(world.status("10.1.0.1").held, 1);
    assert_eq!(world.status("10.1.0.3").origin, Origin::Heard);
    assert!(world.station.leave(world.now, "10.1.0.2").is_err(), "it was forgotten");
    world.station.join(world.now, "10.1.0.1").unwrap();
    world.fixed(2, &data(2));
    world.run(SECOND);
    let received = [1, 2, 3].map(|mobile| world.numbers(mobile).len());
    assert_eq!(received, [2, 3, 2]);
    let events = std::iter::from_fn(|| world.station.poll_mobile_event());
    let events: Vec<_> = events.map(|event| (event.mobile.to_string(), event.change)).collect();
    let event = |name: &str, change| (name.to_owned(), change);
    let expected = [
        event("10.1.0.1", MobileChange::Heard),
        event("10.1.0.2", MobileChange::Heard),
        event("10.1.0.1", MobileChange::Reach(Reach::Gone)),
        event("10.1.0.2", MobileChange::Forgotten),
        event("10.1.0.3", MobileChange::Heard),
        event("10.1.0.1", MobileChange::Reach(Reach::There)),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_mobile_that_left_keeps_its_place_with_each_policy() {
    for policy in [Policy::Plain, Policy::Snoop, Policy::TcpEcn, Policy::DelayedDupack] {
        let mut world = World::new("", 0, |config| (config.heard, config.policy) = (1, policy));
        world.open(1);
        world.station.leave(world.now, "10.1.0.1").unwrap();
        world.run(61 * SECOND);
        world.mobile(2, &Seg::ack(1, 1_000));
        world.run(SECOND);
        assert_eq!(world.status("10.1.0.1").reach, Reach::Gone, "{policy:?}");
        world.station.join(world.now, "10.1.0.1").unwrap();
        world.run(61 * SECOND);
        world.mobile(2, &Seg::ack(1, 1_000));
        world.run(SECOND);
        assert_eq!(world.status("10.1.0.2").origin, Origin::Heard, "{policy:?}");
    }
}

#[test]
fn mobiles_out_of_reach_cost_the_packets_of_another_nothing() {
    let mut world = World::new("", 100, |_| {});
    for mobile in 1..100 {
        // The first frame is on the air, and the others wait in the queue.
        (0..3).for_each(|number| world.fixed(mobile, &data(number)));
        world.station.leave(world.now, &format!("m{mobile}")).unwrap();
        world.run(SECOND / 1_000);
    }
    world.run(SECOND);
    for number in 0..500 {
        world.fixed(100, &data(number));
        assert_eq!(world.station.mobiles.due(world.now), [], "{number}");
        world.run(SECOND / 500);
    }
    // Each of them is looked for in a beacon interval.
    let absent: Vec<_> = (1..100).map(MobileNo).collect();
    assert_eq!(world.station.mobiles.due(world.now + BEACON), absent);
    (1..100).for_each(|mobile| world.station.join(world.now, &format!("m{mobile}")).unwrap());
    world.run(10 * SECOND);
    for mobile in 1..100 {
        assert_eq!(world.numbers(mobile), [0, 1_000, 2_000], "{mobile}");
    }
    assert_eq!(world.numbers(100).len(), 500);
    let status = world.station.status(world.now);
    assert_eq!((status.radio[0].disconnected, status.held), (0, 0));
    assert_eq!(world.station.mobiles.due(world.now + BEACON), [], "all are in reach");
}

#[test]
fn a_mobile_that_moves_into_reach_is_noticed_within_a_beacon_interval() {
    let path = "at 0s 100 at 1s 100 at 2s 400 at 3s 400 at 4s 100";
    let mut world = World::new("", 2, |config| config.mobile[0].radio = path.to_owned());
    world.station.set_mobile_events(true);
    let (mut was_gone, mut returned) = (false, None);
    for number in 0..1_000 {
        world.fixed(2, &data(number));
        world.run(SECOND / 200);
        let is_in_reach = world.station.radio().reception(world.now, MobileNo(1)).is_in_reach;
        was_gone |= !is_in_reach;
        if was_gone && is_in_reach && returned.is_none() {
            returned = Some(world.now);
        }
    }
    let events = std::iter::from_fn(|| world.station.poll_mobile_event());
    let events: Vec<_> = events.map(|event| (event.change, event.at)).collect();
    let last = events.iter().rposition(|(change, _)| *change == MobileChange::Reach(Reach::Gone));
    let (change, noticed) = events[last.unwrap() + 1];
    assert!(matches!(change, MobileChange::Reach(Reach::There | Reach::Leaving)), "{events:?}");
    assert!(noticed <= returned.unwrap() + BEACON, "{noticed:?} {returned:?}");
    assert_eq!(world.status("m1").reach, Reach::There);
}

#[test]
fn a_flow_without_room_in_the_share_of_its_mobile_is_not_frozen() {
    // A share has two flows.
    let mut world = World::new("", 0, |config| (config.heard, config.flows) = (1, 4));
    let put = |world: &mut World, side: Side, port: u16, seg: &Seg| {
        let FlowKey { fixed, mut mobile } = flow(2);
        mobile.set_port(port);
        let (src, dst) = if side == Side::Wired { (fixed, mobile) } else { (mobile, fixed) };
        world.station.handle_packet(world.now, side.port(), seg.packet(src, dst));
        world.drain();
        world.run(SECOND / 10);
    };
    let open = |world: &mut World, port: u16| {
        put(world, Side::Wired, port, &data(0));
        put(world, Side::Wireless, port, &Seg::ack(1, 1_000));
    };
    world.open(1);
    // Two flows of a mobile that has no place, and two after it got one.
    [1, 2].into_iter().for_each(|port| open(&mut world, port));
    world.run(60 * SECOND);
    [3, 4].into_iter().for_each(|port| open(&mut world, port));
    let flows = |world: &World| ["10.1.0.2", "others"].map(|name| world.status(name).flows);
    assert_eq!(flows(&world), [2, 2]);
    world.station.leave(world.now, "10.1.0.2").unwrap();
    world.acks.clear();
    [3, 4, 1].into_iter().for_each(|port| put(&mut world, Side::Wired, port, &data(1)));
    let closed: Vec<_> = world.acks.iter().map(|(mobile, ..)| mobile.port()).collect();
    assert_eq!(closed, [3, 4]);
    let frozen = |world: &World| ["10.1.0.2", "others"].map(|name| world.status(name).frozen);
    assert_eq!((frozen(&world), world.status("10.1.0.2").held), ([2, 0], 3));
    world.station.join(world.now, "10.1.0.2").unwrap();
    world.run(SECOND);
    assert_eq!(frozen(&world), [0, 0]);
    assert_eq!(world.numbers(2).iter().filter(|seq| **seq == 1_000).count(), 3);
}

#[test]
fn a_mobile_speaks_for_its_own_addresses_only() {
    let mut world = World::new("", 2, |_| {});
    let FlowKey { fixed, mobile } = flow(2);
    let packet = || Seg { flags: "S", ..Seg::ack(1, 0) }.packet(mobile, fixed);
    world.station.radio.receive(world.now, MobileNo(1), packet());
    world.run(SECOND);
    assert_eq!((world.acks.len(), world.station.counters().spoofed_sources), (0, 1));
    world.station.radio.receive(world.now, MobileNo(2), packet());
    world.run(SECOND);
    assert_eq!((world.acks.len(), world.station.counters().spoofed_sources), (1, 1));
}

#[test]
fn named_mobiles_are_in_the_mobiles_networks() {
    let mut world =
        World::new("", 1, |config| config.mobiles = vec!["10.9.0.0/16".parse().unwrap()]);
    (1..=2).for_each(|mobile| world.mobile(mobile, &Seg { flags: "S", ..Seg::ack(1, 0) }));
    world.run(SECOND);
    assert_eq!(world.acks.len(), 1);
    assert_eq!(world.station.counters().spoofed_sources, 1);
}

#[test]
fn a_description_of_a_mobiles_radio_that_is_wrong_names_the_mobile() {
    let config = StationConfig { mobile: vec![named(1, "queue 5")], ..StationConfig::default() };
    let error = Station::new(&config).unwrap_err().to_string();
    assert!(error.starts_with("mobile `m1`: radio: at byte 0, `queue`"), "{error}");
}

/// Keeps ten mobiles' queues filled for 10 s; returns how many segments each of them received.
fn ten_saturated(first: &str) -> Vec<usize> {
    let mut world = World::new("seed 3", 10, |config| config.mobile[0].radio = first.to_owned());
    let mut next = [0; 11];
    while world.now < Instant::ZERO + 10 * SECOND {
        for (mobile, next) in next.iter_mut().enumerate().skip(1) {
            let of = MobileNo(mobile as u16);
            while world.station.radio().queued(Way::Forth, Some(of)).0 < 5 {
                world.fixed(mobile, &data(*next));
                *next += 1;
            }
        }
        world.run(SECOND / 200);
    }
    (1..=10).map(|mobile| world.numbers(mobile).len()).collect()
}

#[test]
fn one_mobile_with_half_of_its_frames_lost_leaves_nine_others_their_share() {
    let whole = ten_saturated("");
    let hit = ten_saturated("error 50%");
    for (before, after) in whole.iter().zip(&hit).skip(1) {
        assert!(*before > 300 && *after as f64 >= 0.9 * *before as f64, "{after} of {before}");
    }
    assert!(hit[0] as f64 <= 0.6 * whole[0] as f64, "{} of {}", hit[0], whole[0]);
}

/// Sends 20 segments/s to each of twenty mobiles for 40 s. If `is_moving`, ten of them leave and
/// return every 5 s.
fn twenty(is_moving: bool) -> World {
    let mut world =
        World::new("error 10% seed 5", 20, |config| config.hold = ByteCount::from_mib(8));
    for step in 0..800_u32 {
        if is_moving && step.is_multiple_of(100) {
            for mobile in 1..=10 {
                let name = format!("m{mobile}");
                match step % 200 {
                    0 => world.station.leave(world.now, &name).unwrap(),
                    _ => world.station.join(world.now, &name).unwrap(),
                }
            }
        }
        (1..=20).for_each(|mobile| world.fixed(mobile, &data(step)));
        world.run(SECOND / 20);
        // Every half second, each mobile in reach acknowledges what it has received.
        for mobile in (1..=20).filter(|_| step % 10 == 9) {
            let of = MobileNo(mobile as u16);
            if world.station.radio().reception(world.now, of).is_connected
                && let Some(highest) = world.numbers(mobile).iter().max()
            {
                world.mobile(mobile, &Seg::ack(1, highest + 1_000));
            }
        }
    }
    (1..=10).for_each(|mobile| world.station.join(world.now, &format!("m{mobile}")).unwrap());
    world.run(20 * SECOND);
    world
}

#[test]
fn ten_that_leave_and_return_every_five_seconds_leave_the_others_their_packets() {
    let (still, moving) = (twenty(false), twenty(true));
    // When the segment was sent, 20 a second.
    let delay = |world: &World, mobile: usize| {
        let sent = |seq: u32| Instant::ZERO + SECOND / 20 * (seq / 1_000);
        let delays = world.received[&mobile].iter().map(|(at, seq)| at.since(sent(*seq)));
        delays.sum::<Duration>() / 800
    };
    for mobile in 11..=20 {
        let received = [&still, &moving].map(|world| world.numbers(mobile).len());
        assert!(received[1] as f64 >= 0.95 * received[0] as f64, "{received:?}");
        let [before, after] = [&still, &moving].map(|world| delay(world, mobile));
        assert!(after < before + SECOND / 4, "{before:?} {after:?}");
    }
    for mobile in 1..=10 {
        let status = moving.status(&format!("m{mobile}"));
        assert_eq!((status.departures, status.held, status.counters.held_dropped), (4, 0, 0));
        let [before, after] = [&still, &moving].map(|world| world.numbers(mobile).len());
        assert!(after + 8 >= before, "{after} of {before}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// The fixed host sends new data, or its last segment again.
    Data,
    Again,
    /// The mobile acknowledges what it has received.
    Ack,
    Leave,
    Join,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => Just(Act::Data),
        2 => Just(Act::Again),
        4 => Just(Act::Ack),
        1 => Just(Act::Leave),
        2 => Just(Act::Join),
    ]
}

fn name(mobile: usize) -> String {
    if mobile <= 2 { format!("m{mobile}") } else { flow(mobile).mobile.ip().to_string() }
}

proptest! {
    /// Two mobiles are named, two of three others are heard.
    #[test]
    fn packets_reach_their_mobile_only_and_none_is_dropped_below_the_limits(
        acts in prop::collection::vec((0u64..100_000, 1usize..6, act()), 1..150),
        errors in prop::sample::select(vec!["", "error 30% tries 2", "error 60%", "biterror 1e-4"]),
        seed in 0u64..1_000,
    ) {
        let radio = format!("{errors} queue 1000 seed {seed}");
        let mut world = World::new(&radio, 2, |config| config.heard = 2);
        let mut sent = BTreeMap::<(usize, u32), usize>::new();
        let mut next = [0_u32; 6];
        for (wait, mobile, act) in acts {
            world.run(Duration::from_micros(wait));
            match act {
                Act::Data => next[mobile] += 1,
                Act::Again => {}
                Act::Ack => {
                    let numbers = world.numbers(mobile);
                    let is_missing = |number: &u32| !numbers.contains(&(number * 100));
                    let ack = (1..).find(is_missing).unwrap_or(0) * 100;
                    world.mobile(mobile, &Seg::ack(1, ack));
                }
                // A mobile that was not heard has no name.
                Act::Leave => drop(world.station.leave(world.now, &name(mobile))),
                Act::Join => drop(world.station.join(world.now, &name(mobile))),
            }
            if matches!(act, Act::Data | Act::Again) && next[mobile] > 0 {
                *sent.entry((mobile, next[mobile] * 100)).or_default() += 1;
                world.fixed(mobile, &Seg::data(next[mobile] * 100, 100));
            }
            let status = world.station.status(world.now);
            prop_assert!(status.held_bytes <= 4 << 20 && status.flows + status.frozen <= 5);
            prop_assert!(world.station.mobiles(world.now).len() <= 5);
        }
        world.station.reconnect(world.now);
        world.run(30 * SECOND);
        let status = world.station.status(world.now);
        prop_assert_eq!((status.held, status.frozen, status.counters.held_dropped), (0, 0, 0));
        let mut missing = 0;
        for ((mobile, seq), copies) in &sent {
            let numbers = world.numbers(*mobile);
            let came = numbers.iter().filter(|number| *number == seq).count();
            prop_assert!(came <= *copies, "{mobile} {seq}");
            missing += copies - came;
        }
        let total: usize = sent.values().sum();
        prop_assert_eq!(world.received.values().map(Vec::len).sum::<usize>(), total - missing);
        let [radio, _] = status.radio;
        let lost = radio.channel_lost + radio.disconnected;
        let dropped = status.counters.held_again + status.counters.probes;
        prop_assert!(missing as u64 <= lost + dropped, "{missing} {lost} {dropped}");
        let each = world.station.mobiles(world.now);
        let held: u64 = each.iter().map(|mobile| mobile.counters.held).sum();
        prop_assert_eq!(held, status.counters.held);
    }

    /// A station with one mobile, known or not, does the same.
    #[test]
    fn a_mobile_that_is_known_is_treated_as_one_that_is_not(
        steps in prop::collection::vec(step(), 1..100),
        policy in prop::sample::select(vec![
            Policy::Plain,
            Policy::TcpEcn,
            Policy::Snoop,
            Policy::DelayedDupack,
        ]),
        seed in 0u64..1_000,
    ) {
        let run = |is_known: bool| {
            let radio = format!("error 30% tries 2 queue 5 seed {seed}");
            let mut script = Script::new(&radio, |config| {
                (config.policy, config.flows, config.unproven) = (policy, 2, 2);
                (config.hold, config.cache) = (ByteCount(4_000), ByteCount(3_000));
                if is_known {
                    let addresses = ["0.0.0.0/0", "::/0"].map(|network| network.parse().unwrap());
                    let mobile = MobileConfig { addresses: addresses.into(), ..named(1, "") };
                    config.mobile = vec![mobile];
                    // One share of each limit is for others.
                    (config.flows, config.unproven) = (4, 4);
                    (config.hold, config.cache) = (ByteCount(8_000), ByteCount(6_000));
                }
            });
            for (index, step) in steps.iter().enumerate() {
                let Step { wait_us, from, control, .. } = step;
                let until = script.now + Duration::from_micros(*wait_us);
                while let Some(at) = script.station.poll_timeout().filter(|at| *at <= until) {
                    script.now = at.max(script.now);
                    script.station.handle_timeout(script.now);
                    script.drain();
                }
                script.now = until;
                if let Some(control) = control {
                    control(&mut script.station, script.now);
                }
                script.put(*from, packet_of(step, index + 1));
            }
            script.station.reconnect(script.now);
            script.run(20_000);
            let flows = script.station.flows(usize::MAX);
            let status = script.station.status(script.now);
            (script.out, flows, status.counters, status.radio, status.air, status.queued)
        };
        prop_assert_eq!(run(false), run(true));
    }
}
