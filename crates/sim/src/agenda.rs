//! The event queue.

use airtcp_types::Instant;

const NOWHERE: u32 = u32::MAX;

/// A priority queue with at most one deadline for each number from zero on; at the same time, the
/// lower number is first.
///
/// It is a binary heap with an index of positions, so that a deadline can be moved or removed.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    heap: Vec<(Instant, u32)>,
    /// The position of each number in the heap.
    places: Vec<u32>,
}

impl Agenda {
    pub(crate) const fn new() -> Self {
        Self { heap: Vec::new(), places: Vec::new() }
    }

    /// Sets, moves or removes the deadline of number `who`.
    pub(crate) fn set(&mut self, who: u32, at: Option<Instant>) {
        if self.places.len() <= who as usize {
            self.places.resize(who as usize + 1, NOWHERE);
        }
        match (self.places[who as usize], at) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(at)) => {
                self.heap.push((at, who));
                self.places[who as usize] = self.heap.len() as u32 - 1;
                self.rise(self.heap.len() - 1);
            }
            (place, None) => self.remove(place as usize),
            (place, Some(at)) => {
                let place = place as usize;
                if self.heap[place].0 != at {
                    self.heap[place].0 = at;
                    self.settle(place);
                }
            }
        }
    }

    /// Returns the earliest deadline, and its number.
    pub(crate) fn first(&self) -> Option<(Instant, u32)> {
        self.heap.first().copied()
    }

    /// Removes the earliest deadline if it is `now` or before; returns its number.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let (_, who) = self.first().filter(|(at, _)| *at <= now)?;
        self.remove(0);
        Some(who)
    }

    fn remove(&mut self, place: usize) {
        self.places[self.heap[place].1 as usize] = NOWHERE;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.places[self.heap[place].1 as usize] = place as u32;
            self.settle(place);
        }
    }

    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above] <= self.heap[place] {
                break;
            }
            self.swap(above, place);
            place = above;
        }
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(mut least) = self.heap.get(left).map(|_| left) else { return };
            if self.heap.get(left + 1).is_some_and(|right| *right < self.heap[left]) {
                least = left + 1;
            }
            if self.heap[place] <= self.heap[least] {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one].1 as usize] = one as u32;
        self.places[self.heap[other].1 as usize] = other as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use airtcp_types::rng::Stream;

    use super::*;

    /// The first entry always agrees with a search through a plain map.
    #[test]
    fn the_agenda_agrees_with_a_map() {
        let mut random = Stream::new(1, 0);
        let (mut agenda, mut plain) = (Agenda::new(), BTreeMap::new());
        for _ in 0..20_000 {
            let who = random.below(40) as u32;
            if random.chance(0.3) {
                agenda.set(who, None);
                plain.remove(&who);
            } else {
                let at = Instant::from_nanos(random.below(100));
                agenda.set(who, Some(at));
                plain.insert(who, at);
            }
            if random.chance(0.2) {
                let now = Instant::from_nanos(50);
                let due = plain.iter().map(|(who, at)| (*at, *who)).min();
                let due = due.filter(|(at, _)| *at <= now).map(|(_, who)| who);
                assert_eq!(agenda.pop_due(now), due);
                due.map(|who| plain.remove(&who));
            }
            assert_eq!(agenda.first(), plain.iter().map(|(who, at)| (*at, *who)).min());
        }
    }
}
