//! Reassembly of IP fragments: RFC 791 section 3.2, RFC 8200 section 4.5.
//!
//! A packet one of whose fragments overlaps another is given up with all that is still to come of
//! it (RFC 5722, and the same for IPv4). What fragments may take is bounded, for each source and
//! for all: the oldest packet makes room.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};
use airtcp_wire::fragment::{self, Fragment};
use airtcp_wire::icmp::Complaint;
use airtcp_wire::{ParseError, ip};
use tracing::debug;

use crate::counters::Counters;

use super::peers::network;
use super::secret::Keyed;
use super::{Host, HostConfig};

/// How long the rest of a packet is waited for: Linux's `ipfrag_time`, and RFC 8200 section 4.5.
const PATIENCE_V4: Duration = Duration::from_secs(30);
const PATIENCE_V6: Duration = Duration::from_secs(60);
/// How long what is still to come of a packet that was given up is refused. IPv4's identifications
/// are few, and may soon be those of other packets (RFC 4963).
const REFUSAL_V4: Duration = Duration::from_secs(1);

/// About what a packet takes beside its fragments, and a fragment beside its data.
const PACKET_COST: u64 = 512;
const PIECE_COST: u64 = 96;

/// What fragments of one packet have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    src: IpAddr,
    dst: IpAddr,
    id: u32,
    /// IPv6 does not tell packets apart by it.
    protocol: Option<u8>,
}

impl Key {
    fn of(fragment: &Fragment<'_>) -> Self {
        let Fragment { src, dst, id, protocol, .. } = *fragment;
        Self { src, dst, id, protocol: src.is_ipv4().then_some(protocol) }
    }
}

/// A packet of which not everything is there.
#[derive(Debug)]
struct Partial {
    key: Key,
    until: Instant,
    /// What stands before the payload, once the first fragment is there.
    start: Option<Vec<u8>>,
    /// The headers of that fragment, if its sender is to hear should the rest not come.
    quote: Option<Box<[u8]>>,
    /// The payload, by offset; no piece lies over another.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// How much of it there is.
    len: usize,
    /// How much of it there will be, once the last fragment is there.
    whole: Option<usize>,
    /// Which values of the ECN bits came: a bit for each.
    ecn: u8,
    /// It was given up, and what is still to come of it is refused.
    refused: bool,
    held: ByteCount,
}

/// What one source has here.
#[derive(Default, Debug)]
struct Source {
    held: ByteCount,
    /// Its packets, oldest first.
    packets: BTreeSet<u64>,
}

/// What a fragment did to its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    Kept,
    Duplicate,
    Overlap,
}

/// All packets of which fragments have arrived.
#[derive(Debug)]
pub(super) struct Fragments {
    /// By the order in which they began.
    packets: BTreeMap<u64, Partial>,
    started: u64,
    places: HashMap<Key, u64, Keyed>,
    sources: HashMap<IpAddr, Source, Keyed>,
    deadlines: BTreeSet<(Instant, u64)>,
    held: ByteCount,
}

