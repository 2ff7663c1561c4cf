//! Stations that relay registrations, in front of the home agent of the other scripts.

use std::collections::BTreeSet;

use airtcp_wire::mobility::{code, flag, push_vendor};
use proptest::prelude::*;

use super::*;

const STATIONS: [[&str; 2]; 2] =
    [["198.51.100.1", "2001:db8:1::1"], ["198.51.100.2", "2001:db8:1::2"]];

/// The stations north and south of the settings, without keys of mobiles.
pub(super) fn relay_config(station: usize) -> RelayConfig {
    let keys = [key(400 + station as u32), key(402 + station as u32)];
    RelayConfig {
        addresses: STATIONS[station].map(address).to_vec(),
        home_agents: config().addresses.into_iter().zip(keys).collect(),
        mobiles: Vec::new(),
        lifetime: Duration::from_secs(400),
        visitors: 10,
    }
}

fn relay(station: usize) -> Relay {
    Relay::new(relay_config(station)).unwrap()
}

/// A request as the mobile sends it to a station.
pub(super) fn to_station(care_of: &str, millis: u64) -> Asked {
    let mut asked = ask(care_of, millis);
    (asked.station, asked.from) = (None, SocketAddr::new(asked.request.home, 5_000));
    asked
}

/// The packet of a message of a station.
fn packet(station: usize, outgoing: &Outgoing) -> Packet {
    let v6 = outgoing.to.is_ipv6();
    let own = address(STATIONS[station][usize::from(v6)]);
    let flow = FlowId { local: SocketAddr::new(own, port(v6)), remote: outgoing.to };
    udp::emit(&flow, 64, &outgoing.message)
}

/// Two stations and the home agent.
struct Visit {
    home: Script,
    stations: [Relay; 2],
    /// What the stations sent to the mobile.
    to_mobile: Vec<Read>,
}

impl Visit {
    fn new() -> Self {
        let stations = [0, 1].map(relay);
        Self { home: Script::new(), stations, to_mobile: Vec::new() }
    }

    fn at(&mut self, millis: u64) -> &mut Self {
        self.home.at(millis);
        for station in &mut self.stations {
            station.handle_timeout(self.home.now);
        }
        self.run();
        self
    }

    /// Passes a request to a station, and all messages that follow. Returns those to the mobile.
    fn ask(&mut self, station: usize, asked: &Asked) -> Vec<Read> {
        let now = self.home.now;
        self.stations[station].handle_mobile(now, asked.from, &asked.message());
        self.run();
        std::mem::take(&mut self.to_mobile)
    }

    fn run(&mut self) {
        loop {
            let mut sent = self.home.store();
            for station in 0..2 {
                while let Some(outgoing) = self.stations[station].poll_transmit() {
                    let packet = packet(station, &outgoing);
                    match outgoing.is_to_mobile {
                        true => self.to_mobile.push(Read::of(&packet)),
                        false => sent.extend(self.home.give(packet)),
                    }
                }
            }
            sent.extend(self.home.store());
            if sent.is_empty() {
                return;
            }
            for packet in sent {
                let (station, from, message) = of_agent(&packet);
                self.stations[station].handle_home(self.home.now, from, &message);
            }
        }
    }

    fn visitor(&self, station: usize) -> Option<u64> {
        self.stations[station].visitor(address("192.0.2.7")).map(|of| of.identification)
    }
}

/// The station, the source and the message of a packet of the home agent.
fn of_agent(packet: &Packet) -> (usize, SocketAddr, Vec<u8>) {
    let outer = ip::parse(&packet.data).unwrap();
    let datagram = udp::parse(outer.payload).unwrap();
    let station = STATIONS.iter().position(|of| of.map(address).contains(&outer.dst)).unwrap();
    (station, SocketAddr::new(outer.src, datagram.src_port), datagram.payload.to_vec())
}

