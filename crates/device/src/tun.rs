//! A TUN device: packets shared with the Linux kernel.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use airtcp_types::Packet;
use nix::errno::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_rs::SyncDevice;

use self::file::other;
use crate::{Capabilities, Counters, Device, DeviceError, sys};

mod file;

pub(crate) use self::file::Interface;
pub use self::file::TunFile;

/// Longer than any IP packet, so that no read truncates, whatever the MTU is changed to.
const SCRATCH: usize = 65_536;

/// As many packets as are received at a time have their memory used again. One of a size that only
/// offload makes is given back to the allocator.
const SPARE: usize = 64;
const SPARE_LENGTH: usize = 16_384;

/// How long a wait that finds nothing but an error pauses, so that it never becomes a spin.
const ERROR_PAUSE: Duration = Duration::from_millis(20);

/// A TUN device: what is sent into it arrives at the kernel, and what the kernel routes to its
/// interface is received.
///
/// It carries whole IP packets without offload. While its link is down the kernel refuses every
/// packet (EIO): they are counted in `tx_dropped`.
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
    /// The last MTU the kernel named, for when the interface is gone.
    mtu: usize,
    scratch: Box<[u8]>,
    /// Memory for packets to come, at most [`SPARE`] of them.
    spare: Vec<Vec<u8>>,
    counters: Counters,
}

impl Tun {
    /// Opens the TUN device `name` in the calling thread's network namespace, as
    /// [`TunFile::open`], and drives it with the current runtime.
    ///
    /// The kernel sends nothing into a new one until it has an address there and the link is up. For a stack at
    /// 10.0.0.2/24: `ip addr add 10.0.0.1/24 dev tun0 && ip link set tun0 up`.
    ///
    /// # Errors
    /// See [`DeviceError`]; also [`DeviceError::NoRuntime`] outside a tokio runtime.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        Self::new(TunFile::open(name)?)
    }

    /// Drives an open device with the current runtime.
    ///
    /// # Errors
    /// [`DeviceError::NoRuntime`] outside a tokio runtime; [`DeviceError::Other`] when the
    /// descriptor cannot be registered.
    ///
    /// # Panics
    /// In a runtime built without its IO driver. Its time driver is needed later.
    pub fn new(file: TunFile) -> Result<Self, DeviceError> {
        let interface = file.interface;
        let name = interface.name.clone();
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(DeviceError::NoRuntime { name });
        }
        let mtu = interface.mtu().map_err(|source| other(&name, source))?;
        let interest = Interest::READABLE | Interest::WRITABLE | Interest::ERROR;
        let fd = sys::register(interface, interest).map_err(|source| other(&name, source))?;
        let scratch = vec![0; SCRATCH].into_boxed_slice();
        let (spare, counters) = (Vec::new(), Counters::default());
        Ok(Self { fd, mtu, scratch, spare, counters })
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

    /// Has the interface stay, with its addresses and routes, when nobody has it open any more, until
    /// `ip tuntap del` removes it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn persist(&self) -> Result<(), DeviceError> {
        self.fd.get_ref().device.persist().map_err(|source| other(self.name(), source))
    }

    /// Runs `io` on the descriptor; on EAGAIN the reactor forgets the readiness it had seen.
    ///
    /// A reactor that has seen none yet is not asked: a link that is down is never writable, and
    /// the kernel's EIO is the answer wanted then.
    fn attempt<T>(
        fd: &AsyncFd<Interface>,
        interest: Interest,
        mut io: impl FnMut(&SyncDevice) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut tried = false;
        let outcome = fd.try_io(interest, |interface| {
            tried = true;
            io(&interface.device)
        });
        if tried { outcome } else { io(&fd.get_ref().device) }
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
        Capabilities::default()
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    async fn readable(&self) -> io::Result<()> {
        let mut guard = self.fd.ready(Interest::READABLE | Interest::ERROR).await?;
        if !guard.ready().is_readable() {
            // Only an error, which `try_recv` has to look at. The pause comes before the
            // forgetting, so that a cancelled wait meets the error again.
            tokio::time::sleep(ERROR_PAUSE).await;
            guard.clear_ready();
        }
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        let guard = self.fd.writable().await?;
        if !guard.ready().is_writable() {
            // Closed for writing stands for ever, and the caller was just told to wait.
            tokio::time::sleep(ERROR_PAUSE).await;
        }
        Ok(())
    }

    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize> {
        let Self { fd, scratch, spare, counters, .. } = self;
        let mut received = 0;
        while received < max {
            match Self::attempt(fd, Interest::READABLE, |device| device.recv(scratch)) {
                Ok(length) => {
                    counters.rx_packets += 1;
                    counters.rx_bytes += length as u64;
                    let mut data = spare.pop().unwrap_or_default();
                    data.extend_from_slice(&scratch[..length]);
                    into.push(Packet::new(data));
                    received += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_link_down(&error) => break,
                // Packets first; the same error comes again at the next call.
                Err(_) if received > 0 => break,
                Err(error) => {
                    counters.rx_errors += 1;
                    return Err(error);
                }
            }
        }
        Ok(received)
    }

    fn recycle(&mut self, packets: &mut Vec<Packet>) {
        for Packet { mut data, .. } in packets.drain(..) {
            if self.spare.len() < SPARE && data.capacity() <= SPARE_LENGTH {
                data.clear();
                self.spare.push(data);
            }
        }
    }

    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize {
        // The kernel takes a packet longer than the interface's MTU, and so does this.
        let capabilities = self.capabilities();
        let Self { fd, counters, .. } = self;
        let mut taken = 0;
        while let Some(packet) = packets.front() {
            if !capabilities.allow(packet, SCRATCH) {
                counters.tx_errors += 1;
            } else {
                match Self::attempt(fd, Interest::WRITABLE, |device| device.send(&packet.data)) {
                    Ok(length) => {
                        counters.tx_packets += 1;
                        counters.tx_bytes += length as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_link_down(&error) => counters.tx_dropped += 1,
                    Err(error) => {
                        tracing::debug!(%error, length = packet.len(), "packet refused");
                        counters.tx_errors += 1;
                    }
                }
            }
            packets.pop_front();
            taken += 1;
        }
        taken
    }
}

fn is_link_down(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}

#[cfg(test)]
mod tests;
