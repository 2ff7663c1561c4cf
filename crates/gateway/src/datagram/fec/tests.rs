use std::net::SocketAddr;

use airtcp_types::rng::Stream;
use proptest::prelude::*;

use super::super::channel::Channel;
use super::*;
use crate::Destination;

const FRAME: usize = 1392;

/// A link that loses frames independently, or in runs.
struct Lossy {
    random: Stream,
    share: f64,
    run: f64,
    losing: bool,
}

impl Lossy {
    fn new(seed: u64, share: f64, run: f64) -> Self {
        Self { random: Stream::new(seed, 1), share, run, losing: false }
    }

    fn loses(&mut self) -> bool {
        let (share, run) = (self.share, self.run.max(1.0 / (1.0 - self.share)));
        let stay = 1.0 - 1.0 / run;
        let enter = share / run / (1.0 - share);
        self.losing = self.random.chance(if self.losing { stay } else { enter });
        self.losing
    }
}

/// A constant stream of datagrams over a lossy path, in virtual time.
struct Run {
    /// Datagrams per second, and their sizes in bytes, used in rotation.
    rate: u64,
    sizes: &'static [usize],
    round_trip: Duration,
    share: f64,
    run: f64,
    redundancy: u8,
    seconds: u64,
}

/// The result for the datagrams sent after the first second.
#[derive(Debug)]
struct Outcome {
    /// The share of frames lost by the link, and the share of datagrams that did not arrive.
    lost: f64,
    left: f64,
    /// The share of extra bytes on the wire, including the headers of all frames in both
    /// directions.
    extra: f64,
    /// The largest delay in addition to that of the path.
    delay: Duration,
}

impl Run {
    fn outcome(&self, seed: u64) -> Outcome {
        let remote = Destination::from(SocketAddr::from(([192, 0, 2, 1], 53)));
        let mut near = Channel::new(FRAME, self.redundancy, 1);
        let mut far = Channel::new(FRAME, self.redundancy, 2);
        let mut links = [(); 2].map(|()| Lossy::new(seed, self.share, self.run));
        links[1].random = Stream::new(seed, 2);
        let mut flying = [const { VecDeque::<(Instant, Vec<u8>)>::new() }; 2];
        let interval = Duration::from_nanos(1_000_000_000 / self.rate);
        let total = self.rate * self.seconds;
        let mut arrived = vec![None; total as usize];
        let sent_at = |n: u64| Instant::ZERO + interval * n as u32;
        let content = |n: u64| {
            let mut data = vec![n as u8; self.sizes[n as usize % self.sizes.len()].max(8)];
            data[..8].copy_from_slice(&n.to_be_bytes());
            data
        };
        let (mut next, mut sent, mut lost, mut wire, mut data_bytes) = (0, 0, 0, 0, 0);
        let first = self.rate;
        loop {
            let times = [
                (next < total).then(|| sent_at(next)),
                near.poll_timeout(),
                far.poll_timeout(),
                flying[0].front().map(|(at, _)| *at),
                flying[1].front().map(|(at, _)| *at),
            ];
            let Some(now) = times.into_iter().flatten().min() else { break };
            if next < total && sent_at(next) == now {
                near.send(now, 1, &remote, &content(next));
                if next >= first {
                    data_bytes += content(next).len();
                }
                next += 1;
            }
            near.handle_timeout(now);
            far.handle_timeout(now);
            for (direction, end) in [(0, &mut far), (1, &mut near)] {
                let due = flying[direction].iter().take_while(|(at, _)| *at <= now).count();
                for (_, frame) in flying[direction].drain(..due) {
                    end.handle_frame(now, &frame);
                }
            }
            while let Some(datagram) = far.poll_datagram() {
                let n = u64::from_be_bytes(*datagram.data.first_chunk().unwrap());
                assert_eq!(datagram.data, content(n));
                let delay = now.since(sent_at(n) + self.round_trip / 2);
                assert_eq!(arrived[n as usize].replace(delay), None, "twice");
            }
            for (direction, end) in [(0, &mut near), (1, &mut far)] {
                while let Some(frame) = end.poll_transmit(now) {
                    let counts = next > first;
                    wire += if counts { frame.len() } else { 0 };
                    let loses = links[direction].loses();
                    if direction == 0 && counts {
                        (sent, lost) = (sent + 1, lost + u64::from(loses));
                    }
                    if !loses {
                        flying[direction].push_back((now + self.round_trip / 2, frame));
                    }
                }
            }
        }
        let judged = &arrived[first as usize..];
        let left = judged.iter().filter(|delay| delay.is_none()).count();
        Outcome {
            lost: lost as f64 / sent as f64,
            left: left as f64 / judged.len() as f64,
            extra: wire as f64 / data_bytes as f64 - 1.0,
            delay: judged.iter().flatten().copied().max().unwrap(),
        }
    }
}

