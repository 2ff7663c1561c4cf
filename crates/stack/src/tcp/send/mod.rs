//! The send half: unsent data, the peer's window, and the sender's decisions.

mod buffer;
mod hold;
mod persist;
mod window;

#[cfg(test)]
mod tests;

use std::time::Duration;

use airtcp_recovery::{
    Ack, Combination, CombinationError, Decision, Learned, Limit, Sender, Supply, Transmit,
    UndoSign,
};
use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, SeqRange, SharedBytes};

use super::config::TcpConfig;
use super::outlet::Outlet;

use buffer::SendBuffer;
use hold::Hold;
use persist::Persist;
use window::SendWindow;

/// The minimum size of the send buffer, which otherwise follows the data in flight and the
/// congestion window.
const SMALL: ByteCount = ByteCount::from_kib(128);
/// The size of the send buffer while the host is short of memory, so that no connection stalls.
pub(crate) const LEAST: ByteCount = ByteCount::from_kib(1);

/// SND.UNA, SND.NXT, SND.WND, the send buffer and the sender.
#[derive(Debug)]
pub(super) struct SendHalf {
    /// The number of the first byte: ISS + 1.
    first: ExtSeq,
    /// SND.NXT while there is no sender.
    done: ExtSeq,
    /// Exists from ESTABLISHED until nothing is left to send or to acknowledge.
    sender: Option<Box<Sender>>,
    buffer: SendBuffer,
    max: ByteCount,
    held_back: bool,
    /// Whether the application has set the buffer size, so that the window does not change it.
    fixed: bool,
    /// Holds back data that does not fill a segment.
    hold: Option<Box<Hold>>,
    /// The limit of unsent data (bytes).
    low_water: u32,
    /// A transmission that was decided on and is sent in a later packet.
    decided: Option<Box<Transmit>>,
    /// Whether a FIN follows the last byte.
    fin: bool,
    nodelay: bool,
    /// Whether the buffer refused data of the application and is still full.
    refused: bool,
    window: SendWindow,
    persist: Persist,
    /// The last time when the peer acknowledged new data, or when nothing waited for it: neither
    /// sent data nor data that its window holds back.
    progress_at: Instant,
    /// The reason why the last byte was not sent.
    limit: Option<Limit>,
}

/// The changes that a segment made to the peer's window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct WindowNews {
    /// The window has another size.
    pub(super) resized: bool,
    /// The window opened after it was closed; data that time-outs sent into the closed window was
    /// dropped.
    pub(super) opened: bool,
    /// The right edge of the window moved left.
    pub(super) shrunk: bool,
}

impl SendHalf {
    /// Creates the state before the handshake: SND.UNA = ISS, SND.NXT = ISS + 1.
    pub(super) const fn new(now: Instant, first: ExtSeq, config: &TcpConfig) -> Self {
        Self {
            first,
            done: first,
            sender: None,
            buffer: SendBuffer::new(first),
            max: config.send_buffer,
            held_back: false,
            fixed: false,
            hold: None,
            low_water: match config.not_sent_low_water {
                Some(mark) if mark.0 < u32::MAX as u64 => mark.0 as u32,
                _ => u32::MAX,
            },
            decided: None,
            fin: false,
            nodelay: config.nodelay,
            refused: false,
            window: SendWindow::new(first),
            persist: Persist::OFF,
            progress_at: now,
            limit: None,
        }
    }

    /// Starts `sender` once the handshake is complete.
    pub(super) fn start(&mut self, sender: Sender) {
        self.sender = Some(Box::new(sender));
    }

    /// The sender, from ESTABLISHED on until nothing is left to send or to acknowledge.
    pub(super) fn sender(&self) -> Option<&Sender> {
        self.sender.as_deref()
    }

    /// The data that was written and is not acknowledged.
    pub(super) const fn buffer(&self) -> &SendBuffer {
        &self.buffer
    }

    /// Sets the scale of the peer's windows (bits).
    pub(super) fn set_scale(&mut self, scale: u8) {
        self.window.set_scale(scale);
    }

    /// The scale of the peer's windows (bits).
    pub(super) const fn scale(&self) -> u8 {
        self.window.scale()
    }

    /// The number of the first byte: ISS + 1.
    pub(super) const fn first(&self) -> ExtSeq {
        self.first
    }

    /// One past the last number queued, including the FIN's.
    pub(super) fn end(&self) -> ExtSeq {
        self.buffer.end() + u64::from(self.fin)
    }

    /// SND.UNA, from ESTABLISHED on.
    pub(super) fn una(&self) -> ExtSeq {
        self.sender.as_ref().map_or(self.done, |sender| sender.snd_una())
    }

