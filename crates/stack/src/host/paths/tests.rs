use airtcp_types::ByteCount;

use super::super::secret::Secret;
use super::*;

const SRTT: Duration = Duration::from_millis(100);

fn paths() -> Paths {
    Paths::new(Secret::new([1; 16]).keyed())
}

fn peer(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    [10, 0, high, low].into()
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn rtt(min: u64) -> LearnedRtt {
    LearnedRtt { srtt: SRTT, rttvar: SRTT / 2, min: Duration::from_millis(min) }
}

/// A report of `delivered` bytes in total, with a minimum round-trip time of `min` milliseconds.
fn news(delivered: u64, is_busy: bool, min: u64) -> PathNews {
    let learned = Learned { rtt: Some(rtt(min)), ..Learned::default() };
    PathNews { delivered: ByteCount(delivered), is_busy, learned }
}

/// Delivers 100 kB on one connection in each of two round trips, starting at `start`.
fn transfer(paths: &mut Paths, start: u64) -> Reported {
    let mut reported = Reported::default();
    paths.begin(at(start), peer(1), &mut reported);
    for round in 1..=2 {
        paths.learn(
            at(start + 100 * round),
            peer(1),
            &mut reported,
            &news(100_000 * round, true, 90),
        );
    }
    reported
}

fn rate(paths: &Paths, now: u64) -> Option<u64> {
    paths.get(at(now), peer(1)).rate.map(|rate| rate.bits_per_sec())
}

#[test]
fn the_rate_of_all_connections_is_divided_among_those_with_data_in_flight() {
    let mut paths = paths();
    assert_eq!(paths.get(at(0), peer(1)), Learned::default());
    let mut one = transfer(&mut paths, 0);
    assert_eq!(rate(&paths, 200), Some(4_000_000), "one is busy, and this one would be the second");
    let mut other = Reported::default();
    paths.begin(at(200), peer(1), &mut other);
    assert_eq!(rate(&paths, 200), Some(8_000_000 / 3));
    // Together they deliver more.
    paths.learn(at(250), peer(1), &mut one, &news(270_000, true, 90));
    paths.learn(at(300), peer(1), &mut other, &news(130_000, true, 90));
    assert_eq!(rate(&paths, 300), Some(16_000_000 / 3));
    for reported in [&mut one, &mut other] {
        let delivered = reported.delivered.0;
        paths.learn(at(310), peer(1), reported, &news(delivered, false, 90));
    }
    assert_eq!(rate(&paths, 310), Some(16_000_000));
    assert_eq!(paths.get(at(310), peer(2)), Learned::default(), "another peer");
}

#[test]
fn the_rate_loses_weight_and_everything_is_forgotten_after_a_minute() {
    let mut paths = paths();
    let mut reported = transfer(&mut paths, 0);
    paths.learn(at(200), peer(1), &mut reported, &news(200_000, false, 90));
    for (now, left) in [(30_199, 8_000_000), (30_200, 4_000_000), (60_200, 2_000_000)] {
        assert_eq!(rate(&paths, now), Some(left), "at {now} ms");
    }
    assert_eq!(paths.get(at(60_200), peer(1)).rtt, Some(rtt(90)));
    assert_eq!(paths.get(at(60_201), peer(1)), Learned::default());
}

#[test]
fn the_smallest_round_trip_time_lasts_for_a_minute() {
    let mut paths = paths();
    let mut reported = Reported::default();
    let mut see = |now, delivered, min| {
        paths.learn(at(now), peer(1), &mut reported, &news(delivered, true, min));
        paths.get(at(now), peer(1)).rtt
    };
    assert_eq!(see(0, 1, 50), Some(rtt(50)));
    assert_eq!(see(30_000, 2, 80), Some(rtt(50)));
    assert_eq!(see(60_000, 3, 80), Some(rtt(50)));
    assert_eq!(see(60_001, 4, 80), Some(rtt(80)));
}

#[test]
fn random_losses_without_new_reports_or_proved_wrong_are_forgotten() {
    let mut paths = paths();
    let mut reported = Reported::default();
    let counted = RandomLosses { sent: 500.0, lost: 10.0, ..RandomLosses::NONE };
    let mut see = |now, losses| {
        let learned = Learned { losses, ..Learned::default() };
        let news = PathNews { delivered: ByteCount(now), is_busy: true, learned };
        paths.learn(at(now), peer(1), &mut reported, &news);
        paths.get(at(now), peer(1)).losses
    };
    assert_eq!(see(1, Some(counted)), Some(counted));
    assert_eq!(see(60_001, None), Some(counted), "a connection that knows nothing");
    assert_eq!(see(60_002, None), None);
    assert_eq!(see(60_003, Some(counted)), Some(counted));
    assert_eq!(see(60_004, Some(RandomLosses::NONE)), None);
}

#[test]
fn the_oldest_makes_room() {
    let mut paths = paths();
    let most = MOST as u16;
    for number in 0..most + 10 {
        paths.learn(at(0), peer(number), &mut Reported::default(), &news(1, false, 90));
    }
    assert_eq!((paths.known.len(), paths.order.len()), (MOST, MOST));
    let knows = |number| paths.get(at(0), peer(number)).rtt.is_some();
    assert_eq!((knows(9), knows(10), knows(most + 9)), (false, true, true));
}

#[test]
fn a_closed_connection_no_longer_shares_the_rate() {
    let mut paths = paths();
    let reported = transfer(&mut paths, 0);
    assert_eq!(rate(&paths, 200), Some(4_000_000));
    paths.end(peer(1), &reported);
    assert_eq!(rate(&paths, 200), Some(8_000_000));
    paths.end(peer(2), &reported);
}
