//! Reading and writing.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_stack::HostError;
use airtcp_stack::tcp::TcpError;
use nix::errno::Errno;
use nix::libc;

use crate::address;
use crate::errors::errno;
use crate::memory::{Address, Pieces};
use crate::target::Target;
use crate::world::World;

/// The offsets of fields of `struct msghdr` that a call sets.
const NAME_LEN: usize = 8;
const CONTROL: usize = 32;
const CONTROL_LEN: usize = 40;
const FLAGS: usize = 48;

/// A `struct msghdr`.
pub(crate) struct Message {
    at: Address,
    name: Address,
    pub(crate) pieces: Pieces,
}

impl Message {
    pub(crate) fn fetch(at: Address) -> Result<Self, Errno> {
        let name = Address::from(at.usize()?);
        let table = Address::from(at.at(16).usize()?);
        Ok(Self { at, name, pieces: Pieces::fetch(table, at.at(24).usize()?)? })
    }

    /// Writes the control data, with the number of unread bytes if requested. The length of the
    /// source address becomes zero, as in Linux for TCP.
    pub(crate) fn finish(&self, unread: Option<i32>) -> Result<(), Errno> {
        if !self.name.is_null() {
            self.at.at(NAME_LEN).write(&0u32.to_ne_bytes())?;
        }
        let control = unread.map_or(Vec::new(), inq);
        let fits = control.len() <= self.at.at(CONTROL_LEN).usize()?;
        let (len, flags) = if fits { (control.len(), 0) } else { (0, libc::MSG_CTRUNC) };
        if len > 0 {
            Address::from(self.at.at(CONTROL).usize()?).write(&control)?;
        }
        self.at.at(CONTROL_LEN).write(&len.to_ne_bytes())?;
        self.at.at(FLAGS).write(&flags.to_ne_bytes())
    }
}

/// Returns a `struct cmsghdr` of type `TCP_CM_INQ`, padded.
fn inq(unread: i32) -> Vec<u8> {
    let header = [libc::SOL_TCP, libc::TCP_CM_INQ, unread, 0];
    let len = size_of::<usize>() + header.len() * size_of::<i32>() - size_of::<i32>();
    let fields = header.iter().flat_map(|field| field.to_ne_bytes());
    len.to_ne_bytes().into_iter().chain(fields).collect()
}

/// recv(2) and its variants.
pub(crate) fn receive(
    target: &Target,
    fd: i32,
    pieces: &Pieces,
    flags: i32,
) -> Result<usize, Errno> {
    if flags & libc::MSG_ERRQUEUE != 0 {
        return target.call(|world| {
            world.socket(fd)?;
            Err(Errno::EAGAIN)
        });
    }
    let limit = target.call(|world| {
        let socket = world.socket(fd)?;
        socket.stream()?;
        Ok(patience(socket.nonblocking, flags, socket.options.receive_timeout))
    })?;
    let mut buffer = vec![0; pieces.len()];
    let mut done = 0;
    let all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
    let result = target.wait(limit, |world| {
        let n = match world.receive_some(fd, &mut buffer[done..], pieces, flags)? {
            Some(n) => n,
            None => return Ok(None),
        };
        done += n;
        let more = all && n > 0 && done < buffer.len();
        Ok((!more).then_some(()))
    });
    match result {
        _ if done > 0 => Ok(done),
        Ok(Some(())) => Ok(0),
        Ok(None) => Err(Errno::EAGAIN),
        Err(error) => Err(error),
    }
}

/// send(2) and its variants.
pub(crate) fn send(target: &Target, fd: i32, pieces: &Pieces, flags: i32) -> Result<usize, Errno> {
    let data = pieces.read()?;
    let limit = target.call(|world| {
        let socket = world.socket(fd)?;
        socket.stream().map_err(|_| Errno::EPIPE)?;
        Ok(patience(socket.nonblocking, flags, socket.options.send_timeout))
    })?;
    let mut done = 0;
    let result = target.wait(limit, |world| {
        loop {
            match world.send_some(fd, &data[done..], flags)? {
                Some(n) => done += n,
                None => return Ok(None),
            }
            if done == data.len() {
                return Ok(Some(()));
            }
        }
    });
    match result {
        _ if done > 0 => Ok(done),
        Ok(Some(())) => Ok(0),
        Ok(None) => Err(Errno::EAGAIN),
        Err(error) => Err(error),
    }
}

