//! Formatting of a description.

use std::fmt::{self, Display};
use std::time::Duration;

use super::value::{show_rate, show_size, show_time};
use super::{
    AggregateSpec, ChangeSpec, CorruptSpec, DelaySpec, Discipline, Distribution, DownSpec,
    DropSpec, LinkSpec, LossSpec, PoliceSpec, QueueSpec, RateSpec, Way,
};

impl Display for LinkSpec {
    /// Parts with their default value are left out, except the seed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_rate_spec(&self.rate, f)?;
        if let Some(overhead) = self.half {
            write!(f, "half {} ", show_time(overhead))?;
        }
        if let Some(PoliceSpec { rate, burst }) = self.police {
            write!(f, "police rate {} burst {} ", show_rate(rate), show_size(burst))?;
        }
        show_queue(&self.queue, f)?;
        if self.delay != DelaySpec::default() {
            write!(f, "{} ", self.delay)?;
        }
        if let Some(delayed) = self.delayed {
            let (mean, deviation) = (show_time(delayed.mean), show_time(delayed.deviation));
            write!(f, "delayed {} {mean} {deviation} ", delayed.share)?;
        }
        if let Some((one, other)) = self.paths {
            write!(f, "paths {} {} ", show_time(one), show_time(other))?;
        }
        if let Some(aggregate) = self.aggregate {
            show_aggregate(&aggregate, f)?;
        }
        self.show_errors(f)?;
        for down in &self.down {
            write!(f, "{down} ")?;
        }
        if self.only.payload {
            write!(f, "only payload ")?;
        }
        match self.only.way {
            Some(Way::Forth) => write!(f, "only forth ")?,
            Some(Way::Back) => write!(f, "only back ")?,
            None => {}
        }
        write!(f, "seed {}", self.seed)?;
        self.changes.iter().try_for_each(|change| show_change(change, f))
    }
}

impl Display for DownSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "down {} {}", show_time(self.from), show_time(self.length))?;
        match self.every {
            Some(every) => write!(f, " every {}", show_time(every)),
            None => Ok(()),
        }
    }
}

impl LinkSpec {
    fn show_errors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(loss) = &self.loss {
            write!(f, "{loss} ")?;
        }
        if let Some((share, length)) = self.burst {
            write!(f, "burst {share} {length} ")?;
        }
        match &self.drop {
            Some(DropSpec::Every(n)) => write!(f, "drop every {n} ")?,
            Some(DropSpec::Numbers(ranges)) => {
                let ranges: Vec<_> = ranges.iter().map(show_range).collect();
                write!(f, "drop {} ", ranges.join(","))?;
            }
            None => {}
        }
        if let Some((on, off)) = self.duty {
            write!(f, "duty {} {} ", show_time(on), show_time(off))?;
        }
        if let Some(share) = self.duplicate {
            write!(f, "duplicate {share} ")?;
        }
        if let Some(rate) = self.biterror {
            write!(f, "biterror {rate:e} ")?;
        }
        match self.corrupt {
            Some(corrupt) => show_corrupt(&corrupt, f),
            None => Ok(()),
        }
    }
}

impl Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random(share) => write!(f, "loss {share}"),
            Self::GilbertElliott { to_bad, to_good, loss_bad, loss_good } => {
                write!(f, "loss gemodel {to_bad} {to_good} {loss_bad} {loss_good}")
            }
        }
    }
}

impl Display for DelaySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay {}", show_time(self.base))?;
        if !self.jitter.is_zero() {
            write!(f, " {}", show_time(self.jitter))?;
            match self.distribution {
                Distribution::Uniform => {}
                Distribution::Normal => write!(f, " distribution normal")?,
                Distribution::Pareto => write!(f, " distribution pareto")?,
            }
        }
        if self.in_order { write!(f, " inorder") } else { Ok(()) }
    }
}

fn show_change(change: &ChangeSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, " at {}", show_time(change.at))?;
    if let Some((rate, overhead)) = change.rate {
        write!(f, " rate {}", show_rate(rate))?;
        if overhead.0 > 0 {
            write!(f, " {}", overhead.0)?;
        }
    }
    if let Some(delay) = &change.delay {
        write!(f, " {delay}")?;
    }
    match &change.loss {
        Some(loss) => write!(f, " {loss}"),
        None => Ok(()),
    }
}

fn show_aggregate(aggregate: &AggregateSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "aggregate {} ", show_time(aggregate.timeout))?;
    if let Some(packets) = aggregate.packets {
        write!(f, "packets {packets} ")?;
    }
    match aggregate.bytes {
        Some(bytes) => write!(f, "bytes {} ", show_size(bytes)),
        None => Ok(()),
    }
}

fn show_rate_spec(rate: &RateSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match rate {
        RateSpec::Unlimited => Ok(()),
        RateSpec::Constant { rate, overhead } if overhead.0 == 0 => {
            write!(f, "rate {} ", show_rate(*rate))
        }
        RateSpec::Constant { rate, overhead } => {
            write!(f, "rate {} {} ", show_rate(*rate), overhead.0)
        }
        RateSpec::Trace(file) => write!(f, "trace {file} "),
    }
}

fn show_queue(queue: &QueueSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (queue.packets, queue.bytes) {
        (packets, None) if packets == QueueSpec::default().packets => {}
        (packets, None) => write!(f, "limit {packets} ")?,
        (packets, Some(bytes)) => write!(f, "limit {packets} {} ", show_size(bytes))?,
    }
    match queue.discipline {
        Discipline::DropTail => Ok(()),
        Discipline::CoDel { target, interval, ecn } => {
            show_codel("codel", target, interval, ecn, f)
        }
        Discipline::FqCoDel { target, interval, ecn } => {
            show_codel("fq_codel", target, interval, ecn, f)
        }
        Discipline::Red { min, max, probability } => {
            write!(f, "red min {min} max {max} probability {probability} ")
        }
        Discipline::Mark(packets) => write!(f, "mark {packets} "),
    }
}

fn show_codel(
    name: &str,
    target: Duration,
    interval: Duration,
    ecn: bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (target, interval) = (show_time(target), show_time(interval));
    let ecn = if ecn { "ecn " } else { "" };
    write!(f, "{name} target {target} interval {interval} {ecn}")
}

fn show_range(&(first, last): &(u64, u64)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

fn show_corrupt(corrupt: &CorruptSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "corrupt {} ", corrupt.share)?;
    if let Some(header) = corrupt.header {
        write!(f, "header {header} ")?;
    }
    if corrupt.run > 1 {
        write!(f, "run {} ", corrupt.run)?;
    }
    if corrupt.bits > 1 { write!(f, "bits {} ", corrupt.bits) } else { Ok(()) }
}
