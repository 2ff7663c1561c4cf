//! One end of the radio: its queues, retransmission, and delivery.

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Packet};
use airtcp_wire::is_accepted;

use super::air::{CW_MAX, CW_MIN};
use super::frame::{Received, decode, encode};
use super::queues::Queues;
use super::{AirCounters, FrameNo, MobileNo};
use crate::channel::Draw;
use crate::ip;
use crate::ledger::{Damage, DropCause, Ledger};
use crate::spec::Way;

/// The length of the range in which a damaged frame has flipped bits: a CRC-32 detects every such
/// error.
const DAMAGED_BITS: u64 = 32;

/// A packet on its way over the air.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) no: FrameNo,
    /// The order in which the end accepted the frames. It differs from that of the numbers for a
    /// frame that was taken back and passed again.
    pub(super) order: u64,
    /// The mobile that sends or receives it: [`MobileNo::OTHERS`], or one that has joined.
    pub(super) of: MobileNo,
    pub(super) packet: Packet,
    /// When the packet was accepted.
    pub(super) since: Instant,
    /// Tries since the link layer passed the frame to the MAC.
    pub(super) tries: u32,
    /// How often the link layer passed it to the MAC again.
    pub(super) passes: u32,
    /// Whether a copy has arrived: the receiver knows its number.
    pub(super) arrived: bool,
}

/// The random streams of the frames of one end; each try draws once from each of them.
#[derive(Clone, Debug)]
pub(super) struct Fortune {
    pub(super) announcement: Stream,
    pub(super) data: Stream,
    pub(super) ack: Stream,
    pub(super) damage: Stream,
}

#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) queues: Queues,
    /// Packets at the other end, each with its time of arrival and its mobile.
    pub(super) arrived: VecDeque<(Instant, MobileNo, Packet)>,
    /// The remaining slots of the backoff, counted from DIFS after the medium became idle.
    pub(super) slots: u32,
    cw: u32,
    /// When a queue last became non-empty while all were empty.
    pub(super) ready: Instant,
    backoff: Stream,
    pub(super) fortune: Fortune,
    pub(super) ledger: Ledger,
    /// The counters of all mobiles.
    pub(super) counters: AirCounters,
}

impl End {
    /// Creates an end whose mobiles take turns of the length `turn`.
    pub(super) fn new(seed: u64, way: Way, turn: Duration) -> Self {
        let stream = |draw: Draw| draw.stream(seed, way);
        Self {
            queues: Queues::new(turn),
            arrived: VecDeque::new(),
            slots: 0,
            cw: CW_MIN,
            ready: Instant::ZERO,
            backoff: stream(Draw::Backoff),
            fortune: Fortune {
                announcement: stream(Draw::Announcement),
                data: stream(Draw::Loss),
                ack: stream(Draw::LinkAck),
                damage: stream(Draw::Corrupt),
            },
            ledger: Ledger::default(),
            counters: AirCounters::default(),
        }
    }

    /// Changes the counters of a mobile, and those of all.
    pub(super) fn count(&mut self, of: MobileNo, change: impl Fn(&mut AirCounters)) {
        change(&mut self.counters);
        change(&mut self.queues.of_mut(of).counters);
    }

    /// Prepares for a frame that is about to be queued. If all queues are empty and the medium
    /// busy, a backoff is drawn.
    pub(super) fn make_ready(&mut self, now: Instant, is_busy: bool) {
        if self.queues.is_empty() {
            self.ready = now;
            if is_busy && self.slots == 0 {
                self.draw_backoff();
            }
        }
    }

    /// Marks a frame that leaves the queue for the first time, if the control law demands it and
    /// the packet can be marked.
    pub(super) fn mark(&mut self, now: Instant, frame: &mut Frame) {
        if frame.tries > 0 || frame.passes > 0 {
            return;
        }
        let queue = self.queues.of_mut(frame.of);
        let Some(law) = &mut queue.law else { return };
        let can_mark = ip::is_ecn_capable(&frame.packet.data);
        if law.marks(now, frame.since, queue.bytes, can_mark) && ip::set_ce(&mut frame.packet.data)
        {
            self.ledger.marked(now, DropCause::CoDel, &frame.packet);
        }
    }

    /// Draws the backoff after a try. The window doubles with each failure, and is reset by a
    /// success or a new pass.
    pub(super) fn back_off(&mut self, after_failure: bool) {
        self.cw = if after_failure { (self.cw * 2 + 1).min(CW_MAX) } else { CW_MIN };
        self.draw_backoff();
    }

    fn draw_backoff(&mut self) {
        self.slots = self.backoff.below(u64::from(self.cw) + 1) as u32;
    }

    /// Delivers the packet of a frame to the other end at `at`, unless it was delivered before.
    pub(super) fn deliver(&mut self, at: Instant, frame: &mut Frame, packet: Packet) {
        if frame.arrived {
            return self.count(frame.of, |counters| counters.duplicates += 1);
        }
        frame.arrived = true;
        let counters = &mut self.ledger.counters;
        counters.forwarded += 1;
        counters.forwarded_bytes += ByteCount::from(packet.len());
        let highest = &mut self.queues.of_mut(frame.of).highest;
        // RFC 4737 section 3.3.
        counters.reordered += u64::from(highest.is_some_and(|highest| frame.order < highest));
        *highest = (*highest).max(Some(frame.order));
        self.arrived.push_back((at, frame.of, packet));
    }

    /// Flips bits of the frame, and delivers its packet if the frame's header and the packet's IPv4
    /// header are intact. Returns whether it did.
    pub(super) fn deliver_damaged(&mut self, at: Instant, frame: &mut Frame) -> bool {
        let mut bytes = encode(frame.no, &frame.packet.data);
        let damage = &mut self.fortune.damage;
        let bits = bytes.len() as u64 * 8;
        let first = damage.below(bits);
        let mut flipped = 0;
        for bit in first..(first + DAMAGED_BITS).min(bits) {
            if bit == first || damage.chance(0.5) {
                bytes[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
                flipped += 1;
            }
        }
        let Received::Damaged { packet: data, .. } = decode(&bytes) else { return false };
        if !ip::has_sound_header(&data) {
            return false;
        }
        let is_changed = data != frame.packet.data;
        let packet = Packet { data, ..frame.packet.clone() };
        if is_changed && !frame.arrived {
            let unnoticed = is_accepted(&packet.data);
            let header = ip::header_len(&packet.data).unwrap_or(0);
            let header = packet.data.get(..header) != frame.packet.data.get(..header);
            self.ledger.corrupted(at, Damage { bits: flipped, header, unnoticed }, &packet);
        }
        self.deliver(at, frame, packet);
        true
    }
}
