//! The limit of the challenge ACKs of all connections together (RFC 5961 section 7).

use airtcp_types::Instant;

use super::secret::Secret;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The number of challenge ACKs that may still be sent in this second.
#[derive(Debug, Default)]
pub(super) struct Challenges {
    /// The current second, counted from 1.
    second: u64,
    left: u32,
}

impl Challenges {
    /// Whether a challenge ACK may be sent now, with about `limit` per second.
    pub(super) fn allow(&mut self, secret: &Secret, now: Instant, limit: u32) -> bool {
        let second = now.as_nanos() / NANOS_PER_SECOND + 1;
        if second != self.second {
            self.second = second;
            self.left = quota(secret, second, limit);
        }
        self.left > 0
    }

    /// Counts challenge ACKs that were sent.
    pub(super) fn spend(&mut self, sent: u64) {
        self.left = self.left.saturating_sub(u32::try_from(sent).unwrap_or(u32::MAX));
    }
}

/// The quota of a second: between half of the limit and one and a half times the limit. From a
/// known quota an attacker could conclude from the remaining ACKs whether a guess about another
/// connection was right (CVE-2016-5696).
fn quota(secret: &Secret, second: u64, limit: u32) -> u32 {
    let random = secret.challenges(second) % (u64::from(limit) + 1);
    limit.div_ceil(2).saturating_add(random as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seconds_number_is_near_the_limit_and_cannot_be_guessed() {
        let secret = Secret::new([1; 16]);
        let mut seen = std::collections::BTreeSet::new();
        for second in 0..200 {
            let (mut challenges, now) =
                (Challenges::default(), Instant::from_millis(second * 1_000));
            let mut sent = 0;
            while challenges.allow(&secret, now, 100) {
                challenges.spend(1);
                sent += 1;
            }
            assert!((50..=150).contains(&sent));
            seen.insert(sent);
        }
        assert!(seen.len() > 50);
    }

    #[test]
    fn without_a_limit_there_is_none_to_be_met() {
        let mut challenges = Challenges::default();
        assert!(challenges.allow(&Secret::new([1; 16]), Instant::ZERO, u32::MAX));
        assert!(!challenges.allow(&Secret::new([1; 16]), Instant::from_millis(1_000), 0));
    }
}
