//! Users that open one short connection after another.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_stack::host::{HostError, SocketId};
use airtcp_stack::tcp::{Readiness, TcpConfig, TcpError};
use airtcp_types::Instant;
use airtcp_types::rng::Stream;

use super::end_host::Desk;
use super::{Meter, pattern};
use crate::agenda::Agenda;

/// The shape of Pareto pauses, with a finite mean and an infinite variance, as for web users.
const SHAPE: f64 = 1.5;

/// The behaviour of each user.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    /// The smallest and the largest transfer in bytes.
    pub(crate) size: (u64, u64),
    /// The mean pause.
    pub(crate) gap: Duration,
    /// Whether pauses are Pareto-distributed.
    pub(crate) pareto: bool,
    /// The time after which no transfer starts.
    pub(crate) stop: Option<Instant>,
}

/// Users, each with at most one transfer at a time.
#[derive(Debug)]
pub(crate) struct Crowd {
    remote: SocketAddr,
    config: TcpConfig,
    habits: Habits,
    random: Stream,
    /// When each user starts the next transfer.
    agenda: Agenda,
    transfers: BTreeMap<SocketId, Transfer>,
    pub(crate) meter: Meter,
}

#[derive(Debug)]
struct Transfer {
    user: u32,
    began: Instant,
    size: u64,
    written: u64,
}

impl Crowd {
    /// Creates the users; each starts at a random time within a mean pause after `start`.
    pub(crate) fn new(
        start: Instant,
        users: u32,
        remote: SocketAddr,
        config: TcpConfig,
        habits: Habits,
        mut random: Stream,
        meter: Meter,
    ) -> Self {
        let mut agenda = Agenda::new();
        for user in 0..users {
            agenda.set(user, Some(start + habits.gap.mul_f64(random.next_f64())));
        }
        Self { remote, config, habits, random, agenda, transfers: BTreeMap::new(), meter }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let next = self.agenda.first().map(|(at, _)| at);
        next.filter(|at| self.habits.stop.is_none_or(|stop| *at < stop))
    }

    pub(super) fn on_timeout(&mut self, desk: &mut Desk<'_>) {
        while let Some(user) = self.agenda.pop_due(desk.now) {
            self.begin(desk, user);
        }
    }

    fn begin(&mut self, desk: &mut Desk<'_>, user: u32) {
        let (smallest, largest) = self.habits.size;
        let size = smallest + self.random.below(largest - smallest + 1);
        match desk.host.tcp_connect(desk.now, self.remote, Some(self.config.clone())) {
            Ok(socket) => {
                desk.hold(socket);
                let transfer = Transfer { user, began: desk.now, size, written: 0 };
                self.transfers.insert(socket, transfer);
            }
            // The user tries again later.
            Err(HostError::NoPorts | HostError::NoMemory) => {
                self.meter.broken += 1;
                self.pause(desk.now, user);
            }
            Err(error) => self.meter.refused = Some(error),
        }
    }

    pub(super) fn on_ready(&mut self, desk: &mut Desk<'_>, socket: SocketId, ready: Readiness) {
        let Some(transfer) = self.transfers.get_mut(&socket) else { return };
        if ready.writable {
            while transfer.written < transfer.size {
                let piece = pattern::shared(transfer.written, transfer.size - transfer.written);
                let Ok(len) = desk.host.tcp_send_shared(desk.now, socket, &piece) else { break };
                transfer.written += len as u64;
            }
            if transfer.written == transfer.size {
                // A connection that cannot be shut down is closed already.
                let _ = desk.host.tcp_shutdown(desk.now, socket);
            }
        }
        if ready.readable {
            match desk.host.tcp_recv(desk.now, socket, &mut [0; 64]) {
                // The other end closes after it has received everything.
                Ok(0) => self.meter.on_exchange(transfer.began, desk.now),
                Ok(_) | Err(HostError::Tcp(TcpError::WouldBlock)) => return,
                Err(_) => self.meter.broken += 1,
            }
            let user = transfer.user;
            self.transfers.remove(&socket);
            desk.close(socket);
            self.pause(desk.now, user);
        }
    }

    fn pause(&mut self, now: Instant, user: u32) {
        // Without a minimum pause, users without pauses could prevent time from advancing.
        let gap = self.gap().max(Duration::from_micros(1));
        self.agenda.set(user, Some(now + gap));
    }

    fn gap(&mut self) -> Duration {
        if !self.habits.pareto {
            return self.habits.gap;
        }
        // The mean of a Pareto distribution with minimum x is x * SHAPE / (SHAPE - 1).
        let draw = libm::pow(1.0 - self.random.next_f64(), -1.0 / SHAPE);
        let gap = self.habits.gap.as_secs_f64() * draw * (SHAPE - 1.0) / SHAPE;
        Duration::try_from_secs_f64(gap).unwrap_or(Duration::MAX)
    }
}
