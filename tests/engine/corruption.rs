//! HACK through the whole stack: a loss that the peer has reported as corruption is not treated as
//! congestion.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_recovery::Combination;
use airtcp_types::{ByteCount, Event, EventKind, ExtSeq, Instant, Packet, Rate, TxNo};

use crate::transfer::Transfer;
use crate::wire::read;
use crate::world::{
    CLIENT, CLIENT_HOST, Impairment, Observer, SERVER, SERVER_HOST, World, host_config,
};

/// The fate of a transmission on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// In flight, arrived, or dropped by a full queue.
    Sent,
    /// Damaged, with an intact header.
    Damaged,
    /// Damaged, and reported to the sender.
    Reported,
}

/// The client's transmissions and the reports about them.
#[derive(Default)]
struct Witness {
    /// The start and the fate of each transmission, by number.
    sent: BTreeMap<TxNo, (ExtSeq, Fate)>,
    leaving: Option<TxNo>,
    reports: u64,
    reductions: u64,
    /// The loss that causes the next reduction.
    blamed: Option<TxNo>,
}

impl Witness {
    fn fate(&mut self, tx: TxNo) -> Option<&mut Fate> {
        self.sent.get_mut(&tx).map(|(_, fate)| fate)
    }
}

impl Observer for Witness {
    fn on_event(&mut self, host: usize, event: &Event) {
        if host != CLIENT_HOST {
            return;
        }
        match event.kind {
            EventKind::Sent { tx, range, .. } => {
                self.sent.insert(tx, (range.start, Fate::Sent));
                self.leaving = Some(tx);
            }
            EventKind::Lost { tx, cause, .. } => {
                self.blamed = (cause != "corruption").then_some(tx);
            }
            EventKind::Reduced { cause } => {
                self.reductions += 1;
                let blamed = self.blamed.expect("a reduction is for a loss");
                let fate = self.fate(blamed).copied();
                assert_ne!(fate, Some(Fate::Reported), "reduced for {blamed:?}: {cause}");
            }
            _ => {}
        }
    }

    fn on_arrival(&mut self, host: usize, packet: &Packet) {
        if host != CLIENT_HOST {
            return;
        }
        // On a path without reordering, a report means the oldest damaged transmission not yet
        // reported.
        if let Some(seq) = read(packet).and_then(|segment| segment.corrupted) {
            let is_meant =
                |(start, fate): &(ExtSeq, Fate)| start.wire() == seq && *fate == Fate::Damaged;
            if let Some((_, fate)) = self.sent.values_mut().find(|sent| is_meant(sent)) {
                *fate = Fate::Reported;
                self.reports += 1;
            }
        }
    }

    fn on_departure(&mut self, host: usize, _: &Packet) {
        if host == SERVER_HOST {
            self.leaving = None;
        }
    }

    fn on_damage(&mut self, host: usize) {
        if host == CLIENT_HOST
            && let Some(tx) = self.leaving.take()
            && let Some(fate) = self.fate(tx)
        {
            *fate = Fate::Damaged;
        }
    }
}

/// Runs a bulk transfer and returns its witness.
fn transfer(
    combination: &str,
    damaged: f64,
    delay: u64,
    queue: Option<usize>,
    seed: u64,
) -> Witness {
    let combination: Combination = combination.parse().unwrap();
    let rate = Rate::from_bits_per_sec(10_000_000);
    let path = Impairment {
        corrupt: damaged,
        bottleneck: queue.map(|packets| (rate, packets)),
        ..Impairment::delay(Duration::from_millis(delay))
    };
    let config = |address| {
        let mut config = host_config(address, &combination, true);
        // Without a queue that overflows, this buffer limits the window.
        config.tcp.receive_buffer = ByteCount::from_kib(256);
        config
    };
    let mut world = World::new(config(CLIENT), config(SERVER), path, seed, Witness::default())
        .with_path_back(Impairment::delay(Duration::from_millis(delay)), seed);
    let mut transfer = Transfer::start(&mut world, 1_500_000, 0);
    while !transfer.is_over() {
        transfer.work(&mut world);
        assert!(world.step() || transfer.is_over());
        assert!(world.now < Instant::from_millis(3_600_000), "{combination} does not end");
    }
    world.observer
}

/// If segments are only damaged and every header stays intact, the window is never reduced.
#[test]
fn notified_corruption_alone_never_reduces_the_window() {
    for combination in ["sack/reno/hack", "sack/cubic/hack", "rack/cubic/hack", "le/reno/hack"] {
        for damaged in [0.02, 0.05, 0.1, 0.15] {
            for (delay, seed) in [(5, 1), (5, 2), (150, 3), (150, 4)] {
                let seen = transfer(combination, damaged, delay, None, seed);
                assert!(seen.reports > 10, "{combination}: {} reports only", seen.reports);
                assert_eq!(seen.reductions, 0, "{combination} {damaged} {delay} ms, seed {seed}");
            }
        }
    }
}

/// If a queue overflows as well, no reduction is for a segment that was reported as damaged.
#[test]
fn beside_congestion_only_congestion_reduces_the_window() {
    let mut reductions = 0;
    for combination in ["sack/reno/hack", "sack/cubic/hack"] {
        for damaged in [0.02, 0.05, 0.1, 0.15] {
            for seed in 1..4 {
                reductions += transfer(combination, damaged, 10, Some(16), seed).reductions;
            }
        }
    }
    assert!(reductions > 20, "the queue has overflowed: {reductions}");
}