/// connect(2).
pub(crate) fn connect(target: &Target, fd: i32, remote: SocketAddr) -> Result<(), Errno> {
    let limit = target.call(|world| {
        world.connect(fd, remote)?;
        let socket = world.socket(fd)?;
        Ok(patience(socket.nonblocking, 0, socket.options.send_timeout))
    })?;
    target.wait(limit, |world| world.connected(fd))?.ok_or(Errno::EINPROGRESS)
}

/// accept(2).
pub(crate) fn accept(
    target: &Target,
    fd: i32,
    name: Address,
    name_len: Address,
) -> Result<i32, Errno> {
    let (limit, domain) = target.call(|world| {
        let socket = world.socket(fd)?;
        let limit = patience(socket.nonblocking, 0, socket.options.receive_timeout);
        Ok((limit, socket.domain))
    })?;
    let accepted = target.wait(limit, |world| world.accept(fd))?;
    let (fd, remote) = accepted.ok_or(Errno::EAGAIN)?;
    address::write(remote, domain, name, name_len)?;
    Ok(fd)
}

/// Returns how long a call may block; `None` is forever.
fn patience(nonblocking: bool, flags: i32, timeout: Option<Duration>) -> Option<Duration> {
    match nonblocking || flags & libc::MSG_DONTWAIT != 0 {
        true => Some(Duration::ZERO),
        false => timeout,
    }
}

impl World {
    /// Returns the number of unread bytes if recvmsg(2) must report it. As in Linux, the end of the
    /// stream counts as a byte.
    pub(crate) fn unread_to_report(&mut self, fd: i32) -> Result<Option<i32>, Errno> {
        let socket = self.socket(fd)?;
        let Some(id) = socket.stream().ok().filter(|_| socket.options.reports_unread) else {
            return Ok(None);
        };
        let tcp = self.host.tcp(id).map_err(errno)?;
        let unread = i32::try_from(tcp.info(self.now).recv_q.0).unwrap_or(i32::MAX);
        let ended = unread == 0 && tcp.peek(&mut [0]).is_ok();
        Ok(Some(unread.max(ended.into())))
    }

    /// Copies received bytes to `pieces`, and consumes them after that; with `MSG_TRUNC` they are
    /// discarded.
    fn receive_some(
        &mut self,
        fd: i32,
        buffer: &mut [u8],
        pieces: &Pieces,
        flags: i32,
    ) -> Result<Option<usize>, Errno> {
        let socket = self.socket(fd)?;
        let (id, read_shut) = (socket.stream()?, socket.read_shut);
        let offset = pieces.len() - buffer.len();
        let n = match self.host.tcp(id).and_then(|tcp| Ok(tcp.peek(buffer)?)) {
            Ok(n) => n,
            Err(HostError::Tcp(TcpError::WouldBlock)) if read_shut => return Ok(Some(0)),
            Err(HostError::Tcp(TcpError::WouldBlock)) => return Ok(None),
            Err(HostError::Tcp(_)) => {
                return self.take_error(fd)?.map_or(Ok(Some(0)), Err);
            }
            Err(error) => return Err(errno(error)),
        };
        if flags & libc::MSG_TRUNC == 0 {
            pieces.skip(offset).write(&buffer[..n])?;
        }
        if flags & libc::MSG_PEEK == 0 && n > 0 {
            self.host.tcp_recv(self.now, id, &mut buffer[..n]).map_err(errno)?;
        }
        Ok(Some(n))
    }

    fn send_some(&mut self, fd: i32, data: &[u8], flags: i32) -> Result<Option<usize>, Errno> {
        let id = self.socket(fd)?.stream()?;
        let sent = match flags & libc::MSG_MORE != 0 {
            true => self.host.tcp_send_more(self.now, id, data),
            false => self.host.tcp_send(self.now, id, data),
        };
        match sent {
            Ok(n) => Ok(Some(n)),
            Err(HostError::Tcp(TcpError::WouldBlock)) => Ok(None),
            Err(HostError::Tcp(TcpError::Shutdown)) => Err(Errno::EPIPE),
            Err(HostError::Tcp(_)) => Err(self.take_error(fd)?.unwrap_or(Errno::EPIPE)),
            Err(error) => Err(errno(error)),
        }
    }
}
