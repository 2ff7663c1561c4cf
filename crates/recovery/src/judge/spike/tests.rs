use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use super::baseline::Baseline;
use super::capacity::Capacity;
use super::departures::Group;
use super::jitter::Jitter;
use super::{LossJudge, Spike};
use crate::learned::RandomLosses;
use crate::testkit::{Bottleneck, Net, RTT, SMSS, index, ms, sender};

/// Returns a baseline of `blocks` groups of 32 transmissions, with `lost` losses in every
/// `every`-th.
fn baseline(blocks: u32, lost: u32, every: u32) -> Baseline {
    let mut baseline = Baseline::default();
    for block in 0..blocks {
        let lost = if block % every == 0 { lost } else { 0 };
        baseline.add(&Group::of(32, lost, ByteCount(10 * SMSS)));
    }
    baseline
}

#[test]
fn a_share_is_known_from_eight_independent_losses_on() {
    assert_eq!(baseline(7, 1, 1).share(), None);
    assert_eq!(baseline(8, 1, 1).share(), Some(1.0 / 32.0));
    // Bursts of four count as a fourth as many independent losses.
    assert_eq!(baseline(70, 4, 10).share(), None);
    assert_eq!(baseline(100, 4, 10).share(), Some(40.0 / 3200.0));
    assert_eq!(baseline(100, 0, 1).share(), None);
}

#[test]
fn a_low_load_is_requested_for_losses_that_it_may_classify() {
    let wants = |baseline: Baseline, losses| {
        let mut spike = Spike { baseline, ..Spike::default() };
        (0..losses).for_each(|_| {
            spike.spend(false);
        });
        spike.request_low_load(ms(1), RTT);
        spike.wants_low_load()
    };
    assert!(!wants(baseline(0, 0, 1), 0));
    assert!(wants(baseline(0, 0, 1), 1));
    // No loss in 256 transmissions.
    assert!(wants(baseline(7, 0, 1), 1));
    assert!(!wants(baseline(8, 0, 1), 1));
    // One loss in 384 transmissions, and in 512.
    assert!(wants(baseline(12, 1, 12), 1));
    assert!(!wants(baseline(16, 1, 16), 1));
    // Up to 16 independent losses.
    assert!(wants(baseline(15, 1, 1), 1));
    assert!(!wants(baseline(16, 1, 1), 1));
    // Not while losses are ruled random.
    let mut spike = Spike { baseline: baseline(15, 1, 1), ..Spike::default() };
    spike.earn(1_000, false);
    assert!(spike.spend(false));
    spike.request_low_load(ms(1), RTT);
    assert!(!spike.wants_low_load());
}

#[test]
fn a_low_load_is_requested_for_a_quarter_of_the_time_at_most() {
    let mut spike = Spike::default();
    let mut asked = 0;
    for second in 0..160 {
        // Losses without a queue, and no group at a low load.
        spike.spend(false);
        spike.baseline.age(ms(second * 1_000));
        spike.request_low_load(ms(second * 1_000), RTT);
        asked += u32::from(spike.wants_low_load());
    }
    assert!((40..=44).contains(&asked), "{asked}");
}

#[test]
fn observations_expire_without_a_low_load() {
    let mut spike = Spike::default();
    spike.spend(false);
    for (at, asks) in [(100_000, true), (130_001, false)] {
        spike.baseline.age(ms(at));
        spike.request_low_load(ms(at), RTT);
        assert_eq!(spike.wants_low_load(), asks, "after {at} ms");
    }
}

#[test]
fn a_baseline_forgets() {
    let mut old = baseline(300, 1, 1);
    assert_eq!(old.share(), Some(1.0 / 32.0));
    // Eight minutes without a loss are sixteen half-lives of 30 s.
    for minute in 1..=16 {
        old.add(&Group::of(32, 0, ByteCount(SMSS)));
        old.age(ms(minute * 31_000));
    }
    assert_eq!(old.share(), None);
}

