//! Socket options of an open connection.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use airtcp_recovery::{Combination, CombinationError};
use airtcp_stack::tcp::{Connection, KeepAlive, SocketOption};
use airtcp_types::ByteCount;

use super::socket::{hop_limit, invalid};
use super::stream::TcpStream;

impl TcpStream {
    /// Disables or enables Nagle's algorithm (`TCP_NODELAY`).
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        self.set(SocketOption::NoDelay(on))
    }

    /// Whether Nagle's algorithm is disabled.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.ask(Connection::nodelay)
    }

    /// Lets only full segments leave from now on (`TCP_CORK`), or lets what was held back leave. Shutting the stream down
    /// lets it leave, too, and so does a time-out, 200 ms or more, without anything on its way.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_cork(&self, on: bool) -> io::Result<()> {
        self.set(SocketOption::Cork(on))
    }

    /// Whether only full segments are sent.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn cork(&self) -> io::Result<bool> {
        self.ask(Connection::cork)
    }

    /// Acknowledges at once from now on, and what waits to be acknowledged, too (`TCP_QUICKACK`); or lets ACKs wait for data
    /// that they can ride on. As in Linux neither is for good: after 16 ACKs the usual rules hold again, and they change
    /// with what the two ends say.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_quick_ack(&self, on: bool) -> io::Result<()> {
        self.set(SocketOption::QuickAck(on))
    }

    /// Whether quick ACKs are on: ACKs do not wait for data to be piggybacked on.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn quick_ack(&self) -> io::Result<bool> {
        self.ask(Connection::quick_ack)
    }

    /// Keeps a writer waiting while so many bytes were written and not sent yet (`TCP_NOTSENT_LOWAT`); `None`, the
    /// default, leaves that to the send buffer.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_not_sent_low_water(&self, mark: Option<u32>) -> io::Result<()> {
        let mark = mark.map(|mark| ByteCount(mark.into()));
        self.set(SocketOption::NotSentLowWater(mark))
    }

    /// Sets the TTL or hop limit, 1 to 255.
    ///
    /// # Errors
    /// `InvalidInput`: another number; `NotConnected`: the stack has ended.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hop_limit = hop_limit(ttl)?;
        self.set(SocketOption::HopLimit(hop_limit))
    }

    /// The TTL or hop limit.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn ttl(&self) -> io::Result<u32> {
        self.ask(Connection::hop_limit).map(u32::from)
    }

    /// Asks a silent peer whether it is still there, from now on; `None`, the default, never does. When it
    /// is gone reading and writing give `TimedOut`.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()> {
        self.set(SocketOption::KeepAlive(settings))
    }

    /// Sets how long closing may take once the stream has been dropped: what the peer has not acknowledged by
    /// then is thrown away with a RST. `None`, the default, is no limit but that of time-outs. Nothing
    /// blocks: the drop does not wait for it.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_linger(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set(SocketOption::Linger(limit))
    }

    /// Makes the drop of the stream reset the connection, as [`abort`](Self::abort) does.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// The linger time.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.ask(Connection::linger)
    }

    /// Sets how long sent data, or a peer that answers no keep-alive, may go unanswered, and how long data may wait for a
    /// closed window to open (RFC 5482); reading and writing then give `TimedOut`. `None`, the default, is the usual number of time-outs.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_user_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set(SocketOption::UserTimeout(limit))
    }

    /// Gives the connection other strategies, at any time: what was sent and what is known of the
    /// path survive, and they begin from the window that there is.
    ///
    /// # Errors
    /// `Unsupported`: they need what the two ends have not agreed on, and the old ones stay;
    /// `BrokenPipe`: nothing will be sent any more; `NotConnected`: the stack has ended; otherwise
    /// why the connection ended.
    pub fn set_combination(&self, combination: &Combination) -> io::Result<()> {
        self.set(SocketOption::Combination(combination.clone()))
    }

    /// The strategies in use.
    ///
    /// # Errors
    /// `BrokenPipe`: nothing will be sent any more; `NotConnected`: the stack has ended; otherwise
    /// why the connection ended.
    pub fn combination(&self) -> io::Result<Combination> {
        self.ask(|tcp| tcp.combination().cloned())?.map_err(io::Error::from)
    }

    /// Gives the connection another loss detection, by its name, such as `rack`; the other strategies
    /// are those it has, and begin anew.
    ///
    /// # Errors
    /// `InvalidInput`: there is none of that name; the message has those that are. Otherwise as
    /// [`set_combination`](Self::set_combination).
    pub fn set_detection(&self, name: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(Some(name), None, None))
    }

    /// Gives the connection another congestion control, by its name, such as `cubic`; as
    /// [`set_detection`](Self::set_detection). The judge of the default goes with the default's control.
    ///
    /// # Errors
    /// As [`set_detection`](Self::set_detection).
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(None, Some(name), None))
    }

    /// Gives the connection other judges, by their names, such as `hack+dcr:timer`, or none by an empty
    /// name; as [`set_detection`](Self::set_detection).
    ///
    /// # Errors
    /// As [`set_detection`](Self::set_detection).
    pub fn set_judge(&self, names: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(None, None, Some(names)))
    }

    /// Why the connection ended, if not as it should; told once. Reading and writing tell it, too, each
    /// time.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.ask(Connection::error)?;
        let fresh = error.filter(|_| !self.0.error_reported.swap(true, Ordering::Relaxed));
        Ok(fresh.map(io::Error::from))
    }

    fn choose(
        &self,
        choice: impl FnOnce(&Combination) -> Result<Combination, CombinationError>,
    ) -> io::Result<()> {
        self.0.shared().with(|core, now| {
            let tcp = core.host.tcp(self.0.id).map_err(io::Error::from)?;
            let next = choice(tcp.combination().map_err(io::Error::from)?).map_err(invalid)?;
            let next = SocketOption::Combination(next);
            core.host.tcp_set(now, self.0.id, next).map_err(io::Error::from)
        })
    }

    fn set(&self, option: SocketOption) -> io::Result<()> {
        self.0
            .shared()
            .with(|core, now| core.host.tcp_set(now, self.0.id, option))
            .map_err(io::Error::from)
    }

    fn ask<T>(&self, question: impl FnOnce(&Connection) -> T) -> io::Result<T> {
        self.0
            .shared()
            .look(|core, _| core.host.tcp(self.0.id).map(question))
            .map_err(io::Error::from)
    }
}
