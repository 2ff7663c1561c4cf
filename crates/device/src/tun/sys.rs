//! The unsafe calls on a TUN device's descriptor and on kernel structures.
#![expect(
    unsafe_code,
    reason = "the reactor takes descriptors as numbers; interfaces are asked by ioctl"
)]

use std::io;
use std::os::fd::AsRawFd;

use nix::libc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Interface;

// netdevice(7).
nix::ioctl_read_bad!(siocgifmtu, libc::SIOCGIFMTU, libc::ifreq);
nix::ioctl_write_ptr_bad!(siocsifmtu, libc::SIOCSIFMTU, libc::ifreq);
nix::ioctl_read_bad!(siocethtool, libc::SIOCETHTOOL, libc::ifreq);

/// Registers a TUN device's descriptor with the current runtime's reactor.
pub(super) fn register(interface: Interface, interest: Interest) -> io::Result<AsyncFd<Interface>> {
    // SAFETY: an `Interface` owns one descriptor, always the same, and closes it when dropped.
    unsafe { AsyncFd::register_with_interest(interface, interest) }.map_err(io::Error::from)
}

/// Returns the MTU in bytes of the interface `name` in the network namespace of `socket`.
pub(super) fn mtu(socket: &impl AsRawFd, name: &str) -> io::Result<usize> {
    let mut request = request(name);
    // SAFETY: the kernel reads the name and writes `ifru_mtu`, all inside `request`.
    let mtu = unsafe {
        siocgifmtu(socket.as_raw_fd(), &raw mut request)?;
        request.ifr_ifru.ifru_mtu
    };
    usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Sets the MTU of the interface `name`. Needs CAP_NET_ADMIN in the namespace.
pub(super) fn set_mtu(socket: &impl AsRawFd, name: &str, mtu: usize) -> io::Result<()> {
    let mut request = request(name);
    request.ifr_ifru.ifru_mtu =
        mtu.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the kernel only reads `request`.
    unsafe { siocsifmtu(socket.as_raw_fd(), &raw const request)? };
    Ok(())
}

/// Whether the interface `name` in the network namespace of `socket` is a TUN device.
pub(super) fn is_tun(socket: &impl AsRawFd, name: &str) -> bool {
    // linux/ethtool.h: `struct ethtool_drvinfo` is a command followed by texts of 32 bytes, 196
    // bytes in total.
    const GDRVINFO: u32 = 3;
    const LENGTH: usize = 196;
    let mut info = [0u8; LENGTH];
    info[..4].copy_from_slice(&GDRVINFO.to_ne_bytes());
    let mut request = request(name);
    request.ifr_ifru.ifru_data = info.as_mut_ptr().cast();
    // SAFETY: the kernel reads the name and writes at most the structure of the command, which has
    // the length of `info`.
    let answer = unsafe { siocethtool(socket.as_raw_fd(), &raw mut request) };
    let (driver, bus) = (&info[4..], &info[4 + 3 * 32..]);
    answer.is_ok() && driver.starts_with(b"tun\0") && bus.starts_with(b"tun\0")
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: an `ifreq` consists of numbers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero, so the name is terminated; a longer name finds no interface.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}
