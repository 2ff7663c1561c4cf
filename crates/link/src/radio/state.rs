//! The radio's state machine.

use std::collections::BTreeSet;
use std::time::Duration;

use airtcp_types::{Event, Instant, Node, Packet, PortId};
use airtcp_wire::is_accepted;

use super::air::{Air, SLOT};
use super::end::{End, Frame};
use super::frame::{Received, decode, encode};
use super::power::Power;
use super::{AirCounters, Arq, FrameNo, RadioSpec};
use crate::channel::Outages;
use crate::ledger::{Damage, DropCause, Ledger};
use crate::queue::ControlLaw;
use crate::{Counters, Way, ip};

/// The length of the range in which a damaged frame has flipped bits: a CRC-32 detects every such
/// error.
const DAMAGED_BITS: u64 = 32;

/// A radio with its two ends. See the [module](super).
#[derive(Clone, Debug)]
pub struct Radio {
    arq: Arq,
    tries: u32,
    passes: u32,
    limit: usize,
    delay: Duration,
    deliver_corrupt: bool,
    air: Air,
    power: Power,
    outages: Option<Outages>,
    is_connected: bool,
    ends: [End; 2],
    /// Both ends share the first lane; on a plain radio each end has its own.
    lanes: [Lane; 2],
    next: [u64; 2],
    /// The station's frames that may still arrive.
    held: BTreeSet<FrameNo>,
}

/// A medium.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// The time since which the medium is idle, if it is.
    idle_since: Instant,
    exchange: Option<Exchange>,
}

/// The frames in transmission, and for each whether its sender will know that it arrived.
#[derive(Clone, Debug)]
struct Exchange {
    until: Instant,
    frames: [Option<(Frame, bool)>; 2],
}

impl Radio {
    /// Creates the radio that `spec` describes.
    pub fn new(spec: &RadioSpec, arq: Arq) -> Self {
        Self {
            arq,
            tries: spec.tries,
            passes: spec.passes,
            limit: spec.queue,
            delay: spec.delay,
            deliver_corrupt: spec.deliver_corrupt,
            air: Air::new(spec),
            power: Power::new(&spec.at, spec.rx_thresh, spec.fz_thresh),
            outages: Outages::new(None, &spec.down),
            is_connected: true,
            ends: Way::BOTH.map(|way| End::new(spec.seed, way)),
            lanes: Default::default(),
            next: [0; 2],
            held: BTreeSet::new(),
        }
    }

    /// Enables or disables events, as [`Link::set_events`](crate::Link::set_events) does.
    pub fn set_events(&mut self, on: bool) {
        self.ends.iter_mut().for_each(|end| end.ledger.set_events(on));
    }

    /// Makes the station's queue mark ECN-capable packets with CE (RFC 3168), by CoDel's control
    /// law with the parameters of RFC 8289. Other packets are not changed, and none is dropped.
    pub fn mark_congestion(&mut self) {
        self.ends[Way::Forth as usize].law = Some(ControlLaw::standard());
    }

    /// Queues a packet towards the mobile. Returns the frame's number, for [`holds`](Self::holds),
    /// or `None` if the queue is full and the packet is dropped.
    pub fn pass(&mut self, now: Instant, packet: Packet) -> Option<FrameNo> {
        self.push(now, Way::Forth, packet)
    }

    /// Whether the queue of an end accepts another packet at `now`.
    pub fn has_room(&mut self, now: Instant, way: Way) -> bool {
        self.advance(now);
        self.ends[way as usize].waiting() < self.limit
    }

    /// Removes the station's queued packets that are `wanted`, in the order in which they were
    /// passed; not the one in transmission. They are as if never passed: they are removed from the
    /// counter of received packets, and [`holds`](Self::holds) is false for them.
    pub fn drain(&mut self, now: Instant, wanted: impl Fn(&Packet) -> bool) -> Vec<Packet> {
        self.advance(now);
        let end = &mut self.ends[Way::Forth as usize];
        let (mut frames, queue) = std::mem::take(&mut end.queue)
            .into_iter()
            .partition::<Vec<_>, _>(|f| wanted(&f.packet));
        let (lost, aside) = std::mem::take(&mut end.aside)
            .into_iter()
            .partition::<Vec<_>, _>(|f| wanted(&f.1.packet));
        (end.queue, end.aside) = (queue.into(), aside.into());
        frames.extend(lost.into_iter().map(|(_, frame)| frame));
        frames.sort_by_key(|frame| frame.no);
        end.ledger.counters.received -= frames.len() as u64;
        for frame in &frames {
            self.held.remove(&frame.no);
        }
        frames.into_iter().map(|frame| frame.packet).collect()
    }

