//! State shared by a driver and the sockets: a state machine behind a lock, and wake-ups.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_device::Clock;
use airtcp_types::Instant;
use tokio::sync::Notify;

use crate::wakers::Woken;

/// What the lock guards: a state machine and who waits for its sockets.
pub(crate) trait Core: Send + 'static {
    /// What it is called in an error.
    const NAME: &'static str;
    /// What it runs on, likewise.
    const BELOW: &'static str;

    /// Follows up a call from a socket; whether the driver is to be asked for a turn.
    fn settle_call(&mut self, now: Instant) -> bool;

    /// The last handle is gone.
    fn abandon(&mut self, now: Instant);

    /// The driver has ended: everybody is to be woken. The first reason stays.
    fn end(&mut self, end: End);

    /// Takes those to wake.
    fn take_woken(&mut self) -> Woken;
}

/// Why there is no driver any more.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// A shutdown was requested, or every handle was dropped.
    Shutdown,
    /// The device or the UDP socket failed for good.
    Gone(String),
    /// The runtime ended first.
    Dropped,
}

impl End {
    /// The error that the sockets of a `C` give from here on.
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

/// The state behind every handle.
pub(crate) struct Shared<C> {
    clock: Clock,
    core: Mutex<C>,
    /// Asks the driver for a turn.
    pub(crate) driver: Notify,
    /// Notified once, when the driver has ended.
    pub(crate) done: Notify,
}

/// Without the core: its secrets are no one's to print.
impl<C> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl<C: Core> Shared<C> {
    pub(crate) fn new(core: C, clock: Clock) -> Self {
        Self { clock, core: Mutex::new(core), driver: Notify::new(), done: Notify::new() }
    }

    /// The clock that `now` is read from.
    #[cfg(feature = "rrtp")]
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Makes a call, wakes those whom it made ready, and asks the driver for a turn if it needs
    /// one.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut C, Instant) -> R) -> R {
        let (result, woken, kick) = {
            let mut core = self.lock();
            // Read under the lock, so that the core's time never runs backwards.
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

    /// The driver's part of a turn: as [`with`](Self::with), without asking for another one.
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

    /// Looks without changing anything.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&C, Instant) -> R) -> R {
        let core = self.lock();
        let now = self.clock.now();
        look(&core, now)
    }

    /// Records that the driver has ended, and wakes everybody.
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
        // A panic under the lock is a bug of ours that has been reported; other sockets go on.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task of a driver. When it is dropped, even before its first poll, everything ends, so that
/// no socket waits for ever.
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

/// What every socket holds; the drop of the last one abandons the core.
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