#[test]
fn a_baseline_of_loads_that_the_path_no_longer_holds_is_dropped() {
    let mut known = baseline(20, 1, 1);
    known.keep_below(ByteCount(10 * SMSS));
    assert!(known.share().is_some());
    known.keep_below(ByteCount(10 * SMSS - 1));
    assert_eq!(known.share(), None);
}

#[test]
fn the_capacity_is_the_largest_rate_of_one_to_two_halves_of_the_window() {
    let mut capacity = Capacity::default();
    let rate = Rate::from_bits_per_sec;
    let mut see = |at, bits| {
        capacity.on_sample(ms(at), rate(bits), Duration::from_millis(100));
        capacity.get()
    };
    // A half is 3.2 s.
    assert_eq!(see(0, 10), rate(10));
    assert_eq!(see(100, 50), rate(50));
    assert_eq!(see(3_300, 20), rate(50));
    assert_eq!(see(6_400, 30), rate(50));
    assert_eq!(see(6_600, 10), rate(30));
    assert_eq!(see(10_000, 10), rate(10));
}

#[test]
fn a_queue_that_was_seen_vouches_for_its_delivery_rate_and_for_five_seconds() {
    let rate = Rate::from_bits_per_sec;
    let shows_at = |now, latest, most, seen: Option<(Instant, Rate)>| {
        let mut spike = Spike { rate: rate(latest), queue_seen: seen, ..Spike::default() };
        spike.capacity.on_sample(now, rate(most), Duration::from_millis(20));
        spike.shows_queues(now)
    };
    let shows = |now, latest, seen| shows_at(now, latest, latest, seen);
    let seen = Some((ms(1_000), rate(100)));
    assert!(!shows(ms(2_000), 100, None));
    assert!(shows(ms(2_000), 100, seen));
    // A policer reduces the rate.
    assert!(shows(ms(2_000), 90, seen));
    assert!(!shows(ms(2_000), 89, seen));
    assert!(!shows_at(ms(2_000), 89, 100, seen));
    assert!(!shows_at(ms(2_000), 100, 89, seen));
    assert!(shows(ms(6_000), 100, seen));
    assert!(!shows(ms(6_001), 100, seen));
    // One queue alone, or several within a second, are no evidence about the path.
    assert!(!shows(ms(2_000), 100, Some((ms(999), rate(100)))));
}

#[test]
fn queues_are_seen_in_a_series_that_a_pause_ends_and_the_largest_rate_of_it_counts() {
    let rate = Rate::from_bits_per_sec;
    let mut spike = Spike::default();
    let mut see = |at, bits| {
        spike.capacity = Capacity::default();
        spike.capacity.on_sample(ms(at), rate(bits), Duration::from_millis(20));
        spike.see_queue(ms(at));
        (spike.queue_seen.unwrap().1, spike.queues_since)
    };
    assert_eq!(see(1_000, 100), (rate(100), ms(1_000)));
    assert_eq!(see(6_000, 50), (rate(100), ms(1_000)));
    assert_eq!(see(11_001, 50), (rate(50), ms(11_001)));
}

#[test]
fn at_a_high_load_losses_count_while_nothing_waits_half_as_long_as_queues_lasted() {
    let micros = Duration::from_micros;
    let base = Duration::from_millis(20);
    let share = |seen: bool, smallest, largest| {
        let queue_seen = seen.then_some((ms(1_000), Rate::ZERO));
        let mut spike = Spike { queue_seen, ..Spike::default() };
        for _ in 0..20 {
            let full = Group::of(32, 1, ByteCount(100 * SMSS));
            spike.settle(
                full,
                (micros(smallest), micros(largest)),
                (base, micros(1_000)),
                ms(2_000),
            );
        }
        spike.baseline.share()
    };
    // A queueing delay counts as a queue from a quarter of the base RTT, 5 ms.
    assert_eq!(share(true, 20_200, 22_500), Some(1.0 / 32.0));
    assert_eq!(share(true, 20_200, 22_501), None);
    assert_eq!(share(true, 21_500, 22_500), Some(1.0 / 32.0));
    assert_eq!(share(false, 20_200, 20_200), None);
}