#[test]
fn a_mobile_registers_through_a_station_until_its_lifetime_ends() {
    for (care_of, home) in [("198.51.100.1", "192.0.2.7"), ("2001:db8:1::1", "2001:db8::7")] {
        let mut visit = Visit::new();
        let asked = to_station(care_of, 0);
        let read = visit.ask(0, &asked);
        assert_eq!((read.len(), read[0].to), (1, asked.from));
        assert_eq!((read[0].reply().code, read[0].reply().lifetime), (0, 300));
        // The mobile gets what the home agent has signed for it, and no more.
        assert_eq!(read[0].ends, [Ends::MobileHome]);
        assert!(read[0].is_signed(Ends::MobileHome, &key(300)));
        let packet = data(home, 100);
        assert_eq!(exit(&visit.home.give(packet.clone()), &packet), address(care_of));
        let visitor = *visit.stations[0].visitor(address(home)).unwrap();
        assert_eq!((visitor.identification, visitor.until), (id(0), Instant::from_millis(300_000)));
        visit.at(299_999);
        assert!(visit.stations[0].visitor(address(home)).is_some());
        visit.at(300_000);
        assert!(visit.stations[0].visitor(address(home)).is_none());
        assert_eq!(visit.stations[0].counters().expired, 1);
        assert_eq!(visit.stations[0].poll_timeout(), None);
    }
}

#[test]
fn a_refusal_of_the_home_agent_makes_no_visitor_and_ends_none() {
    let mut visit = Visit::new();
    let wrong = Asked { mobile: key(302), ..to_station("198.51.100.1", 0) };
    assert_eq!(visit.ask(0, &wrong)[0].reply().code, code::MOBILE_AUTHENTICATION);
    assert_eq!((visit.visitor(0), visit.stations[0].counters().accepted), (None, 0));
    visit.ask(0, &to_station("198.51.100.1", 1));
    // Of the refused identification, the lower half is that of the request.
    let read = visit.ask(0, &to_station("198.51.100.1", 60_000));
    assert_eq!(read[0].reply().code, code::IDENTIFICATION);
    assert_eq!(visit.visitor(0), Some(id(1)));
}

#[test]
fn a_station_refuses_what_it_does_not_do() {
    let change = |change: &dyn Fn(&mut Asked)| {
        let mut visit = Visit::new();
        let mut asked = to_station("198.51.100.1", 0);
        change(&mut asked);
        let read = visit.ask(0, &asked);
        assert_eq!((read.len(), visit.stations[0].counters().relayed), (1, 0));
        assert!(read[0].ends.is_empty());
        assert_eq!(read[0].reply().identification, asked.request.identification);
        (read[0].reply().code, read[0].reply().lifetime)
    };
    let other = address("198.51.100.2");
    assert_eq!(change(&|of| of.request.care_of = other), (code::FOREIGN_CARE_OF, 0));
    assert_eq!(change(&|of| of.request.home_agent = other), (code::FOREIGN_PROHIBITED, 0));
    assert_eq!(change(&|of| of.request.flags = flag::REVERSE), (code::FOREIGN_REVERSE_TUNNEL, 0));
    assert_eq!(change(&|of| of.request.flags = flag::GRE), (code::FOREIGN_ENCAPSULATION, 0));
    assert_eq!(change(&|of| of.request.flags = flag::MINIMAL), (code::FOREIGN_ENCAPSULATION, 0));
    assert_eq!(change(&|of| of.request.lifetime = 401), (code::FOREIGN_LIFETIME, 400));
    assert_eq!(change(&|of| of.station = Some(key(400))), (code::FOREIGN_POORLY_FORMED, 0));

    // No answer goes to another address than the one that is registered, nor to a message that is
    // something else.
    let asked = to_station("198.51.100.1", 0);
    let mut vendor = Message::Request(asked.request).emit();
    push_vendor(&mut vendor, FLOWS, b"");
    key(300).sign(&mut vendor, Ends::MobileHome);
    let elsewhere = "203.0.113.9:5000".parse().unwrap();
    for (from, message) in
        [(elsewhere, asked.message()), (asked.from, vendor), (elsewhere, vec![3])]
    {
        let mut relay = relay(0);
        relay.handle_mobile(Instant::ZERO, from, &message);
        assert_eq!((relay.poll_transmit(), relay.counters().malformed), (None, 1));
    }
}

