//! For any input, the station invents no data.

use airtcp_wire::checksum;
use airtcp_wire::options::HackForm;
use proptest::prelude::*;

use super::super::segment::flag;
use super::super::testkit::key_of;
use super::*;

/// A packet of a run: the time since the previous one, the side, and the segment.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) wait_us: u64,
    pub(super) from: Side,
    flow: u32,
    seg: Seg,
    is_hit: bool,
    /// A change of the mobile's state before the packet.
    pub(super) control: Option<fn(&mut Station, Instant)>,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let flags = prop_oneof![
        12 => Just("A"), 1 => Just("S"), 1 => Just("SA"), 1 => Just("FA"), 1 => Just("R"), 1 => Just("EA"), 1 => Just("P"),
    ];
    let place = 0u32..12;
    let window = prop_oneof![8 => Just(1_000u16), 1 => Just(0), 1 => Just(999)];
    let sack = prop_oneof![
        3 => Just(vec![]),
        1 => (0u32..14, 1u32..3).prop_map(|(at, len)| vec![(at * 100, (at + len) * 100)]),
    ];
    let hack =
        prop::option::weighted(0.3, prop_oneof![Just(HackForm::Kinds), Just(HackForm::ExId)]);
    let special = prop::option::weighted(0.1, Just(5));
    let control: [fn(&mut Station, Instant); 3] =
        [Station::freeze, Station::disconnect, Station::reconnect];
    let control = prop::option::weighted(0.1, prop::sample::select(control.to_vec()));
    (
        (0u64..3_000, any::<bool>(), 0u32..3, prop::bool::weighted(0.1), any::<bool>()),
        (flags, place.clone(), place, 0usize..3, window),
        (sack, hack, special, prop::option::weighted(0.3, (0u32..50, 0u32..50)), control),
    )
        .prop_map(|(run, head, options)| {
            let (wait_us, is_fixed, flow, is_hit, is_bare) = run;
            let (flags, seq, ack, len, window) = head;
            let (sack, hack, hack_ack, ts, control) = options;
            let from = if is_fixed { Side::Wired } else { Side::Wireless };
            // Duplicate ACKs must be frequent.
            let (seq, len) = if from == Side::Wireless && is_bare { (0, 0) } else { (seq, len) };
            let hack_ack = hack_ack.filter(|_| len == 0);
            let hack = hack.filter(|_| len > 0);
            let ack = ack * 100;
            let seg = Seg {
                flags,
                ack,
                window,
                sack,
                hack,
                hack_ack,
                ts,
                ..Seg::data(seq * 100, len * 100)
            };
            Step { wait_us, from, flow, seg, is_hit, control }
        })
}

fn ends(step: &Step) -> (SocketAddr, SocketAddr) {
    let FlowKey { fixed, mobile } = key_of(step.flow);
    if step.from == Side::Wired { (fixed, mobile) } else { (mobile, fixed) }
}

/// The packet of a step; its IPv4 identification or flow label is the step's number, starting from
/// one.
pub(super) fn packet_of(step: &Step, number: usize) -> Packet {
    let (src, dst) = ends(step);
    let mut packet = step.seg.packet(src, dst);
    let [a, b] = (number as u16).to_be_bytes();
    let data = &mut packet.data;
    if data[0] >> 4 == 4 {
        let sum = u16::from_be_bytes([data[10], data[11]]);
        let sum = checksum::update(sum, u16::from_be_bytes([data[4], data[5]]), number as u16);
        data[10..12].copy_from_slice(&sum.to_be_bytes());
        data[4..6].copy_from_slice(&[a, b]);
    } else {
        data[2..4].copy_from_slice(&[a, b]);
    }
    if step.is_hit {
        *data.last_mut().unwrap() ^= 0x10;
    }
    packet
}

fn number_of(packet: &Packet) -> usize {
    let at = if packet.data[0] >> 4 == 4 { 4 } else { 2 };
    usize::from(u16::from_be_bytes([packet.data[at], packet.data[at + 1]]))
}

/// A copy of the packet with zeros in the fields that a mark changes.
fn unmarked(packet: &Packet) -> Vec<u8> {
    let mut data = packet.data.clone();
    let at = if data[0] >> 4 == 4 { 20 } else { 40 };
    data[at + 12] &= 0xf7;
    data[at + 16..at + 18].fill(0);
    let header = usize::from(data[at + 12] >> 4) * 4;
    let hack = airtcp_wire::options::extension::checksum_at(&data[at + 20..at + header]);
    if let Some(hack) = hack {
        data[at + 20 + hack..at + 22 + hack].fill(0);
    }
    data
}

/// Whether the filter may drop the packet.
fn may_be_hidden(step: &Step) -> bool {
    let Seg { flags, len, window, hack_ack, .. } = step.seg;
    flags == "A" && len == 0 && window != 0 && hack_ack.is_none() && !step.is_hit
}

