//! Clients of an RRTP server that send arbitrary packets on their own connections.

use std::time::Duration;

use airtcp_rrtp::{ConnectionId, NetworkProfile, Phase};
use airtcp_types::Rate;

use super::{ASKED_CAP, LIARS, MEMORY, SIZE, World, address, kind};
use crate::feed::Feed;

/// The version of the wire format.
const VERSION: u8 = 2;

pub(super) const SYN: u8 = 0;
pub(super) const SYN_ECHO: u8 = 1;
pub(super) const START: u8 = 2;
pub(super) const DATA: u8 = 4;
pub(super) const ACK: u8 = 5;
pub(super) const SACK: u8 = 8;
pub(super) const FEEDBACK: u8 = 9;

/// A client with its own connection to the server, and what it knows.
#[derive(Default)]
pub(super) struct Liar {
    pub(super) cookie: [u8; 16],
    pub(super) id: Option<ConnectionId>,
    /// The packet size that it announced.
    pub(super) size: u16,
    /// The limit that it announced, what it acknowledged, and the newest transmission it received.
    pub(super) limit: u64,
    pub(super) acked: u64,
    pub(super) newest: u64,
    pub(super) nonces: Vec<bool>,
}

impl World {
    /// Sends a START with a fresh, an old or a false cookie.
    pub(super) fn greet(&mut self, feed: &mut Feed<'_>) {
        let (which, bits) = (feed.choice(LIARS), feed.byte());
        if bits & 3 != 0 {
            self.lie(which, SYN, 0, &[0; 24]);
        }
        let liar = &mut self.liars[which];
        let mut body = liar.cookie.to_vec();
        body[usize::from(bits >> 4)] ^= u8::from(bits & 7 == 7);
        let size = [64, SIZE, 200, 65, u16::MAX, 63][feed.choice(6)];
        let window = u32::from(feed.word()) << if bits & 4 == 0 { 0 } else { 16 };
        if liar.id.is_none() {
            (liar.size, liar.limit) = (size, window.into());
        }
        body.extend([bits & 8, 0]);
        body.extend(size.to_be_bytes());
        body.extend(window.to_be_bytes());
        self.lie(which, START, 0, &body);
    }

    /// Makes a call of the server's application for a liar's connection.
    pub(super) fn call(&mut self, feed: &mut Feed<'_>) {
        let (which, bits) = (feed.choice(LIARS), feed.byte());
        let Some(id) = self.liars[which].id else { return };
        let (server, now) = (&mut self.ends[1].endpoint, self.now);
        match bits & 7 {
            0 => {
                server.release(now, id);
                self.liars[which].id = None;
            }
            1 => server.abort(now, id),
            _ => {
                let asked = u64::from(feed.word()) << (bits >> 3);
                let is_high = asked > ASKED_CAP;
                let profile = NetworkProfile {
                    send_rate: Some(Rate::from_bits_per_sec(asked)),
                    round_trip_time: Some(Duration::from_millis(feed.word().into())),
                    loss_rate: Some(f64::from(feed.word()) / 30_000.0),
                };
                let before = server.counters().rate_capped;
                server
                    .reconfigure_as_asked(now, id, kind(bits >> 2), profile)
                    .expect("it is there");
                assert_eq!(server.counters().rate_capped - before, u64::from(is_high));
                let rate = server.info(id).map_or(0, |info| info.rate.bits_per_sec());
                assert!(rate <= ASKED_CAP, "{rate} where {asked} was asked");
            }
        }
    }

