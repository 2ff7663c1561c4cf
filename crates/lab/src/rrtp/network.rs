//! Table 4.3's environments, and who sends over them.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowResult, FlowSpec, Scenario, Sender, Topology, Wire};
use airtcp_types::ByteCount;

use crate::{LabError, feed};

/// The payload of a packet, bytes: the thesis' "packet size", to which ns-2 adds the header.
pub(super) const PAYLOAD: f64 = 1_400.0;
/// Bytes of IP and TCP without options, and of IP, UDP and RRTP.
pub(super) const TCP_HEADER: u16 = 40;
pub(super) const RRTP_HEADER: u16 = 56;
/// ns-2's usual queue: the thesis states none. Where the path holds more, as many as it holds.
const LEAST_QUEUE: u64 = 50;

pub(super) const RENO: &str = "reno/reno";
pub(super) const NEW_RENO: &str = "newreno/reno";
pub(super) const VEGAS: &str = "newreno/vegas";
pub(super) const WESTWOOD: &str = "newreno/westwood";

/// What ns-2's senders of the time were, RRTP beside them told nothing and told the truth.
pub(super) const SETUP: &str = "TCP is as in ns-2 (profile paper, no SACK, no timestamps), with a header of 40 bytes, and the \
                                detection reno (Reno) or newreno (all others); RRTP has 56 bytes of headers; both carry \
                                1400 bytes of payload in a packet";
/// What the thesis leaves out.
pub(super) const QUEUES: &str = "the thesis states no queue: 50 packets, or one BDP if that is more; packets \
                                 are lost towards the receiver only";

/// A row of Table 4.3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Environment {
    pub(super) name: &'static str,
    /// bit/s.
    pub(super) rate: u64,
    /// One way, ms.
    pub(super) delay: u64,
    /// Per cent.
    pub(super) loss: f64,
    /// Whether RRTP is told that the link is its own: thesis 4.2 says so of CDMA and satellite.
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
    /// Packets of 1440 bytes that the path holds both ways.
    pub(super) fn product(&self) -> f64 {
        let round_trip = 2.0 * self.delay as f64 / 1e3;
        self.rate as f64 * round_trip / 8.0 / (PAYLOAD + f64::from(TCP_HEADER))
    }

    pub(super) fn queue(&self) -> u64 {
        (self.product() as u64).max(LEAST_QUEUE)
    }

    /// The payload of a sender that comes through, at most, bit/s.
    pub(super) fn most(&self, sender: &str) -> f64 {
        let packet = PAYLOAD + f64::from(header(sender));
        self.rate as f64 * PAYLOAD / packet * (1.0 - self.loss / 100.0)
    }

    /// Packets with such a header that the link can carry in a time.
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

    /// RRTP as the thesis has it here, told nothing.
    pub(super) fn native(&self) -> &'static str {
        if self.is_last_hop { "rrtp:wireless-last-hop" } else { "rrtp" }
    }

    /// The same, told what is true.
    pub(super) fn seeded(&self) -> String {
        let (native, rate, trip, loss) = (self.native(), self.rate, 2 * self.delay, self.loss);
        format!("{native}+rate={rate}bit+rtt={trip}ms+loss={loss}%")
    }

    /// A flow that no window limits.
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

/// A flow of packets with 1400 bytes of payload.
pub(super) fn flow(sender: &str) -> FlowSpec {
    let spec: Sender = sender.parse().expect("a name of the registry, or rrtp");
    let mtu = PAYLOAD as u16 + header(sender);
    let usual = FlowSpec { mtu, ..FlowSpec::new(spec) };
    match usual.sender {
        Sender::Tcp(_) => {
            FlowSpec { profile: Profile::paper(), timestamps: false, sack: false, ..usual }
        }
        Sender::Rrtp(_) | Sender::Udp(_) => usual,
    }
}

/// Flows that share a link, which loses `error` per cent of what goes forth.
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

/// As tables name them, where RRTP has one form.
pub(super) fn short(sender: &str) -> &'static str {
    if sender == "rrtp" { "RRTP" } else { named(sender) }
}

/// As tables name them.
pub(super) fn named(sender: &str) -> &'static str {
    match sender {
        RENO => "Reno",
        NEW_RENO => "NewReno",
        VEGAS => "Vegas",
        WESTWOOD => "Westwood",
        name if name.contains('+') => "RRTP, seeded",
        _ => "RRTP, native",
    }
}

/// Packets that arrived in a time, each once.
pub(super) fn delivered(flow: &FlowResult, time: Duration) -> f64 {
    flow.goodput * time.as_secs_f64() / 8.0 / PAYLOAD
}
