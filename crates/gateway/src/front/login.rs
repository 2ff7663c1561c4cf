//! The user name and password of a proxy's clients.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A user name and a password, for SOCKS5 (RFC 1929) and HTTP's Basic scheme (RFC 7617).
///
/// The text form is `user:password`; `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: String,
    password: String,
}

/// The reason why a text is not a [`Login`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a login is USER:PASSWORD, each of 1 to 255 bytes; for example alice:secret")]
pub struct InvalidLogin;

impl FromStr for Login {
    type Err = InvalidLogin;

    fn from_str(text: &str) -> Result<Self, InvalidLogin> {
        let (user, password) = text.split_once(':').ok_or(InvalidLogin)?;
        // RFC 1929 section 2: each length is one byte, and not 0.
        if ![user, password].iter().all(|part| (1..=255).contains(&part.len())) {
            return Err(InvalidLogin);
        }
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }
}

impl Login {
    /// Compares with the login that a client gave. The time does not depend on where they differ.
    pub(super) fn is(&self, user: &[u8], password: &[u8]) -> bool {
        is_same(self.user.as_bytes(), user) & is_same(self.password.as_bytes(), password)
    }
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |seen, (one, other)| seen | (one ^ other));
    (one.len() == other.len()) & (difference == 0)
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}
