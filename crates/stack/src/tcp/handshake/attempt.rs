//! State before a connection is established: offered options, negotiation, SYN retransmission.

use std::time::Duration;

use airtcp_recovery::{Combination, LearnedRtt, RttEstimator, SenderConfig, WireNeeds};
use airtcp_types::{FlowId, Instant};
use airtcp_wire::options::TcpOptions;
use airtcp_wire::tcp::{Flags, Segment};

use crate::tcp::config::{MIN_MSS, default_mss};
use crate::tcp::ecn::{Form, Negotiation, Repeat};
use crate::tcp::extensions::Extensions;
use crate::tcp::{TcpConfig, Unreachable};

use super::deferral::{Deferral, Shown};

/// The initial time-out (RFC 6298 section 2.1), which doubles with every retransmission, and its
/// maximum (Linux's `TCP_RTO_MAX`).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The minimum of the first time-out if the round-trip time of the path is known.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

/// The state of a connection during the handshake.
#[derive(Debug)]
pub(in crate::tcp) struct Handshake {
    sender: SenderConfig,
    /// This end's options: first those offered, and after the peer's SYN those negotiated.
    options: TcpOptions,
    /// The MSS that the peer announced.
    peer_mss: u16,
    /// The time of this end's first SYN or, in a passive open, of the first SYN-ACK.
    sent_at: Instant,
    /// The time when the timer was started.
    timer_from: Instant,
    /// The number of SYNs sent or, in SYN-RECEIVED, of SYN-ACKs.
    sent: u32,
    /// Whether the SYN was retransmitted before this end entered SYN-RECEIVED.
    syn_retransmitted: bool,
    /// Simultaneous open: an ACK may answer the SYN or the SYN-ACK, which have the same number.
    has_two: bool,
    timeout: Duration,
    /// The number of time-outs in this state.
    retries: u8,
    /// The number of time-outs in this state after which the attempt fails.
    max_retries: u8,
    /// Whether a soft error ends an attempt of this end, too.
    unreachable_ends_it: bool,
    /// Whether a SYN or SYN-ACK is due.
    due: bool,
    /// The negotiation of ECN.
    ecn: Negotiation,
    /// Whether the peer's SYN opened the connection.
    passive: bool,
    /// Whether the SYN-ACK was a cookie, whose time of sending is unknown.
    by_cookie: bool,
    /// The wait for data, with deferred accept.
    deferral: Option<Deferral>,
}

/// The result of the negotiation with the peer's SYN or SYN-ACK.
#[derive(Debug)]
pub(super) struct Agreed {
    /// The window scales of the peer and of this end, if windows are scaled.
    pub(super) scales: Option<(u8, u8)>,
    pub(super) sack: bool,
    pub(super) ecn: Form,
    pub(super) extensions: Option<Extensions>,
}

/// A SYN or SYN-ACK to send.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Syn {
    pub(in crate::tcp) options: TcpOptions,
    pub(in crate::tcp) flags: Flags,
    /// The number of times it was sent, including this time.
    pub(in crate::tcp) sent: u32,
    /// Whether it grants no ECN, regardless of the negotiated form: the peer may not support it.
    pub(in crate::tcp) is_plain: bool,
}

/// The result of handling the timer of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expired {
    /// The timer has not expired.
    No,
    /// The SYN or SYN-ACK is retransmitted, unless the connection waits for data.
    Again,
    /// The attempt has failed.
    TimedOut,
}

/// The values that the established connection takes from the handshake.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) sender: SenderConfig,
    /// The MSS that the peer announced.
    pub(super) peer_mss: u16,
    pub(super) shown: Shown,
}

