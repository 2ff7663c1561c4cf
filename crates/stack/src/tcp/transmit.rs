//! Transmission, in this order: RST, SYN, special ACKs, ACKs that cannot be piggybacked, data,
//! window probe or keep-alive, the last ACK.

use airtcp_recovery::{Decision, Transmit};
use airtcp_types::{ByteCount, ExtSeq, Instant, Packet, SendRule, SeqNumber, SeqRange};
use airtcp_wire::ip;
use airtcp_wire::options::{SackBlocks, TcpOptions, TxNumbers};
use airtcp_wire::tcp::{Flags, Header, Segment, emit_into, emit_super};

use crate::counters::Counters;

use super::config::fixed_headers;
use super::handshake::Syn;
use super::receive::DueAck;
use super::{Connection, Outlet, State};

/// A RST to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reset {
    seq: SeqNumber,
    ack: Option<SeqNumber>,
}

impl Connection {
    /// Returns the next packet to send, or `None`.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        outlet: &mut Outlet,
    ) -> Option<Packet> {
        let packet = self.next_packet(now, counters, outlet);
        self.send.give_back(outlet);
        self.tally.on_sent(packet.is_some().into());
        packet
    }

    fn next_packet(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        outlet: &mut Outlet,
    ) -> Option<Packet> {
        if let Some(reset) = self.reset.take() {
            counters.tcp_out_segs += 1;
            counters.tcp_out_rsts += 1;
            return Some(self.emit_rst(now, &reset, outlet));
        }
        if self.state == State::Closed {
            return None;
        }
        let is_answer = self.state == State::SynReceived;
        if let Some(syn) = self.handshake.as_mut().and_then(|h| h.poll_syn(is_answer)) {
            if syn.sent > 1 {
                counters.tcp_ext_syn_retrans += 1;
                counters.tcp_retrans_segs += 1;
                self.tally.on_syn_sent_again();
            } else {
                counters.tcp_out_segs += 1;
            }
            return Some(self.emit_syn(now, syn, is_answer, outlet));
        }
        if let Some((seq, form)) = self.extensions.as_mut().and_then(|e| e.pop_corrupted()) {
            return Some(self.emit_special_ack(now, seq, form, counters, outlet));
        }
        if self.handshake.is_some() {
            return self.emit_due_ack(now, self.send.nxt(), counters, outlet);
        }
        // The peer needs every ACK of a batch. Only the last one can be piggybacked on data, and
        // only if it carries neither SACK blocks, which would not fit beside a full segment, nor a
        // handshake code in place of the ACE counter.
        let stands_alone = |due: &DueAck| !due.sack.is_empty() || due.handshake.is_some();
        let must_go_alone = self.acks.len() > 1 || self.acks.peek().is_some_and(stands_alone);
        if must_go_alone {
            return self.emit_due_ack(now, self.send.nxt(), counters, outlet);
        }
        let decision = self.send.decide(now);
        self.collect_events();
        if let Some(Decision::Send(transmit)) = decision {
            if !self.ack_goes_before(&transmit) {
                return Some(self.emit_data(now, &transmit, counters, outlet));
            }
            let seq = match transmit.rule.is_retransmission() {
                true => self.send.nxt(),
                false => transmit.range.start,
            };
            self.send.put_back(transmit);
            if self.acks.peek().is_none() {
                self.schedule_ack(None);
            }
            return self.emit_due_ack(now, seq, counters, outlet);
        }
        self.tally.settle(now, &self.send, counters);
        if self.send.take_probe() {
            counters.tcp_ext_win_probe += 1;
            return Some(self.emit_probe(now, counters, outlet));
        }
        if self.take_keep_alive() {
            counters.tcp_ext_keep_alive += 1;
            return Some(self.emit_probe(now, counters, outlet));
        }
        self.emit_due_ack(now, self.send.nxt(), counters, outlet)
    }

    /// Whether an ACK is due.
    pub(crate) fn has_ack_due(&self) -> bool {
        self.acks.peek().is_some()
    }

    /// Schedules an immediate ACK that reports the current state; `duplicate` is a range that
    /// arrived twice.
    pub(super) fn schedule_ack(&mut self, duplicate: Option<SeqRange>) {
        self.schedule(self.reports(duplicate), None);
    }

    /// Schedules an immediate ACK with these SACK blocks. `handshake` is the code that replaces ACE
    /// if the ACK answers a SYN-ACK.
    pub(super) fn schedule(&mut self, sack: SackBlocks, handshake: Option<u8>) {
        let echo = self.extensions.as_ref().and_then(|extensions| extensions.received());
        let reported = self.ecn.report();
        self.acks.schedule(DueAck { ack: self.receive.nxt(), sack, echo, reported, handshake });
    }

    /// The SACK blocks for an ACK; none if SACK was not negotiated.
    pub(super) fn reports(&self, dsack: Option<SeqRange>) -> SackBlocks {
        if self.sack { self.receive.blocks(dsack) } else { SackBlocks::EMPTY }
    }

    /// Builds a probe. As Linux, it uses a number that the peer has already received, so that the
    /// peer answers with an ACK.
    fn emit_probe(&mut self, now: Instant, counters: &mut Counters, outlet: &mut Outlet) -> Packet {
        counters.tcp_out_segs += 1;
        let seq = self.send.una() - 1;
        let reported = self.ecn.report();
        let (ack, sack) = (self.receive.nxt(), SackBlocks::EMPTY);
        let due = DueAck { ack, sack, echo: None, reported, handshake: None };
        self.emit_ack(now, seq, &due, counters, outlet)
    }

    fn emit_due_ack(
        &mut self,
        now: Instant,
        seq: ExtSeq,
        counters: &mut Counters,
        outlet: &mut Outlet,
    ) -> Option<Packet> {
        let due = self.acks.pop()?;
        counters.tcp_out_segs += 1;
        Some(self.emit_ack(now, seq, &due, counters, outlet))
    }

    fn emit_ack(
        &mut self,
        now: Instant,
        seq: ExtSeq,
        due: &DueAck,
        counters: &mut Counters,
        outlet: &mut Outlet,
    ) -> Packet {
        let DueAck { ack, sack, echo, reported, handshake } = *due;
        let tx_numbers = echo.map(|_| TxNumbers { number: None, echo });
        let mut options = TcpOptions { tx_numbers, ..self.options(now) };
        options.accecn = self.ecn.option_on_ack(&reported, &options, sack.len());
        options.sack = sack;
        let flags = match handshake {
            Some(code) => Flags::ACK.with_ace(code),
            None => self.ecn.flags(&reported),
        };
        let header = Header {
            seq: seq.wire(),
            ack: Some(ack.wire()),
            flags,
            window: self.offer(ack, counters),
            options,
        };
        self.emit(&header, outlet)
    }

    /// Builds one transmission, or a super-segment of consecutive transmissions if the device cuts
    /// them.
    fn emit_data(
        &mut self,
        now: Instant,
        first: &Transmit,
        counters: &mut Counters,
        outlet: &mut Outlet,
    ) -> Packet {
        self.count_data(now, first, 1, counters);
        let is_new =
            !first.rule.is_retransmission() && first.range.start < self.send.buffer().end();
        let reported = self.ecn.report();
        let mut flags = self.ecn.flags(&reported);
        // With AccECN, CWR is a bit of the ACE counter.
        flags.cwr |= is_new && self.take_cwr();
        let range = match outlet.at_once > 1 && !flags.cwr && self.may_aggregate(first) {
            true => self.aggregate(now, first, outlet.at_once, counters),
            false => first.range,
        };
        let data_end = range.end.min(self.send.buffer().end());
        let ack = self.receive.nxt();
        let fin = self.send.is_shut_down() && range.end > self.send.buffer().end();
        let data = SeqRange::new(range.start, data_end);
        // As Linux: PSH at the end of new data that was sent together asks the receiver to deliver
        // it.
        let several = range.len() > first.range.len() && !first.rule.is_retransmission();
        let psh = !data.is_empty() && (several || self.send.buffer().ends_write(data));
        let mut options = self.options(now);
        if let Some(extensions) = &self.extensions {
            extensions.mark_data(first.tx, !data.is_empty(), &mut options);
        }
        if !first.rule.is_retransmission() {
            let room = self.room_beside(data.len());
            options.accecn = self.ecn.option_on_data(&reported, &options, room);
        }
        let header = Header {
            seq: range.start.wire(),
            ack: Some(ack.wire()),
            flags: Flags { fin, psh, ..flags },
            window: self.offer(ack, counters),
            options,
        };
        self.acks.on_carried(ack);
        if !data.is_empty() {
            self.acks.on_data_sent(now);
        }
        let (flow, hop_limit, buffer) = (&self.flow, self.hop_limit, self.send.buffer());
        let mut packet = if outlet.at_once > 0 {
            let size = self.segment_size();
            emit_super(outlet.packet(), flow, hop_limit, &header, buffer.shared(data), size)
        } else {
            emit_into(outlet.packet(), flow, hop_limit, &header, buffer.slices(data))
        };
        // RFC 3168 sections 6.1.4 to 6.1.6: only new data may be sent as ECT; ACKs, retransmissions
        // and probes may not.
        if is_new && self.ecn.marks() {
            ip::set_ecn(&mut packet.data, ip::ECT_0);
        }
        packet
    }

    /// Whether new data sent now is the first since the congestion window was reduced and must
    /// carry CWR. It is sent in a packet of its own: not every device that cuts packets sets CWR
    /// only on the first segment. With AccECN no flag reports a reduction (RFC 9768 section 3.1.5),
    /// and CWR is a bit of ACE, which every segment carries.
    fn take_cwr(&mut self) -> bool {
        self.ecn.is_classic() && self.send.take_reduced()
    }

    /// Whether the ACK that a transmission would carry must be sent before it on its own, because
    /// its AccECN option does not fit beside the data.
    fn ack_goes_before(&self, transmit: &Transmit) -> bool {
        let room = match transmit.rule.is_retransmission() {
            true => 0,
            false => self.room_beside(transmit.range.len()),
        };
        self.acks.is_pending() && self.ecn.lacks_room(room)
    }

    /// The space left for more options beside `len` bytes of data.
    fn room_beside(&self, len: ByteCount) -> usize {
        usize::from(self.segment_size()).saturating_sub(len.as_usize())
    }

    /// Whether other transmissions may follow this one in a packet: it is a full segment without
    /// options of its own.
    fn may_aggregate(&self, first: &Transmit) -> bool {
        self.extensions.is_none() && first.range.len().0 == u64::from(self.segment_size())
    }

    /// Decides on further transmissions for the same packet. Returns the range, including `first`,
    /// that is contiguous and sent by the same rule; a transmission that does not fit is kept for
    /// the next packet.
    fn aggregate(
        &mut self,
        now: Instant,
        first: &Transmit,
        at_once: u16,
        counters: &mut Counters,
    ) -> SeqRange {
        let size = u64::from(self.segment_size());
        let most = u64::from(u16::MAX - fixed_headers(&self.flow) - self.option_bytes());
        let most = most.min(u64::from(at_once) * size);
        let mut range = first.range;
        if first.rule == SendRule::NewData && self.send.nxt() == range.end {
            let until = range.start + most / size * size;
            let more = SeqRange::new(range.end, self.send.decide_more(now, until));
            let segments = more.len().0 / size;
            self.count_data(now, &Transmit { range: more, ..*first }, segments, counters);
            self.tally.on_sent(segments);
            range.end = more.end;
        }
        // Only the last segment may be shorter.
        while range.len().0.is_multiple_of(size) && range.len().0 + size <= most {
            let decision = self.send.decide(now);
            self.collect_events();
            let Some(Decision::Send(next)) = decision else { break };
            let data = next.range.end.min(self.send.buffer().end()).since(next.range.start).0;
            let follows = next.range.start == range.end && next.rule == first.rule && data > 0;
            if !follows || data > size {
                self.send.put_back(next);
                break;
            }
            self.count_data(now, &next, 1, counters);
            self.tally.on_sent(1);
            range.end = next.range.end;
        }
        range
    }

    /// Counts one transmission, or several consecutive ones sent by the same rule.
    fn count_data(
        &mut self,
        now: Instant,
        &Transmit { range, rule, .. }: &Transmit,
        segments: u64,
        counters: &mut Counters,
    ) {
        let len = range.end.min(self.send.buffer().end()).since(range.start);
        // TcpOutSegs excludes segments that contain only retransmitted bytes (RFC 4022).
        let again = rule.is_retransmission();
        match again {
            true => counters.tcp_retrans_segs += segments,
            false => counters.tcp_out_segs += segments,
        }
        counters.tcp_ext_fast_retrans += u64::from(rule == SendRule::FastRetransmit);
        self.tally.on_data_sent(now, segments, len, again);
        self.tally.settle(now, &self.send, counters);
    }

    fn emit_syn(
        &mut self,
        now: Instant,
        Syn { options, flags, sent, is_plain }: Syn,
        is_answer: bool,
        outlet: &mut Outlet,
    ) -> Packet {
        if is_plain {
            // RFC 9768 section 3.1.5: the peer may not support ECN.
            self.ecn.stop_marking();
        }
        let timestamps = self.timestamps.map(|clock| clock.option(now));
        let mut options = TcpOptions { timestamps, ..options };
        // RFC 9768 section 3.2.3.2: the option is on the first SYN-ACK, and never on a SYN.
        if is_answer && sent == 1 {
            let reported = self.ecn.report();
            options.accecn = self.ecn.option_on_ack(&reported, &options, 0);
        }
        let header = Header {
            seq: (self.send.first() - 1).wire(),
            ack: is_answer.then(|| self.receive.nxt().wire()),
            flags,
            window: self.receive.syn_window(),
            options,
        };
        self.emit(&header, outlet)
    }

    /// Lets a RST leave with the numbers of this connection.
    pub(super) fn send_rst(&mut self) {
        let seq = if self.handshake.is_some() { self.send.first() } else { self.send.nxt() };
        self.reset = Some(Reset { seq: seq.wire(), ack: Some(self.receive.nxt().wire()) });
    }

    /// Lets a RST leave as of a connection that is gone (RFC 9293 section 3.10.7.1): with the
    /// number that a segment acknowledges.
    pub(super) fn answer_with_rst(&mut self, segment: &Segment<'_>) {
        self.reset = Some(Reset { seq: segment.ack, ack: None });
    }

    fn emit_rst(&self, now: Instant, reset: &Reset, outlet: &mut Outlet) -> Packet {
        let header = Header {
            seq: reset.seq,
            ack: reset.ack,
            flags: Flags { rst: true, ..Flags::default() },
            window: 0,
            // RFC 7323 section 3.2: a RST may carry timestamps, and Linux's does.
            options: if reset.ack.is_some() { self.options(now) } else { TcpOptions::default() },
        };
        self.emit(&header, outlet)
    }

    /// Builds a packet without data.
    pub(super) fn emit(&self, header: &Header, outlet: &mut Outlet) -> Packet {
        emit_into(outlet.packet(), &self.flow, self.hop_limit, header, std::iter::empty())
    }

    pub(super) fn options(&self, now: Instant) -> TcpOptions {
        TcpOptions {
            timestamps: self.timestamps.map(|clock| clock.option(now)),
            ..TcpOptions::default()
        }
    }

    fn offer(&mut self, ack: ExtSeq, counters: &mut Counters) -> u16 {
        let offered = self.receive.offer(ack);
        counters.tcp_ext_to_zero_window_adv += u64::from(offered.closes);
        counters.tcp_ext_from_zero_window_adv += u64::from(offered.opens);
        offered.field
    }
}
