//! What is accepted, and what is refused with which code.

use airtcp_wire::icmp::{self, Reason};
use airtcp_wire::mobility::{code, flag, push_vendor};

use super::*;

#[test]
fn packets_follow_the_mobile_that_has_registered() {
    for (care_of, home, is_station) in [
        ("198.51.100.1", "192.0.2.7", true),
        ("198.51.100.77", "192.0.2.7", false),
        ("2001:db8:1::1", "2001:db8::7", true),
        ("2001:db8:1::77", "2001:db8::7", false),
    ] {
        let mut script = Script::new();
        let asked = ask(care_of, 0);
        let read = script.ask(&asked);
        assert_eq!((read.len(), read[0].to), (1, asked.from));
        let Request { home: of, home_agent, identification, .. } = asked.request;
        let code = code::ACCEPTED;
        let reply = Reply { code, lifetime: 300, home: of, home_agent, identification };
        assert_eq!(read[0].reply(), reply);
        assert!(read[0].is_signed(Ends::MobileHome, &key(300)));
        assert_eq!(
            asked.station.is_some_and(|key| read[0].is_signed(Ends::ForeignHome, &key)),
            is_station
        );
        let packet = data(home, 500);
        assert_eq!(exit(&script.give(packet.clone()), &packet), address(care_of));
        let status = script.agent.status(script.now);
        let name = is_station.then(|| "north".to_owned());
        assert_eq!((&status.bindings[0].station, status.bindings[0].seconds), (&name, 300));
        assert_eq!(status.counters.tunnelled_bytes, 500);
    }
}

#[test]
fn a_mobile_that_is_not_registered_is_unreachable() {
    for (home, source) in [("192.0.2.8", "203.0.113.9"), ("2001:db8::7", "2001:db8:9::9")] {
        let mut script = Script::new();
        let sent = script.give(data(home, 100));
        let error = ip::parse(&sent[0].data).unwrap();
        assert_eq!(error.dst, address(source));
        let message = icmp::parse(&error);
        assert!(matches!(message, Ok(icmp::Message::Error { reason: Reason::Host, .. })));
        assert_eq!(script.agent.status(script.now).counters.unreachable, 1);
        // An address that nobody has is not the agent's business.
        assert!(script.give(data("192.0.2.99", 100)).is_empty());
    }
}

#[test]
fn a_registration_ends_with_its_lifetime_or_by_a_request() {
    let mut script = Script::new();
    let mut asked = ask("198.51.100.1", 0);
    asked.request.lifetime = u16::MAX;
    assert_eq!(script.ask(&asked)[0].reply().lifetime, 600, "what the settings allow");
    let packet = data("192.0.2.7", 100);
    assert_eq!(exit(&script.at(599_999).give(packet.clone()), &packet), asked.request.care_of);
    script.at(600_000).give(packet.clone());
    let counters = script.agent.status(script.now).counters;
    assert_eq!((counters.expired, counters.unreachable), (1, 1));
    assert_eq!(script.agent.poll_timeout(), None);

    assert_eq!(script.code(&ask("198.51.100.1", 600_000)), code::ACCEPTED);
    let mut home = ask("192.0.2.7", 601_000);
    home.request.lifetime = 0;
    script.at(601_000);
    let read = script.ask(&home);
    let reply = read.iter().find(|read| matches!(read.message, Message::Reply(_))).unwrap();
    assert_eq!((reply.reply().code, reply.reply().lifetime), (0, 0));
    script.give(packet);
    assert_eq!(script.agent.status(script.now).counters.unreachable, 2);
}

/// RFC 5944 section 5.7.1.
#[test]
fn an_identification_is_new_and_near_the_time_of_the_agent() {
    let refused = code::IDENTIFICATION;
    for (millis, expected) in [
        (92_999, refused),
        (93_000, code::ACCEPTED),
        (100_000, code::ACCEPTED),
        (107_000, code::ACCEPTED),
        (107_001, refused),
    ] {
        let mut script = Script::new();
        script.at(100_000);
        let asked = ask("198.51.100.1", millis);
        let read = script.ask(&asked);
        assert_eq!(read[0].reply().code, expected, "{millis}");
        if expected == refused {
            // The agent's seconds, and the lower half as it came.
            let lower = asked.request.identification & 0xffff_ffff;
            assert_eq!(read[0].reply().identification, id(100_000) & !0xffff_ffff | lower);
        }
    }
}

