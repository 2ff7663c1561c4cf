//! The order in which waiting datagrams leave.
//!
//! Datagrams wait here while the stack has no room for them, because its device is full: what has
//! left the schedule can no longer be overtaken, so a carrier stack takes only 32 at a time
//! ([`carrier_config`](crate::carrier_config)). A carried TCP connection needs no such queue. Its
//! unsent data waits in its own send buffer until its own window and pacing let it go, and the
//! stack lets connections with little to send go before the others
//! (`crates/stack/src/host/sending.rs`).
//!
//! The schedule is that of FQ-CoDel (RFC 8290) without CoDel: deficit round robin, in which flows
//! that have just begun to wait have priority. The queue of a greedy flow delays only that flow. A
//! flow is an association, so a program gains nothing by sending to many addresses. Unlike in the
//! RFC, new flows and old ones alternate, so that a program that opens associations all the time
//! does not stop the others, and a flow keeps its debt while it is idle, because a datagram may be
//! longer than many turns.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::Destination;

/// The number of bytes that a flow may send in a turn: one packet (RFC 8290 section 5.2.4).
const QUANTUM: i64 = 1514;
/// The most bytes that may wait, including [`OVERHEAD`].
const QUEUE: usize = 1 << 20;
/// The bytes that a waiting datagram counts for in addition to its data: its headers on the wire,
/// or its place in the queue.
const OVERHEAD: usize = 128;
/// The most flows.
const FLOWS: usize = 4096;
/// The most datagrams that are dropped at a time (RFC 8290 section 4.1).
const BATCH: usize = 64;

/// Something that waits to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    Datagram { remote: Destination, data: Vec<u8> },
    Refusal { remote: Destination },
}

/// The waiting datagrams of all associations.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// The flows, by association. Each is in one of the two lists.
    flows: HashMap<u32, Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Whether the last datagram was that of a new flow.
    new_had_turn: bool,
    /// The waiting bytes of each source.
    sources: HashMap<Option<IpAddr>, usize>,
    bytes: usize,
    /// Closed associations whose datagrams have left.
    ended: Vec<u32>,
}

#[derive(Debug)]
struct Flow {
    source: Option<IpAddr>,
    waiting: VecDeque<Item>,
    bytes: usize,
    /// The number of bytes that it may still send in its turn; negative after a long datagram.
    credit: i64,
    /// Whether the association is closed once its datagrams have left.
    is_closing: bool,
}

impl Item {
    fn cost(&self) -> usize {
        match self {
            Self::Datagram { data, .. } => data.len() + OVERHEAD,
            Self::Refusal { .. } => OVERHEAD,
        }
    }
}

impl Schedule {
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Closes an association after its waiting datagrams; returns whether there are any. If so,
    /// [`poll_ended`](Self::poll_ended) returns it later.
    pub(crate) fn close(&mut self, association: u32) -> bool {
        let flow = self.flows.get_mut(&association).filter(|flow| !flow.waiting.is_empty());
        flow.map(|flow| flow.is_closing = true).is_some()
    }

    /// Returns a closed association whose datagrams have left.
    pub(crate) fn poll_ended(&mut self) -> Option<u32> {
        self.ended.pop()
    }

    /// Queues a datagram of an association, whose program is at `source`. If there is no room,
    /// drops the oldest datagrams of the flow with the most waiting bytes, among those of the
    /// source with the most; if there are too many flows, drops some of the source with the most
    /// flows. Returns the number of dropped datagrams.
    pub(crate) fn push(&mut self, association: u32, source: Option<IpAddr>, item: Item) -> u64 {
        let mut dropped = 0;
        if !self.flows.contains_key(&association) && self.flows.len() >= FLOWS {
            dropped += self.make_room_for_flow();
        }
        let flow = self.flows.entry(association).or_insert_with(|| {
            self.new.push_back(association);
            let waiting = VecDeque::new();
            Flow { source, waiting, bytes: 0, credit: QUANTUM, is_closing: false }
        });
        let cost = item.cost();
        flow.bytes += cost;
        *self.sources.entry(flow.source).or_default() += cost;
        self.bytes += cost;
        flow.waiting.push_back(item);
        while self.bytes > QUEUE {
            dropped += self.drop_heaviest();
        }
        dropped
    }

    /// Returns the next datagram and its association.
    pub(crate) fn pop(&mut self) -> Option<(u32, Item)> {
        if self.is_empty() {
            return None;
        }
        let new_first = !self.new_had_turn;
        // The last attempt is for flows that the attempt before has moved to the old ones.
        for of_new in [new_first, !new_first, false] {
            if let Some((association, item)) = self.take(of_new) {
                self.new_had_turn = of_new;
                if self.is_empty() {
                    // Nothing waits, so no flow has an advantage or a debt.
                    *self = Self { ended: std::mem::take(&mut self.ended), ..Self::default() };
                }
                return Some((association, item));
            }
        }
        None
    }

