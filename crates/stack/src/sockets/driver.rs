//! The task that moves packets between a device and a host.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Alarm, Device};
use airtcp_types::{Instant, Node, Packet};
use tracing::{debug, error, trace};

use super::shared::{BATCH, Core, End, Shared};
use super::siblings::Sibling;
use crate::host::Astray;

/// Owns the device, and drives the host behind [`Shared`] until one of them ends.
#[derive(Debug)]
pub(super) struct Driver<D> {
    shared: Arc<Shared>,
    device: D,
    alarm: Alarm,
    inbox: Vec<Packet>,
    /// What the device is to send, at most [`BATCH`]; more waits in the host.
    outbox: VecDeque<Packet>,
    /// Packets that have left, whose memory the host uses again.
    spent: Vec<Packet>,
    /// Its place among the stacks of a device with several queues.
    sibling: Option<Sibling>,
    /// Packets from the sibling before, and then those for the next one.
    astray: Vec<Astray>,
}

/// What follows a turn.
enum Next {
    /// Another one: the host has more to send, and the device takes it.
    Turn,
    /// Nothing, until something happens or this time has come.
    Wait(Option<Instant>),
}

/// What came of a turn.
struct Outcome {
    next: Next,
    /// A task was woken.
    woke: bool,
    /// As many packets arrived as are taken at a time: there may be more.
    is_full: bool,
}

/// What a turn found under the lock.
struct Turn {
    /// Packets that arrived.
    arrived: usize,
    closing: Closing,
    /// There is more to send than was taken.
    more: bool,
    armed: Option<Instant>,
}

/// Ends the stack also when the task is dropped, so that no socket waits for it for ever.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(End::Dropped);
    }
}

impl<D: Device> Driver<D> {
    pub(super) fn new(
        shared: Arc<Shared>,
        device: D,
        alarm: Alarm,
        sibling: Option<Sibling>,
    ) -> Self {
        let (inbox, outbox, spent, astray) = Default::default();
        Self { shared, device, alarm, inbox, outbox, spent, sibling, astray }
    }

    pub(super) async fn run(mut self) {
        let _ending = Ending(self.shared.clone());
        let Err(end) = self.drive().await;
        match &end {
            // The other end of a pair in memory may well go first.
            End::Device(why) if self.shared.is_closing() => {
                debug!(device = self.device.name(), why, "the device is gone; so is the stack");
            }
            // The first one says it for all of them.
            End::Device(why) if self.sibling.as_ref().is_some_and(|one| one.share().index > 0) => {
                debug!(device = self.device.name(), why, "a queue is gone; its stack ends");
            }
            End::Device(why) => {
                error!(device = self.device.name(), why, "the device is gone; the stack ends");
            }
            End::Shutdown | End::Dropped => {
                debug!(device = self.device.name(), "the stack has ended");
            }
        }
        let Self { shared, device, sibling, .. } = self;
        if let (Some(sibling), End::Shutdown) = (sibling, &end) {
            sibling.leave(shared.time_to_close()).await;
        }
        // The device goes before anyone hears of the end: its interface is gone when `shutdown` is.
        drop(device);
        shared.end(end);
    }

    async fn drive(&mut self) -> Result<Infallible, End> {
        loop {
            let Outcome { next, woke, is_full } = self.turn()?;
            if woke && (is_full || matches!(next, Next::Turn)) {
                // Who was woken works while the bytes are in the cache, and reads before the buffer
                // grows: without this a device that is always ready keeps a runtime of one thread
                // to itself for thousands of packets. While this task waits, they work anyway.
                tokio::task::yield_now().await;
            } else {
                tokio::task::coop::consume_budget().await;
            }
            let Next::Wait(deadline) = next else { continue };
            self.alarm.set(deadline).map_err(|error| gone(&error))?;
            tokio::select! {
                // In this order: a turn sees to all of them, whatever it was begun for.
                biased;
                ready = self.device.readable() => ready.map_err(|error| gone(&error))?,
                // Waited for only while the last `try_send` left something over.
                ready = self.device.writable(), if !self.outbox.is_empty() => {
                    ready.map_err(|error| gone(&error))?;
                }
                () = self.shared.driver.notified() => {}
                rang = self.alarm.ring() => rang.map_err(|error| gone(&error))?,
                astray = next_astray(self.sibling.as_mut()) => self.astray.push(astray),
            }
        }
    }

