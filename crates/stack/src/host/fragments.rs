//! Reassembly of IP fragments (RFC 791 section 3.2, RFC 8200 section 4.5).
//!
//! A packet with overlapping fragments is dropped, including fragments that arrive later (RFC 5722;
//! IPv4 is handled in the same way). The memory of fragments is limited, per source and in total:
//! the oldest packet is dropped first.

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

/// The time limit for the rest of a packet: Linux's `ipfrag_time`, and RFC 8200 section 4.5.
const PATIENCE_V4: Duration = Duration::from_secs(30);
const PATIENCE_V6: Duration = Duration::from_secs(60);
/// How long further fragments of a dropped packet are refused. The short identifications of IPv4
/// are soon reused by other packets (RFC 4963).
const REFUSAL_V4: Duration = Duration::from_secs(1);

/// The approximate overhead of a packet, and of a fragment.
const PACKET_COST: u64 = 512;
const PIECE_COST: u64 = 96;

/// The fields that identify the fragments of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    src: IpAddr,
    dst: IpAddr,
    id: u32,
    /// `None` for IPv6, where the protocol does not identify the packet.
    protocol: Option<u8>,
}

impl Key {
    fn of(fragment: &Fragment<'_>) -> Self {
        let Fragment { src, dst, id, protocol, .. } = *fragment;
        Self { src, dst, id, protocol: src.is_ipv4().then_some(protocol) }
    }
}

/// An incomplete packet.
#[derive(Debug)]
struct Partial {
    key: Key,
    until: Instant,
    /// The headers of the whole packet, once the first fragment has arrived.
    start: Option<Vec<u8>>,
    /// The headers of the first fragment, if its sender gets an ICMP error when the rest does not
    /// arrive.
    quote: Option<Box<[u8]>>,
    /// The payload by offset, without overlaps.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// The number of payload bytes that have arrived.
    len: usize,
    /// The length of the whole payload, once the last fragment has arrived.
    whole: Option<usize>,
    /// The ECN values that have arrived: one bit for each value.
    ecn: u8,
    /// Whether the packet was dropped, so that further fragments are refused.
    refused: bool,
    held: ByteCount,
}

/// The packets of one source.
#[derive(Default, Debug)]
struct Source {
    held: ByteCount,
    /// The incomplete packets of the source, oldest first.
    packets: BTreeSet<u64>,
}

/// The result of adding a fragment to its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    Kept,
    Duplicate,
    Overlap,
}

/// The packets with at least one received fragment.
#[derive(Debug)]
pub(super) struct Fragments {
    /// By order of arrival of their first fragments.
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

    /// The time when the next packet expires.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The memory of fragments.
    #[cfg(test)]
    pub(super) fn held(&self) -> ByteCount {
        self.held
    }