#[test]
fn the_jitter_is_the_smaller_of_twice_the_median_delay_and_three_times_a_small_difference() {
    let jitter_of = |groups: &[(u64, u64)]| {
        let mut jitter = Jitter::default();
        for (delay, spread) in groups {
            jitter.add(Duration::from_millis(*delay), Duration::from_millis(*spread));
        }
        jitter.get()
    };
    let eight = [(8, 10), (7, 11), (6, 12), (5, 13), (4, 14), (3, 15), (2, 16), (1, 17)];
    assert_eq!(jitter_of(&eight[..7]), Duration::ZERO);
    assert_eq!(jitter_of(&eight), Duration::from_millis(10));
    let alike = eight.map(|(delay, spread)| (delay, spread - 9));
    assert_eq!(jitter_of(&alike), Duration::from_millis(9));
    // The latest 64 groups count.
    let groups = |delay, count| std::iter::repeat_n((delay, 100), count);
    let old_and_new = |new| jitter_of(&groups(1, 100).chain(groups(5, new)).collect::<Vec<_>>());
    assert_eq!(old_and_new(31), Duration::from_millis(2));
    assert_eq!(old_and_new(32), Duration::from_millis(10));
}

/// Settles groups at a low load whose smallest RTTs exceed the base RTT of 20 ms by `delay`.
fn at_a_low_load(groups: u32, delay: Duration, spread: Duration) -> Spike {
    let base = Duration::from_millis(20);
    let mut spike = Spike::default();
    spike.capacity.on_sample(ms(0), Rate::from_bytes_over(ByteCount(100 * SMSS), base), base);
    for _ in 0..groups {
        let low = Group::of(32, 1, ByteCount(50 * SMSS));
        let idle = spike.idle(ByteCount(SMSS), base);
        spike.settle(low, (base + delay, base + delay + spread), (base, idle), ms(2_000));
    }
    spike
}

#[test]
fn losses_count_at_a_low_load_if_rtts_are_longer_because_of_jitter() {
    let share = |delay, spread| {
        let [delay, spread] = [delay, spread].map(Duration::from_micros);
        at_a_low_load(40, delay, spread).baseline.share()
    };
    // Without jitter, 1 ms for timers and 200 us for each of three packets count as no queue.
    assert_eq!(share(1_600, 0), Some(1.0 / 32.0));
    assert_eq!(share(1_601, 0), None);
    assert_eq!(share(6_000, 2_000), Some(1.0 / 32.0));
    // A queue makes RTTs longer that are close to each other by the same time.
    assert_eq!(share(6_000, 1_999), None);
}

#[test]
fn with_jitter_only_a_longer_delay_is_a_queue_and_the_path_holds_more() {
    let base = Duration::from_millis(20);
    let jittery = |delay| {
        let delay = Duration::from_micros(delay);
        let spike = at_a_low_load(8, delay, delay);
        (spike.queue(base), spike.full(base))
    };
    let quiet = (Duration::from_millis(5), ByteCount(100 * SMSS));
    assert_eq!(jittery(1_250), quiet);
    assert_eq!(jittery(1_251).1, ByteCount(100 * SMSS).scale(22.502 / 20.0));
    assert_eq!(jittery(5_000), (Duration::from_millis(10), ByteCount(150 * SMSS)));
    // The base RTT at most.
    let longest = (Duration::from_millis(20), ByteCount(200 * SMSS));
    assert_eq!(jittery(10_000), longest);
    assert_eq!(jittery(50_000), longest);
}

#[test]
fn every_loss_is_congestion_until_the_baseline_is_known() {
    let mut net = Net::new(sender("rack/cubic/spike"), 6_000, 64);
    net.losses.extend((5_000..6_000).step_by(200).map(|segment| (segment, 0)));
    net.run();
    let stats = net.sender.stats();
    assert_eq!((stats.segments_lost, stats.segments_lost_at_random), (5, 0));
    assert_eq!(stats.reductions, 5);
}

