//! The environments of Table 4.3, and their senders.

use std::time::Duration;

use airtcp_sim::{FlowResult, FlowSpec, Scenario, Sender, Topology, Wire};
use airtcp_types::ByteCount;

use crate::{LabError, feed, paper};

/// The payload of a packet in bytes: the thesis' "packet size", to which ns-2 adds the header.
pub(super) const PAYLOAD: f64 = 1_400.0;
/// The bytes of IP and TCP headers without options, and of IP, UDP and RRTP headers.
pub(super) const TCP_HEADER: u16 = 40;
pub(super) const RRTP_HEADER: u16 = 56;
/// The default queue of ns-2, because the thesis states none. If the BDP is larger, the queue is
/// one BDP.
const LEAST_QUEUE: u64 = 50;

pub(super) const RENO: &str = "reno/reno";
pub(super) const NEW_RENO: &str = "newreno/reno";
pub(super) const VEGAS: &str = "newreno/vegas";
pub(super) const WESTWOOD: &str = "newreno/westwood";

/// The note about the senders.
pub(super) const SETUP: &str = "TCP is as in ns-2 (profile ns-2.35, no SACK, no timestamps), with a header of 40 bytes, and the \
                                detection reno (Reno) or newreno (all others); RRTP has 56 bytes of headers; both carry \
                                1400 bytes of payload in a packet";
/// The note about details that the thesis does not state.
pub(super) const QUEUES: &str = "the thesis states no queue: 50 packets, or one BDP if that is more; packets \
                                 are lost towards the receiver only";

/// A row of Table 4.3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Environment {
    pub(super) name: &'static str,
    /// In bit/s.
    pub(super) rate: u64,
    /// One way, in ms.
    pub(super) delay: u64,
    /// In per cent.
    pub(super) loss: f64,
    /// Whether RRTP is configured for a wireless last hop, as in CDMA and satellite (thesis 4.2).
    pub(super) is_last_hop: bool,
}

pub(super) const FAT_PIPE: Environment = Environment {
    name: "1 Gbit/s, 200 ms",
    rate: 1_000_000_000,
    delay: 200,
    loss: 1.0,
    is_last_hop: false,
};
pub(super) const CDMA: Environment =
    Environment { name: "CDMA 1X", rate: 144_000, delay: 75, loss: 1.0, is_last_hop: true };
pub(super) const SATELLITE: Environment =
    Environment { name: "satellite", rate: 20_000, delay: 300, loss: 1.0, is_last_hop: true };
pub(super) const LAN: Environment =
    Environment { name: "LAN", rate: 100_000_000, delay: 1, loss: 0.1, is_last_hop: false };
pub(super) const WIRELESS_LAN: Environment =
    Environment { name: "wireless LAN", rate: 11_000_000, delay: 5, loss: 1.0, is_last_hop: false };

impl Environment {
    /// Returns the number of packets of 1440 bytes in a BDP.
    pub(super) fn product(&self) -> f64 {
        let round_trip = 2.0 * self.delay as f64 / 1e3;
        self.rate as f64 * round_trip / 8.0 / (PAYLOAD + f64::from(TCP_HEADER))
    }

    pub(super) fn queue(&self) -> u64 {
        (self.product() as u64).max(LEAST_QUEUE)
    }

    /// Returns the maximum payload that can arrive from a sender, in bit/s.
    pub(super) fn most(&self, sender: &str) -> f64 {
        let packet = PAYLOAD + f64::from(header(sender));
        self.rate as f64 * PAYLOAD / packet * (1.0 - self.loss / 100.0)
    }

    /// Returns the number of packets with this header that the link can carry in `time`.
    pub(super) fn carries(&self, header: u16, time: Duration) -> f64 {
        self.rate as f64 * time.as_secs_f64() / 8.0 / (PAYLOAD + f64::from(header))
    }

