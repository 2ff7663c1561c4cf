//! Keep-alive (RFC 9293 section 3.8.4, RFC 1122 section 4.2.3.6): whether a silent peer is still there.

use std::time::Duration;

use airtcp_types::Instant;

use crate::counters::Counters;

use super::transmit::Reset;
use super::{Connection, State};

/// Neither pause is shorter, as in Linux.
const LEAST: Duration = Duration::from_secs(1);

/// When a silent peer is asked whether it is still there, and when it counts as gone. The default is Linux's.
///
/// Every segment of its that is acceptable (RFC 9293 section 3.10.7.4) is a sign of life; what a stranger can guess is not.
/// It is asked only while nothing sent is unacknowledged and no window probed: otherwise the time-outs tell. With a
/// [`user_timeout`](super::TcpConfig::user_timeout) the peer is gone when it has said nothing for that long, whatever
/// `probes` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// How long it is silent before the first probe; less than a second counts as one.
    pub idle: Duration,
    /// The pause between probes; less than a second counts as one.
    pub interval: Duration,
    /// How many may go unanswered; zero counts as one.
    pub probes: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(2 * 60 * 60),
            interval: Duration::from_secs(75),
            probes: 9,
        }
    }
}

/// What is known of the peer's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    settings: KeepAlive,
    heard_at: Instant,
    /// When to probe, or to give up.
    at: Instant,
    unanswered: u8,
    /// A probe is to leave.
    due: bool,
}

impl Watch {
    /// As if the peer had just been heard.
    pub(super) fn new(now: Instant, settings: KeepAlive) -> Self {
        let settings = KeepAlive {
            idle: settings.idle.max(LEAST),
            interval: settings.interval.max(LEAST),
            probes: settings.probes.max(1),
        };
        Self { settings, heard_at: now, at: now + settings.idle, unanswered: 0, due: false }
    }
}

impl Connection {
    /// Asks a silent peer whether it is still there, from now on; `None`, the default, never does.
    pub fn set_keep_alive(&mut self, now: Instant, settings: Option<KeepAlive>) {
        self.keep_alive = settings.map(|settings| Box::new(Watch::new(now, settings)));
    }

    /// How a silent peer is asked whether it is still there.
    pub fn keep_alive(&self) -> Option<KeepAlive> {
        self.keep_alive.as_ref().map(|watch| watch.settings)
    }

    /// A segment was the peer's.
    pub(super) fn on_heard(&mut self, now: Instant) {
        if let Some(watch) = &mut self.keep_alive {
            **watch = Watch::new(now, watch.settings);
        }
    }

    /// When the peer has been silent for long enough that something is to be done.
    pub(super) fn keep_alive_at(&self) -> Option<Instant> {
        self.keep_alive.as_ref().filter(|_| self.is_idle()).map(|watch| watch.at)
    }

    /// Whether nothing but a probe would tell that the peer is gone.
    fn is_idle(&self) -> bool {
        let open = matches!(self.state, State::Established | State::CloseWait | State::FinWait2);
        open && !self.send.is_waiting()
    }

    pub(super) fn on_keep_alive_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let idle = self.is_idle();
        let Some(watch) = self.keep_alive.as_mut().filter(|watch| idle && watch.at <= now) else {
            return;
        };
        // Linux's rule.
        let gone = watch.unanswered > 0
            && match self.settings.user_timeout {
                Some(limit) => watch.heard_at + limit <= now,
                None => watch.unanswered >= watch.settings.probes,
            };
        if !gone {
            watch.unanswered = watch.unanswered.saturating_add(1);
            watch.at = now + watch.settings.interval;
            watch.due = true;
            return;
        }
        let reset = Reset { seq: self.send.nxt().wire(), ack: Some(self.receive.nxt().wire()) };
        self.give_up(now, counters);
        // As Linux: should the peer be there after all, it is told.
        self.reset = Some(reset);
    }

    /// How many probes in a row the peer has not answered.
    pub(super) fn keep_alives_unanswered(&self) -> u32 {
        self.keep_alive.as_ref().map_or(0, |watch| watch.unanswered.into())
    }

    /// Whether a probe is to leave, which it is once.
    pub(super) fn take_keep_alive(&mut self) -> bool {
        let idle = self.is_idle();
        self.keep_alive.as_mut().is_some_and(|watch| std::mem::take(&mut watch.due)) && idle
    }
}
