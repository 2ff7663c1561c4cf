//! Connections from the handshake to the end.

use super::*;
use crate::{ConnectionError, Phase};

#[test]
fn a_stream_goes_both_ways_and_both_ends_end_well() {
    let mut world = world("delay 10ms", "delay 10ms", [100_000, 50_000], with(|_| {}));
    world.finish_within(Duration::from_secs(5));
    let done = world.run_while(Duration::from_secs(30), |world| {
        world.ends.iter().any(|end| end.ended.is_none())
    });
    assert!(done);
    for end in 0..2 {
        assert_eq!(world.ends[end].ended, Some(Ok(())));
        let (now, id) = (world.now, world.ends[end].id.unwrap());
        world.ends[end].endpoint.release(now, id);
        assert_eq!(
            (world.ends[end].endpoint.connections(), world.ends[end].endpoint.memory()),
            (0, 0)
        );
        assert_eq!(world.ends[end].endpoint.info(id), None);
    }
}

#[test]
fn the_first_round_trip_time_is_the_handshakes_or_the_seed() {
    for seed in [None, Some(Duration::from_millis(300))] {
        let configs = with(|config| config.profile.round_trip_time = seed);
        let mut world = world("delay 40ms", "delay 40ms", [0, 0], configs);
        world.ends.iter_mut().for_each(|end| end.finished = true);
        world.run_for(Duration::from_millis(170));
        for end in 0..2 {
            let info = world.info(end).unwrap();
            assert_eq!(info.phase, Phase::Established);
            assert_eq!(info.round_trip_time, Some(seed.unwrap_or(Duration::from_millis(80))));
        }
    }
}

#[test]
fn polling_ends_though_a_timer_has_come_due_since_the_last_one_was_run() {
    let mut world = world("delay 10ms", "delay 10ms", [0, 0], with(|_| {}));
    world.ends.iter_mut().for_each(|end| end.finished = true);
    world.run_for(Duration::from_secs(1));
    let (now, id) = (world.now + Duration::from_secs(10), world.ends[0].id.unwrap());
    let client = &mut world.ends[0].endpoint;
    // A call gives the connection a turn to send, but its PING waits for `handle_timeout`.
    assert_eq!(client.send(now, id, b""), Ok(0));
    assert_eq!(client.poll_transmit(now, &mut Vec::new()), None);
    assert!(client.poll_timeout().is_some_and(|at| at <= now));
    client.handle_timeout(now);
    assert!(client.poll_transmit(now, &mut Vec::new()).is_some());
}

#[test]
fn lost_packets_of_the_handshake_are_sent_again() {
    // Each of the four packet types is lost at least once.
    let mut world =
        world("delay 10ms drop 1,3,5", "delay 10ms drop 1,3", [5_000, 5_000], with(|_| {}));
    world.finish_within(Duration::from_secs(20));
}

#[test]
fn no_server_is_an_error_in_time() {
    let mut world = world("loss 100%", "delay 1ms", [1_000, 0], with(|_| {}));
    let began = world.now;
    let done = world.run_while(Duration::from_secs(60), |world| world.error(0).is_none());
    assert!(done);
    assert_eq!(world.error(0), Some(ConnectionError::HandshakeTimeout.into()));
    assert_eq!(world.now.since(began), Duration::from_secs(10));
}

#[test]
fn a_peer_that_vanishes_is_an_error_in_time() {
    let mut world = world("delay 5ms", "rate 1mbit delay 5ms", [0, 1_000_000], with(|_| {}));
    world.run_for(Duration::from_secs(1));
    let spec: LinkSpec = "loss 100%".parse().unwrap();
    world.link = Link::new(&spec, &spec).unwrap();
    let began = world.now;
    let done = world.run_while(Duration::from_secs(60), |world| {
        world.ends.iter().any(|end| end.ended.is_none())
    });
    assert!(done);
    for end in 0..2 {
        assert_eq!(world.error(end), Some(ConnectionError::TimedOut.into()));
    }
    let took = world.now.since(began);
    assert!(took <= Duration::from_secs(31), "{took:?}");
}

