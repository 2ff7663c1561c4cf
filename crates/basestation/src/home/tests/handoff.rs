//! A mobile changes its station: revocation, flow lists, reply.

use airtcp_wire::mobility::push_vendor;

use super::*;

/// A mobile that was at the station north, and asks from south at 1 s.
fn moved() -> (Script, Asked, Vec<Read>) {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    script.at(1_000);
    let asked = ask("198.51.100.2", 1_000);
    let read = script.ask(&asked);
    (script, asked, read)
}

/// An acknowledgment of north with parts of a flow list, each with its number and their count.
fn acknowledgment(identification: u64, lists: &[(u8, u8)], key: &Key) -> Packet {
    let mut message = Message::Acknowledgment(Acknowledgment {
        informs: false,
        home: address("192.0.2.7"),
        identifier: (identification >> 32) as u32,
    })
    .emit();
    for (part, parts) in lists {
        push_vendor(&mut message, FLOWS, &list(identification, *part, *parts));
    }
    key.sign(&mut message, Ends::ForeignHome);
    datagram("198.51.100.1:434".parse().unwrap(), &message)
}

fn list(identification: u64, part: u8, parts: u8) -> Vec<u8> {
    [&identification.to_be_bytes()[..], &[part, parts], b"flows"].concat()
}

fn read(sent: &[Packet]) -> Vec<Read> {
    sent.iter().map(Read::of).collect()
}

#[test]
fn the_old_station_is_asked_four_times_and_the_reply_waits_a_quarter_of_a_second() {
    let (mut script, asked, first) = moved();
    let revocation = Revocation {
        is_from_home: true,
        informs: false,
        home: address("192.0.2.7"),
        home_agent: address("192.0.2.1"),
        foreign_agent: address("198.51.100.1"),
        identifier: (id(1_000) >> 32) as u32,
    };
    let forward = [&id(1_000).to_be_bytes()[..], &[198, 51, 100, 2]].concat();
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].revocation(), revocation);
    assert_eq!(first[0].vendor, [(FORWARD, forward)]);
    assert_eq!(first[0].to, "198.51.100.1:434".parse().unwrap());
    assert!(first[0].is_signed(Ends::ForeignHome, &key(400)));
    // Packets follow the mobile at once.
    let packet = data("192.0.2.7", 100);
    assert_eq!(exit(&script.give(packet.clone()), &packet), asked.request.care_of);

    let sent = script.at(1_250).sent();
    let messages = read(&sent);
    let [again, reply] = &messages[..] else { panic!("{sent:?}") };
    assert_eq!((again, reply.to), (&first[0], asked.from));
    assert_eq!(reply.reply().identification, id(1_000));
    // The new station learns which one the mobile has left.
    assert_eq!(reply.hints, [(PREVIOUS, vec![198, 51, 100, 1])]);
    assert!(reply.is_signed(Ends::MobileHome, &key(300)));
    let times: Vec<u64> =
        (1_251..10_000).filter(|millis| !script.at(*millis).sent().is_empty()).collect();
    assert_eq!(times, [1_750, 2_750]);
    assert_eq!(script.agent.status(script.now).counters.revocations, 4);
}

#[test]
fn flow_lists_are_passed_on_once_each_and_the_reply_comes_before_them() {
    let (mut script, asked, _) = moved();
    script.at(1_040);
    let sent = script.give(acknowledgment(id(1_000), &[(0, 2)], &key(400)));
    let messages = read(&sent);
    let [reply, part] = &messages[..] else { panic!("{sent:?}") };
    assert!(reply.vendor.is_empty() && reply.is_signed(Ends::MobileHome, &key(300)));
    assert_eq!(part.vendor, [(FLOWS, list(id(1_000), 0, 2))]);
    assert_eq!((part.to, part.reply().identification), (asked.from, id(1_000)));
    assert_eq!(part.ends, [Ends::ForeignHome]);
    assert!(part.is_signed(Ends::ForeignHome, &key(401)));

    // The second part was lost: north is asked again, and sends both.
    assert_eq!(read(&script.at(1_250).sent())[0].revocation().home, asked.request.home);
    let both = acknowledgment(id(1_000), &[(0, 2), (1, 2)], &key(400));
    let sent = script.give(both.clone());
    assert_eq!(read(&sent)[0].vendor, [(FLOWS, list(id(1_000), 1, 2))]);
    assert_eq!(sent.len(), 1);
    assert!(script.give(both.clone()).is_empty());
    assert!((1_251..7_000).all(|millis| script.at(millis).sent().is_empty()));

    // Lost between agent and south: the mobile asks again, and everything comes again.
    let again = script.ask(&asked);
    assert_eq!((again.len(), again[0].to), (2, asked.from));
    assert_eq!(again[1].revocation().identifier, (id(1_000) >> 32) as u32);
    // While north is being asked, a further copy does not make it more.
    assert_eq!(script.ask(&asked).len(), 1);
    assert_eq!(script.give(both).len(), 2);
}