const DENSE: Run = Run {
    rate: 2000,
    sizes: &[1200],
    round_trip: Duration::from_millis(100),
    share: 0.05,
    run: 1.0,
    redundancy: 22,
    seconds: 20,
};

#[test]
fn of_five_percent_lost_less_than_a_thousandth_is_left_with_a_quarter_more_bytes() {
    for sizes in [&[1200][..], &[1200, 60, 1350, 400, 1300], &[1452]] {
        let outcome = Run { sizes, ..DENSE }.outcome(1);
        assert!(outcome.left < 1e-3, "{sizes:?} {outcome:?}");
        assert!(outcome.extra < 0.25, "{sizes:?} {outcome:?}");
        assert!(outcome.delay <= DENSE.round_trip, "{sizes:?} {outcome:?}");
    }
}

#[test]
fn without_loss_there_is_nothing_but_the_header_and_reports() {
    let outcome = Run { share: 0.0, ..DENSE }.outcome(1);
    assert_eq!((outcome.lost, outcome.left, outcome.delay), (0.0, 0.0, Duration::ZERO));
    // Ten reports of 16 bytes per second.
    let expected = 8.0 / 1200.0 + 160.0 / (2000.0 * 1200.0);
    assert!((outcome.extra - expected).abs() < 1e-5, "{outcome:?}");
    let off = Run { redundancy: 0, ..DENSE }.outcome(1);
    assert!(off.left > 0.045 && off.extra < 0.0075, "{off:?}");
}

#[test]
fn bursts_and_sparse_flows_are_repaired_as_far_as_the_limit_allows() {
    let bursts = Run { run: 4.0, ..DENSE }.outcome(1);
    assert!(bursts.left < 0.015 && bursts.extra < 0.25, "{bursts:?}");
    let sparse = Run { rate: 50, sizes: &[160], seconds: 120, ..DENSE }.outcome(1);
    assert!(sparse.left < 0.005, "{sparse:?}");
    assert!(sparse.delay <= DENSE.round_trip, "{sparse:?}");
    // 64 kbit/s, 22 % of 64 kbit/s, and headers.
    assert!(sparse.extra < 1.5, "{sparse:?}");
}

#[test]
fn the_limit_has_an_effect_on_busy_flows_up_to_its_end() {
    let left = [29, 40, 60, 100].map(|redundancy| {
        let outcome = Run { share: 0.3, redundancy, ..DENSE }.outcome(1);
        // The header, and 64 kbit/s of 19 Mbit/s.
        assert!(outcome.extra < f64::from(redundancy) / 100.0 + 0.03, "{redundancy}: {outcome:?}");
        outcome.left
    });
    assert!(left.is_sorted_by(|more, less| more > less), "{left:?}");
    assert!(left[3] < 1e-3, "{left:?}");
}

/// Prints a table: `cargo test -p airtcp-gateway --lib -- --ignored --nocapture residual_loss`
#[test]
#[ignore = "prints a table"]
fn residual_loss_by_redundancy() {
    println!(
        "| Flow | Loss | Mean run | Limit | Lost by the link | Left | More bytes | Longest delay |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let flows = [
        ("2000/s of 1200 bytes", 2000, &[1200][..], 60),
        ("2000/s of 60 to 1350 bytes", 2000, &[1200, 60, 1350, 400, 1300], 60),
        ("50/s of 160 bytes", 50, &[160], 600),
        ("50/s of 1200 bytes", 50, &[1200], 600),
    ];
    for (name, rate, sizes, seconds) in flows {
        for (share, run) in [(0.0, 1.0), (0.01, 1.0), (0.05, 1.0), (0.05, 4.0), (0.1, 1.0)] {
            for redundancy in [0, 22, 100] {
                let run = Run { rate, sizes, share, run, redundancy, seconds, ..DENSE };
                let Outcome { lost, left, extra, delay } = run.outcome(1);
                println!(
                    "| {name} | {:.0} % | {} | {redundancy} % | {:.2} % | {:.3} % | {:.1} % | {} ms |",
                    share * 100.0,
                    run.run,
                    lost * 100.0,
                    left * 100.0,
                    extra * 100.0,
                    delay.as_millis(),
                );
            }
        }
    }
}

fn data_frame(seq: u32, len: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..len).map(|at| (at as u32 * seq) as u8).collect();
    [&[0x10, 0, 0, 1][..], &seq.to_be_bytes(), &data].concat()
}

/// Numbers the repair frames as the sender does: sequence number, index, shard.
fn repair_frames(last: u32, repairs: &Repairs) -> Vec<(u32, u8, Vec<u8>)> {
    let shards = (1_u32..).zip(&repairs.shards);
    shards.map(|(n, shard)| (last + n, n as u8 - 1, shard.clone())).collect()
}