    /// SND.NXT.
    pub(super) fn nxt(&self) -> ExtSeq {
        self.sender.as_ref().map_or(self.done, |sender| sender.snd_nxt())
    }

    /// The retransmission time-out; one second while there is no sender.
    pub(super) fn rto(&self) -> Duration {
        self.sender.as_ref().map_or(Duration::from_secs(1), |sender| sender.rtt().rto())
    }

    /// The last time when the peer acknowledged new data, or when nothing waited for it.
    pub(super) const fn progress_at(&self) -> Instant {
        self.progress_at
    }

    /// Whether sent data is not acknowledged.
    pub(super) fn is_outstanding(&self) -> bool {
        self.una() < self.nxt()
    }

    /// Whether written data is not acknowledged, sent or not.
    pub(super) fn has_unacknowledged_data(&self) -> bool {
        self.una() < self.buffer.end()
    }

    /// Queues a FIN after the last byte; no more data is accepted.
    pub(super) fn shut_down(&mut self) {
        self.fin = true;
    }

    /// Whether a FIN follows the last byte.
    pub(super) const fn is_shut_down(&self) -> bool {
        self.fin
    }

    /// Whether the FIN was sent and acknowledged.
    pub(super) fn is_fin_acked(&self) -> bool {
        self.fin && self.una() == self.end()
    }

    /// SND.WND.
    pub(super) const fn window(&self) -> ByteCount {
        self.window.size()
    }

    /// The oldest acknowledgement number that the peer can still send (RFC 5961 section 5.2), but
    /// none from before the connection, whose SYN has the number ISS.
    pub(super) fn oldest_ack(&self) -> ExtSeq {
        (self.first - 1).max(self.una() - self.window.max().0)
    }

    /// The number of bytes of a write of `len` bytes that the buffer accepts. Remembers whether it
    /// refused any.
    pub(super) fn admit(&mut self, len: usize) -> usize {
        let n = len.min(self.room().as_usize());
        self.refused = n < len;
        n
    }

    /// Copies data into the buffer, which has room for it.
    pub(super) fn write(&mut self, data: &[u8], outlet: &mut Outlet) {
        self.buffer.push(data, outlet);
        self.end_more();
    }

    /// Adds data as [`write`](Self::write), without a copy unless it is short.
    pub(super) fn write_shared(&mut self, data: SharedBytes, outlet: &mut Outlet) {
        self.buffer.push_shared(data, outlet);
        self.end_more();
    }

    /// Returns the memory of acknowledged data to the outlet.
    pub(super) fn give_back(&mut self, outlet: &mut Outlet) {
        self.buffer.give_back(outlet);
    }

    /// Sets the size of the buffer, which then no longer follows the congestion window.
    pub(super) fn set_size(&mut self, size: ByteCount) {
        (self.max, self.fixed) = (size, true);
    }

    /// Limits the buffer to [`LEAST`] while the host is short of memory.
    pub(super) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Disables or enables Nagle's algorithm. Disabling it also sends data that is held back.
    /// Returns whether data that waited may be sent now.
    pub(super) fn set_nodelay(&mut self, nodelay: bool) -> bool {
        self.nodelay = nodelay;
        let held = self.hold.is_some();
        if nodelay {
            self.release();
        }
        nodelay && (held || matches!(self.limit, Some(Limit::Nagle | Limit::Rwnd)))
    }

    /// Whether Nagle's algorithm is disabled.
    pub(super) const fn nodelay(&self) -> bool {
        self.nodelay
    }

    /// Whether the peer's window holds back the next byte.
    pub(super) fn is_window_limited(&self) -> bool {
        self.limit == Some(Limit::Rwnd)
    }

    /// Whether all buffered data was sent, and the application had more.
    pub(super) fn is_buffer_limited(&self) -> bool {
        self.refused && self.limit == Some(Limit::App)
    }

    /// The number of bytes that the application may write now.
    fn room(&self) -> ByteCount {
        match self.low_water {
            u32::MAX => self.buffer_room(),
            mark => self.buffer_room().min(ByteCount(mark.into()) - self.not_sent()),
        }
    }

    fn buffer_room(&self) -> ByteCount {
        self.limit() - self.buffer.len()
    }