#[test]
fn an_acknowledgment_of_a_standard_agent_ends_the_waiting() {
    let (mut script, asked, _) = moved();
    let sent = script.give(acknowledgment(id(1_000), &[], &key(400)));
    assert_eq!(read(&sent)[0].to, asked.from);
    assert_eq!(sent.len(), 1);
    assert!((1_001..10_000).all(|millis| script.at(millis).sent().is_empty()));
}

#[test]
fn an_acknowledgment_of_a_stranger_or_about_something_else_is_ignored() {
    let (mut script, ..) = moved();
    let id = id(1_000);
    assert!(script.give(acknowledgment(id, &[(0, 1)], &key(401))).is_empty());
    assert!(script.give(acknowledgment(id ^ 1 << 32, &[(0, 1)], &key(400))).is_empty());
    assert_eq!(script.agent.status(script.now).counters.unauthenticated, 1);
    // Parts that cannot be: the reply is sent, and no part.
    let impossible = [(0, 0), (2, 2), (0, 129), (200, 255)];
    let sent = script.give(acknowledgment(id, &impossible, &key(400)));
    assert_eq!((sent.len(), script.agent.status(script.now).counters.flow_parts), (1, 0));
    let mut message = Message::Acknowledgment(Acknowledgment {
        informs: false,
        home: address("192.0.2.7"),
        identifier: (id >> 32) as u32,
    })
    .emit();
    let mut long = list(id, 0, 1);
    long.resize(MAX_PART + 1, 0);
    push_vendor(&mut message, FLOWS, &long);
    key(400).sign(&mut message, Ends::ForeignHome);
    assert!(script.give(datagram("198.51.100.1:434".parse().unwrap(), &message)).is_empty());
}

#[test]
fn a_mobile_that_goes_on_or_back_is_forwarded_to_where_it_is() {
    let (mut script, ..) = moved();
    // On to a care-of address of its own: both stations forward there.
    script.at(2_000).sent();
    let read = script.ask(&ask("198.51.100.77", 2_000));
    let to: Vec<_> = read.iter().map(|read| read.to.to_string()).collect();
    assert_eq!(to, ["198.51.100.1:434", "198.51.100.2:434", "198.51.100.77:5000"]);
    let forward = [&id(2_000).to_be_bytes()[..], &[198, 51, 100, 77]].concat();
    assert!(read[..2].iter().all(|read| read.vendor == [(FORWARD, forward.clone())]));
    // Back to north, which is not asked any more.
    script.at(10_000).sent();
    let read = script.ask(&ask("198.51.100.1", 10_000));
    let to: Vec<_> = read.iter().map(|read| read.to.to_string()).collect();
    assert_eq!(to, ["198.51.100.2:434", "198.51.100.1:5000"]);
    // Home: south and north are revoked, without a new address.
    script.at(20_000).sent();
    let mut home = ask("192.0.2.7", 20_000);
    home.request.lifetime = 0;
    let read = script.ask(&home);
    assert_eq!(read.len(), 3);
    assert!(read.iter().all(|read| read.vendor.is_empty()));
}

#[test]
fn a_new_request_through_the_same_station_revokes_nothing() {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    script.at(1_000);
    let read = script.ask(&ask("198.51.100.1", 1_000));
    assert_eq!((read.len(), read[0].reply().code), (1, 0));
    assert!(read[0].hints.is_empty());
    assert_eq!(script.agent.status(script.now).counters.revocations, 0);
}
