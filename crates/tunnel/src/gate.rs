//! The gate: cheap checks of a datagram's form, MAC, cookie, and the rate of its source.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Packet, Tunn, TunnResult};
use boringtun::x25519;

use crate::peer::kind;

/// Handshake messages per second that need no cookie. Each costs about 0.2 ms.
const FREE: u64 = 100;
/// Initiations per second from one address (IPv6: one /64) with a valid cookie. A peer sends one in
/// five seconds, and several peers may share an address.
const PER_SOURCE: u8 = 10;
/// Addresses per second from which initiations are accepted under load; with a cookie, an address
/// is not forged.
const SOURCES: usize = 64;
const SECOND: Duration = Duration::from_secs(1);

/// The gate of all peers.
pub(crate) struct Gate {
    limiter: RateLimiter,
    /// Handshake messages for this key in the current second.
    handshakes: u64,
    /// Initiations of each source in the current second, beyond the free ones.
    sources: HashMap<IpAddr, u8>,
    began: Instant,
}

pub(crate) enum Verdict<'a> {
    /// The datagram may be valid.
    Pass(Packet<'a>),
    /// Reply with a cookie of this length: the sender must prove its address.
    Cookie(usize),
    /// The datagram is not a WireGuard message, or not for this key.
    Malformed,
    /// The source sends too many initiations.
    Limited,
}

impl Gate {
    pub(crate) fn new(public_key: &x25519::PublicKey, now: Instant) -> Self {
        let limiter = RateLimiter::new(public_key, FREE);
        Self { limiter, handshakes: 0, sources: HashMap::new(), began: now }
    }

    /// Checks `datagram` from `from`; a cookie reply is written to `reply`.
    pub(crate) fn verify<'a>(
        &mut self,
        now: Instant,
        from: IpAddr,
        datagram: &'a [u8],
        reply: &mut [u8],
    ) -> Verdict<'a> {
        if datagram.first() == Some(&kind::DATA) {
            // Data messages have no MAC1 and no limit: each costs one decryption, if the session
            // exists.
            return Tunn::parse_incoming_packet(datagram).map_or(Verdict::Malformed, Verdict::Pass);
        }
        if now.duration_since(self.began) >= SECOND {
            self.began = now;
            self.handshakes = 0;
            self.sources.clear();
        }
        // Has an effect only if a second has passed by the limiter's own clock.
        self.limiter.reset_count();
        let verified = self.limiter.verify_packet(Some(from), datagram, reply);
        let is_handshake =
            !matches!(verified, Ok(Packet::PacketCookieReply(_)) | Err(TunnResult::Err(_)));
        self.handshakes += u64::from(is_handshake);
        // An address without a cookie may be forged; a limit on it would let attackers exclude
        // others.
        let has_cookie = self.handshakes > FREE;
        match verified {
            Ok(Packet::HandshakeInit(_)) if has_cookie && !self.admits(from) => Verdict::Limited,
            Ok(packet) => Verdict::Pass(packet),
            Err(TunnResult::WriteToNetwork(cookie)) => Verdict::Cookie(cookie.len()),
            Err(_) => Verdict::Malformed,
        }
    }

    fn admits(&mut self, from: IpAddr) -> bool {
        let source = match from {
            IpAddr::V4(_) => from,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        };
        let is_known = self.sources.contains_key(&source);
        if !is_known && self.sources.len() >= SOURCES {
            return false;
        }
        let count = self.sources.entry(source).or_default();
        *count = count.saturating_add(1);
        *count <= PER_SOURCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateKey;

    #[test]
    fn a_source_and_all_sources_have_their_rate() {
        let public = x25519::PublicKey::from(PrivateKey::generate().public_key().0);
        let mut gate = Gate::new(&public, Instant::now());
        let admitted = |gate: &mut Gate, addresses: Vec<IpAddr>| {
            addresses.into_iter().filter(|&address| gate.admits(address)).count()
        };
        let one_64 = (0..20).map(|n| Ipv6Addr::from_bits(0xfd << 120 | n).into()).collect();
        assert_eq!(admitted(&mut gate, one_64), usize::from(PER_SOURCE));
        let many = (0..1000).map(|n| IpAddr::from([10, 0, (n >> 8) as u8, n as u8])).collect();
        assert_eq!(admitted(&mut gate, many), SOURCES - 1);
    }

    #[test]
    fn forged_addresses_take_no_places_from_others() {
        let public = x25519::PublicKey::from(PrivateKey::generate().public_key().0);
        let mut stranger = Tunn::new(PrivateKey::generate().0, public, None, None, 1, None);
        let mut message = [0; 148];
        let TunnResult::WriteToNetwork(initiation) =
            stranger.format_handshake_initiation(&mut message, false)
        else {
            panic!("an initiation")
        };
        let now = Instant::now();
        let mut gate = Gate::new(&public, now);
        for last in 0..100 {
            let from = IpAddr::from([198, 51, 100, last]);
            let verdict = gate.verify(now, from, initiation, &mut [0; 64]);
            assert!(matches!(verdict, Verdict::Pass(_)), "{last}");
        }
        assert!(gate.sources.is_empty());
    }
}
