//! The mobiles that a station knows: by name, or because it heard them.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::Duration;

use airtcp_link::radio::MobileNo;
use airtcp_types::{Instant, Packet};

use super::config::UNNAMED;
use super::freezer::{BEACON, Freezer, Reach};
use super::{Prefix, StationConfig, StationCounters};

/// How long a heard mobile must have been silent before another one may take its place.
const SILENCE: Duration = Duration::from_secs(60);

/// Why a station knows a mobile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// By its name in the configuration.
    Named,
    /// By an address from which the station received a packet.
    Heard,
    /// It is not known: all addresses of no known mobile count as one mobile.
    Others,
}

/// Packets that crossed the radio in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Traffic {
    /// Their number.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

impl Traffic {
    pub(super) fn count(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
    }
}

/// A mobile as the station sees it.
#[derive(Debug)]
pub(super) struct Mobile {
    /// The name in the configuration, or the address.
    pub(super) name: Arc<str>,
    pub(super) origin: Origin,
    pub(super) addresses: Vec<Prefix>,
    pub(super) freezer: Freezer,
    /// The state that was noticed last, and since when.
    pub(super) reach: Reach,
    pub(super) since: Instant,
    /// How often it came out of reach.
    pub(super) departures: u64,
    pub(super) counters: StationCounters,
    /// Packets to the mobile, and from it.
    pub(super) traffic: [Traffic; 2],
    /// Packets dropped because its queue at the radio was full.
    pub(super) queue_dropped: u64,
    /// When the station received its last packet.
    heard_at: Instant,
    /// Its entry in [`Mobiles::deadlines`].
    deadline: Option<Instant>,
}

impl Mobile {
    fn new(name: &str, origin: Origin, addresses: Vec<Prefix>, freezer: Freezer) -> Self {
        Self {
            name: name.into(),
            origin,
            addresses,
            freezer,
            reach: Reach::There,
            since: Instant::ZERO,
            departures: 0,
            counters: StationCounters::default(),
            traffic: [Traffic::default(); 2],
            queue_dropped: 0,
            heard_at: Instant::ZERO,
            deadline: None,
        }
    }

    /// Stores the state of the mobile; returns the former one.
    pub(super) fn notice(&mut self, now: Instant, reach: Reach) -> Reach {
        let before = std::mem::replace(&mut self.reach, reach);
        if before != reach {
            self.since = now;
            self.departures += u64::from(reach == Reach::Gone);
        }
        before
    }
}

/// All mobiles, by their numbers: the first one is [`MobileNo::OTHERS`]. A number that is not in
/// use stands for it.
#[derive(Debug)]
pub(super) struct Mobiles {
    all: Vec<Mobile>,
    /// The mobiles by their networks. The map is never iterated.
    by_network: HashMap<Prefix, MobileNo>,
    /// The lengths of these networks, the longest first, for IPv4 and IPv6.
    lengths: [Vec<u8>; 2],
    /// The heard mobiles, the one that has been silent for longest first.
    heard: BTreeSet<(Instant, MobileNo)>,
    most_heard: usize,
    /// The known mobiles that need attention at each call.
    urgent: BTreeSet<MobileNo>,
    /// The known mobiles that need attention at a time.
    deadlines: BTreeSet<(Instant, MobileNo)>,
    /// The mobile that was looked at last in turn.
    turn: usize,
    /// The limits of a mobile without limits of its own.
    hold: usize,
    hold_packets: usize,
    absence: Duration,
    /// Packets from an address that found no place among the heard mobiles.
    pub(super) full: u64,
}

impl Mobiles {
    pub(super) fn new(config: &StationConfig) -> Self {
        let mut mobiles = Self {
            all: Vec::new(),
            by_network: HashMap::new(),
            lengths: [Vec::new(), Vec::new()],
            heard: BTreeSet::new(),
            most_heard: config.heard,
            urgent: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            turn: 0,
            hold: config.hold.as_usize() / config.shares(),
            hold_packets: config.hold_packets.unwrap_or(usize::MAX),
            absence: config.absence,
            full: 0,
        };
        let others = Mobile::new(UNNAMED, Origin::Others, Vec::new(), mobiles.freezer());
        mobiles.all.push(others);
        for own in &config.mobile {
            let hold = own.hold.map_or(mobiles.hold, |hold| hold.as_usize());
            let most = own.hold_packets.unwrap_or(mobiles.hold_packets);
            let freezer = Freezer::new(hold, most, config.absence);
            let of = MobileNo(mobiles.all.len() as u16);
            own.addresses.iter().for_each(|network| mobiles.map(*network, of));
            let mobile = Mobile::new(&own.name, Origin::Named, own.addresses.clone(), freezer);
            mobiles.all.push(mobile);
        }
        mobiles
    }

    fn freezer(&self) -> Freezer {
        Freezer::new(self.hold, self.hold_packets, self.absence)
    }

    fn map(&mut self, network: Prefix, of: MobileNo) {
        self.by_network.insert(network, of);
        let lengths = &mut self.lengths[usize::from(!network.is_ipv4())];
        let place = lengths.binary_search_by(|len| network.len().cmp(len));
        if let Err(place) = place {
            lengths.insert(place, network.len());
        }
    }