/// An encoder for a path with a loss of 10 %.
fn encoder() -> Encoder {
    let mut encoder = Encoder::new(100);
    encoder.on_report(Instant::ZERO, Report { highest: 1000, hold: 0, lost: 100, runs: 90 });
    encoder
}

proptest! {
    /// Any losses up to the number of repairs are recovered, for all sizes and orders of arrival.
    #[test]
    fn as_many_frames_are_recovered_as_repairs_arrived(
        sizes in prop::collection::vec(0_usize..1380, 1..100),
        order in any::<prop::sample::Index>(),
        seed: u64,
    ) {
        let mut encoder = encoder();
        let mut decoder = Decoder::default();
        // The first repair enables the decoder.
        decoder.on_repair(&Repair { seq: 0, count: 1, repairs: 1, index: 0, shard: &[0, 0] });
        let frames: Vec<_> = (1..).zip(&sizes).map(|(seq, len)| data_frame(seq, *len)).collect();
        for (seq, frame) in (1..).zip(&frames) {
            prop_assert!(encoder.on_sent(Instant::ZERO, seq, frame).is_none());
        }
        let repairs = encoder.close(Instant::from_millis(100)).unwrap();
        prop_assert_eq!(usize::from(repairs.count), sizes.len());
        let count = repairs.shards.len() as u8;
        let mut random = Stream::new(seed, 0);
        let mut arrivals: Vec<_> = (1_u32..).zip(frames.iter().cloned()).map(Ok).collect();
        arrivals.extend(repair_frames(sizes.len() as u32, &repairs).into_iter().map(Err));
        // Drops as many frames as there are repairs, and shuffles the rest.
        for _ in 0..count {
            drop(arrivals.swap_remove(random.below(arrivals.len() as u64) as usize));
        }
        let len = arrivals.len();
        arrivals.rotate_left(order.index(len.max(1)).min(len));
        (1..len).for_each(|at| arrivals.swap(at, random.below(at as u64 + 1) as usize));
        let mut have = vec![false; sizes.len()];
        for arrival in arrivals {
            let recovered = match &arrival {
                Ok((seq, frame)) if decoder.has_recovered(*seq) => {
                    prop_assert_eq!(frame, &frames[*seq as usize - 1]);
                    continue;
                }
                Ok((seq, frame)) => {
                    have[*seq as usize - 1] = true;
                    decoder.on_frame(*seq, frame)
                }
                Err((seq, index, shard)) => decoder.on_repair(&Repair {
                    seq: *seq,
                    count: repairs.count,
                    repairs: count,
                    index: *index,
                    shard,
                }),
            };
            for frame in recovered {
                let seq = u32::from_be_bytes(*frame[4..].first_chunk().unwrap()) as usize;
                prop_assert_eq!(&frame, &frames[seq - 1]);
                prop_assert!(!std::mem::replace(&mut have[seq - 1], true));
            }
        }
        prop_assert!(have.iter().all(|have| *have));
    }

    /// Damaged frames, which a checksum would normally drop, never cause a panic.
    #[test]
    fn damaged_shards_are_decoded_to_something_or_nothing(
        frames in prop::collection::vec((0_u32..64, prop::collection::vec(any::<u8>(), 0..40)), 0..60),
        repairs in prop::collection::vec((0_u32..64, 1..6_u8, 1..6_u8, 0..6_u8), 1..30),
    ) {
        let mut decoder = Decoder::default();
        let shard = [7; 20];
        for (at, &(seq, count, most, index)) in repairs.iter().enumerate() {
            let index = index % most;
            let len = 2 + at % 3 * 2;
            let repair = Repair { seq, count, repairs: most, index, shard: &shard[..len] };
            let recovered = decoder.on_repair(&repair);
            prop_assert!(recovered.len() <= count.into());
            if let Some((seq, frame)) = frames.get(at) {
                prop_assert!(decoder.on_frame(*seq, frame).len() <= 6);
            }
        }
    }
}

#[test]
fn memory_is_bounded_and_given_back() {
    let mut decoder = Decoder::default();
    let shard = vec![0; 60_000];
    for n in 0..5000_u32 {
        let (repairs, index) = (200, (n % 200) as u8);
        let seq = n / 200 * 1000 + 255 + u32::from(index);
        decoder.on_repair(&Repair { seq, count: 255, repairs, index, shard: &shard });
        decoder.on_frame(n, &shard);
    }
    let held: usize =
        decoder.groups.iter().flat_map(|group| &group.shards).map(|s| s.1.bytes.len()).sum();
    assert!(held <= GROUPS * GROUP_BYTES && decoder.groups.len() <= GROUPS);
    assert!(decoder.bytes <= KEPT_BYTES);
    (0..4 * KEPT + 1).for_each(|n| drop(decoder.on_frame(n, b"12345678")));
    assert!(decoder.kept.is_empty() && decoder.groups.is_empty());
}