#[test]
fn the_last_request_again_gets_its_reply_again_and_an_older_one_is_refused() {
    let mut script = Script::new();
    let [first, second] = [ask("198.51.100.1", 0), ask("198.51.100.1", 100)];
    assert_eq!(script.code(&first), code::ACCEPTED);
    let read = script.ask(&second);
    for _ in 0..3 {
        assert_eq!(script.ask(&second), read);
    }
    assert_eq!(script.code(&first), code::IDENTIFICATION);
    // The same identification for another address, or for an end, is no repetition.
    assert_eq!(script.code(&ask("198.51.100.2", 100)), code::IDENTIFICATION);
    let mut end = ask("198.51.100.1", 100);
    end.request.lifetime = 0;
    assert_eq!(script.code(&end), code::IDENTIFICATION);
    let counters = script.agent.status(script.now).counters;
    assert_eq!((counters.accepted, counters.repeated, counters.replayed), (2, 3, 3));
    let packet = data("192.0.2.7", 100);
    assert_eq!(exit(&script.give(packet.clone()), &packet), address("198.51.100.1"));
}

#[test]
fn the_last_request_is_refused_as_well_when_it_is_old() {
    let mut script = Script::new();
    let asked = ask("198.51.100.1", 0);
    assert_eq!(script.code(&asked), code::ACCEPTED);
    assert_eq!(script.at(7_000).code(&asked), code::ACCEPTED);
    assert_eq!(script.at(7_001).code(&asked), code::IDENTIFICATION);
    let counters = script.agent.status(script.now).counters;
    assert_eq!((counters.repeated, counters.replayed), (1, 1));
}

/// RFC 3115 section 2.1.
#[test]
fn a_critical_extension_that_is_unknown_discards_the_message() {
    let relayed = ask("198.51.100.1", 0);
    for kind in [FORWARD, FLOWS, 3, u16::MAX] {
        let mut script = Script::new();
        let mut message = Message::Request(relayed.request).emit();
        key(300).sign(&mut message, Ends::MobileHome);
        push_vendor(&mut message, kind, b"added");
        key(400).sign(&mut message, Ends::ForeignHome);
        assert!(script.give(datagram(relayed.from, &message)).is_empty());
        assert_eq!(script.agent.poll_store(), None);
        let counters = script.agent.status(script.now).counters;
        assert_eq!((counters.malformed, counters.requests), (1, 0));
    }
}

#[test]
fn a_stranger_changes_nothing() {
    let (mobile, foreign) = (code::MOBILE_AUTHENTICATION, code::FOREIGN_AUTHENTICATION);
    let relayed = ask("198.51.100.1", 0);
    let own = ask("198.51.100.77", 0);
    let with = |mobile: Key, station| Asked { mobile, station, ..relayed.clone() };
    let secret = Key::new(300, Algorithm::HmacSha256, vec![9; 16]).unwrap();
    let algorithm = Key::new(300, Algorithm::HmacMd5, vec![300_u32 as u8; 16]).unwrap();
    let mut script = Script::new();
    for (asked, code) in [
        (with(secret, Some(key(400))), mobile),
        (with(algorithm, Some(key(400))), mobile),
        (with(key(302), Some(key(400))), mobile),
        (with(key(300), None), foreign),
        (with(key(300), Some(key(401))), foreign),
        (Asked { station: Some(key(400)), ..own }, foreign),
    ] {
        assert_eq!(script.code(&asked), code);
    }
    let mut unknown = relayed.clone();
    unknown.request.home = address("192.0.2.99");
    assert!(script.ask(&unknown).is_empty());
    let counters = script.agent.status(script.now).counters;
    assert_eq!((counters.accepted, counters.unauthenticated, counters.unknown), (0, 6, 1));
    assert_eq!(script.agent.poll_store(), None);
}

#[test]
fn what_is_not_covered_by_the_authenticators_is_refused() {
    let relayed = ask("198.51.100.1", 0);
    let own = ask("198.51.100.77", 0);
    let fields = Message::Request(relayed.request).emit();
    let code = |message: &[u8], from: SocketAddr| {
        let mut script = Script::new();
        let mut sent = script.give(datagram(from, message));
        sent.extend(script.store());
        Read::of(&sent[0]).reply().code
    };
    let skippable = [130, 2, 0, 0];
    let mut after = relayed.message();
    after.extend(skippable);
    assert_eq!(code(&after, relayed.from), code::POORLY_FORMED);
    let mut after = own.message();
    after.extend(skippable);
    assert_eq!(code(&after, own.from), code::POORLY_FORMED);
    let mut twice = relayed.message();
    key(300).sign(&mut twice, Ends::MobileHome);
    assert_eq!(code(&twice, relayed.from), code::POORLY_FORMED);
    let mut turned = fields.clone();
    key(400).sign(&mut turned, Ends::ForeignHome);
    key(300).sign(&mut turned, Ends::MobileHome);
    assert_eq!(code(&turned, relayed.from), code::MOBILE_AUTHENTICATION);
    assert_eq!(code(&fields, relayed.from), code::MOBILE_AUTHENTICATION);
    // A station may add extensions of its own.
    let mut added = fields;
    key(300).sign(&mut added, Ends::MobileHome);
    added.extend(skippable);
    key(400).sign(&mut added, Ends::ForeignHome);
    assert_eq!(code(&added, relayed.from), code::ACCEPTED);
}

