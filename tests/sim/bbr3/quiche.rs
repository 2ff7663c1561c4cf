//! Tests of one sender after those of quiche's BBRv3 (`bbr3_simulator_test.cc`), with quiche's
//! links, volumes, limits and names.
//!
//! The path is a link of 10 Mbit/s and 2 ms, a switch with a queue, and a link of 4 Mbit/s and 30
//! ms.
//!
//! Omitted are tests of options that this control does not have, tests that call a sender without a
//! connection, and tests of a bandwidth that an application announces. Where the same test exists
//! without its option, that test is here with the narrower limits.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use super::rig::{Look, PAYLOAD, Rig, SMSS};
use super::{error, mbit, secs};

const MIB: u64 = 1024 * 1024;
/// A packet of 1500 bytes.
const PACKET: ByteCount = ByteCount(1500);

/// The links of quiche's `DefaultTopologyParams`.
struct Topology {
    local: Rate,
    test: Rate,
    /// The queue size in BDPs.
    queue: f64,
    /// The policer's description, which precedes that of the test link.
    policer: &'static str,
    /// Settings added to the switch's link back to the sender.
    acks: String,
    /// Changes of the test link in both directions.
    changes: String,
}

impl Topology {
    fn new() -> Self {
        Self {
            local: mbit(10),
            test: mbit(4),
            queue: 2.0,
            policer: "",
            acks: String::new(),
            changes: String::new(),
        }
    }

    /// The round-trip time of one packet.
    fn rtt(&self) -> Duration {
        let sent = self.local.time_for(PACKET) + self.test.time_for(PACKET);
        (Duration::from_millis(32) + sent) * 2
    }

    fn bdp(&self) -> ByteCount {
        self.test.bytes_in(self.rtt())
    }

    /// Holds ACKs for two round trips, or until there are 10 KiB of them.
    fn with_aggregation(self) -> Self {
        let acks = format!("aggregate {}us bytes 10kb", (self.rtt() * 2).as_micros());
        Self { acks, ..self }
    }

    fn rig(&self) -> Rig {
        let (local, test) = (self.local.bits_per_sec(), self.test.bits_per_sec());
        let limit = self.bdp().scale(self.queue).0.div_ceil(PACKET.0);
        let first = format!("rate {local}bit delay 2ms");
        let first_back = format!("{first} {}", self.acks);
        let second = format!("{} rate {test}bit delay 30ms limit {limit}", self.policer);
        let second = format!("{second} {}", self.changes);
        let second_back = format!("rate {test}bit delay 30ms {}", self.changes);
        Rig::new("rack/bbr3", &[(&first, &first_back), (&second, &second_back)])
    }
}

/// Sends `bytes` and waits until all have left.
#[track_caller]
fn transfer(rig: &mut Rig, bytes: u64, time: Duration) {
    rig.send(bytes);
    let done = rig.runs_until(time, |rig| rig.unsent() == 0);
    assert!(done, "{} bytes are left after {time:?}", rig.unsent());
}

/// Sends one MiB, which ends Startup.
#[track_caller]
fn drive_out_of_startup(topology: &Topology) -> Rig {
    let mut rig = topology.rig();
    transfer(&mut rig, MIB, secs(15));
    assert!(is_in_probe_bw(rig.look()), "{:?}", rig.look());
    assert_max_bw(rig.look(), topology.test, 0.02);
    rig
}

fn is_in_probe_bw(look: &Look) -> bool {
    look.state().starts_with("probe-bw")
}

#[track_caller]
fn assert_steady(look: &Look) {
    assert!(is_in_probe_bw(look) || look.is("probe-rtt"), "{look:?}");
}

#[track_caller]
fn assert_max_bw(look: &Look, link: Rate, off: f64) {
    assert!(error(look.model.max_bw, link).abs() <= off, "{link:?}: {look:?}");
}

/// Checks that the minimum round-trip time deviates by at most the share `off`, and that the
/// smoothed one is at most `most` times that of the path.
#[track_caller]
fn assert_rtt(look: &Look, topology: &Topology, most: f64, off: f64) {
    let rtt = topology.rtt().as_secs_f64();
    assert!(look.srtt.as_secs_f64() <= rtt * most, "{:?}: {look:?}", topology.rtt());
    let least = look.model.min_rtt.unwrap_or_default().as_secs_f64();
    assert!((least / rtt - 1.0).abs() <= off, "{:?}: {look:?}", topology.rtt());
}

