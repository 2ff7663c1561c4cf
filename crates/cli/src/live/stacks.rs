//! The state of stacks on the live page: charts, figures, and the flows with the highest delivery
//! rates.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_net::Stack;
use airtcp_stack::Counters;
use airtcp_stack::host::Listed;
use airtcp_stack::tcp::{Info, State};
use airtcp_types::{ByteCount, Rate};
use serde_json::Value;

use super::{Chart, Snapshot, Table, rounded};
use crate::output;

/// The maximum number of flows in a table.
pub(crate) const MOST_FLOWS: usize = 100;

/// The maximum number of connections that are examined in detail. Packets wait meanwhile.
const MOST_DETAILS: usize = 1_000;

const COLUMNS: [&str; 15] = [
    "local",
    "peer",
    "state",
    "strategies",
    "RTT (ms)",
    "cwnd (kB)",
    "in flight (kB)",
    "pacing (Mbit/s)",
    "delivery (Mbit/s)",
    "sent (MB)",
    "received (MB)",
    "sent again (%)",
    "lost",
    "random (%)",
    "waits for",
];

/// Returns the state of all stacks of a device.
pub(crate) fn of_stacks(stacks: &[Stack]) -> Snapshot {
    let device: airtcp_device::Counters = stacks.iter().map(Stack::device_counters).sum();
    let counters: Counters = stacks.iter().map(Stack::counters).sum();
    let held: u64 = stacks.iter().map(|stack| stack.held().0).sum();
    let mut states = BTreeMap::<_, (State, usize)>::new();
    for (_, state) in stacks.iter().flat_map(Stack::connections) {
        states.entry(state.ss_name()).or_insert((state, 0)).1 += 1;
    }
    let total = states.values().map(|(_, count)| count).sum();
    let mut flows = Vec::new();
    for stack in stacks {
        flows.extend(stack.listing(MOST_DETAILS - flows.len()));
    }
    let charts = vec![
        Chart::rates("Throughput", [("received", device.rx_bytes), ("sent", device.tx_bytes)]),
        Chart::counters(
            "Retransmissions",
            "1/s",
            counted([
                ("segments sent again", counters.tcp_retrans_segs),
                ("fast retransmits", counters.tcp_ext_fast_retrans),
                ("time-outs", counters.tcp_ext_timeouts),
                ("taken back as spurious", undone(&counters)),
            ]),
        ),
        losses(&counters),
        rtts(&flows),
        Chart::counters(
            "Connections opened and reset",
            "1/s",
            counted([
                ("opened from here", counters.tcp_active_opens),
                ("opened by peers", counters.tcp_passive_opens),
                ("failed to open", counters.tcp_attempt_fails),
                ("reset", counters.tcp_estab_resets),
                ("given up after time-outs", counters.tcp_ext_abort_on_timeout),
            ]),
        ),
        Chart::gauges("Connections", "", phases(states.values())),
        Chart::gauges("Memory of sockets", "MB", [("held", held as f64 / 1e6)]),
    ];
    let mut snapshot = Snapshot { charts, ..Snapshot::default() };
    let names: Vec<String> =
        states.iter().map(|(name, (_, count))| format!("{name} {count}")).collect();
    snapshot
        .figure("Connections", if names.is_empty() { "0".to_owned() } else { names.join(", ") });
    snapshot.figure("Time-outs", counters.tcp_ext_timeouts);
    snapshot.figure("Resets", counters.tcp_estab_resets);
    snapshot.figure("Segments sent", counters.tcp_out_segs + counters.tcp_retrans_segs);
    snapshot.figure("Segments sent again", counters.tcp_retrans_segs);
    snapshot.figure("Sent", output::bytes(device.tx_bytes));
    snapshot.figure("Received", output::bytes(device.rx_bytes));
    snapshot.figure("Refused by the device", device.tx_dropped + device.tx_errors);
    snapshot.table = Some(table(flows, total));
    snapshot
}