    /// The current limit of the buffer: enough for the window to double in a round trip.
    /// Outstanding data does not reduce this amount: in a long recovery it is far more than the
    /// window.
    pub(super) fn limit(&self) -> ByteCount {
        let cwnd = self.sender.as_ref().map_or(ByteCount::ZERO, |sender| sender.cwnd());
        let outstanding = self.nxt().since(self.una());
        let wanted = match (self.held_back, self.fixed) {
            (true, _) => LEAST,
            (false, true) => self.max,
            (false, false) => (outstanding.max(cwnd) + cwnd).max(SMALL),
        };
        wanted.min(self.max)
    }

    /// Whether to wake a writer: a third of the part of the buffer that is free for new data is
    /// free, as in Linux, and unsent data is below half of its limit.
    pub(super) fn is_writable(&self) -> bool {
        let (room, outstanding) = (self.buffer_room(), self.nxt().since(self.una()));
        room > ByteCount::ZERO
            && room * 3 >= self.limit() - outstanding
            && (self.low_water == u32::MAX
                || self.not_sent() * 2 < ByteCount(self.low_water.into()))
    }

    /// Applies the window of an acceptable segment if it is newer than the last one; returns the
    /// changes.
    pub(super) fn on_window(&mut self, seq: ExtSeq, ack: ExtSeq, window: ByteCount) -> WindowNews {
        let (was_closed, edge) = (self.window.size() == ByteCount::ZERO, self.window.edge());
        let resized = self.window.update(self.una(), (seq, ack), window);
        if resized {
            self.persist.stop();
        }
        // A decrease within the rounding of the scale does not count.
        let shrunk = self.window.edge() + (1u64 << self.window.scale()) <= edge;
        WindowNews { resized, opened: resized && was_closed && self.persist.forgiven() > 0, shrunk }
    }

