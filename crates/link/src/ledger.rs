//! Counting of packets, and events for observers.

use std::collections::VecDeque;

use airtcp_types::{ByteCount, Event, EventKind, Fate, Instant, Packet};

use crate::Counters;

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DropCause {
    QueueFull,
    CoDel,
    Red,
    Threshold,
    RandomLoss,
    GilbertElliott,
    Burst,
    ByNumber,
    DutyCycle,
    LinkDown,
    LineFull,
    GaveUp,
    Policed,
}

impl DropCause {
    /// The names, in the order of the variants.
    const NAMES: [&str; 13] = [
        "queue full",
        "codel",
        "red",
        "threshold",
        "random loss",
        "gilbert-elliott",
        "burst",
        "by number",
        "duty cycle",
        "link down",
        "delay line full",
        "tries used up",
        "policed",
    ];

    /// A short name, for events and results.
    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The effect of corruption on a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damage {
    pub(crate) bits: u32,
    pub(crate) header: bool,
    pub(crate) unnoticed: bool,
}

/// The record of one direction: each packet's fate is recorded once, in the counters and in an
/// event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) counters: Counters,
    drops: [u64; DropCause::NAMES.len()],
    /// Present while events are enabled.
    log: Option<Log>,
}

impl Ledger {
    /// Enables or disables events. Disabling discards the queued ones.
    pub(crate) fn set_events(&mut self, on: bool) {
        self.log = match self.log.take() {
            log @ Some(_) if on => log,
            _ => on.then(Log::default),
        };
    }

    /// The number of dropped packets for each cause that dropped any.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        DropCause::NAMES.into_iter().zip(self.drops).filter(|(_, count)| *count > 0)
    }

    /// Takes the next event of two directions, in the order of time; at a tie, that of `one`.
    pub(crate) fn take_first(one: &mut Self, other: &mut Self) -> Option<Event> {
        let is_other = match (one.event_at(), other.event_at()) {
            (Some(at), Some(other)) => other < at,
            (at, _) => at.is_none(),
        };
        if is_other { other.take_event() } else { one.take_event() }
    }

    /// The time of the oldest queued event.
    fn event_at(&self) -> Option<Instant> {
        Some(self.log.as_ref()?.kept.front()?.at)
    }

    fn take_event(&mut self) -> Option<Event> {
        let log = self.log.as_mut()?;
        let event = log.kept.pop_front()?;
        log.bytes -= cost(&event);
        Some(event)
    }

    /// The number of events discarded because the queue was full.
    pub(crate) fn missed_events(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.missed)
    }

    pub(crate) fn dropped(&mut self, now: Instant, cause: DropCause, packet: Packet) {
        use DropCause::{CoDel, LineFull, LinkDown, Policed, QueueFull, Red, Threshold};
        let counter = match cause {
            Policed => &mut self.counters.policed,
            QueueFull | CoDel | Red | Threshold => &mut self.counters.queue_dropped,
            LinkDown => &mut self.counters.disconnected,
            LineFull => &mut self.counters.overflowed,
            _ => &mut self.counters.channel_lost,
        };
        *counter += 1;
        self.drops[cause as usize] += 1;
        self.report(now, Fate::Dropped { cause: cause.name() }, || packet);
    }

    pub(crate) fn marked(&mut self, now: Instant, cause: DropCause, packet: &Packet) {
        self.counters.marked += 1;
        self.report(now, Fate::Marked { cause: cause.name() }, || packet.clone());
    }

    pub(crate) fn corrupted(&mut self, now: Instant, damage: Damage, packet: &Packet) {
        let Damage { bits, header, unnoticed } = damage;
        self.counters.corrupted += 1;
        self.counters.corrupted_header += u64::from(header);
        self.counters.corrupted_unnoticed += u64::from(unnoticed);
        self.report(now, Fate::Corrupted { bits, header, unnoticed }, || packet.clone());
    }

    pub(crate) fn duplicated(&mut self, now: Instant, packet: &Packet) {
        self.counters.duplicated += 1;
        self.report(now, Fate::Duplicated, || packet.clone());
    }

    /// Reports that the link layer passes a packet to the MAC for the `pass`-th time.
    pub(crate) fn retried(&mut self, now: Instant, pass: u32, packet: &Packet) {
        self.report(now, Fate::Retried { pass }, || packet.clone());
    }

    fn report(&mut self, at: Instant, fate: Fate, packet: impl FnOnce() -> Packet) {
        if let Some(log) = &mut self.log {
            let kind = EventKind::Packet { fate, packet: packet() };
            log.push(Event { at, flow: None, kind });
        }
    }
}

/// Events that have not been taken yet.
#[derive(Clone, Debug, Default)]
struct Log {
    kept: VecDeque<Event>,
    bytes: ByteCount,
    missed: u64,
}

impl Log {
    const MAX_EVENTS: usize = 65_536;
    /// The size of `MAX_EVENTS` packets of 2 KiB.
    const MAX_BYTES: ByteCount = ByteCount::from_mib(128);

    fn push(&mut self, event: Event) {
        let cost = cost(&event);
        if self.kept.len() >= Self::MAX_EVENTS || self.bytes + cost > Self::MAX_BYTES {
            self.missed += 1;
            return;
        }
        self.bytes += cost;
        self.kept.push_back(event);
    }
}

fn cost(event: &Event) -> ByteCount {
    match &event.kind {
        EventKind::Packet { packet, .. } => ByteCount::from(packet.data.capacity()),
        _ => ByteCount::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_bounded() {
        let mut ledger = Ledger::default();
        let lose = |ledger: &mut Ledger, capacity: usize| {
            let packet = Packet::new(Vec::with_capacity(capacity));
            ledger.dropped(Instant::ZERO, DropCause::Burst, packet);
        };
        lose(&mut ledger, 0);
        assert_eq!(ledger.event_at(), None, "nobody asked");
        ledger.set_events(true);
        (0..65_539).for_each(|_| lose(&mut ledger, 0));
        assert_eq!(ledger.missed_events(), 3);
        let taken = std::iter::from_fn(|| ledger.take_event()).count();
        assert_eq!(taken, 65_536);
        // The capacity counts, and costs the test no memory.
        (0..9).for_each(|_| lose(&mut ledger, 16 << 20));
        assert_eq!((ledger.missed_events(), ledger.event_at()), (4, Some(Instant::ZERO)));
        ledger.set_events(true);
        assert!(ledger.take_event().is_some(), "asking again forgets nothing");
        ledger.set_events(false);
        assert!(ledger.take_event().is_none());
        assert_eq!(ledger.counters.channel_lost, 65_549);
        assert_eq!(ledger.drops().collect::<Vec<_>>(), [("burst", 65_549)]);
    }
}
