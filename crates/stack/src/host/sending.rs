//! The order in which connections send.

use std::collections::VecDeque;

use super::SocketId;

/// The number of bytes that a connection may send before the turn of the next one; packets of less
/// than 1 KiB count as 1 KiB.
const QUANTUM: usize = 16 * 1500;

/// The connections that may have something to send, each once. Connections with little to send and
/// those with much alternate, packet by packet: a response of one segment does not have to wait for
/// a turn of every long transfer.
#[derive(Debug, Default)]
pub(super) struct Sending {
    little: Queue,
    much: Queue,
    /// Whether the last packet was that of a connection with little to send.
    little_had_turn: bool,
}

#[derive(Debug, Default)]
struct Queue {
    sockets: VecDeque<SocketId>,
    /// The number of bytes that the first connection has sent in its turn.
    in_turn: usize,
}

impl Sending {
    /// Queues a connection that is in neither queue.
    pub(super) fn push(&mut self, id: SocketId, has_little: bool) {
        let queue = if has_little { &mut self.little } else { &mut self.much };
        queue.sockets.push_back(id);
    }

    /// The connection whose turn it is.
    pub(super) fn first(&self) -> Option<SocketId> {
        self.turn().sockets.front().copied()
    }

    /// Whether a connection has much to send.
    pub(super) fn has_much(&self) -> bool {
        !self.much.sockets.is_empty()
    }

    /// Counts a packet sent by [`first`](Self::first).
    pub(super) fn on_sent(&mut self, bytes: usize) {
        let little = self.is_turn_of_little();
        let queue = if little { &mut self.little } else { &mut self.much };
        queue.in_turn += bytes.max(1024);
        if queue.in_turn >= QUANTUM {
            queue.in_turn = 0;
            let id = queue.sockets.pop_front();
            // It had more to send than expected.
            self.much.sockets.extend(id);
        }
        self.little_had_turn = little;
    }

    /// Removes [`first`](Self::first), which has nothing left to send.
    pub(super) fn pop_first(&mut self) {
        let queue = if self.is_turn_of_little() { &mut self.little } else { &mut self.much };
        queue.in_turn = 0;
        queue.sockets.pop_front();
    }

    fn turn(&self) -> &Queue {
        if self.is_turn_of_little() { &self.little } else { &self.much }
    }

    fn is_turn_of_little(&self) -> bool {
        !self.little.sockets.is_empty() && (!self.little_had_turn || self.much.sockets.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::Slab;
    use super::*;

    /// The order in which connections send packets of `size` bytes until each has sent its number
    /// of packets.
    fn order(ids: &[SocketId], mut packets: Vec<usize>, size: usize, little: usize) -> Vec<usize> {
        let mut sending = Sending::default();
        for (at, id) in ids.iter().enumerate() {
            sending.push(*id, at < little);
        }
        let mut sent = Vec::new();
        while let Some(id) = sending.first() {
            let at = ids.iter().position(|known| *known == id).unwrap();
            if packets[at] == 0 {
                sending.pop_first();
            } else {
                packets[at] -= 1;
                sent.push(at);
                sending.on_sent(size);
            }
        }
        assert_eq!(packets.iter().sum::<usize>(), 0);
        sent
    }

    #[test]
    fn those_with_much_take_turns_by_bytes() {
        let mut slab = Slab::new();
        let ids = [slab.insert(()), slab.insert(())];
        assert_eq!(order(&ids, vec![3, 2], QUANTUM, 0), [0, 1, 0, 1, 0]);
        assert_eq!(order(&ids, vec![3, 2], QUANTUM / 2, 0), [0, 0, 1, 1, 0]);
        assert_eq!(
            order(&ids, vec![30, 1], 40, 0)[..25].iter().sum::<usize>(),
            1,
            "they cost more"
        );
    }

    #[test]
    fn those_with_little_need_not_wait_and_do_not_keep_the_others_waiting() {
        let mut slab = Slab::new();
        let ids: Vec<SocketId> = (0..6).map(|_| slab.insert(())).collect();
        assert_eq!(order(&ids, vec![1, 1, 1, 2, 2, 2], QUANTUM, 3), [0, 3, 1, 4, 2, 5, 3, 4, 5]);
        // A connection that turns out to have much to send moves to those with much.
        assert_eq!(order(&ids[..3], vec![3, 1, 2], QUANTUM, 2), [0, 2, 1, 0, 2, 0]);
    }
}
