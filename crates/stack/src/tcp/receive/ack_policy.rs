//! Decides when to acknowledge (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2), as Linux does.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant};
use airtcp_wire::options::SackBlocks;

use crate::tcp::ecn::ReportedCounters;

/// The minimum and maximum delay of a delayed ACK (Linux's `TCP_ATO_MIN`, `TCP_DELACK_MAX`).
const ATO: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(200));
/// The number of quick ACKs at the start and after a pause (Linux's `TCP_MAX_QUICKACKS`): the
/// sender is in slow start, and each ACK lets its window grow.
const QUICK: u8 = 16;
/// The initial estimate of the peer's segment size: RFC 9293's default MSS.
const FIRST_MSS: ByteCount = ByteCount(536);
/// The maximum number of queued ACKs; further ones are merged. Only an extremely large batch of
/// arrivals reaches it.
const MAX_DUE: usize = 256;
/// The bounds of the data that one ACK may newly acknowledge if it arrived in one batch. The amount
/// is a part of the receive buffer, so that a sender that fills a large buffer still gets several
/// ACKs per round trip to grow by. A packet that Linux's receive offload builds from a batch, and
/// acknowledges once, has up to 64 KiB, or 512 KiB if configured (`gro_max_size`).
const STRETCH: (ByteCount, ByteCount) = (ByteCount::from_kib(64), ByteCount::from_kib(256));
const STRETCH_PART: u64 = 16;

/// An ACK that is due.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct DueAck {
    /// The acknowledgement number.
    pub(in crate::tcp) ack: ExtSeq,
    /// The SACK blocks.
    pub(in crate::tcp) sack: SackBlocks,
    /// The number of the transmission that caused it, if transmissions are numbered.
    pub(in crate::tcp) echo: Option<NonZeroU32>,
    /// The AccECN counters at the time when it became due.
    pub(in crate::tcp) reported: ReportedCounters,
    /// The code that replaces ACE, if the ACK answers a SYN-ACK.
    pub(in crate::tcp) handshake: Option<u8>,
}

/// Decides when to send an ACK, and queues the ACKs that are due.
///
/// ACKs are sent when the connection is next polled for packets. Until then they are queued, so
/// that the peer learns of every hole and every duplicate in a batch of arrivals. ACKs of in-order
/// data are merged into one, as RFC 9293 section 3.8.6.3 allows for aggregated segments, once no
/// quick ACKs are due: an ACK costs both ends about as much as a full segment.
#[derive(Debug)]
pub(in crate::tcp) struct AckPolicy {
    delayed: bool,
    quick: u8,
    ato: Duration,
    /// Whether this end answers with data (Linux's ping-pong mode), so that ACKs wait for data.
    interactive: bool,
    timer: Option<Instant>,
    due: VecDeque<DueAck>,
    /// The number acknowledged before the last ACK in the queue, if that ACK may acknowledge more.
    stretch: Option<ExtSeq>,
    /// The maximum amount of data that one ACK acknowledges.
    reach: ByteCount,
    last_data: Option<Instant>,
    /// The estimated size of the peer's full segments.
    segment: ByteCount,
    /// The highest number that an ACK, sent or due, acknowledges.
    acknowledged: ExtSeq,
}

impl AckPolicy {
    /// Creates the policy. `delayed`: ACKs may be delayed.
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

    /// Sets the size of the receive buffer that was needed so far.
    pub(in crate::tcp) fn set_buffer(&mut self, limit: ByteCount) {
        self.reach = ByteCount(limit.0 / STRETCH_PART).clamp(STRETCH.0, STRETCH.1);
    }

    /// Whether in-order data that moved RCV.NXT to `nxt` must be acknowledged at once. If not,
    /// starts the timer.
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

    /// Whether in-order segments that arrive together now are acknowledged together.
    pub(in crate::tcp) fn merges(&self, now: Instant, rto: impl Fn() -> Duration) -> bool {
        let is_pause = self.last_data.is_none_or(|last| now.since(last) > rto());
        self.delayed && !self.is_quick() && !is_pause
    }

    /// The amount of data from `nxt` on that one ACK may acknowledge: the rest of the last ACK in
    /// the queue, or all of the next one.
    pub(in crate::tcp) fn room_from(&self, nxt: ExtSeq) -> ByteCount {
        let from = self.stretch.filter(|_| self.may_stretch(nxt + self.segment.0));
        self.reach - nxt.since(from.unwrap_or(self.acknowledged))
    }

