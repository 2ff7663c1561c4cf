//! `bbr3` on whole connections in the simulator.

mod draft;
mod draft_paths;
mod quiche;
mod quiche_flows;
mod rig;
mod survival;

use std::time::Duration;

use airtcp_types::{Instant, Rate};

use rig::{Look, PAYLOAD, Rig};

const fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_sec(mbit * 1_000_000)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A link with a change at a time that a run without the change has determined: until then both
/// runs are the same.
fn changed(link: &str, at: Instant, change: &str) -> String {
    format!("{link} at {}ns {change}", at.as_nanos())
}

/// The relative deviation of `rate` from the payload rate of a link of rate `link`.
fn error(rate: Rate, link: Rate) -> f64 {
    rate.bits_per_sec() as f64 / (link.bits_per_sec() as f64 * PAYLOAD) - 1.0
}

/// The utilisation between the first and the last look: the delivered payload over what a link of
/// rate `link` carries.
fn utilisation(looks: &[Look], link: Rate) -> f64 {
    let (first, last) = (&looks[0], &looks[looks.len() - 1]);
    let bytes = last.delivered - first.delivered;
    error(Rate::from_bytes_over(bytes, last.at.since(first.at)), link) + 1.0
}

/// Runs a bulk flow until it enters `state`, and returns the time.
#[track_caller]
fn bulk_into(link: &str, back: &str, state: &str) -> (Rig, Instant) {
    let mut rig = Rig::over(link, back);
    rig.bulk();
    let at = rig.run_into(state);
    (rig, at)
}

/// Returns the last look before the first stay in `state` from `at` on, all looks in it, and the
/// first look after it.
#[track_caller]
fn stay<'a>(rig: &'a Rig, state: &str, at: Instant) -> (&'a Look, &'a [Look], Option<&'a Look>) {
    let log = rig.since(at);
    let first = log.iter().position(|look| look.is(state)).expect("it was in the state");
    let rest = &log[first..];
    let end = rest.iter().position(|look| !look.is(state)).unwrap_or(rest.len());
    let before = &rig.log()[rig.log().len() - rest.len() - 1];
    (before, &rest[..end], rest.get(end))
}
