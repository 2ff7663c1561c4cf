//! Datagrams that no honest peer sends.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airtcp_device::Device;
use airtcp_tunnel::memory::Socket;
use airtcp_tunnel::{Datagrams, PrivateKey, Tunnel};
use proptest::prelude::*;

use crate::kit::{Ends, FAR, NEAR, ends, near_config, outside, packet, peer, send, status, take};

/// Two ends, and a socket that captures their datagrams.
struct Caught {
    ends: Ends,
    wire: Socket,
}

/// Two ends with a session.
fn caught() -> Caught {
    let mut ends = ends();
    ends.establish();
    let wire = ends.switch.bind(outside(9, 9)).unwrap();
    Caught { ends, wire }
}

impl Caught {
    /// Encrypts a packet at the near end. The far end does not receive it.
    fn seal(&mut self, length: u16) -> Vec<u8> {
        // The near end's endpoint follows the source of an authenticated datagram: here, the socket
        // `wire`.
        send(&mut self.ends.far, packet(FAR, NEAR, 60));
        let [(datagram, _)] = &take(&self.ends.near_socket)[..] else { panic!("one datagram") };
        self.wire.try_send_to(datagram, self.ends.near_socket.address()).unwrap();
        assert_eq!(self.ends.near.try_recv(&mut Vec::new(), 8).unwrap(), 1);
        send(&mut self.ends.near, packet(NEAR, FAR, length));
        let [(datagram, _)] = &take(&self.wire)[..] else { panic!("one datagram") };
        datagram.clone()
    }

    fn inject(&mut self, datagram: &[u8]) -> usize {
        self.wire.try_send_to(datagram, outside(1, 51_820)).unwrap();
        self.ends.far.try_recv(&mut Vec::new(), 8).unwrap()
    }
}

#[test]
fn a_replay_and_a_damaged_datagram_are_dropped_and_move_nothing() {
    let mut caught = caught();
    let datagram = caught.seal(100);
    let mut damaged = datagram.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(caught.inject(&damaged), 0);
    assert_eq!(status(&caught.ends.far).endpoint, Some(outside(2, 40_000)));
    assert_eq!(caught.inject(&datagram), 1);
    assert_eq!(status(&caught.ends.far).endpoint, Some(outside(9, 9)));
    let elsewhere = caught.ends.switch.bind(outside(8, 8)).unwrap();
    elsewhere.try_send_to(&datagram, outside(1, 51_820)).unwrap();
    assert_eq!(caught.ends.far.try_recv(&mut Vec::new(), 8).unwrap(), 0);
    let status = status(&caught.ends.far);
    assert_eq!((status.rx_invalid, status.rx_replayed), (1, 1));
    assert_eq!(status.endpoint, Some(outside(9, 9)));
    assert_eq!(caught.ends.far.counters().rx_errors, 2);
}

#[test]
fn a_replayed_handshake_changes_nothing() {
    let mut ends = ends();
    send(&mut ends.near, packet(NEAR, FAR, 100));
    let attacker = ends.switch.bind(outside(9, 9)).unwrap();
    let relay = ends.switch.bind(outside(7, 7)).unwrap();
    let mut config = near_config((&ends.near_key, ends.far_key.public_key()));
    config.peers[0].endpoint = Some(relay.address());
    let mut twin = Tunnel::new(ends.switch.bind(outside(6, 6)).unwrap(), config).unwrap();
    send(&mut twin, packet(NEAR, FAR, 100));
    let [(initiation, _)] = &take(&relay)[..] else { panic!("one initiation") };
    ends.settle();
    // Later than the first, so it is accepted once.
    attacker.try_send_to(initiation, outside(1, 51_820)).unwrap();
    ends.settle();
    let before = status(&ends.far);
    take(&attacker);
    attacker.try_send_to(initiation, outside(1, 51_820)).unwrap();
    ends.settle();
    let after = status(&ends.far);
    assert_eq!(after.rx_replayed, before.rx_replayed + 1);
    assert_eq!(after.endpoint, before.endpoint);
    // The peer was heard from recently, so nothing is sent to the source of the replay.
    assert!(take(&attacker).is_empty());
}

