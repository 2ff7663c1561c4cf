//! Holding of packets while the mobile is out of reach, and the decision when senders continue
//! (TCP-ECN 6.2.2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use airtcp_link::radio::Unsent;
use airtcp_types::{ExtSeq, Instant, Packet};

use super::flow::{Entered, FlowKey};

/// The interval at which the mobile is looked for while it is away (IEEE 802.11's beacon interval,
/// 100 time units of 1024 us).
pub(super) const BEACON: Duration = Duration::from_micros(102_400);
/// The minimum interval between zero-window ACKs to a frozen sender that sends nevertheless;
/// otherwise the interval is a round-trip time, up to [`FIRST_WAIT`]. It is Linux's minimum RTO, so
/// that two ACKs for one flight do not look like duplicates.
pub(super) const MIN_ACK_INTERVAL: Duration = Duration::from_millis(200);
/// The time after which a mobile that fades or announced its departure, and is still in reach,
/// counts as present. A walking mobile crosses the last metres in less time, and without a limit
/// its senders would wait forever.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);
/// The maximum wait before the first repetition of a window update, also used without an RTT sample
/// (RFC 6298 section 2.1). A sample may include an application's pause.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The number of repetitions of a window update: a third would be the third duplicate ACK.
const REMINDERS: u8 = 2;

/// The state of the mobile as far as senders are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// The mobile is in reach.
    #[default]
    There,
    /// The mobile is about to leave: senders are frozen, and data that they have sent is still
    /// transmitted.
    Leaving,
    /// The mobile is out of reach: packets for it are held.
    Gone,
    /// The mobile has been out of reach for too long: its flows are released, and packets for it
    /// are no longer held or answered.
    Lost,
}

impl Reach {
    /// Whether senders are frozen until the mobile returns.
    pub(super) const fn stops_senders(self) -> bool {
        matches!(self, Self::Leaving | Self::Gone)
    }
}

/// A packet that is held for the mobile.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) packet: Packet,
    /// Its frame, if it was taken back from the radio.
    pub(super) unsent: Option<Unsent>,
    /// The flow and the range of the segment, if known.
    pub(super) entered: Option<(FlowKey, Entered)>,
    /// Whether the mobile takes part in the flow.
    pub(super) is_proven: bool,
}

impl Held {
    /// The flow and the range, as the key of a lookup.
    fn carries(&self) -> Option<Carries> {
        let (key, Entered { range, .. }) = self.entered?;
        Some((key, range.start, range.end))
    }

    /// The memory that it uses.
    fn cost(&self) -> usize {
        cost(self.packet.len())
    }
}

type Carries = (FlowKey, ExtSeq, ExtSeq);

/// The memory of a held packet of this length.
const fn cost(len: usize) -> usize {
    len + size_of::<Held>() + size_of::<Carries>()
}

/// The result of holding a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The packet is held.
    Held,
    /// Another copy of it was held as well; the older one stays, the other is dropped.
    Again,
    /// There is no room for the packet.
    NoRoom(Packet),
}

/// A scheduled repetition of the window update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reminder {
    pub(super) at: Instant,
    wait: Duration,
    left: u8,
}

impl Reminder {
    /// Creates the first repetition after the window was opened at `now`.
    pub(super) fn first(now: Instant, rtt: Option<Duration>) -> Self {
        let wait = rtt.map_or(FIRST_WAIT, |rtt| rtt.min(FIRST_WAIT));
        Self { at: now + wait, wait, left: REMINDERS }
    }

    /// Returns the next repetition; `None` after the last one.
    pub(super) fn next(self) -> Option<Self> {
        let wait = self.wait * 2;
        (self.left > 1).then(|| Self { at: self.at + wait, wait, left: self.left - 1 })
    }
}