fn is_app_limited(look: &Look) -> bool {
    look.rate.is_some_and(|(_, app_limited)| app_limited)
}

/// Returns the look at which the pipe was found full, and the rounds since the largest bandwidth
/// last grew by the factor `growth`.
fn full_bandwidth_reached(rig: &mut Rig, growth: f64) -> (Look, u64) {
    rig.send(12 * MIB);
    assert!(rig.runs_until(secs(5), |rig| rig.log().iter().any(|look| look.model.full_bw_reached)));
    let (mut most, mut round) = (Rate::ZERO, 0);
    let full = rig.log().iter().find(|look| {
        if look.model.max_bw > most.scale(growth) {
            (most, round) = (look.model.max_bw, look.model.round_count);
        }
        look.model.full_bw_reached
    });
    let full = full.expect("it is there").clone();
    let rounds = full.model.round_count - round;
    (full, rounds)
}

#[test]
fn normal_startup() {
    let topology = Topology::new();
    // quiche counts from the last growth by 0.1 %; one version of its test expects two rounds,
    // another three. Here it is two, because the first of the draft's three rounds without growth
    // by a quarter still grows a little.
    let (full, rounds) = full_bandwidth_reached(&mut topology.rig(), 1.001);
    assert!(full.is("drain"), "{full:?}");
    assert_eq!(rounds, 2);
    assert_eq!(full_bandwidth_reached(&mut topology.rig(), 1.25).1, 3);
    assert_eq!(full.stats.segments_lost, 0);
    assert_max_bw(&full, topology.test, 0.01);
    assert!(!is_app_limited(&full));
}

#[test]
fn simple_transfer() {
    let topology = Topology::new();
    let mut rig = topology.rig();
    transfer(&mut rig, 12 * MIB, secs(30));
    let end = rig.look();
    assert_steady(end);
    assert_eq!(end.stats.segments_lost, 0);
    assert!(!is_app_limited(end));
    assert_rtt(end, &topology, 2.0, 0.2);
}

#[test]
fn simple_transfer_small_buffer() {
    let topology = Topology { queue: 0.5, ..Topology::new() };
    let mut rig = topology.rig();
    transfer(&mut rig, 12 * MIB, secs(30));
    let end = rig.look();
    assert_steady(end);
    assert_max_bw(end, topology.test, 0.02);
    assert!(!is_app_limited(end));
}

/// quiche sets an option (BSAO) that limits the error of its bandwidth to 1 %. By the draft samples
/// can be too high ("Compression and Aggregation"): one round trip can deliver what the link
/// carries in it, plus a batch of ACKs of two round trips.
#[test]
fn simple_transfer_2rtt_aggregation_bytes() {
    let topology = Topology::new().with_aggregation();
    let mut rig = topology.rig();
    transfer(&mut rig, 12 * MIB, secs(35));
    let end = rig.look();
    assert_steady(end);
    let off = error(end.model.max_bw, topology.test);
    assert!((-0.01..=0.2).contains(&off), "{end:?}");
    assert!(end.loss_rate() <= 0.01, "{end:?}");
    assert_rtt(end, &topology, 5.0, 0.2);
}

#[test]
fn simple_transfer_ack_decimation() {
    let topology = Topology::new();
    let mut rig = topology.rig();
    transfer(&mut rig, 12 * MIB, secs(35));
    let end = rig.look();
    assert_steady(end);
    assert_max_bw(end, topology.test, 0.01);
    assert!(end.loss_rate() <= 0.001 && !is_app_limited(end), "{end:?}");
    assert_rtt(end, &topology, 3.0, 0.1);
}

#[test]
fn bandwidth_decrease() {
    let topology = Topology { local: mbit(15), test: mbit(10), ..Topology::new() };
    let topology = Topology { changes: "at 10s rate 100kbit".into(), ..topology };
    let mut rig = topology.rig();
    // quiche's limit has no room for headers, so the 20 MiB include them.
    rig.send((20.0 * MIB as f64 * PAYLOAD) as u64);
    rig.run_for(secs(10));
    assert_steady(rig.look());
    assert!(error(rig.look().model.bw, topology.test).abs() <= 0.1, "{:?}", rig.look());
    assert_eq!(rig.look().stats.segments_lost, 0);
    assert!(rig.runs_until(secs(800), |rig| rig.unsent() == 0), "{} are left", rig.unsent());
}

