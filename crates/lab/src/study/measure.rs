//! The measures of a run, by name.

use airtcp_sim::toml::Source;
use airtcp_sim::{FlowResult, Interval, RunResult, Scenario, SimError};

use crate::{draw, theory};

/// A measure, with its unit in tables and claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    /// The unit, shown after the name in tables.
    pub(crate) unit: &'static str,
    /// The factor from the unit of records (seconds, bit/s) to `unit`.
    pub(crate) scale: f64,
    pub(crate) decimals: usize,
    /// Whether it can be restricted to the flows of one name.
    pub(super) is_of_flows: bool,
    /// Whether it needs every sample of the run.
    pub(super) needs_samples: bool,
    of: fn(&Run<'_>) -> Option<f64>,
}

/// A run as the input of measures.
struct Run<'a> {
    result: &'a RunResult,
    /// The selected flows.
    flows: Vec<&'a FlowResult>,
    /// The length of the warm-up in seconds; samples before its end do not count.
    warm_up: f64,
}

const fn count(name: &'static str, of: fn(&Run<'_>) -> Option<f64>) -> Measure {
    Measure { name, unit: "", scale: 1.0, decimals: 1, is_of_flows: true, needs_samples: false, of }
}

/// All measures.
const MEASURES: &[Measure] = &[
    Measure {
        unit: "Mbit/s",
        scale: 1e-6,
        decimals: 3,
        ..count("goodput", |run| Some(run.flows.iter().map(|flow| flow.goodput).sum()))
    },
    Measure { unit: "s", decimals: 3, ..count("time", |run| run.time()) },
    count("segments", |run| run.sum(|flow| Some(flow.segments_sent))),
    count("retransmissions", |run| run.sum(|flow| Some(flow.retransmissions))),
    count("spurious", |run| run.sum(|flow| Some(flow.spurious))),
    count("timeouts", |run| run.sum(|flow| flow.timeouts)),
    count("reductions", |run| run.sum(|flow| flow.reductions)),
    Measure { unit: "ms", scale: 1e3, ..count("rtt", |run| run.rtt()) },
    Measure {
        unit: "ms",
        scale: 1e3,
        needs_samples: true,
        ..count("rtt-p95", |run| run.percentile(0.95))
    },
    Measure { decimals: 4, is_of_flows: false, ..count("jain", |run| Some(run.result.jain)) },
    Measure {
        is_of_flows: false,
        ..count("queue-drops", |run| {
            let links = run.result.links.iter();
            Some(links.map(|link| link.counters.queue_dropped).sum::<u64>() as f64)
        })
    },
    Measure {
        unit: "%",
        scale: 100.0,
        is_of_flows: false,
        ..count("utilisation", |run| {
            let used = run.result.links.iter().filter_map(|link| link.utilisation);
            used.max_by(f64::total_cmp)
        })
    },
];

impl Run<'_> {
    /// Returns the sum over the flows; `None` if a flow does not have the figure, as RRTP flows
    /// lack some.
    fn sum(&self, of: fn(&FlowResult) -> Option<u64>) -> Option<f64> {
        let all: Option<u64> = self.flows.iter().map(|flow| of(flow)).sum();
        all.map(|all| all as f64)
    }

    /// Returns the time when the last flow finished, if all flows did.
    fn time(&self) -> Option<f64> {
        let all: Option<Vec<f64>> = self.flows.iter().map(|flow| flow.finished).collect();
        all?.into_iter().max_by(f64::total_cmp)
    }

    /// Returns the mean of all samples.
    fn rtt(&self) -> Option<f64> {
        let samples: u64 = self.flows.iter().map(|flow| flow.rtt.count).sum();
        let sum: f64 = self.flows.iter().map(|flow| flow.rtt.mean * flow.rtt.count as f64).sum();
        (samples > 0).then(|| sum / samples as f64)
    }

    /// Returns the percentile of the round-trip times after the warm-up; `share` is between 0 and
    /// 1.
    fn percentile(&self, share: f64) -> Option<f64> {
        let samples = self.flows.iter().filter_map(|flow| flow.samples.as_ref());
        let samples = samples.flat_map(|samples| &samples.rtt);
        let counted = samples.filter(|(at, _)| *at >= self.warm_up).map(|(_, rtt)| *rtt);
        let mut counted: Vec<f64> = counted.collect();
        counted.sort_by(f64::total_cmp);
        let rank = (counted.len() as f64 * share).ceil() as usize;
        counted.get(rank.checked_sub(1)?).copied()
    }
}

