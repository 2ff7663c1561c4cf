//! Holds packets while the mobile is out of reach, and decides when senders continue (TCP-ECN
//! 6.2.2).

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use airtcp_types::{ExtSeq, Instant, Packet};

use super::flow::{Entered, FlowKey};

/// While the mobile is away its beacons are listened for so often (IEEE 802.11's 100 time units of
/// 1024 us).
const BEACON: Duration = Duration::from_micros(102_400);
/// A sender that was told to stop and sends all the same is told again after a round trip, and no
/// sooner than this, Linux's smallest time-out: so that no two answers to one flight look like
/// duplicate ACKs.
pub(super) const TELL_AGAIN: Duration = Duration::from_millis(200);
/// One that says it leaves, or fades, and is still there after so long, stays for now: who walks is
/// through the last metres in less, and a sender that waits for it would wait for ever.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);
/// The first wait for data after the window has been opened, where no round trip was seen (RFC 6298
/// section 2.1), or only the pause of an application.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How often the window is told again: a third time would be the third duplicate ACK.
const REMINDERS: u8 = 2;

/// How the mobile is, as far as the senders are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Everything goes its way.
    #[default]
    There,
    /// It will soon be gone: senders are told to stop, and what they have sent still goes out.
    Leaving,
    /// It is gone: what comes for it is held.
    Gone,
    /// It has been gone for too long: its flows are forgotten, and what comes for it is no longer
    /// held or answered.
    Lost,
}

impl Reach {
    /// Whether senders are told to stop, and to go on when the mobile is back.
    pub(super) const fn stops_senders(self) -> bool {
        matches!(self, Self::Leaving | Self::Gone)
    }
}

/// A packet that waits for the mobile.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) packet: Packet,
    /// The flow and the numbers that it carries, where they are known.
    pub(super) entered: Option<(FlowKey, Entered)>,
    /// Its flow is one that the mobile takes part in.
    pub(super) is_proven: bool,
}

impl Held {
    /// The flow and the numbers, as they are looked for.
    fn carries(&self) -> Option<Carries> {
        let (key, Entered { range, .. }) = self.entered?;
        Some((key, range.start, range.end))
    }

    /// What it takes.
    fn cost(&self) -> usize {
        cost(self.packet.len())
    }
}

type Carries = (FlowKey, ExtSeq, ExtSeq);

/// What a packet of so many bytes takes while it waits.
const fn cost(len: usize) -> usize {
    len + size_of::<Held>() + size_of::<Carries>()
}

/// What became of a packet that was to be held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It waits.
    Held,
    /// Another copy of it came as well; the older of the two waits, the other is no more.
    Again,
    /// There is no room for it.
    NoRoom(Packet),
}

/// When a sender is told again that it may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reminder {
    pub(super) at: Instant,
    wait: Duration,
    left: u8,
}

impl Reminder {
    /// The first one after the window has been opened at `now`.
    pub(super) fn first(now: Instant, rtt: Option<Duration>) -> Self {
        let wait = rtt.map_or(FIRST_WAIT, |rtt| rtt.min(FIRST_WAIT));
        Self { at: now + wait, wait, left: REMINDERS }
    }

    /// The one after this; `None` if this was the last.
    pub(super) fn next(self) -> Option<Self> {
        let wait = self.wait * 2;
        (self.left > 1).then(|| Self { at: self.at + wait, wait, left: self.left - 1 })
    }
}

/// The packets held, in the order of their arrival, and the times to act at.
#[derive(Debug)]
pub(super) struct Freezer {
    pub(super) reach: Reach,
    /// The mobile was said to be leaving.
    pub(super) is_leaving: bool,
    /// Since when it is.
    leaves_since: Option<Instant>,
    /// Since when it is gone.
    gone_since: Option<Instant>,
    /// How long it may be.
    absence: Duration,
    held: VecDeque<Held>,
    /// What those of them carry that are entered in a flow.
    carried: BTreeSet<Carries>,
    bytes: usize,
    limit: usize,
    /// When the mobile is looked for again.
    look_at: Option<Instant>,
    reminders: BTreeSet<(Instant, FlowKey)>,
}