fn check_towards_mobile(steps: &[Step], packet: &Packet) -> Result<(), TestCaseError> {
    let number = number_of(packet);
    prop_assert!(number > 0, "the fixed host did not send it");
    let original = packet_of(&steps[number - 1], number);
    prop_assert_eq!(steps[number - 1].from, Side::Wired);
    prop_assert_eq!(unmarked(packet), unmarked(&original));
    let (before, after) = (Segment::read(&original).unwrap(), Segment::read(packet).unwrap());
    prop_assert_eq!(before.is_intact, after.is_intact);
    Ok(())
}

/// A packet of the mobile, at most with its window set to zero, or an ACK of the station that
/// contains nothing that the mobile had not sent.
fn check_towards_fixed(steps: &[Step], packet: &Packet) -> Result<(), TestCaseError> {
    let number = number_of(packet);
    let Some(step) = number.checked_sub(1).map(|index| &steps[index]) else {
        let made = Segment::read(packet).unwrap();
        prop_assert!(made.is_intact && made.flags == flag::ACK && made.data == 0);
        prop_assert!(made.options.sack.is_empty());
        let said = |said: &dyn Fn(&Seg) -> bool| {
            let own = steps.iter().filter(|step| step.from == Side::Wireless && !step.is_hit);
            own.filter(|step| ends(step) == (made.src, made.dst)).any(|step| said(&step.seg))
        };
        prop_assert!(said(&|seg| seg.flags.contains('A') && seg.ack == made.ack.0));
        let end = |seg: &Seg| seg.seq + seg.len as u32 + u32::from(seg.flags.contains(['S', 'F']));
        prop_assert!(said(&|seg| end(seg) == made.seq.0));
        prop_assert!(made.window == 0 || said(&|seg| seg.window == made.window));
        let stamp = made.options.timestamps.map(|stamp| (stamp.val, stamp.ecr));
        prop_assert!(said(&|seg| seg.ts == stamp));
        return Ok(());
    };
    prop_assert_eq!(step.from, Side::Wireless);
    let mut original = packet_of(step, number);
    let (read, now) = (Segment::read(&original).unwrap(), Segment::read(packet).unwrap());
    if now.window == 0 && now.is_intact {
        read.set_window(&mut original, 0);
    }
    prop_assert_eq!(packet, &original);
    Ok(())
}