/// The held packets in the order of their arrival, and the deadlines.
#[derive(Debug)]
pub(super) struct Freezer {
    pub(super) reach: Reach,
    /// Whether the mobile's departure was announced.
    pub(super) is_leaving: bool,
    /// Since when the mobile has been about to leave.
    leaves_since: Option<Instant>,
    /// Since when the mobile has been out of reach.
    gone_since: Option<Instant>,
    /// The maximum time out of reach.
    absence: Duration,
    held: VecDeque<Held>,
    /// The flows and ranges of the held packets that have them, and whether the fixed host has
    /// retransmitted the packet since.
    carried: BTreeMap<Carries, bool>,
    bytes: usize,
    limit: usize,
    /// The maximum number of held packets.
    most: usize,
    /// When the mobile is looked for again.
    look_at: Option<Instant>,
    reminders: BTreeSet<(Instant, FlowKey)>,
}

impl Freezer {
    /// Creates a freezer for `limit` bytes and `most` packets, which releases flows after an
    /// absence of `absence`.
    pub(super) const fn new(limit: usize, most: usize, absence: Duration) -> Self {
        Self {
            reach: Reach::There,
            is_leaving: false,
            leaves_since: None,
            gone_since: None,
            absence,
            held: VecDeque::new(),
            carried: BTreeMap::new(),
            bytes: 0,
            limit,
            most,
            look_at: None,
            reminders: BTreeSet::new(),
        }
    }

    /// Whether new packets must be held.
    pub(super) fn is_holding(&self) -> bool {
        self.reach == Reach::Gone || self.is_waiting()
    }

    /// Whether packets are held.
    pub(super) fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether there is room for a packet of this length. Half of the room is reserved for flows in
    /// which the mobile takes part, as others may be a flood.
    pub(super) fn has_room(&self, len: usize, is_proven: bool) -> bool {
        let part = |room: usize| if is_proven { room } else { room / 2 };
        self.bytes + cost(len) <= part(self.limit) && self.held.len() < part(self.most)
    }

    /// Holds a packet, unless an older copy of it is held. In the place of that copy, the newer
    /// timestamp would make the mobile drop the segments in between (RFC 7323 section 5.3).
    pub(super) fn hold(&mut self, held: Held) -> Outcome {
        let again = held.carries().and_then(|carries| self.carried.get_mut(&carries));
        if let Some(is_again) = again {
            *is_again = true;
            return Outcome::Again;
        }
        self.admit(held, VecDeque::push_back)
    }

    /// Holds a packet in front of all others. Replaces a later copy of the packet.
    pub(super) fn hold_first(&mut self, mut held: Held) -> Outcome {
        let carries = held.carries().filter(|carries| self.carried.contains_key(carries));
        let again = carries.and_then(|_| self.held.iter().position(|h| h.carries() == carries));
        let Some(mut again) = again.and_then(|at| self.held.remove(at)) else {
            return self.admit(held, VecDeque::push_front);
        };
        self.forget(&mut again);
        if let (Some((_, own)), Some((_, copy))) = (&mut held.entered, again.entered) {
            own.is_new &= copy.is_new;
        }
        // The room of the copy suffices for it. It takes over the frame, which may have arrived.
        let held = if self.has_room(held.packet.len(), held.is_proven) {
            held
        } else {
            Held { unsent: held.unsent.or(again.unsent), entered: held.entered, ..again }
        };
        self.admit(held, VecDeque::push_front);
        Outcome::Again
    }

    fn admit(&mut self, held: Held, push: fn(&mut VecDeque<Held>, Held)) -> Outcome {
        if !self.has_room(held.packet.len(), held.is_proven) {
            return Outcome::NoRoom(held.packet);
        }
        self.bytes += held.cost();
        self.carried.extend(held.carries().map(|carries| (carries, false)));
        push(&mut self.held, held);
        Outcome::Held
    }

    fn forget(&mut self, held: &mut Held) {
        self.bytes -= held.cost();
        let is_again = held.carries().and_then(|carries| self.carried.remove(&carries));
        if let Some((_, entered)) = &mut held.entered {
            entered.is_new &= is_again != Some(true);
        }
    }

    /// Removes and returns the packet that has been held longest.
    pub(super) fn release(&mut self) -> Option<Held> {
        let mut held = self.held.pop_front()?;
        self.forget(&mut held);
        if self.held.is_empty() {
            self.held = VecDeque::new();
        }
        Some(held)
    }

