//! WireGuard as a device.

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

/// The bytes that a data message adds to a packet.
const OVERHEAD: usize = 32;
/// The length of an initiation, the longest message without a packet.
const LONGEST_HANDSHAKE: usize = 148;
/// Above the maximum length of a datagram.
const LONGEST: usize = 1 << 16;
/// The valid MTUs. Every IPv4 host accepts packets of 576 bytes (RFC 791 section 3.1), and a packet
/// of the upper bound fits into a datagram.
const MTU: std::ops::RangeInclusive<usize> = 576..=65_440;
/// The maximum number of packets whose memory is kept for reuse.
const SPARE: usize = 64;
/// The number of consecutive errors after which the socket counts as failed.
const FAILURES: u32 = 64;

/// WireGuard as a device: packets are encrypted for the peer of their destination, and sent as
/// datagrams.
///
/// A tunnel has no thread and no task: the driver of the device runs it, with its timers. A
/// handshake starts with the first packet, or at once for a peer with a keepalive. A tunnel
/// requires a tokio runtime with IO and time.
pub struct Tunnel<S: Datagrams = UdpSocket> {
    shared: Arc<Shared>,
    out: Outgoing<S>,
    mtu: usize,
    /// The received datagram, and the buffer for a message to send.
    datagram: Box<[u8]>,
    message: Box<[u8]>,
    /// Packets whose memory can be reused for received packets, and packets that were sent.
    spare: Vec<Packet>,
    sent: Vec<Packet>,
    /// Consecutive errors of the socket.
    failures: u32,
}

impl<S: Datagrams> Tunnel<S> {
    /// Creates a tunnel over `socket`, which it owns.
    ///
    /// # Errors
    /// [`TunnelError`] if the configuration is invalid.
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

    /// Returns a handle to observe the running tunnel and to change its peers.
    pub fn handle(&self) -> TunnelHandle {
        TunnelHandle(self.shared.clone())
    }

    /// Counts an error of the socket; returns the error if the socket has failed. A socket reports
    /// an earlier asynchronous error once.
    fn survives(&mut self, error: io::Error) -> io::Result<()> {
        self.out.counters.rx_errors += 1;
        self.failures += 1;
        if error.kind() == io::ErrorKind::NotConnected || self.failures >= FAILURES {
            return Err(error);
        }
        tracing::debug!(%error, "receive failed");
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

    /// Returns also when a timer is due, and when waiting datagrams can be sent.
    async fn readable(&self) -> io::Result<()> {
        let next = self.shared.lock().next();
        let timer = async {
            match next {
                Some(at) => sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            // Biased, so that the timer is set up only if it is waited for.
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
        // `max` limits the datagrams, not the packets, so that a flood does not block the driver.
        for _ in 0..max {
            let (length, from) = match self.out.socket.try_recv_from(&mut self.datagram) {
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.failures = 0;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Return the packets first; the error occurs again.
                Err(_) if received > 0 => break,
                Err(error) => return self.survives(error).map(|()| 0),
            };
            self.failures = 0;
            let mut packet = self.spare.pop().unwrap_or_default();
            // An IPv6 socket returns IPv4 addresses in mapped form.
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

/// Clears a packet and keeps its memory for reuse, up to a limit.
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