#[test]
fn an_idle_connection_is_kept_and_its_end_still_comes_through() {
    let mut world = world("delay 5ms", "delay 5ms", [1_000, 0], with(|_| {}));
    world.ends.iter_mut().for_each(|end| end.finished = true);
    world.run_for(Duration::from_secs(3_600));
    assert_eq!(world.ends[1].read, 1_000);
    for end in &mut world.ends {
        assert_eq!(end.ended, None);
        end.finished = false;
    }
    world.finish_within(Duration::from_secs(5));
}

#[test]
fn a_restarted_server_reports_unknown_connections() {
    let mut world = world("delay 5ms", "delay 5ms", [1_000, 0], with(|_| {}));
    world.ends.iter_mut().for_each(|end| end.finished = true);
    world.run_for(Duration::from_secs(1));
    world.ends[1] = App::new("10.0.0.2:2000", 9, 0, Limits::default());
    world.ends[0].to_write = 2_000;
    let done = world.run_while(Duration::from_secs(5), |world| world.error(0).is_none());
    assert!(done);
    assert_eq!(world.error(0), Some(ConnectionError::Unknown.into()));
}

#[test]
fn an_abort_ends_both_ends_at_once() {
    let mut world = world("delay 5ms", "rate 1mbit delay 5ms", [0, 1_000_000], with(|_| {}));
    world.run_for(Duration::from_secs(1));
    let (now, id) = (world.now, world.ends[0].id.unwrap());
    world.ends[0].endpoint.abort(now, id);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.error(0), Some(ConnectionError::AbortedHere.into()));
    assert_eq!(world.error(1), Some(ConnectionError::Aborted.into()));
}

#[test]
fn a_released_connection_delivers_what_was_written() {
    let mut world = world("rate 1mbit delay 5ms", "delay 5ms", [100_000, 0], with(|_| {}));
    let done = world.run_while(Duration::from_secs(5), |world| !world.ends[0].finished);
    assert!(done);
    let (now, id) = (world.now, world.ends[0].id.unwrap());
    world.ends[0].endpoint.release(now, id);
    world.ends[0].released = true;
    let done = world.run_while(Duration::from_secs(30), |world| !world.ends[1].at_end);
    assert!(done);
    assert_eq!(world.ends[1].read, 100_000);
    let done =
        world.run_while(Duration::from_secs(30), |world| world.ends[0].endpoint.connections() > 0);
    assert!(done, "nothing is left of it");
}

#[test]
fn data_for_a_released_connection_aborts_it() {
    let mut world = world("delay 5ms", "rate 1mbit delay 5ms", [0, 1_000_000], with(|_| {}));
    world.run_for(Duration::from_secs(1));
    let (now, id) = (world.now, world.ends[0].id.unwrap());
    world.ends[0].endpoint.release(now, id);
    world.ends[0].released = true;
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.error(1), Some(ConnectionError::Aborted.into()));
    assert_eq!(world.ends[0].endpoint.connections(), 0);
}

#[test]
fn a_released_connection_with_a_silent_peer_ends() {
    let mut world = world("delay 5ms", "delay 5ms", [0, 0], with(|_| {}));
    world.ends.iter_mut().for_each(|end| end.finished = true);
    world.run_for(Duration::from_secs(1));
    let (now, id) = (world.now, world.ends[0].id.unwrap());
    world.ends[0].endpoint.release(now, id);
    world.ends[0].released = true;
    let done =
        world.run_while(Duration::from_secs(60), |world| world.ends[0].endpoint.connections() > 0);
    assert!(done);
}

#[test]
fn time_outs_may_be_infinite() {
    let configs = with(|config| {
        (config.progress_timeout, config.idle_timeout) = (Duration::MAX, Duration::MAX);
        config.receive_buffer = airtcp_types::ByteCount(50_000);
    });
    let mut world = world("delay 5ms", "delay 5ms", [0, 250_000], configs);
    world.ends[0].reads = false;
    world.run_for(Duration::from_secs(1));
    let (now, id) = (world.now, world.ends[1].id.unwrap());
    world.ends[1].endpoint.release(now, id);
    world.ends[1].released = true;
    world.run_for(Duration::from_secs(10_000));
    assert_eq!(world.error(0), None);
}

