//! A TUN device: packets shared with the Linux kernel.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use airtcp_types::{Packet, SharedBytes};
use nix::errno::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::file::other;
use self::pool::Pool;
use crate::{Capabilities, Counters, Device, DeviceError};

mod file;
mod gather;
mod pool;
mod sys;
mod vnet;

pub(crate) use self::file::Interface;
pub use self::file::{TunFile, TunOptions};

/// The maximum number of packets whose memory is kept for receiving, and likewise of sent packets.
/// Larger packets than [`SPARE_LENGTH`], which occur only with offload, are freed.
const SPARE: usize = 64;
const SPARE_LENGTH: usize = 16_384;

/// The length in bytes up to which a received packet is copied out of its read buffer, so that the
/// buffer is free again: otherwise an ACK would hold 64 KiB.
const COPIED: usize = 2048;

/// A bound on the length of an IP packet in bytes.
const LONGEST: usize = 65_536;

/// The maximum number of parts of a packet that can be sent without allocating a list of them.
const FEW: usize = 32;

/// The pause when a wait ends with nothing but an error, so that callers do not spin.
const ERROR_PAUSE: Duration = Duration::from_millis(20);

/// A TUN device: packets sent into it arrive at the kernel, and packets that the kernel routes to
/// its interface are received.
///
/// Without [`TunOptions::offload`] it carries only complete IP packets. With it, super-segments and
/// packets with incomplete checksums pass in both directions. The payload of a received packet of
/// more than 2 KiB then stays in its 64 KiB read buffer, as the packet's `tail`, and holds that
/// buffer.
///
/// While the interface is down, the kernel refuses every packet (EIO); these are counted in
/// `tx_dropped`.
///
/// ```no_run
/// use airtcp_device::{Device, Tun};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let mut tun = Tun::open("tun0")?;
/// let mut batch = Vec::new();
/// tun.recv(&mut batch, 64).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tun {
    fd: AsyncFd<Interface>,
    /// The last known MTU, used after the interface is gone.
    mtu: usize,
    pool: Pool,
    /// Memory for packets to receive, at most [`SPARE`] packets.
    spare: Vec<Packet>,
    /// Memory of sent packets, at most as many.
    sent: Vec<Packet>,
    counters: Counters,
}

