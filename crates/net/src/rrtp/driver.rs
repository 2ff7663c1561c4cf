//! The task that moves datagrams between a UDP socket and an endpoint.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Alarm, Clock};
use airtcp_types::Instant;
use tracing::debug;

use super::core::Core;
use super::datagrams::{DatagramSocket, Inbox, Outbox};
use crate::shared::{self, End, Shared};
use crate::task::{self, Next, Work};

/// Owns the UDP socket, and drives the endpoint until it is shut down, the socket fails, or no
/// handle is left and the last connection has ended.
#[derive(Debug)]
pub(super) struct Driver<S> {
    shared: Arc<Shared<Core>>,
    socket: Arc<S>,
    inbox: Inbox,
    outbox: Outbox,
    arrived: Instant,
}

impl<S: DatagramSocket> Driver<S> {
    pub(super) fn new(shared: Arc<Shared<Core>>, socket: Arc<S>) -> Self {
        let (inbox, outbox) = (Inbox::new(), Outbox::default());
        Self { shared, socket, inbox, outbox, arrived: Instant::ZERO }
    }

    pub(super) fn run(self, alarm: Alarm) -> impl Future<Output = ()> + Send {
        shared::task(self.shared.clone(), self.run_to_end(alarm))
    }

    async fn run_to_end(mut self, mut alarm: Alarm) {
        let Err(end) = task::run(&mut self, &mut alarm).await;
        match &end {
            // Every socket returns this error; the code that handles it reports it.
            End::Gone(why) => debug!(why, "RRTP socket ended: UDP socket gone"),
            End::Shutdown | End::Dropped => debug!("RRTP socket ended"),
        }
        let Self { shared, socket, .. } = self;
        // The socket is dropped before waiting tasks see the end.
        drop(socket);
        shared.end(end);
    }

    /// Processes one batch; returns `None` when the driver has finished.
    fn batch(&mut self) -> Result<Option<Next>, End> {
        self.inbox.clear();
        match self.socket.try_recv_batch(&mut self.inbox) {
            Err(error) if !is_passing(&error) => return Err(error.into()),
            _ => {}
        }
        let clock = self.shared.clock();
        let Self { shared, inbox, outbox, arrived, .. } = self;
        let (now, next) = shared.turn(|core, now| {
            core.begin_turn(now);
            for (from, datagram, age) in inbox.iter() {
                // The kernel's timestamps are of the wall clock, which may be set back.
                *arrived = (*arrived).max(now - age);
                core.endpoint.handle_datagram(*arrived, from, datagram);
            }
            let next = after_input(core, now, clock, inbox, outbox);
            core.settle();
            (now, next)
        });
        let refused = self.outbox.send(&*self.socket);
        if refused > 0 {
            self.shared.with(|core, _| core.refused += refused);
        }
        Ok(match next {
            // Datagrams that are due cannot leave and stay due: checking once a millisecond is
            // enough.
            Some(Next::Wait(Some(at))) if !self.outbox.is_empty() => {
                Some(Next::Wait(Some(at.max(now + Duration::from_millis(1)))))
            }
            next => next,
        })
    }
}

impl<S: DatagramSocket> Work for Driver<S> {
    type End = End;

    async fn turn(&mut self) -> Result<Next, End> {
        let next = self.batch()?.ok_or(End::Shutdown)?;
        match next {
            // Woken tasks read before more data arrives.
            Next::Turn => tokio::task::yield_now().await,
            Next::Wait(_) => tokio::task::coop::consume_budget().await,
        }
        Ok(next)
    }

    async fn ready(&mut self) -> Result<(), End> {
        tokio::select! {
            biased;
            ready = self.socket.readable() => ready?,
            ready = self.socket.writable(), if !self.outbox.is_empty() => ready?,
            () = self.shared.driver.notified() => {}
        }
        Ok(())
    }
}

/// Runs the timers and fills the outbox; returns `None` when the driver has finished.
fn after_input(
    core: &mut Core,
    now: Instant,
    clock: Clock,
    inbox: &Inbox,
    outbox: &mut Outbox,
) -> Option<Next> {
    core.endpoint.handle_timeout(clock.now());
    let transmit = |core: &mut Core, outbox: &mut Outbox| {
        // Each packet carries its send time, from which the peer measures, so each reads the clock.
        let mut next = |out: &mut _| core.endpoint.poll_transmit(clock.now(), out);
        while !outbox.is_full() && outbox.add(&mut next) {}
    };
    if outbox.is_empty() {
        transmit(core, outbox);
        if outbox.is_full() {
            return Some(Next::Turn);
        }
    }
    if inbox.is_full() {
        return Some(Next::Turn);
    }
    if core.closing.is_some_and(|at| at <= now) {
        core.endpoint.abort_all(clock.now());
        transmit(core, outbox);
        return None;
    }
    let is_over = core.closing.is_some() && core.endpoint.is_quiet();
    let is_alone = core.abandoned && core.endpoint.connections() == 0;
    if is_over || is_alone { None } else { Some(Next::Wait(core.arm())) }
}

/// Whether an error concerns one datagram and not the socket.
fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused | ConnectionReset)
}
