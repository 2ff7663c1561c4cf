//! `bbr3` keeps sending on paths that change, and with late timers or late ACKs.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use super::rig::{Rig, SMSS};
use super::{mbit, secs, utilisation};

fn bulk(link: &str, back: &str) -> Rig {
    let mut rig = Rig::over(link, back);
    rig.bulk();
    rig
}

/// 100 and 10 Mbit/s alternate every five seconds, with a queue of one BDP of the fast link.
#[test]
fn bandwidth_that_changes_tenfold_every_five_seconds() {
    let path = "rate 100mbit delay 10ms limit 167 at 5s rate 10mbit at 10s rate 100mbit \
                at 15s rate 10mbit at 20s rate 100mbit at 25s rate 10mbit";
    let mut rig = bulk(path, "delay 10ms");
    rig.run_for(secs(30));
    for (period, link) in (0..6).zip([mbit(100), mbit(10)].into_iter().cycle()) {
        let begin = Instant::from_millis(period * 5_000);
        let end = begin + secs(5);
        let log = rig.since(begin);
        let log = &log[..log.partition_point(|look| look.at < end)];
        let silence = log.windows(2).map(|two| two[1].at.since(two[0].at)).max();
        assert!(silence < Some(secs(1)), "{period}: {silence:?}");
        if link == mbit(100) {
            // The next probe is at most three seconds away, and 21 rounds find the rate: see the
            // draft's test of an increase. `max_bw` may still be that of the last fast period, so
            // judge what is sent. ProbeRTT takes at most 5 % of two seconds, the pacing margin 1 %.
            let last = &log[log.partition_point(|look| look.at < begin + secs(3))..];
            let used = utilisation(last, link);
            assert!(used > 0.94, "{period}: {used}");
        } else {
            // Data sent too fast is lost, but the link does not become idle. The pacing margin is 1
            // %, and ProbeRTT takes at most 2 %.
            let used = utilisation(log, link);
            assert!(used > 0.97, "{period}: {used}");
        }
    }
}

/// The BDP of 64 kbit/s and 2 ms is 16 bytes.
#[test]
fn a_bdp_of_less_than_a_packet() {
    let link = Rate::from_bits_per_sec(64_000);
    let mut rig = bulk("rate 64kbit delay 1ms limit 10", "delay 1ms");
    rig.run_for(secs(60));
    let log = rig.since(Instant::from_millis(10_000));
    assert!(log.iter().all(|look| look.cwnd >= SMSS * 4), "MinPipeCwnd");
    // Four segments are in flight or one waits for a delayed ACK: the link is never idle.
    assert!(utilisation(log, link) > 0.97, "{}", utilisation(log, link));
}

/// ACKs that arrive in batches of half a round-trip time do not stall the flow.
#[test]
fn bunches_of_acks_do_not_stall_it() {
    let link = mbit(100);
    let mut rig = bulk("rate 100mbit delay 10ms limit 167", "delay 10ms aggregate 10ms");
    rig.run_for(secs(20));
    let log = rig.since(Instant::from_millis(4_000));
    assert!(utilisation(log, link) > 0.97, "{}", utilisation(log, link));
}

/// However late a timer is, a burst is at most two milliseconds of the rate and a quantum.
#[test]
fn a_late_timer_makes_a_burst_of_two_milliseconds_at_most() {
    let mut rig = Rig::over("rate 100mbit delay 10ms limit 167", "delay 10ms");
    rig.wake_late(Duration::from_millis(6));
    rig.bulk();
    rig.run_for(secs(4));
    let (mut bursts, mut most) = (0, ByteCount::ZERO);
    for _ in 0..10 {
        rig.run_into("probe-bw-cruise");
        // Wait until the queue of the previous probe is gone.
        rig.run_for(Duration::from_millis(100));
        while rig.look().is("probe-bw-cruise") {
            rig.run_for(Duration::from_millis(1));
            bursts += 1;
            most = most.max(rig.queued(0));
        }
    }
    assert!(bursts > 1_000, "{bursts}");
    let bound = mbit(100).bytes_in(Duration::from_millis(2)) + rig.look().quantum();
    assert!(most > SMSS * 2 && most <= bound, "{most} and {bound}");
}

/// The sender catches up on two milliseconds.
#[test]
fn timers_that_run_two_milliseconds_late_cost_no_bandwidth() {
    let link = mbit(100);
    let mut rig = Rig::over("rate 100mbit delay 10ms limit 167", "delay 10ms");
    rig.wake_late(Duration::from_millis(2));
    rig.bulk();
    rig.run_for(secs(20));
    let log = rig.since(Instant::from_millis(4_000));
    assert!(utilisation(log, link) > 0.97, "{}", utilisation(log, link));
}