/// A measure of all flows, or of the flows of one name: `goodput`, `goodput:web`.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) measure: Measure,
    pub(super) flow: Option<String>,
    /// The byte offset in the file, for errors.
    at: usize,
}

impl Asked {
    /// Returns every measure, of all flows.
    pub(crate) fn every() -> Vec<Self> {
        MEASURES.iter().map(|measure| Self { measure: *measure, flow: None, at: 0 }).collect()
    }

    /// Parses a measure at the byte offset `at` of its file.
    ///
    /// # Errors
    ///
    /// The mistake, and the accepted values.
    pub(super) fn read(text: &str, at: usize) -> Result<Self, String> {
        let (name, flow) = match text.split_once(':') {
            Some((name, flow)) => (name, Some(flow.to_owned())),
            None => (text, None),
        };
        let Some(measure) = MEASURES.iter().find(|measure| measure.name == name).copied() else {
            let known: Vec<_> = names().map(|name| format!("`{name}`")).collect();
            return Err(format!("unknown measure `{name}`, expected one of {}", known.join(", ")));
        };
        if flow.is_some() && !measure.is_of_flows {
            return Err(format!("`{name}` is of all flows together: write \"{name}\""));
        }
        Ok(Self { measure, flow, at })
    }

    /// Checks that the scenario has the flow.
    ///
    /// # Errors
    ///
    /// The scenario does not have it.
    pub(super) fn check(&self, source: &Source<'_>, scenario: &Scenario) -> Result<(), SimError> {
        match &self.flow {
            Some(flow) if scenario.flows.iter().all(|known| known.name != *flow) => {
                let what =
                    format!("not every scenario has a flow `{flow}`: give one `name = \"{flow}\"`");
                Err(source.refuse(self.at, &what))
            }
            _ => Ok(()),
        }
    }

    /// Returns the name as written in the file.
    pub(crate) fn name(&self) -> String {
        match &self.flow {
            Some(flow) => format!("{}:{flow}", self.measure.name),
            None => self.measure.name.to_owned(),
        }
    }

    /// Returns the label of an axis: name, unit, and the direction that is better.
    pub(super) fn label(&self) -> String {
        let (name, unit) = (self.name(), self.measure.unit);
        let label = if unit.is_empty() { name } else { format!("{name}, {unit}") };
        match self.measure.name {
            "goodput" | "jain" | "utilisation" => draw::more(&label),
            "segments" => label,
            _ => draw::less(&label),
        }
    }

    /// Formats a mean with its interval for tables.
    pub(super) fn show(&self, mean: &Interval) -> String {
        match mean.n {
            0 => "-".to_owned(),
            _ => theory::show(mean, self.measure.scale, self.measure.decimals),
        }
    }

    /// Returns the figure of a run, in seconds and bit/s; `None` if there is nothing to measure.
    pub(super) fn of(&self, result: &RunResult, warm_up: f64) -> Option<f64> {
        let is_asked =
            |flow: &&FlowResult| self.flow.as_ref().is_none_or(|name| *name == flow.name);
        let flows = result.flows.iter().filter(is_asked).collect();
        (self.measure.of)(&Run { result, flows, warm_up })
    }
}

/// Returns the name of every measure.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    MEASURES.iter().map(|measure| measure.name)
}
