//! The state machine of the emulated radio.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use airtcp_types::{Instant, Packet};

use super::air::{Air, SLOT};
use super::end::{End, Frame};
use super::mobile::Mobile;
use super::{Arq, FrameNo, MobileNo, RadioSpec, Unsent};
use crate::Way;
use crate::ledger::DropCause;

/// The size of the packet that a mobile may send in a turn.
const TURN: usize = 1500;

/// A radio with its two ends. See the [module](super).
#[derive(Clone, Debug)]
pub struct Radio {
    pub(super) spec: RadioSpec,
    pub(super) arq: Arq,
    air: Air,
    /// The channel of the mobiles that have not joined.
    pub(super) others: Mobile,
    /// The channels of those that have.
    pub(super) mobiles: BTreeMap<MobileNo, Mobile>,
    pub(super) ends: [End; 2],
    /// Both ends share the first lane; on a plain radio each end has its own.
    pub(super) lanes: [Lane; 2],
    next: [u64; 2],
    /// The station's frames that may still arrive. The set is never iterated.
    pub(super) held: HashSet<FrameNo>,
}

/// A medium.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// The time since which the medium is idle, if it is.
    idle_since: Instant,
    pub(super) exchange: Option<Exchange>,
}

/// The frames in transmission, and for each whether its sender will know that it arrived.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    until: Instant,
    pub(super) frames: [Option<(Frame, bool)>; 2],
}

impl Radio {
    /// Creates the radio that `spec` describes.
    pub fn new(spec: &RadioSpec, arq: Arq) -> Self {
        let air = Air::new(spec);
        let turn = air.exchange(TURN, arq, spec.delay);
        Self {
            arq,
            air,
            others: Mobile::new(spec),
            mobiles: BTreeMap::new(),
            ends: Way::BOTH.map(|way| End::new(spec.seed, way, turn)),
            lanes: Default::default(),
            next: [0; 2],
            held: HashSet::new(),
            spec: spec.clone(),
        }
    }

    /// Returns the channel of a mobile.
    pub(super) fn mobile(&self, of: MobileNo) -> &Mobile {
        self.mobiles.get(&of).unwrap_or(&self.others)
    }

    fn lane_of(&self, way: Way) -> usize {
        if self.air.is_plain() { way as usize } else { 0 }
    }

    pub(super) fn lane(&self, way: Way) -> &Lane {
        &self.lanes[self.lane_of(way)]
    }

    /// Whether an end that wants to send now must wait for an exchange to end.
    fn is_busy(&self, way: Way) -> bool {
        !self.air.is_plain() && self.lane(way).exchange.is_some()
    }

    /// Queues a packet at an end, with its former number if it was taken back.
    pub(super) fn push(
        &mut self,
        now: Instant,
        way: Way,
        of: MobileNo,
        packet: Packet,
        again: Option<Unsent>,
    ) -> Option<FrameNo> {
        self.advance(now);
        let is_busy = self.is_busy(way);
        let end = &mut self.ends[way as usize];
        let arrived = again.is_some_and(|unsent| unsent.arrived);
        end.ledger.counters.received += u64::from(!arrived);
        let of = end.queues.place(of);
        if end.queues.of(of).waiting() >= self.spec.queue {
            if !arrived {
                end.ledger.dropped(now, DropCause::QueueFull, packet);
            }
            return None;
        }
        let order = self.next[way as usize];
        self.next[way as usize] += 1;
        let no = again.map_or(FrameNo(order), |unsent| unsent.no);
        end.make_ready(now, is_busy);
        let (tries, passes) = (0, 0);
        let frame = Frame { no, order, of, packet, since: now, tries, passes, arrived };
        end.queues.push_back(frame);
        if way == Way::Forth {
            self.held.insert(no);
        }
        self.advance(now);
        Some(no)
    }