    /// Whether all addresses count as one mobile.
    pub(super) fn is_one(&self) -> bool {
        self.all.len() == 1 && self.most_heard == 0
    }

    /// Whether a number is in use.
    pub(super) fn has(&self, of: MobileNo) -> bool {
        usize::from(of.0) < self.all.len()
    }

    /// Returns all numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = MobileNo> + use<> {
        (0..self.all.len()).map(|of| MobileNo(of as u16))
    }

    /// Returns the mobile with an address.
    pub(super) fn find(&self, address: IpAddr) -> MobileNo {
        let of = |len: &u8| self.by_network.get(&Prefix::of(address, *len)?).copied();
        let mut lengths = self.lengths[usize::from(address.is_ipv6())].iter();
        lengths.find_map(of).unwrap_or(MobileNo::OTHERS)
    }

    /// Returns the known mobile with a name.
    pub(super) fn named(&self, name: &str) -> Option<MobileNo> {
        self.numbers().skip(1).find(|of| *self[*of].name == *name)
    }

    /// Records that a packet of a mobile was received.
    pub(super) fn on_heard(&mut self, now: Instant, of: MobileNo) {
        let mobile = &mut self[of];
        if mobile.origin == Origin::Heard {
            let before = std::mem::replace(&mut mobile.heard_at, now);
            self.heard.remove(&(before, of));
            self.heard.insert((now, of));
        }
    }

    /// Returns the number for a mobile that is heard for the first time: an unused one, or that of
    /// the heard mobile that has been silent for longest, unless it is out of reach or something
    /// waits for it. A mobile that was given up has neither. Counts if there is none.
    pub(super) fn vacancy(
        &mut self,
        now: Instant,
        is_busy: impl Fn(MobileNo) -> bool,
    ) -> Option<MobileNo> {
        if self.heard.len() < self.most_heard {
            return Some(MobileNo(self.all.len() as u16));
        }
        let is_silent = |(at, _): &(Instant, MobileNo)| now.since(*at) >= SILENCE;
        while let Some((_, of)) = self.heard.first().copied().filter(is_silent) {
            let mobile = &self[of];
            let is_gone = mobile.reach == Reach::Gone || mobile.freezer.is_holding();
            if !is_gone && !is_busy(of) {
                return Some(of);
            }
            self.on_heard(now, of);
        }
        self.full += u64::from(self.most_heard > 0);
        None
    }

    /// Adds the mobile with an address at a [vacancy](Self::vacancy). Returns the name of the one
    /// that was there, whose counters are added to those of the others.
    pub(super) fn enter(
        &mut self,
        now: Instant,
        of: MobileNo,
        address: IpAddr,
    ) -> Option<Arc<str>> {
        let network = Prefix::host(address);
        let name = address.to_string();
        let new = Mobile::new(&name, Origin::Heard, vec![network], self.freezer());
        let new = Mobile { since: now, heard_at: now, ..new };
        let before = match self.all.get_mut(usize::from(of.0)) {
            Some(place) => Some(std::mem::replace(place, new)),
            None => {
                self.all.push(new);
                None
            }
        };
        if let Some(before) = &before {
            let others = &mut self.all[0];
            others.counters += before.counters;
            others.queue_dropped += before.queue_dropped;
            others.departures += before.departures;
            for (all, own) in others.traffic.iter_mut().zip(before.traffic) {
                all.packets += own.packets;
                all.bytes += own.bytes;
            }
            self.heard.remove(&(before.heard_at, of));
            self.urgent.remove(&of);
            if let Some(deadline) = before.deadline {
                self.deadlines.remove(&(deadline, of));
            }
            for network in &before.addresses {
                self.by_network.remove(network);
            }
        }
        self.map(network, of);
        self.heard.insert((now, of));
        before.map(|before| before.name)
    }

    /// Records when a known mobile needs attention: at the deadline of its freezer, and at each
    /// call if it is urgent.
    pub(super) fn watch(&mut self, of: MobileNo, is_urgent: bool) {
        if of == MobileNo::OTHERS {
            return;
        }
        if is_urgent {
            self.urgent.insert(of);
        } else {
            self.urgent.remove(&of);
        }
        let mobile = &mut self[of];
        let deadline = mobile.freezer.poll_timeout();
        let before = std::mem::replace(&mut mobile.deadline, deadline);
        if let Some(before) = before {
            self.deadlines.remove(&(before, of));
        }
        self.deadlines.extend(deadline.map(|at| (at, of)));
    }

    /// Returns the known mobiles that need attention, in the order of their numbers. If a deadline
    /// is reached, mobiles with a deadline soon after it are added, so that many absent mobiles
    /// share few timers.
    pub(super) fn due(&self, now: Instant) -> Vec<MobileNo> {
        let is_reached = self.deadlines.first().is_some_and(|(at, _)| *at <= now);
        let soon = if is_reached { now + BEACON / 2 } else { now };
        let reached = self.deadlines.iter().take_while(|(at, _)| *at <= soon).map(|(_, of)| *of);
        let mut due: Vec<_> = self.urgent.iter().copied().chain(reached).collect();
        due.sort_unstable();
        due.dedup();
        due
    }

    /// Returns the next mobile in turn; `None` if there is only one.
    pub(super) fn next_turn(&mut self) -> Option<MobileNo> {
        self.turn = (self.turn + 1) % self.all.len();
        (self.all.len() > 1).then_some(MobileNo(self.turn as u16))
    }

    /// Returns the earliest deadline of a mobile.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let others = self[MobileNo::OTHERS].freezer.poll_timeout();
        self.deadlines.first().map(|(at, _)| *at).into_iter().chain(others).min()
    }

    /// Returns the number of packets held for all mobiles, and the memory that they use.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let waiting = self.all.iter().map(|mobile| mobile.freezer.waiting());
        waiting.fold((0, 0), |(packets, bytes), more| (packets + more.0, bytes + more.1))
    }
}