proptest! {
    #[test]
    fn nothing_is_invented_and_nothing_dropped_that_says_something(
        steps in prop::collection::vec(step(), 1..120),
        seed in 0u64..1_000,
    ) {
        // Errors and an outage, so that frames wait, are reordered and given up; the queue has room
        // for all.
        let radio = format!("error 30% tries 2 queue 1000 down 40ms 20ms seed {seed}");
        let mut script = Script::new(&radio, |config| (config.flows, config.unproven) = (2, 2));
        let mut received = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let until = script.now + Duration::from_micros(step.wait_us);
            while let Some(at) = script.station.poll_timeout().filter(|at| *at <= until) {
                script.now = at.max(script.now);
                script.drain();
            }
            script.now = until;
            if let Some(control) = step.control {
                control(&mut script.station, script.now);
            }
            script.put(step.from, packet_of(step, index + 1));
        }
        script.station.reconnect(script.now);
        script.run(20_000);
        for (_, side, packet) in script.out.drain(..) {
            match side {
                Side::Wireless => check_towards_mobile(&steps, &packet)?,
                Side::Wired => check_towards_fixed(&steps, &packet)?,
            }
            received.extend(Some(number_of(&packet)).filter(|number| *number > 0));
        }
        received.sort_unstable();
        let is_driven = steps.iter().any(|step| step.control.is_some());
        prop_assert!(received.is_sorted_by(|a, b| a < b), "nothing comes twice");
        let status = script.station.status(script.now);
        let [forth, back] = status.radio;
        let lost = forth.channel_lost + forth.disconnected + back.channel_lost + back.disconnected;
        let missing = (steps.len() - received.len()) as u64;
        let counters = status.counters;
        let dropped = counters.hidden + counters.held_again + counters.probes + counters.held_dropped;
        prop_assert!(missing <= lost + dropped);
        prop_assert!(is_driven || missing == lost + counters.hidden);
        prop_assert_eq!((status.held, status.frozen), (0, 0));
        prop_assert!(status.flows + status.frozen <= 2 && status.unproven <= 2);
    }

    #[test]
    fn with_snoop_nothing_is_invented_either(
        steps in prop::collection::vec(step(), 1..120),
        seed in 0u64..1_000,
    ) {
        let mut script = Script::new(&format!("error 30% queue 1000 seed {seed}"), |config| {
            (config.policy, config.arq) = (Policy::Snoop, airtcp_link::Arq::Off);
            config.cache = airtcp_types::ByteCount(3_000);
        });
        for (index, step) in steps.iter().enumerate() {
            let now = script.now.as_nanos() / 1_000_000 + step.wait_us / 100;
            script.run(now);
            script.put(step.from, packet_of(step, index + 1));
            prop_assert!(script.station.status(script.now).cached <= 3_000);
        }
        script.run(1_000_000_000);
        for (_, side, packet) in script.out.drain(..) {
            prop_assert!(number_of(&packet) > 0, "it makes no packet");
            match side {
                Side::Wireless => check_towards_mobile(&steps, &packet)?,
                Side::Wired => check_towards_fixed(&steps, &packet)?,
            }
        }
        prop_assert_eq!(script.station.status(script.now).cached, 0, "in the end it gives up");
    }

    #[test]
    fn delayed_acks_come_unchanged_or_the_mobile_acknowledges_more(
        steps in prop::collection::vec(step(), 1..120),
        cache in prop_oneof![Just(3_000), Just(1 << 20)],
        delay_us in 0u64..20_000,
    ) {
        // This radio loses and reorders nothing.
        let mut script = Script::new("queue 1000", |config| {
            (config.policy, config.flows) = (Policy::DelayedDupack, 2);
            config.cache = airtcp_types::ByteCount(cache);
            config.dupack_delay = Duration::from_micros(delay_us);
        });
        for (index, step) in steps.iter().enumerate() {
            script.run((script.now + Duration::from_micros(step.wait_us)).as_nanos() / 1_000_000);
            script.put(step.from, packet_of(step, index + 1));
            prop_assert!(script.station.status(script.now).cached as u64 <= cache);
        }
        script.run(10_000);
        let mut came = Vec::new();
        for (_, side, packet) in &script.out {
            let number = number_of(packet);
            prop_assert!(number > 0, "it makes no packet");
            prop_assert_eq!(packet, &packet_of(&steps[number - 1], number));
            prop_assert_eq!(steps[number - 1].from == Side::Wired, *side == Side::Wireless);
            came.push(number);
        }
        let counters = *script.station.counters();
        let missing: Vec<_> = (1..=steps.len()).filter(|number| !came.contains(number)).collect();
        prop_assert_eq!(missing.len() as u64, counters.hidden);
        prop_assert!(counters.hidden <= counters.delayed);
        prop_assert_eq!(came.len() + missing.len(), steps.len(), "nothing comes twice");
        for number in missing {
            let lost = &steps[number - 1];
            prop_assert!(lost.from == Side::Wireless && may_be_hidden(lost));
            let more = |step: &Step| ends(step) == ends(lost) && step.seg.ack > lost.seg.ack;
            prop_assert!(steps[number..].iter().any(more));
        }
        script.run(1_000_000);
        prop_assert_eq!(script.station.status(script.now).cached, 0);
        prop_assert_eq!(script.station.poll_timeout(), None);
    }

    #[test]
    fn what_the_filter_must_not_drop_comes_out(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        // This radio loses nothing, and holds the first frames for a long time.
        let mut script = Script::new("queue 1000", |_| {});
        for (index, step) in steps.iter().enumerate() {
            script.put(step.from, packet_of(step, index + 1));
        }
        script.run(10_000);
        let came: Vec<usize> = script.out.iter().map(|(_, _, packet)| number_of(packet)).collect();
        for (index, step) in steps.iter().enumerate() {
            let is_free = step.from == Side::Wireless && may_be_hidden(step);
            prop_assert!(is_free || came.contains(&(index + 1)), "{step:?}");
        }
    }

    #[test]
    fn the_same_packets_give_the_same_bytes(steps in prop::collection::vec(step(), 1..60)) {
        let run = || {
            let mut script = Script::new("error 20% seed 3", |_| {});
            for (index, step) in steps.iter().enumerate() {
                script.now += Duration::from_micros(step.wait_us);
                script.put(step.from, packet_of(step, index + 1));
            }
            script.run(10_000);
            (script.station.flows(usize::MAX), script.out)
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20),
        heads in prop::collection::vec((any::<bool>(), any::<bool>()), 20),
    ) {
        let mut script = Script::new("", |_| {});
        for (mut data, (is_fixed, is_v4)) in packets.into_iter().zip(heads) {
            if is_v4 && data.len() >= 20 {
                data[..2].copy_from_slice(&[0x45, 0]);
                (data[6], data[7], data[9]) = (0, 0, 6);
                let len = data.len() as u16;
                data[2..4].copy_from_slice(&len.to_be_bytes());
                data[10..12].fill(0);
                let sum = checksum::checksum(&data[..20]).to_be_bytes();
                data[10..12].copy_from_slice(&sum);
            }
            let side = if is_fixed { Side::Wired } else { Side::Wireless };
            script.put(side, Packet::new(data));
        }
        script.run(1_000);
        prop_assert!(script.station.status(script.now).flows <= 20);
    }
}