#[test]
fn a_mobile_that_shares_a_key_authenticates_to_the_station_and_the_station_to_it() {
    let mut visit = Visit::new();
    let mut config = relay_config(0);
    config.mobiles.push((address("192.0.2.7"), key(500)));
    visit.stations[0] = Relay::new(config).unwrap();
    let asked = to_station("198.51.100.1", 0);
    let signed = |spi| {
        let mut message = asked.message();
        message.extend([130, 1, 0]);
        key(spi).sign(&mut message, Ends::MobileForeign);
        message
    };
    let mut after = signed(500);
    after.extend([130, 1, 0]);
    for (message, expected) in [
        (asked.message(), code::FOREIGN_MOBILE_AUTHENTICATION),
        (signed(502), code::FOREIGN_MOBILE_AUTHENTICATION),
        (after, code::FOREIGN_POORLY_FORMED),
        (signed(500), code::ACCEPTED),
    ] {
        visit.stations[0].handle_mobile(Instant::ZERO, asked.from, &message);
        visit.run();
        let read = visit.to_mobile.pop().unwrap();
        assert_eq!(read.reply().code, expected);
        assert!(read.is_signed(Ends::MobileForeign, &key(500)));
    }
    // A stranger with the mobile's address does not use up its requests.
    for _ in 0..100 {
        visit.stations[0].handle_mobile(Instant::ZERO, asked.from, &signed(502));
    }
    visit.run();
    assert!(visit.stations[0].counters().rate_limited >= 90);
    visit.to_mobile.clear();
    let mut next = to_station("198.51.100.1", 1).message();
    key(500).sign(&mut next, Ends::MobileForeign);
    visit.stations[0].handle_mobile(Instant::ZERO, asked.from, &next);
    visit.run();
    assert_eq!(visit.to_mobile[0].reply().code, code::ACCEPTED);
}

/// The reply of the home agent to a request of the first mobile.
pub(super) fn reply_to(asked: &Asked, lifetime: u16, code: u8) -> Vec<u8> {
    let Request { home, home_agent, identification, .. } = asked.request;
    let mut reply =
        Message::Reply(Reply { code, lifetime, home, home_agent, identification }).emit();
    key(300).sign(&mut reply, Ends::MobileHome);
    key(400).sign(&mut reply, Ends::ForeignHome);
    reply
}

#[test]
fn a_reply_of_a_stranger_or_to_no_request_changes_nothing() {
    let agent = "192.0.2.1:434".parse().unwrap();
    let asked = to_station("198.51.100.1", 0);
    let valid = reply_to(&asked, 300, code::ACCEPTED);
    let mut relay = relay(0);
    relay.handle_home(Instant::ZERO, agent, &valid);
    assert_eq!((relay.poll_transmit(), relay.counters().unexpected), (None, 1));
    relay.handle_mobile(Instant::ZERO, asked.from, &asked.message());
    assert!(relay.poll_transmit().is_some_and(|of| !of.is_to_mobile));
    let [mut flipped, mut unsigned] = [valid.clone(), valid.clone()];
    flipped[3] ^= 1;
    unsigned.truncate(valid.len() - 38);
    let stranger = "203.0.113.9:434".parse().unwrap();
    let other = reply_to(&to_station("198.51.100.1", 1), 300, code::ACCEPTED);
    let upper = Asked { request: Request { identification: id(1_000), ..asked.request }, ..asked };
    let upper = reply_to(&upper, 300, code::ACCEPTED);
    let forged = [
        (agent, flipped),
        (agent, unsigned),
        (stranger, valid.clone()),
        (agent, other),
        (agent, upper),
    ];
    for (from, message) in forged {
        relay.handle_home(Instant::ZERO, from, &message);
        assert_eq!((relay.poll_transmit(), relay.visitor(address("192.0.2.7"))), (None, None));
    }
    assert_eq!((relay.counters().unauthenticated, relay.counters().unexpected), (3, 3));
    for expected in [true, false] {
        relay.handle_home(Instant::ZERO, agent, &valid);
        assert_eq!(relay.poll_transmit().is_some(), expected, "once");
    }
    assert!(relay.visitor(address("192.0.2.7")).is_some());
}

#[test]
fn a_reply_that_the_mobile_cannot_check_is_replaced() {
    let agent = "192.0.2.1:434".parse().unwrap();
    let asked = to_station("198.51.100.1", 0);
    let mut relay = relay(0);
    relay.handle_mobile(Instant::ZERO, asked.from, &asked.message());
    relay.poll_transmit();
    let Request { home, home_agent, identification, .. } = asked.request;
    let reply = Reply { code: 0, lifetime: 300, home, home_agent, identification };
    let mut message = Message::Reply(reply).emit();
    key(400).sign(&mut message, Ends::ForeignHome);
    relay.handle_home(Instant::ZERO, agent, &message);
    let read = Read::of(&packet(0, &relay.poll_transmit().unwrap()));
    assert_eq!(read.reply().code, code::FOREIGN_POORLY_FORMED_REPLY);
    assert_eq!((relay.visitor(home), relay.poll_timeout()), (None, None));
}

