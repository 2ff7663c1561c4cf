//! Sockets whose readiness has changed.

use std::collections::BTreeMap;

use super::SocketId;
use crate::tcp::Readiness;

/// Sockets whose readiness changed, each once, by when they came in.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    sockets: BTreeMap<u64, SocketId>,
    /// How many times a socket was put in.
    count: u64,
}

/// What the holder of a socket knows of its readiness.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The readiness when the socket was last put in the queue.
    readiness: Readiness,
    /// Its place there, if it is in.
    place: Option<u64>,
}

impl Known {
    /// Its holder has just seen whether it is writable: if it was not, that it is will be news.
    pub(super) const fn on_write(&mut self, writable: bool) {
        self.readiness.writable &= writable;
    }

    /// Its holder has just seen whether it is readable.
    pub(super) const fn on_read(&mut self, readable: bool) {
        self.readiness.readable &= readable;
    }

    /// It has a new holder, who knows nothing.
    pub(super) fn forget(&mut self) {
        self.readiness = Readiness::default();
    }

    /// It was taken out of the queue.
    pub(super) const fn on_taken(&mut self) {
        self.place = None;
    }
}

impl ReadyQueue {
    /// Puts a socket in if its holder does not know that it stands so.
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

    /// Takes out the socket that has been in for longest.
    pub(super) fn pop(&mut self) -> Option<SocketId> {
        self.sockets.pop_first().map(|(_, id)| id)
    }

    /// Takes out a socket that its holder lets go of.
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
        // Whoever read until there was no more is told of what comes.
        known[1].on_read(false);
        queue.update(ids[1], &mut known[1], READABLE);
        queue.remove(&mut known[1]);
        assert_eq!(queue.pop(), None);
        known[1].forget();
        queue.update(ids[1], &mut known[1], READABLE);
        assert_eq!(queue.pop(), Some(ids[1]));
    }
}
