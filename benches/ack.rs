//! What working an ACK costs the sender, with 1,000 and with 10,000 segments in flight: it is to
//! grow no faster than their logarithm.

use std::hint::black_box;
use std::time::Duration;

use airtcp::recovery::{
    Ack, Combination, Decision, Profile, Sender, SenderConfig, Start, Supply, WireNeeds,
};
use airtcp::types::{ByteCount, ExtSeq, Instant, SeqRange};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const SMSS: ByteCount = ByteCount(1448);
const FIRST: ExtSeq = ExtSeq(1 << 32);
const RTT: Duration = Duration::from_millis(20);

/// A sender with `segments` in flight, a bottomless supply and an ideal receiver.
struct Flow {
    sender: Sender,
    now: Instant,
    /// Segments the receiver has seen the end of.
    arrived: u64,
}

impl Flow {
    fn new(combination: &Combination, segments: u32) -> Self {
        let now = Instant::from_millis(1_000);
        let profile = Profile { initial_window: segments, ..Profile::modern() };
        let config =
            SenderConfig { combination: combination.clone(), profile, ..SenderConfig::default() };
        let mut sender = Sender::new(
            &config,
            &Start {
                now,
                first: FIRST,
                smss: SMSS,
                granted: WireNeeds::ALL,
                handshake_rtt: Some(RTT),
                syn_retransmitted: false,
            },
        );
        while let Decision::Send(_) = sender.send(now, &supply(&sender)) {}
        Self { sender, now, arrived: 0 }
    }

    fn seq(segment: u64) -> ExtSeq {
        FIRST + SMSS.0 * segment
    }

    /// Two segments arrive in order, and what may leave leaves.
    fn in_order(&mut self) {
        self.arrived += 2;
        self.ack(Self::seq(self.arrived), &[]);
    }

    /// One segment arrives behind a hole at SND.UNA, and what may leave leaves.
    fn behind_a_hole(&mut self) {
        self.arrived += 1;
        let block = SeqRange::new(Self::seq(1), Self::seq(self.arrived + 1));
        self.ack(FIRST, &[block]);
    }

    fn ack(&mut self, ack: ExtSeq, sack: &[SeqRange]) {
        self.now += Duration::from_micros(10);
        self.sender.on_ack(
            self.now,
            &Ack {
                ack,
                window_changed: false,
                has_payload: false,
                sack,
                dsack: None,
                echo: None,
                ece: false,
                echoed: None,
            },
        );
        while let Decision::Send(sent) = self.sender.send(self.now, &supply(&self.sender)) {
            black_box(sent);
        }
    }
}

fn supply(sender: &Sender) -> Supply {
    let far = sender.snd_una() + (1 << 30);
    Supply { end: far, fin: false, window_edge: far, nodelay: false }
}

fn acks(c: &mut Criterion) {
    for combination in Combination::all().into_iter().chain(Combination::all_judged()) {
        let mut group = c.benchmark_group(format!("ack/{combination}"));
        // A control that brings its own window has only one size.
        let own = Flow::new(&combination, 1_000).sender.board().flight_size().0 / SMSS.0;
        let sizes = if own == 1_000 { vec![1_000, 10_000] } else { vec![own as u32] };
        for segments in sizes {
            group.bench_with_input(BenchmarkId::new("in-order", segments), &segments, |b, &n| {
                let mut flow = Flow::new(&combination, n);
                b.iter(|| flow.in_order());
            });
            group.bench_with_input(BenchmarkId::new("sack", segments), &segments, |b, &n| {
                // A fresh hole every n/2 ACKs: no flow lasts through millions of them.
                b.iter_batched_ref(
                    || Flow::new(&combination, n),
                    |flow| (0..n / 2).for_each(|_| flow.behind_a_hole()),
                    criterion::BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = acks
}
criterion_main!(benches);
