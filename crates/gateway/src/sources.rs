//! Counts and limits the connections of each near gateway.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use crate::carried::{Resets, lock};

/// Limits on the carrier connections of a far gateway; further ones are refused.
///
/// Pending connections are those without a destination yet: opened ahead, with an incomplete
/// request, or dialling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most connections.
    pub connections: usize,
    /// The most connections of one near gateway.
    pub connections_per_near: usize,
    /// The most pending connections.
    pub pending: usize,
    /// The most pending connections of one near gateway.
    pub pending_per_near: usize,
}

impl Default for Limits {
    /// 65,536 connections and 8,192 pending ones; one near gateway may have half of each.
    fn default() -> Self {
        Self {
            connections: 65_536,
            connections_per_near: 32_768,
            pending: 8_192,
            pending_per_near: 4_096,
        }
    }
}

/// The near gateways that have connections.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    limits: Limits,
    all: Arc<Mutex<All>>,
}

#[derive(Default, Debug)]
struct All {
    used: Used,
    sources: HashMap<IpAddr, Source>,
}

#[derive(Default, Debug)]
struct Source {
    used: Used,
    /// The last known instance of the near gateway.
    near: Option<u64>,
    resets: Arc<Resets>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Used {
    connections: usize,
    pending: usize,
}

/// A connection's share of the limits; dropping it frees the share.
#[derive(Debug)]
pub(crate) struct Place {
    all: Arc<Mutex<All>>,
    near: IpAddr,
    resets: Arc<Resets>,
    pending: bool,
}

impl Sources {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, all: Arc::default() }
    }

    /// Reserves a place for a pending connection of `near`; `None` if a limit is reached.
    pub(crate) fn enter(&self, near: IpAddr) -> Option<Place> {
        let mut all = lock(&self.all);
        let limits = self.limits;
        let own = all.sources.get(&near).map_or(Used::default(), |source| source.used);
        let room = all.used.connections < limits.connections
            && all.used.pending < limits.pending
            && own.connections < limits.connections_per_near
            && own.pending < limits.pending_per_near;
        if !room {
            return None;
        }
        all.used.enter();
        let source = all.sources.entry(near).or_default();
        source.used.enter();
        let resets = source.resets.clone();
        Some(Place { all: self.all.clone(), near, resets, pending: true })
    }

    /// Records the instance of a near gateway. If another instance was known before, resets its
    /// connections and returns true.
    pub(crate) fn on_hello(&self, near: IpAddr, instance: u64) -> bool {
        let mut all = lock(&self.all);
        let Some(source) = all.sources.get_mut(&near) else { return false };
        let other = source.near.replace(instance).is_some_and(|known| known != instance);
        if other {
            source.resets.reset();
        }
        other
    }

    /// The number of near gateways, and the number of their connections.
    pub(crate) fn count(&self) -> (usize, usize) {
        let all = lock(&self.all);
        (all.sources.len(), all.used.connections)
    }
}

impl Used {
    const fn enter(&mut self) {
        self.connections += 1;
        self.pending += 1;
    }

    const fn leave(&mut self, pending: bool) {
        self.connections -= 1;
        self.pending -= pending as usize;
    }
}

impl Place {
    /// The handle that resets all connections of the place's near gateway.
    pub(crate) fn resets(&self) -> Arc<Resets> {
        self.resets.clone()
    }

    /// Counts the connection as no longer pending.
    pub(crate) fn establish(&mut self) {
        if std::mem::take(&mut self.pending) {
            let mut all = lock(&self.all);
            all.used.pending -= 1;
            if let Some(source) = all.sources.get_mut(&self.near) {
                source.used.pending -= 1;
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        all.used.leave(self.pending);
        let Some(source) = all.sources.get_mut(&self.near) else { return };
        source.used.leave(self.pending);
        if source.used.connections == 0 {
            all.sources.remove(&self.near);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_gateway_may_not_take_all_places_and_gives_back_those_it_had() {
        let limits =
            Limits { connections: 5, connections_per_near: 3, pending: 4, pending_per_near: 2 };
        let sources = Sources::new(limits);
        let enter = |last| sources.enter(IpAddr::from([10, 77, 0, last]));
        let (mut one, mut two) = (enter(2).unwrap(), enter(2).unwrap());
        assert!(enter(2).is_none(), "two are pending");
        one.establish();
        two.establish();
        let three = enter(2).unwrap();
        assert!(enter(2).is_none(), "three connections");
        let (four, _five) = (enter(3).unwrap(), enter(3).unwrap());
        assert!(enter(4).is_none(), "five connections of all");
        assert_eq!(sources.count(), (2, 5));
        drop((one, two, three));
        assert_eq!(sources.count(), (1, 2));
        drop(four);
        assert!(enter(4).is_some());
    }

    #[test]
    fn another_instance_resets_what_the_one_before_had() {
        let sources = Sources::new(Limits::default());
        let near = IpAddr::from([10, 77, 0, 2]);
        let place = sources.enter(near).unwrap();
        assert!(!sources.on_hello(near, 1));
        assert!(!sources.on_hello(near, 1));
        assert_eq!(place.resets().count(), 0);
        assert!(sources.on_hello(near, 2));
        assert_eq!(place.resets().count(), 1);
    }
}
