//! Freezing of senders while a mobile leaves and is out of reach, and their release when it
//! returns.

use airtcp_link::Way;
use airtcp_link::radio::{MobileNo, Unsent};
use airtcp_types::{Fate, Instant, Packet};

use super::flow::Entered;
use super::freezer::{FIRST_WAIT, Freezer, Held, MIN_ACK_INTERVAL, Outcome, Reach, Reminder};
use super::segment::{Segment, flag};
use super::table::{Pool, Slot};
use super::{FlowKey, MobileChange, Policy, Station};

impl Station {
    /// Announces that all mobiles are about to leave: senders are frozen with their next ACKs. Has
    /// an effect only with the policy `tcp-ecn`.
    pub fn freeze(&mut self, now: Instant) {
        self.mobiles.numbers().for_each(|of| self.freeze_one(now, of));
    }

    /// Puts all mobiles out of reach, whatever the radio's description says.
    pub fn disconnect(&mut self, now: Instant) {
        self.mobiles.numbers().for_each(|of| self.connect_one(now, of, false));
    }

    /// Ends [`disconnect`](Self::disconnect) and [`freeze`](Self::freeze): the mobiles are back, or
    /// stay.
    pub fn reconnect(&mut self, now: Instant) {
        self.mobiles.numbers().for_each(|of| self.connect_one(now, of, true));
    }

    pub(super) fn freeze_one(&mut self, now: Instant, of: MobileNo) {
        self.mobiles[of].freezer.leave();
        self.look_at(now, of);
    }

    pub(super) fn connect_one(&mut self, now: Instant, of: MobileNo, is_connected: bool) {
        self.mobiles[of].freezer.is_leaving &= !is_connected;
        self.radio.set_connected(now, of, is_connected);
        self.look_at(now, of);
    }

    /// Looks at the mobiles that need attention, and at one of the others in turn. A known mobile
    /// that is out of reach is looked for once in a beacon interval, so that absent mobiles cost
    /// other packets nothing.
    pub(super) fn look(&mut self, now: Instant) {
        if self.policy == Policy::TcpEcn {
            self.look_at(now, MobileNo::OTHERS);
            self.mobiles.due(now).into_iter().for_each(|of| self.look_at(now, of));
        }
        if let Some(of) = self.mobiles.next_turn() {
            self.table.expire(now, of);
            self.look_at(now, of);
        }
    }

    /// Updates the state of a mobile, and acts on its changes.
    pub(super) fn look_at(&mut self, now: Instant, of: MobileNo) {
        let reception = self.radio.reception(now, of);
        let mobile = &mut self.mobiles[of];
        let reach = match self.policy {
            Policy::TcpEcn => {
                mobile.freezer.looked(now, reception.is_in_reach, reception.is_fading)
            }
            _ if reception.is_in_reach => Reach::There,
            _ => Reach::Gone,
        };
        let before = mobile.notice(now, reach);
        if before != reach {
            self.report_change(now, of, MobileChange::Reach(reach));
        }
        if self.policy != Policy::TcpEcn {
            return;
        }
        match reach {
            Reach::Gone => self.take_back(now, of),
            Reach::There if before != reach => self.unfreeze(now, of),
            Reach::Lost if before != reach => self.let_go(now, of),
            _ => {}
        }
        self.release(now, of);
        self.remind(now, of);
        let is_urgent = match reach {
            Reach::Leaving => true,
            // A frame on the air may return to the queue, and is taken from there.
            Reach::Gone => self.radio.queued(Way::Forth, Some(of)).0 > 0,
            Reach::There | Reach::Lost => self.mobiles[of].freezer.is_waiting(),
        };
        self.mobiles.watch(of, is_urgent);
    }

    /// Releases the frozen flows of a mobile, as it may never return: senders use their own timers,
    /// as without a station.
    fn let_go(&mut self, now: Instant, of: MobileNo) {
        let slots: Vec<Slot> = self.table.iter(of, Pool::Pinned).collect();
        self.count(of, |counters| counters.let_go += slots.len() as u64);
        for slot in slots {
            self.table.remove(slot);
        }
        while let Some(Held { packet, .. }) = self.mobiles[of].freezer.release() {
            self.count(of, |counters| counters.held_dropped += 1);
            self.report(now, Fate::Dropped { cause: "the mobile stayed away" }, || packet);
        }
    }

