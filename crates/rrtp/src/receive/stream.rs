//! The packets of the stream: received in order, to be read, and the window.

use std::collections::VecDeque;

use crate::pool::Pool;
use crate::wire::{Data, expand};

/// The memory of a slot without the packet.
const SLOT: u64 = size_of::<Option<Arrived>>() as u64;
/// The memory of a hole beside the packet that is missing.
pub(super) const HOLE_COST: u64 = 128;

/// A received packet.
#[derive(Clone, Debug)]
struct Arrived {
    payload: Vec<u8>,
    nonce: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// The maximum payload of a packet.
    payload: usize,
    window: u64,
    /// The number of the first slot: the packet that the application reads next.
    read: u64,
    /// The number of bytes of it that were read.
    offset: usize,
    slots: VecDeque<Option<Arrived>>,
    full_slots: u64,
    /// The first missing packet, and the sum of the nonces of all before it.
    next: u64,
    nonce_sum: bool,
    /// The end of the known packets, received or missing.
    end: u64,
    fin: Option<u64>,
    limit: u64,
}

impl Stream {
    /// `payload`: the maximum payload of the peer's packets.
    pub(super) const fn new(payload: usize, window: u64) -> Self {
        Self {
            payload,
            window,
            read: 0,
            offset: 0,
            slots: VecDeque::new(),
            full_slots: 0,
            next: 0,
            nonce_sum: false,
            end: 0,
            fin: None,
            limit: window,
        }
    }

    /// The first missing packet.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The sum of the nonces of all packets before `next`.
    pub(super) const fn nonce_sum(&self) -> bool {
        self.nonce_sum
    }

    /// The end of the known packets, received or missing.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The end of the announced window.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the full number of a packet.
    pub(super) fn expand(&self, number: u32) -> u64 {
        expand(self.next, number)
    }

    /// The memory held with `holes` holes, in bytes. A hole includes the memory of its packet,
    /// which is always accepted when it arrives.
    pub(super) const fn held(&self, holes: u64) -> u64 {
        (self.full_slots + holes) * self.payload as u64
            + (self.end - self.read) * SLOT
            + holes * HOLE_COST
    }

    /// The maximum memory of a packet beyond `end`.
    pub(super) const fn place(&self) -> u64 {
        self.payload as u64 + SLOT + HOLE_COST
    }

    /// The bytes received and not read, including those behind a hole.
    pub(super) fn unread(&self) -> u64 {
        let bytes: usize = self.slots.iter().flatten().map(|packet| packet.payload.len()).sum();
        (bytes - self.offset) as u64
    }

    /// Whether everything up to the end of the stream was received, read or not.
    pub(super) fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Whether the application has read the whole stream.
    pub(super) fn is_at_end(&self) -> bool {
        self.fin.is_some_and(|fin| self.read > fin)
    }

    /// Whether data or the end of the stream can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.is_at_end() || self.read < self.next
    }

    /// Whether a packet is in the window, not larger than the peer's packet size, and not beyond
    /// the end of the stream.
    pub(super) fn admits(&self, number: u64, data: &Data<'_>) -> bool {
        let after_end =
            self.fin.is_some_and(|fin| number > fin) || (data.fin && number + 1 < self.end);
        number < self.limit && data.payload.len() <= self.payload && !after_end
    }

    /// Whether the peer can have sent all packets before `next`.
    pub(super) fn may_reach(&self, next: u64) -> bool {
        next <= self.limit && self.fin.is_none_or(|fin| next <= fin + 1)
    }

    /// Whether a packet was received.
    pub(super) fn has(&self, number: u64) -> bool {
        number < self.next || self.arrived(number).is_some()
    }

    /// Returns a packet that was received and not read completely.
    fn arrived(&self, number: u64) -> Option<&Arrived> {
        self.slots.get((number.checked_sub(self.read)?) as usize)?.as_ref()
    }

    /// Makes the packets before `end` known, received or missing.
    pub(super) fn extend(&mut self, end: u64) {
        self.end = self.end.max(end);
    }

    /// Stores a packet that was not received before.
    pub(super) fn fill(&mut self, number: u64, data: &Data<'_>, pool: &mut Pool) {
        let index = (number - self.read) as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some(Arrived { payload: pool.fill(data.payload), nonce: data.nonce });
        self.full_slots += 1;
        if data.fin {
            self.fin = Some(number);
        }
        while let Some(nonce) = self.arrived(self.next).map(|packet| packet.nonce) {
            self.next += 1;
            self.nonce_sum ^= nonce;
        }
    }

    /// Reads into `out`; returns the number of bytes: zero at the end, or if no data is available.
    pub(super) fn read(&mut self, out: &mut [u8], pool: &mut Pool) -> usize {
        let mut count = 0;
        while self.read < self.next {
            let Some(Some(front)) = self.slots.front() else { break };
            let rest = &front.payload[self.offset..];
            let taken = rest.len().min(out.len() - count);
            out[count..count + taken].copy_from_slice(&rest[..taken]);
            (count, self.offset) = (count + taken, self.offset + taken);
            if self.offset < front.payload.len() {
                break;
            }
            self.pop_front(pool);
        }
        count
    }

    /// Drops all buffered data. Packets behind a hole count as not received from now on.
    pub(super) fn discard(&mut self, pool: &mut Pool) {
        while !self.slots.is_empty() {
            self.pop_front(pool);
        }
        (self.read, self.end) = (self.next, self.next);
    }

    fn pop_front(&mut self, pool: &mut Pool) {
        if let Some(Some(packet)) = self.slots.pop_front() {
            pool.give_back(packet.payload);
            self.full_slots -= 1;
        }
        (self.read, self.offset) = (self.read + 1, 0);
    }

    /// Returns the end of the window for the current memory and `holes` holes.
    pub(super) fn room(&self, holes: u64, pool: &Pool) -> u64 {
        let memory = self.end + pool.room(self.held(holes)) / self.place();
        (self.read + self.window).min(memory)
    }

    /// Whether a limit of `room` would extend the window by a quarter, which is worth a report.
    pub(super) fn opens(&self, room: u64) -> bool {
        room >= self.limit + (self.window / 4).max(1)
    }

    /// Extends the window to `room`; never reduces it.
    pub(super) fn open(&mut self, room: u64) {
        self.limit = self.limit.max(room);
    }
}
