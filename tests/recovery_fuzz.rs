//! An operation-list fuzzer for each trait of the sender, over every name in the registry, on a
//! real [`Sender`] without the stack.
//!
//! The receiver may lie: it SACKs data that was never sent or that it later no longer SACKs,
//! reports duplicates that never existed, acknowledges data that cannot have arrived yet, reports
//! corruption anywhere, and echoes any timestamp.
//!
//! With every detection and control, each case draws its judges. `AIRTCP_FULL_PRODUCT=1 cargo test
//! --release --test recovery_fuzz` runs every set of at most two judges, which takes long.

use std::cell::RefCell;
use std::time::Duration;

use airtcp_recovery::registry::{Entry, Make, controls, detections, judges};
use airtcp_recovery::{
    Ack, AckView, Cause, Choice, Combination, CongestionControl, ControlParams, ControlState,
    Decision, Finding, LossDetection, LossJudge, Notice, NoticeKind, Phase, Profile, Raised,
    Ruling, Sender, SenderConfig, Start, Supply, TakesOver, Transmission, Transmit, TxState, View,
    When, WireNeeds,
};
use airtcp_types::{ByteCount, ExtSeq, Instant, Rate, SeqRange, TxNo};
use proptest::prelude::*;

const SMSS: u64 = 1_000;
const FIRST: ExtSeq = ExtSeq(5_000_000);

/// One event for a sender. Numbers are reduced to what is possible at the time.
#[derive(Clone, Debug)]
enum Operation {
    /// The application writes this many segments.
    Write(u64),
    /// The sender sends up to this many segments.
    Send(u64),
    /// An ACK advances by this many segments, or ends inside one.
    Ack { segments: u64, inside: bool, echo: Echo, ece: bool },
    /// An ACK of no new data with these SACK blocks, in segments from SND.UNA; they may be invalid.
    Sack(Vec<(u64, u64)>),
    /// A duplicate ACK.
    Duplicate,
    /// A D-SACK, this many segments from SND.UNA.
    Dsack(i64),
    /// A report that the segment this many above or below SND.UNA, or a place inside it, was
    /// corrupted.
    Special { segments: i64, inside: bool },
    /// An ACK of this many segments that echoes the number of any transmission.
    Echoed { segments: u64, back: u64 },
    /// Another detection, by its index in the list of all combinations.
    Switch(usize),
    /// The path now takes segments of this many bytes.
    Shrink(u64),
    /// An ACK above SND.NXT or below SND.UNA.
    Absurd(i64),
    /// Time passes, in microseconds, and the timers due meanwhile run.
    Pass(u64),
    /// Time passes to the next deadline.
    Deadline,
    /// Nothing happens for this many seconds.
    Idle(u64),
    /// The path takes segments of the initial size again.
    Grow,
    /// The peer's window shrinks to this many bytes.
    Narrow(u64),
    /// The peer opens its window to this many segments, or changes it without opening it.
    Window(u64),
}

#[derive(Clone, Copy, Debug)]
enum Echo {
    None,
    Now,
    Old,
    Future,
}

fn operation() -> impl Strategy<Value = Operation> {
    let echo = prop_oneof![
        4 => Just(Echo::Now),
        2 => Just(Echo::None),
        2 => Just(Echo::Old),
        1 => Just(Echo::Future),
    ];
    prop_oneof![
        4 => (0u64..60).prop_map(Operation::Write),
        8 => (1u64..80).prop_map(Operation::Send),
        6 => (0u64..30, prop::bool::weighted(0.1), echo, prop::bool::weighted(0.1))
            .prop_map(|(segments, inside, echo, ece)| Operation::Ack { segments, inside, echo, ece }),
        6 => prop::collection::vec((0u64..70, 0u64..70), 1..4).prop_map(Operation::Sack),
        4 => Just(Operation::Duplicate),
        2 => (-40i64..10).prop_map(Operation::Dsack),
        3 => (-5i64..60, prop::bool::weighted(0.1))
            .prop_map(|(segments, inside)| Operation::Special { segments, inside }),
        2 => (0u64..10, 0u64..50)
            .prop_map(|(segments, back)| Operation::Echoed { segments, back }),
        1 => (0usize..1_000).prop_map(Operation::Switch),
        1 => (100u64..SMSS).prop_map(Operation::Shrink),
        1 => Just(Operation::Grow),
        1 => (0u64..3 * SMSS).prop_map(Operation::Narrow),
        1 => (-90i64..90).prop_map(Operation::Absurd),
        6 => (0u64..200_000).prop_map(Operation::Pass),
        3 => Just(Operation::Deadline),
        1 => (1u64..200).prop_map(Operation::Idle),
        3 => (0u64..80).prop_map(Operation::Window),
    ]
}

