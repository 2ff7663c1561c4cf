//! Decides when to acknowledge (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2), as Linux does.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant};
use airtcp_wire::options::SackBlocks;

use crate::tcp::ecn::ReportedCounters;

/// The bounds of a delayed ACK's delay (Linux's `TCP_ATO_MIN`, `TCP_DELACK_MAX`).
const ATO: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(200));
/// So many ACKs at the start, or after a pause, are not delayed (Linux's `TCP_MAX_QUICKACKS`): the
/// sender is in slow start and lives on them.
const QUICK: u8 = 16;
/// RFC 9293's default MSS: the first guess at the size of the peer's segments.
const FIRST_MSS: ByteCount = ByteCount(536);
/// ACKs due at once beyond this are merged: only an absurd batch of arrivals makes so many.
const MAX_DUE: usize = 256;
/// What one ACK may newly acknowledge when data arrived in one batch: a part of the receive buffer,
/// so that a sender which fills a large one still hears of every round trip in several ACKs, by
/// which it may grow, and within these bounds. A packet that Linux's receive offload makes of a
/// batch, and acknowledges once, has up to 64 KiB, or 512 KiB where it may (`gro_max_size`).
const STRETCH: (ByteCount, ByteCount) = (ByteCount::from_kib(64), ByteCount::from_kib(256));
const STRETCH_PART: u64 = 16;

/// An ACK that is to leave.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct DueAck {
    /// What it acknowledges.
    pub(in crate::tcp) ack: ExtSeq,
    /// Its SACK blocks.
    pub(in crate::tcp) sack: SackBlocks,
    /// The number of the transmission that made it due, where they are numbered.
    pub(in crate::tcp) echo: Option<NonZeroU32>,
    /// The AccECN counters that it reports: those of the moment when it became due.
    pub(in crate::tcp) reported: ReportedCounters,
    /// The code that it has in place of ACE: it answers a SYN-ACK.
    pub(in crate::tcp) handshake: Option<u8>,
}

/// Decides when an ACK leaves, and holds those that are due.
///
/// ACKs leave when the connection is next asked for packets. Until then they queue, so that the
/// peer hears of every hole and every duplicate in a batch of arrivals. Those of data in order
/// become one, as RFC 9293 section 3.8.6.3 allows for aggregated segments, once no quick ACKs are
/// due: each costs both ends about as much as a full segment.
#[derive(Debug)]
pub(in crate::tcp) struct AckPolicy {
    delayed: bool,
    quick: u8,
    ato: Duration,
    /// This end answers with data (Linux's ping-pong mode): ACKs may wait for it from the start.
    interactive: bool,
    timer: Option<Instant>,
    due: VecDeque<DueAck>,
    /// What was acknowledged before the last ACK that is due, if that one may acknowledge more.
    stretch: Option<ExtSeq>,
    /// How much that may be in all.
    reach: ByteCount,
    last_data: Option<Instant>,
    /// The size of the peer's full segments, as far as seen.
    segment: ByteCount,
    /// The last number that an ACK, sent or due, acknowledges.
    acknowledged: ExtSeq,
}

impl AckPolicy {
    /// `delayed`: ACKs may wait at all.
    pub(in crate::tcp) const fn new(delayed: bool) -> Self {
        Self {
            delayed,
            quick: QUICK,
            ato: ATO.0,
            interactive: false,
            timer: None,
            due: VecDeque::new(),
            stretch: None,
            reach: STRETCH.0,
            last_data: None,
            segment: FIRST_MSS,
            acknowledged: ExtSeq(0),
        }
    }

    /// The receive buffer may have this size, as far as it was ever needed.
    pub(in crate::tcp) fn set_buffer(&mut self, limit: ByteCount) {
        self.reach = ByteCount(limit.0 / STRETCH_PART).clamp(STRETCH.0, STRETCH.1);
    }

