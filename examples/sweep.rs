//! A sweep in virtual time over random loss, sender and seed, as CSV on stdout.
use std::time::Duration;

use airtcp::sim::{FlowSpec, Scenario, Topology, Wire, run_seeds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("loss_percent,sender,seed,goodput_bits_per_second,retransmissions,timeouts");
    for loss in [0.0, 0.5, 1.0, 2.0, 5.0] {
        let link = format!("rate 20mbit delay 20ms limit 70 loss {loss}% only forth");
        for sender in ["rack/bbr3/spike", "rack/cubic", "le/westwood"] {
            let topology = Topology::Chain { wires: vec![Wire::both(link.parse()?)] };
            let scenario = Scenario {
                duration: Duration::from_secs(20),
                warm_up: Duration::from_secs(5),
                flows: vec![FlowSpec::new(sender.parse()?)],
                ..Scenario::new("sweep", topology)
            };
            // Runs on all cores. A seed gives the same figures on any number of cores.
            for run in run_seeds(&scenario, 1..11, None, |_| ())? {
                let flow = &run.flows[0];
                let (seed, goodput) = (run.seed, flow.goodput);
                let (resent, timeouts) = (flow.retransmissions, flow.timeouts.unwrap_or(0));
                println!("{loss},{sender},{seed},{goodput:.0},{resent},{timeouts}");
            }
        }
    }
    Ok(())
}
