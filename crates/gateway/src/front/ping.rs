//! Pings: echo requests to any address are taken from a device, and the destination's replies are
//! sent back by it.
//!
//! The far gateway pings with the kernel's ICMP echo sockets, which the group of its process must
//! be allowed to open (`net.ipv4.ping_group_range`). If the destination does not answer, the
//! program gets no answer. A fragmented request is refused.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use airtcp_device::Device;
use airtcp_types::Packet;
use airtcp_wire::fragment::{self, Fragment};
use airtcp_wire::icmp::{self, Complaint, Message};
use airtcp_wire::ip;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::intercept::{Associations, SHORT};
use crate::datagram::{Association, NearDatagrams};
use crate::filter::{Filter, Filtered};
use crate::waiting::Waiting;

/// The most pings that may wait.
const WAITING: usize = 256;
/// The next-header value of an IPv6 fragment (RFC 8200 section 4.5).
const FRAGMENT: u8 = 44;
/// The hop limit of the answers: Linux's default.
const HOP_LIMIT: u8 = 64;

#[derive(Debug)]
struct WithoutPings {
    requests: mpsc::Sender<Ping>,
    replies: Arc<Waiting>,
}

/// The echo requests that arrived at a device, for [`carry_pings`].
#[derive(Debug)]
pub struct Pings {
    requests: mpsc::Receiver<Ping>,
    replies: Arc<Waiting>,
}

/// An echo request.
#[derive(PartialEq, Eq, Debug)]
struct Ping {
    /// The address of the program, with the echo identifier as the port.
    source: SocketAddr,
    to: IpAddr,
    /// The sequence number, followed by the data to echo.
    data: Vec<u8>,
}

/// Removes the echo requests from the packets that arrive at `device`.
pub fn without_pings<D: Device>(device: D) -> (impl Device, Pings) {
    let (ask, requests) = mpsc::channel(WAITING);
    let replies = Arc::<Waiting>::default();
    let filter = WithoutPings { requests: ask, replies: replies.clone() };
    (Filtered::new(device, filter), Pings { requests, replies })
}

/// Carries pings until their device is dropped.
///
/// # Errors
/// The stack of `near` has ended.
pub async fn carry_pings(pings: Pings, near: NearDatagrams) -> io::Result<()> {
    let Pings { mut requests, replies } = pings;
    let mut associations = Associations::new(near);
    loop {
        let ping = tokio::select! {
            () = associations.ended() => continue,
            ping = requests.recv() => match ping {
                Some(ping) => ping,
                None => return Ok(()),
            },
        };
        let answers = |association| answer(association, ping.source, replies.clone());
        if let Some(association) = associations.of(ping.source, answers)? {
            match association.ping(&ping.data, ping.to) {
                Err(error) if error.kind() != ErrorKind::InvalidInput => return Err(error),
                _ => {}
            }
        }
    }
}

/// Passes replies on to one program.
async fn answer(association: Arc<Association>, source: SocketAddr, replies: Arc<Waiting>) {
    while let Ok(Ok((data, from))) = timeout(SHORT, association.recv()).await {
        let echoed = [&source.port().to_be_bytes(), &data[..]].concat();
        let from = from.ip().to_canonical();
        if from.is_ipv4() == source.is_ipv4() {
            replies.push(icmp::emit_echo_reply(from, source.ip(), HOP_LIMIT, &echoed));
        }
    }
}

/// Parses a packet that is a fragment of ICMP.
fn fragment(packet: &Packet) -> Option<Fragment<'_>> {
    let may_be = [ip::ICMP, FRAGMENT].contains(&protocol(packet)?);
    let fragment = may_be.then(|| fragment::parse(&packet.data).ok()).flatten()?;
    [ip::ICMP, ip::ICMPV6].contains(&fragment.protocol).then_some(fragment)
}

/// Returns the ICMP error about the first fragment of an echo request; `None` for other fragments.
fn refuse(packet: &Packet, fragment: &Fragment<'_>) -> Option<Packet> {
    let (from, to, why) = (fragment.dst, fragment.src, Complaint::Prohibited);
    let echo = if to.is_ipv4() { 8 } else { 128 };
    let is_first = fragment.offset == 0 && fragment.payload.first() == Some(&echo);
    is_first.then(|| icmp::emit_error(from, to, HOP_LIMIT, why, &packet.data))
}

/// Returns the IPv4 protocol, or the IPv6 next header of the fixed header.
fn protocol(packet: &Packet) -> Option<u8> {
    let at = if packet.data.first()? >> 4 == 4 { 9 } else { 6 };
    packet.data.get(at).copied()
}