/// A fuzzed sender and its invariants.
struct World {
    sender: Sender,
    supply: Supply,
    now: Instant,
    last_tx: Option<TxNo>,
    max_window: ByteCount,
    /// Whether transmitted segments may be retransmitted in parts.
    cuts: bool,
    /// The smallest segment size so far.
    smallest: u64,
    /// Whether full segments are sent together where possible.
    together: bool,
    /// Whether a reduction is spread over its round trip (RFC 9937).
    proportional: bool,
    /// The detection that the profile uses in place of `sack`.
    sack: Option<&'static Entry<dyn LossDetection>>,
    /// The smallest window of its control, whatever arrives.
    floor: ByteCount,
}

impl World {
    fn new(combination: Combination, profile: Profile, granted: WireNeeds, pacing: bool) -> Self {
        RECOVERY.set(false);
        let (proportional, sack) = (profile.proportional_rate_reduction, profile.sack);
        let rules_recovery = combination.control().entry().takes_over.recovery;
        let floor = ByteCount(if rules_recovery { 4 * SMSS } else { 0 });
        let config = SenderConfig { combination, profile, pacing, events: false };
        let now = Instant::from_millis(1_000);
        let start = Start {
            now,
            first: FIRST,
            smss: ByteCount(SMSS),
            granted,
            handshake_rtt: Some(Duration::from_millis(40)),
            syn_retransmitted: false,
            seed: 0,
        };
        let sender = Sender::new(&config, &start);
        let max_window = sender.cwnd();
        let window_edge = FIRST + 40 * SMSS;
        let supply = Supply { end: FIRST, fin: false, window_edge, nodelay: false };
        Self {
            sender,
            supply,
            now,
            last_tx: None,
            max_window,
            cuts: false,
            smallest: SMSS,
            together: false,
            proportional,
            sack,
            floor,
        }
    }

