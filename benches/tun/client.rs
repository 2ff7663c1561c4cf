//! The kernel's sockets, which are the other end of everything that is measured.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect as connect_to, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use nix::unistd::Pid;

use crate::services::Service;

/// What is measured answers here.
pub(crate) const STACK: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Of the network that it shares with the kernel.
pub(crate) const PREFIX: u8 = 16;
/// The kernel's addresses: one for each so many connections, because each has 65,535 ports.
pub(crate) const ADDRESSES: u8 = 40;
/// Linux's default may be another one, and differs between machines.
pub(crate) const CONGESTION: &str = "cubic";
/// No measurement is worth waiting longer for a single answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// One of the kernel's addresses: they are taken in turn.
pub(crate) fn address(turn: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 1, (turn % usize::from(ADDRESSES)) as u8 + 1)
}

/// A connection from one of the kernel's addresses to a service, on the calling thread's network;
/// it blocks.
pub(crate) fn connect(service: Service, turn: usize) -> io::Result<TcpStream> {
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, sockopt::TcpCongestion, &OsString::from(CONGESTION))?;
    let patience = TimeVal::new(PATIENCE.as_secs() as i64, 0);
    setsockopt(&fd, sockopt::SendTimeout, &patience)?;
    setsockopt(&fd, sockopt::ReceiveTimeout, &patience)?;
    // The port is chosen when it connects, by both ends' addresses.
    setsockopt(&fd, sockopt::IpBindAddressNoPort, &true)?;
    bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address(turn), 0)))?;
    connect_to(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(STACK, service.port())))?;
    Ok(TcpStream::from(fd))
}

/// The same, for the current runtime.
pub(crate) fn connect_async(service: Service, turn: usize) -> io::Result<tokio::net::TcpStream> {
    let stream = connect(service, turn)?;
    stream.set_nonblocking(true)?;
    tokio::net::TcpStream::from_std(stream)
}

/// The first CPU that this process may use.
pub(crate) fn first_cpu() -> io::Result<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let mut cpus = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu) == Ok(true));
    cpus.next().ok_or_else(|| io::Error::other("no CPU is allowed"))
}

/// Has the calling thread, and what it starts, stay on one CPU.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &only)?)
}

/// Has this process open as many sockets as it may.
pub(crate) fn raise_descriptors() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
