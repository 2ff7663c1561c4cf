//! The description of one direction of a link, in netem's syntax.
//!
//! A description is a list of words; every part may be left out and stands at most once, but `down`
//! and `only`, which add up. Changes at a time (`at`) come last. Times have a unit (`s`, `ms`,
//! `us`, `ns`), rates are in `bit`, `kbit`, `mbit` or `gbit`, sizes in `b`, `kb` or `mb` (of 1024,
//! as in tc), shares in per cent.
//!
//! [`PARTS`] has every part with its meaning and an example.
//!
//! Not supported, because nothing needs them yet: netem's correlations, `loss state` and `reorder`.
//! netem's `slot` is `aggregate` here, with another rule: see [`AggregateSpec`].

mod chance;
mod error;
mod parse;
pub(crate) mod part;
mod show;
pub(crate) mod value;
pub(crate) mod words;

use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

pub use error::SpecError;
pub(crate) use parse::of_tc;
pub use part::{PARTS, Part};
pub(crate) use part::{names_of, nearest_of, part};
pub use value::{Share, rate, share, show_rate, show_time, time};

/// The description of one direction of a link. See the [module](self) for the words.
///
/// ```
/// use airtcp_link::LinkSpec;
///
/// let text = "rate 10mbit delay 5ms 1ms distribution normal loss gemodel 1% 10% 75% 0.1% limit 50 seed 7";
/// let spec: LinkSpec = text.parse()?;
/// assert_eq!(spec.queue.packets, 50);
/// assert_eq!(spec.to_string().parse::<LinkSpec>()?, spec);
///
/// let error = "rate 10mbps".parse::<LinkSpec>().unwrap_err().to_string();
/// assert!(error.starts_with("at byte 5, `10mbps`: expected a rate with its unit"));
/// assert!(error.ends_with("such as `10mbit`"));
/// # Ok::<(), airtcp_link::SpecError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkSpec {
    /// The rate.
    pub rate: RateSpec,
    /// Half duplex: the air time each frame costs beyond its bytes.
    pub half: Option<Duration>,
    /// The token bucket that packets pass before the queue.
    pub police: Option<PoliceSpec>,
    /// The queue and its discipline.
    pub queue: QueueSpec,
    /// The delay line.
    pub delay: DelaySpec,
    /// Additional delay of some packets, which reorders them.
    pub delayed: Option<DelayedSpec>,
    /// The delays of two paths that packets alternate between.
    pub paths: Option<(Duration, Duration)>,
    /// Aggregation of packets into bursts.
    pub aggregate: Option<AggregateSpec>,
    /// Random loss.
    pub loss: Option<LossSpec>,
    /// The share of packets that start a burst of losses, and how many packets it has.
    pub burst: Option<(Share, u64)>,
    /// Packets lost by number.
    pub drop: Option<DropSpec>,
    /// The times without loss and with total loss, which alternate.
    pub duty: Option<(Duration, Duration)>,
    /// The share of duplicated packets.
    pub duplicate: Option<Share>,
    /// The probability that a bit is flipped, `0.0..=0.5`.
    pub biterror: Option<f64>,
    /// Corruption per packet.
    pub corrupt: Option<CorruptSpec>,
    /// The outages.
    pub down: Vec<DownSpec>,
    /// The packets that errors are limited to.
    pub only: Only,
    /// The seed of all random numbers of this direction.
    pub seed: u64,
    /// Changes while the link runs, in the order of time.
    pub changes: Vec<ChangeSpec>,
}

impl LinkSpec {
    /// The delay line, as it is at the start and after each change of it.
    pub fn delays(&self) -> impl Iterator<Item = &DelaySpec> {
        let changed = self.changes.iter().filter_map(|change| change.delay.as_ref());
        std::iter::once(&self.delay).chain(changed)
    }

    /// Random loss, if there is any at the start, and after each change of it.
    pub fn losses(&self) -> impl Iterator<Item = &LossSpec> {
        let changed = self.changes.iter().filter_map(|change| change.loss.as_ref());
        self.loss.iter().chain(changed)
    }

    /// Whether it has a rate or a trace, from the start or from a change on.
    pub fn has_rate(&self) -> bool {
        self.rate != RateSpec::Unlimited || self.changes.iter().any(|change| change.rate.is_some())
    }
}

/// The rate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RateSpec {
    /// At once.
    #[default]
    Unlimited,
    /// At a constant rate.
    Constant {
        /// The rate.
        rate: Rate,
        /// Bytes that each packet counts beyond its own.
        overhead: ByteCount,
    },
    /// By a mahimahi packet-delivery trace, named by the file it is in.
    Trace(String),
}

/// A token-bucket policer, as tc-police: a packet that finds fewer tokens than it has bytes is
/// dropped. The bucket is full at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoliceSpec {
    /// How fast tokens come.
    pub rate: Rate,
    /// Bytes that the bucket holds. A larger packet never passes.
    pub burst: ByteCount,
}

/// A queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueSpec {
    /// The maximum number of packets.
    pub packets: usize,
    /// The maximum number of bytes, if limited.
    pub bytes: Option<ByteCount>,
    /// The discipline.
    pub discipline: Discipline,
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self { packets: 1_000, bytes: None, discipline: Discipline::DropTail }
    }
}