impl Freezer {
    /// A freezer for `limit` bytes of packets, which gives a mobile up that is gone for `absence`.
    pub(super) const fn new(limit: usize, absence: Duration) -> Self {
        Self {
            reach: Reach::There,
            is_leaving: false,
            leaves_since: None,
            gone_since: None,
            absence,
            held: VecDeque::new(),
            carried: BTreeSet::new(),
            bytes: 0,
            limit,
            look_at: None,
            reminders: BTreeSet::new(),
        }
    }

    /// Whether what comes now has to wait.
    pub(super) fn is_holding(&self) -> bool {
        self.reach == Reach::Gone || self.is_waiting()
    }

    /// Whether a packet waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether there is room for a packet of so many bytes. Half of it is for flows that the mobile
    /// takes part in alone: others may be a flood.
    pub(super) const fn has_room(&self, len: usize, is_proven: bool) -> bool {
        self.bytes + cost(len) <= if is_proven { self.limit } else { self.limit / 2 }
    }

    /// Takes a packet in. One that repeats what another carries is not wanted: before what came
    /// between them its time stamp would have the mobile refuse all that (RFC 7323 section 5.3).
    pub(super) fn hold(&mut self, held: Held) -> Outcome {
        if held.carries().is_some_and(|carries| self.carried.contains(&carries)) {
            return Outcome::Again;
        }
        self.admit(held, VecDeque::push_back)
    }

    /// Takes a packet in that came before all others. If it was sent again since, that copy goes.
    pub(super) fn hold_first(&mut self, held: Held) -> Outcome {
        let carries = held.carries().filter(|carries| self.carried.contains(carries));
        let again = carries.and_then(|_| self.held.iter().position(|h| h.carries() == carries));
        let Some(again) = again.and_then(|at| self.held.remove(at)) else {
            return self.admit(held, VecDeque::push_front);
        };
        self.forget(&again);
        // It has at least the room that its copy had.
        let held = if self.has_room(held.packet.len(), held.is_proven) { held } else { again };
        self.admit(held, VecDeque::push_front);
        Outcome::Again
    }

    fn admit(&mut self, held: Held, push: fn(&mut VecDeque<Held>, Held)) -> Outcome {
        if !self.has_room(held.packet.len(), held.is_proven) {
            return Outcome::NoRoom(held.packet);
        }
        self.bytes += held.cost();
        self.carried.extend(held.carries());
        push(&mut self.held, held);
        Outcome::Held
    }

    fn forget(&mut self, held: &Held) {
        self.bytes -= held.cost();
        if let Some(carries) = held.carries() {
            self.carried.remove(&carries);
        }
    }

    /// The packet that has waited longest.
    pub(super) fn release(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.forget(&held);
        if self.held.is_empty() {
            self.held = VecDeque::new();
        }
        Some(held)
    }

