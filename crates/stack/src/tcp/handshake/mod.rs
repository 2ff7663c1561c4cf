//! The three-way handshake (RFC 9293 section 3.5): SYN-SENT, SYN-RECEIVED, and the negotiation of
//! options.

mod attempt;
pub(crate) mod cookie;
mod deferral;

#[cfg(test)]
mod tests;

use airtcp_recovery::{Sender, Start};
use airtcp_types::{ByteCount, ExtSeq, FlowId, Instant, SeqNumber};
use airtcp_wire::options::SackBlocks;
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::counters::Counters;

use super::ecn::{Ecn, Repeat};
use super::refused::{note_data_in_syn, refuse_no_syn, refuse_rst, skip_answer};
use super::{
    AckPolicy, Challenge, Closing, Connection, PathMtu, Receiver, SendHalf, State, Tally,
    TcpConfig, TcpError, Timestamps, Watch, Withholding,
};

pub(super) use attempt::{Handshake, Syn};

use attempt::{Expired, Opening};

impl Connection {
    /// Opens a connection in SYN-SENT. [`poll_transmit`](Self::poll_transmit) returns its SYN.
    ///
    /// `isn` is the initial sequence number (RFC 6528) and `ts_offset` the start of this end's
    /// timestamps, which count milliseconds (RFC 7323 section 5.4); both should be unpredictable.
    pub fn connect(
        now: Instant,
        flow: FlowId,
        isn: SeqNumber,
        ts_offset: u32,
        config: &TcpConfig,
    ) -> Self {
        let first = ExtSeq::starting_at(isn) + 1;
        let mss = ByteCount(u64::from(config.mss(&flow)));
        let receive = Receiver::new(now, mss, config.initial_window, config.receive_buffer);
        Self {
            flow,
            state: State::SynSent,
            hop_limit: config.hop_limit,
            path: PathMtu::new(config.mtu, flow.remote.is_ipv4(), config.black_holes),
            user_timeout: config.user_timeout,
            handshake: Some(Box::new(Handshake::new(now, &flow, config))),
            timestamps: config.timestamps.then(|| Timestamps::new(ts_offset)),
            sack: config.sack,
            extensions: None,
            ecn: Ecn::Off,
            receive,
            withholding: config.mark_aware.map(|aware| Box::new(Withholding::new(aware))),
            acks: AckPolicy::new(config.sender.profile.delayed_acks),
            send: SendHalf::new(now, first, config),
            keep_alive: config.keep_alive.map(|settings| Box::new(Watch::new(now, settings))),
            challenge: Challenge::default(),
            may_challenge: true,
            reset: None,
            closing: Closing::new(config),
            events: config.events.then(Box::default),
            tally: Tally::new(now),
            sharing: config.path_memory.then(Box::default),
            last_info: None,
        }
    }

    /// Accepts a SYN for a listener: the connection is in SYN-RECEIVED, and
    /// [`poll_transmit`](Self::poll_transmit) returns its SYN-ACK. Data in the SYN is ignored: the
    /// peer retransmits it. `isn` and `ts_offset` are as in [`connect`](Self::connect).
    pub fn accept(
        now: Instant,
        flow: FlowId,
        isn: SeqNumber,
        ts_offset: u32,
        config: &TcpConfig,
        syn: &Segment<'_>,
    ) -> Self {
        let mut connection = Self::connect(now, flow, isn, ts_offset, config);
        connection.state = State::SynReceived;
        connection.tally.on_segments(1);
        if let Some(handshake) = &mut connection.handshake {
            handshake.accept(now, config.defer_accept.filter(|wait| !wait.is_zero()));
        }
        connection.negotiate(now, syn);
        connection
    }

    /// Processes the peer's SYN: its sequence number and its options. An option is used if both
    /// ends offer it.
    fn negotiate(&mut self, now: Instant, syn: &Segment<'_>) {
        let Some(handshake) = &mut self.handshake else { return };
        let theirs = &syn.options;
        let agreed = handshake.negotiate(syn);
        let offered = theirs.window_scale.filter(|_| agreed.scales.is_some());
        if let Some(shift) = offered.filter(|shift| *shift > 14) {
            // RFC 7323 section 2.3.
            debug!(remote = %self.flow.remote, shift, "window scale above 14: using 14");
        }
        match (&mut self.timestamps, theirs.timestamps) {
            (Some(timestamps), Some(theirs)) => timestamps.start(now, theirs.val),
            _ => self.timestamps = None,
        }
        self.sack = agreed.sack;
        self.extensions = agreed.extensions.map(Box::new);
        self.ecn = Ecn::new(agreed.ecn, syn);
        let irs = ExtSeq::starting_at(syn.seq);
        let (theirs, ours) = agreed.scales.unwrap_or_default();
        self.send.set_scale(theirs);
        self.receive.start(irs, ours);
        self.acks.start(self.receive.nxt());
        // RFC 7323 section 2.2: the window on a SYN is not scaled.
        self.send.on_window(irs, self.send.first(), ByteCount(u64::from(syn.window)));
    }

