//! One end of the radio: its queue, retransmission, and delivery.

use std::collections::VecDeque;

use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, Packet};

use super::air::{CW_MAX, CW_MIN};
use super::{AirCounters, FrameNo};
use crate::channel::Draw;
use crate::ip;
use crate::ledger::{DropCause, Ledger};
use crate::queue::ControlLaw;
use crate::spec::Way;

/// A packet on its way over the air.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) no: FrameNo,
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
    pub(super) queue: VecDeque<Frame>,
    /// Lost frames, each with the time at which the sender detects the loss.
    pub(super) aside: VecDeque<(Instant, Frame)>,
    /// Packets at the other end, each with its time of arrival.
    pub(super) arrived: VecDeque<(Instant, Packet)>,
    /// The remaining slots of the backoff, counted from DIFS after the medium became idle.
    pub(super) slots: u32,
    cw: u32,
    /// When the queue last became non-empty.
    pub(super) ready: Instant,
    highest: Option<FrameNo>,
    backoff: Stream,
    pub(super) fortune: Fortune,
    pub(super) ledger: Ledger,
    pub(super) counters: AirCounters,
    /// CoDel's control law, if the queue marks.
    pub(super) law: Option<ControlLaw>,
}

impl End {
    pub(super) fn new(seed: u64, way: Way) -> Self {
        let stream = |draw: Draw| draw.stream(seed, way);
        Self {
            queue: VecDeque::new(),
            aside: VecDeque::new(),
            arrived: VecDeque::new(),
            slots: 0,
            cw: CW_MIN,
            ready: Instant::ZERO,
            highest: None,
            backoff: stream(Draw::Backoff),
            fortune: Fortune {
                announcement: stream(Draw::Announcement),
                data: stream(Draw::Loss),
                ack: stream(Draw::LinkAck),
                damage: stream(Draw::Corrupt),
            },
            ledger: Ledger::default(),
            counters: AirCounters::default(),
            law: None,
        }
    }

    /// The number of frames in the queue or lost and not yet detected, without the one in
    /// transmission.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len() + self.aside.len()
    }

    /// Prepares for a frame that is about to be queued. If the queue is empty and the medium busy,
    /// a backoff is drawn.
    pub(super) fn make_ready(&mut self, now: Instant, is_busy: bool) {
        if self.queue.is_empty() {
            self.ready = now;
            if is_busy && self.slots == 0 {
                self.draw_backoff();
            }
        }
    }

    /// Marks a frame that leaves the queue for the first time, if the control law demands it and
    /// the packet can be marked.
    pub(super) fn mark(&mut self, now: Instant, frame: &mut Frame) {
        let Some(law) = self.law.as_mut().filter(|_| frame.tries == 0 && frame.passes == 0) else {
            return;
        };
        let backlog = self.queue.iter().map(|frame| ByteCount::from(frame.packet.len()));
        let backlog = backlog.fold(ByteCount::ZERO, |sum, len| sum + len);
        let can_mark = ip::is_ecn_capable(&frame.packet.data);
        if law.marks(now, frame.since, backlog, can_mark) && ip::set_ce(&mut frame.packet.data) {
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
            self.counters.duplicates += 1;
            return;
        }
        frame.arrived = true;
        let counters = &mut self.ledger.counters;
        counters.forwarded += 1;
        counters.forwarded_bytes += ByteCount::from(packet.len());
        // RFC 4737 section 3.3.
        counters.reordered += u64::from(self.highest.is_some_and(|highest| frame.no < highest));
        self.highest = self.highest.max(Some(frame.no));
        self.arrived.push_back((at, packet));
    }
}
