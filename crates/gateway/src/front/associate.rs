//! SOCKS5's UDP ASSOCIATE (RFC 1928 section 7): datagrams of a program, each preceded by a header
//! with the address of its destination or source.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{new_udp_header, parse_udp_request};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UdpSocket};

use crate::Destination;
use crate::datagram::Association;

/// The longest UDP datagram, including the header before the data.
const LONGEST: usize = 65_535;

/// The datagrams of a program.
pub(super) struct Relay {
    pub(super) socket: UdpSocket,
    pub(super) association: Association,
    /// The address that the program sends from: the IP address of its TCP connection, and the port
    /// that it announced; if it announced none, that of its first datagram.
    pub(super) address: SocketAddr,
}

impl Relay {
    /// Returns the address of the program at `peer`, which announced `target` for its datagrams.
    pub(super) fn address(peer: SocketAddr, target: &TargetAddr) -> SocketAddr {
        let port = match target {
            TargetAddr::Ip(announced) => announced.port(),
            TargetAddr::Domain(..) => 0,
        };
        SocketAddr::new(peer.ip().to_canonical(), port)
    }

    /// Carries datagrams until the program closes its TCP connection, or the association is idle
    /// for too long.
    pub(super) async fn run(mut self, mut control: TcpStream) {
        let (mut packet, mut data) = (vec![0; LONGEST], vec![0; LONGEST]);
        let mut ignored = [0; 64];
        loop {
            tokio::select! {
                read = control.read(&mut ignored) => if matches!(read, Ok(0) | Err(_)) {
                    return;
                },
                received = self.socket.recv_from(&mut packet) => {
                    let Ok((length, from)) = received else { continue };
                    if self.is_known(from) && self.send(&packet[..length]).await.is_err() {
                        return;
                    }
                }
                received = self.association.recv_from(&mut data) => {
                    let Ok((length, from)) = received else { return };
                    self.deliver(from, &data[..length]).await;
                }
            }
        }
    }

    /// Whether `from` is the program's address. Learns the port if it is not known yet.
    fn is_known(&mut self, from: SocketAddr) -> bool {
        let is_its = from.ip() == self.address.ip()
            && (self.address.port() == 0 || self.address.port() == from.port());
        if is_its {
            self.address = from;
        }
        is_its
    }

    /// Sends a datagram of the program. Drops malformed datagrams and fragments.
    async fn send(&self, packet: &[u8]) -> io::Result<()> {
        let Ok((0, target, data)) = parse_udp_request(packet).await else { return Ok(()) };
        let (host, port) = target.into_string_and_port();
        let Ok(to) = Destination::new(&host, port) else { return Ok(()) };
        match self.association.send_to(data, &to).await {
            Err(error) if error.kind() != ErrorKind::InvalidInput => Err(error),
            _ => Ok(()),
        }
    }

    /// Passes a datagram on to the program.
    async fn deliver(&self, from: SocketAddr, data: &[u8]) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let Ok(mut packet) = new_udp_header(from) else { return };
        packet.extend_from_slice(data);
        // With its header, the datagram may be too long; it is then lost.
        let _ = self.socket.send_to(&packet, self.address).await;
    }
}
