//! The packets of the stream: in order, to be read, and how much more has room.

use std::collections::VecDeque;

use crate::pool::Pool;
use crate::wire::{Data, expand};

/// What a place for a packet costs beside the packet.
const SLOT: u64 = size_of::<Option<Arrived>>() as u64;
/// What a hole costs beside the packet that is not there.
pub(super) const HOLE_COST: u64 = 128;

/// A packet that has come.
#[derive(Clone, Debug)]
struct Arrived {
    payload: Vec<u8>,
    nonce: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// The largest payload of a packet.
    payload: usize,
    window: u64,
    /// The number of the first slot: the packet that the application reads next.
    read: u64,
    /// How much of it is read.
    offset: usize,
    slots: VecDeque<Option<Arrived>>,
    full_slots: u64,
    /// All packets before it have come, and the sum of their nonces.
    next: u64,
    nonce_sum: bool,
    /// All packets from here on are unknown.
    end: u64,
    fin: Option<u64>,
    limit: u64,
}

impl Stream {
    /// `payload`: the largest that the peer sends.
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

    /// All packets before it have come.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The sum of the nonces of all packets before `next`.
    pub(super) const fn nonce_sum(&self) -> bool {
        self.nonce_sum
    }

    /// All packets from here on are unknown.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The peer may send the packets before it.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// A packet's number in full.
    pub(super) fn expand(&self, number: u32) -> u64 {
        expand(self.next, number)
    }

    /// Bytes that it takes from the endpoint's memory, with so many holes. A hole has what its
    /// packet will need: that is taken whenever it comes.
    pub(super) const fn held(&self, holes: u64) -> u64 {
        (self.full_slots + holes) * self.payload as u64
            + (self.end - self.read) * SLOT
            + holes * HOLE_COST
    }

    /// What a packet beyond `end` may take.
    pub(super) const fn place(&self) -> u64 {
        self.payload as u64 + SLOT + HOLE_COST
    }

    /// Bytes that have come and are not read, those behind a hole too.
    pub(super) fn unread(&self) -> u64 {
        let bytes: usize = self.slots.iter().flatten().map(|packet| packet.payload.len()).sum();
        (bytes - self.offset) as u64
    }

    /// Everything up to the peer's end has come, read or not.
    pub(super) fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The application has read everything there ever will be.
    pub(super) fn is_at_end(&self) -> bool {
        self.fin.is_some_and(|fin| self.read > fin)
    }

    /// Something can be read, be it the end.
    pub(super) fn is_readable(&self) -> bool {
        self.is_at_end() || self.read < self.next
    }

    /// Whether a packet lies in the window, is no larger than the peer's packets are, and not
    /// behind the end.
    pub(super) fn admits(&self, number: u64, data: &Data<'_>) -> bool {
        let after_end =
            self.fin.is_some_and(|fin| number > fin) || (data.fin && number + 1 < self.end);
        number < self.limit && data.payload.len() <= self.payload && !after_end
    }

    /// Whether the peer can have sent everything before `next`.
    pub(super) fn may_reach(&self, next: u64) -> bool {
        next <= self.limit && self.fin.is_none_or(|fin| next <= fin + 1)
    }

    /// Whether a packet has come.
    pub(super) fn has(&self, number: u64) -> bool {
        number < self.next || self.arrived(number).is_some()
    }

    /// A packet that is not read.
    fn arrived(&self, number: u64) -> Option<&Arrived> {
        self.slots.get((number.checked_sub(self.read)?) as usize)?.as_ref()
    }

    /// The packets before `end` are known of, come or not.
    pub(super) fn extend(&mut self, end: u64) {
        self.end = self.end.max(end);
    }

    /// Takes a packet that has not come yet.
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

    /// Reads into `out`; how much. Nothing at the end, and while nothing is there.
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

    /// Throws away everything that waits. Packets behind a hole count as not received from now on.
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

    /// Up to where there is room, as things are, with so many holes.
    pub(super) fn room(&self, holes: u64, pool: &Pool) -> u64 {
        let memory = self.end + pool.room(self.held(holes)) / self.place();
        (self.read + self.window).min(memory)
    }

    /// Whether a limit of `room` would be a quarter of the window further: that is worth telling.
    pub(super) fn opens(&self, room: u64) -> bool {
        room >= self.limit + (self.window / 4).max(1)
    }

    /// The peer may send the packets before `room`. What it was allowed stays so.
    pub(super) fn open(&mut self, room: u64) {
        self.limit = self.limit.max(room);
    }
}