#[test]
fn a_request_without_a_reply_times_out_after_seven_seconds() {
    let mut relay = relay(0);
    let asked = to_station("198.51.100.1", 0);
    relay.handle_mobile(Instant::ZERO, asked.from, &asked.message());
    relay.poll_transmit();
    // The same request again is passed on again, and waits from then on.
    relay.handle_mobile(Instant::from_millis(1_000), asked.from, &asked.message());
    assert!(relay.poll_transmit().is_some());
    assert_eq!(relay.poll_timeout(), Some(Instant::from_millis(8_000)));
    relay.handle_timeout(Instant::from_millis(7_999));
    assert_eq!(relay.poll_transmit(), None);
    relay.handle_timeout(Instant::from_millis(8_000));
    let read = Read::of(&packet(0, &relay.poll_transmit().unwrap()));
    assert_eq!((read.to, read.reply().code), (asked.from, code::FOREIGN_TIMEOUT));
    assert_eq!((relay.poll_timeout(), relay.pending.len()), (None, 0));
}

#[test]
fn a_mobile_that_moves_leaves_the_first_station_at_once() {
    let mut visit = Visit::new();
    visit.ask(0, &to_station("198.51.100.1", 0));
    visit.at(1_000);
    // The acknowledgment of the first station ends the waiting of the reply.
    let read = visit.ask(1, &to_station("198.51.100.2", 1_000));
    assert_eq!((read.len(), read[0].reply().code), (1, code::ACCEPTED));
    assert_eq!((visit.visitor(0), visit.visitor(1)), (None, Some(id(1_000))));
    assert_eq!(visit.stations[0].counters().revoked, 1);
    assert_eq!(visit.home.agent.status(visit.home.now).counters.revocations, 1);
    // Back within the same second, and once more.
    for (millis, station) in [(1_100, 0), (1_200, 1), (1_300, 0)] {
        visit.at(millis);
        visit.ask(station, &to_station(STATIONS[station][0], millis));
        assert_eq!((visit.visitor(station), visit.visitor(1 - station)), (Some(id(millis)), None));
    }
}

#[test]
fn a_mobile_that_ends_its_registration_through_the_station_gets_its_reply_at_once() {
    let mut visit = Visit::new();
    visit.ask(0, &to_station("198.51.100.1", 0));
    visit.at(100);
    let mut end = to_station("198.51.100.1", 100);
    end.request.lifetime = 0;
    let read = visit.ask(0, &end);
    assert_eq!((read[0].reply().code, read[0].reply().lifetime), (code::ACCEPTED, 0));
    assert_eq!((visit.visitor(0), visit.stations[0].poll_timeout()), (None, None));
    assert_eq!(visit.home.agent.status(visit.home.now).counters.revocations, 0);
    // From home, the station is revoked.
    visit.at(200);
    visit.ask(0, &to_station("198.51.100.1", 200));
    let mut home = ask("192.0.2.7", 300);
    home.request.lifetime = 0;
    let sent = visit.home.at(300).give(home.packet());
    assert!(sent.is_empty());
    let sent = visit.home.store();
    let (station, from, message) = of_agent(&sent[0]);
    visit.stations[station].handle_home(visit.home.now, from, &message);
    assert_eq!((station, visit.visitor(0)), (0, None));
}