#[test]
fn a_released_connection_with_a_slow_peer_ends() {
    let configs = with(|config| config.receive_buffer = airtcp_types::ByteCount(50_000));
    let mut world = world("delay 5ms", "delay 5ms", [0, 250_000], configs);
    world.ends[0].reads = false;
    world.run_for(Duration::from_secs(1));
    assert!(world.ends[1].finished, "all of it is written");
    let (now, [ours, theirs]) = (world.now, [0, 1].map(|end| world.ends[end].id.unwrap()));
    world.ends[1].endpoint.release(now, theirs);
    world.ends[1].released = true;
    // Steps are shorter than the progress time-out.
    let step = Duration::from_secs(100);
    let mut lasted = 0;
    while world.ends[1].endpoint.connections() > 0 && lasted < 60 {
        world.run_for(step);
        let now = world.now;
        // Received data can be read even after the end.
        let _ = world.ends[0].endpoint.recv(now, ours, &mut [0; 1_400]);
        lasted += 1;
    }
    let most = Config::default().progress_timeout * 10;
    assert!((most..most + 2 * step).contains(&(lasted * step)), "{:?}", lasted * step);
    // The peer receives the CLOSE a moment later.
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.error(0), Some(ConnectionError::Aborted.into()));
}

#[test]
fn a_reader_that_stops_stops_the_sender_and_loses_nothing() {
    let configs = with(|config| config.receive_buffer = airtcp_types::ByteCount(50_000));
    let mut world = world("delay 5ms", "rate 10mbit delay 5ms", [0, 1_000_000], configs);
    world.ends[0].reads = false;
    world.run_for(Duration::from_secs(300));
    let endpoint = &world.ends[0].endpoint;
    assert!(endpoint.memory() <= 52_000 && endpoint.memory() > 40_000, "{}", endpoint.memory());
    assert_eq!(endpoint.counters().over_window, 0, "the sender keeps to the advertised window");
    assert_eq!(world.ends[1].ended, None, "it is waited for");
    world.ends[0].reads = true;
    world.finish_within(Duration::from_secs(10));
}

#[test]
fn the_end_of_a_short_stream_is_known_within_a_round_trip() {
    let mut world = world("delay 50ms", "delay 50ms", [100, 0], with(|_| {}));
    world.finish_within(Duration::from_millis(400));
    let done = world.run_while(Duration::from_millis(110), |world| {
        world.info(0).is_some_and(|info| info.unacknowledged.0 > 0)
    });
    assert!(done);
}

#[test]
fn connections_beyond_the_limits_are_refused() {
    let limits = Limits { connections_per_peer: 2, backlog: 2, ..Limits::default() };
    let mut server = App::new("10.0.0.2:2000", 2, 0, limits);
    server.endpoint.listen(Some(Config::default()));
    let mut client = App::new("10.0.0.1:1000", 1, 0, Limits::default());
    let ids = [(); 4]
        .map(|()| client.endpoint.connect(Instant::ZERO, server.at, Config::default()).unwrap());
    let mut now = Instant::ZERO;
    for _ in 0..20 {
        let mut datagram = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut client, &mut server];
            while ends[from].endpoint.poll_transmit(now, &mut datagram).is_some() {
                let at = ends[from].at;
                ends[to].endpoint.handle_datagram(now, at, &datagram);
                datagram.clear();
            }
        }
        now += Duration::from_millis(1);
    }
    let refused = ids
        .iter()
        .filter(|id| client.endpoint.finish(now, **id) == Err(ConnectionError::Refused.into()));
    assert_eq!(refused.count(), 2);
    assert_eq!((server.endpoint.counters().too_many, server.endpoint.connections()), (2, 2));
}
