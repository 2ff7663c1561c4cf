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

/// RFC 6298 section 2.1; it doubles with every retransmission, up to Linux's `TCP_RTO_MAX`.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Where the path is known, the first time-out is no less than this.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

/// What is known before the connection is established.
#[derive(Debug)]
pub(in crate::tcp) struct Handshake {
    sender: SenderConfig,
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
    /// An error that is not hard ends an attempt of this end, too.
    unreachable_ends_it: bool,
    /// A SYN or SYN-ACK is to leave.
    due: bool,
    /// What is offered and agreed on of ECN.
    ecn: Negotiation,
    /// It was opened by the peer's SYN.
    passive: bool,
    /// The SYN-ACK was a cookie: when it left is not known.
    by_cookie: bool,
    /// Data is waited for.
    deferral: Option<Deferral>,
}

/// What both ends agree on, by the SYN or SYN-ACK of the peer.
#[derive(Debug)]
pub(super) struct Agreed {
    /// The shifts of the windows received and sent, if they are shifted.
    pub(super) scales: Option<(u8, u8)>,
    pub(super) sack: bool,
    pub(super) ecn: Form,
    pub(super) extensions: Option<Extensions>,
}

/// A SYN or SYN-ACK that leaves.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Syn {
    pub(in crate::tcp) options: TcpOptions,
    pub(in crate::tcp) flags: Flags,
    /// For which time it leaves.
    pub(in crate::tcp) sent: u32,
    /// It grants nothing of ECN, whatever was agreed on: the peer may be without.
    pub(in crate::tcp) is_plain: bool,
}

/// What the timer of a handshake did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expired {
    /// It has not run out.
    No,
    /// The SYN or SYN-ACK leaves again, if it does not wait for data.
    Again,
    /// The attempt has failed.
    TimedOut,
}

/// What a handshake leaves to the connection.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) sender: SenderConfig,
    /// The MSS the peer named.
    pub(super) peer_mss: u16,
    pub(super) shown: Shown,
}

impl Handshake {
    /// This end opens: a SYN is to leave.
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

    /// The peer has opened: a SYN-ACK is to leave. With `wait` the connection stays half-open for so long without data.
    pub(super) fn accept(&mut self, now: Instant, wait: Option<Duration>) {
        self.passive = true;
        self.deferral = wait.map(|wait| Deferral::new(now + wait));
    }

    /// Takes the peer's SYN or SYN-ACK: of its options those hold that both ends offer.
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

    /// Whether an ICMP error ends the attempt.
    pub(in crate::tcp) const fn is_ended_by(&self, error: Unreachable) -> bool {
        error.is_hard() || self.unreachable_ends_it && !self.passive
    }

    /// Sends the SYN or SYN-ACK again after the time-out of the path, if that is shorter; the attempt lasts no shorter.
    pub(in crate::tcp) fn inherit(&mut self, known: &LearnedRtt) {
        let mut rtt = RttEstimator::new(self.sender.profile.rto, false);
        rtt.inherit(known);
        let least = rtt.rto().max(SHORTEST_TIMEOUT);
        while self.retries == 0 && self.timeout / 2 >= least {
            self.timeout /= 2;
            self.max_retries = self.max_retries.saturating_add(1);
        }
    }

    /// What the SYN offers, or both ends agreed on.
    fn offered(&self, timestamps: bool) -> WireNeeds {
        WireNeeds {
            sack: self.options.sack_permitted,
            timestamps,
            hack: self.options.hack.is_some(),
            txno_echo: self.options.tx_numbers.is_some(),
            ecn: self.ecn.offers(),
        }
    }

    /// The strategies that the sender will begin with.
    pub(in crate::tcp) const fn combination(&self) -> &Combination {
        &self.sender.combination
    }

    /// Sets the strategies that the sender will begin with.
    ///
    /// # Errors
    ///
    /// What they need and the SYN did not offer, or the ends have not agreed on.
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

    /// When the timer runs out.
    pub(in crate::tcp) fn deadline(&self) -> Instant {
        self.timer_from + self.timeout
    }

    /// Works the timer.
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

    /// Enters SYN-RECEIVED from SYN-SENT: a SYN-ACK is to leave, which counts apart from the SYN and starts the timer anew.
    ///
    /// RFC 6298 section 5.5: a time-out that was doubled stays so, for nothing has been measured. Together the time-outs of SYN
    /// and SYN-ACK last no shorter than those of a SYN alone (RFC 9293 MUST-23).
    pub(super) fn begin_answer(&mut self, now: Instant) {
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

    /// The peer has not received the SYN-ACK: it leaves again.
    pub(super) fn answer_again(&mut self) {
        self.due = true;
    }

    /// The SYN, or with `is_answer` the SYN-ACK, if one is to leave.
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

    /// Takes what a repeated SYN of the peer says of ECN.
    pub(super) fn on_repeated_syn(&mut self, syn: &Segment<'_>) -> Repeat {
        self.ecn.on_repeated_syn(syn)
    }

    /// Takes the SYN-ACK of a peer whose SYN this end has answered; gives whether it contradicts that SYN.
    pub(super) fn on_crossing_syn_ack(&mut self, syn_ack: &Segment<'_>) -> bool {
        self.ecn.on_crossing_syn_ack(syn_ack)
    }

    /// What the ACK of a SYN-ACK has in place of ACE, with AccECN.
    pub(in crate::tcp) fn code(&self) -> Option<u8> {
        self.ecn.code()
    }

    /// Whether the peer opened it.
    pub(super) const fn is_passive(&self) -> bool {
        self.passive
    }

    /// Whether an ACK of the SYN-ACK leaves the connection half-open, since it has no data; the SYN-ACK whose time stamp it
    /// echoes was made at `echoed`.
    pub(super) fn defers(&mut self, now: Instant, has_text: bool, echoed: Option<Instant>) -> bool {
        let shown = self.show(now, echoed);
        self.deferral.as_mut().is_some_and(|wait| wait.on_ack(has_text, shown))
    }

    /// Both SYNs were acknowledged, now; the SYN whose time stamp came back was made at `echoed`.
    pub(super) fn finish(self, now: Instant, echoed: Option<Instant>) -> Opening {
        // What came after a wait for data would show how long that was.
        let before = self.deferral.and_then(|wait| wait.shown());
        let shown = before.unwrap_or_else(|| self.show(now, echoed));
        Opening { sender: self.sender, peer_mss: self.peer_mss, shown }
    }

    /// What an ACK that comes now shows; the SYN whose time stamp it echoes was made at `echoed`.
    fn show(&self, now: Instant, echoed: Option<Instant>) -> Shown {
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