/// A queue discipline.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Discipline {
    /// Tail drop.
    #[default]
    DropTail,
    /// CoDel, RFC 8289.
    CoDel {
        /// The standing delay it allows.
        target: Duration,
        /// The time it allows it to come down in.
        interval: Duration,
        /// Whether ECT packets are marked where others are dropped.
        ecn: bool,
    },
    /// FQ-CoDel, RFC 8290: CoDel for each flow, and flows in turns.
    FqCoDel {
        /// The standing delay it allows.
        target: Duration,
        /// The time it allows it to come down in.
        interval: Duration,
        /// Whether ECT packets are marked where others are dropped.
        ecn: bool,
    },
    /// Random early detection on the averaged length in packets.
    Red {
        /// Nothing happens below.
        min: u32,
        /// Every packet is marked or dropped from here on.
        max: u32,
        /// The probability just below `max`.
        probability: Share,
    },
    /// Marks, or drops what cannot be marked, from so many queued packets on.
    Mark(u32),
}

/// The delay line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DelaySpec {
    /// The mean delay.
    pub base: Duration,
    /// The spread round it.
    pub jitter: Duration,
    /// Its shape.
    pub distribution: Distribution,
    /// Whether packets stay in order, whatever the jitter or a change of the delay: none leaves
    /// before one that entered earlier.
    pub in_order: bool,
}

/// The shape of jitter. A delay below zero is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Distribution {
    /// Even between `-jitter` and `+jitter`, which is netem's default.
    #[default]
    Uniform,
    /// Normal, `jitter` its standard deviation.
    Normal,
    /// Pareto of shape 3 (that of netem's table), moved to mean 0 and standard deviation `jitter`.
    Pareto,
}

/// A share of packets delayed past the order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DelayedSpec {
    /// Which share.
    pub share: Share,
    /// The mean of the delay on top.
    pub mean: Duration,
    /// Its standard deviation. A delay below zero is none.
    pub deviation: Duration,
}

/// Packets gathered into bursts, as by the frame aggregation of Wi-Fi (A-MPDU), the request and
/// grant of cable modems, or whatever compresses ACKs. The rule is that of quiche's simulator
/// (`EnableAggregation`): a burst leaves `timeout` after its first packet came, or when it is full.
/// netem's `slot` opens at times that do not depend on packets, and what a full slot has no room
/// for waits for the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AggregateSpec {
    /// How long the first packet of a burst is held at most.
    pub timeout: Duration,
    /// A burst of this many packets is full.
    pub packets: Option<usize>,
    /// A burst of this many bytes, the last packet's included, is full.
    pub bytes: Option<ByteCount>,
}

/// New values of some parts, from a time on. What it does not name stays as it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChangeSpec {
    /// From when, after the clock's origin.
    pub at: Duration,
    /// The rate, and bytes that each packet counts beyond its own.
    pub rate: Option<(Rate, ByteCount)>,
    /// The delay line.
    pub delay: Option<DelaySpec>,
    /// Random loss.
    pub loss: Option<LossSpec>,
}

/// Random loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossSpec {
    /// Each packet by itself.
    Random(Share),
    /// Gilbert-Elliott: a packet is lost with `loss_bad` in the bad state and `loss_good` in the
    /// good one.
    GilbertElliott {
        /// From good to bad, per packet: `p`.
        to_bad: Share,
        /// From bad to good, per packet: `r`.
        to_good: Share,
        /// `1-h`.
        loss_bad: Share,
        /// `1-k`.
        loss_good: Share,
    },
}

/// Packets lost by number. Only packets that [`Only`] admits are counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DropSpec {
    /// Each n-th.
    Every(u64),
    /// These, first and last of each range; the first packet is 1.
    Numbers(Vec<(u64, u64)>),
}

/// Corruption per packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CorruptSpec {
    /// The share of packets that are corrupted, or that start a run.
    pub share: Share,
    /// In which share of them the header is hit, and the payload in the others; `None` for
    /// anywhere. What is to be hit in the payload and has none stays whole.
    pub header: Option<Share>,
    /// Packets in a row that are corrupted.
    pub run: u64,
    /// Bits in a row that are hit: the first and the last are flipped, those between with an even
    /// chance.
    pub bits: u32,
}

/// When a link is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DownSpec {
    /// From when, after the clock's origin.
    pub from: Duration,
    /// For how long.
    pub length: Duration,
    /// Again and again, so far apart.
    pub every: Option<Duration>,
}

/// What loss and corruption are limited to. Disconnection, duplication and queues know no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Only {
    /// To packets that carry payload.
    pub payload: bool,
    /// To one direction, where one description is used for both.
    pub way: Option<Way>,
}

/// A direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From port 0 to port 1.
    Forth,
    /// From port 1 to port 0.
    Back,
}

impl Way {
    /// Both, in the order of the ports packets come in by.
    pub const BOTH: [Self; 2] = [Self::Forth, Self::Back];

    /// The opposite one.
    pub const fn other(self) -> Self {
        match self {
            Self::Forth => Self::Back,
            Self::Back => Self::Forth,
        }
    }
}