#[test]
fn replies_and_revocations_that_are_overtaken_change_nothing() {
    let agent = "192.0.2.1:434".parse().unwrap();
    let now = Instant::ZERO;
    let revocation = |millis: u64, spi| {
        let mut message = Message::Revocation(Revocation {
            is_from_home: true,
            informs: false,
            home: address("192.0.2.7"),
            home_agent: address("192.0.2.1"),
            foreign_agent: address("198.51.100.1"),
            identifier: (id(millis) >> 32) as u32,
        })
        .emit();
        push_vendor(&mut message, FORWARD, &id(millis).to_be_bytes());
        key(spi).sign(&mut message, Ends::ForeignHome);
        message
    };
    let mut relay = relay(0);
    let [first, second] = [0, 10].map(|millis| to_station("198.51.100.1", millis));
    for asked in [&first, &second] {
        relay.handle_mobile(now, asked.from, &asked.message());
    }
    relay.handle_home(now, agent, &reply_to(&second, 300, code::ACCEPTED));
    relay.handle_home(now, agent, &reply_to(&first, 100, code::ACCEPTED));
    let visitor = *relay.visitor(address("192.0.2.7")).unwrap();
    assert_eq!((visitor.identification, visitor.until), (id(10), Instant::from_millis(300_000)));
    assert_eq!(relay.counters().unexpected, 1);
    // A revocation from before the mobile returned is acknowledged.
    relay.handle_home(now, agent, &revocation(5, 400));
    let read: Vec<_> = std::iter::from_fn(|| relay.poll_transmit()).collect();
    let last = Read::of(&packet(0, read.last().unwrap()));
    assert_eq!(
        last.message,
        Message::Acknowledgment(Acknowledgment {
            informs: false,
            home: address("192.0.2.7"),
            identifier: (id(5) >> 32) as u32,
        })
    );
    assert!(last.is_signed(Ends::ForeignHome, &key(400)));
    assert_eq!(relay.visitor(address("192.0.2.7")), Some(&visitor));
    // The mobile moved on before the reply to its request here arrived.
    let third = to_station("198.51.100.1", 20);
    relay.handle_mobile(now, third.from, &third.message());
    relay.handle_home(now, agent, &revocation(30, 400));
    relay.handle_home(now, agent, &reply_to(&third, 300, code::ACCEPTED));
    assert_eq!((relay.visitor(address("192.0.2.7")), relay.poll_timeout()), (None, None));
    // Of a stranger.
    relay.handle_mobile(now, third.from, &to_station("198.51.100.1", 50).message());
    relay.handle_home(now, agent, &reply_to(&to_station("198.51.100.1", 50), 300, code::ACCEPTED));
    let mut changed = revocation(60, 400);
    changed[7] ^= 1;
    for message in [changed, revocation(60, 401)] {
        relay.handle_home(now, agent, &message);
    }
    assert_eq!(relay.counters().unauthenticated, 2);
    assert!(relay.visitor(address("192.0.2.7")).is_some());
}

#[test]
fn requests_that_wait_and_visitors_are_bounded() {
    let mut relay = relay(0);
    for host in 0..20_000_u32 {
        let mut asked = to_station("198.51.100.1", 0);
        asked.request.home = std::net::Ipv4Addr::from_bits(0x0a00_0001 + host).into();
        asked.from.set_ip(asked.request.home);
        let now = Instant::from_millis(u64::from(host) / 2);
        relay.handle_mobile(now, asked.from, &asked.message());
        while relay.poll_transmit().is_some() {}
        assert!(relay.pending.len() <= 10);
    }
    let counters = relay.counters();
    assert!(counters.rate_limited > 0 && counters.relayed > 10 && counters.denied > 0);
    // A mobile whose request waits can repeat it.
    let mut relay = Relay::new(RelayConfig { visitors: 1, ..relay_config(0) }).unwrap();
    let asked = to_station("198.51.100.1", 0);
    for _ in 0..2 {
        relay.handle_mobile(Instant::ZERO, asked.from, &asked.message());
        assert!(relay.poll_transmit().is_some_and(|of| !of.is_to_mobile));
    }
    // Without a limit of visitors, that of requests bounds those that wait.
    let mut relay = Relay::new(RelayConfig { visitors: usize::MAX, ..relay_config(0) }).unwrap();
    for millis in 0..10_000 {
        let mut asked = to_station("198.51.100.1", millis);
        asked.request.home = std::net::Ipv4Addr::from_bits(0x0a00_0001 + millis as u32).into();
        asked.from.set_ip(asked.request.home);
        relay.handle_mobile(Instant::from_millis(millis), asked.from, &asked.message());
        while relay.poll_transmit().is_some() {}
        assert!(relay.pending.len() <= 801);
    }
}

#[test]
fn settings_of_a_station_that_contradict_each_other_are_refused() {
    let refused = |change: &dyn Fn(&mut RelayConfig)| {
        let mut config = relay_config(0);
        change(&mut config);
        Relay::new(config).unwrap_err()
    };
    let agent = address("192.0.2.1");
    assert_eq!(refused(&|of| of.addresses.clear()), HomeConfigError::Addresses(0, 0));
    assert_eq!(refused(&|of| of.mobiles.push((agent, key(500)))), HomeConfigError::Twice(agent));
    let lifetime = HomeConfigError::Lifetime(65_535.0);
    assert_eq!(refused(&|of| of.lifetime = Duration::from_secs(65_535)), lifetime);
}

