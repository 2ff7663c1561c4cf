//! Deadlines of sockets, soonest first.

use std::collections::BTreeSet;

use airtcp_types::Instant;

use super::SocketId;

/// The deadlines of sockets, at most one per socket; a socket without a deadline uses no memory
/// here.
///
/// Each socket also stores its deadline in this set (`armed`). A deadline that moves later, as the
/// retransmission timer does with every ACK, is not updated: the timer fires once too early and is
/// then set again.
#[derive(Debug, Default)]
pub(super) struct Timers {
    deadlines: BTreeSet<(Instant, SocketId)>,
}

impl Timers {
    /// Makes the timer of `socket`, which is set to `armed`, fire at `wanted` or earlier.
    pub(super) fn set(
        &mut self,
        socket: SocketId,
        armed: &mut Option<Instant>,
        wanted: Option<Instant>,
    ) {
        match (*armed, wanted) {
            (Some(at), Some(wanted)) if at <= wanted => return,
            (None, None) => return,
            _ => {}
        }
        if let Some(at) = *armed {
            self.deadlines.remove(&(at, socket));
        }
        if let Some(at) = wanted {
            self.deadlines.insert((at, socket));
        }
        *armed = wanted;
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Removes and returns the socket with the earliest deadline, if the deadline is at or before
    /// `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<SocketId> {
        let due = self.deadlines.first().is_some_and(|(at, _)| *at <= now);
        if due { self.deadlines.pop_first().map(|(_, socket)| socket) } else { None }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.deadlines.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::Slab;
    use super::*;

    #[test]
    fn a_socket_has_one_deadline_and_earlier_ones_win() {
        let socket = Slab::new().insert(());
        let mut timers = Timers::default();
        let mut armed = None;
        let at = Instant::from_millis;
        timers.set(socket, &mut armed, Some(at(300)));
        timers.set(socket, &mut armed, Some(at(400)));
        assert_eq!(timers.next(), Some(at(300)), "a later one waits for the earlier to pass");
        timers.set(socket, &mut armed, Some(at(40)));
        assert_eq!((timers.next(), timers.len()), (Some(at(40)), 1));
        assert_eq!(timers.pop_due(at(39)), None);
        timers.set(socket, &mut armed, None);
        assert_eq!((timers.next(), timers.pop_due(Instant::MAX)), (None, None));
    }
}
