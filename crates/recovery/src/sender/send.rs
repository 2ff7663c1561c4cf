//! Selection of the next segment to send, and the rule that permits it.

use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, SendRule, SeqRange, TxNo};

use super::Sender;
use crate::control::NoticeKind;
use crate::rate::Snapshot;
use crate::transmission::TxState;

/// Data that is ready to send, and the peer's window.
#[derive(Clone, Copy, Debug)]
pub struct Supply {
    /// The end of the queued data; a queued FIN counts as one byte.
    pub end: ExtSeq,
    /// Whether a FIN is queued, at `end - 1`.
    pub fin: bool,
    /// SND.UNA + SND.WND. If it has moved left, new data waits, and retransmissions continue up to
    /// it (RFC 9293 section 3.8.6).
    pub window_edge: ExtSeq,
    /// Whether Nagle's algorithm is off (TCP_NODELAY).
    pub nodelay: bool,
}

/// A transmission that the sender has decided on and recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Its transmission number.
    pub tx: TxNo,
    /// Its bytes; the last of them may be a FIN.
    pub range: SeqRange,
    /// The rule that permits it.
    pub rule: SendRule,
}

/// The reason why nothing may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The congestion window is full.
    Cwnd,
    /// The peer's window is full, or so small that sending would cause silly window syndrome (RFC
    /// 9293 section 3.8.6.2.1).
    Rwnd,
    /// No data is queued.
    App,
    /// Nagle's algorithm: a small segment waits for an ACK (RFC 9293 section 3.7.4).
    Nagle,
    /// The pacer delays the data until [`Sender::poll_timeout`].
    Pacing,
}

/// The result of [`Sender::next_transmission`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Send this segment now.
    Send(Transmit),
    /// Send nothing now.
    Blocked(Limit),
}

impl Sender {
    /// Selects the next segment to send and records it as sent. Call it until it returns
    /// [`Decision::Blocked`].
    ///
    /// A segment is sent only if pipe plus its data does not exceed min(cwnd, the peer's window).
    /// The exceptions are these rules, which ignore the congestion window:
    /// - [`SendRule::FastRetransmit`]: RFC 5681 section 3.2 step 3, RFC 6675 section 5 (4.3), the
    ///   retransmission on a partial ACK, RFC 6582 section 3.2 step 3, and the first retransmission
    ///   after an undo;
    /// - [`SendRule::Probe`] and [`SendRule::ProbeAgain`]: the one segment that a probe time-out
    ///   sends, RFC 8985 section 7.3;
    /// - [`SendRule::Timeout`]: the one segment that a retransmission time-out sends, and the first
    ///   retransmission once F-RTO has shown that the time-out was not spurious, RFC 5682 section
    ///   2.1 step 3 a.
    ///
    /// [`SendRule::LimitedTransmit`] is the rule of new data sent on the first duplicate ACKs. It
    /// obeys the limit above, because the pipe has shrunk, but FlightSize then exceeds cwnd.
    ///
    /// A FIN needs room in the peer's window, but not in cwnd: as in Linux it is sent with the last
    /// data, even if that is a full segment.
    pub fn next_transmission(&mut self, now: Instant, supply: &Supply) -> Decision {
        let decision = self.decide(now, supply);
        if matches!(decision, Decision::Blocked(limit) if limit != Limit::Pacing) {
            self.pacer.end_wait();
        }
        decision
    }