    pub(super) fn topology(&self) -> Result<Topology, LabError> {
        let Self { rate, delay, loss, .. } = self;
        let queue = self.queue();
        let forth = format!("rate {rate}bit delay {delay}ms limit {queue} loss {loss}%");
        let back = format!("rate {rate}bit delay {delay}ms limit {queue}");
        let wire = feed::wire(&forth, &back)?;
        Ok(Topology::Chain { wires: vec![wire] })
    }

    /// Returns RRTP's name in this environment, without parameters.
    pub(super) fn native(&self) -> &'static str {
        if self.is_last_hop { "rrtp:wireless-last-hop" } else { "rrtp" }
    }

    /// Returns RRTP's name with the true parameters.
    pub(super) fn seeded(&self) -> String {
        let (native, rate, trip, loss) = (self.native(), self.rate, 2 * self.delay, self.loss);
        format!("{native}+rate={rate}bit+rtt={trip}ms+loss={loss}%")
    }

    /// Returns a flow that no window limits.
    pub(super) fn flow(&self, sender: &str) -> FlowSpec {
        let buffer = ByteCount(4 << 20).max(ByteCount(self.rate / 8));
        FlowSpec { receive_buffer: Some(buffer), send_buffer: Some(buffer), ..flow(sender) }
    }

    pub(super) fn scenario(
        &self,
        name: &str,
        sender: &str,
        time: Duration,
    ) -> Result<Scenario, LabError> {
        let flows = vec![self.flow(sender)];
        Ok(Scenario { duration: time, flows, ..Scenario::new(name, self.topology()?) })
    }
}

pub(super) fn header(sender: &str) -> u16 {
    if sender.starts_with("rrtp") { RRTP_HEADER } else { TCP_HEADER }
}

/// Returns a flow of packets with 1400 bytes of payload.
pub(super) fn flow(sender: &str) -> FlowSpec {
    let spec: Sender = sender.parse().expect("a name of the registry, or rrtp");
    let mtu = PAYLOAD as u16 + header(sender);
    let usual = FlowSpec { mtu, ..FlowSpec::new(spec) };
    match usual.sender {
        Sender::Tcp(_) => {
            // The thesis has ns-2.32 (4.1), which is the same here.
            FlowSpec { profile: paper::profile("ns-2.35"), timestamps: false, sack: false, ..usual }
        }
        Sender::Rrtp(_) | Sender::Udp(_) => usual,
    }
}

/// Returns the scenario of flows that share a link, which loses `error` per cent of the packets in
/// the data direction.
pub(super) fn shared(
    name: &str,
    link: &str,
    error: &str,
    flows: Vec<FlowSpec>,
    [warm_up, duration]: [Duration; 2],
) -> Result<Scenario, LabError> {
    let (forth, back) = (feed::spec(&format!("{link} loss {error}%"))?, feed::spec(link)?);
    let bottleneck = Wire { forth, back };
    let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
    Ok(Scenario { warm_up, duration, flows, ..Scenario::new(name, topology) })
}

/// Returns whether the sender is RRTP with parameters. The thesis presets them in its simulations
/// (4.2 and 4.2.1).
pub(super) fn is_seeded(sender: &str) -> bool {
    sender.contains('+')
}

/// Returns the name in tables in which RRTP has one form.
pub(super) fn short(sender: &str) -> &'static str {
    if sender == "rrtp" { "RRTP" } else { named(sender) }
}

/// Returns the name in tables.
pub(super) fn named(sender: &str) -> &'static str {
    match sender {
        RENO => "Reno",
        NEW_RENO => "NewReno",
        VEGAS => "Vegas",
        WESTWOOD => "Westwood",
        name if is_seeded(name) => "RRTP, seeded",
        _ => "RRTP, native",
    }
}

/// Returns the number of distinct packets that arrived in `time`.
pub(super) fn delivered(flow: &FlowResult, time: Duration) -> f64 {
    flow.goodput * time.as_secs_f64() / 8.0 / PAYLOAD
}
