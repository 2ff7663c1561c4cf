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

/// The send buffer takes at least so much, and otherwise what is in flight and as much again as may
/// be.
const SMALL: ByteCount = ByteCount::from_kib(128);
/// What it takes while the host is short of memory, so that no connection stands still.
pub(crate) const LEAST: ByteCount = ByteCount::from_kib(1);

/// SND.UNA, SND.NXT, SND.WND, the send buffer and the sender.
#[derive(Debug)]
pub(super) struct SendHalf {
    /// The number of the first byte: ISS + 1.
    first: ExtSeq,
    /// SND.NXT while there is no sender.
    done: ExtSeq,
    /// There is one from ESTABLISHED until nothing is left to send or to acknowledge.
    sender: Option<Box<Sender>>,
    buffer: SendBuffer,
    max: ByteCount,
    held_back: bool,
    /// The buffer is as large as it may be, whatever the window.
    fixed: bool,
    /// What does not fill a segment waits.
    hold: Option<Box<Hold>>,
    /// No more is taken while so much was not sent (bytes).
    low_water: u32,
    /// What was decided on after something that leaves in a packet of its own.
    decided: Option<Box<Transmit>>,
    /// A FIN follows the last byte.
    fin: bool,
    nodelay: bool,
    /// The application had more than there was room for, and there is still none.
    refused: bool,
    window: SendWindow,
    persist: Persist,
    /// When the peer last acknowledged something new, or nothing waited for it: neither data that
    /// was sent nor data that its window keeps back.
    progress_at: Instant,
    /// What kept the last byte from being sent.
    limit: Option<Limit>,
}

/// What a segment changed of the window that the peer offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct WindowNews {
    /// Its size.
    pub(super) resized: bool,
    /// It opened; what time-outs sent into it while it was closed was thrown away.
    pub(super) opened: bool,
    /// Its end moved left.
    pub(super) shrunk: bool,
}

impl SendHalf {
    /// Before the handshake: SND.UNA = ISS, SND.NXT = ISS + 1.
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

    /// The handshake is done: `sender` decides from now on.
    pub(super) fn start(&mut self, sender: Sender) {
        self.sender = Some(Box::new(sender));
    }

    /// The sender, from ESTABLISHED on until nothing is left to send or to acknowledge.
    pub(super) fn sender(&self) -> Option<&Sender> {
        self.sender.as_deref()
    }

    /// What was written and is not acknowledged.
    pub(super) const fn buffer(&self) -> &SendBuffer {
        &self.buffer
    }

    /// The windows we are sent are shifted by so many bits.
    pub(super) fn set_scale(&mut self, scale: u8) {
        self.window.set_scale(scale);
    }

    /// By how many bits the windows we are sent are shifted.
    pub(super) const fn scale(&self) -> u8 {
        self.window.scale()
    }

    /// The number of the first byte: ISS + 1.
    pub(super) const fn first(&self) -> ExtSeq {
        self.first
    }

    /// One past the last number queued, the FIN's included.
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

    /// The time-out; one second while there is no sender.
    pub(super) fn rto(&self) -> Duration {
        self.sender.as_ref().map_or(Duration::from_secs(1), |sender| sender.rtt().rto())
    }

    /// When the peer last acknowledged something new, or nothing waited for it.
    pub(super) const fn progress_at(&self) -> Instant {
        self.progress_at
    }

    /// Whether something sent is not acknowledged.
    pub(super) fn is_outstanding(&self) -> bool {
        self.una() < self.nxt()
    }

    /// Whether something that was written is not acknowledged, sent or not.
    pub(super) fn has_unacknowledged_data(&self) -> bool {
        self.una() < self.buffer.end()
    }

    /// A FIN follows the last byte: nothing more is written.
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

    /// The oldest acknowledgement number that a peer can still send (RFC 5961 section 5.2): none is
    /// from before the connection, whose SYN has the number ISS.
    pub(super) fn oldest_ack(&self) -> ExtSeq {
        (self.first - 1).max(self.una() - self.window.max().0)
    }

    /// How much of a write of `len` bytes there is room for. What there is none for the application
    /// is known to have.
    pub(super) fn admit(&mut self, len: usize) -> usize {
        let n = len.min(self.room().as_usize());
        self.refused = n < len;
        n
    }

