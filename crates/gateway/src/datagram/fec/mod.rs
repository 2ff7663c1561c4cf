//! Repair frames: Reed-Solomon shards that recover lost data frames.
//!
//! The sender closes a group when it is full, or after three quarters of a round trip, so that a
//! lost frame is repaired about a round trip after it was sent. A shard is a frame without its
//! sequence number, preceded by its length (2 bytes), and padded with zeros to the longest of its
//! group.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use airtcp_types::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::debug;

use super::frame::{HEADER, Repair, Report};
use super::loss::Loss;

/// The most data frames in a group. Only the parts of a single datagram may be more.
pub(crate) const MOST_COUNT: u8 = 160;
/// The assumed round-trip time before the first sample.
const ROUND_TRIP: Duration = Duration::from_millis(60);
/// The shortest and the longest time until a group that is not full is closed.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(200);
/// The repair rate that is allowed in addition to the limit, in bytes per second. It is little for
/// the path, and much for a sparse flow such as a call or a game.
const ALLOWANCE: f64 = 8000.0;
/// The most repair bytes saved for later, unless the last group alone has earned more.
const SAVED: f64 = 65_536.0;
/// The number of send times kept for measuring the round-trip time, and the least time between two.
const STAMPS: usize = 512;
const STAMP: Duration = Duration::from_millis(2);
/// The number of frames kept for recovery, and the most bytes of them.
const KEPT: u32 = 1024;
const KEPT_BYTES: usize = 2 << 20;
/// The number of groups kept, and the most repair bytes of each.
const GROUPS: usize = 16;
const GROUP_BYTES: usize = 256 << 10;
/// The most bytes of frames in the group of an accepted repair.
const DECODED_BYTES: usize = 1 << 20;

/// The largest data frame whose repair frame has at most `max` bytes.
pub(crate) const fn room(max: usize) -> usize {
    ((max - HEADER) & !1) + 2
}

/// Returns the shard of a frame, without padding.
fn shard(frame: &[u8]) -> Option<Vec<u8>> {
    let (flow, rest) = (frame.get(..4)?, frame.get(HEADER..)?);
    let len = u16::try_from(flow.len() + rest.len()).ok()?;
    Some([&len.to_be_bytes(), flow, rest].concat())
}

/// Returns the frame of a shard; `None` if the shard is malformed.
fn frame(seq: u32, shard: &[u8]) -> Option<Vec<u8>> {
    let (len, body) = shard.split_first_chunk()?;
    let (body, padding) = body.split_at_checked(u16::from_be_bytes(*len).into())?;
    let (flow, rest) = body.split_first_chunk::<4>()?;
    let is_sound = padding.iter().all(|&byte| byte == 0);
    is_sound.then(|| [&flow[..], &seq.to_be_bytes(), rest].concat())
}

/// The sending side: groups data frames and produces their repairs.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// The most repair bytes per byte sent.
    limit: f64,
    loss: Loss,
    round_trip: Duration,
    stamps: VecDeque<(u32, Instant)>,
    /// The shards of the open group, and when it was opened.
    group: Vec<Vec<u8>>,
    opened: Instant,
    /// The number of further frames that must be in this group.
    together: u8,
    /// The repair bytes that may be sent now.
    saved: f64,
    saved_at: Instant,
}

/// The repairs of a group.
#[derive(Debug)]
pub(crate) struct Repairs {
    pub(crate) count: u8,
    pub(crate) shards: Vec<Vec<u8>>,
}

impl Encoder {
    /// Creates an encoder that adds at most `limit` percent, plus [`ALLOWANCE`]; 0 disables
    /// repairs.
    pub(crate) fn new(limit: u8) -> Self {
        Self {
            limit: f64::from(limit) / 100.0,
            loss: Loss::default(),
            round_trip: ROUND_TRIP,
            stamps: VecDeque::new(),
            group: Vec::new(),
            opened: Instant::ZERO,
            together: 0,
            saved: 0.0,
            saved_at: Instant::ZERO,
        }
    }

    /// Handles a report of the receiver.
    pub(crate) fn on_report(&mut self, now: Instant, report: Report) {
        if !self.loss.on_report(now, report) {
            return;
        }
        let is_after = |seq: u32| report.highest.wrapping_sub(seq).cast_signed() >= 0;
        let reported = self.stamps.iter().take_while(|(seq, _)| is_after(*seq)).count();
        let sent = self.stamps.drain(..reported).next_back().map(|(_, at)| at);
        let hold = Duration::from_millis(report.hold.into());
        if let Some(sample) = sent.and_then(|at| now.since(at).checked_sub(hold)) {
            self.round_trip = (self.round_trip * 7 + sample) / 8;
        }
    }

