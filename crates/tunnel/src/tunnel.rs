//! The device.

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use airtcp_device::{Capabilities, Counters, Device};
use airtcp_types::{Checksum, Packet};
use tokio::net::UdpSocket;
use tokio::time::sleep_until;

use crate::handle::Shared;
use crate::outgoing::{Arrival, Io, Outgoing};
use crate::peers::Peers;
use crate::{Datagrams, TunnelConfig, TunnelError, TunnelHandle};

/// What a data message adds to a packet.
const OVERHEAD: usize = 32;
/// The longest message that carries no packet: an initiation.
const LONGEST_HANDSHAKE: usize = 148;
/// No datagram is longer.
const LONGEST: usize = 1 << 16;
/// Every IPv4 host accepts packets of 576 bytes (RFC 791 section 3.1); the longest one fits into a datagram.
const MTU: std::ops::RangeInclusive<usize> = 576..=65_440;
/// As many packets have their memory used again.
const SPARE: usize = 64;
/// A socket that fails so often in a row will not recover.
const FAILURES: u32 = 64;

/// WireGuard as a device: packets are encrypted for the peer that their destination leads to, and travel as datagrams.
///
/// It has no thread and no task: the driver of the device runs it, timers included. A handshake begins with the first
/// packet, or at once for a peer with a keepalive. It needs a runtime with IO and time.
pub struct Tunnel<S: Datagrams = UdpSocket> {
    shared: Arc<Shared>,
    out: Outgoing<S>,
    mtu: usize,
    /// The datagram that was received, and a message that is to be sent.
    datagram: Box<[u8]>,
    message: Box<[u8]>,
    /// Memory for packets to come, and that of packets that were sent.
    spare: Vec<Packet>,
    sent: Vec<Packet>,
    /// Failures of the socket in a row.
    failures: u32,
}

impl<S: Datagrams> Tunnel<S> {
    /// A tunnel over `socket`, which is its alone.
    ///
    /// # Errors
    /// [`TunnelError`]: the configuration contradicts itself.
    pub fn new(socket: S, config: TunnelConfig) -> Result<Self, TunnelError> {
        if !MTU.contains(&config.mtu) {
            return Err(TunnelError::Mtu(config.mtu));
        }
        let now = Instant::now();
        let mut peers = Peers::new(config.private_key, now);
        for peer in config.peers {
            peers.add(peer, now)?;
        }
        Ok(Self {
            shared: Arc::new(Shared::new(peers)),
            out: Outgoing::new(socket),
            mtu: config.mtu,
            datagram: vec![0; LONGEST].into(),
            message: vec![0; LONGEST_HANDSHAKE.max(config.mtu + OVERHEAD)].into(),
            spare: Vec::new(),
            sent: Vec::new(),
            failures: 0,
        })
    }

    /// A handle to look at the tunnel while it runs, and to change its peers.
    pub fn handle(&self) -> TunnelHandle {
        TunnelHandle(self.shared.clone())
    }

    /// A socket reports an error of the past once. One that has nothing but errors to report is gone.
    fn survives(&mut self, error: io::Error) -> io::Result<()> {
        self.out.counters.rx_errors += 1;
        self.failures += 1;
        if error.kind() == io::ErrorKind::NotConnected || self.failures >= FAILURES {
            return Err(error);
        }
        tracing::debug!(%error, "nothing received");
        Ok(())
    }
}

impl<S: Datagrams> Device for Tunnel<S> {
    fn name(&self) -> &str {
        "wireguard"
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn counters(&self) -> Counters {
        self.out.counters
    }

    /// Also returns when a timer is due, and when there is room for what waits to be sent.
    async fn readable(&self) -> io::Result<()> {
        let next = self.shared.lock().next();
        let timer = async {
            match next {
                Some(at) => sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            // The timer costs something only when it is waited for.
            biased;
            ready = self.out.socket.readable() => ready,
            ready = self.out.socket.writable(), if self.out.is_full() => ready,
            () = self.shared.changed.notified() => Ok(()),
            () = timer => Ok(()),
        }
    }

    async fn writable(&self) -> io::Result<()> {
        self.out.socket.writable().await
    }

    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize> {
        let shared = self.shared.clone();
        let mut peers = shared.lock();
        let now = Instant::now();
        self.out.flush();
        peers.tick(&mut Io { now, buf: &mut self.message, out: &mut self.out });
        let mut received = 0;
        // Of datagrams, not packets, so that a flood does not keep the driver.
        for _ in 0..max {
            let (length, from) = match self.out.socket.try_recv_from(&mut self.datagram) {
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.failures = 0;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Packets first; the error comes again.
                Err(_) if received > 0 => break,
                Err(error) => return self.survives(error).map(|()| 0),
            };
            self.failures = 0;
            let mut packet = self.spare.pop().unwrap_or_default();
            // A socket for IPv6 writes IPv4 addresses as mapped ones.
            let from = match from.ip().to_canonical() {
                IpAddr::V4(ip) => SocketAddr::from((ip, from.port())),
                IpAddr::V6(_) => from,
            };
            let datagram = Arrival { from, bytes: &self.datagram[..length] };
            let mut io = Io { now, buf: &mut self.message, out: &mut self.out };
            if peers.receive(datagram, &mut packet, &mut io) {
                into.push(packet);
                received += 1;
            } else {
                keep(&mut self.spare, packet);
            }
        }
        Ok(received)
    }

    fn recycle(&mut self, packets: &mut Vec<Packet>) {
        packets.drain(..).for_each(|packet| keep(&mut self.spare, packet));
    }

    fn reclaim(&mut self, into: &mut Vec<Packet>) {
        into.append(&mut self.sent);
    }

    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize {
        let before = packets.len();
        if before == 0 {
            return 0;
        }
        let shared = self.shared.clone();
        let mut peers = shared.lock();
        let now = Instant::now();
        self.out.flush();
        while !self.out.is_full() {
            let Some(packet) = packets.pop_front() else { break };
            let is_plain = packet.segment_size.is_none()
                && packet.tail.is_empty()
                && packet.checksum != Checksum::Partial;
            if is_plain && packet.data.len() <= self.mtu {
                let mut io = Io { now, buf: &mut self.message, out: &mut self.out };
                peers.transmit(&packet.data, &mut io);
            } else {
                self.out.counters.tx_errors += 1;
            }
            keep(&mut self.sent, packet);
        }
        before - packets.len()
    }
}

/// Empties a packet and keeps its memory, if there is not enough of it.
fn keep(kept: &mut Vec<Packet>, mut packet: Packet) {
    if kept.len() < SPARE && packet.data.capacity() < LONGEST {
        packet.clear();
        kept.push(packet);
    }
}

impl<S: Datagrams> fmt::Debug for Tunnel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("mtu", &self.mtu).finish_non_exhaustive()
    }
}
