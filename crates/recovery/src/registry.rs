//! Every strategy by name.
//!
//! A new strategy is one file that implements one trait, and one entry here: then the command line,
//! the property tests and the benches have it too.

use std::fmt::{self, Debug};

use crate::control::{self, CongestionControl, ControlParams};
use crate::detection::{self, LossDetection};
use crate::judge::LossJudge;

/// What a strategy needs on the wire. The connection negotiates it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireNeeds {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Time stamps (RFC 7323).
    pub timestamps: bool,
    /// Header checksums and special ACKs (HACK 3).
    pub hack: bool,
    /// Transmission numbers and their echo (LE 2.2.2).
    pub txno_echo: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
}

impl WireNeeds {
    /// Nothing.
    pub const NONE: Self =
        Self { sack: false, timestamps: false, hack: false, txno_echo: false, ecn: false };

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

/// Makes a strategy from its parameter, which is what follows the colon in `fixed:32`, or says what
/// is wrong with the parameter.
pub type Make<T> = fn(parameter: Option<&str>, params: &ControlParams) -> Result<Box<T>, String>;

/// One strategy of a kind.
pub struct Entry<T: ?Sized> {
    /// Its name, as in a combination.
    pub name: &'static str,
    /// What may follow the name, as `:N`; empty if nothing may.
    pub parameter: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What it needs on the wire.
    pub needs: WireNeeds,
    /// What takes its place where the peer does not grant that.
    pub fallback: Option<&'static str>,
    /// Makes one.
    pub make: Make<T>,
}

impl<T: ?Sized> Debug for Entry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const NOTHING: WireNeeds = WireNeeds::NONE;

/// The loss detectors.
pub static DETECTIONS: &[Entry<dyn LossDetection>] = &[
    Entry {
        name: "reno",
        parameter: "",
        summary: "fast retransmit on three duplicate ACKs, recovery ends with the first new ACK",
        source: "RFC 5681",
        needs: NOTHING,
        fallback: None,
        make: |parameter, _| {
            no_parameter(parameter).map(|()| Box::new(detection::Reno::default()) as _)
        },
    },
    Entry {
        name: "newreno",
        parameter: "[:slow]",
        summary: "a partial ACK tells the next loss; `slow` restarts the timer on every one",
        source: "RFC 6582",
        needs: NOTHING,
        fallback: None,
        make: |parameter, _| match parameter {
            None => Ok(Box::new(detection::NewReno::new(false))),
            Some("slow") => Ok(Box::new(detection::NewReno::new(true))),
            Some(_) => Err("it takes `slow` or nothing, as in `newreno:slow`".to_owned()),
        },
    },
    Entry {
        name: "sack",
        parameter: "",
        summary: "conservative recovery from SACK blocks, with DSACK",
        source: "RFC 6675, RFC 2883",
        needs: WireNeeds { sack: true, ..WireNeeds::NONE },
        fallback: Some("newreno"),
        make: |parameter, _| {
            no_parameter(parameter).map(|()| Box::new(detection::Sack::default()) as _)
        },
    },
];

/// The congestion controls.
pub static CONTROLS: &[Entry<dyn CongestionControl>] = &[
    Entry {
        name: "reno",
        parameter: "",
        summary: "additive increase, halving, bytes counted",
        source: "RFC 5681, RFC 3465",
        needs: NOTHING,
        fallback: None,
        make: |parameter, params| {
            no_parameter(parameter).map(|()| Box::new(control::Reno::new(params)) as _)
        },
    },
    Entry {
        name: "cubic",
        parameter: "",
        summary: "cubic growth since the last reduction",
        source: "RFC 9438",
        needs: NOTHING,
        fallback: None,
        make: |parameter, params| {
            no_parameter(parameter).map(|()| Box::new(control::Cubic::new(params)) as _)
        },
    },
    Entry {
        name: "fixed",
        parameter: ":N",
        summary: "a window of N segments that nothing moves",
        source: "the upper bound in comparisons; unfair to others",
        needs: NOTHING,
        fallback: None,
        make: |parameter, params| {
            let segments =
                parameter.and_then(|n| n.parse().ok()).filter(|n| (1..=65_535).contains(n));
            match segments {
                Some(segments) => Ok(Box::new(control::Fixed::new(params, segments))),
                None => Err("it takes 1 to 65535 segments, as in `fixed:32`".to_owned()),
            }
        },
    },
];

/// The judges, in the order in which they are asked.
pub static JUDGES: &[Entry<dyn LossJudge>] = &[];

fn no_parameter(parameter: Option<&str>) -> Result<(), String> {
    parameter.map_or(Ok(()), |_| Err("it takes no parameter".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Combination;

    /// Name and parameter of each entry, after a look at what a listing shows of it.
    fn listed<T: ?Sized>(entries: &[Entry<T>]) -> Vec<(&'static str, &'static str)> {
        let names: BTreeSet<_> = entries.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries.len(), "no name twice");
        for entry in entries {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!entry.name.is_empty() && entry.name.chars().all(plain), "{entry:?}");
            assert!(!entry.summary.is_empty() && !entry.summary.contains('\n'), "{entry:?}");
            assert!(!entry.source.is_empty(), "{entry:?}");
            let fallback = entry.fallback.is_none_or(|name| names.contains(name));
            assert!(fallback, "{entry:?} falls back on nothing");
            assert!(entry.needs == NOTHING || entry.fallback.is_some(), "{entry:?}");
        }
        entries.iter().map(|entry| (entry.name, entry.parameter)).collect()
    }

    /// What a user would type for an entry.
    fn typed((name, parameter): (&str, &str)) -> String {
        if parameter == ":N" { format!("{name}:7") } else { name.to_owned() }
    }

    #[test]
    fn what_is_listed_can_be_typed_and_nothing_else() {
        for detection in listed(DETECTIONS).into_iter().map(typed) {
            for control in listed(CONTROLS).into_iter().map(typed) {
                let text = format!("{detection}/{control}");
                assert_eq!(text.parse::<Combination>().unwrap().to_string(), text);
            }
        }
        for judge in listed(JUDGES).into_iter().map(typed) {
            assert!(format!("sack/cubic/{judge}").parse::<Combination>().is_ok(), "{judge}");
        }
        let Err(error) = "sack/nothing".parse::<Combination>() else { panic!("it parses") };
        for (name, parameter) in listed(CONTROLS) {
            assert!(error.to_string().contains(&format!("{name}{parameter}")), "{error}");
        }
    }

    #[test]
    fn parameters_that_are_listed_are_taken() {
        for (name, parameter) in listed(DETECTIONS) {
            let with = format!("{name}{}/reno", parameter.trim_matches(['[', ']']));
            assert!(with.parse::<Combination>().is_ok(), "{with}");
            assert!(format!("{name}:nonsense/reno").parse::<Combination>().is_err(), "{name}");
        }
    }
}