impl Tun {
    /// Opens the TUN device `name` in the calling thread's network namespace, like
    /// [`TunFile::open`], and drives it with the current runtime.
    ///
    /// The kernel sends nothing into a new device until the interface has an address and is up. For
    /// a stack at 10.0.0.2/24: `ip addr add 10.0.0.1/24 dev tun0 && ip link set tun0 up`.
    ///
    /// # Errors
    /// See [`DeviceError`]; also [`DeviceError::NoRuntime`] outside a tokio runtime.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        Self::open_with(name, TunOptions::default())
    }

    /// Opens the TUN device `name` like [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`TunFile::open_with`]; also [`DeviceError::NoRuntime`] outside a tokio runtime.
    pub fn open_with(name: &str, options: TunOptions) -> Result<Self, DeviceError> {
        Self::new(TunFile::open_with(name, options)?)
    }

    /// Drives an open device with the current runtime.
    ///
    /// # Errors
    /// [`DeviceError::NoRuntime`] outside a tokio runtime; [`DeviceError::Other`] if the descriptor
    /// cannot be registered.
    ///
    /// # Panics
    /// In a runtime built without its IO driver. Waiting also needs the time driver.
    pub fn new(file: TunFile) -> Result<Self, DeviceError> {
        let interface = file.interface;
        let name = interface.name.clone();
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(DeviceError::NoRuntime { name });
        }
        let mtu = interface.mtu().map_err(|source| other(&name, source))?;
        let interest = Interest::READABLE | Interest::WRITABLE | Interest::ERROR;
        let fd = sys::register(interface, interest).map_err(|source| other(&name, source))?;
        let (spare, sent, counters) = (Vec::new(), Vec::new(), Counters::default());
        Ok(Self { fd, mtu, pool: Pool::default(), spare, sent, counters })
    }

    /// Sets the interface's MTU, in bytes.
    ///
    /// # Errors
    /// As [`TunFile::set_mtu`].
    pub fn set_mtu(&mut self, mtu: usize) -> io::Result<()> {
        self.fd.get_ref().set_mtu(mtu)?;
        self.mtu = mtu;
        Ok(())
    }

    /// Makes the interface persistent: it keeps its addresses and routes when no process has it
    /// open, until `ip tuntap del` removes it.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub fn persist(&self) -> Result<(), DeviceError> {
        self.fd.get_ref().device.persist().map_err(|source| other(self.name(), source))
    }

    fn offload(&self) -> bool {
        self.fd.get_ref().options.offload
    }

    /// Reads one packet; `None` if its virtio header does not match it.
    fn receive(
        interface: &Interface,
        pool: &mut Pool,
        spare: &mut Vec<Packet>,
    ) -> io::Result<Option<Packet>> {
        let from = if interface.options.offload { vnet::LENGTH } else { 0 };
        let buffer = pool.free();
        let bytes = Arc::get_mut(buffer).expect("nobody has a part of it");
        let length = interface.device.recv(bytes)?;
        let mut received = vnet::Received::default();
        if from > 0 {
            let Some(read) = vnet::read(&mut bytes[..length]) else { return Ok(None) };
            received = read;
        }
        let copied = match received.payload {
            Some(payload) if length > from + COPIED => from + payload,
            _ => length,
        };
        let mut packet = spare.pop().unwrap_or_default();
        (packet.checksum, packet.segment_size) = (received.checksum, received.segment_size);
        packet.data.extend_from_slice(&bytes[from..copied]);
        if copied < length {
            packet.tail.push(SharedBytes::new(buffer, copied..length));
        }
        Ok(Some(packet))
    }

    /// Writes one packet with one system call; `header` describes the offloads that it needs.
    fn transmit(fd: &AsyncFd<Interface>, packet: &Packet, header: &[u8]) -> io::Result<usize> {
        let count = 2 + packet.tail.len();
        let (mut few, mut many);
        let parts = if count <= FEW {
            few = [IoSlice::new(&[]); FEW];
            &mut few[..count]
        } else {
            many = vec![IoSlice::new(&[]); count];
            &mut many[..]
        };
        parts[0] = IoSlice::new(header);
        parts[1] = IoSlice::new(&packet.data);
        for (to, part) in parts[2..].iter_mut().zip(&packet.tail) {
            *to = IoSlice::new(part);
        }
        Self::attempt(fd, Interest::WRITABLE, |interface| interface.device.send_vectored(parts))
    }

    /// Runs `io` on the descriptor; on EAGAIN the reactor clears the readiness.
    ///
    /// Calls `io` even if the reactor has seen no readiness yet: an interface that is down is never
    /// writable, and the kernel's EIO is needed then.
    fn attempt<T>(
        fd: &AsyncFd<Interface>,
        interest: Interest,
        mut io: impl FnMut(&Interface) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut tried = false;
        let outcome = fd.try_io(interest, |interface| {
            tried = true;
            io(interface)
        });
        if tried { outcome } else { io(fd.get_ref()) }
    }
}

impl Device for Tun {
    fn name(&self) -> &str {
        &self.fd.get_ref().name
    }

    fn mtu(&self) -> usize {
        self.fd.get_ref().mtu().unwrap_or(self.mtu)
    }

