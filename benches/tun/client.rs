//! The kernel's sockets, the other end of every measurement.

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

/// The address of the stack under test.
pub(crate) const STACK: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The prefix of the network that it shares with the kernel.
pub(crate) const PREFIX: u8 = 16;
/// The number of the kernel's addresses. Many connections need several, because each address has
/// 65,535 ports.
pub(crate) const ADDRESSES: u8 = 40;
/// Set explicitly, because Linux's default differs between machines.
pub(crate) const CONGESTION: &str = "cubic";
/// The longest wait for a single answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// One of the kernel's addresses, taken in turn.
pub(crate) fn address(turn: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 1, (turn % usize::from(ADDRESSES)) as u8 + 1)
}

/// Connects from one of the kernel's addresses to a service, on the calling thread's network.
/// Blocks.
pub(crate) fn connect(service: Service, turn: usize) -> io::Result<TcpStream> {
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, sockopt::TcpCongestion, &OsString::from(CONGESTION))?;
    let patience = TimeVal::new(PATIENCE.as_secs() as i64, 0);
    setsockopt(&fd, sockopt::SendTimeout, &patience)?;
    setsockopt(&fd, sockopt::ReceiveTimeout, &patience)?;
    // Connecting chooses the port, by the addresses of both ends.
    setsockopt(&fd, sockopt::IpBindAddressNoPort, &true)?;
    bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address(turn), 0)))?;
    connect_to(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(STACK, service.port())))?;
    Ok(TcpStream::from(fd))
}

/// Like [`connect`], for the current runtime.
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

/// Pins the calling thread, and the threads and processes that it starts, to one CPU.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &only)?)
}

/// Raises this process's limit of open files to its maximum.
pub(crate) fn raise_descriptors() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
