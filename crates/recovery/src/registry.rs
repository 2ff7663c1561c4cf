//! Every strategy by name.
//!
//! A new strategy is one file that implements one trait and describes itself in an [`Entry`], and one
//! line here: then the command line, the property tests and the benches have it too.

use std::fmt::{self, Debug};

use crate::control::{self, CongestionControl, ControlParams};
use crate::detection::{self, LossDetection};
use crate::judge::{self, LossJudge};

/// What a strategy needs on the wire. The connection negotiates it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireNeeds {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Time stamps (RFC 7323).
    pub timestamps: bool,
    /// Header checksums and special ACKs (HACK 3).
    pub hack: bool,
    /// Transmission numbers and their echo (LE 4.2).
    pub txno_echo: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
}

impl WireNeeds {
    /// Nothing.
    pub const NONE: Self =
        Self { sack: false, timestamps: false, hack: false, txno_echo: false, ecn: false };

    /// All there is.
    pub const ALL: Self =
        Self { sack: true, timestamps: true, hack: true, txno_echo: true, ecn: true };

    /// What either needs.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self {
            sack: self.sack || other.sack,
            timestamps: self.timestamps || other.timestamps,
            hack: self.hack || other.hack,
            txno_echo: self.txno_echo || other.txno_echo,
            ecn: self.ecn || other.ecn,
        }
    }

    /// The name of the first of these needs that was not `granted`; `None` if all are met.
    pub const fn missing(self, granted: Self) -> Option<&'static str> {
        match (self, granted) {
            (Self { sack: true, .. }, Self { sack: false, .. }) => Some("SACK"),
            (Self { timestamps: true, .. }, Self { timestamps: false, .. }) => Some("timestamps"),
            (Self { hack: true, .. }, Self { hack: false, .. }) => Some("HACK"),
            (Self { txno_echo: true, .. }, Self { txno_echo: false, .. }) => {
                Some("transmission numbers")
            }
            (Self { ecn: true, .. }, Self { ecn: false, .. }) => Some("ECN"),
            _ => None,
        }
    }
}

/// Tasks of the sender that a congestion control takes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TakesOver {
    /// What leaves in fast recovery: its window and pacing rate bound it, and proportional rate
    /// reduction (RFC 9937) does not.
    pub recovery: bool,
    /// The response to congestion marks: it hears of CE in the ACKs, and the sender makes no
    /// reduction of its own (RFC 3168 section 6.1.2).
    pub marks: bool,
}

impl TakesOver {
    /// Nothing.
    pub const NONE: Self = Self { recovery: false, marks: false };
}

/// Makes a strategy from its parameter, which is what follows the colon in `fixed:32`, or says what
/// is wrong with the parameter.
pub type Make<T> = fn(parameter: Option<&str>, params: &ControlParams) -> Result<Box<T>, String>;

/// One strategy of a kind.
pub struct Entry<T: ?Sized> {
    /// Its name, as in a combination. A variant with needs of its own has an entry of its own, with
    /// a colon in its name, as `le:echo`.
    pub name: &'static str,
    /// What may follow the name, as `:N`; empty if nothing may.
    pub parameter: &'static str,
    /// A parameter that it takes, for whatever runs over all strategies.
    pub example: Option<&'static str>,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What it needs on the wire.
    pub needs: WireNeeds,
    /// What takes its place where the peer does not grant that; a judge is left out.
    pub fallback: Option<&'static str>,
    /// Which tasks of the sender it takes over; only a congestion control takes over any.
    pub takes_over: TakesOver,
    /// Makes one.
    pub make: Make<T>,
}

impl<T: ?Sized> Debug for Entry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The loss detectors.
pub static DETECTIONS: &[Entry<dyn LossDetection>] = &[
    detection::RENO,
    detection::NEWRENO,
    detection::SACK,
    detection::FACK,
    detection::RACK,
    detection::LE,
    detection::LE_ECHO,
];

/// The congestion controls.
pub static CONTROLS: &[Entry<dyn CongestionControl>] = &[
    control::RENO,
    control::CUBIC,
    control::FIXED,
    control::WESTWOOD,
    control::WESTWOOD_PLUS,
    control::VEGAS,
    control::VENO,
    control::BBR,
    control::BBR3,
];

/// The judges, in the order in which they are asked: one that knows the cause speaks before one
/// that only waits.
pub static JUDGES: &[Entry<dyn LossJudge>] =
    &[judge::HACK, judge::RR, judge::SPIKE, judge::DCR_TIMER, judge::DCR_COUNT];

pub(crate) fn no_parameter(parameter: Option<&str>) -> Result<(), String> {
    parameter.map_or(Ok(()), |_| Err("it takes no parameter".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Choice, Combination};

    /// What a user would type for each entry, after a look at what a listing shows of it.
    fn listed<T: ?Sized>(entries: &'static [Entry<T>]) -> Vec<String> {
        let names: BTreeSet<_> = entries.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries.len(), "no name twice");
        for entry in entries {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-:".contains(c);
            assert!(!entry.name.is_empty() && entry.name.chars().all(plain), "{entry:?}");
            assert!(!entry.summary.is_empty() && !entry.summary.contains('\n'), "{entry:?}");
            assert!(!entry.source.is_empty(), "{entry:?}");
            let fallback = entry.fallback.is_none_or(|name| names.contains(name));
            assert!(fallback, "{entry:?} falls back on nothing");
            assert_eq!(entry.parameter.is_empty(), entry.example.is_none(), "{entry:?}");
            assert!(Choice::new(entry, entry.example).is_ok(), "{entry:?}");
            assert!(Choice::new(entry, Some("nonsense")).is_err(), "{entry:?}");
        }
        entries.iter().map(|entry| Choice::plain(entry).unwrap().to_string()).collect()
    }

    #[test]
    fn what_is_listed_can_be_typed_and_nothing_else() {
        for detection in listed(DETECTIONS) {
            for control in listed(CONTROLS) {
                let text = format!("{detection}/{control}");
                assert_eq!(text.parse::<Combination>().unwrap().to_string(), text);
            }
        }
        for judge in listed(JUDGES) {
            assert!(format!("sack/cubic/{judge}").parse::<Combination>().is_ok(), "{judge}");
        }
        let Err(error) = "sack/nothing".parse::<Combination>() else { panic!("it parses") };
        for control in CONTROLS {
            let shown = format!("{}{}", control.name, control.parameter);
            assert!(error.to_string().contains(&shown), "{error}");
        }
    }

    #[test]
    fn what_needs_something_falls_back_on_what_needs_less() {
        for detection in DETECTIONS {
            let combination =
                Combination::default().with_recovery(Choice::plain(detection).unwrap());
            let granted = combination.granted(WireNeeds::NONE);
            assert_eq!(granted.recovery().entry().needs, WireNeeds::NONE, "{detection:?}");
            assert_eq!(combination.granted(WireNeeds::ALL), combination, "{detection:?}");
        }
    }
}
