//! Cookies: keyed hashes of a client's address and the time, which a server verifies without state.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_types::Instant;
use siphasher::sip::SipHasher24;

use crate::wire::Cookie;

/// The lifetime of a cookie.
pub(crate) const LIFETIME: Duration = Duration::from_secs(20);

/// The purpose of a hash, which makes hashes for different purposes independent.
#[derive(Clone, Copy, Hash)]
enum Purpose {
    Cookie,
    Connection,
    Nonces,
}

/// The reason for rejecting a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bad {
    Forged,
    Expired,
}

/// An endpoint's secret key.
#[derive(Clone)]
pub(crate) struct Secret([u8; 16]);

impl Secret {
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    pub(crate) fn make(&self, now: Instant, remote: SocketAddr, connection: u64) -> Cookie {
        let made = now.as_nanos();
        Cookie { made, mac: self.hash(Purpose::Cookie, (remote, connection, made)) }
    }

    pub(crate) fn check(
        &self,
        now: Instant,
        remote: SocketAddr,
        connection: u64,
        cookie: Cookie,
    ) -> Result<(), Bad> {
        if self.hash(Purpose::Cookie, (remote, connection, cookie.made)) != cookie.mac {
            return Err(Bad::Forged);
        }
        let age = now.since(Instant::from_nanos(cookie.made));
        if age > LIFETIME { Err(Bad::Expired) } else { Ok(()) }
    }

    /// Returns the id of the endpoint's `count`-th connection, which cannot be guessed.
    pub(crate) fn connection(&self, count: u64) -> u64 {
        self.hash(Purpose::Connection, count)
    }

    /// Returns the key of the nonces of the endpoint's `count`-th connection.
    pub(crate) fn nonces(&self, count: u64) -> Nonces {
        Nonces(self.hash(Purpose::Nonces, count))
    }

    fn hash(&self, purpose: Purpose, value: impl Hash) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        (purpose, value).hash(&mut hasher);
        hasher.finish()
    }
}

/// Bits that cannot be guessed, one for each packet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Nonces(u64);

impl Nonces {
    /// Returns the nonces of the `block`-th 64 packets.
    pub(crate) fn block(self, block: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0, 0);
        block.hash(&mut hasher);
        hasher.finish()
    }
}

impl std::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nonces(..)")
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_one_address_one_connection_one_key_and_its_time() {
        let secret = Secret::new([1; 16]);
        let at = Instant::from_millis;
        let remote = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let cookie = secret.make(at(5), remote(1), 7);
        let check = |secret: &Secret, now, port, id, cookie| {
            secret.check(at(now), remote(port), id, cookie)
        };
        assert_eq!(check(&secret, 5, 1, 7, cookie), Ok(()));
        assert_eq!(check(&secret, 20_005, 1, 7, cookie), Ok(()));
        assert_eq!(check(&secret, 20_006, 1, 7, cookie), Err(Bad::Expired));
        assert_eq!(check(&secret, 5, 2, 7, cookie), Err(Bad::Forged));
        assert_eq!(check(&secret, 5, 1, 8, cookie), Err(Bad::Forged));
        assert_eq!(check(&Secret::new([2; 16]), 5, 1, 7, cookie), Err(Bad::Forged));
        let younger = Cookie { made: cookie.made + 1, ..cookie };
        assert_eq!(check(&secret, 5, 1, 7, younger), Err(Bad::Forged));
    }
}