    fn work(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        let una = self.sender.snd_una();
        match operation {
            Operation::Write(segments) => self.supply.end = self.supply.end + segments * SMSS,
            Operation::Send(count) => return self.send(*count),
            Operation::Ack { segments, inside, echo, ece } => {
                let outstanding = self.sender.snd_nxt().since(una).0;
                let bytes = segments * SMSS + if *inside { 300 } else { 0 };
                let ack = una + bytes.min(outstanding);
                let echo = match echo {
                    Echo::None => None,
                    Echo::Now => Some(Instant::from_millis(self.now.as_millis())),
                    Echo::Old => Some(Instant::from_millis(self.now.as_millis() / 2)),
                    Echo::Future => Some(self.now + Duration::from_secs(1_000)),
                };
                self.ack(Ack { echo, ece: *ece, ..plain(ack) });
            }
            Operation::Sack(blocks) => {
                let block = |&(from, to): &(u64, u64)| {
                    // Some blocks start below SND.UNA, some run backwards, some lie beyond SND.NXT.
                    SeqRange::new(una + from * SMSS - 3 * SMSS, una + to * SMSS)
                };
                let sack: Vec<_> = blocks.iter().map(block).collect();
                self.ack(Ack { sack: &sack, ..plain(una) });
            }
            Operation::Duplicate => self.ack(plain(una)),
            Operation::Dsack(offset) => {
                let start = ExtSeq(una.0.saturating_add_signed(offset * SMSS as i64));
                let dsack = Some(SeqRange::new(start, start + SMSS));
                self.ack(Ack { dsack, ..plain(una) });
            }
            Operation::Special { segments, inside } => {
                let start = una.0.saturating_add_signed(segments * SMSS as i64);
                let (cwnd, corrupted) = (self.sender.cwnd(), ExtSeq(start + u64::from(*inside)));
                let missing = self.sender.board().at(corrupted);
                let starts = missing.is_some_and(|t| t.range.start == corrupted);
                let believed = self.sender.on_special_ack(self.now, corrupted);
                prop_assert!(!believed || starts, "{corrupted:?} is believed");
                prop_assert!(self.sender.cwnd() <= cwnd, "word of corruption opens the window");
            }
            Operation::Echoed { segments, back } => {
                let outstanding = self.sender.snd_nxt().since(una).0;
                let newest = self.last_tx.map_or(0, |tx| tx.0 + 2);
                let echoed = Some(TxNo(newest.saturating_sub(*back)));
                self.ack(Ack { echoed, ..plain(una + (segments * SMSS).min(outstanding)) });
            }
            Operation::Switch(number) => {
                let all = Combination::all();
                let next = &all[number % all.len()];
                // The watched control stays.
                let combination = self.sender.combination().clone();
                let next = combination.with_detection(next.detection().clone());
                let granted = self.sender.set_combination(self.now, &next).is_ok();
                let sack = self.sack.filter(|_| next.detection().entry().name == "sack");
                let expected = match sack.map(Choice::plain) {
                    Some(Ok(sack)) => next.with_detection(sack),
                    _ => next,
                };
                prop_assert!(!granted || *self.sender.combination() == expected);
            }
            Operation::Shrink(size) => {
                self.cuts = true;
                self.smallest = self.smallest.min(*size);
                self.sender.shrink_segments(self.now, ByteCount(*size));
                prop_assert!(self.sender.smss() <= ByteCount(*size));
            }
            Operation::Grow => self.sender.grow_segments(self.now, ByteCount(SMSS)),
            Operation::Narrow(bytes) => {
                self.cuts = true;
                self.supply.window_edge = una + *bytes;
                self.ack(Ack { window_changed: true, ..plain(una) });
            }
            Operation::Absurd(offset) => {
                let ack = ExtSeq(una.0.saturating_add_signed(offset * SMSS as i64));
                if ack < una || ack > self.sender.snd_nxt() {
                    self.ack(plain(ack));
                }
            }
            Operation::Pass(micros) => self.pass(Duration::from_micros(*micros))?,
            Operation::Deadline => {
                if let Some(at) = self.sender.poll_timeout() {
                    self.pass(at.since(self.now))?;
                }
            }
            Operation::Idle(seconds) => self.pass(Duration::from_secs(*seconds))?,
            Operation::Window(segments) => {
                self.supply.window_edge =
                    self.supply.window_edge.max(self.sender.snd_una() + segments * SMSS);
                let una = self.sender.snd_una();
                self.ack(Ack { window_changed: true, window_opened: true, ..plain(una) });
            }
        }
        self.check()
    }

    fn ack(&mut self, ack: Ack<'_>) {
        self.sender.on_ack(self.now, &ack);
    }

    fn pass(&mut self, time: Duration) -> Result<(), TestCaseError> {
        let end = self.now + time;
        // At most one deadline per millisecond is set, usually far fewer.
        for _ in 0..time.as_millis() * 2 + 1_000 {
            let Some(at) = self.sender.poll_timeout().filter(|at| *at <= end) else {
                self.now = end;
                return Ok(());
            };
            self.now = self.now.max(at);
            self.sender.on_timeout(self.now);
            self.check()?;
        }
        Err(TestCaseError::fail("the deadlines do not end"))
    }

