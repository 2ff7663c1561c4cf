//! The transport of a flow: TCP with its strategies, RRTP, or UDP at a constant rate.

use std::fmt;
use std::str::FromStr;

use airtcp_link::spec;
use airtcp_recovery::{Combination, CombinationError};
use airtcp_rrtp::{Biaz, NetworkKind, NetworkProfile};
use airtcp_types::Rate;

/// The transport of a flow, with its parameters.
///
/// ```
/// use airtcp_sim::Sender;
///
/// for text in ["rack/cubic", "udp+rate=2mbit", "rrtp", "rrtp:wireless-last-hop+rate=144kbit+rtt=150ms+loss=1%"] {
///     assert_eq!(text.parse::<Sender>()?.to_string(), text);
/// }
/// # Ok::<(), airtcp_sim::SenderError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Sender {
    /// TCP, with these strategies at both ends.
    Tcp(Combination),
    /// RRTP over UDP, with the same parameters at both ends.
    Rrtp(Rrtp),
    /// UDP at this constant rate, in bits of IP packets.
    Udp(Rate),
}

/// The parameters of an RRTP sender and receiver.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rrtp {
    /// The kind of network.
    pub kind: NetworkKind,
    /// Known parameters of the network.
    pub profile: NetworkProfile,
    /// The bounds of Biaz.
    pub biaz: Biaz,
}

/// An invalid sender.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SenderError {
    /// Unknown strategies of TCP.
    #[error(transparent)]
    Combination(#[from] CombinationError),
    /// An invalid parameter of RRTP.
    #[error(
        "`{0}` is not valid for rrtp: write `rrtp:KIND+rate=R+rtt=T+loss=P+sigma=N+phi=N`, where KIND is \
         general or wireless-last-hop, and all of it but `rrtp` may be left out, as in rrtp:general+rate=10mbit"
    )]
    Rrtp(String),
    /// An invalid rate of UDP.
    #[error("`{0}` is not valid for udp: write `udp+rate=R`, as in udp+rate=2mbit")]
    Udp(String),
}

impl Sender {
    /// The name of a transport other than TCP.
    pub(crate) const fn transport(&self) -> Option<&'static str> {
        match self {
            Self::Tcp(_) => None,
            Self::Rrtp(_) => Some(NAME),
            Self::Udp(_) => Some(UDP),
        }
    }

    /// Returns whether the strategies draw random numbers from the seed: see
    /// [`Scenario::is_random`](crate::Scenario::is_random).
    pub fn uses_seed(&self) -> bool {
        match self {
            Self::Tcp(combination) => combination.uses_seed(),
            Self::Rrtp(_) | Self::Udp(_) => false,
        }
    }
}

const NAME: &str = "rrtp";
const UDP: &str = "udp";
const KINDS: [(&str, NetworkKind); 2] =
    [("general", NetworkKind::General), ("wireless-last-hop", NetworkKind::WirelessLastHop)];

impl From<Combination> for Sender {
    fn from(combination: Combination) -> Self {
        Self::Tcp(combination)
    }
}

impl FromStr for Sender {
    type Err = SenderError;

    fn from_str(text: &str) -> Result<Self, SenderError> {
        let text = text.trim();
        let is_own = |rest: &&str| rest.is_empty() || rest.starts_with([':', '+']);
        if let Some(rest) = text.strip_prefix(UDP).filter(is_own) {
            let rate = rest.strip_prefix("+rate=").and_then(spec::rate);
            return rate.map(Self::Udp).ok_or_else(|| SenderError::Udp(text.to_owned()));
        }
        match text.strip_prefix(NAME) {
            Some("") => Ok(Self::Rrtp(Rrtp::default())),
            Some(rest) if rest.starts_with([':', '+']) => rrtp(rest).map(Self::Rrtp),
            _ => Ok(Self::Tcp(text.parse()?)),
        }
    }
}