    /// Puts the next `count` frames into one group, so that no repairs are sent between them.
    /// Returns the repairs of the open group if they do not fit into it.
    pub(crate) fn keep_together(&mut self, now: Instant, count: u8) -> Option<Repairs> {
        self.together = count;
        let is_full = self.group.len() + usize::from(count) > usize::from(MOST_COUNT);
        if is_full { self.close(now) } else { None }
    }

    /// Handles a data frame that is being sent; returns the repairs of the group that it completes.
    pub(crate) fn on_sent(&mut self, now: Instant, seq: u32, frame: &[u8]) -> Option<Repairs> {
        self.stamp(now, seq);
        self.together = self.together.saturating_sub(1);
        if self.limit == 0.0 || (self.group.is_empty() && !self.loss.is_relevant()) {
            return None;
        }
        if self.group.is_empty() {
            self.opened = now;
        }
        self.group.push(shard(frame)?);
        self.saved += self.limit * frame.len() as f64;
        let is_complete = self.group.len() >= usize::from(MOST_COUNT) || self.due() <= Some(now);
        if is_complete && self.together == 0 { self.close(now) } else { None }
    }

    /// Records the send time of a frame.
    pub(crate) fn stamp(&mut self, now: Instant, seq: u32) {
        let is_due = self.stamps.back().is_none_or(|(_, last)| now.since(*last) >= STAMP);
        if is_due && self.stamps.len() < STAMPS {
            self.stamps.push_back((seq, now));
        }
    }

    /// Returns when the open group must be closed.
    pub(crate) fn due(&self) -> Option<Instant> {
        let patience = (self.round_trip * 3 / 4).clamp(SHORTEST, LONGEST);
        (!self.group.is_empty()).then(|| self.opened + patience)
    }

    /// Closes the open group. The caller must send the repairs at once.
    pub(crate) fn close(&mut self, now: Instant) -> Option<Repairs> {
        self.saved += ALLOWANCE * now.since(self.saved_at).as_secs_f64();
        self.saved_at = now;
        let mut group = std::mem::take(&mut self.group);
        let earned = self.limit * group.iter().map(Vec::len).sum::<usize>() as f64;
        self.saved = self.saved.min(SAVED.max(earned));
        let longest = group.iter().map(Vec::len).max()?.next_multiple_of(2);
        let count = u8::try_from(group.len()).ok()?;
        let affordable = (self.saved / (HEADER + longest) as f64) as u8;
        let repairs = self.loss.repairs(count).min(affordable);
        if repairs == 0 {
            return None;
        }
        group.iter_mut().for_each(|shard| shard.resize(longest, 0));
        match reed_solomon_simd::encode(count.into(), repairs.into(), &group) {
            Ok(shards) => {
                self.saved -= (shards.len() * (HEADER + longest)) as f64;
                Some(Repairs { count, shards })
            }
            Err(error) => {
                debug!(%error, count, repairs, "no repairs");
                None
            }
        }
    }
}

/// The receiving side: keeps frames and recovers lost ones.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// A permit for each byte that may be kept; several decoders may share it.
    room: Arc<Semaphore>,
    /// The last frames, by sequence number modulo [`KEPT`]; empty while no repairs arrive.
    kept: Vec<Option<Kept>>,
    bytes: usize,
    groups: VecDeque<Group>,
    /// The number of frames since the last repair.
    idle: u32,
}

#[derive(Debug)]
struct Kept {
    seq: u32,
    shard: Stored,
    recovered: bool,
}

/// A shard, with the permits for its bytes.
#[derive(Debug)]
struct Stored {
    bytes: Vec<u8>,
    _permits: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Group {
    first: u32,
    count: u8,
    repairs: u8,
    shards: Vec<(u8, Stored)>,
    done: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)))
    }
}

impl Decoder {
    /// Creates a decoder that keeps frames and repairs while `room` has permits for their bytes.
    pub(crate) fn new(room: Arc<Semaphore>) -> Self {
        Self { room, kept: Vec::new(), bytes: 0, groups: VecDeque::new(), idle: 0 }
    }