    /// Removes and returns the packets that are `wanted`, in their order.
    pub(super) fn extract(&mut self, wanted: impl Fn(&Held) -> bool) -> Vec<Held> {
        let mut extracted = Vec::new();
        for mut held in std::mem::take(&mut self.held) {
            if wanted(&held) {
                self.forget(&mut held);
                extracted.push(held);
            } else {
                self.held.push_back(held);
            }
        }
        extracted
    }

    /// Returns the number of held packets, and the memory that they use.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.held.len(), self.bytes)
    }

    /// Announces the departure of the mobile, and restarts its time limit.
    pub(super) fn leave(&mut self) {
        (self.is_leaving, self.leaves_since) = (true, None);
    }

    /// Updates the state of the mobile; returns it.
    pub(super) fn looked(&mut self, now: Instant, is_in_reach: bool, is_fading: bool) -> Reach {
        // A departure announcement is fulfilled when the mobile is out of reach.
        self.is_leaving &= is_in_reach;
        let leaves = is_in_reach && (self.is_leaving || is_fading);
        self.leaves_since = leaves.then(|| self.leaves_since.unwrap_or(now));
        let leaves = self.leaves_since.is_some_and(|since| now.since(since) < LEAVES_WITHIN);
        self.gone_since = (!is_in_reach).then(|| self.gone_since.unwrap_or(now));
        self.reach = match self.gone_since {
            Some(since) if now.since(since) >= self.absence => Reach::Lost,
            Some(_) => Reach::Gone,
            None if leaves => Reach::Leaving,
            None => Reach::There,
        };
        self.look_at = (self.reach != Reach::There).then(|| now + BEACON);
        self.reach
    }

    pub(super) fn remind(&mut self, key: FlowKey, reminder: Reminder) {
        self.reminders.insert((reminder.at, key));
    }

    /// Returns a flow whose repetition is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<(Instant, FlowKey)> {
        let first = self.reminders.first().copied().filter(|(at, _)| *at <= now)?;
        self.reminders.remove(&first);
        Some(first)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let reminder = self.reminders.first().map(|(at, _)| *at);
        self.look_at.into_iter().chain(reminder).min()
    }
}

#[cfg(test)]
mod tests {
    use airtcp_link::radio::FrameNo;
    use airtcp_types::SeqRange;

    use super::super::testkit::key;
    use super::*;

    const AWAY: Duration = Duration::from_secs(50);
    const MANY: usize = usize::MAX;

    fn held(start: u64, end: u64, fill: u8) -> Held {
        let range = SeqRange::new(ExtSeq(start), ExtSeq(end));
        let packet = Packet::new(vec![fill; (end - start) as usize]);
        let entered = Some((key(), Entered { range, is_new: true }));
        Held { packet, unsent: None, entered, is_proven: true }
    }

    /// The same, taken back from the radio with this frame.
    fn back(no: u64, held: Held) -> Held {
        Held { unsent: Some(Unsent { no: FrameNo(no), arrived: false }), ..held }
    }

    fn frame(held: &Held) -> Option<u64> {
        held.unsent.map(|unsent| unsent.no.0)
    }

    #[test]
    fn the_limit_counts_bytes_and_packets_leave_in_order() {
        let mut freezer = Freezer::new(cost(100) * 2 + cost(50), MANY, AWAY);
        assert_eq!(freezer.hold(held(0, 100, 1)), Outcome::Held);
        assert_eq!(freezer.hold(held(100, 200, 2)), Outcome::Held);
        assert_eq!(freezer.hold(held(200, 300, 3)), Outcome::NoRoom(held(200, 300, 3).packet));
        assert_eq!(freezer.hold(held(0, 100, 4)), Outcome::Again);
        assert_eq!(freezer.hold(Held { entered: None, ..held(0, 50, 5) }), Outcome::Held);
        assert_eq!(freezer.waiting(), (3, cost(100) * 2 + cost(50)));
        let fills = std::iter::from_fn(|| freezer.release()).map(|held| held.packet.data[0]);
        assert_eq!(fills.collect::<Vec<_>>(), [1, 2, 5]);
        assert_eq!((freezer.waiting(), freezer.is_holding()), ((0, 0), false));
    }

