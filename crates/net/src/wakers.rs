//! Wakers of the tasks that wait for sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use smallvec::SmallVec;
use tokio::sync::Notify;

/// The direction of a stream that a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The waiting tasks of each socket. A socket is listed while a handle of it exists, with data `T`
/// of its owner.
#[derive(Debug)]
pub(crate) struct Wakers<Id, T> {
    sockets: BTreeMap<Id, Waiting<T>>,
    woken: Woken,
}

/// The waiting tasks of one socket.
#[derive(Debug)]
struct Waiting<T> {
    about: T,
    /// The wakers of the last polling task in each direction.
    read: Option<Waker>,
    write: Option<Waker>,
    /// Notifies any number of tasks of a change of readiness; created on the first request.
    watchers: Option<Arc<Notify>>,
}

/// The tasks to wake once the lock is released, and wakers to drop then: waking a waker or dropping
/// it may run arbitrary code.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    wakers: SmallVec<[Waker; 2]>,
    notifies: Vec<Arc<Notify>>,
    discarded: Vec<Waker>,
}

impl Woken {
    pub(crate) fn wake(self) {
        self.wakers.into_iter().for_each(Waker::wake);
        self.notifies.iter().for_each(|notify| notify.notify_waiters());
    }
}

impl<Id, T> Default for Wakers<Id, T> {
    fn default() -> Self {
        Self { sockets: BTreeMap::new(), woken: Woken::default() }
    }
}

impl<Id: Copy + Ord, T> Wakers<Id, T> {
    /// Adds a socket.
    pub(crate) fn add(&mut self, id: Id, about: T) {
        let waiting = Waiting { about, read: None, write: None, watchers: None };
        self.sockets.insert(id, waiting);
    }

    /// Adds a socket with its [`Notify`] for watchers, which it returns.
    pub(crate) fn add_watched(&mut self, id: Id, about: T) -> Arc<Notify> {
        let watchers = Arc::new(Notify::new());
        let (read, write) = (None, None);
        self.sockets.insert(id, Waiting { about, read, write, watchers: Some(watchers.clone()) });
        watchers
    }

    /// Removes a socket and the wakers of its waiting tasks.
    pub(crate) fn remove(&mut self, id: Id) {
        if let Some(Waiting { read, write, .. }) = self.sockets.remove(&id) {
            self.woken.discarded.extend(read.into_iter().chain(write));
        }
    }

    /// Returns every socket in the order of the ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.sockets.iter().map(|(&id, waiting)| (id, &waiting.about))
    }

    /// Returns the owner's data of a socket.
    #[cfg(feature = "rrtp")]
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        self.sockets.get_mut(&id).map(|waiting| &mut waiting.about)
    }

    /// Registers a task for one direction in place of the previous one; `false` if the socket was
    /// removed.
    pub(crate) fn wait(&mut self, id: Id, direction: Direction, context: &Context<'_>) -> bool {
        let Some(Waiting { read, write, .. }) = self.sockets.get_mut(&id) else { return false };
        let slot = if direction == Direction::Read { read } else { write };
        match slot {
            Some(waker) if waker.will_wake(context.waker()) => {}
            _ => self.woken.discarded.extend(slot.replace(context.waker().clone())),
        }
        true
    }

    /// Returns the [`Notify`] that signals changes of a socket; `None` if the socket was removed.
    pub(crate) fn watchers(&mut self, id: Id) -> Option<Arc<Notify>> {
        let waiting = self.sockets.get_mut(&id)?;
        Some(waiting.watchers.get_or_insert_default().clone())
    }

    /// Wakes the tasks that poll for these directions of a socket, and all its watchers.
    pub(crate) fn wake(&mut self, id: Id, readable: bool, writable: bool) {
        let Some(Waiting { read, write, watchers, .. }) = self.sockets.get_mut(&id) else { return };
        let woken = read.take_if(|_| readable).into_iter().chain(write.take_if(|_| writable));
        self.woken.wakers.extend(woken);
        self.woken.notifies.extend(watchers.clone());
    }

    /// Wakes every waiting task.
    pub(crate) fn wake_all(&mut self) {
        for Waiting { read, write, watchers, .. } in self.sockets.values_mut() {
            self.woken.wakers.extend(read.take().into_iter().chain(write.take()));
            self.woken.notifies.extend(watchers.clone());
        }
    }

    /// Notifies tasks that wait for something other than a socket.
    pub(crate) fn notify(&mut self, notify: Arc<Notify>) {
        self.woken.notifies.push(notify);
    }

    /// Whether a task will be woken by [`take_woken`](Self::take_woken).
    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.wakers.is_empty() || !self.woken.notifies.is_empty()
    }

    /// Takes the tasks to wake. The caller wakes them after it has released the lock.
    pub(crate) fn take_woken(&mut self) -> Woken {
        std::mem::take(&mut self.woken)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_is_woken_once_and_only_for_its_direction() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let context = Context::from_waker(&waker);
        let mut wakers = Wakers::<u8, ()>::default();
        wakers.add(1, ());
        assert!(wakers.wait(1, Direction::Read, &context));
        assert!(!wakers.wait(2, Direction::Read, &context), "no such socket");

        wakers.wake(1, false, true);
        assert!(!wakers.has_woken());
        wakers.wake(1, true, false);
        assert!(wakers.has_woken());
        assert_eq!(count.0.load(Ordering::Relaxed), 0, "not before the lock is free");
        wakers.take_woken().wake();
        wakers.wake(1, true, true);
        wakers.take_woken().wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);

        assert!(wakers.wait(1, Direction::Write, &context));
        wakers.remove(1);
        wakers.wake_all();
        wakers.take_woken().wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "the socket is gone");
    }
}