    /// Handles a segment in SYN-SENT (RFC 9293 section 3.10.7.3).
    pub(super) fn on_segment_in_syn_sent(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) {
        let first = self.send.first();
        let known = segment.flags.ack && first.nearest(segment.ack) == first;
        match segment.flags {
            flags if flags.rst && known => self.fail(now, TcpError::Refused),
            flags if flags.rst => refuse_rst(&self.flow, counters),
            flags if flags.ack && !known => self.refuse_handshake_ack(segment, counters),
            flags if flags.syn => self.on_peer_syn(now, segment, counters),
            _ => refuse_no_syn(&self.flow, counters),
        }
    }

    fn on_peer_syn(&mut self, now: Instant, segment: &Segment<'_>, counters: &mut Counters) {
        note_data_in_syn(&self.flow, segment, counters);
        self.negotiate(now, segment);
        if segment.flags.ack {
            let echo = segment.options.timestamps.map(|timestamps| timestamps.ecr);
            let code = self.handshake.as_ref().and_then(|handshake| handshake.code());
            self.establish(now, echo);
            // The ACK is the third part of the handshake, and is not delayed.
            self.schedule(SackBlocks::EMPTY, code);
        } else {
            // Simultaneous open: this end's SYN is sent again, with an ACK.
            self.set_state(State::SynReceived);
            self.handshake.iter_mut().for_each(|handshake| handshake.begin_answer(now));
        }
    }

    /// Handles a repeated SYN in SYN-RECEIVED, after the SYN-ACK was lost. Returns whether the
    /// segment is one.
    pub(super) fn on_repeated_syn(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) -> bool {
        let irs = self.receive.nxt() - 1;
        let Some(handshake) = &mut self.handshake else { return false };
        let repeated = segment.flags.syn
            && !segment.flags.ack
            && !segment.flags.rst
            && irs.nearest(segment.seq) == irs;
        let says = if repeated { handshake.on_repeated_syn(segment) } else { Repeat::Same };
        if says == Repeat::Plain {
            // RFC 3168 section 6.1.1, RFC 9768 section 3.1.5: the peer may not support ECN.
            self.ecn.stop_marking();
        }
        if says == Repeat::Contradiction {
            debug!(remote = %self.flow.remote, "ECN flags of SYNs conflict: sending RST");
            self.reset_peer(now);
            self.closing.on_error(TcpError::Reset);
        } else if repeated && self.challenge.admit(now) {
            handshake.answer_again();
        } else if repeated {
            skip_answer(&self.flow, &mut counters.tcp_ext_ack_skipped_syn_recv);
        }
        repeated
    }

    /// Processes the SYN-ACK of a peer whose SYN this end has answered with a SYN-ACK, and clears
    /// its ACE flags. Returns whether it contradicts that SYN.
    pub(super) fn on_crossing_syn_ack(&mut self, segment: &mut Segment<'_>) -> bool {
        let Some(handshake) = &mut self.handshake else { return false };
        if handshake.on_crossing_syn_ack(segment) {
            return true;
        }
        self.ecn.on_crossing_syn_ack(segment);
        segment.flags = segment.flags.with_ace(0);
        false
    }

    /// Enters ESTABLISHED: the SYN of this end is acknowledged and the peer's is known.
    pub(super) fn establish(&mut self, now: Instant, echo: Option<u32>) {
        let Some(handshake) = self.handshake.take() else { return };
        let echoed = echo.and_then(|ecr| self.timestamps?.echo(now, ecr));
        let Opening { sender, peer_mss, shown } = handshake.finish(now, echoed);
        self.path.on_peer_mss(peer_mss);
        let rtt = shown.rtt;
        rtt.into_iter().for_each(|rtt| self.receive.on_rtt(rtt));
        let start = Start {
            now,
            first: self.send.first(),
            smss: ByteCount(u64::from(self.segment_size())),
            granted: self.granted(),
            handshake_rtt: rtt,
            // RFC 3168 section 6.1.2: a mark has the same effect as a loss.
            syn_retransmitted: shown.retransmitted || self.ecn.was_syn_marked(),
            // Initial sequence numbers are derived from the host's secret.
            seed: self.send.first().0,
        };
        self.send.start(Sender::new(&sender, &start));
        self.tally.on_established(now);
        self.closing.on_ack();
        self.on_received(now);
        let state = if self.send.is_shut_down() { State::FinWait1 } else { State::Established };
        self.set_state(state);
    }

    pub(super) fn on_handshake_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let Some(handshake) = &mut self.handshake else { return };
        if handshake.on_timeout(now) == Expired::TimedOut {
            self.give_up(now, counters);
        }
    }

    /// Whether a segment that acknowledges the SYN-ACK leaves the connection half-open.
    pub(super) fn defers(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) -> bool {
        let echoed = segment.options.timestamps.zip(self.timestamps);
        let echoed = echoed.and_then(|(theirs, clock)| clock.echo(now, theirs.ecr));
        let has_text = segment.len() > 0;
        let handshake = self.handshake.as_mut();
        let defers = handshake.is_some_and(|handshake| handshake.defers(now, has_text, echoed));
        if defers {
            debug!(remote = %self.flow.remote, "ACK without data ignored: deferred accept");
            counters.tcp_ext_defer_accept_drop += 1;
        }
        defers
    }

    /// Whether the peer opened the connection.
    pub(super) fn is_passive(&self) -> bool {
        self.handshake.as_ref().is_some_and(|handshake| handshake.is_passive())
    }
}
