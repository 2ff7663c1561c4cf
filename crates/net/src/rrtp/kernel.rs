//! The kernel's UDP socket: datagrams in batches, with receive timestamps.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg,
    sendmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::datagrams::{DatagramSocket, Inbox, Outbox};

/// The requested size of the kernel's socket buffers, in bytes; the kernel grants at most its
/// limit. At 1 Gbit/s, 90 packets arrive in a millisecond.
const BUFFER: usize = 4 << 20;
/// The minimum number of datagrams for which segmentation offload pays.
const WORTH: usize = 8;
/// The maximum age of a received datagram; an older timestamp means that the wall clock was set.
const OLDEST: Duration = Duration::from_secs(1);

/// Binds a UDP socket with receive timestamps.
///
/// # Errors
/// The errors of bind(2).
pub(super) async fn bind(local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(local).await?;
    setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
    setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

impl DatagramSocket for UdpSocket {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    async fn readable(&self) -> io::Result<()> {
        self.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }

    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.try_recv_from(buf)
    }

    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.try_send_to(data, to)
    }

    fn try_recv_batch(&self, inbox: &mut Inbox) -> io::Result<()> {
        let came = self.try_io(Interest::READABLE, || Ok(receive(self, inbox)?))?;
        for (length, from, age) in came {
            inbox.push(length, from, age);
        }
        Ok(())
    }

    fn try_send_batch(&self, outbox: &Outbox) -> io::Result<usize> {
        let Some((to, data)) = outbox.first() else { return Ok(0) };
        let (count, length, bytes) = outbox.alike();
        if count < WORTH {
            return self.try_send_to(data, to).map(|_| 1);
        }
        match self.try_io(Interest::WRITABLE, || Ok(send(self, bytes, length, to)?)) {
            Ok(()) => return Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
            // The device has no offload, or the path MTU is below the segment size: send one by
            // one.
            Err(_) => {}
        }
        let mut sent = 0;
        for datagram in bytes.chunks(length) {
            match self.try_send_to(datagram, to) {
                Ok(_) => sent += 1,
                Err(error) if sent == 0 => return Err(error),
                // The next batch reports the error.
                Err(_) => break,
            }
        }
        Ok(sent)
    }
}

type Datagram = (usize, SocketAddr, Duration);

/// Receives all available datagrams with one system call.
fn receive(socket: &UdpSocket, inbox: &mut Inbox) -> nix::Result<Vec<Datagram>> {
    let mut slots: Vec<_> = inbox.slots().map(|slot| [IoSliceMut::new(slot)]).collect();
    let space = nix::cmsg_space!(TimeSpec);
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(slots.len(), Some(space));
    let flags = MsgFlags::MSG_DONTWAIT;
    let received = recvmmsg(socket.as_raw_fd(), &mut headers, &mut slots, flags, None)?;
    let now = Duration::from(clock_gettime(ClockId::CLOCK_REALTIME)?);
    let datagrams = received.map(|message| {
        let stamp = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|one| match one {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
                _ => None,
            })
        });
        let age = stamp.and_then(|stamp| now.checked_sub(stamp)).filter(|age| *age < OLDEST);
        (message.bytes, address(message.address), age.unwrap_or_default())
    });
    Ok(datagrams.collect())
}

/// Returns the source address; 0.0.0.0:0 if there is none, to which the kernel sends no reply.
fn address(from: Option<SockaddrStorage>) -> SocketAddr {
    let ipv4 = from.as_ref().and_then(SockaddrStorage::as_sockaddr_in);
    let ipv6 = from.as_ref().and_then(SockaddrStorage::as_sockaddr_in6);
    ipv4.map(|from| SocketAddr::V4((*from).into()))
        .or_else(|| ipv6.map(|from| SocketAddr::V6((*from).into())))
        .unwrap_or_else(|| SocketAddr::from(([0; 4], 0)))
}

/// Sends datagrams of `length` bytes each with one system call; the last one may be shorter.
pub(super) fn send(
    socket: &UdpSocket,
    bytes: &[u8],
    length: usize,
    to: SocketAddr,
) -> nix::Result<()> {
    let length = u16::try_from(length).map_err(|_| Errno::EIO)?;
    let segments = [ControlMessage::UdpGsoSegments(&length)];
    let (bytes, to) = ([IoSlice::new(bytes)], SockaddrStorage::from(to));
    let flags = MsgFlags::MSG_DONTWAIT;
    sendmsg(socket.as_raw_fd(), &bytes, &segments, flags, Some(&to)).map(drop)
}
