//! Properties of whole connections, for every detection with every control, over random paths and
//! with lying receivers.
//!
//! Each case draws its judges. `AIRTCP_FULL_PRODUCT=1 cargo test --release --test engine
//! connections` instead runs every detection with every control with every set of at most two
//! judges, which takes long.

use std::time::Duration;

use airtcp_recovery::{Choice, Combination, LossJudge, Sender};
use airtcp_stack::tcp::EcnMode;
use airtcp_types::{ByteCount, Event, EventKind, ExtSeq, Instant, Packet, RangeSet};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::liar::{Liar, Lies};
use crate::parallel::in_parallel;
use crate::transfer::Transfer;
use crate::wire::SackSniffer;
use crate::world::{
    CLIENT, CLIENT_HOST, Impairment, Observer, SERVER, SERVER_HOST, World, host_config,
};

const CASES: u32 = 256;
/// A FIN takes a sequence number but no space in the window.
const FIN: ByteCount = ByteCount(1);
/// How much the bookkeeping of holes, and the window offered before the buffer shrank, may add to a
/// receive buffer.
const HOLES: ByteCount = ByteCount(70_000);
/// A connection that is not over by then hangs.
const PATIENCE: Duration = Duration::from_secs(3600 * 4);

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    path: Impairment,
    up: u64,
    down: u64,
    receive_buffer: u64,
    nodelay: bool,
    /// Whether the devices take super-segments.
    offload: bool,
    sack: bool,
    timestamps: bool,
    ecn: EcnMode,
    send_buffer: u64,
    lies: Option<Lies>,
    judges: Vec<Choice<dyn LossJudge>>,
}

impl Case {
    /// A bulk flow over `path`, with all options that the peer can offer.
    fn bulk(seed: u64, path: Impairment, up: u64) -> Self {
        Self {
            seed,
            path,
            up,
            down: 0,
            receive_buffer: 6 << 20,
            nodelay: false,
            offload: false,
            sack: true,
            timestamps: true,
            ecn: EcnMode::Passive,
            send_buffer: 4 << 20,
            lies: None,
            judges: Vec::new(),
        }
    }
}

fn any_ecn() -> impl Strategy<Value = EcnMode> {
    prop_oneof![1 => Just(EcnMode::Off), 1 => Just(EcnMode::Passive), 2 => Just(EcnMode::Active)]
}

fn case() -> impl Strategy<Value = Case> {
    let path = (
        0u64..200_000,
        prop_oneof![Just(0u64), 0..20_000u64],
        prop_oneof![Just(0.0), 0.0..0.1f64],
        prop_oneof![Just(0.0), 0.0..0.1f64],
        prop_oneof![Just(0.0), 0.0..0.2f64],
        prop_oneof![Just(0.0), 0.0..0.2f64],
    )
        .prop_map(|(delay, jitter, loss, duplicate, reorder, mark)| Impairment {
            delay: Duration::from_micros(delay),
            jitter: Duration::from_micros(jitter),
            loss,
            duplicate,
            reorder,
            corrupt: 0.0,
            mark,
            bottleneck: None,
        });
    (
        any::<u64>(),
        path,
        prop_oneof![0u64..3_000, 0..200_000u64],
        prop_oneof![Just(0u64), 0..100_000u64],
        prop_oneof![2_000u64..20_000, Just(6u64 << 20)],
        any::<[bool; 2]>(),
        (prop::bool::weighted(0.9), prop::bool::weighted(0.9), any_ecn()),
        prop_oneof![10_000u64..100_000, Just(4u64 << 20)],
        prop_oneof![
            2 => Just(None),
            2 => Just(Some(Lies::Bearable)),
            1 => Just(Some(Lies::Optimistic)),
        ],
        prop::sample::select(Combination::judge_sets()),
    )
        .prop_map(
            |(
                seed,
                path,
                up,
                down,
                receive_buffer,
                [nodelay, offload],
                options,
                send_buffer,
                lies,
                judges,
            )| {
                let (sack, timestamps, ecn) = options;
                // Half of the active cases use AccECN.
                let ecn = match ecn {
                    EcnMode::Active if seed % 2 == 0 => EcnMode::Accurate,
                    ecn => ecn,
                };
                let (path, receive_buffer) = match lies {
                    // Data that is lost or finds no space, although its arrival is claimed, never
                    // arrives.
                    Some(Lies::Optimistic) => (Impairment::delay(path.delay), 6 << 20),
                    _ => (path, receive_buffer),
                };
                Case {
                    seed,
                    path,
                    up,
                    down,
                    receive_buffer,
                    nodelay,
                    offload,
                    sack,
                    timestamps,
                    ecn,
                    send_buffer,
                    lies,
                    judges,
                }
            },
        )
}

