//! getsockopt(2), setsockopt(2), fcntl(2) and ioctl(2).

use std::time::Duration;

use airtcp_stack::SocketId;
use airtcp_stack::tcp::SocketOption;
use airtcp_types::ByteCount;
use nix::errno::Errno;
use nix::libc;

use crate::errors::errno;
use crate::memory::Address;
use crate::socket::{Kind, Options};
use crate::tcp_info;
use crate::world::World;

/// The number of values of `SO_MEMINFO`.
const MEMINFO: usize = 9;
/// The range of `TCP_MAXSEG` (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`).
const MSS: std::ops::RangeInclusive<u16> = 88..=32_767;
/// The indices of `SK_MEMINFO_RCVBUF` and `SK_MEMINFO_SNDBUF` in these values.
const MEMINFO_BUFFERS: (usize, usize) = (1, 3);

impl World {
    pub(crate) fn set_option(
        &mut self,
        fd: i32,
        level: i32,
        name: i32,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        self.set_one(fd, level, name, bytes)?;
        let socket = self.socket(fd)?;
        let config = socket.options.config.clone();
        match socket.kind {
            // Later connections of a listener inherit the option.
            Kind::Listener(id) => self.host.tcp_set_listener_config(id, config).map_err(errno),
            _ => Ok(()),
        }
    }