impl Handshake {
    /// Creates the state of an active open, with a SYN due.
    pub(super) fn new(now: Instant, flow: &FlowId, config: &TcpConfig) -> Self {
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
            unreachable_ends_it: config.unreachable_ends_attempt,
            due: true,
            ecn: config.ecn(),
            passive: false,
            by_cookie: false,
            deferral: None,
        }
    }

    /// Makes it a passive open, with a SYN-ACK due. With `wait` the connection stays half-open for
    /// that long if no data arrives.
    pub(super) fn accept(&mut self, now: Instant, wait: Option<Duration>) {
        self.passive = true;
        self.deferral = wait.map(|wait| Deferral::new(now + wait));
    }

    /// Processes the peer's SYN or SYN-ACK: an option is used if both ends offer it.
    pub(super) fn negotiate(&mut self, syn: &Segment<'_>) -> Agreed {
        let (ours, theirs) = (&mut self.options, &syn.options);
        ours.window_scale = ours.window_scale.filter(|_| theirs.window_scale.is_some());
        // RFC 7323 section 2.3: above 14 it counts as 14.
        let shift = theirs.window_scale.map(|shift| shift.min(14));
        ours.sack_permitted &= theirs.sack_permitted;
        let ecn = match syn.flags.ack {
            true => self.ecn.on_syn_ack(syn),
            false => self.ecn.on_syn(syn, !self.passive),
        };
        let extensions = Extensions::agree(ours, theirs, self.passive);
        if let Some(mss) = theirs.mss {
            self.peer_mss = mss.max(MIN_MSS);
        }
        let scales = shift.zip(self.options.window_scale);
        Agreed { scales, sack: self.options.sack_permitted, ecn, extensions }
    }

    /// Returns whether an ICMP error ends the attempt.
    pub(in crate::tcp) const fn is_ended_by(&self, error: Unreachable) -> bool {
        error.is_hard() || self.unreachable_ends_it && !self.passive
    }

    /// Shortens the time-out of the SYN or SYN-ACK to that of the path, without shortening the
    /// attempt as a whole.
    pub(in crate::tcp) fn inherit(&mut self, known: &LearnedRtt) {
        let mut rtt = RttEstimator::new(self.sender.profile.rto, false);
        rtt.inherit(known);
        let least = rtt.rto().max(SHORTEST_TIMEOUT);
        while self.retries == 0 && self.timeout / 2 >= least {
            self.timeout /= 2;
            self.max_retries = self.max_retries.saturating_add(1);
        }
    }

    /// The options that the SYN offers, or that both ends negotiated.
    fn offered(&self, timestamps: bool) -> WireNeeds {
        WireNeeds {
            sack: self.options.sack_permitted,
            timestamps,
            hack: self.options.hack.is_some(),
            txno_echo: self.options.tx_numbers.is_some(),
            ecn: self.ecn.offers(),
        }
    }

    /// The strategies with which the sender will start.
    pub(in crate::tcp) const fn combination(&self) -> &Combination {
        &self.sender.combination
    }

    /// Sets the strategies with which the sender will start.
    ///
    /// # Errors
    ///
    /// The option that they need and that the SYN did not offer, or that was not negotiated.
    pub(in crate::tcp) fn set_combination(
        &mut self,
        combination: &Combination,
        timestamps: bool,
    ) -> Result<(), &'static str> {
        if let Some(missing) = combination.needs().missing(self.offered(timestamps)) {
            return Err(missing);
        }
        self.sender.combination = combination.clone();
        Ok(())
    }

    /// The deadline of the timer.
    pub(in crate::tcp) fn deadline(&self) -> Instant {
        self.timer_from + self.timeout
    }

    /// Handles the timer.
    pub(super) fn on_timeout(&mut self, now: Instant) -> Expired {
        if self.deadline() > now {
            return Expired::No;
        }
        let waits = self.deferral.is_some_and(|wait| wait.waits());
        if self.retries >= self.max_retries && !waits {
            return Expired::TimedOut;
        }
        self.retries = self.retries.saturating_add(1);
        self.timeout = (self.timeout * 2).min(LONGEST_TIMEOUT);
        self.timer_from = now;
        self.due = self.deferral.as_mut().is_none_or(|wait| wait.on_timeout(now));
        Expired::Again
    }

    /// Enters SYN-RECEIVED from SYN-SENT: a SYN-ACK is due, which is counted apart from the SYN and
    /// restarts the timer.
    ///
    /// RFC 6298 section 5.5: a doubled time-out stays doubled, because nothing was measured. The
    /// time-outs of SYN and SYN-ACK together last at least as long as those of a SYN alone (RFC
    /// 9293 MUST-23).
    pub(super) fn begin_answer(&mut self, now: Instant) {
        self.timer_from = now;
        self.syn_retransmitted = self.sent > 1;
        self.has_two = true;
        self.sent = 0;
        self.max_retries = self.max_retries.saturating_sub(self.retries);
        self.retries = 0;
        self.due = true;
    }

    /// Records that the SYN-ACK was sent as a cookie, at an unknown time.
    pub(super) fn on_cookie_sent(&mut self) {
        (self.due, self.sent, self.by_cookie) = (false, 1, true);
        // As in Linux: the cookie's SYN-ACK left no state from which a timer could retransmit it.
        self.deferral = None;
    }

    /// Makes the SYN-ACK due again, because the peer did not receive it.
    pub(super) fn answer_again(&mut self) {
        self.due = true;
    }

    /// Returns the SYN, or with `is_answer` the SYN-ACK, if it is due.
    pub(in crate::tcp) fn poll_syn(&mut self, is_answer: bool) -> Option<Syn> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.sent += 1;
        let flags = match is_answer {
            true => self.ecn.syn_ack(self.retries),
            false => self.ecn.syn(self.sent),
        };
        let is_plain = self.ecn.is_plain();
        Some(Syn { options: self.options, flags, sent: self.sent, is_plain })
    }

    /// Processes the ECN flags of the peer's repeated SYN.
    pub(super) fn on_repeated_syn(&mut self, syn: &Segment<'_>) -> Repeat {
        self.ecn.on_repeated_syn(syn)
    }

    /// Processes the SYN-ACK of a peer whose SYN this end has answered; returns whether it
    /// contradicts that SYN.
    pub(super) fn on_crossing_syn_ack(&mut self, syn_ack: &Segment<'_>) -> bool {
        self.ecn.on_crossing_syn_ack(syn_ack)
    }

    /// The code that replaces ACE in the ACK of a SYN-ACK, with AccECN.
    pub(in crate::tcp) fn code(&self) -> Option<u8> {
        self.ecn.code()
    }

    /// Whether the peer opened the connection.
    pub(super) const fn is_passive(&self) -> bool {
        self.passive
    }

    /// Whether an ACK of the SYN-ACK leaves the connection half-open, because it has no data.
    /// `echoed` is the time of the SYN-ACK whose timestamp it echoes.
    pub(super) fn defers(&mut self, now: Instant, has_text: bool, echoed: Option<Instant>) -> bool {
        let shown = self.show(now, echoed);
        self.deferral.as_mut().is_some_and(|wait| wait.on_ack(has_text, shown))
    }

    /// Completes the handshake: both SYNs are acknowledged. `echoed` is the time of the SYN whose
    /// timestamp the ACK echoes.
    pub(super) fn finish(self, now: Instant, echoed: Option<Instant>) -> Opening {
        // A measurement after a wait for data would include the wait.
        let before = self.deferral.and_then(|wait| wait.shown());
        let shown = before.unwrap_or_else(|| self.show(now, echoed));
        Opening { sender: self.sender, peer_mss: self.peer_mss, shown }
    }

    /// The measurement of an ACK that arrives now. `echoed` is the time of the SYN whose timestamp
    /// it echoes.
    fn show(&self, now: Instant, echoed: Option<Instant>) -> Shown {
        let retransmitted = self.syn_retransmitted || self.sent > 1;
        // Karn's algorithm: a retransmitted SYN is measured by its timestamp, or not at all.
        let is_ambiguous = retransmitted || self.has_two;
        let rtt = match echoed.filter(|_| is_ambiguous) {
            Some(made) => Some(now.since(made)),
            None => (!is_ambiguous && !self.by_cookie).then(|| now.since(self.sent_at)),
        };
        Shown { rtt, retransmitted }
    }
}
