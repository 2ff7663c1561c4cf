//! State shared by a driver and its sockets: a state machine behind a lock, and wake-ups.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_device::Clock;
use airtcp_types::Instant;
use tokio::sync::Notify;

use crate::wakers::Woken;

/// The state behind the lock: a state machine and the tasks that wait for its sockets.
pub(crate) trait Core: Send + 'static {
    /// The name of the socket provider in error messages, such as "the stack".
    const NAME: &'static str;
    /// The name of the device or socket below it in error messages.
    const BELOW: &'static str;

    /// Settles the effects of a socket call; returns whether the driver must be woken for a turn.
    fn settle_call(&mut self, now: Instant) -> bool;

    /// Starts closing: the last handle was dropped.
    fn abandon(&mut self, now: Instant);

    /// Records the end of the driver and wakes every waiting task. The first recorded reason is
    /// kept.
    fn end(&mut self, end: End);

    /// Takes the tasks to wake.
    fn take_woken(&mut self) -> Woken;
}

/// The reason why the driver ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// A shutdown was requested, or every handle was dropped.
    Shutdown,
    /// The device or the UDP socket failed permanently.
    Gone(String),
    /// The runtime was dropped first.
    Dropped,
}

impl End {
    /// Returns the error that the sockets of a `C` report after the driver has ended.
    pub(crate) fn error<C: Core>(&self) -> io::Error {
        let name = C::NAME;
        match self {
            Self::Shutdown => {
                io::Error::new(ErrorKind::NotConnected, format!("{name} was shut down"))
            }
            Self::Gone(why) => {
                io::Error::new(ErrorKind::NetworkDown, format!("{} is gone: {why}", C::BELOW))
            }
            Self::Dropped => io::Error::new(
                ErrorKind::NotConnected,
                format!("the runtime that drove {name} has ended"),
            ),
        }
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Gone(error.to_string())
    }
}

/// The state that every handle refers to.
pub(crate) struct Shared<C> {
    clock: Clock,
    core: Mutex<C>,
    /// Wakes the driver for a turn.
    pub(crate) driver: Notify,
    /// Notified once, when the driver has ended.
    pub(crate) done: Notify,
}

/// Omits the core, which holds secrets.
impl<C> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl<C: Core> Shared<C> {
    pub(crate) fn new(core: C, clock: Clock) -> Self {
        Self { clock, core: Mutex::new(core), driver: Notify::new(), done: Notify::new() }
    }

    /// The clock that supplies `now`.
    #[cfg(feature = "rrtp")]
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Runs `call` under the lock, then wakes the tasks that it made ready, and the driver if it
    /// has work.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut C, Instant) -> R) -> R {
        let (result, woken, kick) = {
            let mut core = self.lock();
            // Read under the lock, so that the core never sees time go backwards.
            let now = self.clock.now();
            let result = call(&mut core, now);
            let kick = core.settle_call(now);
            (result, core.take_woken(), kick)
        };
        if kick {
            self.driver.notify_one();
        }
        woken.wake();
        result
    }

    /// Like [`with`](Self::with), for the driver itself: does not wake the driver.
    pub(crate) fn turn<R>(&self, call: impl FnOnce(&mut C, Instant) -> R) -> R {
        let (result, woken) = {
            let mut core = self.lock();
            let now = self.clock.now();
            let result = call(&mut core, now);
            (result, core.take_woken())
        };
        woken.wake();
        result
    }

    /// Runs `look` under the lock with read-only access.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&C, Instant) -> R) -> R {
        let core = self.lock();
        let now = self.clock.now();
        look(&core, now)
    }

    /// Records that the driver has ended, and wakes every waiting task.
    pub(crate) fn end(&self, end: End) {
        let woken = {
            let mut core = self.lock();
            core.end(end);
            core.take_woken()
        };
        woken.wake();
        self.done.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, C> {
        // A panic under the lock is a bug that has already been reported; the other sockets
        // continue.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wraps the future of a driver. When the task is dropped, even before its first poll, the core
/// ends, so that no socket waits forever.
pub(crate) fn task<C: Core>(
    shared: Arc<Shared<C>>,
    driver: impl Future<Output = ()> + Send,
) -> impl Future<Output = ()> + Send {
    let ending = Ending(shared);
    async move {
        let _ending = ending;
        driver.await;
    }
}

struct Ending<C: Core>(Arc<Shared<C>>);

impl<C: Core> Drop for Ending<C> {
    fn drop(&mut self) {
        self.0.end(End::Dropped);
    }
}

/// The handle in every socket. Dropping the last clone abandons the core.
pub(crate) struct Handle<C: Core>(Arc<Users<C>>);

struct Users<C: Core>(Arc<Shared<C>>);

impl<C: Core> Handle<C> {
    pub(crate) fn new(shared: Arc<Shared<C>>) -> Self {
        Self(Arc::new(Users(shared)))
    }

    pub(crate) fn shared(&self) -> &Shared<C> {
        &self.0.0
    }
}

impl<C: Core> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Core> fmt::Debug for Handle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").finish_non_exhaustive()
    }
}

impl<C: Core> Drop for Users<C> {
    fn drop(&mut self) {
        self.0.with(|core, now| core.abandon(now));
        self.0.driver.notify_one();
    }
}
