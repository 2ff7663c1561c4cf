//! Short networks of the simulator, each with features that the others lack.

use airtcp_sim::toml;
use serde_json::Value;

use crate::digest::{Packets, Record};

/// A scenario whose first flow has the strategies of the case.
pub(crate) struct Network {
    pub(crate) name: &'static str,
    /// Whether the first flow may be RRTP.
    pub(crate) carries_rrtp: bool,
    toml: &'static str,
}

/// RRTP for both kinds of network, with and without a network profile.
pub(crate) const RRTP: &[&str] =
    &["rrtp", "rrtp:wireless-last-hop", "rrtp:general+rate=2mbit+rtt=60ms+loss=1%"];

/// Networks that cover every part of the link emulator, every policy and ARQ of the base station,
/// and every application.
pub(crate) const NETWORKS: &[Network] = &[
    Network {
        name: "clean",
        carries_rrtp: true,
        toml: r#"
            duration = "3s"
            samples = true
            [bottleneck]
            forth = "rate 4mbit delay 20ms limit 25"
            back = "rate 4mbit delay 20ms limit 25"
            [[flow]]
            [[flow]]
            strategies = "sack/reno"
            profile = "paper"
            way = "back"
            bulk = { size = "300kB" }
        "#,
    },
    Network {
        name: "loss",
        carries_rrtp: true,
        toml: r#"
            duration = "3s"
            warm_up = "500ms"
            samples = true
            bottleneck = "rate 6mbit delay 15ms limit 50 loss 2%"
            [[flow]]
            [[flow]]
            strategies = "rack/cubic"
            start = "300ms"
            sack = false
            timestamps = false
            bulk = { size = "400kB" }
        "#,
    },
    Network {
        name: "loss-paper",
        carries_rrtp: false,
        toml: r#"
            duration = "3s"
            bottleneck = "rate 6mbit delay 15ms limit 50 loss 3% only payload"
            [[flow]]
            profile = "paper"
            timestamps = false
            bulk = { size = "1MB" }
            [[flow]]
            strategies = "rack/cubic"
            pacing = true
            receive_buffer = "32KiB"
            mtu = 576
        "#,
    },
    Network {
        name: "reordering",
        carries_rrtp: true,
        toml: r#"
            duration = "3s"
            [[wire]]
            forth = "rate 6mbit delay 20ms 6ms paths 0ms 3ms delayed 2% 20ms 8ms duplicate 1%"
            back = "rate 6mbit delay 20ms 2ms distribution normal inorder"
            [[wire]]
            forth = "delay 2ms"
            [[flow]]
        "#,
    },
    Network {
        name: "bursts",
        carries_rrtp: true,
        toml: r#"
            duration = "4s"
            [bottleneck]
            forth = "rate 6mbit delay 15ms loss gemodel 1% 25% 60% 0.1% limit 40"
            back = "rate 1mbit delay 15ms burst 1% 3 down 1500ms 400ms"
            [[flow]]
            [[flow]]
            strategies = "rack/cubic"
            way = "back"
            ping_pong = { size = "200B" }
        "#,
    },
    Network {
        name: "bit-errors",
        carries_rrtp: true,
        toml: r#"
            duration = "3s"
            bottleneck = "rate 6mbit delay 15ms corrupt 4% header 20% biterror 5e-7 limit 40"
            [[flow]]
            [[flow]]
            strategies = "rack/cubic/hack+dcr:timer"
        "#,
    },
    Network {
        name: "queues",
        carries_rrtp: true,
        toml: r#"
            duration = "3s"
            [[wire]]
            forth = "rate 8mbit half 100us delay 5ms codel"
            [[wire]]
            forth = "rate 6mbit delay 10ms red min 5 max 15 probability 10%"
            [[flow]]
            [[flow]]
            strategies = "rack/cubic"
            start = "1s"
        "#,
    },
    Network {
        name: "short-flows",
        carries_rrtp: false,
        toml: r#"
            duration = "3s"
            samples = true
            bottleneck = "rate 6mbit delay 10ms loss 3% limit 20"
            [[flow]]
            short_flows = { smallest = "300B", largest = "60kB", gap = "50ms", pareto = true, users = 8 }
            [[flow]]
            strategies = "rack/cubic"
            request_response = { request = "300B", response = "20kB", think = "30ms" }
        "#,
    },
    Network {
        name: "station-plain",
        carries_rrtp: true,
        toml: r#"
            duration = "4s"
            bottleneck = "rate 20mbit delay 20ms"
            [station]
            radio = "rate 2mbit error 30% tries 2 down 2s 300ms"
            arq = "mac"
            [[flow]]
            [[flow]]
            strategies = "rack/cubic"
            way = "back"
        "#,
    },
    Network {
        name: "station-tcp-ecn",
        carries_rrtp: false,
        toml: r#"
            duration = "5s"
            bottleneck = "rate 20mbit delay 20ms loss 0.5%"
            [station]
            radio = "rate 2mbit error 40% tries 2 at 1s 100 at 2s 300 at 3s 100"
            arq = "mac+link"
            policy = "tcp-ecn"
            [[flow]]
            mark_aware = true
            [[flow]]
            mark_aware = true
            strategies = "sack/reno"
            bulk = { size = "100kB" }
        "#,
    },
    Network {
        name: "station-snoop",
        carries_rrtp: false,
        toml: r#"
            duration = "4s"
            bottleneck = "rate 20mbit delay 20ms loss 0.5%"
            [station]
            radio = "rate 2mbit biterror 2e-5 tries 1 rts"
            arq = "head"
            policy = "snoop"
            [[flow]]
        "#,
    },
];

impl Network {
    /// Runs the case with these strategies.
    pub(crate) fn run(&self, strategies: &str) -> Record {
        let settings = [format!("flow.0.strategies={strategies}").parse().unwrap()];
        let source = toml::Source { name: self.name, text: self.toml, settings: &settings };
        let scenario = source.read(|trace| Err(format!("no trace `{trace}`"))).unwrap();
        let mut packets = Packets::default();
        let mut result = airtcp_sim::run(&scenario, Some(&mut packets)).unwrap();
        // The bytes of the station's state depend on the memory layout.
        result.station.iter_mut().for_each(|station| station.memory = Default::default());
        let mut figures = serde_json::to_value(result).unwrap();
        // A counter that is newer than the records is recorded where it counts something.
        let counters = figures.pointer_mut("/station/counters").and_then(Value::as_object_mut);
        if let Some(counters) = counters {
            counters.retain(|name, count| name != "delayed" || *count != 0);
        }
        packets.record(&figures)
    }
}
