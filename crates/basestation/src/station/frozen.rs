//! Freezing of senders while the mobile leaves and is out of reach, and their release when it
//! returns.

use airtcp_link::radio::{MobileNo, Unsent};
use airtcp_types::{Fate, Instant, Packet};

use super::flow::Entered;
use super::freezer::{FIRST_WAIT, Freezer, Held, Outcome, Reach, Reminder, TELL_AGAIN};
use super::segment::{Segment, flag};
use super::table::{Pool, Slot};
use super::{FlowKey, Policy, Station};

impl Station {
    /// Announces that the mobile is about to leave: senders are frozen with its next ACKs. Has an
    /// effect only with the policy `tcp-ecn`.
    pub fn freeze(&mut self, now: Instant) {
        self.freezer.leave();
        self.look(now);
    }

    /// Puts the mobile out of reach, whatever the radio's description says.
    pub fn disconnect(&mut self, now: Instant) {
        self.radio.set_connected(now, MobileNo::OTHERS, false);
        self.look(now);
    }

    /// Ends [`disconnect`](Self::disconnect) and [`freeze`](Self::freeze): the mobile is back, or
    /// stays.
    pub fn reconnect(&mut self, now: Instant) {
        self.freezer.is_leaving = false;
        self.radio.set_connected(now, MobileNo::OTHERS, true);
        self.look(now);
    }

    /// Updates the state of the mobile, and acts on its changes.
    pub(super) fn look(&mut self, now: Instant) {
        if self.policy != Policy::TcpEcn {
            return;
        }
        let before = self.freezer.reach;
        let reception = self.radio.reception(now, MobileNo::OTHERS);
        let reach = self.freezer.looked(now, reception.is_in_reach, reception.is_fading);
        match reach {
            Reach::Gone => self.take_back(now),
            Reach::There if before != reach => self.unfreeze(now),
            Reach::Lost if before != reach => self.let_go(now),
            _ => {}
        }
        self.release(now);
        self.remind(now);
    }

    /// Releases frozen flows, as the mobile may never return: senders use their own timers, as
    /// without a station.
    fn let_go(&mut self, now: Instant) {
        let slots: Vec<Slot> = self.table.iter(Pool::Pinned).collect();
        self.counters.let_go += slots.len() as u64;
        for slot in slots {
            self.table.remove(slot);
        }
        while let Some(Held { packet, .. }) = self.freezer.release() {
            self.counters.held_dropped += 1;
            self.report(now, Fate::Dropped { cause: "the mobile stayed away" }, || packet);
        }
    }

    /// Takes the queued segments back from the radio, where they would only be lost. They are older
    /// than all held ones.
    fn take_back(&mut self, now: Instant) {
        let taken = self.radio.drain(now, MobileNo::OTHERS, &Segment::is_one);
        for (unsent, packet) in taken.into_iter().rev() {
            let segment = Segment::read(&packet).filter(|segment| segment.is_intact);
            let entered = segment.and_then(|segment| {
                let key = FlowKey { fixed: segment.src, mobile: segment.dst };
                let slot = self.table.find(&key)?;
                let flow = self.table.touch(now, slot);
                let range = flow.range_of(&segment);
                Some((slot, Entered { range, is_new: flow.on_taken_back(unsent.no) }))
            });
            self.keep(now, packet, Some(unsent), entered, Freezer::hold_first);
        }
    }

    pub(super) fn hold(&mut self, now: Instant, packet: Packet, entered: Option<(Slot, Entered)>) {
        self.keep(now, packet, None, entered, Freezer::hold);
    }

    fn keep(
        &mut self,
        now: Instant,
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
        let (fate, copy) = match how(&mut self.freezer, held) {
            Outcome::NoRoom(packet) => {
                self.counters.held_dropped += 1;
                (Fate::Dropped { cause: "no room to hold it" }, Some(packet))
            }
            Outcome::Again => {
                self.counters.held += 1;
                self.counters.held_again += 1;
                (Fate::Dropped { cause: "an older copy waits" }, copy)
            }
            Outcome::Held => {
                self.counters.held += 1;
                (Fate::Held, copy)
            }
        };
        self.report(now, fate, || copy.unwrap_or_default());
    }