    fn set_one(&mut self, fd: i32, level: i32, name: i32, bytes: &[u8]) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        let id = socket.stream().ok();
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_REUSEPORT | libc::SO_PRIORITY) => {
                let value = int(bytes)?;
                socket.options.kept.retain(|(kept, _)| *kept != name);
                socket.options.kept.push((name, value));
                Ok(())
            }
            (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF) => {
                // Linux doubles the value to account for the overhead of buffers; large writes can
                // use almost all of it.
                let bytes = ByteCount(u64::try_from(int(bytes)?).map_err(|_| Errno::EINVAL)? * 2);
                let config = &mut socket.options.config;
                if name == libc::SO_SNDBUF {
                    config.send_buffer = bytes;
                    self.live(id, SocketOption::SendBuffer(bytes))
                } else {
                    config.receive_buffer = bytes;
                    self.live(id, SocketOption::ReceiveBuffer(bytes))
                }
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let (on, seconds) = (int(bytes)?, int(bytes.get(4..).unwrap_or_default())?);
                let seconds = Duration::from_secs(seconds.max(0) as u64);
                socket.options.linger = (on != 0).then_some(seconds);
                let linger = socket.options.linger;
                self.live(id, SocketOption::Linger(linger))
            }
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => {
                socket.options.receive_timeout = timeval(bytes)?;
                Ok(())
            }
            (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => {
                socket.options.send_timeout = timeval(bytes)?;
                Ok(())
            }
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => {
                let on = int(bytes)? != 0;
                socket.options.config.keep_alive = on.then_some(socket.options.keep_alive);
                self.set_keep_alive(fd)
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => {
                let hops = u8::try_from(int(bytes)?).map_err(|_| Errno::EINVAL)?;
                socket.options.config.hop_limit = hops;
                self.live(id, SocketOption::HopLimit(hops))
            }
            (libc::IPPROTO_TCP, _) => self.set_tcp_option(fd, name, bytes),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn set_tcp_option(&mut self, fd: i32, name: i32, bytes: &[u8]) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        let id = socket.stream().ok();
        let headers = socket.headers();
        let Options { config, keep_alive, .. } = &mut socket.options;
        if name == libc::TCP_CONGESTION {
            let control = str::from_utf8(bytes).map_err(|_| Errno::ENOENT)?.trim_end_matches('\0');
            let named = config.sender.combination.with_parts(None, Some(control), None);
            config.sender.combination = named.map_err(|_| Errno::ENOENT)?;
            let chosen = config.sender.combination.clone();
            return self.live(id, SocketOption::Combination(chosen));
        }
        let value = int(bytes)?;
        let positive = u32::try_from(value).ok().filter(|value| *value > 0).ok_or(Errno::EINVAL);
        let seconds = positive.map(|value| Duration::from_secs(value.into()));
        match name {
            libc::TCP_NODELAY => {
                config.nodelay = value != 0;
                self.live(id, SocketOption::NoDelay(value != 0))
            }
            libc::TCP_QUICKACK => self.live(id, SocketOption::QuickAck(value != 0)),
            libc::TCP_INQ => {
                socket.options.reports_unread = value != 0;
                Ok(())
            }
            libc::TCP_CORK => {
                socket.options.cork = value != 0;
                self.live(id, SocketOption::Cork(value != 0))
            }
            libc::TCP_NOTSENT_LOWAT => {
                // Zero is the default; -1 as an unsigned number is no limit.
                let mark = u32::try_from(value).ok().filter(|mark| *mark > 0);
                let mark = mark.map(|mark| ByteCount(mark.into()));
                (config.not_sent_low_water, socket.options.low_water) = (mark, value);
                self.live(id, SocketOption::NotSentLowWater(mark))
            }
            libc::TCP_MAXSEG => {
                let mss = u16::try_from(value).ok().filter(|mss| MSS.contains(mss));
                config.mtu = mss.ok_or(Errno::EINVAL)? + headers;
                Ok(())
            }
            libc::TCP_USER_TIMEOUT => {
                let millis = u64::try_from(value).map_err(|_| Errno::EINVAL)?;
                let limit = Some(Duration::from_millis(millis)).filter(|limit| !limit.is_zero());
                config.user_timeout = limit;
                self.live(id, SocketOption::UserTimeout(limit))
            }
            libc::TCP_KEEPIDLE | libc::TCP_KEEPINTVL | libc::TCP_KEEPCNT => {
                match name {
                    libc::TCP_KEEPIDLE => keep_alive.idle = seconds?,
                    libc::TCP_KEEPINTVL => keep_alive.interval = seconds?,
                    _ => keep_alive.probes = u8::try_from(positive?).map_err(|_| Errno::EINVAL)?,
                }
                let settings = *keep_alive;
                config.keep_alive = config.keep_alive.map(|_| settings);
                self.set_keep_alive(fd)
            }
            libc::TCP_DEFER_ACCEPT => {
                config.defer_accept = seconds.ok();
                Ok(())
            }
            libc::TCP_SYNCNT => {
                config.syn_retries = u8::try_from(positive?).map_err(|_| Errno::EINVAL)?;
                Ok(())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// Returns the value of an option.
    pub(crate) fn option(&mut self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>, Errno> {
        let socket = self.socket(fd)?;
        let Options { config, keep_alive, linger, kept, .. } = &socket.options;
        let value = match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => {
                self.take_error(fd)?.map_or(0, |error| error as i32)
            }
            (libc::SOL_SOCKET, libc::SO_TYPE) => libc::SOCK_STREAM,
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => socket.domain,
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                i32::from(matches!(socket.kind, Kind::Listener(_)))
            }
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => i32::from(config.keep_alive.is_some()),
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => saturated(config.send_buffer),
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => saturated(config.receive_buffer),
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let on = i32::from(linger.is_some()).to_ne_bytes();
                let seconds = linger.map_or(0, |linger| linger.as_secs() as i32).to_ne_bytes();
                return Ok([on, seconds].concat());
            }
            (libc::SOL_SOCKET, libc::SO_MEMINFO) => {
                let mut numbers = [0i32; MEMINFO];
                numbers[MEMINFO_BUFFERS.0] = saturated(config.receive_buffer);
                numbers[MEMINFO_BUFFERS.1] = saturated(config.send_buffer);
                return Ok(numbers.iter().flat_map(|number| number.to_ne_bytes()).collect());
            }
            (libc::SOL_SOCKET, _) => {
                let found = kept.iter().find(|(kept, _)| *kept == name);
                found.map_or(Err(Errno::ENOPROTOOPT), |(_, value)| Ok(*value))?
            }
            (libc::IPPROTO_IP, libc::IP_TTL) => i32::from(config.hop_limit),
            (libc::IPPROTO_TCP, libc::TCP_INFO) => return self.tcp_info(fd),
            (libc::IPPROTO_TCP, libc::TCP_CC_INFO) => return Ok(Vec::new()),
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
                // Padded to `TCP_CA_NAME_MAX` bytes, as in Linux.
                let mut text = config.sender.combination.control().to_string().into_bytes();
                text.resize(16, 0);
                return Ok(text);
            }
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => i32::from(config.nodelay),
            (libc::IPPROTO_TCP, libc::TCP_QUICKACK) => match socket.stream() {
                Ok(id) => self.host.tcp(id).map_err(errno)?.quick_ack().into(),
                Err(_) => 1,
            },
            (libc::IPPROTO_TCP, libc::TCP_INQ) => i32::from(socket.options.reports_unread),
            (libc::IPPROTO_TCP, libc::TCP_CORK) => i32::from(socket.options.cork),
            (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT) => socket.options.low_water,
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
                let announced = i32::from(config.mtu - socket.headers());
                match socket.stream() {
                    Ok(id) => {
                        let mss = self.host.tcp(id).map_err(errno)?.info(self.now).mss.0 as i32;
                        if mss == 0 { announced } else { mss }
                    }
                    Err(_) => announced,
                }
            }
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
                config.user_timeout.map_or(0, |limit| limit.as_millis() as i32)
            }
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => keep_alive.idle.as_secs() as i32,
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => keep_alive.interval.as_secs() as i32,
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => keep_alive.probes.into(),
            (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => {
                config.defer_accept.map_or(0, |time| time.as_secs() as i32)
            }
            (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => config.syn_retries.into(),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(value.to_ne_bytes().to_vec())
    }

    fn tcp_info(&mut self, fd: i32) -> Result<Vec<u8>, Errno> {
        let socket = self.socket(fd)?;
        let config = &socket.options.config;
        let Ok(id) = socket.stream() else { return Ok(vec![0; tcp_info::LEN]) };
        let advertised = config.mtu - socket.headers();
        let tcp = self.host.tcp(id).map_err(errno)?;
        let info = tcp.info(self.now);
        let advertised = if info.ts { advertised - 12 } else { advertised };
        Ok(tcp_info::encode(&info, tcp.sender(), advertised).to_vec())
    }

    fn set_keep_alive(&mut self, fd: i32) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        let (id, settings) = (socket.stream().ok(), socket.options.config.keep_alive);
        self.live(id, SocketOption::KeepAlive(settings))
    }

    /// Applies an option to an existing connection.
    fn live(&mut self, id: Option<SocketId>, option: SocketOption) -> Result<(), Errno> {
        id.map_or(Ok(()), |id| self.host.tcp_set(self.now, id, option).map_err(errno))
    }

    pub(crate) fn fcntl(&mut self, fd: i32, command: i32, argument: i32) -> Result<i32, Errno> {
        let socket = self.socket(fd)?;
        match command {
            libc::F_GETFL => {
                let nonblocking = if socket.nonblocking { libc::O_NONBLOCK } else { 0 };
                Ok(libc::O_RDWR | nonblocking)
            }
            libc::F_SETFL => {
                socket.nonblocking = argument & libc::O_NONBLOCK != 0;
                Ok(0)
            }
            libc::F_GETFD | libc::F_SETFD => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    pub(crate) fn ioctl(&mut self, fd: i32, request: u64, argument: Address) -> Result<i32, Errno> {
        let now = self.now;
        let socket = self.socket(fd)?;
        if request == libc::FIONBIO {
            socket.nonblocking = argument.int()? != 0;
            return Ok(0);
        }
        let id = socket.stream().map_err(|_| Errno::EINVAL)?;
        let info = self.host.tcp(id).map_err(errno)?.info(now);
        let bytes = match request {
            libc::FIONREAD => info.recv_q,
            libc::TIOCOUTQ => info.send_q,
            _ => return Err(Errno::ENOTTY),
        };
        argument.write(&(bytes.0 as i32).to_ne_bytes())?;
        Ok(0)
    }
}

fn saturated(bytes: ByteCount) -> i32 {
    i32::try_from(bytes.0).unwrap_or(i32::MAX)
}

fn int(bytes: &[u8]) -> Result<i32, Errno> {
    bytes.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)
}

/// Parses a `struct timeval`; zero is no limit.
fn timeval(bytes: &[u8]) -> Result<Option<Duration>, Errno> {
    let number = |at: usize| {
        let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map(|bytes| i64::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)
    };
    let (seconds, micros) = (number(0)?.max(0) as u64, number(8)?);
    let micros = u64::try_from(micros).map_err(|_| Errno::EDOM)?;
    let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
    Ok(Some(time).filter(|time| !time.is_zero()))
}