    /// Sends an arbitrary report. The server accepts it exactly if it is plausible and its nonce
    /// sum is correct.
    pub(super) fn report(&mut self, feed: &mut Feed<'_>) {
        let (which, bits) = (feed.choice(LIARS), feed.byte());
        let liar = &self.liars[which];
        let end = liar.nonces.len() as u64;
        let near = |number: u64, feed: &mut Feed<'_>| {
            let off = match feed.byte() {
                0..180 => 0,
                180..210 => u32::from(feed.byte() & 31).wrapping_neg(),
                210..240 => u32::from(feed.byte() & 31),
                _ => u32::from(feed.word()) << 16,
            };
            (number as u32).wrapping_add(off)
        };
        let words = [
            near(if bits & 1 == 0 { end } else { liar.acked }, feed),
            near(end + 50, feed),
            near(liar.newest, feed),
        ];
        let next = expand(liar.acked, words[0]);
        let limit = expand(liar.limit, words[1]);
        let newest = expand(liar.newest + 1, words[2]);
        let is_false = bits & 0xe == 0xe;
        let known = liar.nonces.iter().take(next as usize);
        let sum = known.fold(is_false, |sum, nonce| sum ^ nonce);
        let kind = [ACK, SACK, FEEDBACK, SACK][usize::from(bits >> 4 & 3)];
        let mut body = encode(&[words[0], words[1], words[2], 0, 0]);
        let mut is_sound = next <= end && newest <= liar.newest && limit >= next;
        if kind == FEEDBACK {
            for _ in 0..8 {
                let word = u32::from(feed.word());
                body.extend((word << ((word & 1) * 15)).to_be_bytes());
            }
        } else if kind == SACK {
            let (mut from, mut named) = (0, 0);
            for _ in 0..=feed.choice(8) {
                let first = near(from.max(liar.acked) + 1, feed);
                let count = 1 + u16::from(feed.byte() >> if bits >> 6 == 0 { 7 } else { 1 });
                body.extend(first.to_be_bytes());
                body.extend((count | u16::from(bits >> 7) << 15).to_be_bytes());
                let first = expand(liar.acked, first);
                is_sound &= first >= from;
                (from, named) = (first + u64::from(count), named + u64::from(count));
                is_sound &= from <= end;
            }
            // The ranges may name as many packets as fit, at six bytes each.
            let size = liar.size.min(self.size).max(68);
            is_sound &= named <= u64::from(size - 36) / 6;
        }
        let is_open = liar.id.and_then(|id| self.ends[1].endpoint.info(id));
        let is_open = is_open.is_some_and(|info| info.phase == Phase::Established);
        let acked = liar.acked;
        let before = *self.ends[1].endpoint.counters();
        let flags = feed.byte() & 7 | u8::from(sum) << 3;
        self.lie(which, kind, flags, &body);
        let after = self.ends[1].endpoint.counters();
        let is_lie = is_sound && is_false && next >= acked;
        if is_open {
            assert_eq!(after.optimistic_acks - before.optimistic_acks, u64::from(is_lie));
            let refused = after.implausible - before.implausible;
            // The measurements may be implausible, too.
            assert!(refused == u64::from(!is_sound) || (refused == 1 && kind == FEEDBACK));
        }
        if is_sound && !is_lie {
            let liar = &mut self.liars[which];
            (liar.acked, liar.limit) = (acked.max(next), liar.limit.max(limit));
        }
    }

    /// Sends consecutive data packets, from any number on.
    pub(super) fn data(&mut self, feed: &mut Feed<'_>) {
        let (which, flags, bits) = (feed.choice(LIARS), feed.byte(), feed.byte());
        let first = u32::from(feed.word()) << (bits & 15) >> 8;
        let (transmission, sent) = (u32::from(feed.word()), u32::from(feed.word()));
        let len = [0, 1, 36, 172, 1_372, 1_373][feed.choice(6)];
        for more in 0..=u32::from(feed.byte() >> 1) {
            let words = [first + more, transmission + more, sent + (more << (bits >> 4))];
            let mut body = encode(&words);
            body.resize(12 + len, 0);
            self.lie(which, DATA, flags, &body);
        }
    }

    pub(super) fn lie(&mut self, which: usize, kind: u8, flags: u8, body: &[u8]) {
        let bytes = packet(VERSION << 4 | kind, flags, which as u64, body);
        self.ends[1].endpoint.handle_datagram(self.now, address(2 + which), &bytes);
        self.drain(1);
        assert!(self.ends[1].endpoint.memory() <= MEMORY, "{}", self.ends[1].endpoint.memory());
    }
}

impl Liar {
    /// Handles a packet of the server.
    pub(super) fn hear(&mut self, kind: u8, bytes: &[u8]) {
        let word =
            |at: usize| bytes[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
        if kind == SYN_ECHO {
            self.cookie.copy_from_slice(&bytes[16..32]);
        } else if kind == DATA {
            if word(16) as usize == self.nonces.len() {
                self.nonces.push(bytes[1] & 64 != 0);
            }
            self.newest = self.newest.max(word(20).into());
        }
    }
}

/// The number nearest to `near` with these low 32 bits.
fn expand(near: u64, word: u32) -> u64 {
    near.saturating_add_signed(i64::from(word.wrapping_sub(near as u32) as i32))
}

fn encode(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A packet with the correct checksum.
pub(super) fn packet(first: u8, flags: u8, id: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first, flags, 0, 0];
    bytes.extend(id.to_be_bytes());
    let sum = crc(bytes.iter().chain(body));
    bytes.extend(sum.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// CRC-32C.
fn crc<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    !bytes.fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}