    /// Whether a frame of the station may still arrive: it is queued, in transmission, or will be
    /// retransmitted.
    pub fn holds(&self, frame: FrameNo) -> bool {
        self.held.contains(&frame)
    }

    /// Sets whether the mobile is in reach.
    pub fn set_connected(&mut self, now: Instant, is_connected: bool) {
        self.advance(now);
        self.is_connected = is_connected;
    }

    /// Whether a frame that is sent at `now` can be received.
    pub fn is_connected(&self, now: Instant) -> bool {
        let is_down = self.outages.as_ref().is_some_and(|outages| outages.is_down(now));
        !is_down && self.is_in_reach(now)
    }

    /// Whether the mobile is expected to receive a frame that is sent at `now`: the received power
    /// is above the threshold, and [`set_connected`](Self::set_connected) has not put it out of
    /// reach. Outages of the schedule are not announced.
    pub fn is_in_reach(&self, now: Instant) -> bool {
        self.is_connected && self.power.is_in_reach(now)
    }

    /// Whether the received power is so low that the connection is about to break (TCP-ECN 7.1.2).
    pub fn is_fading(&self, now: Instant) -> bool {
        self.power.is_fading(now)
    }

    /// Returns the power received from the other end, in watts.
    pub fn received_power(&self, now: Instant) -> f64 {
        self.power.received(now)
    }

    /// Returns the packet counters of one direction. Packets that were given up count as
    /// `channel_lost`, or as `disconnected` if the mobile was out of reach at the end of the last
    /// try.
    pub fn counters(&self, way: Way) -> &Counters {
        &self.ends[way as usize].ledger.counters
    }

    /// Returns the frame counters of one end.
    pub fn air_counters(&self, way: Way) -> &AirCounters {
        &self.ends[way as usize].counters
    }

    /// Returns the number of packets that an end has queued or is transmitting.
    pub fn queued(&self, way: Way) -> usize {
        let on_air = |exchange: &Exchange| exchange.frames[way as usize].is_some();
        let on_air = self.lane(way).exchange.as_ref().is_some_and(on_air);
        self.ends[way as usize].waiting() + usize::from(on_air)
    }

    /// Returns the bytes of the packets queued at an end, without the one in transmission.
    pub fn queued_bytes(&self, way: Way) -> usize {
        let end = &self.ends[way as usize];
        let aside = end.aside.iter().map(|(_, frame)| frame);
        end.queue.iter().chain(aside).map(|frame| frame.packet.len()).sum()
    }

    fn lane_of(&self, way: Way) -> usize {
        if self.air.is_plain() { way as usize } else { 0 }
    }

    fn lane(&self, way: Way) -> &Lane {
        &self.lanes[self.lane_of(way)]
    }

    /// Whether an end that wants to send now must wait for an exchange to end.
    fn is_busy(&self, way: Way) -> bool {
        !self.air.is_plain() && self.lane(way).exchange.is_some()
    }

    fn push(&mut self, now: Instant, way: Way, packet: Packet) -> Option<FrameNo> {
        self.advance(now);
        let is_busy = self.is_busy(way);
        let end = &mut self.ends[way as usize];
        end.ledger.counters.received += 1;
        if end.waiting() >= self.limit {
            end.ledger.dropped(now, DropCause::QueueFull, packet);
            return None;
        }
        let no = FrameNo(self.next[way as usize]);
        self.next[way as usize] += 1;
        end.make_ready(now, is_busy);
        end.queue.push_back(Frame { no, packet, since: now, tries: 0, passes: 0, arrived: false });
        if way == Way::Forth {
            self.held.insert(no);
        }
        self.advance(now);
        Some(no)
    }

