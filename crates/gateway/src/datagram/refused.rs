//! Refusals that the network reports for datagrams: the error queue of a kernel socket
//! (`IP_RECVERR` in ip(7)).

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc::{sock_extended_err, sockaddr_in6};
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Makes the kernel queue the errors that the network reports. A queued error also fails one send
/// or receive call.
pub(crate) fn keep_reports(socket: &UdpSocket, is_ipv6: bool) -> io::Result<()> {
    let set = match is_ipv6 {
        true => setsockopt(socket, Ipv6RecvErr, &true),
        false => setsockopt(socket, Ipv4RecvErr, &true),
    };
    set.map_err(io::Error::from)
}

/// Takes the next error from the queue; returns the address that it is about, if that address has
/// refused a datagram.
///
/// # Errors
/// `WouldBlock`: the queue is empty.
pub(crate) fn next_report(socket: &UdpSocket) -> io::Result<Option<SocketAddr>> {
    socket.try_io(Interest::ERROR, || {
        let mut space = nix::cmsg_space!(sock_extended_err, sockaddr_in6);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut data: [IoSliceMut<'_>; 0] = [];
        let report = recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut data,
            Some(space.as_mut_slice()),
            flags,
        )?;
        let is_refusal = report.cmsgs()?.any(|message| match message {
            ControlMessageOwned::Ipv4RecvErr(error, _)
            | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                error.ee_errno == Errno::ECONNREFUSED as u32
            }
            _ => false,
        });
        Ok(report.address.filter(|_| is_refusal).as_ref().and_then(address))
    })
}

fn address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || address.as_sockaddr_in().map(|ip| SocketAddrV4::from(*ip).into());
    let v6 = || address.as_sockaddr_in6().map(|ip| SocketAddrV6::from(*ip).into());
    v4().or_else(v6)
}
