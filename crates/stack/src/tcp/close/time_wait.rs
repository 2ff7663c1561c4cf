//! Compact TIME-WAIT state of a closed connection (RFC 9293 section 3.10.7.4).

use std::cmp::Ordering;
use std::time::Duration;

use airtcp_types::{ExtSeq, FlowId, Instant, Packet, SeqNumber};
use airtcp_wire::options::TcpOptions;
use airtcp_wire::tcp::{Flags, Header, Segment, emit};

use crate::counters::Counters;
use crate::tcp::refused::{
    refuse_old_stamp, refuse_rst, refuse_without_ack, refuse_without_stamp, skip_answer,
};
use crate::tcp::{Challenge, Connection, State, Timestamps};

/// A connection in TIME-WAIT that the application has closed.
#[derive(Debug)]
pub(crate) struct TimeWait {
    flow: FlowId,
    snd_nxt: ExtSeq,
    rcv_nxt: ExtSeq,
    timestamps: Option<Timestamps>,
    challenge: Challenge,
    until: Instant,
    length: Duration,
    window: u16,
    hop_limit: u8,
    /// The ACE field (RFC 9768) if AccECN was negotiated, otherwise zero.
    ace: u8,
}

/// The effect of a segment on a connection in TIME-WAIT.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Nothing is sent.
    Silence,
    /// A packet is sent in answer.
    Answer(Packet),
    /// The connection leaves TIME-WAIT.
    Closed,
}

/// Whether a SYN is provably newer than a connection in TIME-WAIT: by its timestamp, or, if the
/// timestamps are missing or equal, by its sequence number (RFC 6191, RFC 9293 section 3.6.1). A
/// SYN with FIN does not open a connection.
pub(in crate::tcp) fn is_newer(
    rcv_nxt: ExtSeq,
    clock: Option<&Timestamps>,
    syn: &Segment<'_>,
) -> bool {
    if !syn.flags.syn || syn.flags.ack || syn.flags.rst || syn.flags.fin {
        return false;
    }
    let above = rcv_nxt.nearest(syn.seq) > rcv_nxt;
    match (clock, syn.options.timestamps) {
        (Some(clock), Some(theirs)) => match clock.order(theirs.val) {
            Ordering::Greater => true,
            Ordering::Equal => above,
            Ordering::Less => false,
        },
        _ => above,
    }
}

impl Connection {
    /// Returns the state to keep, if the connection is in TIME-WAIT.
    pub(crate) fn time_wait(&self) -> Option<TimeWait> {
        let until = self.closing.deadline().filter(|_| self.state == State::TimeWait)?;
        Some(TimeWait {
            flow: self.flow,
            snd_nxt: self.send.nxt(),
            rcv_nxt: self.receive.nxt(),
            timestamps: self.timestamps,
            challenge: self.challenge,
            until,
            length: self.closing.time_wait(),
            window: self.receive.offered(),
            hop_limit: self.hop_limit,
            ace: self.ecn.ace(),
        })
    }
}

impl TimeWait {
    pub(crate) const fn flow(&self) -> FlowId {
        self.flow
    }

    /// SND.NXT.
    pub(crate) const fn snd_nxt(&self) -> SeqNumber {
        self.snd_nxt.wire()
    }

    /// The end of TIME-WAIT.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// Whether a SYN may replace it.
    pub(crate) fn may_be_replaced(&self, syn: &Segment<'_>) -> bool {
        is_newer(self.rcv_nxt, self.timestamps.as_ref(), syn)
    }

    /// Handles a segment. The peer can only send retransmissions: a repeated FIN is acknowledged
    /// again and restarts TIME-WAIT. ACKs that answer other segments are rate-limited.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        may_challenge: bool,
        counters: &mut Counters,
    ) -> Outcome {
        let seq = self.rcv_nxt.nearest(segment.seq);
        if segment.flags.rst {
            if seq == self.rcv_nxt {
                return Outcome::Closed;
            }
            let in_window = (self.rcv_nxt..self.rcv_nxt + u64::from(self.window)).contains(&seq);
            if !in_window {
                refuse_rst(&self.flow, counters);
                return Outcome::Silence;
            }
            return self.challenge(now, may_challenge, counters);
        }
        match (&self.timestamps, segment.options.timestamps) {
            (Some(clock), Some(theirs)) if clock.is_old(now, theirs.val) => {
                refuse_old_stamp(&self.flow, counters);
                return self.answer_seldom(now, &mut counters.tcp_ext_ack_skipped_paws);
            }
            (Some(_), None) if !segment.flags.syn => {
                refuse_without_stamp(&self.flow, counters);
                return Outcome::Silence;
            }
            _ => {}
        }
        if segment.flags.syn {
            counters.tcp_ext_syn_challenge += 1;
            return self.challenge(now, may_challenge, counters);
        }
        if !segment.flags.ack {
            refuse_without_ack(&self.flow, counters);
            return Outcome::Silence;
        }
        let end = seq + u64::from(segment.len());
        if segment.flags.fin && end == self.rcv_nxt {
            self.until = now + self.length;
            if let (Some(clock), Some(theirs)) = (&mut self.timestamps, segment.options.timestamps)
            {
                clock.on_segment(now, theirs.val, seq, self.rcv_nxt);
            }
            return Outcome::Answer(self.ack(now));
        }
        if seq == self.rcv_nxt && segment.len() == 0 {
            return Outcome::Silence;
        }
        self.answer_seldom(now, &mut counters.tcp_ext_ack_skipped_seq)
    }

    fn challenge(&mut self, now: Instant, may: bool, counters: &mut Counters) -> Outcome {
        match self.challenge.send(now, self.flow.remote, may, counters) {
            true => Outcome::Answer(self.ack(now)),
            false => Outcome::Silence,
        }
    }

    fn answer_seldom(&mut self, now: Instant, skipped: &mut u64) -> Outcome {
        if self.challenge.admit(now) {
            return Outcome::Answer(self.ack(now));
        }
        skip_answer(&self.flow, skipped);
        Outcome::Silence
    }

    fn ack(&self, now: Instant) -> Packet {
        let timestamps = self.timestamps.map(|clock| clock.option(now));
        let header = Header {
            seq: self.snd_nxt.wire(),
            ack: Some(self.rcv_nxt.wire()),
            flags: Flags::ACK.with_ace(self.ace),
            window: self.window,
            options: TcpOptions { timestamps, ..TcpOptions::default() },
        };
        emit(&self.flow, self.hop_limit, &header, &[])
    }
}
