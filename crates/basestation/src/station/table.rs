//! The flow table, with a limited number of flows for each mobile.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use airtcp_link::radio::MobileNo;
use airtcp_types::Instant;

use super::flow::{Flow, FlowKey};

/// The pools of flows, each in the order of last use, oldest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pool {
    /// The mobile has not acknowledged anything: anyone who can send a packet can create such a
    /// flow.
    Unproven,
    /// The mobile takes part in the flow.
    Proven,
    /// The sender is frozen. The flow is not evicted before the sender is released.
    Pinned,
}

/// All pools.
const POOLS: [Pool; 3] = [Pool::Unproven, Pool::Proven, Pool::Pinned];

/// The index of a flow in the table until it is removed, so that a packet's flow is looked up once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u32);

const NONE: u32 = u32::MAX;

/// Flows in three lists for each mobile. The hash map is never iterated, as its order is random.
#[derive(Debug)]
pub(super) struct FlowTable {
    index: HashMap<FlowKey, u32>,
    places: Vec<Place>,
    free: Vec<u32>,
    /// The shares of the mobiles, by their numbers.
    shares: Vec<Share>,
    /// The number of flows in each pool.
    lens: [usize; 3],
    /// For each mobile, the limits of unproven flows, and of all others together.
    limits: [usize; 2],
    idle: Duration,
    /// The number of flows evicted to make room.
    pub(super) evicted: u64,
    /// Bytes of cached packets of all flows.
    cached: usize,
}

/// The flows of one mobile.
#[derive(Debug, Default)]
struct Share {
    lists: [List; 3],
    /// Bytes of cached packets.
    cached: usize,
}

#[derive(Debug)]
struct Place {
    key: FlowKey,
    flow: Flow,
    used: Instant,
    /// The mobile whose share it uses.
    of: MobileNo,
    pool: Pool,
    before: u32,
    after: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    /// The least recently used flow.
    head: u32,
    tail: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, len: 0 }
    }
}

impl FlowTable {
    /// Creates a table for `proven` flows in which a mobile takes part and `unproven` others, for
    /// each mobile. A flow is removed after an idle time of `idle`.
    pub(super) fn new(proven: usize, unproven: usize, idle: Duration) -> Self {
        Self {
            index: HashMap::new(),
            places: Vec::new(),
            free: Vec::new(),
            shares: Vec::new(),
            lens: [0; 3],
            limits: [unproven.max(1), proven.max(1)],
            idle,
            evicted: 0,
            cached: 0,
        }
    }

    /// Returns the slot of a flow.
    pub(super) fn find(&self, key: &FlowKey) -> Option<Slot> {
        self.index.get(key).copied().map(Slot)
    }

    /// Returns the slot of a flow of the mobile `of`. A flow that was entered before the mobile was
    /// known moves to its share; a pinned one stays until its sender is released.
    pub(super) fn find_of(&mut self, of: MobileNo, key: &FlowKey) -> Option<Slot> {
        let slot = self.find(key)?;
        let (before, pool) = (self.of(slot), self.pool(slot));
        if before != of && pool != Pool::Pinned && self.make_room(of, pool) {
            self.unlink(slot.0);
            let cached = self[slot].cached();
            self.share(before).cached -= cached;
            self.places[slot.0 as usize].of = of;
            self.share(of).cached += cached;
            self.push(slot.0, pool);
        }
        Some(slot)
    }

    /// Returns the flow at a slot, and marks it as used now.
    pub(super) fn touch(&mut self, now: Instant, slot: Slot) -> &mut Flow {
        self.move_to(slot.0, self.pool(slot));
        let place = &mut self.places[slot.0 as usize];
        place.used = now;
        &mut place.flow
    }

    /// Returns the key of the flow at a slot.
    pub(super) fn key(&self, slot: Slot) -> FlowKey {
        self.places[slot.0 as usize].key
    }

    pub(super) fn pool(&self, slot: Slot) -> Pool {
        self.places[slot.0 as usize].pool
    }

    /// Returns the mobile whose share the flow uses.
    pub(super) fn of(&self, slot: Slot) -> MobileNo {
        self.places[slot.0 as usize].of
    }

