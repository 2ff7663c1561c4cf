//! Sums the figures of all flows of a run.

use airtcp_sim::{FlowResult, RunResult};

use crate::prelude::*;

/// Adds the sums to a record: goodput in bit/s, and counts.
pub(super) fn with(fields: Fields, result: &RunResult) -> Fields {
    let sum = |of: fn(&FlowResult) -> u64| -> u64 { result.flows.iter().map(of).sum() };
    fields
        .with("goodput", result.flows.iter().map(|flow| flow.goodput).sum::<f64>())
        .with("timeouts", sum(|flow| flow.timeouts.unwrap_or(0)))
        .with("segments", sum(|flow| flow.segments_sent))
        .with("retransmissions", sum(|flow| flow.retransmissions))
        .with("reductions", sum(|flow| flow.reductions.unwrap_or(0)))
}

/// Draws the goodput over the loss rate at several values of an axis, in the given unit.
pub(super) fn figure(
    title: String,
    part: &Slice<'_>,
    axis: &str,
    shown: &[&str],
    (unit, scale): (&str, f64),
) -> Figure {
    let lines = shown.iter().map(|value| {
        let of = part.at(axis, *value);
        of.line(*value, "loss", scale, |cell| cell.mean("goodput"))
    });
    let y = draw::linear(&draw::more(&format!("goodput, {unit}")));
    draw::figure(title, draw::linear("lost packets, %"), y, lines)
}

/// Returns the means of a count at several values of an axis.
pub(super) fn counts(part: &Slice<'_>, axis: &str, values: &[&str], field: &str) -> Vec<String> {
    let mean = |value: &&str| format!("{:.0}", part.at(axis, *value).mean(field).mean);
    values.iter().map(mean).collect()
}