    fn decide(&mut self, now: Instant, supply: &Supply) -> Decision {
        self.max_window = self.max_window.max(supply.window_edge.since(self.snd_una()));
        if let Some((tx, rule)) = self.immediate.take()
            && self.core.board.get(tx).is_some_and(|t| t.state == TxState::Lost)
        {
            return self.retransmit(now, tx, rule, supply);
        }
        if let Some((range, rule)) = self.take_probe(supply) {
            return match (rule, self.core.board.last().map(|last| last.tx)) {
                (SendRule::ProbeAgain, Some(last)) => self.retransmit(now, last, rule, supply),
                _ => self.send_now(now, range, rule, supply),
            };
        }
        if self.core.board.is_empty() && supply.end <= self.snd_nxt() {
            // The common case: an idle connection.
            self.rate.on_app_limited(ByteCount::ZERO);
            return Decision::Blocked(Limit::App);
        }
        self.end_idle(now, supply);
        let room = self.cwnd() - self.pipe();
        if self.pacer.holds_back(now) {
            let sendable = supply.end.min(supply.window_edge).since(self.snd_nxt());
            if sendable >= room && self.strategies.control().pacing_rate().is_none() {
                // Without pacing, cwnd would soon be the limit; pacing by the window must not keep
                // the window from growing. A control with a pacing rate of its own knows what
                // limits it.
                self.cwnd_use.on_limited(self.snd_nxt());
            }
            return Decision::Blocked(Limit::Pacing);
        }
        let new_data = self.new_data(supply);
        let withheld = self.undo.withholds_repairs(new_data.is_ok(), self.core.board.snd_nxt());
        let repair = self.strategies.pick(&self.core, now, new_data.is_ok());
        if let Some(repair) = repair.filter(|_| !withheld) {
            let range = self.core.board.get(repair.tx).map(|t| self.repair(t.range, supply));
            if range.is_some_and(|range| self.is_beyond(range, supply)) {
                return Decision::Blocked(Limit::Rwnd);
            }
            if range.is_some_and(|range| data(range, supply) <= room) {
                return self.retransmit(now, repair.tx, repair.rule, supply);
            }
            self.cwnd_use.on_limited(self.snd_nxt());
            return Decision::Blocked(Limit::Cwnd);
        }
        match new_data {
            Ok(range) => self.send_new(now, range, room, supply),
            Err(limit) => {
                if room < self.core.smss {
                    // The last of the data has exactly filled the window.
                    self.cwnd_use.on_limited(self.snd_nxt());
                }
                if limit != Limit::Rwnd && room > ByteCount::ZERO {
                    self.rate.on_app_limited(self.core.board.in_flight());
                }
                Decision::Blocked(limit)
            }
        }
    }

    /// Sends full segments of new data up to `until`, directly after a full segment of new data,
    /// and records them as sent; returns the end of the last one. The result is that of repeated
    /// calls of [`next_transmission`](Self::next_transmission), at a fraction of the cost. Sends
    /// nothing if anything other than the windows and the pacer matters.
    pub fn next_full_segments(&mut self, now: Instant, supply: &Supply, until: ExtSeq) -> ExtSeq {
        let smss = self.core.smss;
        // Leave the last of the data, which is sent with the FIN.
        let bulk_end = supply.end - u64::from(supply.fin) * 2;
        let end = until.min(bulk_end).min(supply.window_edge);
        if self.snd_nxt() + smss > end || !self.has_only_windows_to_heed() {
            return self.snd_nxt();
        }
        let used = self.pipe().max(self.core.board.flight_size());
        let mut range = SeqRange::new(self.snd_nxt(), self.snd_nxt());
        let end = end.min(range.start + (self.cwnd() - used));
        while range.end + smss <= end && self.pacer.blocked_until(now).is_none() {
            self.pacer.on_sent(now, smss);
            range.end = range.end + smss;
        }
        if range.is_empty() {
            return range.end;
        }
        let snapshot = self.rate.on_send(now, false, self.core.board.in_flight() + smss);
        let run = self.core.board.new_run(now, range, smss, SendRule::NewData, snapshot);
        self.strategies.on_sent_together(&run);
        self.core.board.send_together(run);
        self.stats.segments_sent += range.len().0 / smss.0;
        self.stats.bytes_sent += range.len();
        self.idle.on_sent(now);
        self.probes.schedule(&self.core, now, true);
        self.snd_nxt()
    }

