//! The three-way handshake (RFC 9293 section 3.5): SYN-SENT, SYN-RECEIVED, and what they negotiate.

pub(crate) mod cookie;
mod deferral;

use std::time::Duration;

use airtcp_recovery::{Sender, SenderConfig, Start, WireNeeds};
use airtcp_types::{ByteCount, ExtSeq, FlowId, Instant, SeqNumber};
use airtcp_wire::options::{SackBlocks, TcpOptions};
use airtcp_wire::tcp::{Flags, Segment};
use tracing::debug;

use crate::counters::Counters;

use super::config::{MIN_MSS, default_mss};
use super::ecn::{Ecn, Negotiation, Repeat};
use super::refused::{note_data_in_syn, refuse_no_syn, refuse_rst, skip_answer};
use super::{
    AckPolicy, Challenge, Connection, Extensions, PathMtu, Receiver, SendHalf, Settings, State,
    Tally, TcpConfig, TcpError, Timestamps, Watch, Withholding,
};

use deferral::{Deferral, Shown};

/// RFC 6298 section 2.1; it doubles with every retransmission, up to Linux's `TCP_RTO_MAX`.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);

/// What is known before the connection is established.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) sender: SenderConfig,
    /// This end's options: those offered, then, once the peer's SYN was heard, those agreed.
    options: TcpOptions,
    /// The MSS the peer named.
    peer_mss: u16,
    /// When the first SYN of this end left or, if the peer opened, the first SYN-ACK.
    sent_at: Instant,
    /// When the timer was started.
    timer_from: Instant,
    /// How often the SYN has left or, in SYN-RECEIVED, the SYN-ACK.
    sent: u32,
    /// The SYN left more than once before this end entered SYN-RECEIVED.
    syn_retransmitted: bool,
    /// Both ends opened: an ACK may answer the SYN or the SYN-ACK, which have the same number.
    has_two: bool,
    timeout: Duration,
    /// How often the timer ran out in this state.
    retries: u8,
    /// How often it may run out in this state before the attempt ends.
    max_retries: u8,
    /// A SYN or SYN-ACK is to leave.
    due: bool,
    /// What is offered and agreed on of ECN.
    pub(super) ecn: Negotiation,
    /// It was opened by the peer's SYN.
    passive: bool,
    /// The SYN-ACK was a cookie: when it left is not known.
    by_cookie: bool,
    /// Data is waited for.
    pub(super) deferral: Option<Deferral>,
}

impl Handshake {
    fn new(now: Instant, flow: &FlowId, config: &TcpConfig) -> Self {
        let options = TcpOptions {
            mss: Some(config.mss(flow)),
            window_scale: config.window_scaling.then(|| config.window_scale()),
            sack_permitted: config.sack,
            ..Extensions::offered(config)
        };
        let mut sender = config.sender.clone();
        sender.events |= config.events;
        Self {
            sender,
            options,
            peer_mss: default_mss(flow),
            sent_at: now,
            timer_from: now,
            sent: 0,
            syn_retransmitted: false,
            has_two: false,
            timeout: FIRST_TIMEOUT,
            retries: 0,
            max_retries: config.syn_retries,
            due: true,
            ecn: config.ecn(),
            passive: false,
            by_cookie: false,
            deferral: None,
        }
    }

    /// What the SYN offers, or both ends agreed on.
    pub(super) fn offered(&self, timestamps: bool) -> WireNeeds {
        WireNeeds {
            sack: self.options.sack_permitted,
            timestamps,
            hack: self.options.hack.is_some(),
            txno_echo: self.options.tx_numbers.is_some(),
            ecn: self.ecn.offers(),
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.timer_from + self.timeout
    }

    /// Enters SYN-RECEIVED from SYN-SENT: a SYN-ACK is to leave, which counts apart from the SYN and starts the timer anew.
    ///
    /// RFC 6298 section 5.5: a time-out that was doubled stays so, for nothing has been measured. Together the time-outs of SYN
    /// and SYN-ACK last no shorter than those of a SYN alone (RFC 9293 MUST-23).
    fn begin_answer(&mut self, now: Instant) {
        self.timer_from = now;
        self.syn_retransmitted = self.sent > 1;
        self.has_two = true;
        self.sent = 0;
        self.max_retries = self.max_retries.saturating_sub(self.retries);
        self.retries = 0;
        self.due = true;
    }

    /// The SYN-ACK has left, at some time, as a cookie.
    pub(super) fn on_cookie_sent(&mut self) {
        (self.due, self.sent, self.by_cookie) = (false, 1, true);
        // As Linux: nothing of it was kept, and no timer would send it again.
        self.deferral = None;
    }

    /// The options of the SYN or SYN-ACK, if one is to leave, and for which time it does.
    pub(super) fn take_due(&mut self) -> Option<(TcpOptions, u32)> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.sent += 1;
        Some((self.options, self.sent))
    }