    /// Passes held packets to the radio as far as it has room.
    fn release(&mut self, now: Instant) {
        while self.freezer.is_waiting()
            && self.freezer.reach != Reach::Gone
            && self.radio.has_room(now, MobileNo::OTHERS)
        {
            let Some(held) = self.freezer.release() else { return };
            let Held { packet, unsent, entered, .. } = held;
            let entered =
                entered.and_then(|(key, entered)| Some((self.table.find(&key)?, entered)));
            self.pass(now, packet, unsent, entered);
        }
    }

    /// Processes an intact segment of the fixed host that arrives while the mobile is out of reach,
    /// whether or not there is room to hold it. Returns whether it is a probe, which needs an
    /// answer and has nothing for the mobile.
    pub(super) fn answer(&mut self, now: Instant, slot: Slot, segment: &Segment) -> bool {
        if segment.has(flag::RST | flag::SYN) {
            return false;
        }
        let flow = &self.table[slot];
        let range = flow.range_of(segment);
        // A keepalive or a window probe starts below the mobile's acknowledgement and has no new
        // data.
        let is_probe = flow.acked().is_some_and(|acked| range.start < acked && range.end <= acked);
        let asks = is_probe || !range.is_empty();
        let pause = flow.rtt().map_or(TELL_AGAIN, |rtt| rtt.clamp(TELL_AGAIN, FIRST_WAIT));
        let is_due = flow.frozen.is_none_or(|at| now.since(at) >= pause);
        // RFC 9293 section 3.8.6.1: the ACK repeats the mobile's last acknowledgement with a zero
        // window. It is sent only if the flow can be pinned, so that the sender is released later.
        if asks
            && is_due
            && let Some(ack) = flow.last_ack(&self.table.key(slot), 0)
            && self.freeze_flow(now, slot)
        {
            self.send_made(now, &ack, "window closed");
        }
        is_probe
    }

    /// Sets the window of the mobile's ACK to zero while the mobile leaves.
    pub(super) fn close_window(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        packet: &mut Packet,
    ) {
        if self.freeze_flow(now, slot) {
            segment.set_window(packet, 0);
            self.counters.frozen += 1;
            self.report(now, Fate::Frozen, || packet.clone());
        }
    }

    /// Pins a flow until its sender is released. Returns `false` if there is no room for it.
    fn freeze_flow(&mut self, now: Instant, slot: Slot) -> bool {
        let is_pinned = self.table.put(slot, Pool::Pinned);
        if is_pinned {
            let flow = &mut self.table[slot];
            (flow.frozen, flow.reminder) = (Some(now), None);
        }
        is_pinned
    }

    /// Sends the mobile's window to all frozen senders.
    fn unfreeze(&mut self, now: Instant) {
        let slots: Vec<Slot> = self.table.iter(Pool::Pinned).collect();
        for slot in slots {
            self.table.put(slot, Pool::Proven);
            let flow = self.table.touch(now, slot);
            flow.frozen = None;
            let reminder = Reminder::first(now, flow.rtt());
            flow.reminder = Some(reminder);
            self.freezer.remind(self.table.key(slot), reminder);
            self.open_window(now, slot);
        }
    }

    fn open_window(&mut self, now: Instant, slot: Slot) {
        let key = self.table.key(slot);
        let flow = self.table.touch(now, slot);
        let window = flow.mobile.map_or(0, |mobile| mobile.window);
        if let Some(ack) = flow.last_ack(&key, window).filter(|_| window > 0) {
            self.send_made(now, &ack, "window open");
        }
    }

    /// Repeats the window update for senders that have not sent anything since.
    fn remind(&mut self, now: Instant) {
        while let Some((at, key)) = self.freezer.due(now) {
            let Some(slot) = self.table.find(&key) else { continue };
            let flow = self.table.touch(now, slot);
            let Some(reminder) = flow.reminder.filter(|reminder| reminder.at == at) else {
                continue;
            };
            if self.freezer.reach != Reach::There {
                flow.reminder = None;
                // It is sent when the mobile returns, as to the senders that are frozen now.
                if self.freezer.reach.stops_senders() {
                    self.table.put(slot, Pool::Pinned);
                }
                continue;
            }
            flow.reminder = reminder.next();
            if let Some(next) = flow.reminder {
                self.freezer.remind(key, next);
            }
            self.open_window(now, slot);
        }
    }
}
