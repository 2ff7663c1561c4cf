//! TCP-DCR through the whole stack: a retransmission timer barely longer than a round trip expires
//! neither while the response is delayed nor before the ACK of the retransmission arrives.

use std::time::Duration;

use airtcp_recovery::{Combination, Profile, RtoForm};
use airtcp_types::{ByteCount, Event, EventKind, Instant, Rate, SendRule};

use crate::transfer::Transfer;
use crate::world::{CLIENT, CLIENT_HOST, Impairment, Observer, SERVER, World, host_config};

const RTT: Duration = Duration::from_millis(300);

/// The sender's responses to its losses.
#[derive(Default)]
struct Responses {
    timeouts: Vec<Instant>,
    reductions: u32,
    /// When each first fast retransmission left, and the SRTT at that time.
    repairs: Vec<(Instant, Duration)>,
    srtt: Duration,
}

impl Observer for Responses {
    fn on_event(&mut self, host: usize, event: &Event) {
        if host != CLIENT_HOST {
            return;
        }
        match event.kind {
            EventKind::Timeout { .. } => self.timeouts.push(event.at),
            EventKind::Reduced { .. } => self.reductions += 1,
            EventKind::Rtt { srtt, .. } => self.srtt = srtt,
            EventKind::Sent { rule: SendRule::FastRetransmit, .. } => {
                self.repairs.push((event.at, self.srtt));
            }
            _ => {}
        }
    }
}

/// A transfer over a path that drops one segment in slow start and one in congestion avoidance.
#[derive(Clone, Copy)]
struct Course {
    path: Impairment,
    size: u64,
    drops: [u64; 2],
}

/// A path without a queue.
fn steady() -> Course {
    Course { path: Impairment::delay(RTT / 2), size: 4_000_000, drops: [150, 1_500] }
}

/// The window exceeds the 375 segments that fill the path, the rest waits in a queue that never
/// overflows, and the RTO follows a round trip that grows with the window. The retransmission
/// leaves between two ACKs, so it is at most a packet's time (0.8 ms) late. That is less than the
/// clock tick by which the RTO exceeds SRTT.
fn queued() -> Course {
    let bottleneck = Some((Rate::from_bits_per_sec(15_000_000), 2_000));
    let path = Impairment { bottleneck, ..Impairment::delay(RTT / 2) };
    Course { path, size: 20_000_000, drops: [2_000, 12_000] }
}

fn transfer(combination: &str, course: Course) -> Responses {
    let combination: Combination = combination.parse().unwrap();
    let config = |address| {
        let mut config = host_config(address, &combination, true);
        let rto = RtoForm::Rfc { floor: Duration::from_millis(20) };
        config.tcp.sender.profile = Profile { rto, ..Profile::paper() };
        // Buffers of this size limit the window, and with it the queue.
        config.tcp.send_buffer = ByteCount::from_mib(4);
        config.tcp.receive_buffer = ByteCount::from_mib(6);
        config
    };
    let Course { path, size, drops } = course;
    let mut world =
        World::new(config(CLIENT), config(SERVER), path, 1, Responses::default()).with_drops(drops);
    let mut transfer = Transfer::start(&mut world, size, 0);
    while !transfer.is_over() {
        transfer.work(&mut world);
        assert!(world.step() || transfer.is_over());
    }
    world.observer
}

#[test]
fn no_time_out_comes_before_the_ack_of_the_repair() {
    for (course, is_queued) in [(steady(), false), (queued(), true)] {
        for detection in ["sack", "rack"] {
            let without = transfer(&format!("{detection}/reno"), course);
            for judge in ["dcr:timer", "dcr:count"] {
                let seen = transfer(&format!("{detection}/reno/{judge}"), course);
                let case = format!("{detection} {judge}, queue: {is_queued}");
                assert_eq!(seen.reductions, 2, "{case}");
                // In slow start the queue grows faster than the RTT estimate, with any judge.
                assert_eq!(seen.timeouts, without.timeouts, "{case}");
                assert_eq!(seen.timeouts.is_empty(), !is_queued, "{case}");
                assert!(seen.timeouts.iter().all(|at| *at < without.repairs[1].0), "{case}");
                // In slow start the response is not delayed; later it is.
                let [(prompt, plain), (late, second)] =
                    [0, 1].map(|n| (seen.repairs[n], without.repairs[n]));
                assert_eq!(prompt, plain, "{case}");
                let (waited, srtt) = (late.0.since(second.0), late.1);
                assert_eq!(srtt > RTT + Duration::from_millis(5), is_queued, "{case}: {srtt:?}");
                assert!(waited > srtt / 2 && waited <= srtt, "{case}: {waited:?} of {srtt:?}");
            }
        }
    }
}
