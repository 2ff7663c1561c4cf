//! Sampled state of senders and queues.

use airtcp_link::Way;
use airtcp_types::{ByteCount, Rate};
use serde::Serialize;

use crate::FlowSpec;
use crate::network::{Element, Network, Placed};

/// A sample of the state of a sender or of a queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum State {
    /// The state of a sender.
    Sender(SenderState),
    /// The state of a queue.
    Queue(QueueState),
}

/// The state of a sender that has sent data. RRTP has a rate and no window.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SenderState {
    /// Time since the start of the run (seconds).
    pub time: f64,
    /// The flow's name in the scenario.
    pub flow: String,
    /// The number of the copy, starting from zero.
    pub copy: u32,
    /// The sending host.
    pub host: String,
    /// The port of the end that opened the connection; `None` for RRTP.
    pub port: Option<u16>,
    /// The congestion window in bytes; this and the next two are `None` for RRTP.
    pub cwnd: Option<ByteCount>,
    /// The slow-start threshold in bytes, once set.
    pub ssthresh: Option<ByteCount>,
    /// The bytes in flight according to the loss detection ("pipe").
    pub in_flight: Option<ByteCount>,
    /// The smoothed round-trip time in seconds, once measured.
    pub srtt: Option<f64>,
    /// The pacing rate, if the sender paces, or RRTP's rate, in bit/s.
    pub pacing_rate: Option<Rate>,
}

/// The state of the queue of one direction of a link or of a base station's radio.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct QueueState {
    /// Time since the start of the run (seconds).
    pub time: f64,
    /// The link's or the station's name.
    pub link: String,
    /// `forth` or `back`.
    pub way: &'static str,
    /// Queued packets; on a radio including the one in transmission.
    pub packets: usize,
    /// Queued bytes.
    pub bytes: ByteCount,
}

/// Reports the current state of all senders, in the order of flows, and of all queues, in the order
/// of nodes.
pub(crate) fn report(network: &mut Network, flows: &[FlowSpec], on_state: &mut dyn FnMut(&State)) {
    for placed in &network.flows {
        report_senders(network, &flows[placed.spec].name, placed, on_state);
    }
    let now = network.world.now();
    let ids = network.links.iter().map(|(id, _)| *id).chain(network.bases.iter().copied());
    for id in ids.collect::<Vec<_>>() {
        for way in Way::BOTH {
            let (packets, bytes) = match network.world.node_mut(id) {
                Some(Element::Link(link)) => {
                    // Processes the queue up to now: `queued` reports the state at the last call.
                    link.occupancy(way, now);
                    link.queued(way)
                }
                Some(Element::BaseStation(base)) => {
                    let (packets, bytes) = base.station().radio().queued(way, None);
                    (packets, ByteCount::from(bytes))
                }
                _ => continue,
            };
            on_state(&State::Queue(QueueState {
                time: now.as_secs_f64(),
                link: network.nodes[id.0 as usize].0.clone(),
                way: if way == Way::Forth { "forth" } else { "back" },
                packets,
                bytes,
            }));
        }
    }
}

fn report_senders(
    network: &Network,
    flow: &str,
    placed: &Placed,
    on_state: &mut dyn FnMut(&State),
) {
    for end in [placed.caller, placed.answerer] {
        let (node, application) = end;
        let Some(Element::Host(host)) = network.world.node(node) else { continue };
        let blank = SenderState {
            time: network.world.now().as_secs_f64(),
            flow: flow.to_owned(),
            copy: placed.copy,
            host: network.nodes[node.0 as usize].0.clone(),
            port: None,
            cwnd: None,
            ssthresh: None,
            in_flight: None,
            srtt: None,
            pacing_rate: None,
        };
        let info = host.rrtp(application).and_then(|rrtp| rrtp.info());
        if let Some(info) = info.filter(|info| info.packets_sent > 0) {
            on_state(&State::Sender(SenderState {
                srtt: info.round_trip_time.map(|trip| trip.as_secs_f64()),
                pacing_rate: Some(info.rate),
                ..blank.clone()
            }));
        }
        for connection in host.connections(application) {
            let sender = connection.sender().filter(|sender| sender.stats().segments_sent > 0);
            let Some(sender) = sender else { continue };
            let addresses = connection.flow();
            let opener = if end == placed.caller { addresses.local } else { addresses.remote };
            on_state(&State::Sender(SenderState {
                port: Some(opener.port()),
                cwnd: Some(sender.cwnd()),
                ssthresh: sender.control_state().ssthresh,
                in_flight: Some(sender.pipe()),
                srtt: sender.rtt().srtt().map(|srtt| srtt.as_secs_f64()),
                pacing_rate: sender.pacing_rate(),
                ..blank.clone()
            }));
        }
    }
}