    /// Takes one write, which there is room for.
    pub(super) fn write(&mut self, data: &[u8], outlet: &mut Outlet) {
        self.buffer.push(data, outlet);
        self.end_more();
    }

    /// As [`write`](Self::write), without a copy unless it is short.
    pub(super) fn write_shared(&mut self, data: SharedBytes, outlet: &mut Outlet) {
        self.buffer.push_shared(data, outlet);
        self.end_more();
    }

    /// Gives the memory of what is acknowledged back.
    pub(super) fn give_back(&mut self, outlet: &mut Outlet) {
        self.buffer.give_back(outlet);
    }

    /// Sets the size of the buffer, which then no longer follows the congestion window.
    pub(super) fn set_size(&mut self, size: ByteCount) {
        (self.max, self.fixed) = (size, true);
    }

    /// Makes the buffer small while the host is short of memory, or lets it be as large as it may
    /// again.
    pub(super) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Turns Nagle's algorithm off or on. Off, what is held back leaves, too. Gives whether
    /// something that waited may leave now.
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

    /// Whether the peer's window keeps the next byte from leaving.
    pub(super) fn is_window_limited(&self) -> bool {
        self.limit == Some(Limit::Rwnd)
    }

    /// Whether all in the buffer was sent, and the application had more.
    pub(super) fn is_buffer_limited(&self) -> bool {
        self.refused && self.limit == Some(Limit::App)
    }

    /// How many bytes the application may write now.
    fn room(&self) -> ByteCount {
        match self.low_water {
            u32::MAX => self.buffer_room(),
            mark => self.buffer_room().min(ByteCount(mark.into()) - self.not_sent()),
        }
    }

    fn buffer_room(&self) -> ByteCount {
        self.limit() - self.buffer.len()
    }

    /// The present bound of the buffer: enough for the window to double in a round trip. What is
    /// outstanding takes no room from it: in a long recovery that is far more than the window.
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

    /// Whether a writer is to be woken: as in Linux a third of the buffer is free, but of that part
    /// only which data that was never sent may fill; and half of what may wait to be sent does not.
    pub(super) fn is_writable(&self) -> bool {
        let (room, outstanding) = (self.buffer_room(), self.nxt().since(self.una()));
        room > ByteCount::ZERO
            && room * 3 >= self.limit() - outstanding
            && (self.low_water == u32::MAX
                || self.not_sent() * 2 < ByteCount(self.low_water.into()))
    }

    /// Takes the window of an acceptable segment, if it is newer than the last one; gives what it
    /// changed.
    pub(super) fn on_window(&mut self, seq: ExtSeq, ack: ExtSeq, window: ByteCount) -> WindowNews {
        let (was_closed, edge) = (self.window.size() == ByteCount::ZERO, self.window.edge());
        let resized = self.window.update(self.una(), (seq, ack), window);
        if resized {
            self.persist.stop();
        }
        // What rounding to the scale takes back is nothing.
        let shrunk = self.window.edge() + (1u64 << self.window.scale()) <= edge;
        WindowNews { resized, opened: resized && was_closed && self.persist.forgiven() > 0, shrunk }
    }

    /// Hands an acceptable ACK to the sender; gives what shows that a reduction was spurious, if it
    /// was taken back.
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

    /// Takes a special ACK for the segment at `seq` (HACK); gives whether the sender believes it.
    pub(super) fn on_special_ack(&mut self, now: Instant, seq: ExtSeq) -> bool {
        self.sender.as_mut().is_some_and(|sender| sender.on_special_ack(now, seq))
    }

    /// Segments are no longer than `size` from now on; what is outstanding and longer is sent
    /// again.
    pub(super) fn shrink_segments(&mut self, now: Instant, size: ByteCount) {
        if let Some(sender) = &mut self.sender {
            sender.shrink_segments(now, size);
        }
    }

    /// Segments may have `size` bytes from now on.
    pub(super) fn grow_segments(&mut self, now: Instant, size: ByteCount) {
        if let Some(sender) = &mut self.sender {
            sender.grow_segments(now, size);
        }
    }

    /// Gives the sender other strategies; `None` if there is no sender.
    pub(super) fn set_combination(
        &mut self,
        now: Instant,
        combination: &Combination,
    ) -> Option<Result<(), CombinationError>> {
        Some(self.sender.as_mut()?.set_combination(now, combination))
    }

