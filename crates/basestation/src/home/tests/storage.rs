//! Storage before the reply, and a restart from what was stored.

use airtcp_wire::mobility::code;

use super::*;

#[test]
fn nothing_takes_effect_before_it_is_stored() {
    let mut script = Script::new();
    assert_eq!(script.agent.poll_store(), None);
    let asked = ask("198.51.100.1", 0);
    let packet = data("192.0.2.7", 100);
    assert!(script.give(asked.packet()).is_empty());
    let (number, snapshot) = script.agent.poll_store().unwrap();
    assert_eq!(snapshot.mobiles.len(), 1);
    let registration = snapshot.mobiles[0].registration.as_ref().unwrap();
    assert_eq!((registration.care_of, registration.until), (asked.request.care_of, id(300_000)));
    assert_eq!(script.agent.poll_store(), None);
    // Again meanwhile: the reply is still to come. A replay is refused already.
    assert!(script.give(asked.packet()).is_empty());
    let unreachable = script.give(packet.clone());
    assert!(tunnel::decapsulate(&unreachable[0].data).is_err());

    // A later request of another mobile does not wait for the first one's number.
    let mut other = ask("198.51.100.2", 0);
    (other.request.home, other.mobile) = (address("192.0.2.8"), key(301));
    assert!(script.give(other.packet()).is_empty());
    script.agent.stored(script.now, number);
    let sent = script.sent();
    assert_eq!((sent.len(), Read::of(&sent[0]).to), (1, asked.from));
    assert_eq!(exit(&script.give(packet.clone()), &packet), asked.request.care_of);
    let sent = script.store();
    assert_eq!((sent.len(), Read::of(&sent[0]).to), (1, other.from));
    // A number that was never given out does no harm.
    script.agent.stored(script.now, u64::MAX);
    assert!(script.sent().is_empty());
}

#[test]
fn a_later_request_replaces_one_that_is_being_stored() {
    let mut script = Script::new();
    assert!(script.give(ask("198.51.100.1", 0).packet()).is_empty());
    let (number, _) = script.agent.poll_store().unwrap();
    assert!(script.give(ask("198.51.100.2", 1).packet()).is_empty());
    script.agent.stored(script.now, number);
    assert!(script.sent().is_empty());
    let sent = script.store();
    assert_eq!(sent.len(), 1, "the mobile never was at the first station");
    assert_eq!(Read::of(&sent[0]).reply().identification, id(1));
}

#[test]
fn registrations_and_replay_protection_survive_a_restart() {
    let mut script = Script::new();
    let asked = [ask("198.51.100.1", 0), ask("2001:db8:1::77", 1)];
    for asked in &asked {
        assert_eq!(script.code(asked), code::ACCEPTED);
    }
    let snapshot = script.agent.snapshot();
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);

    // Five seconds later, with a clock of its own; one mobile is not in the settings any more.
    let config = config();
    let mut agent = HomeAgent::new(config, Instant::from_millis(77), id(5_000)).unwrap();
    let mut known = snapshot.clone();
    known.mobiles.push(Stored { address: address("192.0.2.99"), ..known.mobiles[0].clone() });
    agent.restore(Instant::from_millis(77), &known);
    let last = |of: &Snapshot| -> Vec<_> {
        of.mobiles.iter().map(|of| (of.address, of.identification)).collect()
    };
    assert_eq!(last(&agent.snapshot()), last(&snapshot));
    let mut script = Script { agent, now: Instant::from_millis(77) };
    for (asked, home) in asked.iter().zip(["192.0.2.7", "2001:db8::7"]) {
        let packet = data(home, 100);
        assert_eq!(exit(&script.give(packet.clone()), &packet), asked.request.care_of);
        // The mobile repeats what was answered before the restart.
        assert_eq!(script.ask(asked)[0].reply().lifetime, 300);
    }
    assert_eq!(script.code(&ask("198.51.100.2", 0)), code::IDENTIFICATION);
    // The end is that of before.
    script.at(295_076).give(data("192.0.2.7", 100));
    assert_eq!(script.agent.status(script.now).counters.unreachable, 0);
    script.at(295_078).give(data("192.0.2.7", 100));
    assert_eq!(script.agent.status(script.now).counters.unreachable, 1);
}

#[test]
fn a_registration_that_ended_before_the_restart_leaves_its_identification() {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    let snapshot = script.agent.snapshot();
    let mut agent = HomeAgent::new(config(), Instant::ZERO, id(300_001)).unwrap();
    agent.restore(Instant::ZERO, &snapshot);
    assert!(agent.status(Instant::ZERO).bindings.is_empty());
    assert_eq!(agent.snapshot().mobiles[0].identification, id(0));
    assert_eq!(agent.poll_timeout(), None);
}

#[test]
fn a_restored_registration_does_not_lead_back_to_the_agent() {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    let mut snapshot = script.agent.snapshot();
    for care_of in ["192.0.2.1", "192.0.2.7", "192.0.2.8", "224.0.0.1"] {
        snapshot.mobiles[0].registration.as_mut().unwrap().care_of = address(care_of);
        let mut agent = HomeAgent::new(config(), Instant::ZERO, id(0)).unwrap();
        agent.restore(Instant::ZERO, &snapshot);
        assert!(agent.status(Instant::ZERO).bindings.is_empty(), "{care_of}");
        assert_eq!(agent.snapshot().mobiles[0].identification, id(0));
    }
}

#[test]
fn a_state_that_is_restored_twice_ends_once() {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    let mut snapshot = script.agent.snapshot();
    let mut later = snapshot.mobiles[0].clone();
    later.registration.as_mut().unwrap().until = id(200_000);
    snapshot.mobiles.push(later);
    let mut agent = HomeAgent::new(config(), Instant::ZERO, id(0)).unwrap();
    agent.restore(Instant::ZERO, &snapshot);
    agent.restore(Instant::ZERO, &snapshot);
    assert_eq!(agent.poll_timeout(), Some(Instant::from_millis(200_000)));
    agent.handle_timeout(Instant::from_millis(300_001));
    assert_eq!((agent.poll_timeout(), agent.counters.expired), (None, 1));
}

#[test]
fn a_restored_registration_lasts_no_longer_than_its_lifetime_and_the_settings_allow() {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    let snapshot = script.agent.snapshot();
    // The clock was set back by an hour.
    for (longest, expected) in [(600, 300), (60, 60)] {
        let config = HomeConfig { lifetime: Duration::from_secs(longest), ..config() };
        let time = id(0) - (3_600 << 32);
        let mut agent = HomeAgent::new(config, Instant::ZERO, time).unwrap();
        agent.restore(Instant::ZERO, &snapshot);
        assert_eq!(agent.status(Instant::ZERO).bindings[0].seconds, expected);
    }
}
