//! Measures the sender's cost of an ACK as a ratio to `sack/reno`: in order, behind one hole and
//! behind many holes. Also measures how this cost grows from 1,000 to 10,000 segments in flight. It
//! should grow no faster than the logarithm of their number.
//!
//! Each combination alternates with the reference, and the minimum of each counts, because other
//! load on the machine can only add time. Every flow is in congestion avoidance, where all judges
//! are active, and gets the wire features that it needs: SACK blocks, special ACKs for the holes,
//! echoed transmission numbers.

use std::hint::black_box;
use std::time::Duration;

use airtcp_recovery::{
    Ack, Choice, Combination, Decision, Phase, Profile, Sender, SenderConfig, Start, Supply,
    WireNeeds, registry::controls,
};
use airtcp_types::{ByteCount, ExtSeq, Instant, SeqRange, TxNo};

const SMSS: ByteCount = ByteCount(1448);
const FIRST: ExtSeq = ExtSeq(1 << 32);
const RTT: Duration = Duration::from_millis(20);
const TURNS: usize = 11;
const REFERENCE: &str = "sack/reno";
/// The largest acceptable cost of a combination, relative to the reference.
const LIMIT: f64 = 3.0;
/// With many holes, one segment in this many is lost.
const EVERY: u64 = 10;
/// The number of SACK blocks that fit beside timestamps.
const BLOCKS: usize = 3;

#[derive(Clone, Copy)]
enum Work {
    InOrder,
    OneHole,
    ManyHoles,
}

const WORKS: [(&str, Work); 3] =
    [("in order", Work::InOrder), ("one hole", Work::OneHole), ("many holes", Work::ManyHoles)];

/// A sender with a number of segments in flight, and its receiver.
struct Flow {
    sender: Sender,
    needs: WireNeeds,
    now: Instant,
    /// The time between the arrivals of two segments.
    gap: Duration,
    /// The peer's window.
    window: ByteCount,
    /// The number of each segment's latest transmission.
    latest: Vec<TxNo>,
    acks: u32,
}

impl Flow {
    /// Starts a flow with `segments` in flight, limited by the peer's window. The congestion window
    /// has been reduced once and is larger than that. Returns `None` for `newreno/bbr3`, whose
    /// window stays smaller: BBR models the path, and here ACKs arrive at once.
    fn new(combination: &Combination, segments: u32) -> Option<Self> {
        let now = Instant::from_millis(1_000);
        let profile = Profile { initial_window: 4 * segments, ..Profile::modern() };
        let config =
            SenderConfig { combination: combination.clone(), profile, ..SenderConfig::default() };
        let start = Start {
            now,
            first: FIRST,
            smss: SMSS,
            granted: WireNeeds::ALL,
            handshake_rtt: Some(RTT),
            syn_retransmitted: false,
            seed: 0,
        };
        let mut flow = Self {
            sender: Sender::new(&config, &start),
            needs: combination.needs(),
            now,
            gap: RTT / (2 * segments),
            window: SMSS * u64::from(4 * segments),
            latest: Vec::new(),
            acks: 0,
        };
        flow.send();
        flow.now += RTT;
        for last in 1..=10 {
            flow.arrives(last, FIRST, &[SeqRange::new(Self::seq(1), Self::seq(last + 1))]);
        }
        flow.in_order(11);
        for _ in 0..4 * segments {
            flow.in_order(2);
        }
        flow.window = SMSS * u64::from(segments);
        while flow.sender.board().flight_size() > flow.window {
            flow.in_order(2);
        }
        let is_full = flow.sender.board().flight_size() == flow.window;
        let name = combination.to_string();
        assert!(is_full || name.starts_with("newreno/bbr3"), "{name}: its window is too small");
        assert_eq!(flow.sender.phase(), Phase::Open, "{combination}");
        flow.acks = 0;
        is_full.then_some(flow)
    }

    fn seq(segment: u64) -> ExtSeq {
        FIRST + SMSS.0 * segment
    }

    /// The index of the segment at SND.UNA.
    fn oldest(&self) -> u64 {
        self.sender.snd_una().since(FIRST).0 / SMSS.0
    }

    /// Acknowledges `segments` further segments in order with one ACK.
    fn in_order(&mut self, segments: u64) {
        let end = self.oldest() + segments;
        self.arrives(end - 1, Self::seq(end), &[]);
    }

    /// Delivers the ACK that a segment's arrival causes, and sends what it allows.
    fn arrives(&mut self, segment: u64, ack: ExtSeq, sack: &[SeqRange]) {
        self.now += self.gap;
        let echoed = self.latest.get(segment as usize).copied();
        let ack = Ack {
            ack,
            window_changed: false,
            window_opened: false,
            has_payload: false,
            sack: if self.needs.sack { sack } else { &[] },
            dsack: None,
            echo: None,
            ece: false,
            ce: ByteCount::ZERO,
            echoed: echoed.filter(|_| self.needs.txno_echo),
        };
        self.sender.on_ack(self.now, &ack);
        self.send();
        self.acks += 1;
    }

    /// Loses a segment. With HACK, its header survives, so that a special ACK reports it.
    fn is_lost(&mut self, segment: u64) {
        self.now += self.gap;
        if self.needs.hack {
            black_box(self.sender.on_special_ack(self.now, Self::seq(segment)));
            self.send();
            self.acks += 1;
        }
    }

