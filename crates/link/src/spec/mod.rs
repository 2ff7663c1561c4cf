//! The description of one direction of a link, in netem's syntax.
//!
//! A description is a list of words. Every part is optional and may be given once, except `down`
//! and `only`, which may be repeated. Changes at a time (`at`) come last. Times have a unit (`s`,
//! `ms`, `us`, `ns`), rates are in `bit`, `kbit`, `mbit` or `gbit`, sizes in `b`, `kb` or `mb`
//! (multiples of 1024, as in tc), shares in per cent.
//!
//! [`PARTS`] lists every part with its meaning and an example.
//!
//! netem's correlations, `loss state` and `reorder` are not supported. Instead of netem's `slot`
//! there is `aggregate`, with another rule: see [`AggregateSpec`].

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
    /// Half duplex, with the air time of each frame beyond that of its bytes.
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
    /// The share of packets that start a burst of losses, and the length of a burst in packets.
    pub burst: Option<(Share, u64)>,
    /// Packets lost by number.
    pub drop: Option<DropSpec>,
    /// The times without loss and with total loss, which alternate: the duty cycle.
    pub duty: Option<(Duration, Duration)>,
    /// The share of duplicated packets.
    pub duplicate: Option<Share>,
    /// The probability that a bit is flipped, `0.0..=0.5`.
    pub biterror: Option<f64>,
    /// Corruption per packet.
    pub corrupt: Option<CorruptSpec>,
    /// Times at which the link is down.
    pub down: Vec<DownSpec>,
    /// The packets to which errors are limited.
    pub only: Only,
    /// The seed of all random numbers of this direction.
    pub seed: u64,
    /// Changes at given times, in the order of time.
    pub changes: Vec<ChangeSpec>,
}

impl LinkSpec {
    /// Returns the delay line at the start and after each of its changes.
    pub fn delays(&self) -> impl Iterator<Item = &DelaySpec> {
        let changed = self.changes.iter().filter_map(|change| change.delay.as_ref());
        std::iter::once(&self.delay).chain(changed)
    }

    /// Returns the random loss at the start, if any, and after each of its changes.
    pub fn losses(&self) -> impl Iterator<Item = &LossSpec> {
        let changed = self.changes.iter().filter_map(|change| change.loss.as_ref());
        self.loss.iter().chain(changed)
    }

    /// Whether the link has a rate or a trace, at the start or after a change.
    pub fn has_rate(&self) -> bool {
        self.rate != RateSpec::Unlimited || self.changes.iter().any(|change| change.rate.is_some())
    }
}

/// The rate of a direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RateSpec {
    /// No limit: packets leave at once.
    #[default]
    Unlimited,
    /// A constant rate.
    Constant {
        /// The rate.
        rate: Rate,
        /// The packet overhead: bytes that each packet counts beyond its own.
        overhead: ByteCount,
    },
    /// A mahimahi packet-delivery trace, with the name of its file.
    Trace(String),
}

/// A token-bucket policer, as tc-police: a packet with more bytes than there are tokens is dropped.
/// The bucket is full at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoliceSpec {
    /// The rate at which the bucket fills.
    pub rate: Rate,
    /// The size of the bucket. Larger packets never pass.
    pub burst: ByteCount,
}

/// The size and discipline of a queue.
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
        /// The acceptable standing delay.
        target: Duration,
        /// The time in which the delay must fall below the target.
        interval: Duration,
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool,
    },
    /// FQ-CoDel, RFC 8290: a CoDel queue per flow, served round robin.
    FqCoDel {
        /// The acceptable standing delay.
        target: Duration,
        /// The time in which the delay must fall below the target.
        interval: Duration,
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool,
    },
    /// Random early detection on the average queue length in packets.
    Red {
        /// The average length below which no packet is marked or dropped.
        min: u32,
        /// The average length from which on every packet is marked or dropped.
        max: u32,
        /// The probability just below `max`.
        probability: Share,
    },
    /// At this number of queued packets or more, marks ECN-capable packets and drops others.
    Mark(u32),
}

