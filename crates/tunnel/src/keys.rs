//! Keys, in the form of `wg`: 32 bytes in base64.

use std::fmt;
use std::str::FromStr;

use boringtun::x25519::{self, StaticSecret};
use data_encoding::BASE64;
use rand::TryRng;
use rand::rngs::SysRng;

use crate::TunnelError;

const LENGTH: usize = 32;

/// The private key of one end. It is erased from memory when it is dropped.
///
/// `Display` shows the key itself, as `wg genkey` does; `Debug` hides it.
#[derive(Clone)]
pub struct PrivateKey(pub(crate) StaticSecret);

/// The public key of one end: the name of a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub(crate) [u8; LENGTH]);

/// A secret that two peers share in addition to their keys, as `wg genpsk` makes it.
///
/// `Display` shows it, `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey(pub(crate) [u8; LENGTH]);

impl PrivateKey {
    /// A new key.
    ///
    /// # Panics
    /// The operating system gives no randomness.
    pub fn generate() -> Self {
        let mut bytes = random();
        // The form in which `wg genkey` prints a key (RFC 7748 section 5). The curve takes any.
        bytes[0] &= 248;
        bytes[31] = bytes[31] & 127 | 64;
        Self(StaticSecret::from(bytes))
    }

    /// The public key that belongs to it.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(x25519::PublicKey::from(&self.0).to_bytes())
    }
}

impl PresharedKey {
    /// A new key.
    ///
    /// # Panics
    /// The operating system gives no randomness.
    pub fn generate() -> Self {
        Self(random())
    }
}

fn random() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    SysRng.try_fill_bytes(&mut bytes).expect("the operating system has randomness");
    bytes
}

/// White space around it does not count: files end with a newline.
fn decode(text: &str) -> Result<[u8; LENGTH], TunnelError> {
    let text = text.trim();
    let bytes = BASE64.decode(text.as_bytes()).ok();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| TunnelError::Key(text.chars().count()))
}

impl FromStr for PrivateKey {
    type Err = TunnelError;

    fn from_str(text: &str) -> Result<Self, TunnelError> {
        decode(text).map(|bytes| Self(StaticSecret::from(bytes)))
    }
}

impl FromStr for PublicKey {
    type Err = TunnelError;

    fn from_str(text: &str) -> Result<Self, TunnelError> {
        decode(text).map(Self)
    }
}

impl FromStr for PresharedKey {
    type Err = TunnelError;

    fn from_str(text: &str) -> Result<Self, TunnelError> {
        decode(text).map(Self)
    }
}

impl fmt::Display for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&BASE64.encode(self.0.as_bytes()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&BASE64.encode(&self.0))
    }
}

impl fmt::Display for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&BASE64.encode(&self.0))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(hidden)")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 7748 section 6.1: Alice's keys.
    const PRIVATE: &str = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
    const PUBLIC: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    #[test]
    fn keys_are_read_and_written_as_wg_does() {
        let private: PrivateKey = format!("{PRIVATE}\n").parse().unwrap();
        assert_eq!(private.to_string(), PRIVATE);
        assert_eq!(private.public_key().to_string(), PUBLIC);
        assert_eq!(PUBLIC.parse(), Ok(private.public_key()));
        let new = PrivateKey::generate();
        assert_ne!(new.to_string(), PrivateKey::generate().to_string());
        assert_eq!(new.to_string().parse::<PrivateKey>().unwrap().public_key(), new.public_key());
    }

    #[test]
    fn secrets_are_neither_in_debug_nor_in_errors() {
        let shared = PresharedKey::generate();
        let private: PrivateKey = PRIVATE.parse().unwrap();
        let shown = format!("{private:?} {shared:?}");
        assert!(!shown.contains(PRIVATE) && !shown.contains(&shared.to_string()), "{shown}");
        for text in ["", "dwdtCnMYpX08", &PRIVATE[1..], &format!("{PRIVATE}="), &"0".repeat(64)] {
            let error = text.parse::<PrivateKey>().unwrap_err();
            assert_eq!(error, TunnelError::Key(text.len()));
            assert!(text.is_empty() || !error.to_string().contains(text));
        }
    }
}
