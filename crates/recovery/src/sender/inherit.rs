//! Path state that a connection passes to the next one to the same peer (RFC 9040).

use airtcp_types::{ByteCount, Instant};

use super::{Sender, control_params};
use crate::control::ControlParams;
use crate::learned::Learned;

/// A path whose RTT is more than this many times longer than the known one, ...
const LONGER: u32 = 10;
/// ... or more than this many times shorter, is another path (draft-ietf-tsvwg-careful-resume).
const SHORTER: u32 = 2;

impl Sender {
    /// Exports the connection's measurements for other connections to the same peer. The RTT is
    /// included only if it was sampled since the last call.
    pub fn hand_on(&mut self) -> Learned {
        Learned { rtt: self.core.rtt.hand_on(), rate: None, losses: self.strategies.learned() }
    }

    /// Starts from the measurements of other connections to the same peer. Does nothing once data
    /// was sent, or if the RTT of the handshake shows another path.
    ///
    /// The rate is used only by a control that paces, and not after a lost SYN (RFC 5681 section
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