    /// One batch: what arrived goes in, what is due is worked, what is to leave comes out.
    fn turn(&mut self) -> Result<Outcome, End> {
        let received = self.device.try_recv(&mut self.inbox, BATCH);
        let Self { shared, device, inbox, outbox, spent, sibling, astray, .. } = self;
        device.reclaim(spent);
        if let Some(sibling) = sibling {
            sibling.try_recv(astray, BATCH);
        }
        let counters = device.counters();
        let (turn, woke) = shared.turn(|core, now| {
            core.device = counters;
            core.host.recycle(spent);
            let arrived = inbox.len();
            core.arrive(now, inbox);
            core.exchange(now, astray);
            if core.host.poll_timeout().is_some_and(|deadline| deadline <= now) {
                core.host.handle_timeout(now);
            }
            core.settle(now);
            take_outbox(core, outbox);
            let closing = closing(core, now, outbox);
            core.armed = next_wake(core, now);
            Turn { arrived, closing, more: core.more || !core.outbox.is_empty(), armed: core.armed }
        });
        device.recycle(inbox);
        let lost = sibling.as_ref().map_or(0, |sibling| sibling.send(astray.drain(..)));
        if lost > 0 {
            shared.with(|core, _| core.host.on_astray_lost(lost));
        }
        let leaving = outbox.len();
        let sent = device.try_send(outbox);
        if turn.arrived > 0 || leaving > 0 {
            trace!(arrived = turn.arrived, sent, left = leaving - sent, "batch");
        }
        received.map_err(|error| gone(&error))?;
        match turn.closing {
            Closing::Now => return Err(End::Shutdown),
            Closing::OnceSent if outbox.is_empty() => return Err(End::Shutdown),
            Closing::OnceSent | Closing::No => {}
        }
        // If the device is full, it decides when there is more to do.
        let again = turn.more && outbox.is_empty();
        let next = if again { Next::Turn } else { Next::Wait(turn.armed) };
        Ok(Outcome { next, woke, is_full: turn.arrived == BATCH })
    }
}

/// What the sibling before hands on; never anything, where there is none.
async fn next_astray(sibling: Option<&mut Sibling>) -> Astray {
    match sibling {
        Some(sibling) => sibling.recv().await,
        None => std::future::pending().await,
    }
}

/// Takes what the host gave, if the device has taken what it was given before.
fn take_outbox(core: &mut Core, outbox: &mut VecDeque<Packet>) {
    core.stalled = !outbox.is_empty();
    if !core.stalled {
        core.empty_outbox(outbox);
    }
}

/// When the driver is to wake if nothing else wakes it.
fn next_wake(core: &Core, now: Instant) -> Option<Instant> {
    let deadline = core.host.poll_timeout().into_iter().chain(core.closing).min();
    if core.stalled {
        // What is due cannot leave, and stays due: once in a millisecond will do.
        return deadline.map(|deadline| deadline.max(now + Duration::from_millis(1)));
    }
    // A deadline that moves away, or goes with its connection, is met early, which costs less than
    // moving the timer with every ACK and every connection.
    core.armed.into_iter().filter(|&armed| armed > now).chain(deadline).min()
}

/// Whether a turn is the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Closing {
    No,
    /// Yes, if the device takes all that is left.
    OnceSent,
    /// Yes: the time is over.
    Now,
}

fn closing(core: &mut Core, now: Instant, outbox: &mut VecDeque<Packet>) -> Closing {
    let Some(deadline) = core.closing else { return Closing::No };
    let quiet = core.is_quiet();
    if !quiet && now < deadline {
        return Closing::No;
    }
    debug!(in_order = quiet, "letting go of all connections");
    core.finish(now, quiet);
    core.empty_outbox(outbox);
    if now < deadline { Closing::OnceSent } else { Closing::Now }
}

fn gone(error: &io::Error) -> End {
    End::Device(error.to_string())
}