#[test]
fn what_the_agent_does_not_do_is_refused_with_its_code() {
    let change = |change: &dyn Fn(&mut Asked)| {
        let mut asked = ask("198.51.100.77", 0);
        change(&mut asked);
        Script::new().code(&asked)
    };
    assert_eq!(change(&|of| of.request.flags = flag::REVERSE), code::REVERSE_TUNNEL);
    assert_eq!(change(&|of| of.request.flags = flag::GRE), code::ENCAPSULATION);
    assert_eq!(change(&|of| of.request.flags = flag::MINIMAL), code::ENCAPSULATION);
    assert_eq!(change(&|of| of.request.flags = flag::SIMULTANEOUS), code::NO_SIMULTANEOUS);
    let ignored = flag::BROADCAST | flag::DECAPSULATES;
    assert_eq!(change(&|of| of.request.flags = ignored), code::ACCEPTED);
    let agent = address("192.0.2.2");
    assert_eq!(change(&|of| of.request.home_agent = agent), code::HOME_AGENT);
    let nat = "203.0.113.50:4000".parse().unwrap();
    assert_eq!(change(&|of| of.from = nat), code::PROHIBITED);
    for (care_of, has_answer) in [
        ("192.0.2.8", true),
        ("192.0.2.7", true),
        ("224.0.0.1", false),
        ("127.0.0.1", false),
        ("255.255.255.255", false),
    ] {
        let mut asked = ask("198.51.100.77", 0);
        asked.request.care_of = address(care_of);
        asked.from.set_ip(address(care_of));
        let read = Script::new().ask(&asked);
        let codes: Vec<u8> = read.iter().map(|read| read.reply().code).collect();
        let expected = if has_answer { &[code::POORLY_FORMED][..] } else { &[] };
        assert_eq!(codes, expected, "{care_of}");
    }
}

#[test]
fn one_source_gets_ten_refusals_a_second_and_others_get_theirs() {
    let mut script = Script::new();
    let wrong = |care_of: &str| Asked { mobile: key(302), ..ask(care_of, 0) };
    let flood = wrong("198.51.100.1");
    let sent: usize = (0..300).map(|_| script.give(flood.packet()).len()).sum();
    assert_eq!((sent, script.agent.status(script.now).counters.rate_limited), (10, 290));
    assert_eq!(script.code(&wrong("198.51.100.2")), code::MOBILE_AUTHENTICATION);
    // Valid requests are not limited.
    assert_eq!(script.code(&ask("198.51.100.1", 0)), code::ACCEPTED);
}

#[test]
fn strangers_do_not_use_up_the_answers_to_mobiles_or_the_errors() {
    let mut script = Script::new();
    let mut sent = 0;
    for host in 1..31 {
        let wrong = Asked { mobile: key(302), ..ask(&format!("203.0.113.{host}"), 0) };
        sent += (0..10).map(|_| script.give(wrong.packet()).len()).sum::<usize>();
    }
    assert_eq!(sent, 100);
    assert_eq!(script.code(&ask("198.51.100.1", 60_000)), code::IDENTIFICATION);
    let asked = ask("198.51.100.1", 0);
    for _ in 0..2 {
        assert_eq!(script.code(&asked), code::ACCEPTED);
    }
    assert_eq!(script.give(data("192.0.2.8", 100)).len(), 1);
}

#[test]
fn replays_do_not_use_up_the_answers_to_another_mobile_nor_keep_their_own_out() {
    let mut script = Script::new();
    let asked = ask("198.51.100.1", 0);
    let sent: usize = (0..300).map(|_| script.ask(&asked).len()).sum();
    assert_eq!(sent, 11, "the reply, and ten to copies");
    let mut bus = ask("198.51.100.1", 60_000);
    (bus.request.home, bus.mobile) = (address("192.0.2.8"), key(301));
    assert_eq!(script.code(&bus), code::IDENTIFICATION);
    assert_eq!(script.code(&ask("198.51.100.1", 1)), code::ACCEPTED);
}