    /// Takes a datagram from the first flow of a list (RFC 8290 section 4.2).
    fn take(&mut self, of_new: bool) -> Option<(u32, Item)> {
        loop {
            let list = if of_new { &mut self.new } else { &mut self.old };
            let association = *list.front()?;
            let flow = self.flows.get_mut(&association)?;
            if flow.credit > 0
                && let Some(item) = flow.waiting.pop_front()
            {
                flow.credit -= item.cost() as i64;
                self.on_left(association, &item);
                return Some((association, item));
            }
            let has_debt = flow.credit <= 0;
            list.pop_front();
            if has_debt || of_new {
                flow.credit += if has_debt { QUANTUM } else { 0 };
                self.old.push_back(association);
            } else {
                self.flows.remove(&association);
            }
        }
    }

    /// Drops the oldest datagrams of the heaviest flow of the heaviest source: half of them, at
    /// most [`BATCH`], at least one.
    fn drop_heaviest(&mut self) -> u64 {
        let heaviest = self.sources.iter().max_by_key(|(source, bytes)| (**bytes, **source));
        let source = heaviest.and_then(|(source, _)| *source);
        let of_source = self.flows.iter().filter(|(_, flow)| flow.source == source);
        let heaviest = of_source.max_by_key(|(association, flow)| (flow.bytes, **association));
        let Some(association) = heaviest.map(|(association, _)| *association) else { return 0 };
        let half = self.flows.get(&association).map_or(0, |flow| flow.waiting.len() / 2);
        self.drop_oldest(association, half.clamp(1, BATCH))
    }

    /// Drops up to `most` datagrams of a flow, the oldest first; returns their number.
    fn drop_oldest(&mut self, association: u32, most: usize) -> u64 {
        let mut dropped = 0;
        for _ in 0..most {
            let flow = self.flows.get_mut(&association);
            let Some(item) = flow.and_then(|flow| flow.waiting.pop_front()) else { break };
            self.on_left(association, &item);
            dropped += 1;
        }
        dropped
    }

    /// Removes the flows without datagrams. If there are none, removes flows of the source with
    /// the most, those with the fewest waiting bytes first: half of them, at most [`BATCH`], at
    /// least one. Returns the number of dropped datagrams.
    fn make_room_for_flow(&mut self) -> u64 {
        self.forget_idle();
        if self.flows.len() < FLOWS {
            return 0;
        }
        let mut of_sources = HashMap::<_, Vec<_>>::new();
        for (association, flow) in &self.flows {
            of_sources.entry(flow.source).or_default().push((flow.bytes, *association));
        }
        let most = of_sources.into_iter().max_by_key(|(source, flows)| (flows.len(), *source));
        let Some((_, mut flows)) = most else { return 0 };
        flows.sort_unstable();
        flows.truncate((flows.len() / 2).clamp(1, BATCH));
        let associations = flows.iter().map(|(_, association)| *association);
        let dropped = associations.map(|flow| self.drop_oldest(flow, usize::MAX)).sum();
        self.forget_idle();
        dropped
    }

    /// Updates everything after an item has left the queue of a flow.
    fn on_left(&mut self, association: u32, item: &Item) {
        let cost = item.cost();
        self.bytes -= cost;
        let Some(flow) = self.flows.get_mut(&association) else { return };
        flow.bytes -= cost;
        if let Some(bytes) = self.sources.get_mut(&flow.source) {
            *bytes -= cost;
            if *bytes == 0 {
                self.sources.remove(&flow.source);
            }
        }
        if flow.is_closing && flow.waiting.is_empty() {
            self.ended.push(association);
            self.forget(association);
        }
    }

    /// Removes an association with its datagrams; returns their number.
    pub(crate) fn remove(&mut self, association: u32) -> u64 {
        let Some(flow) = self.flows.get_mut(&association) else { return 0 };
        flow.is_closing = false;
        let dropped = self.drop_oldest(association, usize::MAX);
        self.forget(association);
        dropped
    }

    fn forget(&mut self, association: u32) {
        self.flows.remove(&association);
        self.new.retain(|other| *other != association);
        self.old.retain(|other| *other != association);
    }

