//! A bare smoltcp poll loop, the peer to beat: no tasks, no wakers, 1 MiB buffers, CUBIC.

use std::os::fd::AsRawFd;

use airtcp_testbed::Namespace;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use crate::peer::{KERNEL_CIDR, SINK, SOURCE, STACK, Subject};

const BUFFER: usize = 1 << 20;

pub(crate) struct SmoltcpLoop {
    namespace: Namespace,
}

impl SmoltcpLoop {
    pub(crate) fn start() -> Self {
        let namespace = Namespace::new().expect("a namespace");
        let (opened, is_open) = std::sync::mpsc::channel();
        namespace
            .spawn_thread(move || {
                let device = TunTapInterface::new("tun0", Medium::Ip).expect("a TUN device");
                opened.send(()).expect("the bench to wait");
                run(device);
            })
            .expect("a thread");
        is_open.recv().expect("smoltcp to open its device");
        let address = KERNEL_CIDR.parse().expect("an address");
        namespace.configure("tun0", &[address], Some(1500)).expect("the kernel's address");
        Self { namespace }
    }
}

impl Subject for SmoltcpLoop {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}

/// One listening socket and what it serves.
struct Service {
    handle: SocketHandle,
    port: u16,
    count: u64,
    answered: bool,
}

fn run(mut device: TunTapInterface) {
    let fd = device.as_raw_fd();
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = 1;
    let mut interface = Interface::new(config, &mut device, Instant::now());
    let own = IpCidr::new(IpAddress::v4(STACK[0], STACK[1], STACK[2], STACK[3]), 24);
    interface.update_ip_addrs(|addresses| addresses.push(own).expect("room for an address"));
    let mut sockets = SocketSet::new(Vec::new());
    let mut services = [SINK, SOURCE].map(|port| Service {
        handle: sockets.add(listening(port)),
        port,
        count: 0,
        answered: false,
    });
    let payload = vec![0x5a; 1 << 16];
    loop {
        interface.poll(Instant::now(), &mut device, &mut sockets);
        let mut worked = false;
        for service in &mut services {
            let socket = sockets.get_mut::<Socket<'_>>(service.handle);
            worked |= service.work(socket, &payload);
            if socket.state() == State::Closed || socket.state() == State::TimeWait {
                *socket = listening(service.port);
                (service.count, service.answered) = (0, false);
                worked = true;
            }
        }
        if !worked {
            let delay = interface.poll_delay(Instant::now(), &sockets);
            let delay = delay.unwrap_or(Duration::from_millis(100));
            wait(fd, Some(delay)).expect("to wait for the device");
        }
    }
}

fn listening(port: u16) -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Cubic);
    socket.listen(port).expect("a port");
    socket
}

impl Service {
    /// Moves what can be moved; whether anything was.
    fn work(&mut self, socket: &mut Socket<'_>, payload: &[u8]) -> bool {
        let mut worked = false;
        if self.port == SOURCE {
            while socket.can_send() && socket.send_slice(payload).is_ok_and(|sent| sent > 0) {
                worked = true;
            }
            if socket.state() == State::CloseWait {
                socket.abort();
            }
            return worked;
        }
        while socket.can_recv() {
            let len = socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap_or(0);
            self.count += len as u64;
            worked |= len > 0;
        }
        if socket.state() == State::CloseWait && !self.answered {
            self.answered = socket.send_slice(&self.count.to_be_bytes()).is_ok();
            socket.close();
            worked = true;
        }
        worked
    }
}
