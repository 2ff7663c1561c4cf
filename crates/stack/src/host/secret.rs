//! Values that an attacker must not be able to guess: sequence numbers, timestamps, ports, cookies,
//! hash table positions.

use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use airtcp_types::{FlowId, Instant, SeqNumber};
use siphasher::sip::SipHasher13;
use siphasher::sip::SipHasher24;

/// The purpose of a hash, so that a hash reveals nothing about those for other purposes.
#[derive(Clone, Copy, Hash)]
enum Purpose {
    Isn,
    Timestamp,
    Port,
    Cookie,
    Challenges,
    Map,
}

/// The host's secret key, from which the values are derived.
#[derive(Clone)]
pub(super) struct Secret([u8; 16]);

impl Secret {
    pub(super) const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// The initial sequence number (RFC 6528 section 3): M + F(4-tuple, key), with M a clock of 4
    /// microseconds.
    pub(super) fn isn(&self, now: Instant, flow: &FlowId) -> SeqNumber {
        SeqNumber(self.hash(Purpose::Isn, (flow.local, flow.remote)) as u32)
            + (now.as_nanos() / 4_000) as u32
    }

    /// The offset of the timestamps between two addresses. It is the same for all ports, so that a
    /// peer's PAWS checks remain valid from one connection to the next (RFC 7323 section 5.4, RFC
    /// 6191).
    pub(super) fn timestamp_offset(&self, flow: &FlowId) -> u32 {
        self.hash(Purpose::Timestamp, (flow.local.ip(), flow.remote.ip())) as u32
    }

    /// The hash for choosing a port (RFC 6056 section 3.3.4): `F` in the low half, `G` in the high
    /// half.
    pub(super) fn port(&self, local: IpAddr, remote: SocketAddr) -> u64 {
        self.hash(Purpose::Port, (local, remote))
    }

    /// An unpredictable value for each second.
    pub(super) fn challenges(&self, second: u64) -> u64 {
        self.hash(Purpose::Challenges, second)
    }

    /// The base of a SYN cookie, for a peer's initial number `irs` and a period of time.
    pub(super) fn cookie(&self, flow: &FlowId, irs: SeqNumber, period: u64) -> SeqNumber {
        SeqNumber(self.hash(Purpose::Cookie, (flow.local, flow.remote, irs, period)) as u32)
    }

    /// Hash keys for tables whose keys untrusted hosts choose.
    pub(super) fn keyed(&self) -> Keyed {
        Keyed(self.hash(Purpose::Map, 0u8), self.hash(Purpose::Map, 1u8))
    }

    fn hash(&self, purpose: Purpose, value: impl Hash) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        (purpose, value).hash(&mut hasher);
        hasher.finish()
    }
}

/// Builds hashers with keys derived from the secret.
#[derive(Clone, Debug)]
pub(super) struct Keyed(u64, u64);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn flow(port: u16) -> FlowId {
        FlowId {
            local: SocketAddr::from(([10, 0, 0, 1], 80)),
            remote: SocketAddr::from(([10, 0, 0, 2], port)),
        }
    }

    // Shows: RFC9293-MUST-8, RFC9293-MUST-9, RFC9293-SHLD-1
    #[test]
    fn isns_differ_by_flow_and_key_and_follow_the_clock() {
        let (one, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let now = Instant::from_millis(5);
        let isn = one.isn(now, &flow(1));
        assert_eq!(isn, one.isn(now, &flow(1)));
        assert_ne!(isn, one.isn(now, &flow(2)));
        assert_ne!(isn, other.isn(now, &flow(1)));
        assert_eq!(one.isn(now + Duration::from_micros(40), &flow(1)), isn + 10);
    }

    // Shows: RFC7323-7
    #[test]
    fn timestamps_of_two_hosts_share_an_offset_that_no_other_pair_has() {
        let (one, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let offset = one.timestamp_offset(&flow(1));
        assert_eq!(offset, one.timestamp_offset(&flow(2)));
        assert_ne!(offset, other.timestamp_offset(&flow(1)));
        let elsewhere = SocketAddr::from(([10, 0, 0, 3], 1));
        assert_ne!(offset, one.timestamp_offset(&FlowId { remote: elsewhere, ..flow(1) }));
    }
}
