//! Connections that start with the cached path state of earlier ones (RFC 9040).

use super::*;

/// Transfers of 20 kB by six users after a long transfer, over 20 Mbit/s, 100 ms and 2 % of loss.
fn page(path_memory: bool, seed: u64) -> FlowResult {
    let size = ByteCount(20_000);
    let users =
        App::ShortFlows { size: (size, size), gap: Duration::ZERO, pareto: false, users: 6 };
    let of = |app| FlowSpec { path_memory, ..flow("rack/bbr3/spike", app) };
    let wire = Wire {
        forth: "rate 20mbit delay 50ms limit 167 loss 2%".parse().unwrap(),
        back: "rate 20mbit delay 50ms limit 167".parse().unwrap(),
    };
    let secs = Duration::from_secs;
    let flows = vec![
        FlowSpec { stop: Some(secs(20)), ..of(BULK) },
        FlowSpec { start: secs(22), ..of(users) },
    ];
    let topology = Topology::Chain { wires: vec![wire] };
    let scenario = Scenario {
        seed,
        duration: secs(40),
        samples: true,
        flows,
        ..Scenario::new("page", topology)
    };
    run(&scenario, None).unwrap().flows.remove(1)
}

#[test]
fn short_transfers_take_less_time_where_connections_learn_from_each_other() {
    let mean =
        |path_memory| (1..=3).map(|seed| page(path_memory, seed).exchanges.mean).sum::<f64>() / 3.0;
    let (without, with) = (mean(false), mean(true));
    assert!(with < 0.9 * without, "{with} s and {without} s without");
}
