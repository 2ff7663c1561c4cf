//! The host, its clock, and the packets that it has sent.

use std::collections::{BTreeMap, VecDeque};

use airtcp_stack::Host;
use airtcp_stack::host::HostConfig;
use airtcp_stack::tcp::{Offer, TcpConfig};
use airtcp_types::{ByteCount, Instant, Node, Packet, PortId};
use airtcp_wire::into_segments;

use crate::flags::Flags;
use crate::socket::Socket;
use crate::sysctls;

/// The time at which a script starts; times must not depend on starting from zero.
const BEGIN: Instant = Instant::from_millis(1_000_000_000);

/// The source of initial sequence numbers and timestamps. It is constant, so that a script is
/// reproducible; there is no attacker to guess them.
const SECRET: [u8; 16] = *b"packetdrill runs";

/// A packet that was sent, and its time.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) bytes: Vec<u8>,
}

/// The state that a script acts on.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) host: Host,
    /// The initial configuration of sockets.
    pub(crate) defaults: TcpConfig,
    pub(crate) now: Instant,
    pub(crate) sockets: BTreeMap<i32, Socket>,
    flags: Flags,
    /// Whether a socket was ever opened.
    begun: bool,
    sent: VecDeque<Sent>,
}

impl World {
    pub(crate) fn new(flags: Flags) -> Self {
        Self {
            host: host(&flags, flags.tcp.clone(), sysctls::AT_ONCE),
            defaults: flags.tcp.clone(),
            now: BEGIN,
            sockets: BTreeMap::new(),
            flags,
            begun: false,
            sent: VecDeque::new(),
        }
    }

    /// Reads the sysctls before the first socket: packetdrill has run the commands that set them by
    /// then.
    pub(crate) fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) && self.flags.sysctls {
            sysctls::apply(&mut self.defaults, sysctls::read);
            self.defaults.ecn = self.flags.ecn.unwrap_or(self.defaults.ecn);
            let at_once = sysctls::segments_at_once(&self.defaults, sysctls::read);
            self.host = host(&self.flags, self.defaults.clone(), at_once);
        }
    }

    /// Processes a packet that arrives.
    pub(crate) fn receive(&mut self, bytes: Vec<u8>) {
        self.host.handle_packet(self.now, PortId(0), Packet::new(bytes));
    }

    /// Advances the time to `now`, if it is later, and runs timers.
    pub(crate) fn on_time(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.host.poll_timeout().is_some_and(|at| at <= self.now) {
            self.host.handle_timeout(self.now);
        }
        self.settle();
    }

    /// Transmits what is due and updates the readiness of sockets, after each call.
    pub(crate) fn settle(&mut self) {
        while let Some((_, packet)) = self.host.poll_transmit(self.now) {
            let at = self.now;
            into_segments(packet, |segment| self.sent.push_back(Sent { at, bytes: segment.data }));
        }
        self.watch();
    }

    /// Returns the host's next deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    pub(crate) fn pop_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }
}

fn host(flags: &Flags, tcp: TcpConfig, segments_at_once: u16) -> Host {
    let addresses = flags.addresses.iter().copied();
    // Offload as in Linux, which passes several segments at once to any device; but HACK requires a
    // checksum in each segment.
    let offers_hack = tcp.hack == Offer::Always || tcp.sender.combination.needs().hack;
    Host::new(HostConfig {
        secret: SECRET,
        mtu: ByteCount(tcp.mtu.into()),
        tcp,
        segmentation_offload: !offers_hack,
        segments_at_once,
        ..HostConfig::new(addresses)
    })
}

#[cfg(test)]
mod tests {
    use airtcp_wire::options::TcpOptions;

    use super::*;

    /// The SYN of the first connection that a script opens.
    fn syn(flags: &str) -> Vec<u8> {
        let mut world = World::new(flags.parse().unwrap());
        let remote = "192.0.2.1:8080".parse().unwrap();
        world.host.tcp_connect(world.now, remote, None).unwrap();
        world.settle();
        world.pop_sent().unwrap().bytes
    }

    #[test]
    fn packets_may_be_as_large_as_a_script_says() {
        for (flags, mss) in [("", 1460), ("mtu=640", 600), ("mtu=9000", 8960)] {
            assert_eq!(TcpOptions::parse(&syn(flags)[40..]).mss, Some(mss), "{flags}");
        }
    }

    #[test]
    fn a_script_repeats_exactly() {
        assert_eq!(syn(""), syn(""));
    }
}