    /// Passes an acceptable ACK to the sender. Returns the sign that a reduction was spurious, if
    /// the reduction was undone.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Option<UndoSign> {
        self.persist.on_ack();
        self.end_more();
        let sender = self.sender.as_mut()?;
        let nothing_waits = sender.snd_una() == sender.snd_nxt() && !self.persist.is_running();
        if ack.ack > sender.snd_una() || nothing_waits {
            self.progress_at = now;
        }
        let undone = sender.on_ack(now, ack);
        self.persist.forgive(self.window.size() == ByteCount::ZERO, sender.backoff());
        self.buffer.free_to(sender.snd_una());
        self.refused = self.refused && !self.is_writable();
        undone
    }

    /// Passes a special ACK for the segment at `seq` (HACK) to the sender; returns whether the
    /// sender accepts it.
    pub(super) fn on_special_ack(&mut self, now: Instant, seq: ExtSeq) -> bool {
        self.sender.as_mut().is_some_and(|sender| sender.on_special_ack(now, seq))
    }

    /// Limits segments to `size` bytes. Longer segments that are outstanding are retransmitted.
    pub(super) fn shrink_segments(&mut self, now: Instant, size: ByteCount) {
        if let Some(sender) = &mut self.sender {
            sender.shrink_segments(now, size);
        }
    }

    /// Allows segments of `size` bytes.
    pub(super) fn grow_segments(&mut self, now: Instant, size: ByteCount) {
        if let Some(sender) = &mut self.sender {
            sender.grow_segments(now, size);
        }
    }

    /// Replaces the sender's strategies; `None` if there is no sender.
    pub(super) fn set_combination(
        &mut self,
        now: Instant,
        combination: &Combination,
    ) -> Option<Result<(), CombinationError>> {
        Some(self.sender.as_mut()?.set_combination(now, combination))
    }

    /// Starts the sender, which has sent nothing yet, with the path measurements of other
    /// connections.
    pub(super) fn inherit(&mut self, now: Instant, known: &Learned) {
        if let Some(sender) = &mut self.sender {
            sender.inherit(now, known);
        }
    }

    /// Payload bytes delivered, and the sender's path measurements.
    pub(super) fn hand_on(&mut self) -> Option<(ByteCount, Learned)> {
        let sender = self.sender.as_mut()?;
        Some((sender.delivered(), sender.hand_on()))
    }

    /// Returns the sender's next event.
    pub(super) fn poll_event(&mut self) -> Option<EventKind> {
        self.sender.as_mut()?.poll_event()
    }

    /// Returns the sender's next transmission, or the reason why there is none.
    pub(super) fn decide(&mut self, now: Instant) -> Option<Decision> {
        if let Some(Transmit { tx, range, rule }) = self.decided.take().map(|decided| *decided) {
            // Data that was acknowledged meanwhile is no longer in the buffer.
            let range = SeqRange::new(range.start.max(self.una()), range.end);
            if !range.is_empty() {
                return Some(Decision::Send(Transmit { tx, range, rule }));
            }
        }
        let mut supply = self.supply();
        let edge = self.window.edge();
        if self.persist.take_override() && edge < supply.end {
            // Shows the sender only the data that fits the window, so that it sends it.
            supply = Supply { end: edge, fin: false, nodelay: true, ..supply };
        }
        let sender = self.sender.as_mut()?;
        if sender.snd_una() == sender.snd_nxt() && !self.persist.is_running() {
            self.progress_at = now;
        }
        let decision = sender.next_transmission(now, &supply);
        let limit = match decision {
            Decision::Send(_) => None,
            Decision::Blocked(limit) => Some(limit),
        };
        self.limit = limit;
        if limit.is_some() && self.hold.is_some() {
            self.watch_hold(now);
        }
        let Some(sender) = &mut self.sender else { return Some(decision) };
        let starved = limit == Some(Limit::Rwnd) && sender.snd_una() == sender.snd_nxt();
        match starved {
            true => self.persist.start(now, sender.rtt().rto()),
            false => self.persist.stop(),
        }
        Some(decision)
    }

    /// Keeps a transmission for the next packet.
    pub(super) fn put_back(&mut self, transmit: Transmit) {
        self.decided = Some(Box::new(transmit));
    }

    /// Decides on full segments of new data that follow the last transmission, up to `until`;
    /// returns their end.
    pub(super) fn decide_more(&mut self, now: Instant, until: ExtSeq) -> ExtSeq {
        let supply = self.supply();
        match &mut self.sender {
            Some(sender) if !self.persist.overrides() => {
                sender.next_full_segments(now, &supply, until)
            }
            _ => self.nxt(),
        }
    }

    fn supply(&self) -> Supply {
        let end = match &self.hold {
            Some(hold) if !self.fin => self.held_to(hold, self.end()),
            _ => self.end(),
        };
        Supply { end, fin: self.fin, window_edge: self.window.edge(), nodelay: self.nodelay }
    }

    /// Handles the sender's deadline; returns whether there was a time-out.
    pub(super) fn on_sender_timeout(&mut self, now: Instant) -> bool {
        let Some(sender) = &mut self.sender else { return false };
        sender.poll_timeout().is_some_and(|at| at <= now) && sender.on_timeout(now)
    }

    /// Handles the persist timer, which may make a window probe due.
    pub(super) fn on_persist_timeout(&mut self, now: Instant) {
        self.persist.on_timeout(now, self.window.edge() > self.nxt());
    }

    /// The next deadline of the sender, the persist timer or held data.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let sender = self.sender.as_ref().and_then(|sender| sender.poll_timeout());
        [sender, self.persist.deadline(), self.held_until()].into_iter().flatten().min()
    }

    /// Whether a window probe is due; clears it.
    pub(super) fn take_probe(&mut self) -> bool {
        self.persist.take_probe()
    }

    /// Whether [`shrink`](Self::shrink) would free memory.
    pub(super) fn can_shrink(&self) -> bool {
        let sender_can = self.sender.as_ref().is_some_and(|sender| sender.can_shrink());
        sender_can || self.buffer.can_shrink()
    }

    /// Frees the memory that is kept to avoid an allocation per segment.
    pub(super) fn shrink(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.shrink();
        }
        self.buffer.shrink();
    }

    /// The number of consecutive signs that the peer is gone: time-outs, or unanswered probes.
    pub(super) fn silence(&self) -> u32 {
        let backoff = self.sender.as_ref().map_or(0, |sender| sender.backoff());
        backoff.saturating_sub(self.persist.forgiven()).max(self.probes_unanswered())
    }

    /// The number of consecutive unanswered window probes.
    pub(super) fn probes_unanswered(&self) -> u32 {
        self.persist.unanswered()
    }

    /// Whether the peer's window has been closed for so long that the interval of probes has
    /// reached its maximum, or that data was retransmitted into it more than `limit` times.
    pub(super) fn is_shut(&self, limit: u32) -> bool {
        self.persist.is_slowest()
            || (self.window.size() == ByteCount::ZERO && self.persist.forgiven() > limit)
    }

    /// Whether the congestion window was reduced since the last call.
    pub(super) fn take_reduced(&mut self) -> bool {
        self.sender.as_mut().is_some_and(|sender| sender.take_reduced())
    }

    /// Whether the peer has to send an answer.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_outstanding() || self.persist.is_running()
    }

    /// Drops the sender and the buffer: no more data is sent.
    pub(super) fn retire(&mut self) {
        self.done = self.nxt();
        self.buffer.clear();
        self.sender = None;
        self.persist.stop();
        self.decided = None;
    }
}
