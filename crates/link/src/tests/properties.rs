//! Properties of any link with any list of packets.

use proptest::prelude::*;

use super::*;
use crate::Trace;
use crate::spec::RateSpec;

/// Parts of descriptions, in groups: a description has at most one part of each group.
const PARTS: &[&[&str]] = &[
    &["rate 1mbit", "rate 10mbit 14", "rate 1gbit", "trace some-file"],
    &["half 0s", "half 1ms"],
    &[
        "police rate 1mbit burst 3kb",
        "police rate 100mbit burst 500b",
        "police rate 1bit burst 64kb",
    ],
    &["limit 1", "limit 5", "limit 4 3kb", "limit 1000 1b"],
    &[
        "codel target 1ms interval 5ms",
        "codel ecn",
        "fq_codel target 1ms interval 5ms",
        "red min 1 max 3 probability 50%",
        "mark 2",
    ],
    &[
        "delay 7ms",
        "delay 10ms 9ms distribution pareto",
        "delay 5ms 4ms inorder",
        "delay 2ms 4ms distribution normal inorder",
    ],
    &["delayed 20% 5ms 2ms"],
    &["paths 0ms 3ms"],
    &[
        "aggregate 3ms",
        "aggregate 5ms packets 4",
        "aggregate 1000s bytes 2kb",
        "aggregate 1us packets 9 bytes 9kb",
    ],
    &["loss 10%", "loss random 100%", "loss gemodel 10% 20% 90% 1%"],
    &["burst 5% 3"],
    &["drop every 7", "drop every 1", "drop 1,3-9"],
    &["duty 20ms 5ms", "duty 0s 5ms"],
    &["duplicate 10%", "duplicate 100%"],
    &["biterror 1e-3", "biterror 0.5"],
    &["corrupt 50% header 50% run 3 bits 40", "corrupt 100% bits 524280"],
    &["down 30ms 10ms every 50ms", "down 0s 1000000s"],
    &["only payload", "only forth", "only back only payload"],
];

/// Changes while packets arrive.
const CHANGES: &[&str] = &[
    "at 0s rate 3mbit",
    "at 20ms rate 10kbit at 50ms rate 1gbit 4",
    "at 30ms delay 0ms at 60ms delay 20ms 5ms",
    "at 10ms loss 30% at 40ms loss gemodel 5% 20% at 90ms loss 0%",
    "at 25ms rate 2mbit delay 1ms 1ms distribution normal inorder loss 100% at 26ms loss 1%",
];

/// Any description: at most one part of each group.
fn any_spec() -> impl Strategy<Value = String> {
    let groups = PARTS.iter().chain([&CHANGES]);
    let choices = groups.map(|group| 0..group.len() * 3).collect::<Vec<_>>();
    (choices, any::<u64>()).prop_map(|(choices, seed)| {
        let part = |(group, choice): (&&[&'static str], usize)| group.get(choice).copied();
        let (changes, parts) = choices.split_last().unwrap();
        let parts: Vec<_> = PARTS.iter().zip(parts.iter().copied()).filter_map(part).collect();
        let changes = part((&CHANGES, *changes)).unwrap_or_default();
        format!("{} seed {seed} {changes}", parts.join(" "))
    })
}

/// A link with these descriptions; if one has a trace, both are full duplex, because a trace cannot
/// share the medium.
fn link_of(there: &str, back: &str) -> Link {
    let [mut there, mut back]: [LinkSpec; 2] = [there, back].map(|spec| spec.parse().unwrap());
    if [&there, &back].iter().any(|spec| matches!(spec.rate, RateSpec::Trace(_))) {
        (there.half, back.half) = (None, None);
    }
    let trace = |_: &str| Ok(Trace::parse("2\n3\n3\n9").unwrap());
    Link::with_traces(&there, &back, trace).unwrap()
}

#[derive(Clone, Debug)]
enum Op {
    Send { port: u16, size: usize },
    Wait { micros: u64 },
    TakeOne,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0u16..3, 0usize..3_000).prop_map(|(port, size)| Op::Send { port, size }),
        1 => (0u16..2).prop_map(|port| Op::Send { port, size: 140 }),
        2 => (0u64..20_000).prop_map(|micros| Op::Wait { micros }),
        2 => Just(Op::TakeOne),
    ]
}

