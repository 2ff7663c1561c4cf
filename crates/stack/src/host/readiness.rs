//! The queue of sockets whose readiness has changed.

use std::collections::BTreeMap;

use super::SocketId;
use crate::tcp::Readiness;

/// Sockets whose readiness changed, each once, in the order of insertion.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    sockets: BTreeMap<u64, SocketId>,
    /// The number of insertions so far.
    count: u64,
}

/// The readiness of a socket that its holder knows of.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The readiness when the socket was last queued, or that a later call has shown its holder.
    readiness: Readiness,
    /// Its key in the queue, if it is queued.
    place: Option<u64>,
}

impl Known {
    /// Records the writability that a write call has just shown its holder: if the socket was not
    /// writable, a later change is reported.
    pub(super) const fn on_write(&mut self, writable: bool) {
        self.readiness.writable &= writable;
    }

    /// Records the readability that a read call has just shown its holder.
    pub(super) const fn on_read(&mut self, readable: bool) {
        self.readiness.readable &= readable;
    }

    /// Forgets the known readiness: the socket has a new holder.
    pub(super) fn forget(&mut self) {
        self.readiness = Readiness::default();
    }

    /// Records that the socket was taken from the queue.
    pub(super) const fn on_taken(&mut self) {
        self.place = None;
    }
}

impl ReadyQueue {
    /// Queues a socket if its readiness differs from the readiness that its holder knows of.
    pub(super) fn update(&mut self, id: SocketId, known: &mut Known, readiness: Readiness) {
        if readiness == known.readiness {
            return;
        }
        known.readiness = readiness;
        if known.place.is_none() {
            self.count += 1;
            known.place = Some(self.count);
            self.sockets.insert(self.count, id);
        }
    }

    /// Takes the socket that was queued first.
    pub(super) fn pop(&mut self) -> Option<SocketId> {
        self.sockets.pop_first().map(|(_, id)| id)
    }

    /// Removes a socket that its holder closes.
    pub(super) fn remove(&mut self, known: &mut Known) {
        if let Some(place) = known.place.take() {
            self.sockets.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::Slab;
    use super::*;

    const READABLE: Readiness = Readiness { readable: true, ..NONE };
    const NONE: Readiness =
        Readiness { connected: false, readable: false, writable: false, closed: false };

    #[test]
    fn a_socket_is_in_once_and_only_with_news() {
        let mut slab = Slab::new();
        let ids = [slab.insert(()), slab.insert(())];
        let (mut queue, mut known) = (ReadyQueue::default(), [Known::default(), Known::default()]);
        queue.update(ids[0], &mut known[0], NONE);
        assert_eq!(queue.pop(), None);
        for id in [1, 0, 1] {
            queue.update(ids[id], &mut known[id], READABLE);
        }
        assert_eq!(queue.pop(), Some(ids[1]));
        known[1].on_taken();
        queue.update(ids[1], &mut known[1], READABLE);
        assert_eq!((queue.pop(), queue.pop()), (Some(ids[0]), None));
        // After a read that emptied the socket, new data is reported.
        known[1].on_read(false);
        queue.update(ids[1], &mut known[1], READABLE);
        queue.remove(&mut known[1]);
        assert_eq!(queue.pop(), None);
        known[1].forget();
        queue.update(ids[1], &mut known[1], READABLE);
        assert_eq!(queue.pop(), Some(ids[1]));
    }
}
