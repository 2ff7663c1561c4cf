//! Mobiles that join and leave at any time.

use proptest::prelude::*;

use super::properties::{arqs, specs};
use super::*;
use crate::radio::{FrameNo, Unsent};

#[derive(Clone, Copy, Debug)]
enum Step {
    Pass,
    Receive,
    Drain,
    PassAgain,
    Join(&'static str),
    Leave,
    Reach(bool),
}

fn steps() -> impl Strategy<Value = Vec<(u64, u16, Step)>> {
    let step = prop_oneof![
        8 => Just(Step::Pass),
        4 => Just(Step::Receive),
        2 => Just(Step::Drain),
        2 => Just(Step::PassAgain),
        1 => prop::sample::select(vec!["", "error 50%", "down 5ms 20ms every 50ms", "at 0s 240"])
            .prop_map(Step::Join),
        1 => Just(Step::Leave),
        1 => any::<bool>().prop_map(Step::Reach),
    ];
    prop::collection::vec((0u64..3_000, 0u16..9, step), 1..200)
}

/// A radio under test, and what has become of its packets.
struct World {
    radio: Radio,
    now: Instant,
    /// The mobile of each packet.
    mobiles: Vec<MobileNo>,
    /// The packets that were taken back.
    taken: Vec<(Unsent, Packet)>,
    arrived: Vec<(Way, MobileNo, u32)>,
    frames: Vec<FrameNo>,
}

impl World {
    fn run(&mut self, until: Instant) {
        while let Some((way, mobile, packet)) = self.radio.poll_delivered(self.now) {
            self.arrived.push((way, mobile, number(&packet)));
        }
        while let Some(due) = self.radio.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            while let Some((way, mobile, packet)) = self.radio.poll_delivered(self.now) {
                self.arrived.push((way, mobile, number(&packet)));
            }
        }
        self.now = until;
    }

    fn pass_again(&mut self) {
        for (unsent, packet) in std::mem::take(&mut self.taken) {
            let of = self.mobiles[number(&packet) as usize];
            if self.radio.has_room(self.now, of) {
                let frame = self.radio.pass_again(self.now, of, unsent, packet);
                assert_eq!(frame, Some(unsent.no));
            } else {
                self.taken.push((unsent, packet));
            }
        }
    }

    fn step(&mut self, mobile: MobileNo, step: Step, packet: Packet) {
        let Self { radio, now, .. } = self;
        match step {
            Step::Pass => {
                let frame = radio.pass(*now, mobile, packet);
                self.frames.extend(frame);
            }
            Step::Receive => radio.receive(*now, mobile, packet),
            Step::Drain => {
                let taken = radio.drain(*now, mobile, &|packet| !number(packet).is_multiple_of(5));
                self.taken.extend(taken);
            }
            Step::PassAgain => self.pass_again(),
            Step::Join(words) => radio.join(*now, mobile, words).unwrap(),
            Step::Leave => {
                let taken = radio.leave(*now, mobile);
                self.taken.extend(taken);
            }
            Step::Reach(is_connected) => radio.set_connected(*now, mobile, is_connected),
        }
    }
}

proptest! {
    #[test]
    fn each_packet_of_each_mobile_arrives_once_or_is_counted(
        mut spec in specs(),
        arq in arqs(),
        steps in steps(),
    ) {
        spec.queue = 5;
        let radio = Radio::new(&spec, arq);
        let now = Instant::ZERO;
        let mobiles = steps.iter().map(|(_, mobile, _)| MobileNo(*mobile)).collect();
        let (taken, arrived, frames) = (vec![], vec![], vec![]);
        let mut world = World { radio, now, mobiles, taken, arrived, frames };
        for (index, (gap, mobile, step)) in steps.iter().enumerate() {
            world.run(world.now + Duration::from_micros(*gap));
            world.step(MobileNo(*mobile), *step, numbered(index as u32, 500));
            for way in Way::BOTH {
                let counters = world.radio.counters(way);
                let lost = counters.queue_dropped + counters.channel_lost + counters.disconnected;
                let waits = world.radio.queued(way, None).0 as u64;
                prop_assert!(counters.received <= counters.forwarded + lost + waits);
                prop_assert!(waits <= 9 * 6 + 9);
            }
        }
        while !world.taken.is_empty() || world.radio.poll_timeout().is_some() {
            world.pass_again();
            world.run(world.radio.poll_timeout().unwrap_or(world.now).max(world.now));
        }
        for way in Way::BOTH {
            let counters = world.radio.counters(way);
            let lost = counters.queue_dropped + counters.channel_lost + counters.disconnected;
            prop_assert_eq!(counters.received, counters.forwarded + lost);
            prop_assert_eq!(world.radio.queued(way, None), (0, 0));
            let arrived = world.arrived.iter().filter(|(of, ..)| *of == way);
            prop_assert_eq!(counters.forwarded, arrived.count() as u64);
            let kind = if way == Way::Forth { "Pass" } else { "Receive" };
            let sent = steps.iter().filter(|(_, _, step)| format!("{step:?}") == kind);
            prop_assert_eq!(counters.received, sent.count() as u64);
        }
        prop_assert!(world.frames.iter().all(|frame| !world.radio.holds(*frame)));
        if !spec.deliver_corrupt {
            let mut numbers: Vec<_> = world.arrived.iter().map(|(.., number)| *number).collect();
            numbers.sort_unstable();
            prop_assert!(numbers.is_sorted_by(|a, b| a < b), "one arrived twice");
            for (way, of, number) in &world.arrived {
                let (_, mobile, step) = &steps[*number as usize];
                prop_assert_eq!(matches!(step, Step::Pass), *way == Way::Forth);
                prop_assert!(*of == ALL || of.0 == *mobile);
            }
        }
    }

    /// Joining alone changes nothing.
    #[test]
    fn a_mobile_alone_is_served_as_if_it_had_not_joined(
        spec in specs(),
        arq in arqs(),
        plan in prop::collection::vec((0u64..3_000, any::<bool>()), 1..100),
    ) {
        let run = |of: MobileNo| {
            let mut radio = Radio::new(&spec, arq);
            radio.join(Instant::ZERO, of, "").unwrap();
            let (mut now, mut arrived) = (Instant::ZERO, Vec::new());
            for (index, (gap, back)) in plan.iter().enumerate() {
                now += Duration::from_micros(*gap);
                let packet = numbered(index as u32, 500);
                if *back {
                    radio.receive(now, of, packet);
                } else {
                    radio.pass(now, of, packet);
                }
            }
            while let Some(due) = radio.poll_timeout() {
                now = now.max(due);
                while let Some((way, _, packet)) = radio.poll_delivered(now) {
                    arrived.push((now, way, packet));
                }
            }
            (arrived, Way::BOTH.map(|way| (*radio.counters(way), radio.air_counters(way, None))))
        };
        prop_assert_eq!(run(ALL), run(MobileNo(7)));
    }
}
