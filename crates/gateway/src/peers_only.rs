//! A device that accepts packets only from known peers.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airtcp_device::Device;
use airtcp_types::Packet;
use airtcp_wire::{icmp, ip};
use tokio::time::Instant;

use crate::carried::lock;
use crate::filter::{Filter, Filtered};

/// Returns a device that drops packets from addresses other than its peers', and its counters.
///
/// A peer is an address, and anyone who can send from that address is the peer: nothing is
/// authenticated. ICMP errors of routers pass if they quote a packet to a peer; the stack checks
/// them further (RFC 5927).
pub fn peers_only<D: Device>(device: D, peers: &[IpAddr]) -> (impl Device + use<D>, PeerFigures) {
    let peers = peers.iter().map(|peer| (*peer, Exchanged::default())).collect();
    let shared = Arc::new(Mutex::new(Shared { peers, refused: 0 }));
    let filter = PeersOnly { shared: shared.clone(), sending: Vec::new() };
    (Filtered::new(device, filter), PeerFigures(shared))
}

#[derive(Debug)]
struct PeersOnly {
    shared: Arc<Mutex<Shared>>,
    /// Destinations and lengths of the packets in the current `try_send` call.
    sending: Vec<(Option<IpAddr>, u64)>,
}

/// The counters of a device of [`peers_only`], cheap to clone. They outlive the device.
#[derive(Clone, Debug)]
pub struct PeerFigures(Arc<Mutex<Shared>>);

/// Traffic exchanged with a peer. Bytes are those of IP packets, including headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerFigure {
    /// The peer's address.
    pub address: IpAddr,
    /// The time since the peer's last packet.
    pub last_packet: Option<Duration>,
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

#[derive(Debug)]
struct Shared {
    peers: BTreeMap<IpAddr, Exchanged>,
    refused: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Exchanged {
    last_packet: Option<Instant>,
    received: u64,
    sent: u64,
}

impl PeerFigures {
    /// The counters of each peer, in the order of their addresses.
    pub fn peers(&self) -> Vec<PeerFigure> {
        let shared = lock(&self.0);
        let figure = |(address, exchanged): (&IpAddr, &Exchanged)| PeerFigure {
            address: *address,
            last_packet: exchanged.last_packet.map(|at| at.elapsed()),
            received: exchanged.received,
            sent: exchanged.sent,
        };
        shared.peers.iter().map(figure).collect()
    }

    /// The number of packets from others, which were dropped.
    pub fn refused(&self) -> u64 {
        lock(&self.0).refused
    }
}

impl Shared {
    /// Counts a packet that has arrived; returns whether it passes.
    fn admit(&mut self, packet: &Packet) -> bool {
        let source = ip::addresses(&packet.data).map(|(source, _)| source);
        if let Some(peer) = source.and_then(|source| self.peers.get_mut(&source)) {
            peer.last_packet = Some(Instant::now());
            peer.received += packet.len() as u64;
            return true;
        }
        let error = ip::parse(&packet.data).ok();
        let about = error.as_ref().and_then(icmp::quoted).and_then(ip::addresses);
        let passes = about.is_some_and(|(_, to)| self.peers.contains_key(&to));
        self.refused += u64::from(!passes);
        passes
    }
}

impl Filter for PeersOnly {
    fn admits(&mut self, packet: &mut Packet) -> bool {
        lock(&self.shared).admit(packet)
    }

    fn try_send(&mut self, device: &mut impl Device, packets: &mut VecDeque<Packet>) -> usize {
        let of =
            |packet: &Packet| (ip::addresses(&packet.data).map(|(_, to)| to), packet.len() as u64);
        self.sending.extend(packets.iter().map(of));
        let sent = device.try_send(packets);
        let mut shared = lock(&self.shared);
        for (to, length) in self.sending.drain(..).take(sent) {
            if let Some(peer) = to.and_then(|to| shared.peers.get_mut(&to)) {
                peer.sent += length;
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use airtcp_device::memory;
    use airtcp_wire::icmp::Complaint;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn echo(from: &str, to: &str) -> Packet {
        icmp::emit_echo(ip(from), ip(to), 64, &[0, 9, 0, 1, b'x'])
    }

    /// An ICMP error of a router about `packet`.
    fn error(from: &str, to: &str, packet: &Packet) -> Packet {
        icmp::emit_error(ip(from), ip(to), 64, Complaint::Host, &packet.data)
    }

    #[tokio::test]
    async fn packets_of_peers_and_errors_about_packets_to_them_pass() {
        for (own, peer, other) in
            [("10.77.0.1", "10.77.0.2", "10.77.0.3"), ("fd77::1", "fd77::2", "fd77::3")]
        {
            let (mut link, device) = memory::pair(1500, 64);
            let (mut device, figures) = peers_only(device, &[ip(peer)]);
            let sent = echo(own, peer);
            let mut packets: VecDeque<_> = [
                echo(peer, own),
                echo(other, own),
                error(other, own, &sent),
                error(other, own, &echo(own, other)),
                Packet::new(vec![0x45; 8]),
                Packet::new(vec![7]),
            ]
            .into();
            let passing = [0, 2].map(|at: usize| packets[at].data.clone());
            link.try_send(&mut packets);
            let mut received = Vec::new();
            device.recv(&mut received, 64).await.unwrap();
            let received: Vec<_> = received.into_iter().map(|packet| packet.data).collect();
            assert_eq!(received, passing);
            assert_eq!(figures.refused(), 4);
            let length = sent.len() as u64;
            assert_eq!(device.try_send(&mut [sent, echo(own, other)].into()), 2);
            let figure = figures.peers()[0];
            assert_eq!((figure.address, figure.received), (ip(peer), length));
            assert!(figure.sent == length && figure.last_packet.is_some(), "{figure:?}");
        }
    }
}
