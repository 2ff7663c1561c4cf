//! Two directly connected hosts with checksums and no device, and a transfer between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airtcp_sim::World;
use airtcp_stack::host::{Cidr, Host, HostConfig, SocketId};
use airtcp_types::{Instant, NodeId, Observer, PortId};

/// The size of a transfer.
const BYTES: usize = 8 << 20;
const SMSS: usize = 1448;
/// The size of a transfer in segments.
pub(crate) const SEGMENTS: usize = BYTES / SMSS;

/// Two hosts: the client sends to the server.
pub(crate) struct Pair {
    world: World<Host>,
    client: NodeId,
    server: NodeId,
    listener: SocketId,
}

impl Pair {
    /// Connects two hosts; `events` turns their events on.
    pub(crate) fn new(events: bool) -> Self {
        let mut world = World::new();
        let [client, server] = [1, 2].map(|last| {
            let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
            let mut config = HostConfig::new([Cidr::new(address, 24).expect("a prefix of 24")]);
            config.events = events;
            // Time passes in microseconds here, so a paced sender would mostly wait.
            config.tcp.sender.combination = "rack/cubic".parse().expect("a combination");
            world.add(Host::new(config))
        });
        world.connect((client, PortId(0)), (server, PortId(0)));
        let listen = |host: &mut Host, _| host.tcp_listen(Self::address(), 16);
        let listener = world.act(server, &mut (), listen).expect("it is there");
        Self { world, client, server, listener: listener.expect("a free port") }
    }

    fn address() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], 5001))
    }

    /// Moves [`BYTES`] over a new connection, and advances the clock by a microsecond per chunk.
    pub(crate) fn transfer(&mut self, observer: &mut (impl Observer + ?Sized)) {
        let connect = |host: &mut Host, now| host.tcp_connect(now, Self::address(), None);
        let client = self.act(self.client, observer, connect).expect("a connection to begin");
        let chunk = [0x5a; 65_536];
        let mut buffer = [0; 65_536];
        let (mut sent, mut received, mut server) = (0, 0, None);
        while received < BYTES {
            let left = &chunk[..chunk.len().min(BYTES - sent)];
            let send = |host: &mut Host, now| host.tcp_send(now, client, left).unwrap_or(0);
            sent += self.act(self.client, observer, send);
            let listener = self.listener;
            self.act(self.server, observer, |host, now| {
                if server.is_none() {
                    let accepted = host.tcp_accept(now, listener).ok().flatten();
                    server = accepted.map(|(socket, _)| socket);
                }
                let Some(server) = server else { return };
                while let Ok(length @ 1..) = host.tcp_recv(now, server, &mut buffer) {
                    received += length;
                }
            });
            let next = self.world.now() + Duration::from_micros(1);
            self.world.run_until(next, observer).expect("time goes on");
        }
        for (host, socket) in [(self.client, Some(client)), (self.server, server)] {
            let Some(socket) = socket else { continue };
            // The first host's reset may have closed the other connection.
            let _ = self.act(host, observer, |host, now| host.tcp_abort(now, socket));
        }
    }

    /// Calls `act` with a host after discarding its readiness notifications, which nothing uses
    /// here.
    fn act<T>(
        &mut self,
        id: NodeId,
        observer: &mut (impl Observer + ?Sized),
        act: impl FnOnce(&mut Host, Instant) -> T,
    ) -> T {
        let done = self.world.act(id, observer, |host, now| {
            while host.poll_ready().is_some() {}
            act(host, now)
        });
        done.expect("it is there")
    }
}