    fn send(&mut self, count: u64) -> Result<(), TestCaseError> {
        let mut left = count;
        while left > 0 {
            let (pipe, nxt) = (self.sender.pipe(), self.sender.snd_nxt());
            let sacked = self.sender.board().sacked_ranges().clone();
            let decision = self.sender.next_transmission(self.now, &self.supply);
            let Decision::Send(Transmit { tx, range, rule }) = decision else {
                return self.check();
            };
            prop_assert!(self.last_tx.is_none_or(|last| last < tx), "numbers rise");
            self.last_tx = Some(tx);
            prop_assert!(!range.is_empty() && range.len() <= self.sender.smss(), "{range:?}");
            // Data sent earlier may lie beyond a window that has shrunk.
            let edge = if range.start < nxt { nxt } else { self.supply.window_edge };
            prop_assert!(range.end <= edge && range.end <= self.supply.end);
            prop_assert_eq!(rule.is_retransmission(), range.start < nxt);
            // A cut segment that is partly SACKed may retransmit the SACKed part.
            prop_assert!(self.cuts || !sacked.covers(range), "{range:?} was SACKed");
            if !rule.exceeds_cwnd() {
                prop_assert!(pipe + range.len() <= self.sender.cwnd(), "{rule:?} above cwnd");
            }
            let state = self.sender.board().get(tx).map(|sent| sent.state);
            prop_assert_eq!(state, Some(TxState::InFlight));
            left -= 1;
            if self.together {
                let (nxt, size) = (self.sender.snd_nxt(), self.sender.smss().0);
                let end = self.sender.next_full_segments(self.now, &self.supply, nxt + left * size);
                prop_assert!(end <= self.supply.window_edge.min(self.supply.end) || end == nxt);
                left -= end.since(nxt).0 / size;
                self.last_tx = self.sender.board().last().map(|last| last.tx).max(self.last_tx);
            }
            self.check()?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let sender = &self.sender;
        prop_assert!(sender.board().audit().is_ok(), "{:?}", sender.board().audit());
        let cwnd = sender.cwnd();
        let smss = sender.smss();
        prop_assert!(cwnd >= smss);
        if let Some(ssthresh) = sender.control_state().ssthresh {
            prop_assert!(ssthresh >= smss * 2);
        }
        // The window grows by no more than the delivered data. During a proportional rate reduction
        // the window is the data in flight plus what may follow. A tail loss probe sent into a full
        // window is part of the data in flight and allows nothing to follow. The window is rounded
        // up to a whole segment (RFC 9937 section 3).
        let (in_flight, rounding) =
            if self.proportional { (sender.pipe(), smss) } else { Default::default() };
        // A control with its own recovery has a floor (BBR: four segments).
        let bound =
            (self.max_window.max(self.floor) + sender.delivered() + rounding).max(in_flight);
        prop_assert!(cwnd <= bound, "{cwnd} above {bound}");
        if !sender.board().is_empty() {
            prop_assert!(sender.poll_timeout().is_some(), "nothing watches what is outstanding");
        }
        prop_assert!(sender.rtt().rto() <= Duration::from_secs(120));
        prop_assert!(!TWICE.get(), "the window was reduced twice in a recovery");
        Ok(())
    }
}

fn plain(ack: ExtSeq) -> Ack<'static> {
    Ack {
        ack,
        window_changed: false,
        window_opened: false,
        has_payload: false,
        sack: &[],
        dsack: None,
        echo: None,
        ece: false,
        ce: ByteCount::ZERO,
        echoed: None,
    }
}

thread_local! {
    static RECOVERY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static TWICE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static INNER: RefCell<Option<Choice<dyn CongestionControl>>> = const { RefCell::new(None) };
    static RULINGS: RefCell<Vec<Option<Ruling>>> = const { RefCell::new(Vec::new()) };
}

/// A control that wraps another one and checks it.
#[derive(Debug)]
struct Watched {
    control: Box<dyn CongestionControl>,
    takes_over: TakesOver,
}