#[test]
fn drops_of_a_queue_are_congestion() {
    // The path holds 50 segments.
    let rate = Rate::from_bytes_over(ByteCount(50 * SMSS), RTT);
    for queue in [1, 2, 5, 12, 25, 50, 200] {
        for combination in ["rack/cubic/spike", "sack/reno/spike", "le/westwood/spike"] {
            let mut net = Net::new(sender(combination), 6_000, 1_000);
            net.bottleneck = Some(Bottleneck::new(rate, ByteCount(queue * SMSS)));
            net.run();
            let stats = net.sender.stats();
            assert!(stats.segments_lost > 0, "{combination} over a queue of {queue}");
            assert_eq!(stats.segments_lost_at_random, 0, "{combination} over a queue of {queue}");
        }
    }
}

/// The segments of a write that keeps the load below half of what the path has carried.
const WRITE: u64 = 24;

/// Writes more data, and runs until it is acknowledged.
fn write(net: &mut Net) {
    net.supply.end = net.supply.end + WRITE * SMSS;
    net.run();
}

/// Returns a flow at a low load; one loss in its second-last write was ruled random.
fn with_open_gate() -> Net {
    // The path carries 64 segments per round trip.
    let mut net = Net::new(sender("rack/fixed:64/spike"), 640, 1_000);
    net.run();
    for write_number in 0..20 {
        // The allowance grows while nothing is lost.
        if write_number < 12 || write_number == 18 {
            net.losses.insert((index(net.supply.end) + WRITE / 2, 0));
        }
        write(&mut net);
    }
    assert_eq!(net.sender.stats().segments_lost_at_random, 1, "the gate is closed");
    net
}

#[test]
fn a_random_loss_that_a_tail_loss_probe_repairs_is_not_congestion() {
    let mut net = with_open_gate();
    let before = *net.sender.stats();
    net.losses.insert((index(net.supply.end) + WRITE - 1, 0));
    write(&mut net);
    // The ACK of later data shows that the first transmission of the tail did not arrive.
    write(&mut net);
    let after = net.sender.stats();
    assert_eq!(after.probes - before.probes, 1);
    assert_eq!(after.segments_retransmitted - before.segments_retransmitted, 1);
    assert_eq!((after.reductions, after.timeouts), (before.reductions, before.timeouts));
}

#[test]
fn a_time_out_leaves_the_gate_open() {
    let mut net = with_open_gate();
    // The tail is lost, and so are its probe and the probe's retransmission.
    let tail = index(net.supply.end) + WRITE - 1;
    net.losses.extend([(tail, 0), (tail, 1), (tail, 2)]);
    write(&mut net);
    let before = *net.sender.stats();
    assert!(before.timeouts > 0);
    write(&mut net);
    net.losses.insert((index(net.supply.end) + WRITE / 2, 0));
    write(&mut net);
    let after = net.sender.stats();
    assert_eq!(after.segments_lost_at_random - before.segments_lost_at_random, 1);
}

#[test]
fn a_loss_that_a_tail_loss_probe_repairs_is_congestion_while_the_gate_is_closed() {
    let mut net = Net::new(sender("rack/fixed:64/spike"), 640, 1_000);
    net.losses.insert((639, 0));
    net.run();
    write(&mut net);
    let stats = net.sender.stats();
    assert_eq!((stats.probes, stats.reductions, stats.timeouts), (1, 1, 0));
}