    /// Processes everything due up to `now`, in the order of time.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(at) = self.next_step().filter(|at| *at <= now) {
            self.take_back(at);
            for lane in 0..self.lanes.len() {
                let exchange = &mut self.lanes[lane].exchange;
                match exchange.take_if(|exchange| exchange.until <= at) {
                    Some(exchange) => self.end(lane, exchange),
                    None if exchange.is_none() => self.begin(lane, at),
                    None => {}
                }
            }
        }
    }

    /// The next instant of change, without the arrival of packets that are in the propagation
    /// delay.
    pub(super) fn next_step(&self) -> Option<Instant> {
        let turns = Way::BOTH.into_iter().filter_map(|way| match &self.lane(way).exchange {
            Some(exchange) => Some(exchange.until),
            None => self.start_of(way),
        });
        let known = self.ends.iter().filter_map(|end| end.queues.known_at());
        turns.chain(known).min()
    }

    /// When an end starts its next try, if no other end starts before.
    fn start_of(&self, way: Way) -> Option<Instant> {
        let end = &self.ends[way as usize];
        let idle = self.lane(way).idle_since + self.air.gap();
        (!end.queues.is_empty()).then(|| end.ready.max(idle + SLOT * end.slots))
    }

    /// Returns the frames that are known to be lost at `now` to the head of their queues.
    fn take_back(&mut self, now: Instant) {
        for way in Way::BOTH {
            let is_busy = self.is_busy(way);
            let end = &mut self.ends[way as usize];
            while let Some(frame) = end.queues.take_lost(now) {
                end.make_ready(now, is_busy);
                end.queues.push_front(frame);
            }
        }
    }

    /// Starts the exchange that is due at `now`; the frames of both ends collide.
    fn begin(&mut self, lane: usize, now: Instant) {
        let starts =
            Way::BOTH.map(|way| self.lane_of(way) == lane && self.start_of(way) == Some(now));
        if starts == [false; 2] {
            return;
        }
        let is_collision = starts == [true; 2];
        let idle = now.since(self.lanes[lane].idle_since + self.air.gap());
        let idle = idle.as_nanos() / SLOT.as_nanos();
        let mut exchange = Exchange { until: now, frames: [None, None] };
        for way in Way::BOTH {
            let end = &mut self.ends[way as usize];
            if !starts[way as usize] {
                // This end hears the other one, and continues its countdown after the exchange.
                end.slots = end.slots.saturating_sub(u32::try_from(idle).unwrap_or(u32::MAX));
            } else if let Some(mut frame) = end.queues.pop() {
                end.mark(now, &mut frame);
                let (length, is_known) = self.attempt(now, way, &mut frame, is_collision);
                exchange.until = exchange.until.max(now + length);
                exchange.frames[way as usize] = Some((frame, is_known));
            }
        }
        self.lanes[lane].exchange = Some(exchange);
    }

    /// Makes one try; returns its duration, and whether the sender will know that the frame
    /// arrived. A failure of a frame with link ACKs takes as long as a success, because the sender
    /// waits for the ACK.
    fn attempt(
        &mut self,
        now: Instant,
        way: Way,
        frame: &mut Frame,
        is_collision: bool,
    ) -> (Duration, bool) {
        let mobile = self.mobiles.get(&frame.of).unwrap_or(&self.others);
        let air = &mobile.air;
        let is_heard = !is_collision && mobile.reception(now).is_connected;
        let end = &mut self.ends[way as usize];
        let size = frame.packet.len();
        // Each cause draws, also if another one has already lost the frame.
        let announcement_hit = end.fortune.announcement.chance(air.announcement_error());
        let is_hit = end.fortune.data.chance(air.data_error(size));
        let ack_hit = end.fortune.ack.chance(air.ack_error());
        frame.tries += 1;
        let announcement = air.announcement();
        let is_announced = is_heard && !announcement_hit;
        let length = if announcement > Duration::ZERO && !is_announced {
            announcement
        } else {
            air.exchange(size, self.arq, self.spec.delay)
        };
        let arrives = now + announcement + air.data(size) + self.spec.delay;
        end.count(frame.of, |counters| {
            counters.tries += 1;
            counters.collisions += u64::from(is_collision);
            counters.air_time += length;
        });
        end.queues.charge(frame.of, length);
        let is_known = if !is_announced {
            false
        } else if is_hit {
            mobile.deliver_corrupt && end.deliver_damaged(arrives, frame) && !ack_hit
        } else if self.arq.acknowledges() && ack_hit {
            let copy = frame.packet.clone();
            end.deliver(arrives, frame, copy);
            false
        } else {
            let packet = std::mem::replace(&mut frame.packet, Packet::new(Vec::new()));
            end.deliver(arrives, frame, packet);
            true
        };
        (length, is_known || (!self.arq.acknowledges() && frame.arrived))
    }

    /// Ends an exchange: the medium becomes idle, and each frame is delivered, retransmitted or
    /// dropped.
    fn end(&mut self, lane: usize, exchange: Exchange) {
        self.lanes[lane].idle_since = exchange.until;
        for (way, sent) in Way::BOTH.into_iter().zip(exchange.frames) {
            if let Some((frame, is_known)) = sent {
                self.settle(exchange.until, way, frame, is_known);
            }
        }
    }

    fn settle(&mut self, now: Instant, way: Way, mut frame: Frame, is_known: bool) {
        let most = u64::from(self.spec.tries) * u64::from(self.spec.passes);
        let is_again = !is_known && self.arq.acknowledges() && frame.tries < self.spec.tries;
        let end = &mut self.ends[way as usize];
        if !self.air.is_plain() {
            end.back_off(is_again);
        }
        if !is_known {
            match self.arq {
                Arq::Mac | Arq::MacLink if is_again => return end.queues.push_front(frame),
                Arq::MacLink if way == Way::Forth && frame.passes + 1 < self.spec.passes => {
                    frame.tries = 0;
                    frame.passes += 1;
                    end.count(frame.of, |counters| counters.passed_again += 1);
                    end.ledger.retried(now, frame.passes + 1, &frame.packet);
                    return end.queues.push_back(frame);
                }
                Arq::Head if u64::from(frame.tries) < most => {
                    return end.queues.set_aside(now + self.spec.delay * 2, frame);
                }
                _ => {}
            }
        }
        if way == Way::Forth {
            self.held.remove(&frame.no);
        }
        if !frame.arrived {
            let is_connected = self.mobile(frame.of).reception(now).is_connected;
            let cause = if is_connected { self.loss_cause() } else { DropCause::LinkDown };
            self.ends[way as usize].ledger.dropped(now, cause, frame.packet);
        }
    }

    fn loss_cause(&self) -> DropCause {
        match self.arq {
            Arq::Off => DropCause::RandomLoss,
            _ => DropCause::GaveUp,
        }
    }
}