/// A near end that restarts with an earlier clock: the far end has recorded a later handshake.
#[test]
fn an_initiation_from_the_past_is_answered_with_one_from_here() {
    let Ends { switch, near_socket, near_key, mut far, far_key, .. } = ends();
    // The near end sends all its datagrams through the relay.
    let relay = switch.bind(outside(7, 7)).unwrap();
    let mut config = near_config((&near_key, far_key.public_key()));
    config.peers[0].endpoint = Some(relay.address());
    let mut near = Tunnel::new(near_socket.clone(), config).unwrap();
    send(&mut near, packet(NEAR, FAR, 100));
    let held = take(&relay);
    // A later initiation, whose session is never confirmed.
    let config = near_config((&near_key, far_key.public_key()));
    let mut later = Tunnel::new(switch.bind(outside(6, 6)).unwrap(), config).unwrap();
    send(&mut later, packet(NEAR, FAR, 100));
    assert_eq!(far.try_recv(&mut Vec::new(), 8).unwrap(), 0);
    assert!(status(&far).last_handshake.is_some());
    // A handshake to the old endpoint is in progress.
    send(&mut far, packet(FAR, NEAR, 60));

    let (mut arrived, mut answers) = (Vec::new(), Vec::new());
    let mut waiting = held;
    for _ in 0..6 {
        for (datagram, from) in waiting {
            let to = match from {
                from if from == near_socket.address() => outside(1, 51_820),
                _ => near_socket.address(),
            };
            relay.try_send_to(&datagram, to).unwrap();
        }
        far.try_recv(&mut arrived, 64).unwrap();
        near.try_recv(&mut answers, 64).unwrap();
        waiting = take(&relay);
    }
    assert_eq!((arrived, answers), (vec![packet(NEAR, FAR, 100)], vec![packet(FAR, NEAR, 60)]));
    assert_eq!((status(&far).rx_replayed, status(&far).endpoint), (1, Some(relay.address())));
}

#[test]
fn a_source_that_is_not_allowed_is_dropped_and_counted() {
    let mut ends = ends();
    ends.establish();
    send(&mut ends.near, packet(FAR, FAR, 100));
    send(&mut ends.near, packet(NEAR, FAR, 101));
    assert_eq!(ends.settle().1, [packet(NEAR, FAR, 101)]);
    assert_eq!(status(&ends.far).rx_refused, 1);
    assert_eq!((ends.far.counters().rx_errors, ends.far.counters().rx_packets), (1, 2));
    // A source that belongs to another peer is refused too.
    let other = peer(PrivateKey::generate().public_key(), FAR, None);
    ends.far.handle().add_peer(other).unwrap();
    send(&mut ends.near, packet(FAR, FAR, 100));
    assert_eq!(ends.settle().1, []);
    let refused: u64 = ends.far.handle().peers().iter().map(|peer| peer.rx_refused).sum();
    assert_eq!(refused, 2);
}

/// Valid initiations for this key, from unknown peers.
fn strangers(ends: &Ends, count: u16) -> Vec<Vec<u8>> {
    let relay = ends.switch.bind(outside(7, 7)).unwrap();
    (0..count)
        .map(|_| {
            let mut config = near_config((&PrivateKey::generate(), ends.far_key.public_key()));
            config.peers[0].endpoint = Some(relay.address());
            let socket = ends.switch.bind(outside(6, 6)).unwrap();
            let mut stranger = Tunnel::new(socket, config).unwrap();
            send(&mut stranger, packet(NEAR, FAR, 100));
            take(&relay).remove(0).0
        })
        .collect()
}

#[test]
fn a_flood_of_handshakes_gets_cookies_and_the_session_continues() {
    const FLOOD: u16 = 1000;
    let mut ends = ends();
    ends.establish();
    let initiations = strangers(&ends, FLOOD);
    let begun = Instant::now();
    let mut sources = Vec::new();
    for (n, initiation) in initiations.iter().enumerate() {
        let source = SocketAddr::from(([198, 51, (n >> 8) as u8, n as u8], 1000));
        let socket = ends.switch.bind(source).unwrap();
        socket.try_send_to(initiation, outside(1, 51_820)).unwrap();
        sources.push(socket);
        if n % 100 == 50 {
            send(&mut ends.near, packet(NEAR, FAR, 100));
            assert_eq!(ends.settle().1.len(), 1, "after {n}");
        }
    }
    ends.settle();
    let seconds = begun.elapsed().as_secs() + 1;
    let counters = ends.far.handle().counters();
    let answered = counters.rx_unknown + counters.rx_limited;
    assert_eq!(answered + counters.cookies, u64::from(FLOOD));
    assert!(answered <= 100 * seconds, "{answered} in {seconds} s");
    let cookies: usize = sources.iter().map(|socket| take(socket).len()).sum();
    assert_eq!(cookies as u64, counters.cookies);
}

