//! Keys of security associations, and the authenticators made with them.

use std::fmt;

use airtcp_wire::mobility::{Authentication, Ends, push_authentication};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The algorithm of an authenticator (RFC 2104).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// HMAC-MD5: 16 bytes; the algorithm that every agent of RFC 5944 has.
    HmacMd5,
    /// HMAC-SHA-256: 32 bytes.
    #[default]
    HmacSha256,
}

/// A key that two ends share, with its security parameter index (SPI).
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    spi: u32,
    algorithm: Algorithm,
    secret: Vec<u8>,
}

/// An invalid key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// RFC 5944 section 3.5.1 reserves these numbers.
    #[error("the SPI {0} is reserved: use a number from 256 to 4294967295")]
    Spi(u32),
    /// The secret is shorter than 128 bits (RFC 5944 section 5.1), or longer than 64 bytes.
    #[error("the secret has {0} bytes: use 16 to 64")]
    Length(usize),
}

impl Key {
    /// Creates a key from a secret of 16 to 64 bytes.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn new(spi: u32, algorithm: Algorithm, secret: Vec<u8>) -> Result<Self, KeyError> {
        if spi < 256 {
            return Err(KeyError::Spi(spi));
        }
        if !(16..=64).contains(&secret.len()) {
            return Err(KeyError::Length(secret.len()));
        }
        Ok(Self { spi, algorithm, secret })
    }

    /// Appends an authentication extension to a message of Mobile IP.
    pub fn sign(&self, message: &mut Vec<u8>, ends: Ends) {
        let (spi, secret) = (self.spi, &self.secret);
        match self.algorithm {
            Algorithm::HmacMd5 => push_authentication(message, ends, spi, 16, |covered| {
                keyed::<Hmac<Md5>>(secret, covered).finalize().into_bytes()
            }),
            Algorithm::HmacSha256 => push_authentication(message, ends, spi, 32, |covered| {
                keyed::<Hmac<Sha256>>(secret, covered).finalize().into_bytes()
            }),
        }
    }

    /// Whether an authentication extension was made with this key. Takes the same time for any
    /// wrong authenticator of the right length.
    pub fn verifies(&self, authentication: &Authentication<'_>) -> bool {
        let Authentication { spi, covered, authenticator, .. } = *authentication;
        let is_made = match self.algorithm {
            Algorithm::HmacMd5 => {
                keyed::<Hmac<Md5>>(&self.secret, covered).verify_slice(authenticator)
            }
            Algorithm::HmacSha256 => {
                keyed::<Hmac<Sha256>>(&self.secret, covered).verify_slice(authenticator)
            }
        };
        spi == self.spi && is_made.is_ok()
    }
}

fn keyed<M: Mac + KeyInit>(secret: &[u8], covered: &[u8]) -> M {
    let mut mac = <M as KeyInit>::new_from_slice(secret).expect("a secret of any length");
    mac.update(covered);
    mac
}

/// Without the secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("spi", &self.spi)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Test case 1 of RFC 2202 section 2, and test cases 1 and 6 of RFC 4231.
    #[test]
    fn authenticators_are_those_of_the_rfcs() {
        let md5 = keyed::<Hmac<Md5>>(&[0x0b; 16], b"Hi There").finalize().into_bytes();
        assert_eq!(hex(&md5), "9294727a3638bb1c13f48ef8158bfc9d");
        let sha = keyed::<Hmac<Sha256>>(&[0x0b; 20], b"Hi There").finalize().into_bytes();
        assert_eq!(hex(&sha), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        let data = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let long = keyed::<Hmac<Sha256>>(&[0xaa; 131], data).finalize().into_bytes();
        assert_eq!(hex(&long), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn a_key_is_refused_by_its_number_and_its_length() {
        let key = |spi, len| Key::new(spi, Algorithm::HmacMd5, vec![1; len]);
        assert_eq!(key(255, 16), Err(KeyError::Spi(255)));
        assert_eq!(key(256, 15), Err(KeyError::Length(15)));
        assert_eq!(key(256, 65), Err(KeyError::Length(65)));
        assert!(!format!("{:?}", key(256, 16).unwrap()).contains("[1, 1"));
    }
}