    /// The number of packets and of their sources.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.packets.len(), self.sources.len())
    }

    /// Removes the next packet whose time limit has expired.
    fn give_up(&mut self, now: Instant, counters: &mut Counters) -> Option<Partial> {
        let &(_, number) = self.deadlines.first().filter(|(at, _)| *at <= now)?;
        let packet = self.remove(number)?;
        // A refused packet was counted when it was refused.
        if !packet.refused {
            debug!(src = %packet.key.src, "packet dropped: reassembly timed out");
            let v4 = packet.key.src.is_ipv4();
            count(v4, &mut counters.ip_reasm_timeout, &mut counters.ip6_reasm_timeout);
            count_failure(counters, v4);
        }
        Some(packet)
    }

    /// Adds a fragment; returns the packet if it is complete.
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
            debug!(src = %fragment.src, "fragment dropped: packet already dropped");
            count_failure(counters, v4);
            return None;
        }
        match packet.add(fragment) {
            Fit::Kept => {}
            Fit::Duplicate => return None,
            Fit::Overlap => {
                debug!(src = %fragment.src, "packet dropped: overlapping fragments");
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
                debug!(src = %fragment.src, "packet dropped: conflicting ECN fields");
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

    /// The number of a fragment's packet; creates the packet if this is its first fragment.
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

    /// Moves the deadline of a packet forward to `at`, if that is earlier.
    fn hasten(&mut self, number: u64, at: Instant) {
        let Some(packet) = self.packets.get_mut(&number) else { return };
        self.deadlines.remove(&(packet.until, number));
        packet.until = packet.until.min(at);
        self.deadlines.insert((packet.until, number));
    }

    /// Updates the memory accounting after a change of a packet.
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

    /// Drops the oldest packets: first those of a source beyond its limit, then those of all
    /// sources.
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
            debug!(src = %packet.key.src, "packet dropped: fragment quota reached");
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
            // RFC 8200 section 4.5: an exact duplicate is harmless.
            return Fit::Duplicate;
        }
        let next = self.pieces.range(offset..).next();
        let before = self.pieces.range(..offset).next_back();
        let last_end = self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.len());
        let over_next = next.is_some_and(|(at, _)| *at < end);
        let over_before = before.is_some_and(|(at, piece)| at + piece.len() > offset);
        // The last fragment sets the end of the packet; nothing may be beyond it.
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

    /// The first fragment as received, if its sender gets an ICMP error because the rest did not
    /// arrive.
    fn first(&self) -> Option<Vec<u8>> {
        Some([self.quote.as_deref()?, self.pieces.get(&0)?].concat())
    }

    fn is_whole(&self) -> bool {
        !self.refused && self.start.is_some() && self.whole == Some(self.len)
    }

    /// The ECN field of the packet (RFC 3168 section 5.3): CE if one fragment has it; `None` if
    /// Not-ECT is mixed with other values. `last` is the field of the last fragment that arrived.
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

/// Builds a packet from its parts.
fn build<'a>(
    mut packet: Vec<u8>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    ecn: u8,
    v4: bool,
    counters: &mut Counters,
) -> Option<Vec<u8>> {
    pieces.into_iter().for_each(|piece| packet.extend_from_slice(piece));
    if !fragment::complete(&mut packet, ecn) {
        debug!("packet dropped: too long after reassembly");
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
    /// Handles a fragment, and the packet if it is complete.
    pub(super) fn on_fragment(&mut self, now: Instant, packet: &Packet) {
        let v4 = packet.data.first().is_none_or(|first| first >> 4 != 6);
        let fragment = match fragment::parse(&packet.data) {
            Ok(fragment) => fragment,
            Err(error) => {
                debug!(%error, "fragment dropped");
                self.count_fragment(v4);
                count_failure(&mut self.counters, v4);
                return;
            }
        };
        if !self.is_for_us(fragment.src, fragment.dst, fragment.protocol) {
            return;
        }
        self.count_fragment(v4);
        // A timer may be late; a packet that it would drop must not be completed.
        self.give_up_fragments(now);
        let Some(data) = self.fragments.take(now, &self.config, &fragment, &mut self.counters)
        else {
            return;
        };
        // The device could not verify the checksum of the whole packet.
        let whole = Packet::new(data);
        match ip::parse(&whole.data) {
            Ok(datagram) => self.on_datagram(now, &datagram, &whole),
            // Fragments of fragments are not supported.
            Err(error @ ParseError::Fragment) => {
                debug!(%error, "reassembled packet dropped");
                count_failure(&mut self.counters, v4);
            }
            Err(error) => self.count_bad(!v4, error),
        }
    }

    /// Drops packets that did not become complete in time, and sends ICMP errors to their senders.
    pub(super) fn give_up_fragments(&mut self, now: Instant) {
        while let Some(packet) = self.fragments.give_up(now, &mut self.counters) {
            if let Some(first) = packet.first() {
                let Key { src, dst, .. } = packet.key;
                self.complain(now, src, dst, Complaint::Reassembly, &first);
            }
        }
    }

    /// Counts a packet that is its own only fragment (RFC 6946), as Linux does.
    pub(super) fn count_atomic(&mut self) {
        self.counters.ip6_reasm_reqds += 1;
        self.counters.ip6_reasm_oks += 1;
    }

    fn count_fragment(&mut self, v4: bool) {
        count(v4, &mut self.counters.ip_reasm_reqds, &mut self.counters.ip6_reasm_reqds);
    }
}