fn dropped_of(c: &Counters) -> u64 {
    c.policed + c.queue_dropped + c.channel_lost + c.disconnected + c.overflowed
}

/// The number of events that the counters imply.
fn fates(c: &Counters) -> u64 {
    dropped_of(c) + c.corrupted + c.marked + c.duplicated
}

/// Time, port and bytes of an arrival.
type Arrival = (u64, u16, Vec<u8>);

/// The arrivals of a link that is called at its deadlines, or only every `step`.
fn run(
    there: &str,
    packets: &[(u64, u16, usize)],
    watched: bool,
    step: Option<u64>,
) -> (Vec<Arrival>, [Counters; 2]) {
    let mut link = link_of(there, there);
    link.set_events(watched);
    let mut out = Vec::new();
    let mut take = |link: &mut Link, now: Instant| {
        while let Some((port, packet)) = link.poll_transmit(now) {
            out.push((now.as_nanos(), port.0, packet.data));
        }
        while link.poll_event().is_some() {}
    };
    let mut now = 0;
    for (number, (gap, port, size)) in packets.iter().enumerate() {
        now += gap * 1_000;
        while let Some(at) = link.poll_timeout().filter(|at| step.is_none() && at.as_nanos() <= now)
        {
            link.handle_timeout(at);
            take(&mut link, at);
        }
        let mut packet = if size % 2 == 0 { ipv4_tcp(*size, 2) } else { numbered(0, *size) };
        let last = packet.data.len() - 1;
        packet.data[last] = number as u8;
        link.handle_packet(Instant::from_nanos(now), PortId(*port), packet);
        if step.is_none_or(|step| (number as u64).is_multiple_of(step)) {
            take(&mut link, Instant::from_nanos(now));
        }
    }
    while let Some(at) = link.poll_timeout() {
        let at = if step.is_some() { Instant::MAX } else { at };
        link.handle_timeout(at);
        take(&mut link, at);
    }
    (out, Way::BOTH.map(|way| *link.counters(way)))
}

fn packets() -> impl Strategy<Value = Vec<(u64, u16, usize)>> {
    prop::collection::vec((0u64..3_000, 0u16..2, 8usize..1_460), 0..150)
}

fn assert_conserved(link: &Link) {
    for way in Way::BOTH {
        let c = link.counters(way);
        let gone = c.forwarded + dropped_of(c);
        assert_eq!(c.received + c.duplicated, gone + link.held(way) as u64);
        let dropped: u64 = link.drops(way).map(|(_, count)| count).sum();
        assert_eq!(dropped, dropped_of(c));
        assert!(c.corrupted_unnoticed <= c.corrupted && c.corrupted_header <= c.corrupted);
    }
}

