//! ICMP echo by sockets of the kernel, which need no privilege (`ping_group_range` in icmp(7)).

use std::io;
use std::sync::Once;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType};
use tokio::net::UdpSocket;
use tracing::warn;

/// Of an echo request: type, code, checksum, identifier. The kernel fills in the last two.
const HEAD: usize = 6;

/// A socket that sends echo requests, and receives the replies to them. It is no socket of UDP, but
/// is used as one.
///
/// # Errors
/// The kernel has no such socket for this process.
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

/// The request with a sequence number and data.
pub(crate) fn request(data: &[u8], is_ipv6: bool) -> Vec<u8> {
    let kind = if is_ipv6 { 128 } else { 8 };
    [&[kind, 0, 0, 0, 0, 0][..], data].concat()
}

/// The sequence number and the data of what was received, if it is a reply.
pub(crate) fn reply(message: &[u8], is_ipv6: bool) -> Option<&[u8]> {
    let kind = if is_ipv6 { 129 } else { 0 };
    message.get(HEAD..).filter(|data| data.len() >= 2 && message[..2] == [kind, 0])
}