#[test]
fn decoders_share_a_bound_and_give_back_what_they_kept() {
    let room = Arc::new(Semaphore::new(100_000));
    let mut decoders: Vec<_> = (0..8).map(|_| Decoder::new(room.clone())).collect();
    let shard = [0; 1000];
    for n in 0..100_u32 {
        for decoder in &mut decoders {
            let (count, index) = (100, (n % 50) as u8);
            let seq = 1000 + u32::from(count) + u32::from(index);
            decoder.on_repair(&Repair { seq, count, repairs: 50, index, shard: &shard });
            decoder.on_frame(n, &shard);
        }
    }
    assert!(room.available_permits() < 1000, "{}", room.available_permits());
    decoders.pop();
    assert!(room.available_permits() > 1000, "{}", room.available_permits());
    decoders.iter_mut().for_each(Decoder::clear);
    assert_eq!(room.available_permits(), 100_000);
}

#[test]
fn without_room_nothing_is_recovered_that_could_arrive_twice() {
    let (first, second) = (data_frame(1, 100), data_frame(2, 100));
    let mut encoder = encoder();
    assert!(encoder.on_sent(Instant::ZERO, 1, &first).is_none());
    assert!(encoder.on_sent(Instant::ZERO, 2, &second).is_none());
    let repairs = encoder.close(Instant::from_millis(100)).unwrap();
    let (seq, index, shard) = repair_frames(2, &repairs).remove(0);
    let count = repairs.shards.len() as u8;
    let repair = Repair { seq, count: 2, repairs: count, index, shard: &shard };
    // Room for the first frame, a repair, and the recovered second frame.
    let enough = 3 * shard.len();
    for (room, recovered) in [(enough, vec![second.clone()]), (enough - 1 - shard.len(), vec![])] {
        let mut decoder = Decoder::new(Arc::new(Semaphore::new(room)));
        decoder.kept.resize_with(KEPT as usize, || None);
        assert!(decoder.on_frame(1, &first).is_empty());
        assert_eq!(decoder.on_repair(&repair), recovered);
        assert_eq!(decoder.has_recovered(2), !recovered.is_empty());
    }
}

#[test]
fn a_group_is_closed_when_it_is_full_or_its_time_is_over() {
    let mut encoder = encoder();
    let frame = data_frame(1, 100);
    for n in 1..u32::from(MOST_COUNT) {
        assert!(encoder.on_sent(Instant::ZERO, n, &frame).is_none());
    }
    let full = encoder.on_sent(Instant::ZERO, MOST_COUNT.into(), &frame).unwrap();
    assert_eq!(full.count, MOST_COUNT);
    assert_eq!(encoder.due(), None);
    assert!(encoder.on_sent(Instant::ZERO, 1000, &frame).is_none());
    let due = encoder.due().unwrap();
    assert!(due > Instant::ZERO && due <= Instant::ZERO + ROUND_TRIP);
    assert_eq!(encoder.on_sent(due, 1001, &frame).unwrap().count, 2);
}

#[test]
fn frames_that_belong_together_are_in_one_group() {
    let mut encoder = encoder();
    let frame = data_frame(1, 100);
    for n in 1..100 {
        assert!(encoder.on_sent(Instant::ZERO, n, &frame).is_none());
    }
    let fitting = MOST_COUNT - 99;
    assert!(encoder.keep_together(Instant::ZERO, fitting).is_none());
    assert_eq!(encoder.keep_together(Instant::ZERO, fitting + 1).unwrap().count, 99);
    assert!(encoder.on_sent(Instant::ZERO, 100, &frame).is_none());
    let due = encoder.due().unwrap();
    for n in 1..fitting {
        assert!(encoder.on_sent(due, 100 + u32::from(n), &frame).is_none(), "{n}");
    }
    assert_eq!(encoder.on_sent(due, 200, &frame).unwrap().count, fitting + 1);
    assert!(encoder.keep_together(due, 207).is_none());
    for n in 0..206 {
        assert!(encoder.on_sent(due, 300 + n, &frame).is_none(), "{n}");
    }
    assert_eq!(encoder.on_sent(due, 600, &frame).unwrap().count, 207);
}

#[test]
fn a_repair_fits_into_a_frame_beside_the_longest_data_frame() {
    for max in 600..1500 {
        let longest = shard(&vec![0; room(max)]).unwrap().len().next_multiple_of(2);
        assert!(longest + HEADER <= max, "{max}");
        let one_more = shard(&vec![0; room(max) + 1]).unwrap().len().next_multiple_of(2);
        assert!(one_more + HEADER > max, "{max}");
    }
}
