//! What needs a promise about a descriptor or a structure of the kernel's.
#![expect(unsafe_code, reason = "the reactor takes descriptors as numbers; the MTU needs an ioctl")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::timerfd::TimerFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_tap::Iface;

// netdevice(7).
nix::ioctl_read_bad!(siocgifmtu, libc::SIOCGIFMTU, libc::ifreq);
nix::ioctl_write_ptr_bad!(siocsifmtu, libc::SIOCSIFMTU, libc::ifreq);
// linux/if_tun.h.
nix::ioctl_write_int!(tunsetpersist, b'T', 203);
nix::ioctl_write_int!(tunsetoffload, b'T', 208);

/// Sets O_NONBLOCK on a descriptor.
pub(crate) fn set_nonblocking(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: `file` owns the descriptor and outlives the borrow.
    let fd = unsafe { BorrowedFd::borrow_raw(file.as_raw_fd()) };
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Has the kernel give a TUN device whole packets only, whatever its last owner had asked for.
pub(crate) fn set_no_offload(tun: &Iface) -> io::Result<()> {
    // SAFETY: the request takes a number; none of the flags are set.
    unsafe { tunsetoffload(tun.as_raw_fd(), 0) }?;
    Ok(())
}

/// Has the kernel keep a TUN device when nobody has it open.
pub(crate) fn set_persistent(tun: &Iface) -> io::Result<()> {
    // SAFETY: the request takes a number, which is a truth value.
    unsafe { tunsetpersist(tun.as_raw_fd(), 1) }?;
    Ok(())
}

/// Hands a TUN device's descriptor to the current runtime's reactor.
pub(crate) fn register(iface: Iface, interest: Interest) -> io::Result<AsyncFd<Iface>> {
    // SAFETY: an `Iface` owns one descriptor, always the same, and closes it when dropped.
    unsafe { AsyncFd::register_with_interest(iface, interest) }.map_err(io::Error::from)
}

/// A timer of the kernel's.
#[derive(Debug)]
pub(crate) struct Timer(pub(crate) TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Hands a timer's descriptor to the current runtime's reactor.
pub(crate) fn register_timer(timer: Timer) -> io::Result<AsyncFd<Timer>> {
    // SAFETY: a `TimerFd` owns one descriptor, always the same, and closes it when dropped.
    unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }.map_err(io::Error::from)
}

/// The MTU of the interface `name` in the network namespace that `socket` was made in, in bytes.
pub(crate) fn mtu(socket: &impl AsRawFd, name: &str) -> io::Result<usize> {
    let mut request = request(name);
    // SAFETY: the kernel reads the name and writes `ifru_mtu`, all inside `request`.
    let mtu = unsafe {
        siocgifmtu(socket.as_raw_fd(), &raw mut request)?;
        request.ifr_ifru.ifru_mtu
    };
    usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Sets what [`mtu`] reads. Needs CAP_NET_ADMIN over the namespace.
pub(crate) fn set_mtu(socket: &impl AsRawFd, name: &str, mtu: usize) -> io::Result<()> {
    let mut request = request(name);
    request.ifr_ifru.ifru_mtu =
        mtu.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the kernel only reads `request`.
    unsafe { siocsifmtu(socket.as_raw_fd(), &raw const request)? };
    Ok(())
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: an `ifreq` is numbers all through, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: a longer name finds no interface, and none is read past its end.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}