impl Fragments {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self {
            packets: BTreeMap::new(),
            started: 0,
            places: HashMap::with_hasher(keyed.clone()),
            sources: HashMap::with_hasher(keyed),
            deadlines: BTreeSet::new(),
            held: ByteCount::ZERO,
        }
    }

    /// When the next packet is given up.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// What fragments take of memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> ByteCount {
        self.held
    }

    /// How many packets, and how many sources of such, there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.packets.len(), self.sources.len())
    }

    /// Gives up the next packet that has waited too long.
    fn give_up(&mut self, now: Instant, counters: &mut Counters) -> Option<Partial> {
        let &(_, number) = self.deadlines.first().filter(|(at, _)| *at <= now)?;
        let packet = self.remove(number)?;
        // Else it was counted when it was given up.
        if !packet.refused {
            debug!(src = %packet.key.src, "a packet's fragments did not all come");
            let v4 = packet.key.src.is_ipv4();
            count(v4, &mut counters.ip_reasm_timeout, &mut counters.ip6_reasm_timeout);
            count_failure(counters, v4);
        }
        Some(packet)
    }

    /// Takes a fragment, and gives the packet if it was the last one missing.
    fn take(
        &mut self,
        now: Instant,
        config: &HostConfig,
        fragment: &Fragment<'_>,
        counters: &mut Counters,
    ) -> Option<Vec<u8>> {
        let v4 = fragment.src.is_ipv4();
        let number = self.place(now, Key::of(fragment));
        let packet = self.packets.get_mut(&number)?;
        if packet.refused {
            debug!(src = %fragment.src, "fragment of a packet given up");
            count_failure(counters, v4);
            return None;
        }
        match packet.add(fragment) {
            Fit::Kept => {}
            Fit::Duplicate => return None,
            Fit::Overlap => {
                debug!(src = %fragment.src, "fragments overlap, their packet is given up");
                count(v4, &mut counters.ip_ext_reasm_overlaps, &mut counters.ip6_reasm_overlaps);
                count_failure(counters, v4);
                packet.refuse();
                if v4 {
                    self.hasten(number, now + REFUSAL_V4);
                }
            }
        }
        let packet = self.packets.get(&number)?;
        if packet.is_whole() {
            let packet = self.remove(number)?;
            let Some(ecn) = packet.ecn(fragment.ecn) else {
                debug!(src = %fragment.src, "fragments disagree on ECN");
                count_failure(counters, v4);
                return None;
            };
            let pieces = packet.pieces.values().map(Vec::as_slice);
            return build(packet.start?, pieces, ecn, v4, counters);
        }
        self.settle(number);
        self.make_room(config, fragment.src, counters);
        None
    }

    /// The number of a fragment's packet, which begins with it if it is the first to come.
    fn place(&mut self, now: Instant, key: Key) -> u64 {
        if let Some(&number) = self.places.get(&key) {
            return number;
        }
        let patience = if key.src.is_ipv4() { PATIENCE_V4 } else { PATIENCE_V6 };
        let (number, until) = (self.started, now + patience);
        self.started += 1;
        self.places.insert(key, number);
        self.deadlines.insert((until, number));
        self.sources.entry(network(key.src)).or_default().packets.insert(number);
        let packet = Partial {
            key,
            until,
            start: None,
            quote: None,
            pieces: BTreeMap::new(),
            len: 0,
            whole: None,
            ecn: 0,
            refused: false,
            held: ByteCount::ZERO,
        };
        self.packets.insert(number, packet);
        number
    }

    /// Has a packet be forgotten at `at`, if that is sooner.
    fn hasten(&mut self, number: u64, at: Instant) {
        let Some(packet) = self.packets.get_mut(&number) else { return };
        self.deadlines.remove(&(packet.until, number));
        packet.until = packet.until.min(at);
        self.deadlines.insert((packet.until, number));
    }

    /// Brings what is held up to date with a packet.
    fn settle(&mut self, number: u64) {
        let Some(packet) = self.packets.get_mut(&number) else { return };
        let Some(source) = self.sources.get_mut(&network(packet.key.src)) else { return };
        let held = packet.cost();
        self.held = self.held - packet.held + held;
        source.held = source.held - packet.held + held;
        packet.held = held;
    }

    fn remove(&mut self, number: u64) -> Option<Partial> {
        let packet = self.packets.remove(&number)?;
        self.places.remove(&packet.key);
        self.deadlines.remove(&(packet.until, number));
        self.held -= packet.held;
        let network = network(packet.key.src);
        if let Some(source) = self.sources.get_mut(&network) {
            source.held -= packet.held;
            source.packets.remove(&number);
            if source.packets.is_empty() {
                self.sources.remove(&network);
            }
        }
        Some(packet)
    }

    /// Gives up the oldest packets, first of a source that has too much, then of all.
    fn make_room(&mut self, config: &HostConfig, src: IpAddr, counters: &mut Counters) {
        loop {
            let source = self.sources.get(&network(src));
            let crowded = source.filter(|source| source.held > config.peer_quota.fragments);
            let oldest = match crowded {
                Some(source) => source.packets.first().copied(),
                None if self.held > config.quota.fragments => self.packets.keys().next().copied(),
                None => return,
            };
            let Some(packet) = oldest.and_then(|number| self.remove(number)) else { return };
            debug!(src = %packet.key.src, "a packet's fragments make room for others");
            if !packet.refused {
                count_failure(counters, packet.key.src.is_ipv4());
            }
        }
    }
}

