//! One combination at one loss rate.

use airtcp_sim::{FlowResult, Interval, RunResult};
use serde::Serialize;

use crate::{Findings, LabError};

#[derive(Serialize)]
struct Record<'a, C> {
    seed: u64,
    #[serde(flatten)]
    case: &'a C,
    /// bit/s of all flows.
    goodput: f64,
    timeouts: u64,
    segments: u64,
    retransmissions: u64,
    reductions: u64,
}

/// Means over the seeds, of all flows together.
pub(super) struct Point {
    /// bit/s.
    pub(super) goodput: Interval,
    pub(super) timeouts: f64,
    pub(super) reductions: f64,
}

impl Point {
    /// Keeps a record of every run. `case` is what they have in common.
    pub(super) fn of(
        findings: &mut Findings,
        case: &impl Serialize,
        results: &[RunResult],
    ) -> Result<Self, LabError> {
        let record = |result: &RunResult| {
            let sum = |of: fn(&FlowResult) -> u64| result.flows.iter().map(of).sum();
            Record {
                seed: result.seed,
                case,
                goodput: result.flows.iter().map(|flow| flow.goodput).sum(),
                timeouts: sum(|flow| flow.timeouts.unwrap_or(0)),
                segments: sum(|flow| flow.segments_sent),
                retransmissions: sum(|flow| flow.retransmissions),
                reductions: sum(|flow| flow.reductions.unwrap_or(0)),
            }
        };
        let records: Vec<_> = results.iter().map(record).collect();
        for record in &records {
            findings.record(record)?;
        }
        let of = |value: fn(&Record<'_, _>) -> f64| {
            Interval::of(&records.iter().map(value).collect::<Vec<_>>())
        };
        Ok(Self {
            goodput: of(|record| record.goodput),
            timeouts: of(|record| record.timeouts as f64).mean,
            reductions: of(|record| record.reductions as f64).mean,
        })
    }
}
