//! A pair of devices: TCP goes to the stack of each, everything else from one device to the other.

use std::net::IpAddr;
use std::sync::Arc;

use airtcp_device::Device;
use airtcp_types::Packet;
use airtcp_wire::ip::{self, Datagram};
use airtcp_wire::{ParseError, fragment, icmp};

use crate::filter::{Filter, Filtered};
use crate::waiting::Waiting;

/// Joins two devices for packets that are not TCP.
///
/// The devices returned receive only TCP, and ICMP errors about TCP. Other packets leave unchanged
/// by the other device, except multicast and link-local ones. At most 512 packets wait in each
/// direction; further ones are dropped.
pub fn bypass<A: Device, B: Device>(one: A, other: B) -> (impl Device, impl Device) {
    let (here, there) = (Arc::<Waiting>::default(), Arc::<Waiting>::default());
    (
        Filtered::new(one, Bypass { here: here.clone(), there: there.clone() }),
        Filtered::new(other, Bypass { here: there, there: here }),
    )
}

/// Packets to send by a device, and by the other one.
#[derive(Debug)]
struct Bypass {
    here: Arc<Waiting>,
    there: Arc<Waiting>,
}

/// Whether a packet is a TCP segment, a fragment of one, or an ICMP error about one.
fn is_of_tcp(packet: &Packet) -> bool {
    let bytes = &packet.data;
    let protocol = match bytes.first().map(|first| first >> 4) {
        Some(4) => bytes.get(9),
        Some(6) => bytes.get(6),
        _ => None,
    };
    match protocol {
        None | Some(&ip::UDP) => false,
        Some(&ip::TCP) => true,
        Some(_) => match ip::parse_head(bytes, packet.len() - bytes.len()) {
            Ok(datagram) => datagram.protocol == ip::TCP || is_error_about_tcp(&datagram),
            Err(ParseError::Fragment) => {
                fragment::parse(bytes).is_ok_and(|part| part.protocol == ip::TCP)
            }
            Err(_) => false,
        },
    }
}

/// Whether a router may forward a packet. The kernel sends link-local packets of its own on every
/// device that is up.
fn is_routable(packet: &Packet) -> bool {
    let is_local = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    ip::addresses(&packet.data)
        .is_some_and(|(from, to)| !to.is_multicast() && !is_local(from) && !is_local(to))
}

fn is_error_about_tcp(datagram: &Datagram<'_>) -> bool {
    let quote = icmp::quoted(datagram).and_then(icmp::parse_quote);
    quote.is_some_and(|quote| quote.protocol == ip::TCP)
}

impl Filter for Bypass {
    fn admits(&mut self, packet: &mut Packet) -> bool {
        let is_of_tcp = is_of_tcp(packet);
        if !is_of_tcp && is_routable(packet) {
            self.there.push(std::mem::take(packet));
        }
        is_of_tcp
    }

    fn outbox(&self) -> Option<&Waiting> {
        Some(&self.here)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use airtcp_device::memory;
    use airtcp_types::{FlowId, SeqNumber};
    use airtcp_wire::checksum::checksum;
    use airtcp_wire::icmp::Complaint;
    use airtcp_wire::options::TcpOptions;
    use airtcp_wire::tcp::{self, Flags, Header};
    use airtcp_wire::udp;

    use super::*;

    const HOSTS: [(&str, &str); 2] = [("10.1.1.1", "192.0.2.1"), ("fd00::1", "2001:db8::1")];

    fn flow((own, to): (&str, &str)) -> FlowId {
        let at = |text: &str, port| SocketAddr::new(text.parse().unwrap(), port);
        FlowId { local: at(own, 4000), remote: at(to, 80) }
    }

    fn segment(hosts: (&str, &str)) -> Packet {
        let header = Header {
            seq: SeqNumber(1),
            ack: None,
            flags: Flags { syn: true, ..Flags::default() },
            window: 1000,
            options: TcpOptions::default(),
        };
        tcp::emit(&flow(hosts), 64, &header, b"data")
    }

    fn datagram(hosts: (&str, &str)) -> Packet {
        udp::emit(&flow(hosts), 64, b"question")
    }

    fn error_about(hosts: (&str, &str), packet: &Packet) -> Packet {
        let [own, to]: [IpAddr; 2] = [hosts.0.parse().unwrap(), hosts.1.parse().unwrap()];
        icmp::emit_error(to, own, 64, Complaint::Host, &packet.data)
    }

    /// Turns `packet` into the first fragment of a longer packet.
    fn fragment_of(mut packet: Packet) -> Packet {
        let data = &mut packet.data;
        if data[0] >> 4 == 4 {
            data[6..8].copy_from_slice(&[0x20, 0]);
            data[10..12].fill(0);
            let sum = checksum(&data[..20]);
            data[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            let protocol = std::mem::replace(&mut data[6], 44);
            data[5] += 8;
            data.splice(40..40, [protocol, 0, 0, 1, 0, 0, 0, 9]);
        }
        packet
    }

    #[tokio::test]
    async fn tcp_and_errors_about_it_arrive_and_everything_else_leaves_by_the_other_device() {
        let (mut left, one) = memory::pair(1500, 64);
        let (mut right, other) = memory::pair(1500, 64);
        let (mut one, mut other) = bypass(one, other);
        for hosts in HOSTS {
            let tcp = [segment(hosts), error_about(hosts, &segment(hosts))];
            let echo = icmp::emit_echo(
                hosts.0.parse().unwrap(),
                hosts.1.parse().unwrap(),
                64,
                &[0, 9, 0, 1],
            );
            let others = [datagram(hosts), error_about(hosts, &datagram(hosts)), echo];
            let all: Vec<_> = tcp.iter().chain(&others).cloned().collect();
            assert_eq!(left.try_send(&mut all.into()), 5);
            let mut received = Vec::new();
            assert_eq!(one.recv(&mut received, 64).await.unwrap(), 2);
            assert_eq!(received, tcp);
            other.readable().await.unwrap();
            received.clear();
            assert_eq!(other.try_recv(&mut received, 64).unwrap(), 0);
            assert_eq!(right.recv(&mut received, 64).await.unwrap(), 3);
            assert_eq!(received, others);
        }
    }

    #[test]
    fn a_fragment_goes_where_its_packet_goes() {
        for hosts in HOSTS {
            assert!(is_of_tcp(&fragment_of(segment(hosts))));
            assert!(!is_of_tcp(&fragment_of(datagram(hosts))));
        }
    }

    #[test]
    fn what_a_router_keeps_to_a_link_is_not_forwarded() {
        for hosts in HOSTS {
            assert!(is_routable(&datagram(hosts)));
        }
        for hosts in [("10.1.1.1", "224.0.0.1"), ("fe80::1", "ff02::16"), ("fe80::1", "fd00::1")] {
            assert!(!is_routable(&datagram(hosts)), "{hosts:?}");
        }
        assert!(!is_routable(&Packet::default()));
    }

    #[test]
    fn what_is_no_packet_is_not_taken_for_tcp() {
        for bytes in [&[][..], &[0x45], &[0x60; 39], &[0; 60]] {
            assert!(!is_of_tcp(&Packet::new(bytes.to_vec())), "{bytes:?}");
        }
    }
}
