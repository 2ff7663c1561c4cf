//! The ECN mode of a connection.

use std::fmt;
use std::str::FromStr;

use super::negotiation::Form;

/// The form of explicit congestion notification that connections request and accept.
///
/// | Mode | Linux's `tcp_ecn` | This end asks for | A peer that asks is granted |
/// | --- | --- | --- | --- |
/// | `off` | 0 | nothing | nothing |
/// | `active` | 1 | ECN (RFC 3168) | ECN |
/// | `passive` | 2 | nothing | ECN |
/// | `accurate` | 3 | AccECN (RFC 9768) | AccECN, or ECN |
/// | `active-accurate` | 4 | ECN | AccECN, or ECN |
/// | `passive-accurate` | 5 | nothing | AccECN, or ECN |
///
/// If this end requests AccECN and the peer supports only ECN, the peer grants ECN, and ECN is
/// used.
///
/// ```
/// use airtcp_stack::tcp::EcnMode;
///
/// assert_eq!("accurate".parse(), Ok(EcnMode::Accurate));
/// assert_eq!(EcnMode::default().to_string(), "passive");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnMode {
    /// Never use ECN.
    Off,
    /// Accept ECN if the peer requests it.
    #[default]
    Passive,
    /// Request ECN, and accept it.
    Active,
    /// Request AccECN, and accept it.
    Accurate,
    /// Request ECN, and accept AccECN.
    ActiveAccurate,
    /// Accept AccECN or ECN if the peer requests it.
    PassiveAccurate,
}

/// The error of parsing a text that names no [`EcnMode`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not an ECN mode: use off, passive, active, accurate, active-accurate or passive-accurate"
)]
pub struct EcnModeError(String);

impl EcnMode {
    /// All modes.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Passive,
        Self::Active,
        Self::Accurate,
        Self::ActiveAccurate,
        Self::PassiveAccurate,
    ];

    /// The name of the mode.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Passive => "passive",
            Self::Active => "active",
            Self::Accurate => "accurate",
            Self::ActiveAccurate => "active-accurate",
            Self::PassiveAccurate => "passive-accurate",
        }
    }

    /// The form that a SYN of this end requests.
    pub(in crate::tcp) const fn asks(self) -> Form {
        match self {
            Self::Off | Self::Passive | Self::PassiveAccurate => Form::Nothing,
            Self::Active | Self::ActiveAccurate => Form::Classic,
            Self::Accurate => Form::Accurate,
        }
    }

    /// The most capable form that a peer's SYN is granted.
    pub(in crate::tcp) const fn grants(self) -> Form {
        match self {
            Self::Off => Form::Nothing,
            Self::Passive | Self::Active => Form::Classic,
            Self::Accurate | Self::ActiveAccurate | Self::PassiveAccurate => Form::Accurate,
        }
    }
}

impl FromStr for EcnMode {
    type Err = EcnModeError;

    fn from_str(text: &str) -> Result<Self, EcnModeError> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| EcnModeError(text.to_owned()))
    }
}

impl fmt::Display for EcnMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_a_name_that_is_read() {
        for mode in EcnMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "on".parse::<EcnMode>().unwrap_err().to_string();
        assert!(EcnMode::ALL.iter().all(|mode| error.contains(mode.name())), "{error}");
    }
}
