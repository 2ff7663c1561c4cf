//! The task that moves packets between a device and a host.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use airtcp_device::{Alarm, Device};
use airtcp_stack::host::Astray;
use airtcp_types::{Instant, Node, Packet};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tracing::{debug, trace};

use super::core::{BATCH, Core};
use super::siblings::Sibling;
use crate::shared::{self, End, Shared};
use crate::task::{self, Next, Work};

/// How often the driver yields before it transmits: once for the task that accepts a connection,
/// once for the task that it spawns.
const ROUNDS: u32 = 2;

/// Owns the device, and drives the host behind [`Shared`] until the device or the stack ends.
#[derive(Debug)]
pub(super) struct Driver<D> {
    shared: Arc<Shared<Core>>,
    device: D,
    inbox: Vec<Packet>,
    /// Packets for the device, at most [`BATCH`]; further ones wait in the host.
    outbox: VecDeque<Packet>,
    /// Sent packets, whose memory the host reuses.
    spent: Vec<Packet>,
    /// The stack's position among the stacks of a device with several queues.
    sibling: Option<Sibling>,
    /// Notified after each turn.
    drained: Arc<Notify>,
    /// Packets from the previous sibling; then those for the next one.
    astray: Vec<Astray>,
    /// The runtime has one thread: tasks that a turn makes ready run only while this task waits.
    is_alone: bool,
}

/// The result of taking packets from the host.
struct Taken {
    closing: Closing,
    /// The host has more to send.
    more: bool,
    armed: Option<Instant>,
    /// A task was woken and has not run since.
    woke: bool,
}

impl<D: Device> Driver<D> {
    pub(super) fn new(
        shared: Arc<Shared<Core>>,
        device: D,
        sibling: Option<Sibling>,
        runtime: &Handle,
    ) -> Self {
        let (inbox, outbox, spent, astray) = Default::default();
        let is_alone = runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
        let drained = shared.look(|core, _| core.drained.clone());
        Self { shared, device, inbox, outbox, spent, sibling, drained, astray, is_alone }
    }

    pub(super) fn run(self, alarm: Alarm) -> impl Future<Output = ()> + Send {
        shared::task(self.shared.clone(), self.run_to_end(alarm))
    }

    async fn run_to_end(mut self, mut alarm: Alarm) {
        let Err(end) = task::run(&mut self, &mut alarm).await;
        match &end {
            // Every socket and `closed` return this error; the code that handles it reports it.
            End::Gone(why) => {
                debug!(device = self.device.name(), why, "stack ended: device gone");
            }
            End::Shutdown | End::Dropped => {
                debug!(device = self.device.name(), "stack ended");
            }
        }
        let Self { shared, device, sibling, .. } = self;
        if let (Some(sibling), End::Shutdown) = (sibling, &end) {
            sibling.leave(shared.look(|core, now| core.time_to_close(now))).await;
        }
        // The device is dropped first, so that its interface no longer exists when `shutdown`
        // returns.
        drop(device);
        shared.end(end);
    }

    /// Does the first half of a turn, and usually the second half at once. Returns `None` if the
    /// second half should wait until the tasks that were made ready have run, so that an ACK can
    /// leave with the response. It does not wait if those tasks run in parallel, if a timer was
    /// due, or if the host has much to send.
    fn take_in(&mut self) -> Option<Taken> {
        let Self { shared, device, inbox, outbox, spent, sibling, astray, is_alone, .. } = self;
        device.reclaim(spent);
        if let Some(sibling) = sibling {
            sibling.try_recv(astray, BATCH);
        }
        let counters = device.counters();
        let taken = shared.turn(|core, now| {
            core.device = counters;
            core.host.recycle(spent);
            core.arrive(now, inbox);
            core.exchange(now, astray);
            let is_due = core.host.poll_timeout().is_some_and(|deadline| deadline <= now);
            if is_due {
                core.host.handle_timeout(now);
            }
            core.settle(now);
            let may_wait = *is_alone && !is_due;
            core.kicked = may_wait && core.has_woken() && core.host.has_little_to_send();
            (!core.kicked).then(|| take_out(core, now, outbox))
        });
        device.recycle(inbox);
        let lost = sibling.as_ref().map_or(0, |sibling| sibling.send(astray.drain(..)));
        if lost > 0 {
            shared.with(|core, _| core.host.on_astray_lost(lost));
        }
        taken
    }
}