    fn capabilities(&self) -> Capabilities {
        let offload = self.offload();
        Capabilities { checksum_offload: offload, segmentation_offload: offload }
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    async fn readable(&self) -> io::Result<()> {
        let mut guard = self.fd.ready(Interest::READABLE | Interest::ERROR).await?;
        if !guard.ready().is_readable() {
            // Only an error, which `try_recv` has to check. The pause precedes `clear_ready`, so
            // that the error is seen again if the wait is cancelled.
            tokio::time::sleep(ERROR_PAUSE).await;
            guard.clear_ready();
        }
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        let guard = self.fd.writable().await?;
        if !guard.ready().is_writable() {
            // Write-closed readiness never clears, and the caller has just been asked to wait.
            tokio::time::sleep(ERROR_PAUSE).await;
        }
        Ok(())
    }

    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize> {
        let Self { fd, pool, spare, counters, .. } = self;
        let (mut received, mut refused) = (0, 0);
        let outcome = Self::attempt(fd, Interest::READABLE, |interface| {
            while received + refused < max {
                match Self::receive(interface, pool, spare) {
                    Ok(Some(packet)) => {
                        counters.rx_packets += 1;
                        counters.rx_bytes += packet.len() as u64;
                        into.push(packet);
                        received += 1;
                    }
                    Ok(None) => {
                        counters.rx_errors += 1;
                        refused += 1;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_link_down(&error) => {
                Ok(received)
            }
            // Packets are returned first; the next call returns the error.
            Err(_) if received > 0 => Ok(received),
            Err(error) => {
                counters.rx_errors += 1;
                Err(error)
            }
            Ok(()) => Ok(received),
        }
    }

    fn recycle(&mut self, packets: &mut Vec<Packet>) {
        for packet in packets.drain(..) {
            keep(&mut self.spare, packet);
        }
    }

    fn reclaim(&mut self, into: &mut Vec<Packet>) {
        into.append(&mut self.sent);
    }

    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize {
        let capabilities = self.capabilities();
        let Self { fd, counters, sent, .. } = self;
        let mut taken = 0;
        let cuts_datagrams = fd.get_ref().device.udp_gso();
        while !packets.is_empty() {
            if cuts_datagrams {
                taken += gather::gather(packets, |packet| keep(sent, packet));
            }
            let Some(packet) = packets.front() else { break };
            // The kernel accepts packets longer than the interface's MTU, and so does this device.
            let header = vnet::header_of(packet).filter(|_| capabilities.allow(packet, LONGEST));
            let outcome = match &header {
                None => Err(Errno::EINVAL.into()),
                Some(header) if capabilities.segmentation_offload => {
                    Self::transmit(fd, packet, header)
                }
                Some(_) => Self::attempt(fd, Interest::WRITABLE, |interface| {
                    interface.device.send(&packet.data)
                }),
            };
            match outcome {
                Ok(_) => {
                    counters.tx_packets += 1;
                    counters.tx_bytes += packet.len() as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_link_down(&error) => counters.tx_dropped += 1,
                Err(error) => {
                    tracing::debug!(%error, length = packet.len(), "packet not sent");
                    counters.tx_errors += 1;
                }
            }
            packets.pop_front().into_iter().for_each(|packet| keep(sent, packet));
            taken += 1;
        }
        taken
    }
}

/// Empties a packet and keeps its memory, unless it is too large or enough is kept.
fn keep(kept: &mut Vec<Packet>, mut packet: Packet) {
    let is_small = packet.data.capacity().max(packet.tail.capacity()) <= SPARE_LENGTH;
    if kept.len() < SPARE && is_small {
        packet.clear();
        kept.push(packet);
    }
}

fn is_link_down(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}

#[cfg(test)]
mod testkit;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_kept_is_empty_and_bounded() {
        let mut kept = Vec::new();
        keep(&mut kept, Packet::new(vec![0xee; SPARE_LENGTH + 1]));
        assert!(kept.is_empty());
        (0..2 * SPARE).for_each(|_| keep(&mut kept, Packet::new(vec![0xee; 1400])));
        assert_eq!(kept, vec![Packet::default(); SPARE]);
        assert!(kept.iter().all(|packet| packet.data.capacity() >= 1400));
    }
}