    /// Nothing was sent yet: the sender begins with what others have learned of the path.
    pub(super) fn inherit(&mut self, now: Instant, known: &Learned) {
        if let Some(sender) = &mut self.sender {
            sender.inherit(now, known);
        }
    }

    /// Payload bytes that have arrived, and what the sender has learned of the path.
    pub(super) fn hand_on(&mut self) -> Option<(ByteCount, Learned)> {
        let sender = self.sender.as_mut()?;
        Some((sender.delivered(), sender.hand_on()))
    }

    /// What the sender has to tell next.
    pub(super) fn poll_event(&mut self) -> Option<EventKind> {
        self.sender.as_mut()?.poll_event()
    }

    /// What the sender wants sent, or why nothing.
    pub(super) fn decide(&mut self, now: Instant) -> Option<Decision> {
        if let Some(Transmit { tx, range, rule }) = self.decided.take().map(|decided| *decided) {
            // What was acknowledged meanwhile is no longer held.
            let range = SeqRange::new(range.start.max(self.una()), range.end);
            if !range.is_empty() {
                return Some(Decision::Send(Transmit { tx, range, rule }));
            }
        }
        let mut supply = self.supply();
        let edge = self.window.edge();
        if self.persist.take_override() && edge < supply.end {
            // All there is, as far as the sender can see, fits the window.
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

    /// What was decided on waits for what leaves before it.
    pub(super) fn put_back(&mut self, transmit: Transmit) {
        self.decided = Some(Box::new(transmit));
    }

    /// Decides on full segments of new data that follow what was just decided on, up to `until`;
    /// gives where they end.
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

    /// Works the sender's deadline, if it has come; gives whether there was a time-out.
    pub(super) fn on_sender_timeout(&mut self, now: Instant) -> bool {
        let Some(sender) = &mut self.sender else { return false };
        sender.poll_timeout().is_some_and(|at| at <= now) && sender.on_timeout(now)
    }

    /// Works the persist timer: a window probe is to leave, if it is time.
    pub(super) fn on_persist_timeout(&mut self, now: Instant) {
        self.persist.on_timeout(now, self.window.edge() > self.nxt());
    }

    /// When the sender, the persist timer or what is held back next needs the time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let sender = self.sender.as_ref().and_then(|sender| sender.poll_timeout());
        [sender, self.persist.deadline(), self.held_until()].into_iter().flatten().min()
    }

    /// Whether a window probe is to leave, which it is once.
    pub(super) fn take_probe(&mut self) -> bool {
        self.persist.take_probe()
    }

    /// Whether there is something that [`shrink`](Self::shrink) gives back.
    pub(super) fn can_shrink(&self) -> bool {
        let sender_can = self.sender.as_ref().is_some_and(|sender| sender.can_shrink());
        sender_can || self.buffer.can_shrink()
    }

    /// Gives back what it keeps so as not to allocate with every segment.
    pub(super) fn shrink(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.shrink();
        }
        self.buffer.shrink();
    }

    /// Signs in a row that the peer is gone: time-outs, or probes without an answer.
    pub(super) fn silence(&self) -> u32 {
        let backoff = self.sender.as_ref().map_or(0, |sender| sender.backoff());
        backoff.saturating_sub(self.persist.forgiven()).max(self.probes_unanswered())
    }

    /// How many window probes in a row the peer has not answered.
    pub(super) fn probes_unanswered(&self) -> u32 {
        self.persist.unanswered()
    }

    /// Whether the peer's window has been closed for so long that probes leave as seldom as they
    /// ever do, or data was sent again into it as often as `limit`.
    pub(super) fn is_shut(&self, limit: u32) -> bool {
        self.persist.is_slowest()
            || (self.window.size() == ByteCount::ZERO && self.persist.forgiven() > limit)
    }

    /// Whether the window was reduced since the last call.
    pub(super) fn take_reduced(&mut self) -> bool {
        self.sender.as_mut().is_some_and(|sender| sender.take_reduced())
    }

    /// Whether the peer owes an answer.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_outstanding() || self.persist.is_running()
    }

    /// Nothing will be sent any more.
    pub(super) fn retire(&mut self) {
        self.done = self.nxt();
        self.buffer.clear();
        self.sender = None;
        self.persist.stop();
        self.decided = None;
    }
}