    #[test]
    fn the_limit_counts_packets_of_any_size() {
        let mut freezer = Freezer::new(usize::MAX, 3, AWAY);
        let outcomes = [0, 100, 200].map(|start| freezer.hold(held(start, start + 100, 0)));
        assert_eq!(outcomes, [Outcome::Held, Outcome::Held, Outcome::Held]);
        assert_eq!(freezer.hold(held(300, 301, 0)), Outcome::NoRoom(held(300, 301, 0).packet));
        assert_eq!(freezer.waiting().0, 3);
    }

    #[test]
    fn a_packet_that_the_fixed_host_retransmits_while_it_is_held_is_not_new() {
        let mut freezer = Freezer::new(cost(100) * 3, MANY, AWAY);
        let is_new = |held: Option<Held>| held.and_then(|held| held.entered).map(|(_, e)| e.is_new);
        freezer.hold(held(0, 100, 1));
        freezer.hold(held(100, 200, 2));
        assert_eq!(freezer.hold(held(0, 100, 3)), Outcome::Again);
        assert_eq!([freezer.release(), freezer.release()].map(is_new), [Some(false), Some(true)]);
        // The same holds if the radio gives an older copy back.
        freezer.hold(held(0, 100, 1));
        freezer.hold(held(0, 100, 2));
        assert_eq!(freezer.hold_first(back(7, held(0, 100, 3))), Outcome::Again);
        assert_eq!(is_new(freezer.release()), Some(false));
    }

    #[test]
    fn half_of_the_room_is_for_flows_that_the_mobile_takes_part_in() {
        let mut freezer = Freezer::new(cost(100) * 4, MANY, AWAY);
        let stranger = |start| Held { is_proven: false, ..held(start, start + 100, 0) };
        let outcomes = [0, 100, 200].map(|start| freezer.hold(stranger(start)));
        assert_eq!(outcomes, [Outcome::Held, Outcome::Held, Outcome::NoRoom(stranger(200).packet)]);
        let outcomes = [300, 400].map(|start| freezer.hold(held(start, start + 100, 0)));
        assert_eq!(outcomes, [Outcome::Held, Outcome::Held]);
    }

    #[test]
    fn what_has_left_may_come_again() {
        let mut freezer = Freezer::new(1_000, MANY, AWAY);
        freezer.hold(held(0, 100, 1));
        freezer.release();
        assert_eq!(freezer.hold(held(0, 100, 2)), Outcome::Held);
        assert_eq!(freezer.hold_first(held(0, 100, 3)), Outcome::Again);
        assert_eq!(freezer.release().map(|held| held.packet.data[0]), Some(3));
        assert_eq!(freezer.waiting(), (0, 0));
    }

    #[test]
    fn what_came_first_goes_first_as_it_was_sent_first() {
        let mut freezer = Freezer::new(cost(100) * 3, MANY, AWAY);
        freezer.hold(held(100, 200, 2));
        freezer.hold(held(0, 100, 4));
        assert_eq!(freezer.hold_first(back(1, held(0, 100, 1))), Outcome::Again);
        let unknown = Held { entered: None, ..held(0, 100, 3) };
        assert_eq!(freezer.hold_first(back(0, unknown.clone())), Outcome::Held);
        assert_eq!(freezer.hold_first(unknown.clone()), Outcome::NoRoom(unknown.packet));
        assert_eq!(freezer.waiting(), (3, cost(100) * 3));
        let all = std::iter::from_fn(|| freezer.release());
        let all: Vec<_> = all.map(|held| (held.packet.data[0], frame(&held))).collect();
        assert_eq!(all, [(3, Some(0)), (1, Some(1)), (2, None)]);
    }

    #[test]
    fn what_is_extracted_leaves_its_room_and_the_rest_in_order() {
        let mut freezer = Freezer::new(cost(100) * 3, MANY, AWAY);
        for (start, fill) in [(0, 1), (100, 2), (200, 1)] {
            freezer.hold(held(start, start + 100, fill));
        }
        freezer.hold(held(200, 300, 9));
        let taken = freezer.extract(|held| held.packet.data[0] == 1);
        let taken = taken.iter().map(|held| held.entered.unwrap().1);
        let taken: Vec<_> = taken.map(|entered| (entered.range.start.0, entered.is_new)).collect();
        assert_eq!(taken, [(0, true), (200, false)]);
        assert_eq!(freezer.waiting(), (1, cost(100)));
        assert_eq!(freezer.hold(held(0, 100, 3)), Outcome::Held, "it may come again");
    }