    /// Whether the mobile takes part in the flow.
    pub(super) fn is_proven(&self, slot: Slot) -> bool {
        self.pool(slot) != Pool::Unproven
    }

    /// Adds an unproven flow of a mobile that [`find`](Self::find) did not find. If the mobile's
    /// pool is full, its least recently used flow is evicted.
    pub(super) fn insert(&mut self, now: Instant, of: MobileNo, key: FlowKey, flow: Flow) -> Slot {
        let pool = Pool::Unproven;
        self.make_room(of, pool);
        let place = Place { key, flow, used: now, of, pool, before: NONE, after: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = place;
                at
            }
            None => {
                self.places.push(place);
                // The limits are far below 2^32.
                (self.places.len() - 1) as u32
            }
        };
        let before = self.index.insert(key, at);
        debug_assert_eq!(before, None, "two flows of {key:?}");
        self.push(at, pool);
        Slot(at)
    }

    /// Replaces the flow at a slot by an unproven one. If the pool is full, its least recently used
    /// flow is evicted.
    pub(super) fn replace(&mut self, now: Instant, Slot(at): Slot, flow: Flow) {
        self.unlink(at);
        self.make_room(self.of(Slot(at)), Pool::Unproven);
        self.count_cached(Slot(at), self[Slot(at)].cached(), 0);
        let place = &mut self.places[at as usize];
        (place.flow, place.used) = (flow, now);
        self.push(at, Pool::Unproven);
    }

    /// Moves a flow to another pool. Returns `false` if that is full of pinned flows.
    pub(super) fn put(&mut self, slot: Slot, pool: Pool) -> bool {
        let from = self.pool(slot);
        if from == pool {
            return true;
        }
        // Proven and pinned flows share a limit: a move between these pools needs no room.
        if from == Pool::Unproven && !self.make_room(self.of(slot), Pool::Proven) {
            return false;
        }
        self.move_to(slot.0, pool);
        true
    }

    /// Makes room for another flow of a mobile, if possible.
    fn make_room(&mut self, of: MobileNo, pool: Pool) -> bool {
        let lists = self.share(of).lists;
        let len = |pool: Pool| lists[pool as usize].len;
        let (taken, limit) = match pool {
            Pool::Unproven => (len(Pool::Unproven), self.limits[0]),
            _ => (len(Pool::Proven) + len(Pool::Pinned), self.limits[1]),
        };
        if taken < limit {
            return true;
        }
        let oldest = lists[pool as usize].head;
        if oldest == NONE {
            return false;
        }
        self.evicted += 1;
        self.remove(Slot(oldest));
        true
    }

    /// Removes the flow at a slot; the slot is no longer valid.
    pub(super) fn remove(&mut self, Slot(at): Slot) {
        self.unlink(at);
        self.count_cached(Slot(at), self[Slot(at)].cached(), 0);
        let place = &mut self.places[at as usize];
        self.index.remove(&place.key);
        // Frees the flow's heap memory now, not when the entry is reused.
        place.flow = Flow::unheard();
        self.free.push(at);
    }

    /// Removes all flows of a mobile.
    pub(super) fn forget(&mut self, of: MobileNo) {
        for pool in POOLS {
            let slots: Vec<_> = self.iter(of, pool).collect();
            self.evicted += slots.len() as u64;
            slots.into_iter().for_each(|slot| self.remove(slot));
        }
    }

    /// Removes flows of a mobile that have been idle for too long. Pinned flows stay.
    pub(super) fn expire(&mut self, now: Instant, of: MobileNo) {
        for pool in [Pool::Unproven, Pool::Proven] {
            loop {
                let head = self.share(of).lists[pool as usize].head;
                match self.places.get(head as usize) {
                    Some(oldest) if now.since(oldest.used) >= self.idle => self.remove(Slot(head)),
                    _ => break,
                }
            }
        }
    }

    /// Returns the number of flows in a pool.
    pub(super) const fn len(&self, pool: Pool) -> usize {
        self.lens[pool as usize]
    }

    /// Returns the number of flows in a pool of a mobile.
    pub(super) fn len_of(&self, of: MobileNo, pool: Pool) -> usize {
        self.shares.get(usize::from(of.0)).map_or(0, |share| share.lists[pool as usize].len)
    }

    /// Returns the bytes of cached packets.
    pub(super) const fn cached(&self) -> usize {
        self.cached
    }

    /// Returns the bytes of cached packets of a mobile.
    pub(super) fn cached_of(&self, of: MobileNo) -> usize {
        self.shares.get(usize::from(of.0)).map_or(0, |share| share.cached)
    }

    /// Counts a change of the bytes that are cached for the flow at a slot.
    pub(super) fn count_cached(&mut self, slot: Slot, before: usize, after: usize) {
        let of = self.of(slot);
        for cached in [&mut self.shares[usize::from(of.0)].cached, &mut self.cached] {
            *cached = *cached + after - before;
        }
    }

    /// Returns the flows of a pool, the least recently used first.
    pub(super) fn all(&self, pool: Pool) -> Vec<Slot> {
        let shares = (0..self.shares.len()).map(|of| MobileNo(of as u16));
        let mut all: Vec<_> = shares.flat_map(|of| self.iter(of, pool)).collect();
        if self.shares.len() > 1 {
            all.sort_by_key(|slot| self.places[slot.0 as usize].used);
        }
        all
    }

    /// Iterates over the flows of a pool of a mobile, the least recently used first.
    pub(super) fn iter(&self, of: MobileNo, pool: Pool) -> impl Iterator<Item = Slot> {
        let share = self.shares.get(usize::from(of.0));
        let mut at = share.map_or(NONE, |share| share.lists[pool as usize].head);
        std::iter::from_fn(move || {
            let slot = Slot(at);
            at = self.places.get(at as usize)?.after;
            Some(slot)
        })
    }

    /// Returns the memory in bytes, including the heap; the index counts by its entries.
    pub(super) fn memory(&self) -> usize {
        let heap = |place: &Place| place.flow.memory() - size_of::<Flow>();
        self.places.capacity() * size_of::<Place>()
            + self.places.iter().map(heap).sum::<usize>()
            + self.free.capacity() * size_of::<u32>()
            + self.places.len() * (size_of::<(FlowKey, u32)>() + 1)
            + self.shares.len().saturating_sub(1) * size_of::<Share>()
    }

    fn share(&mut self, of: MobileNo) -> &mut Share {
        let at = usize::from(of.0);
        if self.shares.len() <= at {
            self.shares.resize_with(at + 1, Share::default);
        }
        &mut self.shares[at]
    }

    fn move_to(&mut self, at: u32, pool: Pool) {
        self.unlink(at);
        self.push(at, pool);
    }

    fn unlink(&mut self, at: u32) {
        let Place { of, pool, before, after, .. } = self.places[at as usize];
        self.lens[pool as usize] -= 1;
        let list = &mut self.share(of).lists[pool as usize];
        list.len -= 1;
        if list.head == at {
            list.head = after;
        }
        if list.tail == at {
            list.tail = before;
        }
        if let Some(place) = self.places.get_mut(before as usize) {
            place.after = after;
        }
        if let Some(place) = self.places.get_mut(after as usize) {
            place.before = before;
        }
    }

    fn push(&mut self, at: u32, pool: Pool) {
        self.lens[pool as usize] += 1;
        let list = &mut self.share(self.of(Slot(at))).lists[pool as usize];
        let tail = std::mem::replace(&mut list.tail, at);
        list.len += 1;
        if list.head == NONE {
            list.head = at;
        }
        if let Some(last) = self.places.get_mut(tail as usize) {
            last.after = at;
        }
        let place = &mut self.places[at as usize];
        (place.pool, place.before, place.after) = (pool, tail, NONE);
    }
}

