//! Strangers at a station that relays registrations, beside mobiles that share a key with it.

use std::net::Ipv4Addr;

use airtcp_wire::mobility::code;

use super::relay::{relay_config, reply_to, to_station};
use super::*;

const AGENT: &str = "192.0.2.1:434";

/// A station that shares a key with the two mobiles "van" and "bus".
fn station(visitors: usize) -> Relay {
    let homes = ["192.0.2.7", "192.0.2.8", "2001:db8::7", "2001:db8::8"];
    let mobiles = homes.map(|home| (address(home), key(500))).to_vec();
    Relay::new(RelayConfig { mobiles, visitors, ..relay_config(0) }).unwrap()
}

/// A request of a home address.
fn of(home: IpAddr, millis: u64) -> Asked {
    let care_of = if home.is_ipv6() { "2001:db8:1::1" } else { "198.51.100.1" };
    let mut asked = to_station(care_of, millis);
    asked.request.home = home;
    asked.from.set_ip(home);
    asked
}

fn stranger(host: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0001 + host).into()
}

/// Gives the station a request. Returns the message that follows, if there is one, and the code of
/// the refusal if it is one.
fn give(relay: &mut Relay, now: u64, asked: &Asked, is_signed: bool) -> Option<(bool, u8)> {
    let mut message = asked.message();
    if is_signed {
        key(500).sign(&mut message, Ends::MobileForeign);
    }
    relay.handle_mobile(Instant::from_millis(now), asked.from, &message);
    let sent = relay.poll_transmit()?;
    assert_eq!(relay.poll_transmit(), None);
    let (message, _) = mobility::parse(&sent.message, asked.from.is_ipv6()).unwrap();
    match message {
        Message::Reply(reply) => Some((sent.is_to_mobile, reply.code)),
        _ => Some((sent.is_to_mobile, 0)),
    }
}

const RELAYED: Option<(bool, u8)> = Some((false, 0));
const FULL: Option<(bool, u8)> = Some((true, code::FOREIGN_RESOURCES));

fn accept(relay: &mut Relay, asked: &Asked) -> u8 {
    relay.handle_home(Instant::ZERO, AGENT.parse().unwrap(), &reply_to(asked, 300, code::ACCEPTED));
    let sent = relay.poll_transmit().unwrap();
    let (Message::Reply(reply), _) = mobility::parse(&sent.message, false).unwrap() else {
        panic!("{sent:?}");
    };
    reply.code
}

#[test]
fn strangers_do_not_use_up_the_room_of_a_mobile_with_a_key() {
    let mut relay = station(10);
    let strangers: Vec<_> = (0..10).map(|host| of(stranger(host), 0)).collect();
    for asked in &strangers {
        assert_eq!(give(&mut relay, 0, asked, false), RELAYED);
    }
    assert_eq!(give(&mut relay, 0, &of(stranger(10), 0), false), FULL);
    let van = of(address("192.0.2.7"), 0);
    assert_eq!(give(&mut relay, 0, &van, true), RELAYED);
    // The visitors stay within the room: the last stranger to be accepted is refused.
    let codes: Vec<_> = strangers.iter().map(|asked| accept(&mut relay, asked)).collect();
    assert_eq!(codes, [&[code::ACCEPTED; 9][..], &[code::FOREIGN_RESOURCES]].concat());
    assert_eq!(relay.visitor(stranger(9)), None);
    assert_eq!(accept(&mut relay, &van), code::ACCEPTED);
    assert_eq!(relay.visitors().count(), 10);
    assert_eq!((relay.counters().accepted, relay.counters().denied), (11, 2));
    // All are visitors: there is no room for another mobile with a key, but visitors can renew.
    assert_eq!(give(&mut relay, 0, &of(address("192.0.2.8"), 0), true), FULL);
    assert_eq!(give(&mut relay, 0, &of(address("192.0.2.7"), 1), true), RELAYED);
}