#[derive(Clone, Debug)]
enum Step {
    /// The mobile asks a station, with a time relative to now.
    Ask(usize, i16, u16),
    /// One of the messages that are or were on the way arrives, maybe with a changed byte.
    Arrive(u8, Option<u8>),
    /// Any message of the wireless or the wired side.
    Bytes(bool, Vec<u8>),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_usize, -300..300_i16, 0..4_u16)
            .prop_map(|(station, offset, lifetime)| Step::Ask(station, offset, lifetime)),
        6 => any::<u8>().prop_map(|which| Step::Arrive(which, None)),
        1 => any::<(u8, u8)>().prop_map(|(which, place)| Step::Arrive(which, Some(place))),
        1 => (any::<bool>(), prop::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(is_mobile, bytes)| Step::Bytes(is_mobile, bytes)),
        2 => (0..1_500_u16).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Messages are lost, repeated, changed and overtake one another.
    #[test]
    fn a_visitor_has_a_reply_of_the_home_agent(steps in prop::collection::vec(step(), 0..80)) {
        let mut visit = Visit::new();
        // The station, its direction, the source and the message.
        let mut way: Vec<(usize, bool, SocketAddr, Vec<u8>)> = Vec::new();
        let mut granted = BTreeSet::new();
        for step in steps {
            match step {
                Step::Ask(station, offset, lifetime) => {
                    let millis = visit.home.now.as_millis().saturating_add_signed(offset.into());
                    let mut asked = to_station(STATIONS[station][0], millis);
                    asked.request.lifetime = lifetime;
                    way.push((station, true, asked.from, asked.message()));
                }
                Step::Arrive(which, place) if !way.is_empty() => {
                    let which = usize::from(which) % way.len();
                    let (station, is_mobile, from, mut message) = way[which].clone();
                    if let Some(place) = place {
                        let place = usize::from(place) % message.len();
                        message[place] ^= 1;
                    }
                    let (now, relay) = (visit.home.now, &mut visit.stations[station]);
                    match is_mobile {
                        true => relay.handle_mobile(now, from, &message),
                        false => relay.handle_home(now, from, &message),
                    }
                }
                Step::Arrive(..) => {}
                Step::Bytes(is_mobile, bytes) => {
                    let (now, relay) = (visit.home.now, &mut visit.stations[0]);
                    match is_mobile {
                        true => relay.handle_mobile(now, "192.0.2.7:5000".parse().unwrap(), &bytes),
                        false => relay.handle_home(now, "192.0.2.1:434".parse().unwrap(), &bytes),
                    }
                }
                Step::Wait(millis) => {
                    let now = visit.home.now.as_millis() + u64::from(millis);
                    visit.home.at(now);
                    for station in &mut visit.stations {
                        station.handle_timeout(visit.home.now);
                    }
                }
            }
            // To the home agent without loss; what it sends waits for its time to arrive.
            for station in 0..2 {
                while let Some(outgoing) = visit.stations[station].poll_transmit() {
                    if !outgoing.is_to_mobile {
                        let packet = packet(station, &outgoing);
                        visit.home.agent.handle_packet(visit.home.now, PortId(0), packet);
                    }
                }
            }
            for packet in visit.home.store() {
                let (station, from, message) = of_agent(&packet);
                if let Message::Reply(reply) = Read::of(&packet).message
                    && reply.code == code::ACCEPTED
                {
                    granted.insert((station, reply.identification));
                }
                way.push((station, false, from, message));
            }
            for (station, relay) in visit.stations.iter().enumerate() {
                let visitor = relay.visitor(address("192.0.2.7"));
                let is_valid = visitor.is_none_or(|of| {
                    granted.contains(&(station, of.identification))
                        && of.until > visit.home.now
                        && of.until.since(visit.home.now) <= Duration::from_secs(3)
                });
                prop_assert!(is_valid, "{visitor:?}");
                prop_assert!(relay.pending.len() <= 80);
                let due = relay.poll_timeout();
                prop_assert!(due.is_none_or(|due| due > visit.home.now));
            }
        }
        // With everything delivered in order, the mobile is where it registers.
        let now = visit.home.now.as_millis() + 20_000;
        visit.at(now);
        visit.to_mobile.clear();
        visit.ask(1, &to_station("198.51.100.2", now));
        prop_assert_eq!((visit.visitor(0), visit.visitor(1)), (None, Some(id(now))));
        // Nothing is left when all time is over.
        visit.at(now + 400_000);
        prop_assert_eq!(visit.stations.iter().filter_map(Relay::poll_timeout).count(), 0);
    }
}