    /// Takes the queued segments back from the radio, where they would only be lost. They are older
    /// than all held ones.
    pub(super) fn take_back(&mut self, now: Instant, of: MobileNo) {
        let taken = self.radio.drain(now, of, &Segment::is_one);
        for (unsent, packet) in taken.into_iter().rev() {
            let entered = self.taken_back(now, unsent, &packet);
            self.keep(now, of, packet, Some(unsent), entered, Freezer::hold_first);
        }
    }

    /// Returns the flow and the range of a segment that was taken back from the radio.
    pub(super) fn taken_back(
        &mut self,
        now: Instant,
        unsent: Unsent,
        packet: &Packet,
    ) -> Option<(Slot, Entered)> {
        let segment = Segment::read(packet).filter(|segment| segment.is_intact)?;
        let key = FlowKey { fixed: segment.src, mobile: segment.dst };
        let slot = self.table.find(&key)?;
        let flow = self.table.touch(now, slot);
        let range = flow.range_of(&segment);
        Some((slot, Entered { range, is_new: flow.on_taken_back(unsent.no) }))
    }

    pub(super) fn hold(
        &mut self,
        now: Instant,
        of: MobileNo,
        packet: Packet,
        entered: Option<(Slot, Entered)>,
    ) {
        self.keep(now, of, packet, None, entered, Freezer::hold);
    }

    fn keep(
        &mut self,
        now: Instant,
        of: MobileNo,
        packet: Packet,
        unsent: Option<Unsent>,
        entered: Option<(Slot, Entered)>,
        how: fn(&mut Freezer, Held) -> Outcome,
    ) {
        let copy = self.events.is_some().then(|| packet.clone());
        let is_proven = entered.is_some_and(|(slot, _)| self.table.is_proven(slot));
        // Stored by key, because the slot may be reused before the packet is released.
        let entered = entered.map(|(slot, entered)| (self.table.key(slot), entered));
        let held = Held { packet, unsent, entered, is_proven };
        let (fate, copy) = match how(&mut self.mobiles[of].freezer, held) {
            Outcome::NoRoom(packet) => {
                self.count(of, |counters| counters.held_dropped += 1);
                (Fate::Dropped { cause: "no room to hold it" }, Some(packet))
            }
            Outcome::Again => {
                self.count(of, |counters| {
                    counters.held += 1;
                    counters.held_again += 1;
                });
                (Fate::Dropped { cause: "an older copy waits" }, copy)
            }
            Outcome::Held => {
                self.count(of, |counters| counters.held += 1);
                (Fate::Held, copy)
            }
        };
        self.report(now, fate, || copy.unwrap_or_default());
    }

    /// Passes the held packets of a mobile to the radio as far as its queue has room.
    pub(super) fn release(&mut self, now: Instant, of: MobileNo) {
        while self.mobiles[of].freezer.is_waiting()
            && self.mobiles[of].freezer.reach != Reach::Gone
            && self.radio.has_room(now, of)
        {
            let Some(held) = self.mobiles[of].freezer.release() else { return };
            let Held { packet, unsent, entered, .. } = held;
            let entered =
                entered.and_then(|(key, entered)| Some((self.table.find(&key)?, entered)));
            self.pass(now, of, packet, unsent, entered);
        }
    }

