//! The emulated radio as a base station uses it, and as a node.

use airtcp_types::{Event, Instant, Node, Packet, PortId};

use super::end::Frame;
use super::mobile::Mobile;
use super::queues::Queue;
use super::state::{Exchange, Radio};
use super::{AirCounters, Arq, Backend, FrameNo, MobileNo, Reception, Unsent};
use crate::ledger::{DropCause, Ledger};
use crate::queue::ControlLaw;
use crate::{Counters, SpecError, Way};

impl Radio {
    /// Removes frames that were queued at the station from the counters.
    fn take_out(&mut self, frames: Vec<Frame>) -> Vec<(Unsent, Packet)> {
        let counters = &mut self.ends[Way::Forth as usize].ledger.counters;
        let take = |Frame { no, arrived, packet, .. }| {
            self.held.remove(&no);
            // A packet that arrived stays received and forwarded.
            counters.received -= u64::from(!arrived);
            (Unsent { no, arrived }, packet)
        };
        frames.into_iter().map(take).collect()
    }
}

impl Backend for Radio {
    fn join(&mut self, now: Instant, mobile: MobileNo, words: &str) -> Result<(), SpecError> {
        let own = Mobile::new(&self.spec.of_mobile(words)?);
        self.advance(now);
        if mobile != MobileNo::OTHERS {
            self.ends.iter_mut().for_each(|end| end.queues.join(mobile));
            self.mobiles.insert(mobile, own);
        }
        Ok(())
    }

    fn leave(&mut self, now: Instant, mobile: MobileNo) -> Vec<(Unsent, Packet)> {
        self.advance(now);
        let taken = self.ends[Way::Forth as usize].queues.leave(mobile);
        let back = &mut self.ends[Way::Back as usize];
        for frame in back.queues.leave(mobile).into_iter().filter(|frame| !frame.arrived) {
            back.ledger.dropped(now, DropCause::LinkDown, frame.packet);
        }
        let exchanges = self.lanes.iter_mut().filter_map(|lane| lane.exchange.as_mut());
        for (frame, _) in exchanges.flat_map(|exchange| exchange.frames.iter_mut().flatten()) {
            if frame.of == mobile {
                frame.of = MobileNo::OTHERS;
            }
        }
        // The number may be given to another mobile.
        for (_, of, _) in self.ends.iter_mut().flat_map(|end| end.arrived.iter_mut()) {
            if *of == mobile {
                *of = MobileNo::OTHERS;
            }
        }
        self.mobiles.remove(&mobile);
        self.take_out(taken)
    }

    fn pass(&mut self, now: Instant, to: MobileNo, packet: Packet) -> Option<FrameNo> {
        self.push(now, Way::Forth, to, packet, None)
    }

    fn pass_again(
        &mut self,
        now: Instant,
        to: MobileNo,
        unsent: Unsent,
        packet: Packet,
    ) -> Option<FrameNo> {
        self.push(now, Way::Forth, to, packet, Some(unsent))
    }

    fn receive(&mut self, now: Instant, from: MobileNo, packet: Packet) {
        self.push(now, Way::Back, from, packet, None);
    }

    fn poll_delivered(&mut self, now: Instant) -> Option<(Way, MobileNo, Packet)> {
        self.advance(now);
        let due = |way: &Way| Some(self.ends[*way as usize].arrived.front()?.0);
        let first = Way::BOTH.into_iter().filter_map(|way| Some((due(&way)?, way)));
        let (_, way) = first.min_by_key(|(due, _)| *due).filter(|(due, _)| *due <= now)?;
        let (_, of, packet) = self.ends[way as usize].arrived.pop_front()?;
        Some((way, of, packet))
    }

    fn has_room(&mut self, now: Instant, to: MobileNo) -> bool {
        self.advance(now);
        self.ends[Way::Forth as usize].queues.of(to).waiting() < self.spec.queue
    }

    fn drain(
        &mut self,
        now: Instant,
        of: MobileNo,
        wanted: &dyn Fn(&Packet) -> bool,
    ) -> Vec<(Unsent, Packet)> {
        self.advance(now);
        let taken = self.ends[Way::Forth as usize].queues.drain(of, wanted);
        self.take_out(taken)
    }

    fn holds(&self, frame: FrameNo) -> bool {
        self.held.contains(&frame)
    }

    fn reception(&self, now: Instant, of: MobileNo) -> Reception {
        self.mobile(of).reception(now)
    }

    fn set_connected(&mut self, now: Instant, of: MobileNo, is_connected: bool) {
        self.advance(now);
        self.mobiles.get_mut(&of).unwrap_or(&mut self.others).is_connected = is_connected;
    }

    fn repairs(&self) -> bool {
        self.arq != Arq::Off
    }

    fn mark_congestion(&mut self) {
        for queue in self.ends[Way::Forth as usize].queues.all_mut() {
            queue.law = Some(ControlLaw::standard());
        }
    }

    fn set_events(&mut self, on: bool) {
        self.ends.iter_mut().for_each(|end| end.ledger.set_events(on));
    }

    fn queued(&self, way: Way, of: Option<MobileNo>) -> (usize, usize) {
        let queues = &self.ends[way as usize].queues;
        let of = of.map(|of| queues.place(of));
        let on_air = |exchange: &Exchange| {
            let frame = exchange.frames[way as usize].as_ref();
            frame.is_some_and(|(frame, _)| of.is_none_or(|of| frame.of == of))
        };
        let on_air = usize::from(self.lane(way).exchange.as_ref().is_some_and(on_air));
        let add = |(packets, bytes): (usize, usize), queue: &Queue| {
            (packets + queue.waiting(), bytes + queue.waiting_bytes().as_usize())
        };
        match of {
            Some(of) => add((on_air, 0), queues.of(of)),
            None => queues.all().fold((on_air, 0), add),
        }
    }

    fn counters(&self, way: Way) -> &Counters {
        &self.ends[way as usize].ledger.counters
    }

    fn air_counters(&self, way: Way, of: Option<MobileNo>) -> AirCounters {
        let end = &self.ends[way as usize];
        of.map_or(end.counters, |of| end.queues.of(of).counters)
    }
}

impl Node for Radio {
    /// Queues a packet at its end, or drops and counts it.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        // A port that does not exist is the caller's mistake: the packet is ignored.
        let Some(way) = Way::BOTH.get(usize::from(port.0)) else { return };
        self.push(now, *way, MobileNo::OTHERS, packet, None);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let (way, _, packet) = self.poll_delivered(now)?;
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