fn counted<const N: usize>(
    counters: [(&'static str, u64); N],
) -> impl Iterator<Item = (&'static str, f64)> {
    counters.into_iter().map(|(name, value)| (name, value as f64))
}

/// Returns the losses by the cause that a judge attributes them to.
fn losses(counters: &Counters) -> Chart {
    let random = counters.tcp_ext_segs_lost_random;
    let corrupted =
        counters.tcp_ext_hack_acks_recv.saturating_sub(counters.tcp_ext_hack_acks_ignored);
    let others = counters.tcp_ext_segs_lost.saturating_sub(random + corrupted);
    let series =
        [("congestion and time-outs", others), ("random", random), ("corrupted (HACK)", corrupted)];
    Chart::counters("Segments lost, by cause", "1/s", counted(series))
}

/// Returns the number of undone reductions and spurious time-outs.
fn undone(counters: &Counters) -> u64 {
    counters.tcp_ext_full_undo + counters.tcp_ext_dsack_undo + counters.tcp_ext_spurious_rtos
}

/// Returns the number of connections in each phase.
fn phases<'a>(
    states: impl Iterator<Item = &'a (State, usize)>,
) -> impl Iterator<Item = (&'static str, f64)> {
    let mut phases = [("opening", 0.0), ("established", 0.0), ("closing", 0.0), ("TIME-WAIT", 0.0)];
    for (state, count) in states {
        let phase = match state {
            State::SynSent | State::SynReceived => 0,
            State::Established | State::CloseWait => 1,
            State::TimeWait => 3,
            _ => 2,
        };
        phases[phase].1 += *count as f64;
    }
    phases.into_iter()
}

fn rtts(flows: &[Listed]) -> Chart {
    let rtt = |flow: &Listed| Some(millis(flow.info.as_ref()?.rtt?));
    let mut rtts: Vec<f64> = flows.iter().filter_map(rtt).collect();
    rtts.sort_by(f64::total_cmp);
    let at = |index: usize| rtts.get(index).copied().unwrap_or(f64::NAN);
    let series = [("median", at(rtts.len() / 2)), ("largest", at(rtts.len().wrapping_sub(1)))];
    Chart::gauges("Smoothed round-trip time of the flows", "ms", series)
}

/// Returns the table of the flows with the highest delivery rates, out of `total`.
fn table(mut flows: Vec<Listed>, total: usize) -> Table {
    let rate = |flow: &Listed| flow.info.as_ref().and_then(|info| info.delivery_rate);
    flows.sort_by_key(|flow| std::cmp::Reverse(rate(flow)));
    flows.truncate(MOST_FLOWS);
    let rows = flows.iter().map(row).collect();
    Table { title: "Flows", columns: &COLUMNS, rows, total }
}

fn row(flow: &Listed) -> Vec<Value> {
    let mut row: Vec<Value> = vec![
        flow.local.to_string().into(),
        flow.peer.to_string().into(),
        flow.state.ss_name().into(),
    ];
    if let Some(info) = &flow.info {
        let rate = |rate: Rate| rounded(rate.bits_per_sec() as f64 / 1e6);
        let random = f64::from(info.segs_lost_random) / f64::from(info.segs_lost.max(1));
        let again = info.bytes_retrans.0 as f64 / info.bytes_sent.0.max(1) as f64;
        row.extend::<[Value; 12]>([
            info.combination.as_str().into(),
            info.rtt.map(|rtt| rounded(millis(rtt))).into(),
            scaled(info.cwnd, 1e3).into(),
            scaled(in_flight(info), 1e3).into(),
            info.pacing_rate.map(rate).into(),
            info.delivery_rate.map(rate).into(),
            scaled(info.bytes_sent, 1e6).into(),
            scaled(info.bytes_received, 1e6).into(),
            rounded(again * 1e2).into(),
            info.segs_lost.into(),
            rounded(random * 1e2).into(),
            waits_for(info).into(),
        ]);
    }
    row
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn scaled(bytes: ByteCount, unit: f64) -> f64 {
    rounded(bytes.0 as f64 / unit)
}

/// Returns the bytes that are neither acknowledged nor considered lost.
fn in_flight(info: &Info) -> ByteCount {
    info.unacked - info.sacked - info.lost
}

/// Returns the reason why a flow sends nothing at the moment.
fn waits_for(info: &Info) -> &'static str {
    if !info.state.is_synchronized() {
        "handshake"
    } else if info.backoff > 0 {
        "answer after a time-out"
    } else if info.send_q.0 > 0 && info.probes > 0 {
        "closed window"
    } else if info.send_q <= info.unacked {
        "application"
    } else if info.unacked + info.mss > info.snd_wnd {
        "peer's window"
    } else if in_flight(info) + info.mss > info.cwnd {
        "cwnd"
    } else if info.pacing_rate.is_some() {
        "pacing"
    } else {
        "ACK"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lost_segment_has_one_cause() {
        let mut counters = Counters::default();
        counters.tcp_ext_segs_lost = 10;
        counters.tcp_ext_segs_lost_random = 4;
        counters.tcp_ext_hack_acks_recv = 3;
        counters.tcp_ext_hack_acks_ignored = 1;
        let causes = |counters: &Counters| -> Vec<f64> {
            losses(counters).series.into_iter().map(|(_, value)| value).collect()
        };
        assert_eq!(causes(&counters), [4.0, 4.0, 2.0]);
        // A segment can be reported as corrupted more than once.
        counters.tcp_ext_hack_acks_recv = 30;
        assert_eq!(causes(&counters), [0.0, 4.0, 29.0]);
    }
}