impl Index<Slot> for FlowTable {
    type Output = Flow;

    fn index(&self, slot: Slot) -> &Flow {
        &self.places[slot.0 as usize].flow
    }
}

impl IndexMut<Slot> for FlowTable {
    fn index_mut(&mut self, slot: Slot) -> &mut Flow {
        &mut self.places[slot.0 as usize].flow
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::SeqNumber;
    use airtcp_types::rng::Stream;

    use super::super::testkit::key_of;
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    const ALL: MobileNo = MobileNo::OTHERS;

    fn add(table: &mut FlowTable, number: u32, pool: Pool) {
        add_of(table, ALL, number, pool);
    }

    fn add_of(table: &mut FlowTable, of: MobileNo, number: u32, pool: Pool) {
        let flow = Flow::starting_at(SeqNumber(number));
        let slot = table.insert(Instant::ZERO, of, key_of(number), flow);
        assert!(table.put(slot, pool));
    }

    fn keys(table: &FlowTable, pool: Pool) -> Vec<FlowKey> {
        table.iter(ALL, pool).map(|slot| table.key(slot)).collect()
    }

    fn put(table: &mut FlowTable, number: u32, pool: Pool) -> bool {
        let slot = table.find(&key_of(number));
        slot.is_some_and(|slot| table.put(slot, pool))
    }

    fn touch(table: &mut FlowTable, now: Instant, number: u32) {
        let slot = table.find(&key_of(number)).unwrap();
        table.touch(now, slot);
    }

    #[test]
    fn the_flow_used_least_recently_goes_and_pinned_ones_stay() {
        let mut table = FlowTable::new(3, 2, IDLE);
        add(&mut table, 1, Pool::Pinned);
        add(&mut table, 2, Pool::Proven);
        add(&mut table, 3, Pool::Proven);
        touch(&mut table, Instant::ZERO, 2);
        add(&mut table, 4, Pool::Proven);
        assert_eq!(keys(&table, Pool::Proven), [2, 4].map(key_of));
        assert_eq!((keys(&table, Pool::Pinned), table.evicted), (vec![key_of(1)], 1));
        assert!([2, 4].into_iter().all(|number| put(&mut table, number, Pool::Pinned)));
        table.insert(Instant::ZERO, ALL, key_of(5), Flow::starting_at(SeqNumber(5)));
        assert!(!put(&mut table, 5, Pool::Proven), "all that are there stay");
        assert!(put(&mut table, 1, Pool::Proven));
        assert!(put(&mut table, 5, Pool::Proven));
        assert_eq!(table.find(&key_of(1)), None);
    }

    #[test]
    fn a_flood_of_a_million_syns_takes_its_own_pool_and_no_more() {
        let mut table = FlowTable::new(100, 64, IDLE);
        (0..50).for_each(|number| add(&mut table, number, Pool::Proven));
        (50..60).for_each(|number| add(&mut table, number, Pool::Pinned));
        let before = keys(&table, Pool::Proven);
        let mut flood = |from: u32| {
            for number in from..from + 500_000 {
                table.insert(Instant::ZERO, ALL, key_of(number), Flow::starting_at(SeqNumber(1)));
            }
            table.memory()
        };
        let first = flood(1_000);
        assert_eq!(flood(501_000), first, "memory stays as it is");
        assert_eq!(keys(&table, Pool::Proven), before);
        assert_eq!((table.len(Pool::Pinned), table.len(Pool::Unproven)), (10, 64));
    }

    #[test]
    fn a_flow_that_takes_the_place_of_another_is_unproven_and_keeps_its_slot() {
        let mut table = FlowTable::new(9, 2, IDLE);
        add(&mut table, 1, Pool::Proven);
        add(&mut table, 2, Pool::Unproven);
        add(&mut table, 3, Pool::Unproven);
        let slot = table.find(&key_of(1)).unwrap();
        table.replace(Instant::ZERO, slot, Flow::starting_at(SeqNumber(77)));
        assert_eq!(keys(&table, Pool::Unproven), [3, 1].map(key_of));
        assert_eq!((table.find(&key_of(1)), table.evicted), (Some(slot), 1));
        assert_eq!(table[slot].highest().wire(), SeqNumber(77));
        let slot = table.find(&key_of(3)).unwrap();
        table.replace(Instant::ZERO, slot, Flow::unheard());
        assert_eq!(keys(&table, Pool::Unproven), [1, 3].map(key_of));
        assert_eq!((table.len(Pool::Proven), table.evicted), (0, 1));
    }

    #[test]
    fn idle_flows_are_forgotten_but_not_those_that_wait() {
        let mut table = FlowTable::new(9, 9, IDLE);
        add(&mut table, 1, Pool::Unproven);
        add(&mut table, 2, Pool::Proven);
        add(&mut table, 3, Pool::Pinned);
        add(&mut table, 4, Pool::Proven);
        let half = Instant::ZERO + IDLE / 2;
        touch(&mut table, half, 2);
        table.expire(Instant::ZERO + IDLE, ALL);
        assert_eq!(keys(&table, Pool::Proven), [key_of(2)]);
        assert_eq!((table.len(Pool::Unproven), table.len(Pool::Pinned)), (0, 1));
    }

    #[test]
    fn a_mobile_with_many_flows_leaves_the_others_theirs() {
        let [one, other] = [1, 2].map(MobileNo);
        let mut table = FlowTable::new(3, 2, IDLE);
        (0..3).for_each(|number| add_of(&mut table, one, number, Pool::Proven));
        (10..13).for_each(|number| add_of(&mut table, other, number, Pool::Pinned));
        (13..30).for_each(|number| add_of(&mut table, other, number, Pool::Unproven));
        assert_eq!(table.len_of(one, Pool::Proven), 3);
        assert_eq!(POOLS.map(|pool| table.len_of(other, pool)), [2, 0, 3]);
        table.forget(other);
        assert_eq!(POOLS.map(|pool| table.len(pool)), [0, 3, 0]);
    }

    #[test]
    fn a_flow_moves_to_the_share_of_a_mobile_that_becomes_known_unless_it_is_pinned() {
        let mobile = MobileNo(1);
        let mut table = FlowTable::new(1, 1, IDLE);
        add(&mut table, 1, Pool::Proven);
        let slot = table.find_of(mobile, &key_of(1)).unwrap();
        assert_eq!((table.of(slot), table.pool(slot)), (mobile, Pool::Proven));
        assert_eq!((table.len_of(ALL, Pool::Proven), table.len(Pool::Proven)), (0, 1));
        add(&mut table, 2, Pool::Pinned);
        let pinned = table.find_of(mobile, &key_of(2)).unwrap();
        assert_eq!(table.of(pinned), ALL);
        assert!(table.put(pinned, Pool::Proven));
        // There is room for one: the flow used least recently goes.
        assert_eq!(table.find_of(mobile, &key_of(2)), Some(pinned));
        assert_eq!((table.of(pinned), table.find(&key_of(1)), table.evicted), (mobile, None, 1));
    }

    #[test]
    fn whatever_is_done_lists_and_index_agree() {
        let mut stream = Stream::new(5, 0);
        let mut table = FlowTable::new(6, 4, IDLE);
        for step in 0..20_000 {
            let key = key_of(stream.below(16) as u32);
            let flow = Flow::starting_at(SeqNumber(0));
            let of = MobileNo(stream.below(2) as u16);
            let found = table.find_of(of, &key);
            let slot = found.unwrap_or_else(|| table.insert(Instant::ZERO, of, key, flow));
            match stream.below(5) {
                0 => table.replace(Instant::ZERO, slot, Flow::unheard()),
                1 => drop(table.put(slot, Pool::Proven)),
                2 => drop(table.put(slot, Pool::Pinned)),
                3 => table.remove(slot),
                _ => drop(table.touch(Instant::ZERO, slot)),
            }
            let mut all = 0;
            for of in [0, 1].map(MobileNo) {
                let lists = POOLS.map(|pool| table.iter(of, pool).collect::<Vec<_>>());
                assert!(lists[0].len() <= 4 && lists[1].len() + lists[2].len() <= 6, "step {step}");
                for (pool, list) in POOLS.into_iter().zip(&lists) {
                    assert_eq!(list.len(), table.len_of(of, pool));
                    let is_its = |slot: &Slot| (table.of(*slot), table.pool(*slot)) == (of, pool);
                    assert!(list.iter().all(is_its), "step {step}");
                    all += list.len();
                }
            }
            assert_eq!(all, table.index.len());
            assert_eq!(all, POOLS.map(|pool| table.len(pool)).iter().sum::<usize>());
        }
    }
}
