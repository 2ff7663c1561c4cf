//! Socket options of a live connection.

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

    /// Enables or disables `TCP_CORK`. While it is on, only full segments are sent; disabling it
    /// sends the data that was held back. A shutdown sends that data, too, and so does a time-out
    /// of at least 200 ms while nothing is in flight.
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

    /// Enables or disables quick ACKs (`TCP_QUICKACK`). With `true`, ACKs are sent at once,
    /// including those already delayed; with `false`, ACKs are delayed. As in Linux, the setting
    /// does not last: after 16 ACKs the usual rules apply again.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_quick_ack(&self, on: bool) -> io::Result<()> {
        self.set(SocketOption::QuickAck(on))
    }

    /// Whether quick ACKs are on, that is, ACKs are not delayed to be sent with data.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn quick_ack(&self) -> io::Result<bool> {
        self.ask(Connection::quick_ack)
    }

    /// Sets the amount of unsent data (bytes) above which the stream is not writable
    /// (`TCP_NOTSENT_LOWAT`). With `None`, the default, only the send buffer limits writing.
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
    /// `InvalidInput`: `ttl` is out of range; `NotConnected`: the stack has ended.
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

    /// Sets keep-alive: the stack probes a silent peer. If the peer does not answer, reading and
    /// writing return `TimedOut`. With `None`, the default, no probes are sent.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()> {
        self.set(SocketOption::KeepAlive(settings))
    }

    /// Sets how long closing may take after the stream is dropped: data that the peer has not
    /// acknowledged by then is discarded, and a RST is sent. With `None`, the default, only
    /// retransmission time-outs limit it. The drop itself does not wait.
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

    /// Sets the user time-out (RFC 5482): the longest time for which data may stay unacknowledged,
    /// keep-alive probes unanswered, or the peer's window closed. After it, reading and writing
    /// return `TimedOut`. With `None`, the default, the connection ends after the usual number of
    /// retransmission time-outs.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn set_user_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set(SocketOption::UserTimeout(limit))
    }

    /// Replaces the strategies of the connection, at any time. The scoreboard, the RTT estimates
    /// and the window are kept.
    ///
    /// # Errors
    /// `Unsupported`: the strategies need an option that was not negotiated; the current ones stay.
    /// `BrokenPipe`: the stream was shut down. `NotConnected`: the stack has ended. Otherwise the
    /// error that ended the connection.
    pub fn set_combination(&self, combination: &Combination) -> io::Result<()> {
        self.set(SocketOption::Combination(combination.clone()))
    }

    /// The strategies in use.
    ///
    /// # Errors
    /// `BrokenPipe`: the stream was shut down. `NotConnected`: the stack has ended. Otherwise the
    /// error that ended the connection.
    pub fn combination(&self) -> io::Result<Combination> {
        self.ask(|tcp| tcp.combination().cloned())?.map_err(io::Error::from)
    }

    /// Replaces the loss detection by the one named `name`, such as `rack`. The other strategies
    /// stay selected and start from their initial state.
    ///
    /// # Errors
    /// `InvalidInput`: the name is unknown; the message lists the names. Otherwise as
    /// [`set_combination`](Self::set_combination).
    pub fn set_detection(&self, name: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(Some(name), None, None))
    }

    /// Replaces the congestion control by the one named `name`, such as `cubic`, like
    /// [`set_detection`](Self::set_detection). If control and judge are the defaults, selecting
    /// another control also removes the default judge.
    ///
    /// # Errors
    /// As [`set_detection`](Self::set_detection).
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(None, Some(name), None))
    }

    /// Replaces the judges by those in `names`, such as `hack+dcr:timer`, like
    /// [`set_detection`](Self::set_detection). An empty `names` removes all judges.
    ///
    /// # Errors
    /// As [`set_detection`](Self::set_detection).
    pub fn set_judge(&self, names: &str) -> io::Result<()> {
        self.choose(|combination| combination.with_parts(None, None, Some(names)))
    }

    /// Takes the error that ended the connection: it is returned once, whereas reading and writing
    /// return it each time.
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