    /// Drops all state.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.room.clone());
    }

    /// Handles a data frame that has arrived; returns the lost frames that it recovers.
    pub(crate) fn on_frame(&mut self, seq: u32, frame: &[u8]) -> Vec<Vec<u8>> {
        if self.kept.is_empty() {
            return Vec::new();
        }
        self.idle += 1;
        if self.idle > 4 * KEPT {
            self.clear();
            return Vec::new();
        }
        let Some(shard) = shard(frame).and_then(|shard| self.store(shard)) else {
            return Vec::new();
        };
        self.keep(Kept { seq, shard, recovered: false });
        let of_it = |group: &Group| seq.wrapping_sub(group.first) < group.count.into();
        match self.groups.iter().position(|group| !group.done && of_it(group)) {
            Some(at) => self.recover(at),
            None => Vec::new(),
        }
    }

    /// Handles a repair frame that has arrived; returns the lost frames that it recovers.
    pub(crate) fn on_repair(&mut self, repair: &Repair<'_>) -> Vec<Vec<u8>> {
        if self.kept.is_empty() {
            self.kept.resize_with(KEPT as usize, || None);
        }
        self.idle = 0;
        let Repair { seq, count, repairs, index, shard } = *repair;
        if usize::from(count) * shard.len() > DECODED_BYTES {
            return Vec::new();
        }
        let first = seq.wrapping_sub(index.into()).wrapping_sub(count.into());
        let same =
            |group: &Group| (group.first, group.count, group.repairs) == (first, count, repairs);
        let at = self.groups.iter().position(same).unwrap_or_else(|| {
            if self.groups.len() == GROUPS {
                self.groups.pop_front();
            }
            self.groups.push_back(Group { first, count, repairs, shards: Vec::new(), done: false });
            self.groups.len() - 1
        });
        let group = &self.groups[at];
        let is_new = group.shards.iter().all(|(other, _)| *other != index);
        let fits = group.shards.first().is_none_or(|(_, other)| other.bytes.len() == shard.len());
        let bytes = (group.shards.len() + 1) * shard.len();
        if group.done || !is_new || !fits || bytes > GROUP_BYTES {
            return Vec::new();
        }
        let Some(shard) = self.store(shard.to_vec()) else { return Vec::new() };
        self.groups[at].shards.push((index, shard));
        self.recover(at)
    }

    /// Acquires the permits for a shard; `None` if there are not enough.
    fn store(&self, bytes: Vec<u8>) -> Option<Stored> {
        let permits = u32::try_from(bytes.len()).ok()?;
        let permits = self.room.clone().try_acquire_many_owned(permits).ok()?;
        Some(Stored { bytes, _permits: permits })
    }

    /// Whether a frame was already recovered.
    pub(crate) fn has_recovered(&self, seq: u32) -> bool {
        self.get(seq).is_some_and(|kept| kept.recovered)
    }

    fn get(&self, seq: u32) -> Option<&Kept> {
        let kept = self.kept.get((seq % KEPT) as usize)?;
        kept.as_ref().filter(|kept| kept.seq == seq)
    }

    /// Keeps a frame; returns whether there was room.
    fn keep(&mut self, kept: Kept) -> bool {
        let Some(place) = self.kept.get_mut((kept.seq % KEPT) as usize) else { return false };
        self.bytes -= place.take().map_or(0, |old| old.shard.bytes.len());
        let fits = self.bytes + kept.shard.bytes.len() <= KEPT_BYTES;
        if fits {
            self.bytes += kept.shard.bytes.len();
            *place = Some(kept);
        }
        fits
    }

    fn recover(&mut self, at: usize) -> Vec<Vec<u8>> {
        let group = &self.groups[at];
        let frames = (0..group.count).map(|index| (index, group.first.wrapping_add(index.into())));
        let missing: Vec<_> = frames.clone().filter(|(_, seq)| self.get(*seq).is_none()).collect();
        if missing.len() > group.shards.len() {
            return Vec::new();
        }
        let len = group.shards.first().map_or(0, |(_, shard)| shard.bytes.len());
        let present = frames
            .filter_map(|(index, seq)| {
                Some((usize::from(index), self.get(seq)?.shard.bytes.clone()))
            })
            .map(|(index, mut shard)| {
                shard.resize(len.max(shard.len()), 0);
                (index, shard)
            });
        let repairs = group.shards.iter().map(|(index, shard)| (usize::from(*index), &shard.bytes));
        let (count, most) = (group.count.into(), group.repairs.into());
        // Decoding also fails if a frame is longer than the repairs of its group.
        let decoded = match missing.is_empty() {
            true => Ok(BTreeMap::new()),
            false => reed_solomon_simd::decode(count, most, present, repairs),
        };
        let mut decoded = decoded.unwrap_or_else(|error| {
            debug!(%error, "group not decoded");
            BTreeMap::new()
        });
        let group = &mut self.groups[at];
        group.done = true;
        group.shards = Vec::new();
        let mut recovered = Vec::new();
        for (index, seq) in missing {
            let shard = decoded.remove(&usize::from(index));
            let Some(shard) = shard.and_then(|shard| self.store(shard)) else { continue };
            let frame = frame(seq, &shard.bytes);
            // A recovered frame that is not kept is not delivered: the original may still arrive,
            // and would then be delivered a second time.
            if self.keep(Kept { seq, shard, recovered: true }) {
                recovered.extend(frame);
            }
        }
        recovered
    }
}

#[cfg(test)]
mod tests;
