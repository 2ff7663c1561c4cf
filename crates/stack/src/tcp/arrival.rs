//! Processing of a segment (RFC 9293 section 3.10.7.4), in the RFC's order.

use airtcp_types::{ByteCount, ExtSeq, Instant, SeqRange};
use airtcp_wire::options::SackBlocks;
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::counters::Counters;

use super::ecn::News;
use super::receive::{AckFate, Taken};
use super::refused::{
    refuse_old_stamp, refuse_rst, refuse_without_ack, refuse_without_stamp, skip_answer,
};
use super::{Connection, State, TcpError, receive};

impl Connection {
    /// Handles a segment of this connection. A segment that is not acceptable is counted, and
    /// answered or dropped as RFC 9293 and RFC 5961 require.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment<'_>, counters: &mut Counters) {
        self.tally.on_segments(segment.count());
        match self.state {
            State::Closed => {}
            State::SynSent => self.on_segment_in_syn_sent(now, segment, counters),
            _ => {
                if !self.on_repeated_syn(now, segment, counters) {
                    self.on_synchronized_segment(now, segment, counters);
                }
            }
        }
    }

    /// The amount of data that may be processed as one segment starting with this one, limited by
    /// what one ACK may acknowledge. Zero if its segments may need separate answers: they do not
    /// continue a stream without holes, are old, or must be acknowledged one by one.
    pub fn room_for_run(&self, now: Instant, segment: &Segment<'_>) -> ByteCount {
        let next = self.receive.nxt();
        let is_old = match (&self.timestamps, segment.options.timestamps) {
            (Some(clock), Some(theirs)) => clock.is_old(now, theirs.val),
            (Some(_), None) => true,
            (None, _) => false,
        };
        // With RFC 3168 ECN, CWR and ECE require processing per segment.
        let has_news = (segment.flags.ece || segment.flags.cwr) && !self.ecn.is_accurate();
        let is_plain = self.state.takes_data()
            && !has_news
            && !self.receive.has_holes()
            && next.nearest(segment.seq) == next
            && !is_old
            && self.acks.merges(now, || self.send.rto());
        if !is_plain {
            return ByteCount::ZERO;
        }
        self.receive.room().min(self.acks.room_from(next))
    }

    fn on_synchronized_segment(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) {
        let mut segment = *segment;
        let mut seq = self.receive.nxt().nearest(segment.seq);
        let mut is_crossing_syn_ack = false;
        // Simultaneous open: both ends answer the other's SYN with a SYN-ACK (RFC 9293 figure 8).
        if self.state == State::SynReceived
            && segment.flags.syn
            && segment.flags.ack
            && seq + 1 == self.receive.nxt()
        {
            if self.on_crossing_syn_ack(&mut segment) {
                debug!(
                    remote = %self.flow.remote,
                    "ECN flags of SYN and SYN-ACK conflict: sending RST"
                );
                self.reset_peer(now);
                self.closing.on_error(TcpError::Reset);
                return;
            }
            // The SYN's flags were read above, or in the first SYN.
            segment.flags.syn = false;
            seq = seq + 1;
            is_crossing_syn_ack = true;
        }
        let end = seq + u64::from(segment.len());

        if !self.passes_paws(now, &segment, seq, counters) {
            return;
        }
        if !self.receive.is_acceptable(seq, end) {
            self.on_unacceptable(now, &segment, seq, end, counters);
            return;
        }
        if segment.flags.rst {
            self.on_rst(now, seq, counters);
            return;
        }
        if segment.flags.syn {
            self.challenge_syn(now, &segment, seq, counters);
            return;
        }
        if !segment.flags.ack {
            refuse_without_ack(&self.flow, counters);
            return;
        }
        // RFC 9768 section 3.2.2.1: the ACK of a SYN-ACK reports the ECN field with which the
        // SYN-ACK arrived.
        let handshake = self.handshake.as_ref().filter(|_| is_crossing_syn_ack);
        let code = handshake.and_then(|handshake| handshake.code());
        if !self.on_ack(now, &segment, seq, is_crossing_syn_ack, counters) {
            return;
        }
        // Only now is the segment known to be genuine: a forged timestamp would make PAWS reject
        // all later segments.
        self.on_received(now);
        if let (Some(clock), Some(theirs)) = (&mut self.timestamps, segment.options.timestamps) {
            clock.on_segment(now, theirs.val, seq, self.receive.last_ack_sent());
        }
        if let Some(extensions) = &mut self.extensions {
            extensions.on_segment(&segment.options);
        }
        let due = self.acks.len();
        self.on_text(now, &segment, seq, counters);
        // RFC 9768 section 3.2.2.5.1: marks on segments without data require an ACK without SACK
        // blocks, so that it is not a duplicate ACK.
        if self.ecn.take_wish() {
            self.schedule(SackBlocks::EMPTY, None);
        }
        if is_crossing_syn_ack {
            // RFC 9293 section 3.10.7.4, first: the SYN is old and is answered with an ACK. The ACK
            // opens the connection for a peer that has not received the SYN-ACK of this end, and
            // also acknowledges the data and the FIN of the peer's SYN-ACK.
            self.acks.truncate(due);
            self.schedule(SackBlocks::EMPTY, code);
        }
    }

    /// Whether the segment passes PAWS (RFC 7323 section 5.3).
    fn passes_paws(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        seq: ExtSeq,
        counters: &mut Counters,
    ) -> bool {
        let Some(clock) = &self.timestamps else { return true };
        if segment.flags.rst {
            return true;
        }
        let Some(theirs) = segment.options.timestamps else {
            // RFC 7323 section 3.2: once negotiated, timestamps are on every segment. A SYN without
            // them belongs to another connection.
            if !segment.flags.syn {
                refuse_without_stamp(&self.flow, counters);
            }
            return segment.flags.syn;
        };
        if !clock.is_old(now, theirs.val) {
            return true;
        }
        refuse_old_stamp(&self.flow, counters);
        if self.may_answer(now, segment, seq) {
            let duplicate = self.find_duplicate(seq, segment, counters);
            self.schedule_ack(duplicate);
        } else {
            skip_answer(&self.flow, &mut counters.tcp_ext_ack_skipped_paws);
        }
        false
    }

    /// RFC 9293 section 3.10.7.4, first: answers with an ACK that shows the peer the expected
    /// number.
    fn on_unacceptable(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        seq: ExtSeq,
        end: ExtSeq,
        counters: &mut Counters,
    ) {
        if seq > self.receive.nxt() {
            debug!(remote = %self.flow.remote, "segment dropped: beyond the window");
            counters.tcp_ext_beyond_window += 1;
            self.note_closed_window(counters);
        }
        if segment.flags.rst {
            refuse_rst(&self.flow, counters);
            return;
        }
        if segment.flags.syn {
            self.challenge_syn(now, segment, seq, counters);
            return;
        }
        let probe = seq + 1 == self.receive.nxt() && end <= self.receive.nxt();
        let answered = if probe && segment.payload.is_empty() {
            self.challenge.admit_probe(now)
        } else {
            self.may_answer(now, segment, seq)
        };
        if answered {
            let duplicate = self.find_duplicate(seq, segment, counters);
            self.schedule_ack(duplicate);
        } else {
            skip_answer(&self.flow, &mut counters.tcp_ext_ack_skipped_seq);
        }
    }

    /// Whether an ACK may answer a segment that is not acceptable. Data that the peer may have
    /// retransmitted because an ACK was lost is always answered. Other answers are rate-limited:
    /// two ends that disagree would answer each other's ACKs forever, and data far from the window
    /// does not come from the peer.
    fn may_answer(&mut self, now: Instant, segment: &Segment<'_>, seq: ExtSeq) -> bool {
        let data = !segment.payload.is_empty() && !segment.flags.syn;
        data && self.receive.is_near(seq) || self.challenge.admit(now)
    }

    /// The part of a segment that is old, to be reported as a duplicate (RFC 2883 section 4).
    fn find_duplicate(
        &mut self,
        seq: ExtSeq,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) -> Option<SeqRange> {
        let old = self.receive.old_part(seq, segment.payload.len())?;
        counters.tcp_ext_delayed_ack_lost += 1;
        self.ecn.on_old_data();
        self.acks.enter_quick();
        counters.tcp_ext_dsack_old_sent += u64::from(self.sack);
        Some(old)
    }

    /// Handles a RST (RFC 9293 section 3.10.7.4, second, and RFC 5961 section 3.2).
    fn on_rst(&mut self, now: Instant, seq: ExtSeq, counters: &mut Counters) {
        if seq != self.receive.nxt() {
            if self.receive.is_in_window(seq) {
                self.send_challenge_ack(now, counters);
            } else {
                refuse_rst(&self.flow, counters);
            }
            return;
        }
        match self.state {
            State::SynReceived => {
                let error = if self.is_passive() { TcpError::Reset } else { TcpError::Refused };
                self.fail(now, error);
            }
            // RFC 9293 section 3.10.7.4 reports no error here, which would hide the loss of data.
            // As in Linux it is an error.
            State::LastAck | State::Closing if self.send.has_unacknowledged_data() => {
                self.fail(now, TcpError::Reset);
            }
            State::TimeWait | State::LastAck | State::Closing => {
                self.retire(now);
                self.set_state(State::Closed);
            }
            _ => self.fail(now, TcpError::Reset),
        }
    }

    /// Handles data and FIN (RFC 9293 section 3.10.7.4, seventh and eighth).
    fn on_text(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        seq: ExtSeq,
        counters: &mut Counters,
    ) {
        if segment.flags.urg {
            // RFC 6093: urgent data is handled as ordinary data.
            debug!(remote = %self.flow.remote, "urgent flag ignored");
            counters.tcp_ext_urgent += 1;
        }
        if segment.payload.is_empty() && !segment.flags.fin {
            return;
        }
        if !self.state.takes_data() {
            // After the peer's FIN only retransmissions can arrive: a repeated FIN restarts
            // TIME-WAIT.
            if self.state == State::TimeWait && segment.flags.fin {
                self.closing.begin_time_wait(now);
            }
            let duplicate = self.find_duplicate(seq, segment, counters);
            self.schedule_ack(duplicate);
            return;
        }
        let before = self.receive.nxt();
        let arrival = self.receive.on_data(seq, segment.payload, segment.flags.fin);
        if self.closing.is_orphan() && arrival.new_bytes > ByteCount::ZERO {
            // RFC 9293 section 3.6.1: the application has closed the connection and will not read
            // the data; the RST informs the peer.
            counters.tcp_ext_abort_on_data += 1;
            self.reset_peer(now);
            // The RST is that of a connection that no longer exists (RFC 9293 section 3.10.7.1): a
            // peer that has not received the FIN of this end accepts no other number (RFC 5961
            // section 3.2).
            self.answer_with_rst(segment);
            self.closing.on_error(TcpError::Aborted);
            return;
        }
        self.count_arrival(now, segment.count(), &arrival, counters);
        if self.sack
            && let Some(duplicate) = arrival.duplicate
        {
            if duplicate.end <= before {
                counters.tcp_ext_dsack_old_sent += 1;
            } else {
                counters.tcp_ext_dsack_ofo_sent += 1;
            }
        }
        let mut marks = News::Nothing;
        if arrival.new_bytes > ByteCount::ZERO {
            marks = self.ecn.on_new_data(segment);
        } else if arrival.duplicate.is_some() {
            self.ecn.on_old_data();
        }
        let wanted = self.ecn.take_wish();
        if marks == News::Marked {
            self.acks.enter_quick();
        }
        if self.withhold(now, segment, before, &arrival, counters) && !wanted {
            return;
        }
        let at_once = marks == News::SlowsDown
            || wanted
            || arrival.out_of_order
            || arrival.dropped
            || arrival.duplicate.is_some()
            || arrival.fin
            || self.receive.has_holes();
        if arrival.out_of_order || arrival.duplicate.is_some() {
            self.acks.enter_quick();
        }
        let nxt = self.receive.nxt();
        let size = segment.size.map_or(usize::MAX, usize::from).min(segment.payload.len());
        let Self { acks, send, receive, tally, .. } = self;
        acks.set_buffer(receive.limit().min(tally.bytes_received()));
        if acks.on_data(now, size.into(), nxt, || send.rto()) || at_once {
            self.schedule_ack(arrival.duplicate);
        }
        if wanted {
            self.acks.end_stretch();
        }
        if arrival.fin {
            self.on_peer_fin(now);
        }
    }

    /// Applies the withholding of ACKs, if enabled. Returns whether the ACK of this segment is
    /// withheld. `before` is RCV.NXT before the segment.
    fn withhold(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        before: ExtSeq,
        arrival: &receive::Arrival,
        counters: &mut Counters,
    ) -> bool {
        let Some(withholding) = &mut self.withholding else { return false };
        let nxt = self.receive.nxt();
        let (reserved, fin) = (segment.reserved, segment.flags.fin);
        let fate = withholding.on_data(now, &Taken { before, nxt, arrival, reserved, fin });
        if fate == AckFate::Reported {
            // A third one follows, for the segment itself.
            self.report_hole(2, counters);
        }
        counters.tcp_ext_dup_acks_withheld += u64::from(fate == AckFate::Withheld);
        fate == AckFate::Withheld
    }

    pub(super) fn on_withholding_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let nxt = self.receive.nxt();
        if self.withholding.as_mut().is_some_and(|withholding| withholding.on_timeout(now, nxt)) {
            self.schedule_ack(None);
            self.report_hole(2, counters);
        }
    }

    /// Reports a hole to the peer. With SACK one ACK is enough; without, three duplicate ACKs are
    /// needed (RFC 5681 section 3.2), and this schedules `more` of them.
    fn report_hole(&mut self, more: usize, counters: &mut Counters) {
        counters.tcp_ext_withholding_ended += 1;
        if !self.sack {
            (0..more).for_each(|_| self.schedule_ack(None));
        }
    }

    fn count_arrival(
        &mut self,
        now: Instant,
        segments: u32,
        arrival: &receive::Arrival,
        counters: &mut Counters,
    ) {
        if arrival.new_bytes > ByteCount::ZERO {
            self.tally.on_data(now, segments, arrival.new_bytes);
        }
        counters.tcp_ext_ofo_queue += u64::from(arrival.queued);
        if arrival.out_of_order && arrival.dropped {
            debug!(remote = %self.flow.remote, "out-of-order data dropped: no room");
            counters.tcp_ext_ofo_drop += 1;
        }
        if arrival.dropped {
            self.note_closed_window(counters);
        }
        if arrival.no_memory {
            debug!(remote = %self.flow.remote, "data dropped: memory limit of host or peer");
            counters.tcp_ext_rcv_q_drop += 1;
        }
        if arrival.over_quota {
            debug!(remote = %self.flow.remote, "out-of-order data dropped: quota reached");
            counters.tcp_ext_ofo_quota += 1;
        }
    }

    /// Counts dropped data that was sent although the window is closed.
    fn note_closed_window(&self, counters: &mut Counters) {
        if self.receive.window() == ByteCount::ZERO {
            debug!(remote = %self.flow.remote, "segment dropped: receive window closed");
            counters.tcp_ext_zero_window_drop += 1;
        }
    }

    /// Answers a SYN with a challenge ACK, whatever its sequence number (RFC 5961 section 4).
    fn challenge_syn(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        seq: ExtSeq,
        counters: &mut Counters,
    ) {
        counters.tcp_ext_syn_challenge += 1;
        // RFC 9768 section 3.2.2.1: the peer does not know yet with which ECN field the SYN-ACK
        // that opened the connection arrived.
        let code = self.ecn.repeated_code(segment, seq, self.send.first().wire());
        if !self.challenge.send(now, self.flow.remote, self.may_challenge, counters) {
            return;
        }
        match code {
            Some(_) => self.schedule(SackBlocks::EMPTY, code),
            None => self.schedule_ack(None),
        }
    }

    pub(super) fn send_challenge_ack(&mut self, now: Instant, counters: &mut Counters) {
        if self.challenge.send(now, self.flow.remote, self.may_challenge, counters) {
            self.schedule_ack(None);
        }
    }
}