/// The delay line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DelaySpec {
    /// The mean delay.
    pub base: Duration,
    /// The jitter, in the unit of `distribution`.
    pub jitter: Duration,
    /// The distribution of the jitter.
    pub distribution: Distribution,
    /// Whether packets stay in order despite jitter and changes of the delay: no packet leaves
    /// before one that entered earlier.
    pub in_order: bool,
}

/// The distribution of jitter. Negative delays become zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Distribution {
    /// Uniform between `-jitter` and `+jitter`, netem's default.
    #[default]
    Uniform,
    /// Normal, with the standard deviation `jitter`.
    Normal,
    /// Pareto of shape 3 (that of netem's table), shifted to mean 0 and scaled to the standard
    /// deviation `jitter`.
    Pareto,
}

/// An additional delay for a share of packets, which reorders them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DelayedSpec {
    /// The share of packets.
    pub share: Share,
    /// The mean of the additional delay.
    pub mean: Duration,
    /// Its standard deviation. Negative delays become zero.
    pub deviation: Duration,
}

/// Aggregation of packets into bursts, as by the frame aggregation of Wi-Fi (A-MPDU), the request
/// and grant cycle of cable modems, or ACK compression. The rule is that of quiche's simulator
/// (`EnableAggregation`): a burst leaves `timeout` after its first packet arrived, or when it is
/// full. netem's `slot` differs: it opens at times that do not depend on packets, and the packets
/// that a full slot cannot carry wait for the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AggregateSpec {
    /// The longest time that the first packet of a burst is held.
    pub timeout: Duration,
    /// The number of packets of a full burst.
    pub packets: Option<usize>,
    /// The number of bytes of a full burst, those of its last packet included.
    pub bytes: Option<ByteCount>,
}

/// A change of some parts at a given time. Parts that are `None` stay as they are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChangeSpec {
    /// The time of the change, after the clock's origin.
    pub at: Duration,
    /// The rate, and the bytes that each packet counts beyond its own.
    pub rate: Option<(Rate, ByteCount)>,
    /// The delay line.
    pub delay: Option<DelaySpec>,
    /// Random loss.
    pub loss: Option<LossSpec>,
}

/// Random loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossSpec {
    /// Each packet is lost independently.
    Random(Share),
    /// Gilbert-Elliott: a packet is lost with `loss_bad` in the bad state and `loss_good` in the
    /// good one.
    GilbertElliott {
        /// The probability of good to bad, per packet: `p`.
        to_bad: Share,
        /// The probability of bad to good, per packet: `r`.
        to_good: Share,
        /// The loss in the bad state: `1-h`.
        loss_bad: Share,
        /// The loss in the good state: `1-k`.
        loss_good: Share,
    },
}

/// Packets lost by number. Only the packets that [`Only`] selects are counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DropSpec {
    /// Each n-th packet.
    Every(u64),
    /// These packets, as the first and last number of each range; the first packet is 1.
    Numbers(Vec<(u64, u64)>),
}

/// Corruption per packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CorruptSpec {
    /// The share of packets that are corrupted, or that start a run.
    pub share: Share,
    /// The share of the corrupted packets that are hit in the header; the others are hit in the
    /// payload, and stay unchanged if they have none. `None` hits anywhere.
    pub header: Option<Share>,
    /// The length of a run of corrupted packets.
    pub run: u64,
    /// The length of the hit range in bits: its first and last bit are flipped, each bit between
    /// with probability 1/2.
    pub bits: u32,
}

/// Times at which a link is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DownSpec {
    /// The start, after the clock's origin.
    pub from: Duration,
    /// The duration.
    pub length: Duration,
    /// The period of repetition, if any.
    pub every: Option<Duration>,
}

/// The limits of loss and corruption. Disconnection, duplication and queues are not limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Only {
    /// Errors affect only packets with payload.
    pub payload: bool,
    /// Errors affect only this direction, if one description is used for both.
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
    /// Both directions, in the order of their input ports.
    pub const BOTH: [Self; 2] = [Self::Forth, Self::Back];

    /// Returns the opposite direction.
    pub const fn other(self) -> Self {
        match self {
            Self::Forth => Self::Back,
            Self::Back => Self::Forth,
        }
    }
}