/// RFC 5944 section 3.8.2.2.
#[test]
fn a_registration_is_ended_by_its_own_care_of_address_only() {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    script.at(1_000);
    script.ask(&ask("198.51.100.2", 1_000));
    script.at(2_000).sent();
    let end = |care_of, millis| {
        let mut asked = ask(care_of, millis);
        asked.request.lifetime = 0;
        asked
    };
    // Sent before the mobile moved.
    assert_eq!(script.code(&end("198.51.100.1", 500)), code::IDENTIFICATION);
    // Sent after it moved, about the station that it left; then again.
    let left = end("198.51.100.1", 2_000);
    for _ in 0..2 {
        let read = script.ask(&left);
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].reply().code, read[0].reply().lifetime), (code::ACCEPTED, 0));
    }
    let packet = data("192.0.2.7", 100);
    assert_eq!(exit(&script.give(packet.clone()), &packet), address("198.51.100.2"));
    script.ask(&end("198.51.100.2", 2_001));
    script.give(packet);
    assert_eq!(script.agent.status(script.now).counters.unreachable, 1);
}

#[test]
fn the_shortest_and_the_longest_lifetime_are_granted() {
    let config = HomeConfig { lifetime: Duration::from_secs(65_534), ..config() };
    for (requested, granted) in [(1, 1), (65_534, 65_534), (u16::MAX, 65_534)] {
        let agent = HomeAgent::new(config.clone(), Instant::ZERO, origin()).unwrap();
        let mut script = Script { agent, now: Instant::ZERO };
        let mut asked = ask("198.51.100.1", 0);
        asked.request.lifetime = requested;
        assert_eq!(script.ask(&asked)[0].reply().lifetime, granted);
        let end = u64::from(granted) * 1_000;
        let packet = data("192.0.2.7", 100);
        let sent = script.at(end - 1).give(packet.clone());
        assert_eq!(exit(&sent, &packet), asked.request.care_of);
        script.at(end).give(packet);
        assert_eq!(script.agent.status(script.now).counters.unreachable, 1);
    }
}

#[test]
fn a_clock_that_is_set_back_keeps_no_mobile_out_and_lets_no_replay_in() {
    let mut script = Script::new();
    script.agent.set_time(script.now, id(3_600_000));
    let ahead = ask("198.51.100.1", 3_600_000);
    assert_eq!(script.code(&ahead), code::ACCEPTED);
    script.at(10_000);
    script.agent.set_time(script.now, id(10_000));
    let mut asked = ask("198.51.100.1", 10_000);
    let read = script.ask(&asked);
    assert_eq!(read[0].reply().code, code::IDENTIFICATION);
    // The mobile sets its clock by the refusal.
    asked.request.identification = read[0].reply().identification;
    assert!(asked.request.identification > ahead.request.identification);
    assert_eq!(script.code(&asked), code::ACCEPTED);
    for replay in [&ahead, &ask("198.51.100.1", 10_001), &ask("198.51.100.1", 3_610_000)] {
        assert_eq!(script.code(replay), code::IDENTIFICATION);
    }
    // The clock has caught up.
    script.at(3_610_000);
    script.agent.set_time(script.now, id(3_610_000));
    assert_eq!(script.code(&ask("198.51.100.1", 3_610_000)), code::ACCEPTED);
}

/// 2036-02-07 06:28:16 UTC.
#[test]
fn an_identification_of_zero_is_one_like_others() {
    let mut script = Script::new();
    script.agent.set_time(script.now, 0);
    let with = |care_of, identification| {
        let mut asked = ask(care_of, 0);
        asked.request.identification = identification;
        asked
    };
    assert_eq!(script.code(&with("198.51.100.1", u64::MAX)), code::ACCEPTED);
    assert_eq!(script.code(&with("198.51.100.1", 0)), code::ACCEPTED);
    assert_eq!(script.code(&with("198.51.100.2", 0)), code::IDENTIFICATION);
    assert_eq!(script.agent.snapshot().mobiles.len(), 1);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let refused = |change: &dyn Fn(&mut HomeConfig)| {
        let mut config = config();
        change(&mut config);
        HomeAgent::new(config, Instant::ZERO, 0).unwrap_err()
    };
    let home = address("192.0.2.7");
    assert_eq!(refused(&|of| of.addresses.clear()), HomeConfigError::Addresses(0, 0));
    assert_eq!(refused(&|of| of.stations[0].address = home), HomeConfigError::Twice(home));
    let v6 = address("2001:db8::7");
    assert_eq!(refused(&|of| of.addresses.truncate(1)), HomeConfigError::NoAddress(v6));
    assert_eq!(refused(&|of| of.mtu = 1_319), HomeConfigError::Mtu(1_319));
    let lifetime = HomeConfigError::Lifetime(0.5);
    assert_eq!(refused(&|of| of.lifetime = Duration::from_millis(500)), lifetime);
    let loopback = address("::1");
    let change = |of: &mut HomeConfig| of.mobiles[1].address = loopback;
    assert_eq!(refused(&change), HomeConfigError::NotUnicast(loopback));
}
