//! For any channel, the radio neither invents, duplicates nor keeps packets, and the timing of
//! calls does not matter.

use std::collections::BTreeSet;
use std::time::Duration;

use airtcp_types::{Instant, Node, PortId};
use proptest::prelude::*;

use super::{number, numbered};
use crate::Way;
use crate::radio::{Arq, Backend, Radio, RadioSpec};

pub(super) fn specs() -> impl Strategy<Value = RadioSpec> {
    let errors = prop_oneof![Just("".to_owned()), (1u32..=100).prop_map(|p| format!("error {p}%"))];
    let bits = prop_oneof![Just(""), Just("biterror 1e-5"), Just("biterror 1e-3")];
    let extra = prop_oneof![
        Just(""),
        Just("rts"),
        Just("deliver-corrupt"),
        Just("delay 3ms"),
        Just("plain delay 3ms"),
        Just("down 5ms 20ms every 50ms"),
        Just("at 0s 200 at 100ms 300 at 200ms 100"),
    ];
    (errors, bits, extra, 1u32..4, 1u32..4, any::<u64>()).prop_map(
        |(errors, bits, extra, tries, passes, seed)| {
            let text = format!("{errors} {bits} {extra} tries {tries} passes {passes} seed {seed}");
            text.parse().unwrap()
        },
    )
}

pub(super) fn arqs() -> impl Strategy<Value = Arq> {
    prop::sample::select(Arq::ALL.map(|(_, arq)| arq).to_vec())
}

/// Passes packets at their times, from both ends; returns the arrivals with their times. In
/// between, time advances in steps of at most `step`.
fn run(radio: &mut Radio, plan: &[(u64, bool)], step: Duration) -> Vec<(PortId, u32, Vec<u8>)> {
    let mut arrived = Vec::new();
    let mut now = Instant::ZERO;
    for (index, (gap, back)) in plan.iter().enumerate() {
        let next = now + Duration::from_micros(*gap);
        while now < next {
            now = next.min(now + step);
            drain(radio, now, &mut arrived);
        }
        radio.handle_packet(now, PortId(u16::from(*back)), numbered(index as u32, 500));
    }
    while let Some(due) = radio.poll_timeout() {
        now = now.max(due);
        drain(radio, now, &mut arrived);
    }
    arrived
}

fn drain(radio: &mut Radio, now: Instant, arrived: &mut Vec<(PortId, u32, Vec<u8>)>) {
    while let Some((port, packet)) = radio.poll_transmit(now) {
        arrived.push((port, number(&packet), packet.data));
    }
}

proptest! {
    #[test]
    fn each_packet_arrives_once_or_is_counted(
        spec in specs(),
        arq in arqs(),
        plan in prop::collection::vec((0u64..3_000, any::<bool>()), 1..150),
    ) {
        let mut radio = Radio::new(&spec, arq);
        let arrived = run(&mut radio, &plan, Duration::from_millis(1));
        if !spec.deliver_corrupt {
            let numbers: BTreeSet<_> = arrived.iter().map(|(_, number, _)| *number).collect();
            prop_assert_eq!(numbers.len(), arrived.len(), "one arrived twice");
            for (port, number, data) in &arrived {
                prop_assert_eq!(data, &numbered(*number, 500).data);
                prop_assert_eq!(port.0 == 0, plan[*number as usize].1);
            }
        }
        let (mut received, mut forwarded) = (0, 0);
        for way in Way::BOTH {
            let counters = radio.counters(way);
            let lost = counters.queue_dropped + counters.channel_lost + counters.disconnected;
            prop_assert_eq!(counters.received, counters.forwarded + lost);
            prop_assert_eq!(radio.queued(way, None), (0, 0));
            received += counters.received;
            forwarded += counters.forwarded;
        }
        prop_assert_eq!((received, forwarded), (plan.len() as u64, arrived.len() as u64));
        prop_assert!((0..plan.len() as u64).all(|no| !radio.holds(crate::radio::FrameNo(no))));
    }

    /// A late caller receives the same packets in the same order, only later.
    #[test]
    fn how_often_it_is_called_changes_nothing(
        spec in specs(),
        arq in arqs(),
        plan in prop::collection::vec((0u64..3_000, any::<bool>()), 1..100),
    ) {
        let mut often = Radio::new(&spec, arq);
        let mut seldom = often.clone();
        let by_way = |arrived: Vec<(PortId, u32, Vec<u8>)>| {
            [0, 1].map(|port| arrived.iter().filter(|(to, ..)| to.0 == port).cloned().collect::<Vec<_>>())
        };
        let one = by_way(run(&mut often, &plan, Duration::from_micros(100)));
        let other = by_way(run(&mut seldom, &plan, Duration::from_millis(50)));
        prop_assert_eq!(one, other);
        for way in Way::BOTH {
            prop_assert_eq!(often.counters(way), seldom.counters(way));
            prop_assert_eq!(often.air_counters(way, None), seldom.air_counters(way, None));
        }
    }

    #[test]
    fn a_description_is_read_as_it_is_shown(spec in specs()) {
        prop_assert_eq!(spec.to_string().parse::<RadioSpec>().unwrap(), spec);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9. %-]{0,40}") {
        let _ = text.parse::<RadioSpec>();
    }
}