    /// Returns whether new data was just sent, nothing is missing, no response is in progress and
    /// no events are recorded.
    fn has_only_windows_to_heed(&self) -> bool {
        let board = &self.core.board;
        !self.core.recovery.is_on()
            && self.core.deferred.is_empty()
            && self.core.rto.is_running()
            && self.prr.is_none()
            && self.immediate.is_none()
            && !self.idle.is_on()
            && !self.events.are_on()
            && !self.probes.is_due()
            && board.lost() == ByteCount::ZERO
            && board.sacked() == ByteCount::ZERO
            && board.last().is_some_and(|last| last.rule == SendRule::NewData)
    }

    /// RFC 5681 section 4.1: after nothing was sent for a retransmission time-out, there are no
    /// ACKs to clock out a whole window.
    fn end_idle(&mut self, now: Instant, supply: &Supply) {
        if !self.idle.is_on() || self.new_data(supply).is_err() {
            return;
        }
        let Some(silence) = self.idle.end(now) else { return };
        let restart = self.profile.idle_restart && silence.unsent > self.core.rtt.rto();
        if restart {
            // A later undo must not restore the window from before the idle time.
            self.undo.stop();
        }
        let app_limited = self.rate.is_app_limited();
        self.notify(now, NoticeKind::Idle { time: silence.unacked, restart, app_limited });
        self.update_pacing(now);
    }

    fn send_new(
        &mut self,
        now: Instant,
        range: SeqRange,
        room: ByteCount,
        supply: &Supply,
    ) -> Decision {
        let data = data(range, supply);
        let beyond = self.core.board.flight_size() + data > self.cwnd();
        let limited_transmit = beyond && !self.core.recovery.is_on();
        if data > room || (limited_transmit && !self.profile.limited_transmit) {
            self.cwnd_use.on_limited(self.snd_nxt());
            return Decision::Blocked(Limit::Cwnd);
        }
        let rule = if limited_transmit { SendRule::LimitedTransmit } else { SendRule::NewData };
        self.send_now(now, range, rule, supply)
    }

    fn send_now(
        &mut self,
        now: Instant,
        range: SeqRange,
        rule: SendRule,
        supply: &Supply,
    ) -> Decision {
        let snapshot = self.snapshot(now, range.len());
        let before = (self.pipe(), self.cwnd());
        let tx = self.core.board.send_new(now, range, rule, snapshot);
        self.sent(now, Transmit { tx, range, rule }, before, supply)
    }

    /// Returns the snapshot for a transmission of `bytes` that is sent now.
    fn snapshot(&mut self, now: Instant, bytes: ByteCount) -> Snapshot {
        let board = &self.core.board;
        self.rate.on_send(now, board.is_empty(), board.in_flight() + bytes)
    }

    fn retransmit(&mut self, now: Instant, tx: TxNo, rule: SendRule, supply: &Supply) -> Decision {
        let before = (self.pipe(), self.cwnd());
        let Some(range) = self.core.board.get(tx).map(|old| self.repair(old.range, supply)) else {
            return Decision::Blocked(Limit::App);
        };
        let snapshot = self.snapshot(now, range.len());
        let board = &mut self.core.board;
        let Some(tx) = board.send_again(now, range.start, range.len(), rule, snapshot) else {
            return Decision::Blocked(Limit::App);
        };
        self.undo.on_retransmission(now, range);
        self.stats.segments_retransmitted += 1;
        self.stats.bytes_retransmitted += range.len();
        self.stats.fast_retransmits += u64::from(rule == SendRule::FastRetransmit);
        self.sent(now, Transmit { tx, range, rule }, before, supply)
    }