    #[test]
    fn two_copies_that_are_taken_back_become_one_that_is_not_new() {
        let mut freezer = Freezer::new(cost(100) * 3, MANY, AWAY);
        freezer.hold_first(back(2, held(100, 200, 3)));
        let (key, entered) = held(0, 100, 2).entered.unwrap();
        let again = Some((key, Entered { is_new: false, ..entered }));
        freezer.hold_first(back(1, Held { entered: again, ..held(0, 100, 2) }));
        assert_eq!(freezer.hold_first(back(0, held(0, 100, 1))), Outcome::Again);
        let first = freezer.release().unwrap();
        assert_eq!((first.packet.data[0], frame(&first)), (1, Some(0)));
        assert!(!first.entered.unwrap().1.is_new);
        assert_eq!(freezer.release().as_ref().map(frame), Some(Some(2)));
    }

    #[test]
    fn the_copy_takes_over_the_frame_of_one_that_has_no_room() {
        let mut freezer = Freezer::new(cost(100), MANY, AWAY);
        freezer.hold(held(0, 100, 2));
        let longer = Held { packet: Packet::new(vec![1; 101]), ..held(0, 100, 1) };
        assert_eq!(freezer.hold_first(back(7, longer)), Outcome::Again);
        let first = freezer.release().unwrap();
        assert_eq!((first.packet.data[0], frame(&first)), (2, Some(7)));
        assert_eq!(freezer.waiting(), (0, 0));
    }

    #[test]
    fn one_that_does_not_leave_stays_until_it_was_away() {
        let mut freezer = Freezer::new(0, MANY, AWAY);
        let mut look = |s, is_in_reach, is_fading| {
            freezer.looked(Instant::ZERO + Duration::from_secs(s), is_in_reach, is_fading)
        };
        assert_eq!(look(1, true, false), Reach::There);
        assert_eq!([2, 11].map(|s| look(s, true, true)), [Reach::Leaving; 2]);
        assert_eq!([12, 99].map(|s| look(s, true, true)), [Reach::There; 2]);
        assert_eq!([look(100, false, true), look(101, true, true)], [Reach::Gone, Reach::Leaving]);
        assert_eq!([look(102, true, false), look(103, true, true)], [Reach::There, Reach::Leaving]);
        assert_eq!(look(104, true, false), Reach::There);
        // A departure announcement is fulfilled when the mobile is out of reach.
        freezer.is_leaving = true;
        let mut look = |s, is_in_reach| {
            freezer.looked(Instant::ZERO + Duration::from_secs(s), is_in_reach, false)
        };
        assert_eq!([look(200, true), look(201, false)], [Reach::Leaving, Reach::Gone]);
        assert_eq!(look(202, true), Reach::There);
    }

    #[test]
    fn one_that_is_gone_for_too_long_is_given_up_until_it_is_back() {
        let mut freezer = Freezer::new(0, MANY, AWAY);
        let mut look = |s, is_in_reach| {
            freezer.looked(Instant::ZERO + Duration::from_secs(s), is_in_reach, false)
        };
        assert_eq!([10, 59].map(|s| look(s, false)), [Reach::Gone; 2]);
        assert_eq!([60, 999].map(|s| look(s, false)), [Reach::Lost; 2]);
        assert_eq!([look(1_000, true), look(1_001, false)], [Reach::There, Reach::Gone]);
    }

    #[test]
    fn reminders_wait_twice_as_long_each_time_and_are_two() {
        let start = Instant::from_millis(1_000);
        let first = Reminder::first(start, Some(Duration::from_millis(50)));
        let second = first.next().unwrap();
        assert_eq!(
            (first.at, second.at),
            (Instant::from_millis(1_050), Instant::from_millis(1_150))
        );
        assert_eq!(second.next(), None);
        for rtt in [None, Some(Duration::from_secs(70))] {
            assert_eq!(Reminder::first(start, rtt).at, Instant::from_millis(2_000));
        }
    }
}