    /// Whether in-order data that brought RCV.NXT to `nxt` is to be acknowledged at once. If not,
    /// the timer runs.
    pub(in crate::tcp) fn on_data(
        &mut self,
        now: Instant,
        len: ByteCount,
        nxt: ExtSeq,
        rto: impl Fn() -> Duration,
    ) -> bool {
        self.segment = self.segment.max(len);
        self.adapt(now, rto);
        self.last_data = Some(now);
        let second = nxt.since(self.acknowledged) > self.segment;
        let quick = self.quick > 0 && !self.interactive;
        if !self.delayed || second || quick || self.may_stretch(nxt) {
            return true;
        }
        let at = now + self.ato;
        self.timer = Some(self.timer.map_or(at, |timer| timer.min(at)));
        false
    }

    /// Whether segments in order that arrive together now are acknowledged together.
    pub(in crate::tcp) fn merges(&self, now: Instant, rto: impl Fn() -> Duration) -> bool {
        let is_pause = self.last_data.is_none_or(|last| now.since(last) > rto());
        self.delayed && !self.is_quick() && !is_pause
    }

    /// How much data from `nxt` on one ACK may acknowledge: the rest of what the last ACK that is
    /// due may, or that of the next one.
    pub(in crate::tcp) fn room_from(&self, nxt: ExtSeq) -> ByteCount {
        let from = self.stretch.filter(|_| self.may_stretch(nxt + self.segment.0));
        self.reach - nxt.since(from.unwrap_or(self.acknowledged))
    }

    /// Whether the next ACK is one of those that are not delayed.
    fn is_quick(&self) -> bool {
        self.due.len() < usize::from(self.quick)
    }

    /// The delay follows the gaps between arrivals (Linux's `tcp_event_data_recv`).
    fn adapt(&mut self, now: Instant, rto: impl Fn() -> Duration) {
        let Some(last) = self.last_data else { return };
        let gap = now.since(last);
        if gap <= ATO.0 / 2 {
            self.ato = self.ato / 2 + ATO.0 / 2;
        } else if gap < self.ato {
            self.ato = self.ato / 2 + gap;
        } else if gap > rto() {
            // The sender begins again with a small window.
            self.quick = QUICK;
        }
        self.ato = self.ato.clamp(ATO.0, ATO.1);
    }

    /// The sender repairs something: it lives on ACKs for a while.
    pub(in crate::tcp) fn enter_quick(&mut self) {
        self.quick = QUICK;
        self.interactive = false;
    }

    /// As [`enter_quick`](Self::enter_quick) for the application, or the opposite: ACKs wait for
    /// data that they can ride on.
    pub(in crate::tcp) fn set_quick(&mut self, on: bool) {
        match on {
            true => self.enter_quick(),
            false => self.interactive = true,
        }
    }

    /// Whether quick ACKs are on: ACKs do not wait for data to be piggybacked on.
    pub(in crate::tcp) const fn is_set_quick(&self) -> bool {
        !self.interactive
    }

    /// Whether the last ACK that is due may acknowledge everything up to `ack`.
    fn may_stretch(&self, ack: ExtSeq) -> bool {
        self.stretch.is_some_and(|from| ack.since(from) <= self.reach)
    }

    /// An ACK is to leave.
    pub(in crate::tcp) fn schedule(&mut self, due: DueAck) {
        self.timer = None;
        let from = std::mem::replace(&mut self.acknowledged, due.ack);
        // One that acknowledges nothing new, or reports something, is a message of its own.
        let plain = due.ack > from && due.sack.is_empty() && due.handshake.is_none();
        if plain
            && self.may_stretch(due.ack)
            && let Some(last) = self.due.back_mut()
        {
            *last = due;
            return;
        }
        self.stretch = (plain && self.delayed && !self.is_quick()).then_some(from);
        if self.due.len() == MAX_DUE {
            self.due.pop_back();
        }
        self.due.push_back(due);
    }

    /// The last ACK that is due acknowledges nothing more: what follows has one of its own.
    pub(in crate::tcp) fn end_stretch(&mut self) {
        self.stretch = None;
    }

    /// Whether an ACK is due, or will be.
    pub(in crate::tcp) fn is_pending(&self) -> bool {
        !self.due.is_empty() || self.timer.is_some()
    }

