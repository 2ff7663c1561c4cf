//! Descriptors: sockets from socket(2) to close(2).

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_stack::SocketId;
use airtcp_stack::tcp::{KeepAlive, Readiness, SocketOption, State, TcpConfig};
use nix::errno::Errno;
use nix::libc;

use crate::descriptor::Descriptor;
use crate::errors::{errno, tcp_errno};
use crate::poll::Epoll;
use crate::world::World;

/// The object of a descriptor.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: Descriptor,
    pub(crate) domain: i32,
    pub(crate) kind: Kind,
    pub(crate) nonblocking: bool,
    pub(crate) options: Options,
    /// Whether `shutdown(SHUT_RD)` was called.
    pub(crate) read_shut: bool,
    /// Whether `shutdown(SHUT_WR)` was called.
    pub(crate) write_shut: bool,
    /// Whether the error that ended the connection was reported, which Linux does once.
    error_reported: bool,
    /// Whether connect(2) has reported that the connection is open.
    open_reported: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Fresh,
    Bound(SocketId),
    Listener(SocketId),
    Stream(SocketId),
    Epoll(Epoll),
}

/// The options set with setsockopt(2), which accepted connections inherit.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) config: TcpConfig,
    pub(crate) keep_alive: KeepAlive,
    pub(crate) linger: Option<Duration>,
    pub(crate) receive_timeout: Option<Duration>,
    pub(crate) send_timeout: Option<Duration>,
    /// Accepted connections do not inherit it.
    pub(crate) cork: bool,
    /// The value as it was set.
    pub(crate) low_water: i32,
    /// Whether recvmsg(2) reports the number of unread bytes (`TCP_INQ`).
    pub(crate) reports_unread: bool,
    /// Options without any effect, which are only read back: name and value.
    pub(crate) kept: Vec<(i32, i32)>,
}

impl Socket {
    fn new(domain: i32, kind: Kind, options: Options) -> Result<Self, Errno> {
        Ok(Self {
            descriptor: Descriptor::open()?,
            domain,
            kind,
            nonblocking: false,
            options,
            read_shut: false,
            write_shut: false,
            error_reported: false,
            open_reported: false,
        })
    }

    /// Returns the bytes of the IP and TCP headers without options.
    pub(crate) const fn headers(&self) -> u16 {
        if self.domain == libc::AF_INET { 40 } else { 60 }
    }

    /// Returns the connection.
    pub(crate) fn stream(&self) -> Result<SocketId, Errno> {
        match self.kind {
            Kind::Stream(id) => Ok(id),
            _ => Err(Errno::ENOTCONN),
        }
    }
}

