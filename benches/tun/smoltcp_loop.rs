//! A bare smoltcp poll loop as the baseline: no tasks, no wakers, CUBIC, buffers of 1 MiB for bulk.
//! It allocates only for more concurrent connections than there were before.

use std::io;

use smoltcp::iface::{
    Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet,
};
use smoltcp::phy::wait;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::client::{PREFIX, STACK};
use crate::services::{CHUNK, Service};
use crate::subject::{DEVICE, say_ready};
use crate::vnet::TunDevice;

/// Buffer bytes for bulk data; [`LITTLE`] is for the other direction.
const BULK: usize = 1 << 20;
const LITTLE: usize = 1 << 12;
/// Buffer bytes in both directions of an echo.
const ECHO: usize = 1 << 16;
/// Sockets that listen for bulk flows, which arrive one after another.
const LISTENERS: usize = 4;
const MOST_IDLE: Duration = Duration::from_millis(100);
/// The most packets to receive, and then the most rounds of a packet from each socket, before the
/// services run. smoltcp's own `poll` continues until nothing is left, which takes long under load.
const MOST_IN: usize = 128;
const MOST_OUT: usize = 16;

/// A socket and the service on it.
struct Server {
    handle: SocketHandle,
    service: Service,
    count: u64,
    state: Use,
}

#[derive(PartialEq)]
enum Use {
    Listening,
    Connected,
    /// The answer and the FIN are queued.
    Answered,
    Free,
}

/// Serves until the process is killed; at least `echoes` sockets always listen for echoes.
pub(crate) fn serve(offload: bool, echoes: usize) -> io::Result<()> {
    let mut device = TunDevice::open(DEVICE, offload)?;
    let fd = device.descriptor();
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = 1;
    let mut interface = Interface::new(config, &mut device, Instant::now());
    let own = IpCidr::new(STACK.into(), PREFIX);
    interface.update_ip_addrs(|addresses| addresses.push(own).expect("room for an address"));
    let mut servers = Servers { sockets: SocketSet::new(Vec::new()), servers: Vec::new() };
    let wanted = Service::ALL
        .map(|service| (service, if service == Service::Echo { echoes } else { LISTENERS }));
    servers.refill(&wanted);
    let (payload, mut buffer) = (vec![0x5a; CHUNK], vec![0; CHUNK]);
    say_ready();
    loop {
        let (now, sockets) = (Instant::now(), &mut servers.sockets);
        interface.poll_maintenance(now);
        let more_in = (0..MOST_IN).all(|_| {
            let polled = interface.poll_ingress_single(now, &mut device, sockets);
            polled != PollIngressSingleResult::None
        });
        let more_out = (0..MOST_OUT)
            .all(|_| interface.poll_egress(now, &mut device, sockets) != PollResult::None);
        let (worked, accepted) = servers.work(&payload, &mut buffer);
        if accepted {
            servers.refill(&wanted);
        }
        if !(worked || more_in || more_out) {
            let delay = interface.poll_delay(Instant::now(), &servers.sockets);
            wait(fd, Some(delay.unwrap_or(MOST_IDLE)))?;
        }
    }
}

struct Servers {
    sockets: SocketSet<'static>,
    servers: Vec<Server>,
}

impl Servers {
    /// Runs all services. Returns whether data moved, and whether a connection opened.
    fn work(&mut self, payload: &[u8], buffer: &mut [u8]) -> (bool, bool) {
        let (mut worked, mut accepted) = (false, false);
        for server in &mut self.servers {
            if server.state == Use::Free {
                continue;
            }
            let socket = self.sockets.get_mut::<Socket<'_>>(server.handle);
            match socket.state() {
                State::Listen => continue,
                State::Closed | State::TimeWait => {
                    // This includes a connection that was reset before this loop saw it.
                    accepted |= server.state == Use::Listening;
                    server.state = Use::Free;
                    continue;
                }
                _ => {}
            }
            if server.state == Use::Listening {
                server.state = Use::Connected;
                accepted = true;
            }
            worked |= server.work(socket, payload, buffer);
        }
        (worked, accepted)
    }

    /// Makes this many sockets listen for each service: first sockets whose connections have ended,
    /// then new ones.
    fn refill(&mut self, wanted: &[(Service, usize)]) {
        for &(service, wanted) in wanted {
            let own = |server: &&mut Server| server.service == service;
            let listening = self.servers.iter_mut().filter(own);
            let listening = listening.filter(|server| server.state == Use::Listening).count();
            let mut missing = wanted.saturating_sub(listening);
            for server in self.servers.iter_mut().filter(own) {
                if missing > 0 && server.state == Use::Free {
                    listen(self.sockets.get_mut(server.handle), service);
                    (server.count, server.state) = (0, Use::Listening);
                    missing -= 1;
                }
            }
            for _ in 0..missing {
                let (receive, send) = match service {
                    Service::Sink | Service::Reader => (BULK, LITTLE),
                    Service::Source => (LITTLE, BULK),
                    Service::Echo => (ECHO, ECHO),
                };
                let [receive, send] = [receive, send].map(|size| SocketBuffer::new(vec![0; size]));
                let mut socket = Socket::new(receive, send);
                listen(&mut socket, service);
                let handle = self.sockets.add(socket);
                self.servers.push(Server { handle, service, count: 0, state: Use::Listening });
            }
        }
    }
}

fn listen(socket: &mut Socket<'_>, service: Service) {
    socket.listen(service.port()).expect("a socket that is closed");
    // Set again, because a socket keeps the window of its previous connection.
    socket.set_congestion_control(CongestionControl::Cubic);
}

impl Server {
    fn work(&mut self, socket: &mut Socket<'_>, payload: &[u8], buffer: &mut [u8]) -> bool {
        let mut worked = false;
        match self.service {
            Service::Source => {
                while socket.can_send() && socket.send_slice(payload).is_ok_and(|sent| sent > 0) {
                    worked = true;
                }
                if socket.state() == State::CloseWait {
                    socket.abort();
                    worked = true;
                }
                return worked;
            }
            Service::Sink => {
                while socket.can_recv() {
                    let length = socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap_or(0);
                    self.count += length as u64;
                    worked = true;
                }
            }
            Service::Reader => {
                while socket.can_recv() {
                    self.count += socket.recv_slice(buffer).unwrap_or(0) as u64;
                    worked = true;
                }
            }
            Service::Echo => {
                let mut bytes = [0; 64];
                while socket.can_recv() && socket.can_send() {
                    let length = socket.recv_slice(&mut bytes).unwrap_or(0);
                    // The send buffer is as large as the receive buffer.
                    let _ = socket.send_slice(&bytes[..length]);
                    worked = true;
                }
            }
        }
        if socket.state() == State::CloseWait && self.state != Use::Answered && !socket.can_recv() {
            if matches!(self.service, Service::Sink | Service::Reader) {
                let _ = socket.send_slice(&self.count.to_be_bytes());
            }
            socket.close();
            self.state = Use::Answered;
            worked = true;
        }
        worked
    }
}