/// In real time: an initiation is repeated after five seconds, then with the cookie.
#[tokio::test]
#[ignore = "takes six seconds"]
async fn a_new_session_comes_about_under_load() {
    let mut ends = ends();
    let flood = strangers(&ends, 150);
    let attacker = ends.switch.bind(outside(100, 100)).unwrap();
    let inject = |socket: &Socket| {
        for initiation in &flood {
            socket.try_send_to(initiation, outside(1, 51_820)).unwrap();
        }
    };
    inject(&attacker);
    ends.settle();
    send(&mut ends.near, packet(NEAR, FAR, 100));
    let mut arrived = Vec::new();
    for _ in 0..1000 {
        inject(&attacker);
        arrived.append(&mut ends.settle().1);
        if !arrived.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(arrived, [packet(NEAR, FAR, 100)]);
    assert!(status(&ends.near).tx_bytes > 2 * 148);
}

#[derive(Clone, Debug)]
enum Change {
    Flip(usize, u8),
    Cut(usize),
    Extend(Vec<u8>),
    Kind(u8),
    Counter(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<usize>(), 1..=255_u8).prop_map(|(at, bits)| Change::Flip(at, bits)),
        any::<usize>().prop_map(Change::Cut),
        proptest::collection::vec(any::<u8>(), 1..80).prop_map(Change::Extend),
        any::<u8>().prop_map(Change::Kind),
        prop_oneof![any::<u64>(), u64::MAX - 9000..=u64::MAX].prop_map(Change::Counter),
    ]
}

fn apply(change: &Change, datagram: &mut Vec<u8>) {
    match change {
        Change::Flip(at, bits) => {
            let at = at % datagram.len().max(1);
            datagram.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
        }
        Change::Cut(at) => datagram.truncate(at % datagram.len().max(1)),
        Change::Extend(bytes) => datagram.extend(bytes),
        Change::Kind(kind) => datagram.iter_mut().take(1).for_each(|byte| *byte = *kind),
        Change::Counter(counter) => datagram
            .iter_mut()
            .skip(8)
            .zip(counter.to_le_bytes())
            .for_each(|(byte, new)| *byte = new),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The far end drops and counts any changed datagram, and continues.
    #[test]
    fn changed_datagrams_are_dropped_and_counted(
        all in proptest::collection::vec((0..4_usize, change()), 1..24),
    ) {
        let mut caught = caught();
        let originals = {
            let data = caught.seal(100);
            let strange = strangers(&caught.ends, 1).remove(0);
            // With the lengths of a response and of a cookie reply.
            let of_kind = |kind, length: usize| [vec![kind, 0, 0, 0], vec![7; length - 4]].concat();
            let (response, cookie) = (of_kind(2, 92), of_kind(3, 64));
            [data, strange, response, cookie]
        };
        for (which, change) in &all {
            let mut datagram = originals[*which].clone();
            apply(change, &mut datagram);
            if datagram == originals[0] {
                continue;
            }
            let before = caught.ends.far.counters().rx_errors;
            let cookies = caught.ends.far.handle().counters().cookies;
            prop_assert_eq!(caught.inject(&datagram), 0);
            let after = caught.ends.far.counters().rx_errors;
            let cookies = caught.ends.far.handle().counters().cookies - cookies;
            prop_assert_eq!(after - before + cookies, 1);
        }
        prop_assert_eq!(status(&caught.ends.far).endpoint, Some(outside(2, 40_000)));
        prop_assert_eq!(caught.inject(&originals[0]), 1);
    }

    #[test]
    fn noise_is_dropped_and_counted(
        all in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..64),
        kinds in proptest::collection::vec(0..6_u8, 64),
    ) {
        let mut caught = caught();
        let count = all.len() as u64;
        for (mut datagram, kind) in all.into_iter().zip(kinds) {
            datagram.iter_mut().take(4).for_each(|byte| *byte = 0);
            datagram.iter_mut().take(1).for_each(|byte| *byte = kind);
            prop_assert_eq!(caught.inject(&datagram), 0);
        }
        prop_assert_eq!(caught.ends.far.counters().rx_errors, count);
        caught.ends.establish();
    }
}
