//! Bulk over a TUN device, both ways, with the kernel as the peer: this stack beside a bare smoltcp
//! poll loop, pair by pair in one run, because only ratios mean anything on a shared machine.
//!
//! It needs root, and says so and measures nothing without.

mod ours;
mod peer;
mod smoltcp_loop;

use std::time::Duration;

use peer::{Direction, Subject};

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
    println!("Gbit/s of payload, kernel cubic peer, MTU 1500, {pairs} pairs of {TIME:?}");
    println!("{:<16} {:>8} {:>8} {:>7} {:>16}", "", "airtcp", "smoltcp", "ratio", "min to max");
    for direction in [Direction::IntoStack, Direction::OutOfStack] {
        let mut rows = Vec::new();
        for _ in 0..pairs {
            let (a, b) = (ours.measure(direction, TIME), smoltcp.measure(direction, TIME));
            rows.push((a, b, a / b));
        }
        let (a, _, _) = spread(rows.iter().map(|row| row.0));
        let (b, _, _) = spread(rows.iter().map(|row| row.1));
        let (ratio, low, high) = spread(rows.iter().map(|row| row.2));
        println!("{:<16} {a:>8.2} {b:>8.2} {ratio:>7.2} {low:>7.2} to {high:.2}", direction.name());
    }
}

/// Median, minimum and maximum.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}