#[test]
fn more_losses_than_the_baseline_lets_expect_close_the_gate() {
    let mut spike = Spike { baseline: baseline(20, 1, 1), ..Spike::default() };
    // One loss in 32 adds 1.44 in 32 to the allowance.
    spike.earn(130, false);
    assert_eq!(spike.random_share(), 0.0);
    spike.earn(10, false);
    assert_eq!(spike.random_share(), 1.0 / 32.0);
    // A series of losses, ...
    spike.earn(1_000, false);
    (0..11).for_each(|_| assert!(spike.spend(false)));
    assert!(!spike.spend(false));
    assert!(!spike.open);
    // ... or a continuous share of one in 16.
    spike.earn(1_000, false);
    for _ in 0..100 {
        spike.earn(16, false);
        spike.spend(false);
    }
    assert!(!spike.open);
    for _ in 0..100 {
        spike.earn(32, false);
        spike.spend(false);
    }
    assert!(spike.open);
}

#[test]
fn no_share_above_a_fifth_keeps_the_gate_open() {
    for (lost, open) in [(6, true), (7, false), (16, false)] {
        let mut spike = Spike { baseline: baseline(20, lost, 1), ..Spike::default() };
        for _ in 0..1_000 {
            spike.earn(32, false);
            (0..lost).for_each(|_| {
                spike.spend(false);
            });
        }
        assert_eq!(spike.open, open, "{lost} of 32");
    }
}

#[test]
fn losses_with_a_queue_beyond_their_allowance_are_congestion_and_leave_the_gate_open() {
    let mut spike = Spike { baseline: baseline(20, 1, 1), ..Spike::default() };
    assert!(!spike.spend(true), "the gate is closed");
    spike.earn(1_000, false);
    assert!(!spike.spend(true), "transmissions without a queue earn nothing for losses with one");
    spike.earn(1_000, true);
    let ruled = |spike: &mut Spike, losses| (0..losses).filter(|_| spike.spend(true)).count();
    assert_eq!(ruled(&mut spike, 100), 12);
    assert!(spike.open && spike.spend(false));
    // One in 32 adds 1.44 in 32 to the allowance.
    spike.earn(320, true);
    assert_eq!(ruled(&mut spike, 100), 12);
    spike.earn(64, true);
    assert_eq!(ruled(&mut spike, 100), 2);
}

#[test]
fn a_baseline_that_is_handed_on_opens_the_gate_until_it_proves_wrong() {
    let inheriting = |known: Option<RandomLosses>| {
        let mut spike = Spike::default();
        known.iter().for_each(|known| spike.inherit(known));
        spike
    };
    assert_eq!(Spike::default().learned(), None, "it knows nothing");
    let mut first = Spike { baseline: baseline(20, 1, 1), ..Spike::default() };
    first.earn(1_000, false);
    let known = first.learned();
    let mut next = inheriting(known);
    assert_eq!(next.random_share(), 1.0 / 32.0);
    assert_eq!(next.learned(), None, "it has counted nothing itself");
    // Half of the allowance.
    assert_eq!((0..100).take_while(|_| next.spend(false)).count(), 5);
    assert_eq!(next.learned(), Some(RandomLosses::NONE));
    assert!(!inheriting(next.learned()).open);
    // Losses with a queue have no allowance.
    assert!(!inheriting(known).spend(true));
    // A gate that closes because its counts have decayed does not prove them wrong.
    let mut idle = inheriting(known);
    idle.close();
    assert_eq!(idle.learned(), None);
    // Its own counts are exported together with the inherited ones.
    let mut confirms = inheriting(known);
    confirms.baseline.add(&Group::of(32, 1, ByteCount::ZERO));
    let sent = |learned: Option<RandomLosses>| learned.map(|learned| learned.sent);
    assert_eq!(sent(confirms.learned()), sent(known).map(|sent| sent + 32.0));
}

#[test]
fn a_baseline_that_is_handed_on_ages_as_if_it_were_kept() {
    let mut counted = baseline(20, 1, 1);
    for start in [0, 20_000, 40_000, 60_000] {
        let known = counted.counts().expect("counted here");
        let mut next = Baseline::starting_with(&known);
        next.age(ms(start));
        next.age(ms(start + 15_000));
        next.add(&Group::of(32, 0, ByteCount::ZERO));
        counted = next;
    }
    // Halved at 35 s and at 75 s: five losses are left of 20.
    assert_eq!(counted.share(), None);
}
