//! What holds for every link and every list of packets.

use proptest::prelude::*;

use super::*;

const SPECS: &[&str] = &[
    "",
    "rate 1mbit limit 5",
    "rate 1mbit half 1ms delay 5ms 4ms loss 10% duplicate 10%",
    "rate 10mbit codel target 1ms interval 5ms delay 1ms",
    "rate 10mbit red min 1 max 3 probability 50%",
    "rate 1mbit mark 2 limit 4 3kb",
    "delay 10ms 9ms distribution pareto delayed 20% 5ms 2ms paths 0ms 3ms",
    "loss gemodel 10% 20% burst 5% 3 drop every 7 duty 20ms 5ms down 30ms 10ms every 50ms",
    "biterror 1e-3 corrupt 50% header 50% run 3 bits 40 duplicate 50%",
];

#[derive(Clone, Debug)]
enum Op {
    Send { port: u16, size: usize },
    Wait { micros: u64 },
    TakeOne,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0u16..3, 0usize..3_000).prop_map(|(port, size)| Op::Send { port, size }),
        2 => (0u64..20_000).prop_map(|micros| Op::Wait { micros }),
        2 => Just(Op::TakeOne),
    ]
}

fn assert_conserved(link: &Link) {
    for way in Way::BOTH {
        let c = link.counters(way);
        let gone = c.forwarded + c.queue_dropped + c.channel_lost + c.disconnected + c.overflowed;
        assert_eq!(c.received + c.duplicated, gone + link.held(way) as u64);
        assert!(c.corrupted_unnoticed <= c.corrupted && c.corrupted_header <= c.corrupted);
    }
}

proptest! {
    #[test]
    fn packets_are_conserved(
        there in prop::sample::select(SPECS),
        back in prop::sample::select(SPECS),
        ops in prop::collection::vec(op(), 0..200),
    ) {
        let mut link = Link::new(&there.parse().unwrap(), &back.parse().unwrap()).unwrap();
        let (mut now, mut nowhere) = (Instant::ZERO, 0);
        let mut out = 0;
        for op in ops {
            match op {
                Op::Send { port, size } => {
                    nowhere += u64::from(port > 1);
                    link.handle_packet(now, PortId(port), Packet::new(vec![0x45; size]));
                }
                Op::Wait { micros } => {
                    now += std::time::Duration::from_micros(micros);
                    link.handle_timeout(now);
                    prop_assert!(link.poll_event().is_none());
                }
                Op::TakeOne => out += u64::from(link.poll_transmit(now).is_some()),
            }
            assert_conserved(&link);
        }
        // What is left comes out by its deadlines alone, and then there is none.
        while let Some(at) = link.poll_timeout() {
            now = now.max(at);
            link.handle_timeout(now);
            while link.poll_transmit(now).is_some() {
                out += 1;
            }
        }
        assert_conserved(&link);
        prop_assert_eq!(Way::BOTH.map(|way| link.held(way)), [0, 0]);
        prop_assert_eq!(out, Way::BOTH.map(|way| link.counters(way).forwarded).iter().sum::<u64>());
        prop_assert_eq!(link.unknown_port(), nowhere);
    }

    #[test]
    fn a_seed_gives_one_result(spec in prop::sample::select(SPECS), seed: u64) {
        let spec = format!("{spec} seed {seed}");
        let run = || {
            let mut link = link(&spec);
            (send(&mut link, stream(300)), forth(&link))
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn a_cause_does_not_shift_another() {
    let alone = lost("loss 5% seed 9", 20_000);
    let more = "rate 50mbit limit 100000 delay 5ms 1ms distribution normal delayed 3% 5ms 1ms \
                duplicate 3% red min 90000 max 99999 probability 1%";
    assert_eq!(lost(&format!("loss 5% seed 9 {more}"), 20_000), alone);
    // Where bits are flipped numbers are not to be trusted, but times are: one packet each microsecond.
    let spoilt = send(&mut link("loss 5% seed 9 biterror 1e-4 corrupt 10% run 2"), stream(20_000));
    let arrived = alone.iter().enumerate().filter(|(_, lost)| !**lost);
    let times = spoilt.iter().map(|(at, _)| at.as_nanos() / 1_000);
    assert!(times.eq(arrived.map(|(number, _)| number as u64)));
    let both = lost("loss 5% seed 9 burst 1% 4", 20_000);
    let burst = lost("burst 1% 4 seed 9", 20_000);
    let either = alone.iter().zip(&burst).map(|(one, other)| one | other);
    assert!(either.eq(both));
    assert_ne!(lost("loss 5% seed 10", 20_000), alone);
}

#[test]
fn directions_draw_apart() {
    let mut link = link("loss 50% seed 1");
    let mut arrived = [Vec::new(), Vec::new()];
    for number in 0..200 {
        for port in [0, 1] {
            link.handle_packet(Instant::ZERO, PortId(port), numbered(number, 100));
        }
        while let Some((port, packet)) = link.poll_transmit(Instant::ZERO) {
            arrived[usize::from(port.0)].push(number_of(&packet));
        }
    }
    assert_ne!(arrived[0], arrived[1]);
}