/// The bandwidth increases from 100 kbit/s to 10 Mbit/s after 15 s.
fn bandwidth_increase_of(bytes: u64, topology: Topology, off: f64, lost: f64) -> Rig {
    let slow = Rate::from_bits_per_sec(100_000);
    let topology =
        Topology { local: mbit(15), test: slow, changes: "at 15s rate 10mbit".into(), ..topology };
    let mut rig = topology.rig();
    rig.send(bytes);
    rig.run_for(secs(15));
    assert_steady(rig.look());
    assert!(error(rig.look().model.bw, slow).abs() <= off, "{:?}", rig.look());
    assert!(rig.look().loss_rate() <= lost, "{:?}", rig.look());
    assert!(rig.runs_until(secs(50), |rig| rig.unsent() == 0), "{} are left", rig.unsent());
    rig
}

#[test]
fn bandwidth_increase() {
    // Twenty MiB are quiche's test B203, whose probes respect inflight_longterm, as they always do
    // here.
    for mib in [10, 20] {
        let rig = bandwidth_increase_of(mib * MIB, Topology::new(), 0.1, 0.3);
        assert_max_bw(rig.look(), mbit(10), 0.02);
    }
}

#[test]
fn bandwidth_increase_aggregation() {
    // The aggregation's time is in round-trip times of the slow link.
    let slow =
        Topology { local: mbit(15), test: Rate::from_bits_per_sec(100_000), ..Topology::new() };
    let rig = bandwidth_increase_of(2 * MIB, slow.with_aggregation(), 0.6, 0.35);
    assert_max_bw(rig.look(), mbit(10), 0.91);
}

#[test]
fn packet_loss_on_small_buffer_startup() {
    let rig = drive_out_of_startup(&Topology { queue: 0.5, ..Topology::new() });
    assert!(rig.look().loss_rate() <= 0.05, "{:?}", rig.look());
}

/// Sends bursts of 512 bytes, three seconds apart.
fn send_bursts(rig: &mut Rig, count: u32) {
    for _ in 0..count {
        transfer(rig, 512, secs(3));
        rig.run_for(secs(3));
    }
}

#[test]
fn application_limited_bursts() {
    let topology = Topology::new();
    let mut rig = drive_out_of_startup(&topology);
    assert!(!is_app_limited(rig.look()));
    send_bursts(&mut rig, 20);
    assert!(is_app_limited(rig.look()));
    assert_max_bw(rig.look(), topology.test, 0.01);
}

#[test]
fn application_limited_bursts_without_prior() {
    let topology = Topology::new();
    let mut rig = topology.rig();
    send_bursts(&mut rig, 40);
    assert!(is_app_limited(rig.look()));
    assert!(!rig.look().model.full_bw_reached);
    transfer(&mut rig, MIB, secs(15));
    assert!(is_in_probe_bw(rig.look()), "{:?}", rig.look());
    assert_max_bw(rig.look(), topology.test, 0.01);
    assert!(!is_app_limited(rig.look()));
}

/// Runs into Drain, with the queue that Startup has filled.
fn into_drain(topology: &Topology) -> (Rig, Instant) {
    let mut rig = topology.rig();
    rig.bulk();
    let at = rig.run_into("drain");
    let look = rig.look();
    let rate = look.model.bw.scale(0.5);
    let off = look.pacing_rate.bits_per_sec() as f64 / rate.bits_per_sec() as f64 - 1.0;
    assert!(off.abs() <= 0.011, "{look:?}");
    (rig, at)
}

#[test]
fn drain() {
    let topology = Topology::new();
    let (mut rig, at) = into_drain(&topology);
    assert_eq!(rig.states(Instant::ZERO), ["startup", "drain"]);
    let queued = rig.queued(1);
    assert!(queued >= topology.bdp().scale(0.95), "{queued} of {}", topology.bdp());
    assert!(rig.runs_until(secs(10), |rig| !rig.look().is("drain")));
    assert!(is_in_probe_bw(rig.look()), "{:?}", rig.look());
    assert!(rig.queued(1) <= topology.bdp());
    let rounds = rig.since(at)[0].model.round_count + 4;
    assert!(rig.runs_until(secs(10), |rig| {
        rig.look().model.round_count >= rounds && rig.look().is("probe-bw-refill")
    }));
    let off = rig.look().srtt.as_secs_f64() / topology.rtt().as_secs_f64() - 1.0;
    assert!(off.abs() <= 0.1, "{:?}", rig.look());
}