impl CongestionControl for Watched {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        let before = self.control.window();
        self.control.on_ack(ack);
        let in_recovery = matches!(ack.phase, Phase::Recovery | Phase::Cwr);
        if (in_recovery && !self.takes_over.recovery) || (ack.ece && !self.takes_over.marks) {
            assert!(
                self.control.window() <= before,
                "no growth in recovery, or by the echo of a mark"
            );
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { .. } => {
                TWICE.set(TWICE.get() || RECOVERY.replace(true));
                let before = self.control.window();
                self.control.on_notice(notice);
                assert!(self.control.window() <= before.max(ByteCount(2 * SMSS)));
                return;
            }
            // A time-out starts a recovery; the end of recovery and an undo end one.
            NoticeKind::Timeout { .. } => RECOVERY.set(true),
            NoticeKind::RecoveryOver | NoticeKind::Undo { .. } => RECOVERY.set(false),
            _ => {}
        }
        self.control.on_notice(notice);
    }

    fn window(&self) -> ByteCount {
        self.control.window()
    }

    fn in_slow_start(&self) -> bool {
        self.control.in_slow_start()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate()
    }

    fn send_quantum(&self) -> Option<ByteCount> {
        self.control.send_quantum()
    }

    fn state(&self) -> ControlState {
        self.control.state()
    }
}

const WATCH: Make<dyn CongestionControl> = |_, params: &ControlParams| {
    INNER.with_borrow(|inner| {
        let choice = inner.as_ref().ok_or("no control to watch")?;
        let entry = choice.entry();
        let control = (entry.make)(plain_parameter(entry, params), params)?;
        Ok(Box::new(Watched { control, takes_over: entry.takes_over }) as _)
    })
};

const WATCHED: Entry<dyn CongestionControl> = Entry {
    name: "watched",
    summary: "looks over another control's shoulder",
    source: "this file",
    make: WATCH,
    ..Entry::BLANK
};

/// An entry for each set of tasks that a control takes over.
static WATCHES: &[Entry<dyn CongestionControl>] =
    &[WATCHED, Entry { takes_over: TakesOver { recovery: true, marks: true }, ..WATCHED }];

/// A judge with rulings chosen by the fuzzer.
#[derive(Debug)]
struct Whim;

impl LossJudge for Whim {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Raised) {
        if let Some(Some(ruling)) = RULINGS.with_borrow(|rulings| rulings.last().copied()) {
            if ack.ece {
                out.reduce(ruling.cause);
            }
            if let Some(last) = view.board.last().filter(|_| ack.duplicate) {
                out.loss(last.tx, ruling);
                out.restart_rto();
            }
        }
    }

    fn rule(&mut self, _: &Finding, _: &Transmission, _: &View<'_>, _: bool) -> Option<Ruling> {
        RULINGS.with_borrow_mut(|rulings| {
            // The rulings repeat in a cycle.
            let ruling = rulings.pop()?;
            rulings.insert(0, ruling);
            ruling
        })
    }
}

static WHIM: Entry<dyn LossJudge> = Entry {
    name: "whim",
    summary: "rules as the fuzzer says",
    source: "this file",
    make: |_, _| Ok(Box::new(Whim)),
    ..Entry::BLANK
};

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        Just(When::Now),
        Just(When::Never),
        (0u64..300).prop_map(|millis| When::After(Duration::from_millis(millis))),
    ]
}

fn rulings() -> impl Strategy<Value = Vec<Option<Ruling>>> {
    let cause = prop_oneof![Just(Cause::Corruption), Just(Cause::Reordering)];
    let ruling = (when(), when(), cause).prop_map(|(repair, reduce, cause)| Ruling {
        repair,
        reduce,
        cause,
    });
    prop::collection::vec(prop::option::of(ruling), 1..5)
}

fn profile() -> impl Strategy<Value = Profile> {
    prop::sample::select(Profile::all())
}

fn granted() -> impl Strategy<Value = WireNeeds> {
    (prop::bool::weighted(0.8), any::<bool>()).prop_map(|(sack, timestamps)| WireNeeds {
        sack,
        timestamps,
        ..WireNeeds::ALL
    })
}

