//! The example test cases of draft-ietf-ccwg-bbr for special paths, each under its heading.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use super::rig::{Look, SMSS};
use super::{bulk_into, changed, error, mbit, secs, stay, utilisation};

const BACK: &str = "delay 20ms";
/// ACKs arrive in batches of 30 ms, three quarters of the round-trip time.
const BUNCHED: &str = "delay 20ms aggregate 30ms";

/// Achieving Expected STARTUP Bandwidth on a Link With Aggregation.
#[test]
fn achieving_expected_startup_bandwidth_on_a_link_with_aggregation() {
    let (rig, _) = bulk_into("rate 10mbit delay 20ms limit 200", BUNCHED, "drain");
    let end = rig.look();
    assert!(end.model.extra_acked >= ByteCount(30_000), "{:?}", end.model);
    assert!(end.cwnd > end.bdp() * 2, "{} with {}", end.cwnd, end.bdp());
    assert!(error(end.model.max_bw, mbit(10)) > -0.02, "{:?}", end.model);
    // "Compression and Aggregation": samples can be too high. In a round trip of 40 ms the link
    // delivers what it carries in that time, plus at most a batch of 30 ms.
    for look in rig.log() {
        let rate = look.rate.map_or(Rate::ZERO, |(rate, _)| rate);
        assert!(error(rate, mbit(10)) < 30.0 / 40.0, "{look:?}");
    }
}

/// Achieving Expected Cruise Bandwidth on a Link With Aggregation.
#[test]
fn achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    let (mut rig, at) = bulk_into("rate 10mbit delay 20ms limit 200", BUNCHED, "probe-bw-cruise");
    rig.run_into("probe-bw-refill");
    let (_, cruise, _) = stay(&rig, "probe-bw-cruise", at);
    // The window has room for the estimated batch.
    for look in cruise {
        let bunch = look.model.extra_acked;
        assert!(bunch >= ByteCount(30_000) && bunch <= ByteCount(60_000), "{look:?}");
        assert!(look.cwnd >= look.bdp() * 2 || look.model.inflight_longterm.is_some());
    }
    assert!(utilisation(cruise, mbit(10)) > 0.97, "{}", utilisation(cruise, mbit(10)));
}

/// Correctly Managing Sub-Packet BDPs.
#[test]
fn correctly_managing_sub_packet_bdps() {
    // 1 Mbit/s times 2 ms are 250 bytes.
    let link = Rate::from_bits_per_sec(1_000_000);
    let (mut rig, _) = bulk_into("rate 1mbit delay 1ms limit 100", "delay 1ms", "probe-bw-cruise");
    rig.run_for(secs(10));
    let log = rig.since(Instant::from_millis(3_000));
    assert!(log.iter().all(|look| look.cwnd >= SMSS * 4));
    let floor = log.iter().map(|look| look.cwnd).min();
    assert_eq!(floor, Some(SMSS * 4), "in ProbeRTT the floor is the window");
    for look in log {
        assert!(error(look.model.bw, link).abs() < 0.05, "{look:?}");
    }
    assert!(utilisation(log, link) > 0.98, "{}", utilisation(log, link));
}

/// Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached.
#[test]
fn increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() {
    // The queue is small, so that there is a long-term bound to raise.
    let path = "rate 10mbit delay 20ms limit 12";
    let (_, at) = bulk_into(path, BACK, "probe-bw-up");
    let change = at + secs(1);
    let (mut rig, _) = bulk_into(&changed(path, change, "rate 100mbit"), BACK, "probe-bw-up");
    rig.run_for(secs(20));
    assert!(rig.since(at)[0].model.inflight_longterm.is_some());
    // The steps double from round to round: their sum is 1, 3, 7 ... segments, or one round ahead
    // of that. Later the pacing rate is the limit, which grows by a quarter per round.
    let ups = probes(rig.since(change));
    let longest = ups.iter().max_by_key(|steps| steps.len()).expect("a probe");
    assert!(longest.len() >= 4, "{ups:?}");
    let mut sum = 0;
    for (round, step) in (1..=4).zip(longest) {
        sum += step / SMSS.0;
        assert!(((1 << round) - 1..=2 << round).contains(&sum), "{longest:?}");
    }
    // This takes O(log(BDP)) rounds: 300 more segments by doubling steps, ten times the rate by
    // quarters, and three rounds for the probe's start and its feedback.
    let log = rig.since(change);
    let probe = log.iter().find(|look| look.is("probe-bw-up")).expect("a probe");
    let found = log.iter().find(|look| error(look.model.max_bw, mbit(100)) > -0.05);
    let rounds = found.expect("the bandwidth").model.round_count - probe.model.round_count;
    let most = 300_f64.log2() + 10_f64.log(1.25) + 3.0;
    assert!(rounds as f64 <= most, "{rounds} rounds, {most} at most");
}

