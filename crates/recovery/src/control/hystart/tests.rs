use airtcp_types::ByteCount;

use super::*;
use crate::control::{CongestionControl, ControlParams, Reno};
use crate::testkit::{SMSS, ack_view, ms};

const ENOUGH: u8 = N_RTT_SAMPLE;

/// Processes the ACKs of one round, all with one RTT; returns whether slow start is over.
fn round(hystart: &mut HyStart, samples: u8, rtt: Duration) -> bool {
    let acks = (0..samples).map(|number| AckView {
        round_start: number == 0,
        rtt: Some(rtt),
        ..ack_view(ms(0), ByteCount(SMSS))
    });
    let over: Vec<bool> = acks.map(|ack| hystart.on_ack(&ack)).collect();
    over.contains(&true)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns whether the step from one round's RTT to the next starts conservative slow start.
fn begins(before: Duration, after: Duration) -> bool {
    let mut hystart = HyStart::default();
    round(&mut hystart, ENOUGH, before);
    assert!(!hystart.is_conservative());
    round(&mut hystart, ENOUGH, after);
    hystart.is_conservative()
}

#[test]
fn a_round_trip_has_to_grow_by_an_eighth_between_4_and_16_ms() {
    // RFC 9406 section 4.2: RttThresh.
    let us = Duration::from_micros;
    for (before, threshold) in
        [(10_000, 4_000), (32_000, 4_000), (80_000, 10_000), (600_000, 16_000)]
    {
        assert!(!begins(us(before), us(before + threshold - 1)), "{before} us");
        assert!(begins(us(before), us(before + threshold)), "{before} us");
    }
}

#[test]
fn fewer_than_eight_samples_say_nothing() {
    let mut hystart = HyStart::default();
    round(&mut hystart, ENOUGH, millis(40));
    round(&mut hystart, ENOUGH - 1, millis(400));
    assert!(!hystart.is_conservative());
    // The first samples of a round may be late; the smallest counts.
    let mut late = HyStart::default();
    round(&mut late, ENOUGH, millis(40));
    round(&mut late, ENOUGH - 1, millis(400));
    let timely = AckView { rtt: Some(millis(40)), ..ack_view(ms(0), ByteCount(SMSS)) };
    assert!(!late.on_ack(&timely) && !late.is_conservative());
}

#[test]
fn five_conservative_rounds_end_slow_start_the_first_one_counted() {
    let mut hystart = HyStart::default();
    round(&mut hystart, ENOUGH, millis(40));
    assert!(!round(&mut hystart, ENOUGH, millis(50)));
    for number in 1..CSS_ROUNDS {
        assert!(!round(&mut hystart, ENOUGH, millis(50)), "round {number}");
    }
    assert!(round(&mut hystart, 1, millis(50)));
}

#[test]
fn slow_start_is_resumed_where_it_was_jitter() {
    let mut hystart = HyStart::default();
    round(&mut hystart, ENOUGH, millis(40));
    round(&mut hystart, ENOUGH, millis(50));
    assert!(hystart.is_conservative());
    round(&mut hystart, ENOUGH, millis(49));
    assert!(!hystart.is_conservative());
    // The rounds are counted from the start again at the next growth.
    round(&mut hystart, ENOUGH, millis(60));
    assert!(hystart.is_conservative());
    for _ in 1..CSS_ROUNDS {
        assert!(!round(&mut hystart, ENOUGH, millis(60)));
    }
    assert!(round(&mut hystart, 1, millis(60)));
}

#[test]
fn a_window_grows_by_a_quarter_then_ends_slow_start_where_it_is() {
    let smss = ByteCount(SMSS);
    let params = ControlParams {
        byte_counting_limit: 8,
        hystart: true,
        ..ControlParams::new(smss, smss * 10)
    };
    let rounds_until_the_end = |params: &ControlParams| {
        let mut reno = Reno::new(params);
        let mut modes = Vec::new();
        for (number, rtt) in [40, 50, 50, 50, 50, 50, 50].into_iter().enumerate() {
            for ack in 0..u64::from(ENOUGH) {
                let before = reno.window();
                let mode = reno.state().mode;
                let view = AckView {
                    round_start: ack == 0 && number > 0,
                    rtt: Some(millis(rtt)),
                    ..ack_view(ms(0), smss * 2)
                };
                reno.on_ack(&view);
                modes.push((mode, reno.state().mode, reno.window() - before));
            }
        }
        (modes, reno)
    };
    let (steps, reno) = rounds_until_the_end(&params);
    for (before, after, step) in &steps {
        let expected = match (*before, *after) {
            ("slow-start", "slow-start") => smss * 2,
            (_, "conservative-slow-start") => smss.half(),
            _ => continue,
        };
        assert_eq!(*step, expected, "{before}, {after}");
    }
    // The eighth ACK of the second round decides; in the seventh round slow start is over.
    let conservative = steps.iter().filter(|step| step.1 == "conservative-slow-start").count();
    assert_eq!(conservative, 1 + 4 * usize::from(ENOUGH));
    assert_eq!(reno.state().mode, "congestion-avoidance");
    let grown = smss * 10 + smss * 2 * 15 + smss.half() * 33;
    assert_eq!(reno.state().ssthresh, Some(grown));

    // A loss ends it at once; without HyStart++, only a loss does.
    let (_, without) = rounds_until_the_end(&ControlParams { hystart: false, ..params });
    assert_eq!((without.state().ssthresh, without.state().mode), (None, "slow-start"));
}
