//! The task that moves datagrams between a UDP socket and an endpoint.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::Alarm;
use airtcp_types::Instant;
use tracing::{debug, error};

use super::datagrams::{DatagramSocket, Inbox, Outbox};
use super::shared::{Core, End, Shared};

/// Runs until the endpoint is shut down, the socket is gone, or nobody has a handle and the last connection has ended.
#[derive(Debug)]
pub(super) struct Driver<S> {
    shared: Arc<Shared>,
    socket: Arc<S>,
    alarm: Alarm,
    inbox: Inbox,
    outbox: Outbox,
    arrived: Instant,
}

/// Ends the connections also when the task is dropped, so that nobody waits for ever.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(End::Dropped);
    }
}

/// What follows a turn.
enum Next {
    /// Another one: there is more to take or to send.
    Turn,
    /// Nothing, until something happens or this time has come.
    Wait(Option<Instant>),
    /// Nothing.
    End,
}

impl<S: DatagramSocket> Driver<S> {
    pub(super) fn new(shared: Arc<Shared>, socket: Arc<S>, alarm: Alarm) -> Self {
        let (inbox, outbox) = (Inbox::new(), Outbox::default());
        Self { shared, socket, alarm, inbox, outbox, arrived: Instant::ZERO }
    }

    pub(super) async fn run(mut self) {
        let _ending = Ending(self.shared.clone());
        let Err(end) = self.drive().await;
        match &end {
            End::Socket(why) => error!(why, "the UDP socket is gone; so are its connections"),
            End::Shutdown | End::Dropped => debug!("the RRTP socket has ended"),
        }
        let Self { shared, socket, .. } = self;
        // The socket goes before anyone hears of the end.
        drop(socket);
        shared.end(end);
    }

    async fn drive(&mut self) -> Result<Infallible, End> {
        loop {
            match self.turn()? {
                Next::End => return Err(End::Shutdown),
                // Who was woken reads, before there is more to read.
                Next::Turn => tokio::task::yield_now().await,
                Next::Wait(at) => self.wait(at).await.map_err(|error| gone(&error))?,
            }
        }
    }

    async fn wait(&mut self, at: Option<Instant>) -> io::Result<()> {
        tokio::task::coop::consume_budget().await;
        self.alarm.set(at)?;
        tokio::select! {
            // In this order: a turn sees to all of them, whatever it was begun for.
            biased;
            ready = self.socket.readable() => ready,
            ready = self.socket.writable(), if !self.outbox.is_empty() => ready,
            () = self.shared.driver.notified() => Ok(()),
            rang = self.alarm.ring() => rang,
        }
    }

    /// One batch: what came goes in, what is due is worked, what is to leave comes out.
    fn turn(&mut self) -> Result<Next, End> {
        self.inbox.clear();
        match self.socket.try_recv_batch(&mut self.inbox) {
            Err(error) if !is_passing(&error) => return Err(gone(&error)),
            _ => {}
        }
        let now = self.shared.now();
        let Self { shared, inbox, outbox, arrived, .. } = self;
        let next = shared.turn(|core, clock| {
            for (from, datagram, age) in inbox.iter() {
                // The kernel's stamps are of the wall clock, which may be set.
                *arrived = (*arrived).max(now - age);
                core.endpoint.handle_datagram(*arrived, from, datagram);
            }
            core.endpoint.handle_timeout(clock.now());
            let transmit = |core: &mut Core, outbox: &mut Outbox| {
                // The time that a packet carries is measured against: each has its own.
                let mut next = |out: &mut _| core.endpoint.poll_transmit(clock.now(), out);
                while !outbox.is_full() && outbox.add(&mut next) {}
            };
            if outbox.is_empty() {
                transmit(core, outbox);
                if outbox.is_full() {
                    return Next::Turn;
                }
            }
            if inbox.is_full() {
                return Next::Turn;
            }
            if core.closing.is_some_and(|at| at <= now) {
                core.endpoint.abort_all(clock.now());
                transmit(core, outbox);
                return Next::End;
            }
            let is_over = core.closing.is_some() && core.endpoint.is_quiet();
            let is_alone = core.abandoned && core.endpoint.connections() == 0;
            if is_over || is_alone { Next::End } else { Next::Wait(core.arm()) }
        });
        let refused = self.outbox.send(&*self.socket);
        if refused > 0 {
            self.shared.with(|core, _| core.refused += refused);
        }
        match next {
            // What is due cannot leave, and stays due: once in a millisecond will do.
            Next::Wait(Some(at)) if !self.outbox.is_empty() => {
                Ok(Next::Wait(Some(at.max(now + Duration::from_millis(1)))))
            }
            next => Ok(next),
        }
    }
}

/// An error of one datagram, not of the socket.
fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused | ConnectionReset)
}

fn gone(error: &io::Error) -> End {
    End::Socket(error.to_string())
}
