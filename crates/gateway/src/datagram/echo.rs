//! ICMP echo by kernel sockets that need no privilege (`ping_group_range` in icmp(7)).

use std::io;
use std::sync::Once;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType};
use tokio::net::UdpSocket;
use tracing::warn;

/// The length of an echo header's type, code, checksum and identifier. The kernel fills in the
/// checksum and the identifier.
const HEAD: usize = 6;

/// Opens a socket that sends echo requests, and receives the replies to them. It is not a UDP
/// socket, but is used like one.
///
/// # Errors
/// The kernel does not give this process such a socket.
pub(crate) fn socket(is_ipv6: bool) -> io::Result<UdpSocket> {
    static WARNED: Once = Once::new();
    let (family, protocol) = match is_ipv6 {
        true => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        false => (AddressFamily::Inet, SockProtocol::Icmp),
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = nix::sys::socket::socket(family, SockType::Datagram, flags, protocol);
    let socket = socket.inspect_err(|errno| {
        WARNED.call_once(|| {
            let hint = match errno {
                Errno::EACCES => "; type: sysctl net.ipv4.ping_group_range=\"0 2147483647\"",
                _ => "",
            };
            warn!("pings are not carried: {}{hint}", errno.desc());
        });
    })?;
    UdpSocket::from_std(socket.into())
}

/// Returns the echo request with `data`: a sequence number and payload.
pub(crate) fn request(data: &[u8], is_ipv6: bool) -> Vec<u8> {
    let kind = if is_ipv6 { 128 } else { 8 };
    [&[kind, 0, 0, 0, 0, 0][..], data].concat()
}

/// Returns the sequence number and payload of an echo reply; `None` for other messages.
pub(crate) fn reply(message: &[u8], is_ipv6: bool) -> Option<&[u8]> {
    let kind = if is_ipv6 { 129 } else { 0 };
    message.get(HEAD..).filter(|data| data.len() >= 2 && message[..2] == [kind, 0])
}
