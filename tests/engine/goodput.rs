//! The goodput of every combination over loss and round-trip time, compared with a table under
//! version control, so that a change of behaviour is visible in review.
//!
//! `AIRTCP_RECORD=1 cargo test --test engine goodput` rewrites the table.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use airtcp_recovery::Combination;
use airtcp_types::{ByteCount, Instant, Rate};

use crate::parallel::in_parallel;
use crate::transfer::Transfer;
use crate::world::{CLIENT, Impairment, SERVER, SERVER_HOST, World, host_config};

const RATE: Rate = Rate::from_bits_per_sec(10_000_000);
const TIME: Duration = Duration::from_secs(30);
const LOSSES: [f64; 5] = [0.0, 0.001, 0.01, 0.02, 0.05];
const RTTS: [u64; 4] = [1, 20, 100, 300];
const MTU: u64 = 1500;

/// Returns the application's goodput in Mbit/s during the first 30 s of a bulk transfer.
fn goodput(combination: &Combination, loss: f64, rtt: Duration) -> f64 {
    let bdp = RATE.bytes_in(rtt).0 / MTU;
    let path = |loss| Impairment {
        loss,
        bottleneck: Some((RATE, bdp.max(10) as usize)),
        ..Impairment::delay(rtt / 2)
    };
    let mut world = World::new(
        host_config(CLIENT, combination, false),
        host_config(SERVER, combination, false),
        path(loss),
        1,
        (),
    )
    .with_path_back(path(0.0), 1);
    let mut transfer = Transfer::start(&mut world, u64::MAX / 2, 0);
    let end = Instant::ZERO + TIME;
    while world.now < end {
        transfer.work(&mut world);
        assert!(world.step());
    }
    let received = ByteCount(transfer.ends[SERVER_HOST].received);
    Rate::from_bytes_over(received, TIME).bits_per_sec() as f64 / 1e6
}

fn table() -> String {
    let mut text = String::from(
        "# Goodput by combination, loss and round-trip time\n\n\
         Mbit/s of payload in the first 30 s of one bulk transfer in virtual time: a 10 Mbit/s \
         bottleneck with a\ndrop-tail queue of one bandwidth-delay product (at least 10 packets), \
         random loss in the data direction,\none seed. Written by `AIRTCP_RECORD=1 cargo test \
         --test engine goodput`.\n\n| combination | loss |",
    );
    RTTS.iter().for_each(|rtt| write!(text, " {rtt} ms |").unwrap());
    text.push_str("\n|---|---|");
    RTTS.iter().for_each(|_| text.push_str("---|"));
    text.push('\n');
    for rows in in_parallel(&Combination::all(), rows) {
        text.push_str(&rows);
    }
    text
}

fn rows(combination: &Combination) -> String {
    let mut text = String::new();
    for loss in LOSSES {
        write!(text, "| {combination} | {} % |", loss * 100.0).unwrap();
        for rtt in RTTS {
            let goodput = goodput(combination, loss, Duration::from_millis(rtt));
            write!(text, " {goodput:.2} |").unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn goodput_is_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/goodput.md");
    let measured = table();
    if std::env::var_os("AIRTCP_RECORD").is_some() {
        std::fs::write(&path, &measured).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (was, is)) in recorded.lines().zip(measured.lines()).enumerate() {
        assert_eq!(was, is, "line {} of {}", line + 1, path.display());
    }
    assert_eq!(recorded.lines().count(), measured.lines().count(), "rows in {}", path.display());
}
