//! The list of connections, as `ss -tinm` shows it.

use std::net::SocketAddr;

use airtcp_types::{ByteCount, Instant};

use crate::tcp::{Info, State};

use super::{Host, Kind};

/// An entry of the list of connections.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// The local address.
    pub local: SocketAddr,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The state of the connection.
    pub state: State,
    /// The memory used (bytes).
    pub held: ByteCount,
    /// The details of the connection; `None` in TIME-WAIT after the application has closed it.
    pub info: Option<Info>,
}

impl Host {
    /// Returns the first `most` connections (a number), including those that the application has
    /// closed or not yet accepted. The order has no meaning, but is the same in every run.
    pub fn tcp_listing(&self, now: Instant, most: usize) -> Vec<Listed> {
        let listed = self.sockets.iter().filter_map(|socket| {
            let (flow, state, held, info) = match &socket.kind {
                Kind::Tcp(tcp) if !tcp.is_gone() => {
                    let info = tcp.connection.info(now);
                    (tcp.connection.flow(), info.state, tcp.held, Some(info))
                }
                Kind::TimeWait(socket) => {
                    (socket.wait.flow(), State::TimeWait, ByteCount::ZERO, None)
                }
                _ => return None,
            };
            Some(Listed { local: flow.local, peer: flow.remote, state, held, info })
        });
        listed.take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::{Node, PortId};

    use super::*;
    use crate::HostConfig;

    #[test]
    fn every_connection_is_listed_with_what_it_holds() {
        let now = Instant::ZERO;
        let host = |address: &str| Host::new(HostConfig::new([address.parse().unwrap()]));
        let (mut server, mut client) = (host("10.0.0.1/24"), host("10.0.0.2/24"));
        let remote = "10.0.0.1:80".parse().unwrap();
        server.tcp_listen(remote, 8).unwrap();
        let ids = [0, 1].map(|_| client.tcp_connect(now, remote, None).unwrap());
        for _ in 0..3 {
            while let Some((_, packet)) = client.poll_transmit(now) {
                server.handle_packet(now, PortId(0), packet);
            }
            while let Some((_, packet)) = server.poll_transmit(now) {
                client.handle_packet(now, PortId(0), packet);
            }
        }
        client.tcp_send(now, ids[0], b"hello").unwrap();
        let listed = client.tcp_listing(now, 10);
        assert_eq!(listed.len(), 2);
        let first =
            listed.iter().find(|one| one.local == client.local_addr(ids[0]).unwrap()).unwrap();
        assert_eq!((first.peer, first.state), (remote, State::Established));
        assert!(first.held >= ByteCount(5));
        assert_eq!(first.info.as_ref().unwrap().send_q, ByteCount(5));
        assert_eq!(client.tcp_listing(now, 1).len(), 1);
        // Connections that were not accepted are listed; listeners are not.
        assert_eq!(server.tcp_listing(now, 10).len(), 2);
    }
}