    /// The ECN flags of a SYN that leaves for the `sent`th time, or of a SYN-ACK.
    pub(super) fn flags(&mut self, sent: u32, is_answer: bool) -> Flags {
        if is_answer { self.ecn.syn_ack(self.retries) } else { self.ecn.syn(sent) }
    }

    /// What an ACK that comes now shows; the SYN whose time stamp it echoes was made at `echoed`.
    pub(super) fn show(&self, now: Instant, echoed: Option<Instant>) -> Shown {
        let retransmitted = self.syn_retransmitted || self.sent > 1;
        // Karn: a SYN sent twice is measured by its time stamp or not at all.
        let is_ambiguous = retransmitted || self.has_two;
        let rtt = match echoed.filter(|_| is_ambiguous) {
            Some(made) => Some(now.since(made)),
            None => (!is_ambiguous && !self.by_cookie).then(|| now.since(self.sent_at)),
        };
        Shown { rtt, retransmitted }
    }
}

impl Connection {
    /// Opens a connection: SYN-SENT, with the SYN to be taken by
    /// [`poll_transmit`](Self::poll_transmit).
    ///
    /// `isn` is the initial sequence number (RFC 6528), `ts_offset` the start of this end's time
    /// stamps (RFC 7323 section 5.4); both should be unguessable.
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
            settings: Settings {
                user_timeout: config.user_timeout,
                time_wait: config.time_wait,
                fin_wait_2: config.fin_wait_2,
            },
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
            probe: false,
            orphan: false,
            linger: None,
            error: None,
            soft_error: None,
            events: config.events.then(Box::default),
            tally: Tally::new(now),
            last_info: None,
        }
    }

    /// Answers a SYN that a listener wants: SYN-RECEIVED, with the SYN-ACK to be taken by
    /// [`poll_transmit`](Self::poll_transmit). Data in the SYN is left for the peer to send again.
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
        connection.tally.segs_in += 1;
        if let Some(handshake) = &mut connection.handshake {
            handshake.passive = true;
            let wait = config.defer_accept.filter(|wait| !wait.is_zero());
            handshake.deferral = wait.map(|wait| Deferral::new(now + wait));
        }
        connection.negotiate(now, syn);
        connection
    }

    /// Takes the peer's SYN: its number and its options, of which those hold that both ends offer.
    fn negotiate(&mut self, now: Instant, syn: &Segment<'_>) {
        let Some(handshake) = &mut self.handshake else { return };
        let theirs = &syn.options;
        let ours = &mut handshake.options;
        if let (Some(shift), Some(_)) = (theirs.window_scale, ours.window_scale) {
            // RFC 7323 section 2.3: above 14 it counts as 14, and is told of.
            if shift > 14 {
                debug!(remote = %self.flow.remote, shift, "a window scale above 14");
            }
            self.send.scale = shift.min(14);
        } else {
            ours.window_scale = None;
        }
        let scale = ours.window_scale.unwrap_or(0);
        ours.sack_permitted &= theirs.sack_permitted;
        self.sack = ours.sack_permitted;
        let form = match syn.flags.ack {
            true => handshake.ecn.on_syn_ack(syn),
            false => handshake.ecn.on_syn(syn, !handshake.passive),
        };
        self.extensions = Extensions::agree(ours, theirs, handshake.passive).map(Box::new);
        match (&mut self.timestamps, theirs.timestamps) {
            (Some(timestamps), Some(theirs)) => timestamps.start(now, theirs.val),
            _ => self.timestamps = None,
        }
        if let Some(mss) = theirs.mss {
            handshake.peer_mss = mss.max(MIN_MSS);
        }
        self.ecn = Ecn::new(form, syn);
        let irs = ExtSeq::starting_at(syn.seq);
        self.receive.start(irs, scale);
        self.acks.start(self.receive.nxt());
        // RFC 7323 section 2.2: the window on a SYN is not scaled.
        self.send.on_window(irs, self.send.first(), ByteCount(u64::from(syn.window)));
    }

    /// RFC 9293 section 3.10.7.3.
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
            let code = self.handshake.as_ref().and_then(|handshake| handshake.ecn.code());
            self.establish(now, echo);
            // Our ACK is the third part of the handshake: it is not delayed.
            self.schedule(SackBlocks::EMPTY, code);
        } else {
            // Simultaneous open: our SYN goes again, with an ACK.
            self.set_state(State::SynReceived);
            self.handshake.iter_mut().for_each(|handshake| handshake.begin_answer(now));
        }
    }

    /// The peer's SYN in SYN-RECEIVED, once more: our SYN-ACK was lost. Gives whether it was that.
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
        let says = if repeated { handshake.ecn.on_repeated_syn(segment) } else { Repeat::Same };
        if says == Repeat::Plain {
            // RFC 3168 section 6.1.1, RFC 9768 section 3.1.5: the peer may be without ECN.
            self.ecn.stop_marking();
        }
        if says == Repeat::Contradiction {
            debug!(remote = %self.flow.remote, "SYNs that ask for different forms of ECN: RST");
            self.reset_peer(now);
            self.set_error(TcpError::Reset);
        } else if repeated && self.challenge.admit(now) {
            handshake.due = true;
        } else if repeated {
            skip_answer(&self.flow, &mut counters.tcp_ext_ack_skipped_syn_recv);
        }
        repeated
    }

    /// Takes the SYN-ACK of a peer whose SYN this end has answered with one of its own; its flags are then read. Gives whether
    /// it contradicts that SYN.
    pub(super) fn on_crossing_syn_ack(&mut self, segment: &mut Segment<'_>) -> bool {
        let Some(handshake) = &mut self.handshake else { return false };
        if handshake.ecn.on_crossing_syn_ack(segment) {
            return true;
        }
        self.ecn.on_crossing_syn_ack(segment);
        segment.flags = segment.flags.with_ace(0);
        false
    }

    /// Our SYN was acknowledged, and the peer's is known: ESTABLISHED.
    pub(super) fn establish(&mut self, now: Instant, echo: Option<u32>) {
        let Some(handshake) = self.handshake.take() else { return };
        self.path.on_peer_mss(handshake.peer_mss);
        let echoed = echo.and_then(|ecr| self.timestamps?.echo(now, ecr));
        // What came after a wait for data would show how long that was.
        let before = handshake.deferral.and_then(|wait| wait.shown());
        let Shown { rtt, retransmitted } = before.unwrap_or_else(|| handshake.show(now, echoed));
        rtt.into_iter().for_each(|rtt| self.receive.on_rtt(rtt));
        let start = Start {
            now,
            first: self.send.first(),
            smss: ByteCount(u64::from(self.segment_size())),
            granted: self.granted(),
            handshake_rtt: rtt,
            // RFC 3168 section 6.1.2: a mark is answered as a loss is.
            syn_retransmitted: retransmitted || self.ecn.was_syn_marked(),
            // Initial sequence numbers are derived from the host's secret.
            seed: self.send.first().0,
        };
        self.send.sender = Some(Box::new(Sender::new(&handshake.sender, &start)));
        self.tally.established = true;
        self.tally.last_rcv = now;
        self.soft_error = None;
        self.on_heard(now);
        let state = if self.send.fin { State::FinWait1 } else { State::Established };
        self.set_state(state);
    }

    pub(super) fn on_handshake_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let Some(handshake) = &mut self.handshake else { return };
        if handshake.deadline() > now {
            return;
        }
        let waits = handshake.deferral.is_some_and(|wait| wait.waits());
        if handshake.retries >= handshake.max_retries && !waits {
            self.give_up(now, counters);
            return;
        }
        handshake.retries = handshake.retries.saturating_add(1);
        handshake.timeout = (handshake.timeout * 2).min(LONGEST_TIMEOUT);
        handshake.timer_from = now;
        handshake.due = handshake.deferral.as_mut().is_none_or(|wait| wait.on_timeout(now));
    }

    /// Whether the peer opened it.
    pub(super) fn is_passive(&self) -> bool {
        self.handshake.as_ref().is_some_and(|handshake| handshake.passive)
    }
}
