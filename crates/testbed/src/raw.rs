//! Raw IPv4 packets with any source address.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};

use crate::Namespace;

/// A sender of complete IPv4 packets into a namespace's network, with any source address, like that
/// of a hostile host.
#[derive(Debug)]
pub struct RawSender(OwnedFd);

impl Namespace {
    /// Opens a raw sender in this namespace.
    ///
    /// # Errors
    /// The kernel cannot create the socket.
    pub fn raw_sender(&self) -> io::Result<RawSender> {
        self.run(|| {
            let kind = SockType::Raw;
            let socket =
                socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw)?;
            Ok(RawSender(socket))
        })
    }
}

impl RawSender {
    /// Sends a packet to the destination in its header. The packet is dropped if the kernel's
    /// buffer is full.
    ///
    /// # Errors
    /// The data is not an IPv4 packet, or the kernel rejects it.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        let Some(destination) = packet.get(16..20).and_then(|bytes| bytes.first_chunk::<4>())
        else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no IPv4 header"));
        };
        let [a, b, c, d] = Ipv4Addr::from(*destination).octets();
        let to = SockaddrIn::new(a, b, c, d, 0);
        match sendto(self.0.as_raw_fd(), packet, &to, MsgFlags::empty()) {
            Ok(_) | Err(Errno::ENOBUFS) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
