//! Measures ten thousand flows through one base station on real TUN devices, beside a bridge that
//! only forwards. The two alternate in one run, because only ratios are meaningful on a shared
//! machine.
//!
//! A radio is slow because of its air time. The station's clock therefore runs a thousand times as
//! fast as real time, so that the station's work is measured and not its air time. Frames are lost
//! at the usual rate. Snoop is not measured: its timer runs on the same clock and would expire
//! before the kernel has passed on an ACK.
//!
//! Without root it prints the reason and measures only the memory.

mod flows;
mod hasty;
mod path;

use airtcp_basestation::{Bridge, Policy, Station, StationConfig};
use airtcp_link::Arq;

use flows::Flows;
use hasty::Hasty;
use path::{Load, Path};

const PAIRS: usize = 9;
const FLOWS: u32 = 10_000;

fn station(policy: Policy) -> Station {
    let radio = "error 5% queue 1000 seed 1".parse().expect("words of a radio");
    let config = StationConfig { radio, policy, arq: Arq::MacLink, ..StationConfig::default() };
    Station::new(&config).expect("settings that fit together")
}

fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    flows::memory(&mut station(Policy::TcpEcn), FLOWS, if is_test { 10_000 } else { 1_000_000 });
    if let Err(reason) = airtcp_testbed::requirements() {
        eprintln!("SKIPPED: packets through TUN devices were not measured: {reason}");
        return;
    }
    let pairs = if is_test { 1 } else { PAIRS };
    let bridge = Path::start(Bridge::new(512));
    println!(
        "{FLOWS} flows, 1440 bytes of data and an ACK for every second segment, {pairs} rounds each;"
    );
    println!("us: one way towards the mobile, one packet at a time");
    println!(
        "{:<10} {:>12} {:>12} {:>7} {:>14} {:>22} {:>22}",
        "", "packets/s", "bridge", "ratio", "min to max", "us p50 (bridge)", "us p99 (bridge)"
    );
    for policy in [Policy::Plain, Policy::TcpEcn] {
        let path = Path::start(Hasty(station(policy)));
        let mut rounds = Vec::new();
        for _ in 0..pairs {
            let both = [&path, &bridge].map(|path| {
                let mut flows = Flows::new(FLOWS);
                // Make every flow known and proven before anything is measured.
                path.load(&mut flows, Load::Packets(4 * u64::from(FLOWS)));
                let rate = path.load(&mut flows, Load::Full);
                (rate, path.load(&mut flows, Load::Single))
            });
            rounds.push(both);
        }
        let of = |index: usize| spread(rounds.iter().map(|both| both[index].0.per_second));
        let (ratio, low, high) =
            spread(rounds.iter().map(|both| both[0].0.per_second / both[1].0.per_second));
        let late = |index: usize, share: f64| {
            spread(rounds.iter().map(|both| both[index].1.late(share))).0
        };
        let shown = |share| format!("{:.1} ({:.1})", late(0, share), late(1, share));
        println!(
            "{:<10} {:>12.0} {:>12.0} {ratio:>7.2} {:>14} {:>22} {:>22}",
            policy.name(),
            of(0).0,
            of(1).0,
            format!("{low:.2} to {high:.2}"),
            shown(0.5),
            shown(0.99),
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