/// Parses a packet that is an unfragmented echo request.
fn ping(packet: &Packet) -> Option<Ping> {
    // Rejects most packets after one look.
    if ![ip::ICMP, ip::ICMPV6].contains(&protocol(packet)?) || !packet.tail.is_empty() {
        return None;
    }
    let datagram = ip::parse(&packet.data).ok()?;
    let Ok(Message::Echo(echo)) = icmp::parse(&datagram) else { return None };
    let (identifier, data) = echo.split_first_chunk()?;
    let source = SocketAddr::new(datagram.src, u16::from_be_bytes(*identifier));
    Some(Ping { source, to: datagram.dst, data: data.to_vec() })
}

impl Filter for WithoutPings {
    fn admits(&mut self, packet: &mut Packet) -> bool {
        if let Some(ping) = ping(packet) {
            // With a full queue, the ping is lost.
            let _ = self.requests.try_send(ping);
            return false;
        }
        let Some(fragment) = fragment(packet) else { return true };
        refuse(packet, &fragment).into_iter().for_each(|error| self.replies.push(error));
        false
    }

    fn outbox(&self) -> Option<&Waiting> {
        Some(&self.replies)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use airtcp_device::memory;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn echo_requests_are_taken_out_and_answers_are_put_in() {
        let (mut program, device) = memory::pair(1500, 64);
        let (mut device, mut pings) = without_pings(device);
        let echo = [0, 9, 0, 1, b'x'];
        let mut packets = VecDeque::new();
        for (own, to) in [("10.1.1.1", "192.0.2.1"), ("fd00::1", "2001:db8::1")] {
            packets.push_back(icmp::emit_echo(ip(own), ip(to), 64, &echo));
            packets.push_back(icmp::emit_echo_reply(ip(own), ip(to), 64, &echo));
        }
        let others: Vec<_> = [1, 3].map(|at| packets[at].data.clone()).into();
        assert_eq!(program.try_send(&mut packets), 4);
        let mut received = Vec::new();
        assert_eq!(device.recv(&mut received, 64).await.unwrap(), 2);
        assert_eq!(received.iter().map(|one| one.data.clone()).collect::<Vec<_>>(), others);
        for (own, to) in [("10.1.1.1:9", "192.0.2.1"), ("[fd00::1]:9", "2001:db8::1")] {
            let expected =
                Ping { source: own.parse().unwrap(), to: ip(to), data: vec![0, 1, b'x'] };
            assert_eq!(pings.requests.recv().await, Some(expected));
        }
        let reply = icmp::emit_echo_reply(ip("192.0.2.1"), ip("10.1.1.1"), 64, &echo);
        let bytes = reply.data.clone();
        pings.replies.push(reply);
        device.readable().await.unwrap();
        assert_eq!(device.try_recv(&mut received, 64).unwrap(), 0);
        received.clear();
        program.recv(&mut received, 64).await.unwrap();
        assert_eq!(received[0].data, bytes);
    }

    /// The first or the last fragment of `packet`.
    fn cut(packet: &Packet, is_first: bool) -> Packet {
        let is_ipv4 = packet.data[0] >> 4 == 4;
        let (headers, payload) = packet.data.split_at(if is_ipv4 { 20 } else { 40 });
        let (first, last) = payload.split_at(16);
        let mut cut = headers.to_vec();
        match (is_ipv4, is_first) {
            (true, true) => cut[6..8].copy_from_slice(&[0x20, 0]),
            (true, false) => cut[6..8].copy_from_slice(&[0, 2]),
            (false, _) => {
                cut[6] = FRAGMENT;
                cut.extend([ip::ICMPV6, 0, 0, if is_first { 1 } else { 2 << 3 }, 0, 0, 0, 7]);
            }
        }
        cut.extend_from_slice(if is_first { first } else { last });
        assert!(fragment::complete(&mut cut, 0));
        Packet::new(cut)
    }

    #[tokio::test]
    async fn a_ping_in_fragments_is_refused_once_and_not_carried() {
        for (own, to) in [("10.1.1.1", "192.0.2.1"), ("fd00::1", "2001:db8::1")] {
            let (mut program, device) = memory::pair(1500, 64);
            let (mut device, mut pings) = without_pings(device);
            let wholes = [icmp::emit_echo, icmp::emit_echo_reply]
                .map(|emit| emit(ip(own), ip(to), 64, &[7; 40]));
            let cuts = |whole| [true, false].map(|is_first| cut(whole, is_first));
            let mut packets: VecDeque<_> = wholes.iter().flat_map(cuts).collect();
            let first = packets[0].clone();
            program.try_send(&mut packets);
            device.readable().await.unwrap();
            let mut received = Vec::new();
            assert_eq!(device.try_recv(&mut received, 64).unwrap(), 0);
            assert!(pings.requests.try_recv().is_err());
            device.readable().await.unwrap();
            device.try_recv(&mut received, 64).unwrap();
            program.recv(&mut received, 64).await.unwrap();
            let why = Complaint::Prohibited;
            let expected = icmp::emit_error(ip(to), ip(own), HOP_LIMIT, why, &first.data);
            assert_eq!((received.len(), &received[0].data), (1, &expected.data));
        }
    }
}
