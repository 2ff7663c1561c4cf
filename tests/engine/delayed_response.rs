//! TCP-DCR through the whole stack: a retransmission timer that is hardly longer than a round trip does
//! not run out while the response waits, nor before the ACK of the repair is here.

use std::time::Duration;

use airtcp::recovery::{Combination, Profile, RtoForm};
use airtcp::types::{Event, EventKind, Instant, SendRule};

use crate::transfer::Transfer;
use crate::world::{CLIENT, CLIENT_HOST, Impairment, Observer, SERVER, World, host_config};

const RTT: Duration = Duration::from_millis(300);

/// What the sender did about its losses.
#[derive(Default)]
struct Responses {
    timeouts: u32,
    reductions: u32,
    repairs: Vec<Instant>,
}

impl Observer for Responses {
    fn on_event(&mut self, host: usize, event: &Event) {
        if host != CLIENT_HOST {
            return;
        }
        match event.kind {
            EventKind::Timeout { .. } => self.timeouts += 1,
            EventKind::Reduced { .. } => self.reductions += 1,
            EventKind::Sent { rule: SendRule::FastRetransmit, .. } => self.repairs.push(event.at),
            _ => {}
        }
    }
}

/// A transfer that loses one segment in slow start and one in congestion avoidance.
fn transfer(combination: &str) -> Responses {
    let combination: Combination = combination.parse().unwrap();
    let config = |address| {
        let mut config = host_config(address, &combination, true);
        let rto = RtoForm::Rfc { floor: Duration::from_millis(20) };
        config.tcp.sender.profile = Profile { rto, ..Profile::paper() };
        config
    };
    let path = Impairment::delay(RTT / 2);
    let mut world = World::new(config(CLIENT), config(SERVER), path, 1, Responses::default())
        .with_drops([150, 1_500]);
    let mut transfer = Transfer::start(&mut world, 4_000_000, 0);
    while !transfer.is_over() {
        transfer.work(&mut world);
        assert!(world.step() || transfer.is_over());
    }
    world.observer
}

#[test]
fn no_time_out_comes_before_the_ack_of_the_repair() {
    for detection in ["sack", "rack"] {
        let without = transfer(&format!("{detection}/reno"));
        for judge in ["dcr:timer", "dcr:count"] {
            let seen = transfer(&format!("{detection}/reno/{judge}"));
            assert_eq!((seen.timeouts, seen.reductions), (0, 2), "{detection} {judge}");
            // In slow start the response is as prompt as without; later it waits.
            let [(prompt, plain), (late, second)] =
                [0, 1].map(|n| (seen.repairs[n], without.repairs[n]));
            assert_eq!(prompt, plain, "{detection} {judge}");
            let waited = late.since(second);
            assert!(waited > RTT / 2 && waited <= RTT, "{detection} {judge}: {waited:?}");
        }
    }
}