impl World {
    /// Returns the socket of a descriptor.
    pub(crate) fn socket(&mut self, fd: i32) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(Errno::EBADF)
    }

    /// socket(2).
    pub(crate) fn open(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
        self.begin();
        if ![libc::AF_INET, libc::AF_INET6].contains(&domain) {
            return Err(Errno::EAFNOSUPPORT);
        }
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        if kind & !flags != libc::SOCK_STREAM || ![0, libc::IPPROTO_TCP].contains(&protocol) {
            return Err(Errno::EPROTONOSUPPORT);
        }
        let options = Options {
            config: self.defaults.clone(),
            keep_alive: KeepAlive::default(),
            linger: None,
            receive_timeout: None,
            send_timeout: None,
            cork: false,
            low_water: 0,
            reports_unread: false,
            kept: Vec::new(),
        };
        let mut socket = Socket::new(domain, Kind::Fresh, options)?;
        socket.nonblocking = kind & libc::SOCK_NONBLOCK != 0;
        Ok(self.keep(socket))
    }

    /// epoll_create(2).
    pub(crate) fn open_epoll(&mut self) -> Result<i32, Errno> {
        let fd = self.open(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        self.socket(fd)?.kind = Kind::Epoll(Epoll::default());
        Ok(fd)
    }

    fn keep(&mut self, socket: Socket) -> i32 {
        let fd = socket.descriptor.number();
        self.sockets.insert(fd, socket);
        fd
    }

    pub(crate) fn bind(&mut self, fd: i32, local: SocketAddr) -> Result<(), Errno> {
        let Kind::Fresh = self.socket(fd)?.kind else { return Err(Errno::EINVAL) };
        let id = self.host.tcp_bind(local).map_err(errno)?;
        self.socket(fd)?.kind = Kind::Bound(id);
        Ok(())
    }

    pub(crate) fn listen(&mut self, fd: i32, backlog: i32) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        let config = socket.config();
        let bound = match socket.kind {
            Kind::Bound(id) => id,
            Kind::Listener(_) => return Ok(()),
            _ => return Err(Errno::EINVAL),
        };
        let backlog = usize::try_from(backlog).unwrap_or(0).saturating_add(1);
        let id = self.host.tcp_listen_at(bound, backlog, config).map_err(errno)?;
        self.socket(fd)?.kind = Kind::Listener(id);
        Ok(())
    }

    /// Accepts the next connection; returns it with its peer, or `None` if there is none yet.
    pub(crate) fn accept(&mut self, fd: i32) -> Result<Option<(i32, SocketAddr)>, Errno> {
        let socket = self.socket(fd)?;
        let Kind::Listener(listener) = socket.kind else { return Err(Errno::EINVAL) };
        let (domain, options) = (socket.domain, socket.options.clone());
        let Some((id, remote)) = self.host.tcp_accept(self.now, listener).map_err(errno)? else {
            return Ok(None);
        };
        let linger = SocketOption::Linger(options.linger);
        self.host.tcp_set(self.now, id, linger).map_err(errno)?;
        let mut socket = Socket::new(domain, Kind::Stream(id), options)?;
        socket.open_reported = true;
        Ok(Some((self.keep(socket), remote)))
    }

    /// Starts to connect. [`connected`](Self::connected) returns whether the connection is open.
    pub(crate) fn connect(&mut self, fd: i32, remote: SocketAddr) -> Result<(), Errno> {
        let now = self.now;
        let socket = self.socket(fd)?;
        let (config, linger) = (socket.config(), socket.options.linger);
        let id = match socket.kind {
            Kind::Fresh => self.host.tcp_connect(now, remote, Some(config)),
            Kind::Bound(bound) => self.host.tcp_connect_from(now, bound, remote, Some(config)),
            Kind::Stream(_) if socket.open_reported => return Err(Errno::EISCONN),
            Kind::Stream(_) => {
                return match self.connected(fd)? {
                    Some(()) => Ok(()),
                    None => Err(Errno::EALREADY),
                };
            }
            Kind::Listener(_) | Kind::Epoll(_) => return Err(Errno::EINVAL),
        };
        let id = id.map_err(errno)?;
        self.host.tcp_set(now, id, SocketOption::Linger(linger)).map_err(errno)?;
        self.socket(fd)?.kind = Kind::Stream(id);
        Ok(())
    }

    pub(crate) fn connected(&mut self, fd: i32) -> Result<Option<()>, Errno> {
        let id = self.socket(fd)?.stream()?;
        if let Some(error) = self.take_error(fd)? {
            return Err(error);
        }
        let connected = self.host.readiness(id).map_err(errno)?.connected;
        self.socket(fd)?.open_reported |= connected;
        Ok(connected.then_some(()))
    }

    /// Returns the error that ended a connection, unless it was reported before.
    pub(crate) fn error(&mut self, fd: i32) -> Result<Option<Errno>, Errno> {
        let socket = self.socket(fd)?;
        let (Ok(id), false) = (socket.stream(), socket.error_reported) else { return Ok(None) };
        Ok(self.host.tcp(id).map_err(errno)?.error().map(tcp_errno))
    }

    /// Returns the error of [`error`](Self::error), and marks it as reported.
    pub(crate) fn take_error(&mut self, fd: i32) -> Result<Option<Errno>, Errno> {
        let error = self.error(fd)?;
        self.socket(fd)?.error_reported |= error.is_some();
        Ok(error)
    }

    pub(crate) fn shutdown(&mut self, fd: i32, how: i32) -> Result<(), Errno> {
        let (read, write) = match how {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => return Err(Errno::EINVAL),
        };
        let now = self.now;
        let id = self.socket(fd)?.stream()?;
        if self.state(fd)? == Some(State::Closed) {
            return Err(Errno::ENOTCONN);
        }
        if write {
            self.host.tcp_shutdown(now, id).map_err(errno)?;
        }
        let socket = self.socket(fd)?;
        socket.read_shut |= read;
        socket.write_shut |= write;
        Ok(())
    }

    pub(crate) fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let socket = self.sockets.remove(&fd).ok_or(Errno::EBADF)?;
        self.forget(fd);
        match socket.kind {
            Kind::Fresh | Kind::Epoll(_) => Ok(()),
            Kind::Bound(id) | Kind::Listener(id) | Kind::Stream(id) => {
                self.host.tcp_close(self.now, id).map_err(errno)
            }
        }
    }

    /// Returns the state, if the descriptor is a connection.
    pub(crate) fn state(&mut self, fd: i32) -> Result<Option<State>, Errno> {
        match self.socket(fd)?.stream() {
            Ok(id) => self.host.tcp(id).map(|tcp| Some(tcp.state())).map_err(errno),
            Err(_) => Ok(None),
        }
    }

    pub(crate) fn readiness(&mut self, fd: i32) -> Result<Readiness, Errno> {
        match self.socket(fd)?.kind {
            Kind::Listener(id) | Kind::Stream(id) => self.host.readiness(id).map_err(errno),
            Kind::Fresh | Kind::Bound(_) | Kind::Epoll(_) => Ok(Readiness::default()),
        }
    }
}

impl Socket {
    /// Returns the configuration of this socket's connections.
    fn config(&self) -> TcpConfig {
        self.options.config.clone()
    }
}