    /// Processes a transmission; `pipe` and `cwnd` are the values before it was sent.
    fn sent(
        &mut self,
        now: Instant,
        transmit: Transmit,
        (pipe, cwnd): (ByteCount, ByteCount),
        supply: &Supply,
    ) -> Decision {
        self.idle.on_sent(now);
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += transmit.range.len();
        self.pacer.on_sent(now, transmit.range.len());
        if let Some(prr) = &mut self.prr {
            prr.on_sent(transmit.range.len());
        }
        let again = transmit.rule.is_retransmission();
        let board = &self.core.board;
        let (mut reported_head, mut is_head, mut is_late) = (false, false, false);
        if let Some(transmission) = if again { board.get(transmit.tx) } else { board.last() } {
            self.strategies.on_sent(&transmission);
            is_head = again && transmission.range.start == board.snd_una();
            reported_head = is_head && self.strategies.was_reported(&transmission);
            is_late = !self.core.recovery.is_on()
                && transmission.previous().is_some_and(|tx| self.core.recovery.answers(tx));
        }
        // RFC 6298 section 5 (5.1). The first retransmission of a recovery restarts the timer: on a
        // stable path, the running timer would expire before its ACK arrives. As in Linux, so does
        // the retransmission of each later hole at SND.UNA that SACK reports. Retransmissions on
        // NewReno's later partial ACKs do not (otherwise the impatient variant would not be
        // impatient), nor does that of a loss found after its recovery ended by time.
        let has_its_own = transmit.rule == SendRule::FastRetransmit
            || (is_head && transmit.rule == SendRule::Repair);
        let restarts = has_its_own && self.restarts_rto() && !is_late;
        // So does the retransmission of a segment at SND.UNA that the peer reported (HACK 3.3): the
        // peer may keep reporting further segments.
        if !self.core.rto.is_running() || restarts || reported_head {
            self.restart_rto(now);
        }
        let Transmit { tx, range, rule } = transmit;
        if !again {
            self.probes.schedule(&self.core, now, true);
        }
        let rwnd = supply.window_edge.since(self.snd_una());
        self.events.add(|| EventKind::Sent { tx, range, rule, pipe, cwnd, rwnd });
        Decision::Send(transmit)
    }

    /// Returns the next segment of unsent data, or the limit that prevents it.
    pub(super) fn new_data(&self, supply: &Supply) -> Result<SeqRange, Limit> {
        let next = self.snd_nxt();
        if next >= supply.end {
            return Err(Limit::App);
        }
        let whole = self.fitted(SeqRange::new(next, supply.end), supply);
        let range = SeqRange::new(next, whole.end.min(supply.window_edge));
        if range.is_empty() {
            return Err(Limit::Rwnd);
        }
        let full = range.len() >= self.core.smss;
        let cut_by_window = range.end < whole.end;
        let waits = !supply.nodelay && !self.core.board.is_empty();
        // RFC 9293 section 3.8.6.2.1, with the conditions of Nagle's algorithm.
        if cut_by_window && !full && (waits || range.len() < self.max_window.half()) {
            return Err(Limit::Rwnd);
        }
        let ends_stream = supply.fin && range.end == supply.end;
        if !full && !cut_by_window && !ends_stream && waits {
            return Err(Limit::Nagle);
        }
        Ok(range)
    }

    /// Returns whether `range` lies outside the peer's window, which has shrunk. The first
    /// outstanding segment is sent anyway, because it probes a closed window.
    fn is_beyond(&self, range: SeqRange, supply: &Supply) -> bool {
        range.start >= supply.window_edge && range.start > self.snd_una()
    }

    /// Returns the part of a range to retransmit now: a segment of it, up to the edge of a window
    /// that has shrunk (RFC 9293 section 3.8.6, SHLD-16).
    fn repair(&self, range: SeqRange, supply: &Supply) -> SeqRange {
        let whole = self.fitted(range, supply);
        let cut = SeqRange::new(whole.start, whole.end.min(supply.window_edge));
        if cut.is_empty() { whole } else { cut }
    }

    /// Cuts a range to one segment: at most SMSS bytes, plus the FIN if it follows them.
    fn fitted(&self, range: SeqRange, supply: &Supply) -> SeqRange {
        let full = SeqRange::new(range.start, range.end.min(range.start + self.core.smss));
        let ends_with_fin = supply.fin && range.end == supply.end;
        if ends_with_fin && full.end + 1 == range.end { range } else { full }
    }
}

/// Returns the number of bytes in a range without the FIN.
fn data(range: SeqRange, supply: &Supply) -> ByteCount {
    range.len() - ByteCount(u64::from(supply.fin && range.end == supply.end))
}
