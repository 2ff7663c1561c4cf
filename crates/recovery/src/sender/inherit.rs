//! What connections to one peer hand on to the next (RFC 9040).

use airtcp_types::{ByteCount, Instant};

use super::{Sender, control_params};
use crate::control::ControlParams;
use crate::learned::Learned;

/// A path whose round-trip time is this many times as long, ...
const LONGER: u32 = 10;
/// ... or this many times shorter is taken for another one (draft-ietf-tsvwg-careful-resume).
const SHORTER: u32 = 2;

impl Sender {
    /// What it has measured, for another connection to the same peer: of round-trip times what is
    /// new since the last call, or nothing.
    pub fn hand_on(&mut self) -> Learned {
        Learned { rtt: self.core.rtt.hand_on(), rate: None, losses: self.strategies.learned() }
    }

    /// Starts with what other connections to the same peer have measured. It does nothing once
    /// something was sent, or if the round-trip time of the handshake shows another path.
    ///
    /// A rate is taken only by a control that paces, and not after a lost SYN (RFC 5681 section
    /// 3.1).
    pub fn inherit(&mut self, now: Instant, known: &Learned) {
        let was_used = !self.core.board.is_empty() || self.rate.delivered() > ByteCount::ZERO;
        if was_used || self.is_another_path(known) {
            return;
        }
        if let Some(rtt) = &known.rtt {
            self.core.rtt.inherit(rtt);
        }
        let initial_window = self.control_window();
        let smss = self.core.smss;
        let params = ControlParams {
            now,
            rtt: self.core.rtt.min(),
            rate: known.rate.filter(|_| initial_window > smss),
            seed: self.snd_nxt().0,
            initial_window,
            ..control_params(&self.profile, self.pacing, smss, self.profile.initial_window)
        };
        self.strategies.restart(params, known.losses.as_ref());
        self.update_pacing(now);
    }

    fn is_another_path(&self, known: &Learned) -> bool {
        let own = self.core.rtt.latest();
        own.zip(known.rtt).is_some_and(|(own, known)| {
            own > known.min.saturating_mul(LONGER) || own.saturating_mul(SHORTER) < known.min
        })
    }
}
