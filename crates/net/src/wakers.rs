//! Wakers of tasks that wait for sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use smallvec::SmallVec;
use tokio::sync::Notify;

/// The direction that a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Who waits for which socket. A socket is here while a handle of it exists, with `T`, what its
/// owner has to know of it.
#[derive(Debug)]
pub(crate) struct Wakers<Id, T> {
    sockets: BTreeMap<Id, Waiting<T>>,
    woken: Woken,
}

/// Who waits for one socket.
#[derive(Debug)]
struct Waiting<T> {
    about: T,
    /// Of the tasks that poll, the last one in each direction.
    read: Option<Waker>,
    write: Option<Waker>,
    /// For any number of tasks that wait for a change of readiness, once one has asked.
    watchers: Option<Arc<Notify>>,
}

/// Whom to wake once the lock is free: a waker may run anything, and so may its drop.
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

    /// Adds a socket that is watched from the start.
    pub(crate) fn add_watched(&mut self, id: Id, about: T) -> Arc<Notify> {
        let watchers = Arc::new(Notify::new());
        let (read, write) = (None, None);
        self.sockets.insert(id, Waiting { about, read, write, watchers: Some(watchers.clone()) });
        watchers
    }

    /// Removes a socket, and forgets who waits for it.
    pub(crate) fn remove(&mut self, id: Id) {
        if let Some(Waiting { read, write, .. }) = self.sockets.remove(&id) {
            self.woken.discarded.extend(read.into_iter().chain(write));
        }
    }

    /// Every socket, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.sockets.iter().map(|(&id, waiting)| (id, &waiting.about))
    }

    /// What is known of a socket.
    #[cfg(feature = "rrtp")]
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        self.sockets.get_mut(&id).map(|waiting| &mut waiting.about)
    }

    /// Registers a task for one direction, in place of the one before; `false` if the socket is
    /// gone.
    pub(crate) fn wait(&mut self, id: Id, direction: Direction, context: &Context<'_>) -> bool {
        let Some(Waiting { read, write, .. }) = self.sockets.get_mut(&id) else { return false };
        let slot = if direction == Direction::Read { read } else { write };
        match slot {
            Some(waker) if waker.will_wake(context.waker()) => {}
            _ => self.woken.discarded.extend(slot.replace(context.waker().clone())),
        }
        true
    }

    /// What notifies any number of tasks of a change of a socket; `None` if the socket is gone.
    pub(crate) fn watchers(&mut self, id: Id) -> Option<Arc<Notify>> {
        let waiting = self.sockets.get_mut(&id)?;
        Some(waiting.watchers.get_or_insert_default().clone())
    }

    /// Wakes who waits for these directions of a socket, and those who watch it.
    pub(crate) fn wake(&mut self, id: Id, readable: bool, writable: bool) {
        let Some(Waiting { read, write, watchers, .. }) = self.sockets.get_mut(&id) else { return };
        let woken = read.take_if(|_| readable).into_iter().chain(write.take_if(|_| writable));
        self.woken.wakers.extend(woken);
        self.woken.notifies.extend(watchers.clone());
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&mut self) {
        for Waiting { read, write, watchers, .. } in self.sockets.values_mut() {
            self.woken.wakers.extend(read.take().into_iter().chain(write.take()));
            self.woken.notifies.extend(watchers.clone());
        }
    }

    /// Notifies those who wait for something that is no socket.
    pub(crate) fn notify(&mut self, notify: Arc<Notify>) {
        self.woken.notifies.push(notify);
    }

    /// Whether somebody is to be woken.
    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.wakers.is_empty() || !self.woken.notifies.is_empty()
    }

    /// Takes those to wake, which the caller does once the lock is free.
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