/// Runs a list of operations, and then checks that an honest receiver still gets everything.
fn run(mut world: World, operations: &[Operation]) -> Result<(), TestCaseError> {
    TWICE.set(false);
    for operation in operations {
        world.work(operation)?;
    }
    let end = world.supply.end.max(world.sender.snd_nxt());
    for _ in 0..10_000 {
        if world.sender.snd_una() >= end {
            return Ok(());
        }
        world.supply.window_edge = world.supply.window_edge.max(world.sender.snd_una() + 40 * SMSS);
        world.send(10)?;
        world.pass(Duration::from_millis(20))?;
        if let Some(at) = world.sender.poll_timeout().filter(|_| world.sender.board().is_empty()) {
            // The pacer waits. If the only feedback came after minutes, the measured round trip is
            // minutes long.
            let wait = at.since(world.now);
            // A rate measured with segments that were cut small is proportionally lower.
            let longest = world.now.since(Instant::ZERO) * SMSS.div_ceil(world.smallest) as u32;
            prop_assert!(wait <= longest, "no round trip was so long");
            world.pass(wait)?;
        }
        // The receiver acknowledges everything that was ever sent.
        world.ack(plain(world.sender.snd_nxt()));
        world.check()?;
    }
    Err(TestCaseError::fail("an honest receiver does not get it all"))
}

/// The example parameter of a control that requires one.
fn plain_parameter(
    entry: &Entry<dyn CongestionControl>,
    params: &ControlParams,
) -> Option<&'static str> {
    entry.example.filter(|_| (entry.make)(None, params).is_err())
}

fn watch(entry: &'static Entry<dyn CongestionControl>) -> Combination {
    INNER.set(Some(Choice::plain(entry).expect("a listed control")));
    let watches = WATCHES.iter().find(|watches| watches.takes_over == entry.takes_over);
    let watched = Choice::new(watches.expect("one for each set"), None);
    let plain: Combination = "rack/reno".parse().expect("a combination");
    plain.with_control(watched.expect("it is laid down"))
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_detection_survives_random_input(
        operations in operations(),
        profile in profile(),
        granted in granted(),
        pacing in any::<bool>(),
    ) {
        for entry in detections() {
            for parameter in [None, entry.example] {
                let Ok(choice) = Choice::new(entry, parameter) else { continue };
                let combination = watch(controls()[0]).with_detection(choice);
                run(World::new(combination, profile.clone(), granted, pacing), &operations)?;
            }
        }
    }

    #[test]
    fn every_combination_survives_random_input(
        operations in operations(),
        profile in profile(),
        granted in granted(),
        pacing in any::<bool>(),
        drawn in prop::sample::select(Combination::judge_sets()),
    ) {
        let full = std::env::var_os("AIRTCP_FULL_PRODUCT").is_some();
        for combination in Combination::all() {
            for judges in if full { Combination::judge_sets() } else { vec![drawn.clone()] } {
                let combination = combination.clone().with_judges(judges.clone());
                let watched = watch(combination.control().entry())
                    .with_detection(combination.detection().clone())
                    .with_judges(judges);
                let world = World::new(watched, profile.clone(), granted, pacing);
                run(world, &operations)
                    .map_err(|error| TestCaseError::fail(format!("{combination}: {error}")))?;
            }
        }
    }

    #[test]
    fn segments_that_leave_together_are_those_that_leave_one_by_one(
        operations in operations(),
        profile in profile(),
        granted in granted(),
        pacing in any::<bool>(),
        combination in prop::sample::select(Combination::all()),
        judges in prop::sample::select(Combination::judge_sets()),
    ) {
        let combination = combination.with_judges(judges);
        let world = || World::new(combination.clone(), profile.clone(), granted, pacing);
        let (mut apart, mut together) = (world(), World { together: true, ..world() });
        for operation in &operations {
            apart.work(operation)?;
            together.work(operation)?;
            prop_assert_eq!(format!("{:?}", apart.sender), format!("{:?}", together.sender));
        }
    }

    #[test]
    fn every_judge_survives_random_input_and_every_detection_random_rulings(
        operations in operations(),
        profile in profile(),
        granted in granted(),
        rulings in rulings(),
        detection in 0..detections().len(),
    ) {
        for entry in judges().iter().copied().chain(std::iter::once(&WHIM)) {
            RULINGS.set(rulings.clone());
            let judge = Choice::plain(entry).expect("a listed judge");
            let recovery = Choice::plain(detections()[detection]).expect("a listed name");
            let combination =
                watch(controls()[1]).with_detection(recovery).with_judges(vec![judge]);
            run(World::new(combination, profile.clone(), granted, false), &operations)?;
        }
    }
}