fn rrtp(text: &str) -> Result<Rrtp, SenderError> {
    let mut rrtp = Rrtp::default();
    let mut parts = text.split('+');
    if let Some(kind) = parts.next().and_then(|kind| kind.strip_prefix(':')) {
        let known = KINDS.iter().find(|(name, _)| *name == kind);
        rrtp.kind = known.ok_or_else(|| SenderError::Rrtp(kind.to_owned()))?.1;
    }
    for part in parts {
        set(&mut rrtp, part).ok_or_else(|| SenderError::Rrtp(part.to_owned()))?;
    }
    Ok(rrtp)
}

fn set(rrtp: &mut Rrtp, part: &str) -> Option<()> {
    let (key, value) = part.split_once('=')?;
    let number = || value.parse().ok().filter(|number: &f64| (0.0..=1e3).contains(number));
    match key {
        "rate" => rrtp.profile.send_rate = Some(spec::rate(value)?),
        "rtt" => rrtp.profile.round_trip_time = Some(spec::time(value)?),
        "loss" => rrtp.profile.loss_rate = Some(spec::share(value)?.probability()),
        "sigma" => rrtp.biaz.sigma = number()?,
        "phi" => rrtp.biaz.phi = number()?,
        _ => return None,
    }
    Some(())
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(combination) => combination.fmt(f),
            Self::Rrtp(rrtp) => rrtp.fmt(f),
            Self::Udp(rate) => write!(f, "{UDP}+rate={}", spec::show_rate(*rate)),
        }
    }
}

/// In the syntax of [`Sender`], without default values.
impl fmt::Display for Rrtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, profile, biaz } = self;
        f.write_str(NAME)?;
        if let Some((name, _)) = KINDS.iter().skip(1).find(|(_, known)| known == kind) {
            write!(f, ":{name}")?;
        }
        if let Some(rate) = profile.send_rate {
            write!(f, "+rate={}", spec::show_rate(rate))?;
        }
        if let Some(trip) = profile.round_trip_time {
            write!(f, "+rtt={}", spec::show_time(trip))?;
        }
        if let Some(loss) = profile.loss_rate {
            // Rounded to a share of 1e-10, finer than needed.
            write!(f, "+loss={}%", (loss * 1e10).round() / 1e8)?;
        }
        let usual = Biaz::default();
        for (name, value, usual) in
            [("sigma", biaz.sigma, usual.sigma), ("phi", biaz.phi, usual.phi)]
        {
            if value != usual {
                write!(f, "+{name}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_shown_and_what_is_usual_is_not() {
        for (text, shown) in [
            ("rrtp", "rrtp"),
            ("rrtp:general", "rrtp"),
            ("rrtp+rate=1000kbit", "rrtp+rate=1mbit"),
            ("rrtp:wireless-last-hop+loss=7%", "rrtp:wireless-last-hop+loss=7%"),
            ("rrtp+sigma=1+phi=2.25", "rrtp+phi=2.25"),
            ("udp+rate=2000kbit", "udp+rate=2mbit"),
            ("sack/reno", "sack/reno"),
        ] {
            let sender: Sender = text.parse().unwrap();
            assert_eq!(sender.to_string(), shown);
            assert_eq!(shown.parse(), Ok(sender));
        }
    }

    #[test]
    fn a_mistake_is_named_with_what_would_do() {
        for (text, wrong) in [
            ("rrtp:lan", "`lan`"),
            ("rrtp:", "``"),
            ("rrtp+rate=10", "`rate=10`"),
            ("rrtp+loss=200%", "`loss=200%`"),
            ("rrtp+speed=1mbit", "`speed=1mbit`"),
            ("rrtp+phi=nan", "`phi=nan`"),
        ] {
            let error = text.parse::<Sender>().unwrap_err().to_string();
            assert!(error.starts_with(wrong) && error.contains("wireless-last-hop"), "{error}");
        }
        for udp in ["udp", "udp+rate=0bit", "udp+rate=2", "udp:rate=2mbit"] {
            let error = udp.parse::<Sender>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{udp}`")), "{error}");
        }
        for tcp in ["rrtp/reno", "rrtps", "udp/reno", "sack/vega"] {
            assert!(matches!(tcp.parse::<Sender>(), Err(SenderError::Combination(_))), "{tcp}");
        }
    }
}