#[test]
fn one_address_does_not_use_up_the_room() {
    let mut relay = station(2);
    for millis in 0..10 {
        assert_eq!(give(&mut relay, 0, &of(stranger(0), millis), false), RELAYED);
    }
    assert_eq!(give(&mut relay, 0, &of(stranger(1), 0), false), RELAYED);
    assert_eq!(give(&mut relay, 0, &of(stranger(2), 0), false), FULL);
    // A request that ends a registration needs no room, and gives none to the next.
    let mut end = of(stranger(2), 1);
    end.request.lifetime = 0;
    assert_eq!(give(&mut relay, 0, &end, false), RELAYED);
    assert_eq!(give(&mut relay, 0, &of(stranger(2), 2), false), FULL);
}

#[test]
fn a_changed_copy_of_a_request_that_waits_is_dropped() {
    let home = stranger(0);
    let asked = of(home, 0);
    let mut copies = [asked.clone(), asked.clone(), asked.clone()];
    copies[0].request.lifetime = 0;
    copies[1].from.set_port(5_001);
    copies[2].request.identification ^= 1 << 40;
    for copy in copies {
        let mut relay = station(10);
        assert_eq!(give(&mut relay, 0, &asked, false), RELAYED);
        assert_eq!(give(&mut relay, 0, &copy, false), None);
        assert_eq!((relay.counters().relayed, relay.counters().conflicting), (1, 1));
        let reply = reply_to(&asked, 300, code::ACCEPTED);
        relay.handle_home(Instant::ZERO, AGENT.parse().unwrap(), &reply);
        assert_eq!(relay.poll_transmit().unwrap().to, asked.from);
        assert_eq!(relay.visitor(home).unwrap().until, Instant::from_millis(300_000));
        assert_eq!(relay.poll_timeout(), Some(Instant::from_millis(300_000)));
    }
}

#[test]
fn each_mobile_with_a_key_has_a_limit_of_its_own() {
    for homes in [["192.0.2.7", "192.0.2.8"], ["2001:db8::7", "2001:db8::8"]] {
        let mut relay = station(10);
        let relayed = homes.map(|home| {
            let requests = (0..20).map(|millis| of(address(home), millis));
            requests.filter(|of| give(&mut relay, 0, of, true) == RELAYED).count()
        });
        assert_eq!((relayed, relay.counters().rate_limited), ([10, 10], 20));
    }
}

#[test]
fn a_repeated_authentic_request_has_the_limit_of_strangers() {
    let home = address("192.0.2.7");
    let mut relay = station(10);
    assert_eq!(give(&mut relay, 0, &of(home, 1_000), true), RELAYED);
    let captured = [of(home, 1_000), of(home, 999)];
    for millis in 0..1_000 {
        give(&mut relay, millis, &captured[(millis % 2) as usize], true);
    }
    assert!(relay.counters().rate_limited > 900);
    // They do not take the requests of the mobile.
    for millis in 1_001..1_010 {
        assert_eq!(give(&mut relay, 1_000, &of(home, millis), true), RELAYED, "{millis}");
    }
    // With a clock that was set back, a mobile has the limit of strangers too.
    assert_eq!(give(&mut relay, 3_000, &of(home, 500), true), RELAYED);
}

#[test]
fn a_repeated_authentic_request_has_the_room_of_strangers() {
    let [van, bus] = ["192.0.2.7", "192.0.2.8"].map(address);
    let mut relay = station(1);
    // The mobile leaves at once: its first request can be captured.
    let mut end = of(van, 1);
    end.request.lifetime = 0;
    assert_eq!(give(&mut relay, 0, &end, true), RELAYED);
    assert_eq!(give(&mut relay, 0, &of(van, 0), true), RELAYED);
    assert_eq!(give(&mut relay, 0, &of(bus, 0), true), RELAYED);
    assert_eq!(give(&mut relay, 0, &of(van, 2), true), FULL);
}