impl<D: Device> Work for Driver<D> {
    type End = End;

    /// Tasks that a batch made ready may run before packets are taken from the host.
    async fn turn(&mut self) -> Result<Next, End> {
        let received = self.device.try_recv(&mut self.inbox, BATCH);
        let arrived = self.inbox.len();
        let taken = match self.take_in() {
            Some(taken) => taken,
            None => {
                after_others().await;
                self.shared.turn(|core, now| take_out(core, now, &mut self.outbox))
            }
        };
        self.drained.notify_waiters();
        let leaving = self.outbox.len();
        let sent = self.device.try_send(&mut self.outbox);
        if arrived > 0 || leaving > 0 {
            trace!(arrived, sent, left = leaving - sent, "batch");
        }
        received?;
        match taken.closing {
            Closing::Now => return Err(End::Shutdown),
            Closing::OnceSent if self.outbox.is_empty() => return Err(End::Shutdown),
            Closing::OnceSent | Closing::No => {}
        }
        // If the device is full, its readiness decides when the driver continues.
        let again = taken.more && self.outbox.is_empty();
        if taken.woke && (again || arrived == BATCH) {
            // Woken tasks run while the data is in the cache, and read before the receive buffer
            // grows. Without this, a device that is always ready would occupy a single-threaded
            // runtime for thousands of packets. If this task waits, they run anyway.
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
        Ok(if again { Next::Turn } else { Next::Wait(taken.armed) })
    }

    async fn ready(&mut self) -> Result<(), End> {
        tokio::select! {
            biased;
            ready = self.device.readable() => ready?,
            // Needed only while the last `try_send` left packets behind.
            ready = self.device.writable(), if !self.outbox.is_empty() => ready?,
            () = self.shared.driver.notified() => {}
            astray = next_astray(self.sibling.as_mut()) => self.astray.push(astray),
        }
        Ok(())
    }
}

/// The second half of a turn, under the lock: takes packets from the host, if the device has
/// accepted all earlier ones.
fn take_out(core: &mut Core, now: Instant, outbox: &mut VecDeque<Packet>) -> Taken {
    core.kicked = false;
    core.stalled = !outbox.is_empty();
    let more = core.stalled || core.fill(now, outbox);
    core.settle(now);
    let closing = closing(core, now, outbox);
    core.armed = next_wake(core, now);
    Taken { closing, more, armed: core.armed, woke: core.has_woken() }
}

/// Lets the tasks run that are ready now, and those that they make ready, on a single-threaded
/// runtime. `yield_now` would also make the runtime poll the kernel for events before this task
/// continues, which costs a twentieth of a ping-pong. The runtime's root future is not among these
/// tasks, nor are tasks that wait in `yield_now`.
async fn after_others() {
    let mut rounds = 0;
    poll_fn(|context| {
        if rounds == ROUNDS {
            return Poll::Ready(());
        }
        rounds += 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits for a packet from the previous sibling; pending forever if there is no sibling.
async fn next_astray(sibling: Option<&mut Sibling>) -> Astray {
    match sibling {
        Some(sibling) => sibling.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns when the driver must wake without another event.
fn next_wake(core: &Core, now: Instant) -> Option<Instant> {
    let deadline = core.host.poll_timeout().into_iter().chain(core.closing).min();
    if core.stalled {
        // Packets that are due cannot leave and stay due: checking once a millisecond is enough.
        return deadline.map(|deadline| deadline.max(now + Duration::from_millis(1)));
    }
    // A deadline that moves later, or ends with its connection, is kept: an early wake-up costs
    // less than resetting the timer for every ACK and every connection.
    core.armed.into_iter().filter(|&armed| armed > now).chain(deadline).min()
}

/// Whether the current turn is the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Closing {
    No,
    /// Yes, once the device has accepted all remaining packets.
    OnceSent,
    /// Yes, at once: the time for closing is over.
    Now,
}

fn closing(core: &mut Core, now: Instant, outbox: &mut VecDeque<Packet>) -> Closing {
    let Some(deadline) = core.closing else { return Closing::No };
    let quiet = core.is_quiet();
    if !quiet && now < deadline {
        return Closing::No;
    }
    debug!(in_order = quiet, "closing remaining connections");
    core.finish(now, quiet, outbox);
    if now < deadline { Closing::OnceSent } else { Closing::Now }
}