    /// Processes an intact segment of the fixed host that arrives while the mobile is out of reach,
    /// whether or not there is room to hold it. Returns whether it is a probe, which needs an
    /// answer and has nothing for the mobile.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        of: MobileNo,
        slot: Slot,
        segment: &Segment,
    ) -> bool {
        if segment.has(flag::RST | flag::SYN) {
            return false;
        }
        let flow = &self.table[slot];
        let range = flow.range_of(segment);
        // A keepalive or a window probe starts below the mobile's acknowledgement and has no new
        // data.
        let is_probe = flow.acked().is_some_and(|acked| range.start < acked && range.end <= acked);
        let asks = is_probe || !range.is_empty();
        let pause =
            flow.rtt().map_or(MIN_ACK_INTERVAL, |rtt| rtt.clamp(MIN_ACK_INTERVAL, FIRST_WAIT));
        let is_due = flow.frozen.is_none_or(|at| now.since(at) >= pause);
        // RFC 9293 section 3.8.6.1: the ACK repeats the mobile's last acknowledgement with a zero
        // window. It is sent only if the flow can be pinned, so that the sender is released later.
        if asks
            && is_due
            && let Some(ack) = flow.last_ack(&self.table.key(slot), 0)
            && self.freeze_flow(now, of, slot)
        {
            self.send_made(now, of, &ack, "window closed");
        }
        is_probe
    }

    /// Sets the window of the mobile's ACK to zero while the mobile leaves.
    pub(super) fn close_window(
        &mut self,
        now: Instant,
        of: MobileNo,
        slot: Slot,
        segment: &Segment,
        packet: &mut Packet,
    ) {
        if self.freeze_flow(now, of, slot) {
            segment.set_window(packet, 0);
            self.count(of, |counters| counters.frozen += 1);
            self.report(now, Fate::Frozen, || packet.clone());
        }
    }

    /// Pins a flow until its mobile returns and its sender is released. Returns `false` if there is
    /// no room for it. A flow that found no room in the mobile's share is in that of the others,
    /// where the mobile's return would not release it.
    fn freeze_flow(&mut self, now: Instant, of: MobileNo, slot: Slot) -> bool {
        let is_pinned = self.table.of(slot) == of && self.table.put(slot, Pool::Pinned);
        if is_pinned {
            let flow = &mut self.table[slot];
            (flow.frozen, flow.reminder) = (Some(now), None);
        }
        is_pinned
    }

    /// Sends the mobile's window to its frozen senders.
    fn unfreeze(&mut self, now: Instant, of: MobileNo) {
        let slots: Vec<Slot> = self.table.iter(of, Pool::Pinned).collect();
        for slot in slots {
            self.thaw(now, of, slot);
        }
    }

    /// Sends the mobile's window to a sender, and repeats it until the sender sends.
    pub(super) fn thaw(&mut self, now: Instant, of: MobileNo, slot: Slot) {
        self.table.put(slot, Pool::Proven);
        let flow = self.table.touch(now, slot);
        flow.frozen = None;
        let reminder = Reminder::first(now, flow.rtt());
        flow.reminder = Some(reminder);
        self.mobiles[of].freezer.remind(self.table.key(slot), reminder);
        self.open_window(now, slot);
    }

    fn open_window(&mut self, now: Instant, slot: Slot) {
        let key = self.table.key(slot);
        let flow = self.table.touch(now, slot);
        let window = flow.mobile.map_or(0, |mobile| mobile.window);
        if let Some(ack) = flow.last_ack(&key, window).filter(|_| window > 0) {
            self.send_made(now, self.table.of(slot), &ack, "window open");
        }
    }

    /// Repeats the window update for senders that have not sent anything since.
    fn remind(&mut self, now: Instant, of: MobileNo) {
        while let Some((at, key)) = self.mobiles[of].freezer.due(now) {
            let Some(slot) = self.table.find(&key) else { continue };
            let flow = self.table.touch(now, slot);
            let Some(reminder) = flow.reminder.filter(|reminder| reminder.at == at) else {
                continue;
            };
            // The flow may have moved to another share since.
            let reach = self.mobiles[self.table.of(slot)].freezer.reach;
            if reach != Reach::There {
                self.table[slot].reminder = None;
                // It is sent when the mobile returns, as to the senders that are frozen now.
                if reach.stops_senders() {
                    self.table.put(slot, Pool::Pinned);
                }
                continue;
            }
            let next = reminder.next();
            self.table[slot].reminder = next;
            if let Some(next) = next {
                self.mobiles[of].freezer.remind(key, next);
            }
            self.open_window(now, slot);
        }
    }
}