#[test]
fn drain_exit_due_to_3_round_limit() {
    let (_, at) = into_drain(&Topology::new());
    let changes = format!("at {}ns rate 2mbit", at.as_nanos());
    let (mut rig, at) = into_drain(&Topology { changes, ..Topology::new() });
    assert!(rig.runs_until(secs(10), |rig| !rig.look().is("drain")));
    let log = rig.since(at);
    let end = log.iter().find(|look| !look.is("drain")).expect("it ends");
    assert!(is_in_probe_bw(end) && end.pipe > end.inflight(), "{end:?}");
    assert_eq!(end.model.round_count, log[0].model.round_count + 3);
}

/// quiche then sends 1.4 BDP, and the resulting queue ends the probe. In the draft a plateau ends
/// it, which application-limited samples cannot show.
#[test]
fn in_flight_aware_gain_cycling() {
    let topology = Topology::new();
    let mut rig = drive_out_of_startup(&topology);
    rig.bulk();
    rig.run_into("probe-bw-refill");
    // Send a tenth of the rate in bursts of 300 ms: the gain stays high.
    let burst = Duration::from_millis(300);
    let volume = topology.test.scale(0.1).bytes_in(burst).0;
    rig.pause();
    assert!(rig.runs_until(secs(1), |rig| rig.look().is("probe-bw-up")));
    for _ in 0..2 {
        for _ in 0..5 {
            rig.send(volume);
            rig.run_for(burst);
        }
        assert!(rig.look().is("probe-bw-up"), "{:?}", rig.look());
        assert_max_bw(rig.look(), topology.test, 0.02);
    }
}

#[test]
fn exit_startup_due_to_loss() {
    let topology = Topology { queue: 0.5, ..Topology::new() };
    let (full, rounds) = full_bandwidth_reached(&mut topology.rig(), 1.0);
    assert!(full.is("drain"), "{full:?}");
    assert!(rounds <= 2, "{rounds}");
    assert!(full.stats.segments_lost > 0 && !is_app_limited(&full), "{full:?}");
    let bound = full.model.inflight_longterm.expect("a bound");
    assert!(bound > topology.bdp().scale(1.2), "{bound} of {}", topology.bdp());
}

#[test]
fn sender_policed() {
    // Tokens arrive at a quarter of the bandwidth. quiche's bucket holds 100,000 bytes and starts
    // with 10,000; this one starts full.
    let policer = "police rate 1mbit burst 100000b";
    let topology = Topology { policer, ..Topology::new() };
    let mut rig = topology.rig();
    transfer(&mut rig, 3 * MIB, secs(30));
    assert_steady(rig.look());
    assert!(rig.look().loss_rate() <= 0.3, "{:?}", rig.look());
}

#[test]
fn startup_stats() {
    let rig = drive_out_of_startup(&Topology::new());
    let end = rig.log().iter().find(|look| !look.is("startup")).expect("its end").at;
    let time = end.since(rig.log()[0].at);
    let (least, most) = (Duration::from_millis(500), Duration::from_millis(1_500));
    assert!((least..=most).contains(&time), "{time:?}");
}

#[test]
fn probe_rtt_after_quiescence_immediately_exits() {
    let mut rig = drive_out_of_startup(&Topology::new());
    // Send a few packets at a time, so that little is left to send when ProbeRTT starts.
    while !rig.look().is("probe-rtt") {
        assert!(rig.now() < Instant::from_millis(15_000), "{:?}", rig.look());
        transfer(&mut rig, 4 * SMSS.0, secs(15));
    }
    assert!(rig.runs_until(secs(15), |rig| rig.look().pipe == ByteCount::ZERO));
    assert!(rig.look().is("probe-rtt"), "{:?}", rig.look());
    rig.run_for(secs(5));
    let resumed = rig.now();
    rig.send(SMSS.0);
    rig.run_for(secs(1));
    assert_eq!(rig.states(resumed)[..1], ["probe-bw-cruise"]);
}

#[test]
fn probe_bw_after_quiescence_postpone_min_rtt_timestamp() {
    let mut rig = drive_out_of_startup(&Topology::new());
    rig.bulk();
    rig.run_into("probe-bw-refill");
    rig.pause();
    assert!(rig.runs_until(secs(6), |rig| rig.look().pipe == ByteCount::ZERO));
    rig.run_for(secs(15));
    let resumed = rig.now();
    rig.send(SMSS.0);
    rig.run_for(secs(4));
    // quiche checks the time of the minimum round-trip time. Here its effect is checked: no
    // ProbeRTT.
    assert!(!rig.states(resumed).contains(&"probe-rtt"), "{:?}", rig.states(resumed));
}