fn world<O: Observer>(case: &Case, combination: &Combination, observer: O) -> World<O> {
    let config = |address| {
        let mut config = host_config(address, combination, true);
        config.tcp.receive_buffer = ByteCount(case.receive_buffer);
        config.tcp.initial_window = ByteCount(case.receive_buffer.min(65_535));
        config.tcp.send_buffer = ByteCount(case.send_buffer);
        config.tcp.nodelay = case.nodelay;
        config.segmentation_offload = case.offload;
        config.tcp.sack = case.sack;
        config.tcp.timestamps = case.timestamps;
        config.tcp.ecn = case.ecn;
        config
    };
    let liar = case.lies.map(|lies| Liar::new(lies, case.seed));
    World::new(config(CLIENT), config(SERVER), case.path, case.seed, observer).with_liar(liar)
}

/// The rules for the transmissions of one end.
#[derive(Default)]
struct Conduct {
    sent: RangeSet,
    next_tx: Option<u64>,
    una: Option<ExtSeq>,
}

impl Conduct {
    fn on_event(&mut self, kind: &EventKind) {
        if let EventKind::Received { ack, .. } = kind {
            self.una = self.una.max(Some(*ack));
        }
        let &EventKind::Sent { tx, range, rule, pipe, cwnd, rwnd } = kind else { return };
        assert!(self.next_tx.is_none_or(|next| tx.0 == next), "transmission numbers rise by one");
        self.next_tx = Some(tx.0 + 1);

        let before = self.sent.bytes();
        self.sent.insert(range);
        let new = self.sent.bytes() - before;
        assert_eq!(
            new == ByteCount::ZERO,
            rule.is_retransmission(),
            "{rule:?} of {range:?}: of it {new:?} were never sent"
        );
        let exempt = rule.exceeds_cwnd();
        assert!(
            exempt || pipe + range.len() <= cwnd + FIN,
            "{rule:?} of {range:?} with {pipe:?} in the pipe and a window of {cwnd:?}"
        );
        // A window that shrinks, or seems to because of a reordered ACK, stops new data but no
        // retransmission (RFC 9293 section 3.8.6).
        let una = *self.una.get_or_insert(range.start);
        assert!(
            rule.is_retransmission() || range.end.since(una) <= rwnd,
            "{rule:?} of {range:?} beyond {rwnd:?} from {una:?}, the peer's window"
        );
    }
}

/// Checks the transmissions of both ends, and the packets on the wire.
#[derive(Default)]
struct Watch {
    conduct: [Conduct; 2],
    sniffer: SackSniffer,
}

impl Observer for Watch {
    fn on_event(&mut self, host: usize, event: &Event) {
        self.sniffer.on_event(host, event);
        self.conduct[host].on_event(&event.kind);
    }

    fn on_arrival(&mut self, host: usize, packet: &Packet) {
        self.sniffer.on_arrival(host, packet);
    }

    fn on_departure(&mut self, host: usize, packet: &Packet) {
        self.sniffer.on_departure(host, packet);
    }
}

fn run(case: &Case, combination: &Combination) {
    let mut world = world(case, combination, Watch::default());
    let mut transfer = Transfer::start(&mut world, case.up, case.down);
    let deadline = Instant::ZERO + PATIENCE;
    while !transfer.is_over() {
        assert!(world.now < deadline, "not over after {PATIENCE:?}: {:?}", transfer.ends);
        transfer.work(&mut world);
        let alive = world.step();
        for (end, host) in transfer.ends.iter().zip(&world.hosts) {
            if let Some(socket) = end.socket
                && let Some(sender) = host.tcp(socket).ok().and_then(|tcp| tcp.sender())
            {
                sender.board().audit().unwrap();
                check_limits(case, sender, host.held());
            }
        }
        assert!(alive || transfer.is_over(), "nothing will ever happen again: {:?}", transfer.ends);
    }
    for (end, other) in [(CLIENT_HOST, SERVER_HOST), (SERVER_HOST, CLIENT_HOST)] {
        let (end, other) = (&transfer.ends[end], &transfer.ends[other]);
        if other.error.is_none() && end.error.is_none() {
            assert_eq!(end.received, other.to_send, "the stream arrives whole");
        } else {
            assert!(case.lies.is_some(), "an honest connection fails: {end:?}, {other:?}");
        }
    }
    transfer.close(&mut world);
    while world.step() {
        assert!(world.now < deadline + PATIENCE, "a closed connection never ends");
    }
    for host in &world.hosts {
        assert_eq!(host.tcp_connections().count(), 0, "a connection is left behind");
        assert_eq!(host.held(), ByteCount::ZERO, "memory is left behind");
    }
}

/// Checks that the windows and the memory of an end stay within their limits.
fn check_limits(case: &Case, sender: &Sender, held: ByteCount) {
    let (cwnd, smss) = (sender.cwnd(), sender.smss());
    // No window starts above 64 segments, and none grows by more than the delivered data.
    assert!(cwnd >= smss && cwnd <= smss * 64 + sender.delivered(), "{cwnd} of {sender:?}");
    assert!(sender.control_state().ssthresh.is_none_or(|ssthresh| ssthresh >= smss * 2));
    let buffers = ByteCount(case.send_buffer + case.receive_buffer) + HOLES;
    assert!(held <= buffers, "{held} held of {buffers}");
    assert!(sender.board().in_order_sent().count() < 20_000, "what was sent is never forgotten");
}