    /// Removes the flows without datagrams.
    fn forget_idle(&mut self) {
        self.flows.retain(|_, flow| !flow.waiting.is_empty());
        self.new.retain(|association| self.flows.contains_key(association));
        self.old.retain(|association| self.flows.contains_key(association));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;

    fn remote() -> Destination {
        SocketAddr::from(([192, 0, 2, 1], 53)).into()
    }

    fn datagram(number: usize, length: usize) -> Item {
        let mut data = vec![0; length.max(8)];
        data[..8].copy_from_slice(&number.to_be_bytes());
        Item::Datagram { remote: remote(), data }
    }

    fn number(item: &Item) -> usize {
        let Item::Datagram { data, .. } = item else { panic!("{item:?}") };
        usize::from_be_bytes(*data.first_chunk().unwrap())
    }

    fn source(last: u8) -> Option<IpAddr> {
        Some([10, 0, 0, last].into())
    }

    /// A schedule in which the flow 1 has a backlog that it has begun to send.
    fn with_backlog() -> Schedule {
        let mut schedule = Schedule::default();
        for number in 0..500 {
            schedule.push(1, source(1), datagram(number, 1400));
        }
        for _ in 0..10 {
            assert_eq!(schedule.pop().unwrap().0, 1);
        }
        schedule
    }

    #[test]
    fn a_sparse_flow_waits_for_one_packet_of_a_backlog_at_most() {
        let mut schedule = with_backlog();
        // A ping every 20 packets, and a game with a packet of 200 bytes every 7.
        let (mut pings, mut moves, mut longest) = (0, 0, 0_u32);
        let mut since = HashMap::new();
        for sent in 0..400_u32 {
            if sent % 20 == 0 {
                schedule.push(2, source(1), datagram(pings, 64));
                pings += 1;
                since.insert(2, sent);
            }
            if sent % 7 == 0 {
                schedule.push(3, source(1), datagram(moves, 200));
                moves += 1;
                since.insert(3, sent);
            }
            let (association, _) = schedule.pop().unwrap();
            if let Some(at) = since.remove(&association) {
                longest = longest.max(sent - at);
            }
        }
        assert!(since.is_empty());
        // A packet of the backlog, and one of the other sparse flow.
        assert!(longest <= 2, "{longest}");
    }

    #[test]
    fn greedy_flows_share_by_bytes_whatever_the_sizes_of_their_datagrams() {
        for sizes in [[1400, 1400, 1400], [1400, 100, 700], [60_000, 1400, 100]] {
            let mut schedule = Schedule::default();
            let mut bytes = [0; 3];
            let mut waiting = [0; 3];
            let mut total = 0;
            while total < 4_000_000 {
                // Each always has datagrams waiting, the first one never more than one.
                for (flow, (size, depth)) in (0..).zip(sizes.into_iter().zip([1, 20, 20])) {
                    while waiting[flow as usize] < depth {
                        schedule.push(flow, source(1), datagram(0, size));
                        waiting[flow as usize] += 1;
                    }
                }
                let (association, item) = schedule.pop().unwrap();
                waiting[association as usize] -= 1;
                bytes[association as usize] += item.cost();
                total += item.cost();
            }
            for sent in bytes {
                assert!(sent.abs_diff(total / 3) < 65_000, "{sizes:?} {bytes:?}");
            }
        }
    }

    #[test]
    fn associations_that_come_and_go_do_not_stop_a_backlog() {
        let mut schedule = with_backlog();
        let mut of_backlog = 0;
        for association in 2..402 {
            schedule.push(association, source(2), datagram(0, 1400));
            assert!(schedule.close(association));
            of_backlog += usize::from(schedule.pop().unwrap().0 == 1);
        }
        assert_eq!(of_backlog, 200);
        let ended = std::iter::from_fn(|| schedule.poll_ended());
        assert_eq!(ended.count(), 200);
        assert!(!schedule.close(2), "it has ended");
    }

    #[test]
    fn a_full_queue_drops_the_oldest_of_the_heaviest_source() {
        let mut schedule = Schedule::default();
        schedule.push(7, source(7), datagram(7, 1400));
        let mut dropped = 0;
        // One program sends much, another one through many associations.
        for number in 0..2000 {
            dropped += schedule.push(1, source(1), datagram(number, 1400));
            dropped += schedule.push(100 + number as u32 % 500, source(2), datagram(number, 1400));
            assert!(schedule.bytes <= QUEUE);
        }
        let half = QUEUE / 2;
        for (source, bytes) in &schedule.sources {
            let is_sparse = *source == self::source(7);
            assert!(is_sparse || bytes.abs_diff(half) < half / 4, "{source:?} {bytes}");
        }
        let mut left = Vec::new();
        let mut sparse = 0;
        while let Some((association, item)) = schedule.pop() {
            match association {
                1 => left.push(number(&item)),
                7 => sparse += 1,
                _ => dropped += 1,
            }
        }
        assert_eq!((sparse, dropped + left.len() as u64), (1, 4000));
        assert!(left.is_sorted() && left.last() == Some(&1999), "{left:?}");
    }

    #[test]
    fn flows_are_bounded_and_nothing_stays() {
        let mut schedule = Schedule::default();
        let mut dropped = 0;
        for association in 0..10_000 {
            dropped += schedule.push(association, source(1), Item::Refusal { remote: remote() });
        }
        let flows = schedule.flows.len();
        assert_eq!(flows as u64 + dropped, 10_000);
        assert!((FLOWS - BATCH..=FLOWS).contains(&flows), "{flows}");
        assert!(schedule.flows.contains_key(&9999), "the newest one");
        // Flows whose datagrams were dropped make room.
        for association in 0..20 {
            schedule.push(association, source(1), datagram(0, 60_000));
        }
        assert_eq!(schedule.push(20_000, source(1), Item::Refusal { remote: remote() }), 0);
        assert_eq!(schedule.remove(20_000), 1);
        assert!(!schedule.close(20_000) && schedule.close(9999));
        while schedule.pop().is_some() {}
        assert!(schedule.flows.is_empty() && schedule.new.is_empty() && schedule.old.is_empty());
        assert_eq!((schedule.bytes, schedule.sources.len()), (0, 0));
        assert_eq!((schedule.poll_ended(), schedule.poll_ended()), (Some(9999), None));
    }

    #[test]
    fn too_many_flows_cost_only_the_source_with_the_most() {
        let mut schedule = Schedule::default();
        schedule.push(1, source(1), datagram(0, 60_000));
        for association in 2..=FLOWS as u32 {
            schedule.push(association, source(2), datagram(0, 8));
            schedule.close(association);
        }
        assert_eq!(schedule.flows.len(), FLOWS);
        assert_eq!(schedule.push(10_000, source(3), datagram(0, 8)), BATCH as u64);
        // The other new ones find room.
        for association in 10_001..10_000 + BATCH as u32 {
            assert_eq!(schedule.push(association, source(3), datagram(0, 8)), 0);
        }
        let of = |last| schedule.flows.values().filter(|flow| flow.source == source(last)).count();
        assert_eq!([of(1), of(2), of(3)], [1, FLOWS - 1 - BATCH, BATCH]);
        // The closed associations have ended.
        assert_eq!(std::iter::from_fn(|| schedule.poll_ended()).count(), BATCH);
    }

    proptest! {
        /// For any order of calls: datagrams of an association leave in order, none is invented, a
        /// closed association ends once and after its datagrams, and memory is bounded.
        #[test]
        fn order_and_bounds_hold(
            calls in prop::collection::vec((0_u32..6, 0_usize..70_000, 0_u8..10), 1..600),
        ) {
            let mut schedule = Schedule::default();
            let mut next = 0;
            let mut last = HashMap::new();
            let (mut pushed, mut dropped, mut popped) = (0_u64, 0, 0);
            let mut closing = HashSet::new();
            for (association, length, call) in calls {
                if call < 5 && !closing.contains(&association) {
                    let length = length / if call < 4 { 50 } else { 1 };
                    let source = source(association as u8 % 3);
                    dropped += schedule.push(association, source, datagram(next, length));
                    (next, pushed) = (next + 1, pushed + 1);
                } else if call == 5 {
                    if schedule.close(association) {
                        closing.insert(association);
                    }
                } else if let Some((association, item)) = schedule.pop() {
                    popped += 1;
                    let number = number(&item);
                    let before = last.insert(association, number);
                    prop_assert!(before.is_none_or(|before| before < number));
                }
                while let Some(association) = schedule.poll_ended() {
                    prop_assert!(closing.remove(&association) && !schedule.close(association));
                }
                let waiting = schedule.flows.values().flat_map(|flow| &flow.waiting);
                prop_assert_eq!(waiting.map(Item::cost).sum::<usize>(), schedule.bytes);
                prop_assert!(schedule.bytes <= QUEUE);
                prop_assert_eq!(schedule.new.len() + schedule.old.len(), schedule.flows.len());
            }
            while schedule.pop().is_some() {
                popped += 1;
            }
            while let Some(association) = schedule.poll_ended() {
                prop_assert!(closing.remove(&association));
            }
            prop_assert!(closing.is_empty());
            prop_assert_eq!(pushed, popped + dropped);
        }
    }
}