    /// Processes everything due up to `now`, in the order of time.
    fn advance(&mut self, now: Instant) {
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
    fn next_step(&self) -> Option<Instant> {
        let turns = Way::BOTH.into_iter().filter_map(|way| match &self.lane(way).exchange {
            Some(exchange) => Some(exchange.until),
            None => self.start_of(way),
        });
        let known = self.ends.iter().filter_map(|end| Some(end.aside.front()?.0));
        turns.chain(known).min()
    }

    /// When an end starts its next try, if no other end starts before.
    fn start_of(&self, way: Way) -> Option<Instant> {
        let end = &self.ends[way as usize];
        let idle = self.lane(way).idle_since + self.air.gap();
        (!end.queue.is_empty()).then(|| end.ready.max(idle + SLOT * end.slots))
    }

    /// Returns the frames that are known to be lost at `now` to the head of their queue.
    fn take_back(&mut self, now: Instant) {
        for way in Way::BOTH {
            let is_busy = self.is_busy(way);
            let end = &mut self.ends[way as usize];
            while end.aside.front().is_some_and(|(known, _)| *known <= now) {
                let Some((_, frame)) = end.aside.pop_front() else { break };
                end.make_ready(now, is_busy);
                end.queue.push_front(frame);
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
            } else if let Some(mut frame) = end.queue.pop_front() {
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
        let is_heard = !is_collision && self.is_connected(now);
        let Self { ends, air, delay, .. } = self;
        let end = &mut ends[way as usize];
        let size = frame.packet.len();
        // Each cause draws, also if another one has already lost the frame.
        let announcement_hit = end.fortune.announcement.chance(air.announcement_error());
        let is_hit = end.fortune.data.chance(air.data_error(size));
        let ack_hit = end.fortune.ack.chance(air.ack_error());
        end.counters.tries += 1;
        end.counters.collisions += u64::from(is_collision);
        frame.tries += 1;
        let announcement = air.announcement();
        let is_announced = is_heard && !announcement_hit;
        let length = if announcement > Duration::ZERO && !is_announced {
            announcement
        } else if self.arq.acknowledges() {
            announcement + air.data(size) + air.answer() + *delay * 2
        } else {
            announcement + air.data(size)
        };
        let arrives = now + announcement + air.data(size) + *delay;
        end.counters.air_time += length;
        let is_known = if !is_announced {
            false
        } else if is_hit {
            self.deliver_corrupt && deliver_damaged(end, arrives, frame) && !ack_hit
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
        let most = u64::from(self.tries) * u64::from(self.passes);
        let is_again = !is_known && self.arq.acknowledges() && frame.tries < self.tries;
        let end = &mut self.ends[way as usize];
        if !self.air.is_plain() {
            end.back_off(is_again);
        }
        if !is_known {
            match self.arq {
                Arq::Mac | Arq::MacLink if is_again => return end.queue.push_front(frame),
                Arq::MacLink if way == Way::Forth && frame.passes + 1 < self.passes => {
                    frame.tries = 0;
                    frame.passes += 1;
                    end.counters.passed_again += 1;
                    end.ledger.retried(now, frame.passes + 1, &frame.packet);
                    return end.queue.push_back(frame);
                }
                Arq::Head if u64::from(frame.tries) < most => {
                    return end.aside.push_back((now + self.delay * 2, frame));
                }
                _ => {}
            }
        }
        if way == Way::Forth {
            self.held.remove(&frame.no);
        }
        if !frame.arrived {
            let cause =
                if self.is_connected(now) { self.loss_cause() } else { DropCause::LinkDown };
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

/// Flips bits of the frame, and delivers its packet if the frame's header and the packet's IPv4
/// header are intact. Returns whether it did.
fn deliver_damaged(end: &mut End, at: Instant, frame: &mut Frame) -> bool {
    let mut bytes = encode(frame.no, &frame.packet.data);
    let damage = &mut end.fortune.damage;
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
        let header = ip::header_len(&packet.data);
        let header =
            packet.data.get(..header.unwrap_or(0)) != frame.packet.data.get(..header.unwrap_or(0));
        end.ledger.corrupted(at, Damage { bits: flipped, header, unnoticed }, &packet);
    }
    end.deliver(at, frame, packet);
    true
}

impl Node for Radio {
    /// Queues a packet at its end, or drops and counts it.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        // A port that does not exist is the caller's mistake: the packet is ignored.
        let Some(way) = Way::BOTH.get(usize::from(port.0)) else { return };
        self.push(now, *way, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.advance(now);
        let due = |way: &Way| self.ends[*way as usize].arrived.front().map(|(due, _)| *due);
        let first = Way::BOTH.into_iter().filter_map(|way| Some((due(&way)?, way)));
        let (due, way) = first.min_by_key(|(due, _)| *due)?;
        if due > now {
            return None;
        }
        let (_, packet) = self.ends[way as usize].arrived.pop_front()?;
        Some((PortId(way.other() as u16), packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let arrivals = self.ends.iter().filter_map(|end| Some(end.arrived.front()?.0));
        self.next_step().into_iter().chain(arrivals).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let [forth, back] = &mut self.ends;
        Ledger::take_first(&mut forth.ledger, &mut back.ledger)
    }
}
