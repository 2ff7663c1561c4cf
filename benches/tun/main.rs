//! Bulk over a TUN device, both ways, with the kernel as the peer: this stack beside a bare smoltcp
//! poll loop, pair by pair in one run, because only ratios mean anything on a shared machine.
//!
//! It needs root, and says so and measures nothing without.

mod ours;
mod peer;
mod smoltcp_loop;

use std::time::Duration;

use peer::{Direction, Sample, Subject};

const PAIRS: usize = 9;
const TIME: Duration = Duration::from_secs(1);

fn main() {
    // `cargo test --benches` and `cargo bench -- --test` want a sign of life, not a measurement.
    let pairs = if std::env::args().any(|arg| arg == "--test") { 1 } else { PAIRS };
    if let Err(reason) = airtcp_testbed::requirements() {
        eprintln!("SKIPPED: bulk over TUN was not measured: {reason}");
        return;
    }
    let ours = ours::Ours::start();
    let smoltcp = smoltcp_loop::SmoltcpLoop::start();
    println!("Gbit/s of payload, kernel cubic peer, MTU 1500, {pairs} pairs of {TIME:?};");
    println!("s/GB: CPU seconds of both ends and the kernel between them per gigabyte");
    println!(
        "{:<16} {:>8} {:>8} {:>7} {:>16} {:>8} {:>8} {:>7}",
        "", "airtcp", "smoltcp", "ratio", "min to max", "s/GB", "smoltcp", "ratio"
    );
    for direction in [Direction::IntoStack, Direction::OutOfStack] {
        let mut rows = Vec::new();
        for _ in 0..pairs {
            rows.push((ours.measure(direction, TIME), smoltcp.measure(direction, TIME)));
        }
        let column = |of: fn(&(Sample, Sample)) -> f64| spread(rows.iter().map(of));
        let (a, _, _) = column(|(a, _)| a.rate);
        let (b, _, _) = column(|(_, b)| b.rate);
        let (ratio, low, high) = column(|(a, b)| a.rate / b.rate);
        let (a_cpu, _, _) = column(|(a, _)| a.cpu);
        let (b_cpu, _, _) = column(|(_, b)| b.cpu);
        let (cpu_ratio, _, _) = column(|(a, b)| a.cpu / b.cpu);
        println!(
            "{:<16} {a:>8.2} {b:>8.2} {ratio:>7.2} {low:>7.2} to {high:.2} \
             {a_cpu:>11.2} {b_cpu:>8.2} {cpu_ratio:>7.2}",
            direction.name()
        );
    }
}

/// Median, minimum and maximum.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}