/// For each ProbeBW_UP, the growth of the long-term bound in each round before the last.
fn probes(log: &[Look]) -> Vec<Vec<u64>> {
    let mut probes: Vec<Vec<u64>> = Vec::new();
    let mut before: Option<(&Look, ByteCount)> = None;
    for look in log {
        let bound = look.model.inflight_longterm.filter(|_| look.is("probe-bw-up"));
        let Some(bound) = bound else {
            before = None;
            continue;
        };
        match before {
            None => {
                probes.push(Vec::new());
                before = Some((look, bound));
            }
            Some((first, start)) if first.model.round_count < look.model.round_count => {
                let steps = probes.last_mut().expect("it was begun");
                // The first round's ACKs are for data sent before it.
                if bound > start || !steps.is_empty() {
                    steps.push((bound - start).0);
                }
                before = Some((look, bound));
            }
            Some(_) => {}
        }
    }
    probes
}

/// Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down.
#[test]
fn decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() {
    let path = "rate 100mbit delay 20ms limit 333";
    let (_, at) = bulk_into(path, BACK, "probe-bw-cruise");
    let (mut rig, _) = bulk_into(&changed(path, at, "rate 10mbit"), BACK, "probe-bw-cruise");
    rig.run_for(secs(20));
    // The first losses lower the short-term bound by 30 % per round.
    let log = rig.since(at);
    let lowered = log.iter().find(|look| look.model.bw_shortterm.is_some()).expect("a bound");
    assert!(lowered.at.since(at) < secs(1), "{:?}", lowered.at.since(at));
    let low = |look: &&Look| look.model.bw_shortterm.is_some_and(|bw| bw <= mbit(100).scale(0.35));
    assert!(log.iter().any(|look| low(&look)), "it adapts in a few rounds");
    // Two cycles later the old bandwidth is forgotten.
    let adapted = log.iter().find(|look| error(look.model.max_bw, mbit(10)).abs() < 0.02);
    let took = adapted.expect("the new bandwidth").at.since(at);
    assert!(took < secs(10), "{took:?}");
    let rest = rig.since(at + secs(12));
    assert!(utilisation(rest, mbit(10)) > 0.93, "{}", utilisation(rest, mbit(10)));
}

/// Handling Token Bucket Policers.
#[test]
fn handling_token_bucket_policers() {
    let path = "police rate 10mbit burst 312500b rate 100mbit delay 20ms limit 333";
    let (mut rig, at) = bulk_into(path, BACK, "probe-bw-cruise");
    rig.run_for(secs(60));
    let reacts = |look: &&Look| look.model.inflight_shortterm.is_some();
    let reaction = rig.since(at).iter().find(reacts).expect("a bound");
    assert!(reaction.model.bw_shortterm.is_some());
    // Later, few packets are lost and the tokens are used. `airtcp compare` over this link with 16
    // seeds of 35 s loses 7.6 ± 0.2 %, also with the draft's pacing in ProbeRTT.
    let late = rig.since(at + secs(10));
    let (first, last) = (&late[0].stats, &late[late.len() - 1].stats);
    let lost = (last.segments_lost - first.segments_lost) as f64
        / (last.segments_sent - first.segments_sent) as f64;
    let used = utilisation(late, mbit(10));
    assert!(lost < 0.08 && used > 0.8, "lost {lost}, used {used}");
}

/// Handling Loss During PROBE_UP After inflight_longterm is Set.
#[test]
fn handling_loss_during_probe_up_after_inflight_longterm_is_set() {
    let path = "rate 10mbit delay 20ms limit 12";
    let (_, at) = bulk_into(path, BACK, "probe-bw-up");
    // The loss starts before a plateau can be found.
    let loss = at + Duration::from_millis(20);
    let (mut rig, _) = bulk_into(&changed(path, loss, "loss 20%"), BACK, "probe-bw-up");
    rig.run_into("probe-bw-down");
    let (_, up, next) = stay(&rig, "probe-bw-up", at);
    let next = next.expect("a state after it");
    let before = up[up.len() - 1].model.inflight_longterm.expect("a bound");
    let after = next.model.inflight_longterm.expect("a bound");
    assert!(next.is("probe-bw-down") && next.stats.segments_lost > up[0].stats.segments_lost);
    assert!(next.model.round_count < up[0].model.round_count + 3, "no plateau ended it");
    // The bound is at least 70 % of the target.
    let target = next.bdp().min(up[up.len() - 1].cwnd);
    assert!(after < before && after >= target.scale(0.7) - SMSS, "{after} after {before}");
}