    /// Whether the next ACK is a quick ACK.
    fn is_quick(&self) -> bool {
        self.due.len() < usize::from(self.quick)
    }

    /// Adapts the delay to the intervals between arrivals (Linux's `tcp_event_data_recv`).
    fn adapt(&mut self, now: Instant, rto: impl Fn() -> Duration) {
        let Some(last) = self.last_data else { return };
        let gap = now.since(last);
        if gap <= ATO.0 / 2 {
            self.ato = self.ato / 2 + ATO.0 / 2;
        } else if gap < self.ato {
            self.ato = self.ato / 2 + gap;
        } else if gap > rto() {
            // The sender restarts with a small window.
            self.quick = QUICK;
        }
        self.ato = self.ato.clamp(ATO.0, ATO.1);
    }

    /// Enables quick ACKs for a while: the sender is repairing losses and needs ACKs.
    pub(in crate::tcp) fn enter_quick(&mut self) {
        self.quick = QUICK;
        self.interactive = false;
    }

    /// Enables quick ACKs for the application, as [`enter_quick`](Self::enter_quick), or lets ACKs
    /// wait for data.
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

    /// Whether the last ACK in the queue may acknowledge everything up to `ack`.
    fn may_stretch(&self, ack: ExtSeq) -> bool {
        self.stretch.is_some_and(|from| ack.since(from) <= self.reach)
    }

    /// Queues an ACK, or merges it into the last one.
    pub(in crate::tcp) fn schedule(&mut self, due: DueAck) {
        self.timer = None;
        let from = std::mem::replace(&mut self.acknowledged, due.ack);
        // An ACK that acknowledges nothing new, or has SACK blocks or a handshake code, is not
        // merged.
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

    /// Ends merging into the last ACK in the queue.
    pub(in crate::tcp) fn end_stretch(&mut self) {
        self.stretch = None;
    }

    /// Whether an ACK is due or delayed.
    pub(in crate::tcp) fn is_pending(&self) -> bool {
        !self.due.is_empty() || self.timer.is_some()
    }

    /// The oldest ACK in the queue.
    pub(in crate::tcp) fn peek(&self) -> Option<&DueAck> {
        self.due.front()
    }

    /// The number of queued ACKs.
    pub(in crate::tcp) fn len(&self) -> usize {
        self.due.len()
    }

    /// Keeps only the first `len` queued ACKs. The next ACK acknowledges the data of the others.
    pub(in crate::tcp) fn truncate(&mut self, len: usize) {
        self.due.truncate(len);
        self.stretch = None;
    }

    /// Takes the oldest ACK, which is sent now.
    pub(in crate::tcp) fn pop(&mut self) -> Option<DueAck> {
        let due = self.due.pop_front()?;
        self.quick = self.quick.saturating_sub(1);
        if self.due.is_empty() {
            self.stretch = None;
        }
        Some(due)
    }

    /// Whether [`shrink`](Self::shrink) would free memory.
    pub(in crate::tcp) fn can_shrink(&self) -> bool {
        self.due.is_empty() && self.due.capacity() > 0
    }

    /// Frees the memory that is kept to avoid an allocation per ACK.
    pub(in crate::tcp) fn shrink(&mut self) {
        self.due.shrink_to(0);
    }

    /// Records that a segment which acknowledges everything up to `ack` was sent: no older ACK is
    /// due any more.
    pub(in crate::tcp) fn on_carried(&mut self, ack: ExtSeq) {
        if !self.due.is_empty() || self.timer.is_some() || ack > self.acknowledged {
            self.quick = self.quick.saturating_sub(1);
        }
        self.due.clear();
        self.stretch = None;
        self.timer = None;
        self.acknowledged = ack;
    }

    /// Records that data was sent. Shortly after received data it counts as an answer.
    pub(in crate::tcp) fn on_data_sent(&mut self, now: Instant) {
        self.interactive |= self.last_data.is_some_and(|last| now.since(last) < self.ato);
    }

    /// The deadline of the delayed ACK.
    pub(in crate::tcp) const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// Whether the delayed ACK is due now. The connection then leaves the interactive mode.
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

    /// The current delay.
    pub(in crate::tcp) const fn ato(&self) -> Duration {
        self.ato
    }

    /// The estimated size of the peer's full segments.
    pub(in crate::tcp) const fn segment(&self) -> ByteCount {
        self.segment
    }

    /// Clears all ACKs.
    pub(in crate::tcp) fn clear(&mut self) {
        self.due = VecDeque::new();
        self.stretch = None;
        self.timer = None;
    }

    /// Sets the number of the peer's first byte.
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
