//! The active end of one connection.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_stack::host::{HostError, SocketId};
use airtcp_stack::tcp::{Readiness, TcpConfig, TcpError};
use airtcp_types::Instant;
use airtcp_types::rng::Stream;

use super::end_host::Desk;
use super::{Meter, pattern};

/// The size of the read buffer.
const READ: usize = 2048;

/// The behaviour of a caller: it sends a request, reads the response, pauses, and repeats this.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The size of a request; `None` for an unlimited one.
    pub(crate) request: Option<u64>,
    /// The size of the response; zero for none.
    pub(crate) response: u64,
    /// The mean of the exponentially distributed pause.
    pub(crate) think: Duration,
    /// The number of requests; `None` for requests until the end of the run.
    pub(crate) count: Option<u64>,
    /// The time after which it writes no more data and starts no more requests.
    pub(crate) stop: Option<Instant>,
}

/// An application that opens a connection and follows its script.
#[derive(Debug)]
pub(crate) struct Caller {
    remote: SocketAddr,
    config: TcpConfig,
    script: Script,
    random: Stream,
    socket: Option<SocketId>,
    /// The time of its next action.
    wake_at: Option<Instant>,
    /// The start of the current request.
    began: Instant,
    requests: u64,
    /// The stream offset up to which data is to be written.
    owed: u64,
    written: u64,
    read: u64,
    pub(crate) meter: Meter,
}

impl Caller {
    /// Creates a caller that opens its connection at `start`.
    pub(crate) const fn new(
        start: Instant,
        remote: SocketAddr,
        config: TcpConfig,
        script: Script,
        random: Stream,
        meter: Meter,
    ) -> Self {
        Self {
            remote,
            config,
            script,
            random,
            socket: None,
            wake_at: Some(start),
            began: start,
            requests: 0,
            owed: 0,
            written: 0,
            read: 0,
            meter,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.wake_at.into_iter().chain(self.script.stop).min()
    }

    pub(super) fn on_timeout(&mut self, desk: &mut Desk<'_>) {
        self.wake_at = None;
        if self.script.stop.is_some_and(|stop| stop <= desk.now) {
            self.stop(desk);
            return;
        }
        if self.socket.is_none() {
            match desk.host.tcp_connect(desk.now, self.remote, Some(self.config.clone())) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    desk.hold(socket);
                }
                Err(error) => {
                    self.meter.refused = Some(error);
                    return;
                }
            }
        }
        self.begin(desk);
    }

    pub(super) fn on_ready(&mut self, desk: &mut Desk<'_>, socket: SocketId, ready: Readiness) {
        if ready.writable {
            self.write(desk, socket);
        }
        if ready.readable && self.read(desk, socket) {
            self.wake_at = None;
            desk.close(socket);
        }
    }

    fn begin(&mut self, desk: &mut Desk<'_>) {
        let Some(socket) = self.socket else { return };
        self.began = desk.now;
        self.requests += 1;
        self.owed = self.script.request.map_or(u64::MAX, |size| self.owed.saturating_add(size));
        self.write(desk, socket);
    }

    /// Makes the current request the last one; an unlimited one ends here.
    fn stop(&mut self, desk: &mut Desk<'_>) {
        self.script.stop = None;
        self.script.count = Some(self.requests);
        if self.script.request.is_none() {
            self.owed = self.written;
        }
        if let Some(socket) = self.socket {
            self.write(desk, socket);
        }
    }

    fn is_last(&self) -> bool {
        self.script.count.is_some_and(|count| self.requests >= count)
    }

    fn write(&mut self, desk: &mut Desk<'_>, socket: SocketId) {
        while self.written < self.owed {
            let piece = pattern::shared(self.written, self.owed - self.written);
            let Ok(len) = desk.host.tcp_send_shared(desk.now, socket, &piece) else { return };
            self.written += len as u64;
        }
        if self.is_last() {
            // A connection that cannot be shut down is closed already.
            let _ = desk.host.tcp_shutdown(desk.now, socket);
        }
    }

    /// Reads the available data; returns whether the stream has ended.
    fn read(&mut self, desk: &mut Desk<'_>, socket: SocketId) -> bool {
        let mut buffer = [0; READ];
        loop {
            match desk.host.tcp_recv(desk.now, socket, &mut buffer) {
                Ok(0) => return true,
                Ok(len) => {
                    self.meter.on_read(desk.now, self.read, &buffer[..len]);
                    self.read += len as u64;
                    if self.script.response > 0
                        && self.read == self.requests.saturating_mul(self.script.response)
                    {
                        self.on_response(desk);
                    }
                }
                Err(HostError::Tcp(TcpError::WouldBlock)) => return false,
                Err(_) => {
                    self.meter.broken += 1;
                    return true;
                }
            }
        }
    }

    fn on_response(&mut self, desk: &mut Desk<'_>) {
        self.meter.on_exchange(self.began, desk.now);
        if self.is_last() {
            self.meter.finished.get_or_insert(desk.now);
        } else if self.script.think.is_zero() {
            self.begin(desk);
        } else {
            self.wake_at = Some(desk.now + exponential(&mut self.random, self.script.think));
        }
    }
}

/// Draws an exponentially distributed time with this mean.
fn exponential(random: &mut Stream, mean: Duration) -> Duration {
    // The argument is in (0, 1], so its logarithm exists; the result is at most 37 means.
    mean.mul_f64(-libm::log(1.0 - random.next_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_their_mean() {
        let mut random = Stream::new(1, 0);
        let mean = Duration::from_millis(10);
        let sum: Duration = (0..20_000).map(|_| exponential(&mut random, mean)).sum();
        let error = sum.as_secs_f64() / 20_000.0 / mean.as_secs_f64() - 1.0;
        // Three standard errors.
        assert!(error.abs() < 3.0 / 20_000f64.sqrt(), "{error}");
    }
}