/// The stream arrives intact, every transmission obeys its rule, the scoreboard is consistent after
/// every step, and every connection ends.
#[test]
fn connections_over_random_paths() {
    let (all, sets) = (Combination::all(), Combination::judge_sets());
    let all: Vec<_> = match std::env::var_os("AIRTCP_FULL_PRODUCT") {
        Some(_) => {
            let with = |one: Combination| sets.iter().map(move |set| (one.clone(), Some(set)));
            all.into_iter().flat_map(with).collect()
        }
        None => all.into_iter().map(|combination| (combination, None)).collect(),
    };
    in_parallel(&all, |(combination, judges)| check(combination, *judges));
}

fn check(combination: &Combination, judges: Option<&Vec<Choice<dyn LossJudge>>>) {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    // A fixed seed gives the same cases on every machine.
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let result = runner.run(&case(), |case| {
        let judges = judges.unwrap_or(&case.judges).clone();
        run(&case, &combination.clone().with_judges(judges));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{combination}: {error}");
    }
}

/// Without loss, a bulk flow fills min(cwnd, the peer's window) to within one segment whenever ACKs
/// arrive. (`Conduct` shows that it never exceeds it.)
#[test]
fn a_bulk_flow_fills_its_window() {
    for combination in Combination::all() {
        for receive_buffer in [20_000, 6 << 20] {
            let path = Impairment::delay(Duration::from_millis(25));
            let case = Case { receive_buffer, ..Case::bulk(1, path, 3_000_000) };
            let mut world = world(&case, &combination, PeersWindow::default());
            let mut transfer = Transfer::start(&mut world, case.up, case.down);
            let mut filled = 0u32;
            while transfer.ends[CLIENT_HOST].sent < case.up {
                transfer.work(&mut world);
                world.pump();
                let socket = transfer.ends[CLIENT_HOST].socket.unwrap();
                if let Ok(tcp) = world.hosts[CLIENT_HOST].tcp(socket)
                    && let Some(sender) = tcp.sender()
                    && let Some(rwnd) = world.observer.0
                    && transfer.ends[CLIENT_HOST].sent < case.up
                {
                    // A paced sender waits at most as long as its largest quantum takes, and the
                    // peer's window advances meanwhile.
                    let is_paced = sender.pacing_rate().is_some_and(|rate| {
                        let wait = rate.time_for(sender.smss() * 2).max(Duration::from_millis(3));
                        sender.poll_timeout().is_some_and(|at| at <= world.now + wait)
                    });
                    let info = world.hosts[CLIENT_HOST].tcp(socket).unwrap().info(world.now);
                    let limit = sender.cwnd().min(rwnd).min(info.snd_wnd);
                    let held = sender.board().flight_size() + sender.smss();
                    // How much the peer's window has opened since the last transmission is not
                    // known here: the flight may exceed the older window, but must not be smaller.
                    let is_full = held > limit || is_paced;
                    assert!(is_full, "{combination}: {held:?} in flight of {limit:?}");
                    filled += 1;
                }
                assert!(world.step());
            }
            assert!(filled > 10, "{combination}: the window was looked at only {filled} times");
        }
    }
}

/// A bulk flow always has half a window of unsent data, however long a retransmission takes and
/// however the window changes: outstanding data does not reduce this room.
#[test]
fn a_bulk_flow_is_never_short_of_data() {
    let all: Vec<_> = Combination::all().into_iter().chain(Combination::all_judged()).collect();
    in_parallel(&all, |combination| {
        let path = Impairment { loss: 0.01, ..Impairment::delay(Duration::from_millis(50)) };
        let case = Case::bulk(5, path, 2_000_000);
        let path_back = Impairment::delay(case.path.delay);
        let mut world = world(&case, combination, ()).with_path_back(path_back, 1);
        let mut transfer = Transfer::start(&mut world, case.up, case.down);
        let mut looked = 0u32;
        while transfer.ends[CLIENT_HOST].sent < case.up {
            transfer.work(&mut world);
            let socket = transfer.ends[CLIENT_HOST].socket.unwrap();
            let info = world.hosts[CLIENT_HOST].tcp(socket).unwrap().info(world.now);
            if transfer.ends[SERVER_HOST].socket.is_some()
                && transfer.ends[CLIENT_HOST].sent < case.up
            {
                let unsent = info.send_q - info.unacked;
                assert!(unsent >= info.cwnd.half(), "{combination}: {unsent} unsent of {info}");
                looked += 1;
            }
            assert!(world.step());
        }
        assert!(looked > 20, "{combination}: looked only {looked} times");
    });
}

/// The peer's window at the client's last transmission.
#[derive(Default)]
struct PeersWindow(Option<ByteCount>);

impl Observer for PeersWindow {
    fn on_event(&mut self, host: usize, event: &Event) {
        if let (CLIENT_HOST, EventKind::Sent { rwnd, .. }) = (host, &event.kind) {
            self.0 = Some(*rwnd);
        }
    }
}