impl Partial {
    fn add(&mut self, fragment: &Fragment<'_>) -> Fit {
        let (offset, end) = (fragment.offset, fragment.end());
        if self.pieces.get(&offset).is_some_and(|piece| piece == fragment.payload) {
            // RFC 8200 section 4.5: what the network duplicated does no harm.
            return Fit::Duplicate;
        }
        let next = self.pieces.range(offset..).next();
        let before = self.pieces.range(..offset).next_back();
        let last_end = self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.len());
        let over_next = next.is_some_and(|(at, _)| *at < end);
        let over_before = before.is_some_and(|(at, piece)| at + piece.len() > offset);
        // The end of a packet is where its last fragment says, and nothing lies beyond.
        let beyond = self.whole.is_some_and(|whole| end > whole || !fragment.more);
        if over_next || over_before || beyond || (!fragment.more && last_end > end) {
            return Fit::Overlap;
        }
        if offset == 0 {
            self.start = Some(fragment.start());
            self.quote = fragment.headers_to_quote().map(Box::from);
        }
        if !fragment.more {
            self.whole = Some(end);
        }
        self.len += fragment.payload.len();
        self.ecn |= 1 << (fragment.ecn & 0b11);
        self.pieces.insert(offset, fragment.payload.to_vec());
        Fit::Kept
    }

    fn refuse(&mut self) {
        self.refused = true;
        self.pieces.clear();
        (self.start, self.quote) = (None, None);
    }

    /// The first fragment as it came, if its sender is to hear that the rest did not.
    fn first(&self) -> Option<Vec<u8>> {
        Some([self.quote.as_deref()?, self.pieces.get(&0)?].concat())
    }

    fn is_whole(&self) -> bool {
        !self.refused && self.start.is_some() && self.whole == Some(self.len)
    }

    /// RFC 3168 section 5.3: one that met congestion speaks for all; but of some that can tell and
    /// some that cannot nothing is to be made. `last` is what the fragment had that came last.
    fn ecn(&self, last: u8) -> Option<u8> {
        const NOT_ECT: u8 = 1 << 0b00;
        const CE: u8 = 0b11;
        match self.ecn {
            seen if seen & NOT_ECT != 0 && seen != NOT_ECT => None,
            seen if seen & 1 << CE != 0 => Some(CE),
            _ => Some(last),
        }
    }

    fn cost(&self) -> ByteCount {
        let start = self.start.as_ref().map_or(0, Vec::len)
            + self.quote.as_ref().map_or(0, |quote| quote.len());
        let data = if self.refused { 0 } else { self.len };
        ByteCount::from(start + data)
            + ByteCount(PACKET_COST + PIECE_COST * self.pieces.len() as u64)
    }
}

/// A packet of its parts.
fn build<'a>(
    mut packet: Vec<u8>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    ecn: u8,
    v4: bool,
    counters: &mut Counters,
) -> Option<Vec<u8>> {
    pieces.into_iter().for_each(|piece| packet.extend_from_slice(piece));
    if !fragment::complete(&mut packet, ecn) {
        debug!("fragments make more than a packet");
        count_failure(counters, v4);
        return None;
    }
    count(v4, &mut counters.ip_reasm_oks, &mut counters.ip6_reasm_oks);
    Some(packet)
}

fn count_failure(counters: &mut Counters, v4: bool) {
    count(v4, &mut counters.ip_reasm_fails, &mut counters.ip6_reasm_fails);
}

fn count(v4: bool, in_v4: &mut u64, in_v6: &mut u64) {
    *(if v4 { in_v4 } else { in_v6 }) += 1;
}

impl Host {
    /// Takes a fragment, and then the packet if it is whole.
    pub(super) fn on_fragment(&mut self, now: Instant, packet: &Packet) {
        let v4 = packet.data.first().is_none_or(|first| first >> 4 != 6);
        let fragment = match fragment::parse(&packet.data) {
            Ok(fragment) => fragment,
            Err(error) => {
                debug!(%error, "fragment refused");
                self.count_fragment(v4);
                count_failure(&mut self.counters, v4);
                return;
            }
        };
        if !self.is_for_us(fragment.src, fragment.dst, fragment.protocol) {
            return;
        }
        self.count_fragment(v4);
        // A timer may be late; what it would give up is not to be made whole.
        self.give_up_fragments(now);
        let Some(data) = self.fragments.take(now, &self.config, &fragment, &mut self.counters)
        else {
            return;
        };
        // The checksum of the whole was nobody's to look at.
        let whole = Packet::new(data);
        match ip::parse(&whole.data) {
            Ok(datagram) => self.on_datagram(now, &datagram, &whole),
            // Fragments of fragments: nobody needs them.
            Err(error @ ParseError::Fragment) => {
                debug!(%error, "fragment refused");
                count_failure(&mut self.counters, v4);
            }
            Err(error) => self.count_bad(!v4, error),
        }
    }

    /// Gives up packets whose fragments did not all come in time, and tells who sent them.
    pub(super) fn give_up_fragments(&mut self, now: Instant) {
        while let Some(packet) = self.fragments.give_up(now, &mut self.counters) {
            if let Some(first) = packet.first() {
                let Key { src, dst, .. } = packet.key;
                self.complain(now, src, dst, Complaint::Reassembly, &first);
            }
        }
    }

    /// Counts a packet that is the only fragment of itself (RFC 6946), as Linux does.
    pub(super) fn count_atomic(&mut self) {
        self.counters.ip6_reasm_reqds += 1;
        self.counters.ip6_reasm_oks += 1;
    }

    fn count_fragment(&mut self, v4: bool) {
        count(v4, &mut self.counters.ip_reasm_reqds, &mut self.counters.ip6_reasm_reqds);
    }
}