    fn send(&mut self) {
        loop {
            let supply = Supply {
                end: self.sender.snd_nxt() + (1 << 30),
                fin: false,
                window_edge: self.sender.snd_una() + self.window.0,
                nodelay: false,
            };
            let Decision::Send(sent) = self.sender.next_transmission(self.now, &supply) else {
                break;
            };
            let segment = (sent.range.start.since(FIRST).0 / SMSS.0) as usize;
            match self.latest.get_mut(segment) {
                Some(latest) => *latest = sent.tx,
                None => self.latest.push(sent.tx),
            }
        }
    }

    #[inline(never)]
    fn work(&mut self, work: Work, segments: u64) {
        let first = self.oldest();
        match work {
            Work::InOrder => (0..segments).for_each(|_| self.in_order(2)),
            Work::OneHole => self.behind_one_hole(first, first + segments),
            Work::ManyHoles => self.behind_many_holes(first, first + segments),
        }
    }

    fn behind_one_hole(&mut self, first: u64, end: u64) {
        self.window = self.window + self.window;
        self.is_lost(first);
        for segment in first + 1..end {
            let block = SeqRange::new(Self::seq(first + 1), Self::seq(segment + 1));
            self.arrives(segment, Self::seq(first), &[block]);
        }
    }

    /// Loses every tenth segment, then lets the repairs arrive before new data that was sent
    /// earlier. `le:echo` learns this order from the echoed numbers and takes that data for lost,
    /// so it handles another thousand losses.
    fn behind_many_holes(&mut self, first: u64, end: u64) {
        self.window = self.window + self.window;
        let mut blocks = Vec::new();
        for segment in first..end {
            let hole = segment - (segment - first) % EVERY;
            if segment == hole {
                self.is_lost(segment);
                continue;
            }
            let block = SeqRange::new(Self::seq(hole + 1), Self::seq(segment + 1));
            if segment == hole + 1 {
                blocks.insert(0, block);
                blocks.truncate(BLOCKS);
            } else {
                blocks[0] = block;
            }
            self.arrives(segment, Self::seq(first), &blocks);
        }
        for hole in (first..end).step_by(EVERY as usize) {
            let ack = Self::seq((hole + EVERY).min(end));
            blocks.retain(|block| block.start > ack);
            self.arrives(hole, ack, &blocks);
        }
    }
}

/// Nanoseconds per ACK, including the transmissions that it allows.
fn nanos(combination: &Combination, work: Work, segments: u32) -> f64 {
    let mut flow = Flow::new(combination, segments).expect("its window is large enough");
    let began = std::time::Instant::now();
    flow.work(work, u64::from(segments));
    let took = began.elapsed();
    black_box(&flow.sender);
    took.as_nanos() as f64 / f64::from(flow.acks)
}

/// Gives a control with a fixed window the window that the other controls have at this point.
fn with_window(combination: &Combination, segments: u32) -> Combination {
    let name = combination.control().entry().name;
    let entry = controls().iter().find(|entry| entry.name == name).expect("it is in the registry");
    let window = (2 * segments).to_string();
    match Choice::new(entry, Some(&window)) {
        Ok(choice) => combination.clone().with_control(choice),
        Err(_) => combination.clone(),
    }
}

fn main() {
    // `cargo test` runs this too, as a smoke test.
    let (turns, many) =
        if std::env::args().any(|arg| arg == "--bench") { (TURNS, 10_000) } else { (1, 1_000) };
    let reference = REFERENCE.parse().expect("a combination");
    let least = |nanos: &dyn Fn() -> f64| (0..turns).map(|_| nanos()).fold(f64::MAX, f64::min);
    println!("{REFERENCE}, 1000 segments in flight, nanoseconds per ACK:");
    for (name, work) in WORKS {
        println!("  {name}: {:.0}", least(&|| nanos(&reference, work, 1_000)));
    }
    println!("times {REFERENCE}, and (what {many} in flight cost, times 1000):");
    let names = WORKS.map(|(name, _)| format!("{name:>18}")).concat();
    println!("{:<28}{names}", "");
    let mut above = Vec::new();
    for combination in Combination::all().into_iter().chain(Combination::all_judged()) {
        let [one, ten] = [1_000, many].map(|n| with_window(&combination, n));
        print!("{:<28}", combination.to_string());
        if [(&one, 1_000), (&ten, many)].into_iter().any(|(c, n)| Flow::new(c, n).is_none()) {
            println!("{:>18}", "its window is less");
            continue;
        }
        for (name, work) in WORKS {
            let mut costs = [f64::MAX; 3];
            for _ in 0..turns {
                for (cost, (combination, segments)) in
                    costs.iter_mut().zip([(&reference, 1_000), (&one, 1_000), (&ten, many)])
                {
                    *cost = cost.min(nanos(combination, work, segments));
                }
            }
            let [reference, one, ten] = costs;
            print!("{:>10.2} ({:.2})", one / reference, ten / one);
            if one > LIMIT * reference {
                above.push(format!("{combination}, {name}"));
            }
        }
        println!();
    }
    let above = if above.is_empty() { "none".to_owned() } else { above.join("; ") };
    println!("above {LIMIT} times {REFERENCE}: {above}");
}