    /// The oldest ACK due.
    pub(in crate::tcp) fn peek(&self) -> Option<&DueAck> {
        self.due.front()
    }

    /// How many are due.
    pub(in crate::tcp) fn len(&self) -> usize {
        self.due.len()
    }

    /// Of those that are due the first `len` stay. What the others acknowledge, the next one will.
    pub(in crate::tcp) fn truncate(&mut self, len: usize) {
        self.due.truncate(len);
        self.stretch = None;
    }

    /// The oldest ACK due, which leaves now.
    pub(in crate::tcp) fn pop(&mut self) -> Option<DueAck> {
        let due = self.due.pop_front()?;
        self.quick = self.quick.saturating_sub(1);
        if self.due.is_empty() {
            self.stretch = None;
        }
        Some(due)
    }

    /// Whether there is something that [`shrink`](Self::shrink) gives back.
    pub(in crate::tcp) fn can_shrink(&self) -> bool {
        self.due.is_empty() && self.due.capacity() > 0
    }

    /// Gives back what it keeps so as not to allocate with every ACK.
    pub(in crate::tcp) fn shrink(&mut self) {
        self.due.shrink_to(0);
    }

    /// A segment left that acknowledges everything up to `ack`: nothing older is due any more.
    pub(in crate::tcp) fn on_carried(&mut self, ack: ExtSeq) {
        if !self.due.is_empty() || self.timer.is_some() || ack > self.acknowledged {
            self.quick = self.quick.saturating_sub(1);
        }
        self.due.clear();
        self.stretch = None;
        self.timer = None;
        self.acknowledged = ack;
    }

    /// Data left. So soon after data arrived it is an answer.
    pub(in crate::tcp) fn on_data_sent(&mut self, now: Instant) {
        self.interactive |= self.last_data.is_some_and(|last| now.since(last) < self.ato);
    }

    /// When the delayed ACK is due.
    pub(in crate::tcp) const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// Whether the delayed ACK is due now. It is then no conversation.
    pub(in crate::tcp) fn on_timeout(&mut self, now: Instant) -> bool {
        if self.timer.is_none_or(|at| at > now) {
            return false;
        }
        self.timer = None;
        if self.interactive {
            self.interactive = false;
            self.ato = ATO.0;
        } else {
            self.ato = (self.ato * 2).min(ATO.1);
        }
        true
    }

    /// The present delay.
    pub(in crate::tcp) const fn ato(&self) -> Duration {
        self.ato
    }

    /// The size of the peer's full segments, as far as seen.
    pub(in crate::tcp) const fn segment(&self) -> ByteCount {
        self.segment
    }

    /// Nothing is due any more.
    pub(in crate::tcp) fn clear(&mut self) {
        self.due = VecDeque::new();
        self.stretch = None;
        self.timer = None;
    }

    /// The peer's first byte has the number `nxt`.
    pub(in crate::tcp) fn start(&mut self, nxt: ExtSeq) {
        self.acknowledged = nxt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ack_answers_a_part_of_the_buffer_of_a_batch_at_most() {
        let answered = |buffer| {
            let mut acks = AckPolicy::new(true);
            acks.quick = 0;
            acks.start(ExtSeq(0));
            acks.set_buffer(ByteCount::from_kib(buffer));
            for n in 1..=200 {
                let nxt = ExtSeq(n * 1448);
                if acks.on_data(Instant::ZERO, ByteCount(1448), nxt, || Duration::from_secs(1)) {
                    let (sack, reported) = (SackBlocks::EMPTY, ReportedCounters::default());
                    acks.schedule(DueAck { ack: nxt, sack, echo: None, reported, handshake: None });
                }
            }
            assert_eq!(acks.timer(), None);
            std::iter::from_fn(|| acks.pop()).map(|due| due.ack.0 / 1448).collect::<Vec<_>>()
        };
        for buffer in [64, 1024] {
            assert_eq!(answered(buffer), [45, 90, 135, 180, 200]);
        }
        assert_eq!(answered(2048), [90, 180, 200]);
        for buffer in [4096, 6144] {
            assert_eq!(answered(buffer), [181, 200]);
        }
    }
}
