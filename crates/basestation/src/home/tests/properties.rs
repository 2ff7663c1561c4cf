//! Any bytes, and any order of requests, forgeries, replays, lost storage and changes of the clock.

use airtcp_wire::mobility::code;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// A valid request for a station, with a time relative to now.
    Ask {
        station: u8,
        offset: i16,
        lifetime: u16,
    },
    /// A request that was sent before.
    Replay(u8),
    /// A request that was sent before, with a changed byte.
    Forge(u8, u8),
    /// Any message to the agent's port.
    Bytes(Vec<u8>),
    /// Any packet.
    Packet(Vec<u8>),
    Data(u16),
    Store,
    Wait(u16),
    Restart,
    /// The clock of the agent is set: seconds relative to the right time.
    Clock(i8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2_u8, -9_000..9_000_i16, 0..3_u16)
            .prop_map(|(station, offset, lifetime)| Step::Ask { station, offset, lifetime }),
        2 => any::<u8>().prop_map(Step::Replay),
        2 => any::<(u8, u8)>().prop_map(|(which, place)| Step::Forge(which, place)),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Step::Bytes),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Step::Packet),
        2 => (28..4_000_u16).prop_map(Step::Data),
        3 => Just(Step::Store),
        3 => (0..2_000_u16).prop_map(Step::Wait),
        1 => Just(Step::Restart),
        1 => (-20..20_i8).prop_map(Step::Clock),
    ]
}

proptest! {
    #[test]
    fn only_stored_requests_of_the_mobile_move_it(steps in prop::collection::vec(step(), 0..60)) {
        let mut script = Script::new();
        let mut sent: Vec<(Vec<u8>, SocketAddr)> = Vec::new();
        let mut disk = Snapshot::default();
        let mut last = None;
        for step in steps {
            let packet = match step {
                Step::Ask { station, offset, lifetime } => {
                    let care_of = ["198.51.100.1", "198.51.100.2"][usize::from(station)];
                    let millis = script.now.as_millis().saturating_add_signed(offset.into());
                    let mut asked = ask(care_of, millis);
                    asked.request.lifetime = lifetime;
                    sent.push((asked.message(), asked.from));
                    Some(asked.packet())
                }
                Step::Replay(which) if !sent.is_empty() => {
                    let (message, from) = &sent[usize::from(which) % sent.len()];
                    Some(datagram(*from, message))
                }
                Step::Forge(which, place) if !sent.is_empty() => {
                    let (message, from) = &sent[usize::from(which) % sent.len()];
                    let mut message = message.clone();
                    let place = usize::from(place) % message.len();
                    message[place] ^= 1;
                    let before = script.agent.counters.accepted;
                    let _ = script.give(datagram(*from, &message));
                    prop_assert_eq!(script.agent.counters.accepted, before);
                    None
                }
                Step::Bytes(bytes) => Some(datagram("198.51.100.1:434".parse().unwrap(), &bytes)),
                Step::Packet(bytes) => Some(Packet::new(bytes)),
                Step::Data(len) => Some(data("192.0.2.7", len.into())),
                Step::Store => {
                    if let Some((number, snapshot)) = script.agent.poll_store() {
                        disk = snapshot;
                        script.agent.stored(script.now, number);
                    }
                    None
                }
                Step::Wait(millis) => {
                    let now = script.now.as_millis() + u64::from(millis);
                    script.at(now);
                    None
                }
                Step::Restart => {
                    let time = script.agent.time(script.now);
                    script.agent = HomeAgent::new(config(), script.now, time).unwrap();
                    script.agent.restore(script.now, &disk);
                    last = script.agent.mobiles[0].last;
                    None
                }
                Step::Clock(seconds) => {
                    let right = id(script.now.as_millis());
                    let time = right.wrapping_add_signed(i64::from(seconds) << 32);
                    script.agent.set_time(script.now, time);
                    None
                }
                Step::Replay(_) | Step::Forge(..) => None,
            };
            if let Some(packet) = packet {
                script.agent.handle_packet(script.now, PortId(0), packet);
            }
            for packet in script.sent() {
                // A reply that accepts is about what is in durable storage.
                if let Ok(outer) = ip::parse(&packet.data)
                    && outer.protocol == ip::UDP
                    && let Message::Reply(reply) = Read::of(&packet).message
                    && reply.code == 0
                {
                    let stored = disk.mobiles.iter().find(|of| of.address == reply.home);
                    prop_assert!(stored.is_some_and(|of| of.identification >= reply.identification));
                }
                prop_assert!(packet.len() <= 1_500);
            }
            let mobile = &script.agent.mobiles[0];
            prop_assert!(mobile.last >= last, "identifications only rise");
            last = mobile.last;
            // Packets go where the storage says, and nowhere else.
            let stored = disk.mobiles.first().and_then(|of| of.registration.as_ref());
            let care_of = mobile.binding.as_ref().map(|binding| binding.care_of);
            prop_assert!(care_of.is_none() || stored.map(|of| of.care_of) == care_of);
            prop_assert!(mobile.left.len() <= 8 && script.agent.agenda.len() <= 3);
            let due = script.agent.poll_timeout();
            prop_assert!(due.is_none_or(|due| due > script.now));
        }
        // A mobile that sets its clock by the refusals can register within 8 s.
        script.store();
        let mut is_accepted = false;
        for _ in 0..2 {
            let now = script.now.as_millis() + 8_000;
            script.at(now).sent();
            let mut asked = ask("198.51.100.1", now);
            for _ in 0..2 {
                for read in script.ask(&asked) {
                    if let Message::Reply(reply) = read.message
                        && reply.code == code::IDENTIFICATION
                    {
                        asked.request.identification = reply.identification;
                    }
                }
            }
            is_accepted |= script.agent.mobiles[0].last == Some(asked.request.identification);
        }
        prop_assert!(is_accepted);
    }
}