impl Index<MobileNo> for Mobiles {
    type Output = Mobile;

    fn index(&self, of: MobileNo) -> &Mobile {
        self.all.get(usize::from(of.0)).unwrap_or(&self.all[0])
    }
}

impl IndexMut<MobileNo> for Mobiles {
    fn index_mut(&mut self, of: MobileNo) -> &mut Mobile {
        let at = if self.has(of) { usize::from(of.0) } else { 0 };
        &mut self.all[at]
    }
}

#[cfg(test)]
mod tests {
    use super::super::MobileConfig;
    use super::*;

    fn mobile(name: &str, addresses: &[&str]) -> MobileConfig {
        let addresses = addresses.iter().map(|text| Prefix::host_or_network(text).unwrap());
        MobileConfig {
            name: name.to_owned(),
            addresses: addresses.collect(),
            radio: String::new(),
            hold: None,
            hold_packets: None,
        }
    }

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn an_address_belongs_to_the_mobile_with_the_longest_prefix() {
        let config = StationConfig {
            mobile: vec![
                mobile("net", &["192.0.2.0/24", "2001:db8::/32"]),
                mobile("host", &["192.0.2.7", "2001:db8:1::/48"]),
            ],
            ..StationConfig::default()
        };
        let mobiles = Mobiles::new(&config);
        for (address, of) in [
            ("192.0.2.1", 1),
            ("192.0.2.7", 2),
            ("192.0.3.7", 0),
            ("2001:db8::1", 1),
            ("2001:db8:1::1", 2),
            ("2001:db9::1", 0),
        ] {
            assert_eq!(mobiles.find(address.parse().unwrap()), MobileNo(of), "{address}");
        }
        assert_eq!(mobiles.named("host"), Some(MobileNo(2)));
        assert_eq!((mobiles.named("others"), mobiles.named("")), (None, None));
        assert!(!mobiles.is_one() && Mobiles::new(&StationConfig::default()).is_one());
    }

    #[test]
    fn the_mobile_that_has_been_silent_for_longest_gives_its_place() {
        let config = StationConfig { heard: 2, ..StationConfig::default() };
        let mut mobiles = Mobiles::new(&config);
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        for (seconds, number) in [(0, 1), (1, 2)] {
            let of = mobiles.vacancy(at(seconds), |_| false).unwrap();
            assert_eq!(mobiles.enter(at(seconds), of, address(number)), None);
            assert_eq!(mobiles.find(address(number)), of);
        }
        assert_eq!((mobiles.vacancy(at(59), |_| false), mobiles.full), (None, 1));
        mobiles.on_heard(at(59), MobileNo(1));
        assert_eq!(mobiles.vacancy(at(60), |_| false), None);
        // The second one has been silent, but packets wait for it.
        assert_eq!((mobiles.vacancy(at(61), |of| of.0 == 2), mobiles.full), (None, 3));
        let of = mobiles.vacancy(at(119), |_| false).unwrap();
        assert_eq!(of, MobileNo(1));
        assert_eq!(mobiles.enter(at(119), of, address(3)).as_deref(), Some("10.0.0.1"));
        let found = [1, 2, 3].map(|number| mobiles.find(address(number)).0);
        assert_eq!(found, [0, 2, 1]);
        assert_eq!((mobiles.all.len(), mobiles.heard.len()), (3, 2));
    }

    #[test]
    fn limits_are_equal_shares_unless_a_mobile_has_its_own() {
        let own =
            MobileConfig { hold: Some(airtcp_types::ByteCount(9_000)), ..mobile("a", &["::1"]) };
        let config = StationConfig {
            hold: airtcp_types::ByteCount(20_000),
            heard: 2,
            mobile: vec![own],
            hold_packets: Some(2),
            ..StationConfig::default()
        };
        let mut mobiles = Mobiles::new(&config);
        let of = mobiles.vacancy(Instant::ZERO, |_| false).unwrap();
        mobiles.enter(Instant::ZERO, of, address(1));
        let has_room = |of: u16, len| mobiles[MobileNo(of)].freezer.has_room(len, true);
        assert!([0, 2].iter().all(|of| has_room(*of, 4_000) && !has_room(*of, 6_000)));
        assert!(has_room(1, 8_000) && !has_room(1, 10_000));
    }
}