proptest! {
    #[test]
    fn packets_are_conserved(
        there in any_spec(),
        back in any_spec(),
        watched: bool,
        ops in prop::collection::vec(op(), 0..200),
    ) {
        let mut link = link_of(&there, &back);
        link.set_events(watched);
        let mut reported = 0;
        let (mut now, mut nowhere) = (Instant::ZERO, 0);
        let mut out = 0;
        for op in ops {
            match op {
                Op::Send { port, size } => {
                    nowhere += u64::from(port > 1);
                    // One size is a valid packet.
                    let packet = Packet::new(vec![0x45; size]);
                    let packet = if size == 140 { ipv4_tcp(100, 2) } else { packet };
                    link.handle_packet(now, PortId(port), packet);
                }
                Op::Wait { micros } => {
                    now += std::time::Duration::from_micros(micros);
                    link.handle_timeout(now);
                    reported += std::iter::from_fn(|| link.poll_event()).count() as u64;
                }
                Op::TakeOne => out += u64::from(link.poll_transmit(now).is_some()),
            }
            assert_conserved(&link);
        }
        // The remaining packets leave at the link's deadlines, after which there is no deadline.
        while let Some(at) = link.poll_timeout() {
            now = now.max(at);
            link.handle_timeout(now);
            while link.poll_transmit(now).is_some() {
                out += 1;
            }
        }
        assert_conserved(&link);
        reported += std::iter::from_fn(|| link.poll_event()).count() as u64;
        let fates: u64 = Way::BOTH.map(|way| fates(link.counters(way))).iter().sum();
        prop_assert_eq!(reported, if watched { fates } else { 0 });
        for way in Way::BOTH {
            let used = link.occupancy(way, now);
            prop_assert!((0.0..=1.0).contains(&used.busy) && used.mean <= used.max as f64, "{:?}", used);
        }
        prop_assert_eq!(Way::BOTH.map(|way| link.held(way)), [0, 0]);
        prop_assert_eq!(out, Way::BOTH.map(|way| link.counters(way).forwarded).iter().sum::<u64>());
        prop_assert_eq!(link.unknown_port(), nowhere);
    }

    #[test]
    fn a_seed_gives_one_result_watched_or_not(spec in any_spec(), packets in packets()) {
        prop_assert_eq!(run(&spec, &packets, false, None), run(&spec, &packets, true, None));
    }

    /// A link that is called late delivers the same packets.
    #[test]
    fn a_late_caller_gets_the_same_packets(spec in any_spec(), packets in packets(), step in 1u64..40) {
        let (on_time, counters) = run(&spec, &packets, false, None);
        let (late, late_counters) = run(&spec, &packets, false, Some(step));
        for port in [0, 1] {
            let of = |out: &[Arrival]| -> Vec<Vec<u8>> {
                out.iter().filter(|(_, to, _)| *to == port).map(|(.., data)| data.clone()).collect()
            };
            prop_assert_eq!(of(&on_time), of(&late));
        }
        prop_assert_eq!(counters, late_counters);
    }

    #[test]
    fn order_is_kept_unless_something_changes_it(
        spec in any_spec(),
        packets in prop::collection::vec((0u64..3_000, 8usize..1_460), 0..150),
    ) {
        let mut parsed: LinkSpec = spec.parse().unwrap();
        (parsed.delayed, parsed.paths) = (None, None);
        // The numbers in the packets must stay readable.
        (parsed.biterror, parsed.corrupt) = (None, None);
        parsed.delay.in_order = true;
        let changed = parsed.changes.iter_mut().filter_map(|change| change.delay.as_mut());
        changed.for_each(|delay| delay.in_order = true);
        let spec = parsed.to_string();
        let mut link = link_of(&spec, &spec);
        let mut at = 0;
        let out = send(&mut link, packets.iter().enumerate().map(|(number, (gap, size))| {
            at += gap * 1_000;
            (Instant::from_nanos(at), numbered(number as u64, *size))
        }));
        let numbers: Vec<u64> = out.iter().map(|(_, packet)| number_of(packet)).collect();
        prop_assert!(parsed.duplicate.is_some() || numbers.is_sorted_by(|one, next| one < next));
        let firsts = |index: &usize| !numbers[..*index].contains(&numbers[*index]);
        prop_assert!((0..numbers.len()).filter(firsts).is_sorted_by_key(|index| numbers[index]));
        prop_assert_eq!(forth(&link).reordered, 0);
    }
}

#[test]
fn a_cause_does_not_shift_another() {
    let alone = lost("loss 5% seed 9", 20_000);
    let more = "rate 50mbit limit 100000 delay 5ms 1ms distribution normal delayed 3% 5ms 1ms \
                duplicate 3% red min 90000 max 99999 probability 1%";
    assert_eq!(lost(&format!("loss 5% seed 9 {more}"), 20_000), alone);
    // Flipped bits make the numbers unreliable, but not the times: one packet each microsecond.
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
