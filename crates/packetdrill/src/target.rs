//! The stack of a script, which two threads of packetdrill call: one injects packets and waits, the
//! other makes the calls that are expected to block.
//!
//! Time is virtual, so the order of events must be enforced. After each event, all waiting threads
//! check their condition before the next event happens; and a thread that is woken up reads the
//! time with `gettimeofday` before time advances.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use airtcp_types::Instant;
use nix::errno::Errno;

use crate::flags::Flags;
use crate::world::{Sent, World};

/// All targets, by their handles in C.
static TARGETS: Mutex<BTreeMap<usize, Arc<Target>>> = Mutex::new(BTreeMap::new());

/// The maximum time to the stack's next deadline. Beyond it, `receive` reports that no packet will
/// leave.
const GIVE_UP: Duration = Duration::from_secs(600);
/// The real time that a woken-up thread has to read the virtual time.
const PATIENCE: Duration = Duration::from_secs(1);
/// The virtual time that reading the time takes: packetdrill waits for the last part of an interval
/// by polling the time.
const TICK: Duration = Duration::from_micros(1);

/// The stack of a script.
#[derive(Debug)]
pub(crate) struct Target {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    world: World,
    waiting: BTreeMap<u64, Waiting>,
    /// The number of waits so far.
    waited: u64,
    /// The number of events that waiting threads must check.
    happened: u64,
    /// The thread that was woken up and has not read the time yet.
    owed: Option<ThreadId>,
}

/// A waiting thread.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The value of `happened` at its last check.
    seen: u64,
    until: Option<Instant>,
}

type Guard<'a> = MutexGuard<'a, Inner>;

impl Target {
    pub(crate) fn new(flags: Flags) -> Self {
        let inner = Inner {
            world: World::new(flags),
            waiting: BTreeMap::new(),
            waited: 0,
            happened: 0,
            owed: None,
        };
        Self { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    /// Registers a target; returns its handle in C, which is not zero.
    pub(crate) fn register(target: Self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        targets().insert(id, Arc::new(target));
        id
    }

    pub(crate) fn find(id: usize) -> Result<Arc<Self>, Errno> {
        targets().get(&id).cloned().ok_or(Errno::EBADF)
    }

    pub(crate) fn unregister(id: usize) {
        targets().remove(&id);
    }

    /// Returns the target that has the descriptor `fd`.
    #[cfg(all(feature = "preload", not(test)))]
    pub(crate) fn with_descriptor(fd: i32) -> Option<Arc<Self>> {
        if !crate::descriptor::is_ours(fd) {
            return None;
        }
        let all: Vec<_> = targets().values().cloned().collect();
        all.into_iter().find(|target| target.lock().world.sockets.contains_key(&fd))
    }

    /// Makes a call that does not block.
    pub(crate) fn call<T>(
        &self,
        call: impl FnOnce(&mut World) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut inner = self.lock();
        let result = call(&mut inner.world);
        inner.world.settle();
        drop(self.let_others_look(inner));
        result
    }

    /// Repeats an attempt until it returns a result, for at most `limit`; without a limit, forever.
    pub(crate) fn wait<T>(
        &self,
        limit: Option<Duration>,
        mut attempt: impl FnMut(&mut World) -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        let mut inner = self.lock();
        let until = limit.map(|limit| inner.world.now + limit);
        let mut place = None;
        loop {
            let result = attempt(&mut inner.world);
            inner.world.settle();
            let over = until.is_some_and(|until| until <= inner.world.now);
            if over || !matches!(result, Ok(None)) {
                match place {
                    Some(place) => {
                        inner.waiting.remove(&place);
                        inner.owed = Some(thread::current().id());
                        self.changed.notify_all();
                    }
                    None => drop(self.let_others_look(inner)),
                }
                return result;
            }
            if place.is_none() {
                inner.waited += 1;
            }
            let at = *place.get_or_insert(inner.waited);
            let seen = inner.happened;
            inner.waiting.insert(at, Waiting { seen, until });
            self.changed.notify_all();
            let news = |inner: &mut Inner| inner.happened == seen;
            inner = self.changed.wait_while(inner, news).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Advances the time.
    pub(crate) fn sleep(&self, time: Duration) {
        let inner = self.lock();
        let until = inner.world.now + time;
        drop(self.advance(inner, until));
    }

    /// Returns the time. Each call advances it a little, except the first one of a woken-up thread.
    pub(crate) fn time(&self) -> Instant {
        let mut inner = self.lock();
        if inner.owed == Some(thread::current().id()) {
            inner.owed = None;
            self.changed.notify_all();
            return inner.world.now;
        }
        let until = inner.world.now + TICK;
        self.advance(inner, until).world.now
    }

    /// Returns the next packet that was sent, and advances the time until there is one; `None` if
    /// no packet will be sent.
    pub(crate) fn receive(&self) -> Option<Sent> {
        let mut inner = self.lock();
        let patience = inner.world.now + GIVE_UP;
        loop {
            if let Some(sent) = inner.world.pop_sent() {
                return Some(sent);
            }
            let next = inner.next_stop().filter(|next| *next <= patience)?;
            inner = self.advance(inner, next);
        }
    }

    fn advance<'a>(&'a self, mut inner: Guard<'a>, until: Instant) -> Guard<'a> {
        while let Some(next) = inner.next_stop().filter(|next| *next <= until) {
            inner.world.on_time(next);
            inner = self.let_others_look(inner);
        }
        inner.world.on_time(until);
        inner
    }

    /// Announces an event: releases the lock until all waiting threads have checked their
    /// conditions.
    fn let_others_look<'a>(&'a self, mut inner: Guard<'a>) -> Guard<'a> {
        if inner.waiting.is_empty() && inner.owed.is_none() {
            return inner;
        }
        inner.happened += 1;
        self.changed.notify_all();
        let me = thread::current().id();
        let (mut inner, timeout) = self
            .changed
            .wait_timeout_while(inner, PATIENCE, |inner| inner.is_unsettled(me))
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            inner.owed = None;
        }
        inner
    }

    fn lock(&self) -> Guard<'_> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Returns when the next event may happen.
    fn next_stop(&self) -> Option<Instant> {
        let waiting = self.waiting.values().filter_map(|waiting| waiting.until);
        self.world.next_deadline().into_iter().chain(waiting).min()
    }

    /// Whether a thread other than the caller must check its condition or read the time before the
    /// next event.
    fn is_unsettled(&self, me: ThreadId) -> bool {
        self.owed.is_some_and(|owed| owed != me)
            || self.waiting.values().any(|waiting| waiting.seen != self.happened)
    }
}

fn targets() -> MutexGuard<'static, BTreeMap<usize, Arc<Target>>> {
    TARGETS.lock().unwrap_or_else(PoisonError::into_inner)
}