    /// Packets that wait, and the bytes that they take.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.held.len(), self.bytes)
    }

    /// The mobile is about to leave, as if it had never been so before.
    pub(super) fn leave(&mut self) {
        (self.is_leaving, self.leaves_since) = (true, None);
    }

    /// The mobile was looked for. Gives how it is now.
    pub(super) fn looked(&mut self, now: Instant, is_in_reach: bool, is_fading: bool) -> Reach {
        // Who has gone is not about to.
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

    /// A flow whose reminder is due.
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
    use airtcp_types::SeqRange;

    use super::super::testkit::key;
    use super::*;

    const AWAY: Duration = Duration::from_secs(50);

    fn held(start: u64, end: u64, fill: u8) -> Held {
        let range = SeqRange::new(ExtSeq(start), ExtSeq(end));
        let packet = Packet::new(vec![fill; (end - start) as usize]);
        let entered = Some((key(), Entered { range, is_new: true }));
        Held { packet, entered, is_proven: true }
    }

    #[test]
    fn it_holds_so_many_bytes_and_gives_them_back_in_order() {
        let mut freezer = Freezer::new(cost(100) * 2 + cost(50), AWAY);
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
    fn half_of_the_room_is_for_flows_that_the_mobile_takes_part_in() {
        let mut freezer = Freezer::new(cost(100) * 4, AWAY);
        let stranger = |start| Held { is_proven: false, ..held(start, start + 100, 0) };
        let outcomes = [0, 100, 200].map(|start| freezer.hold(stranger(start)));
        assert_eq!(outcomes, [Outcome::Held, Outcome::Held, Outcome::NoRoom(stranger(200).packet)]);
        let outcomes = [300, 400].map(|start| freezer.hold(held(start, start + 100, 0)));
        assert_eq!(outcomes, [Outcome::Held, Outcome::Held]);
    }

    #[test]
    fn what_has_left_may_come_again() {
        let mut freezer = Freezer::new(1_000, AWAY);
        freezer.hold(held(0, 100, 1));
        freezer.release();
        assert_eq!(freezer.hold(held(0, 100, 2)), Outcome::Held);
        assert_eq!(freezer.hold_first(held(0, 100, 3)), Outcome::Again);
        assert_eq!(freezer.release().map(|held| held.packet.data[0]), Some(3));
        assert_eq!(freezer.waiting(), (0, 0));
    }

    #[test]
    fn what_came_first_goes_first_as_it_was_sent_first() {
        let mut freezer = Freezer::new(cost(100) * 3, AWAY);
        freezer.hold(held(100, 200, 2));
        freezer.hold(held(0, 100, 4));
        assert_eq!(freezer.hold_first(held(0, 100, 1)), Outcome::Again);
        let unknown = Held { entered: None, ..held(0, 100, 3) };
        assert_eq!(freezer.hold_first(unknown.clone()), Outcome::Held);
        assert_eq!(freezer.hold_first(unknown.clone()), Outcome::NoRoom(unknown.packet));
        assert_eq!(freezer.waiting(), (3, cost(100) * 3));
        let fills = std::iter::from_fn(|| freezer.release()).map(|held| held.packet.data[0]);
        assert_eq!(fills.collect::<Vec<_>>(), [3, 1, 2]);
    }

    #[test]
    fn one_that_does_not_leave_stays_until_it_was_away() {
        let mut freezer = Freezer::new(0, AWAY);
        let mut look = |s, is_in_reach, is_fading| {
            freezer.looked(Instant::ZERO + Duration::from_secs(s), is_in_reach, is_fading)
        };
        assert_eq!(look(1, true, false), Reach::There);
        assert_eq!([2, 11].map(|s| look(s, true, true)), [Reach::Leaving; 2]);
        assert_eq!([12, 99].map(|s| look(s, true, true)), [Reach::There; 2]);
        assert_eq!([look(100, false, true), look(101, true, true)], [Reach::Gone, Reach::Leaving]);
        assert_eq!([look(102, true, false), look(103, true, true)], [Reach::There, Reach::Leaving]);
        assert_eq!(look(104, true, false), Reach::There);
        // What somebody said is fulfilled when it has gone.
        freezer.is_leaving = true;
        let mut look = |s, is_in_reach| {
            freezer.looked(Instant::ZERO + Duration::from_secs(s), is_in_reach, false)
        };
        assert_eq!([look(200, true), look(201, false)], [Reach::Leaving, Reach::Gone]);
        assert_eq!(look(202, true), Reach::There);
    }

    #[test]
    fn one_that_is_gone_for_too_long_is_given_up_until_it_is_back() {
        let mut freezer = Freezer::new(0, AWAY);
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
