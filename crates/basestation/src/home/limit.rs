//! Limits of answers to packets that anyone can send or send again.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use airtcp_types::Instant;

/// The number of sources above which those that have all their answers again are removed.
const SOURCES: usize = 256;

/// Allows ten answers at once, and ten per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limit {
    /// When all answers are available again.
    full_at: Instant,
}

impl Limit {
    /// Takes an answer, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let next = self.after_one(now, Duration::from_millis(100));
        self.full_at = next.unwrap_or(self.full_at);
        next.is_some()
    }

    /// Returns when all answers are available again after one more, if there is one: as many as
    /// `each` fits into a second.
    fn after_one(self, now: Instant, each: Duration) -> Option<Instant> {
        let full_at = self.full_at.max(now) + each;
        (full_at.since(now) <= Duration::from_secs(1)).then_some(full_at)
    }
}

/// Allows 100 answers at once and 100 per second; a source has at most a [`Limit`] of these.
#[derive(Debug, Default)]
pub(super) struct SourceLimit {
    all: Limit,
    /// Sources that do not have all their answers. Each took one of the last second, so that there
    /// are at most 200.
    sources: BTreeMap<IpAddr, Limit>,
}

impl SourceLimit {
    /// Takes an answer to a source, if there is one.
    pub(super) fn take(&mut self, now: Instant, source: IpAddr) -> bool {
        let source = network(source);
        let mut of_source = self.sources.get(&source).copied().unwrap_or_default();
        if !of_source.take(now) {
            return false;
        }
        let Some(full_at) = self.all.after_one(now, Duration::from_millis(10)) else {
            return false;
        };
        self.all.full_at = full_at;
        if self.sources.len() >= SOURCES {
            self.sources.retain(|_, limit| limit.full_at > now);
        }
        self.sources.insert(source, of_source);
        true
    }
}

/// The address, or with IPv6 its network of 64 bits, in which a host can have any address.
fn network(source: IpAddr) -> IpAddr {
    match source {
        IpAddr::V4(_) => source,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_at_once_and_ten_a_second() {
        let mut limit = Limit::default();
        let mut take = |millis, count: usize| {
            (0..count).filter(|_| limit.take(Instant::from_millis(millis))).count()
        };
        assert_eq!([take(0, 20), take(99, 9), take(100, 9), take(1_100, 99)], [10, 0, 1, 10]);
    }

    #[test]
    fn one_source_has_a_tenth_and_ten_sources_have_all() {
        let mut limit = SourceLimit::default();
        let mut take = |source: &str| {
            let source = source.parse().unwrap();
            (0..50).filter(|_| limit.take(Instant::ZERO, source)).count()
        };
        // Addresses of one network of IPv6 are one source.
        assert_eq!(["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(&mut take), [10, 0, 10]);
        let others: usize = (0..20).map(|host| take(&format!("192.0.2.{host}"))).sum();
        assert_eq!(others, 80);
    }

    #[test]
    fn sources_are_forgotten() {
        let mut limit = SourceLimit::default();
        for millis in 0..20_000_u32 {
            limit.take(Instant::from_millis(millis.into()), IpAddr::V4(millis.into()));
            assert!(limit.sources.len() <= SOURCES);
        }
    }
}
