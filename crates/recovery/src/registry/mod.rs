//! The registry: strategies by name.
//!
//! A new strategy is one file that implements one trait and describes itself in an [`Entry`], and
//! one line here: then the command line, the property tests and the benches have it too. A strategy
//! of another crate joins them at run time: see [`Registry`].

use std::fmt::{self, Debug};
use std::sync::OnceLock;

use crate::combination::Choice;
use crate::control::{self, CongestionControl, ControlParams};
use crate::detection::{self, LossDetection};
use crate::judge::{self, LossJudge};

/// TCP options that a strategy needs. The connection negotiates them.
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

    /// All of them.
    pub const ALL: Self =
        Self { sack: true, timestamps: true, hack: true, txno_echo: true, ecn: true };

    /// The needs of both.
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
    /// A summary in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// TCP options that it needs.
    pub needs: WireNeeds,
    /// The strategy that replaces it if the peer does not grant these options; a judge is left out.
    pub fallback: Option<&'static str>,
    /// Which tasks of the sender it takes over; only a congestion control takes over any.
    pub takes_over: TakesOver,
    /// Whether it draws random numbers from [`ControlParams::seed`]: then runs with different seeds
    /// differ, even over a link that draws none.
    pub uses_seed: bool,
    /// Makes one.
    pub make: Make<T>,
}

impl<T: ?Sized> Entry<T> {
    /// Fields for a plain strategy: no parameter, no needs, no tasks taken over, no random numbers.
    /// The registry refuses it as it is; name, summary, source and `make` have to be given:
    ///
    /// ```
    /// use airtcp_recovery::{CongestionControl, Entry, control::Reno};
    ///
    /// static MINE: Entry<dyn CongestionControl> = Entry {
    ///     name: "mine",
    ///     summary: "as reno",
    ///     source: "RFC 5681",
    ///     make: |_, params| Ok(Box::new(Reno::new(params))),
    ///     ..Entry::BLANK
    /// };
    /// ```
    pub const BLANK: Self = Self {
        name: "",
        parameter: "",
        example: None,
        summary: "",
        source: "",
        needs: WireNeeds::NONE,
        fallback: None,
        takes_over: TakesOver::NONE,
        uses_seed: false,
        make: |_, _| Err("its entry has no `make`".to_owned()),
    };
}

/// By name.
impl<T: ?Sized> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl<T: ?Sized> Eq for Entry<T> {}

impl<T: ?Sized> Debug for Entry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The built-in loss detectors.
static DETECTIONS: &[Entry<dyn LossDetection>] = &[
    detection::RENO,
    detection::NEWRENO,
    detection::SACK,
    detection::FACK,
    detection::RACK,
    detection::LE,
    detection::LE_ECHO,
];

/// The built-in congestion controls.
static CONTROLS: &[Entry<dyn CongestionControl>] = &[
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

/// The built-in judges, in the order in which they are asked: one that knows the cause speaks
/// before one that only waits.
static JUDGES: &[Entry<dyn LossJudge>] =
    &[judge::HACK, judge::RR, judge::SPIKE, judge::DCR_TIMER, judge::DCR_COUNT];

/// The one registry of this process, set once.
static INSTALLED: OnceLock<Registry> = OnceLock::new();

/// All strategies that a [`Combination`](crate::Combination) can name.
///
/// A process has one registry, and it never changes once it was read: the same text always gives
/// the same combination. It holds the built-in strategies, and those that the program adds before
/// it parses the first name:
///
/// ```
/// use airtcp_recovery::registry::{Entry, Registry, RegistryError};
/// use airtcp_recovery::{Combination, CongestionControl};
/// # use airtcp_recovery::{AckView, ControlState, Notice};
/// # use airtcp_types::ByteCount;
/// # #[derive(Debug)]
/// # struct Constant(ByteCount);
/// # impl CongestionControl for Constant {
/// #     fn on_ack(&mut self, _: &AckView<'_>) {}
/// #     fn on_notice(&mut self, _: &Notice) {}
/// #     fn window(&self) -> ByteCount { self.0 }
/// #     fn state(&self) -> ControlState { ControlState { ssthresh: None, mode: "constant" } }
/// # }
///
/// static CONSTANT: Entry<dyn CongestionControl> = Entry {
///     name: "constant",
///     summary: "the initial window, always",
///     source: "this example",
///     make: |_, params| Ok(Box::new(Constant(params.initial_window))),
///     ..Entry::BLANK
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Registry::new().with_control(&CONSTANT)?.install()?;
/// assert_eq!("sack/constant".parse::<Combination>()?.to_string(), "sack/constant");
/// // It has been read.
/// assert_eq!(Registry::new().install(), Err(RegistryError::InUse));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    detections: Vec<&'static Entry<dyn LossDetection>>,
    controls: Vec<&'static Entry<dyn CongestionControl>>,
    judges: Vec<&'static Entry<dyn LossJudge>>,
}

impl Registry {
    /// The built-in strategies.
    #[expect(clippy::new_without_default, reason = "a default that is not empty would surprise")]
    pub fn new() -> Self {
        Self {
            detections: DETECTIONS.iter().collect(),
            controls: CONTROLS.iter().collect(),
            judges: JUDGES.iter().collect(),
        }
    }

    /// The same with another loss detector, the last of the list.
    ///
    /// # Errors
    /// The entry has no proper name, one that is taken, or does not describe itself.
    pub fn with_detection(
        mut self,
        entry: &'static Entry<dyn LossDetection>,
    ) -> Result<Self, RegistryError> {
        check("detection", &self.detections, entry, true)?;
        self.detections.push(entry);
        Ok(self)
    }

    /// The same with another congestion control, the last of the list.
    ///
    /// # Errors
    /// As [`with_detection`](Self::with_detection).
    pub fn with_control(
        mut self,
        entry: &'static Entry<dyn CongestionControl>,
    ) -> Result<Self, RegistryError> {
        check("control", &self.controls, entry, true)?;
        self.controls.push(entry);
        Ok(self)
    }

    /// The same with another judge, which is asked after all others.
    ///
    /// # Errors
    /// As [`with_detection`](Self::with_detection).
    pub fn with_judge(
        mut self,
        entry: &'static Entry<dyn LossJudge>,
    ) -> Result<Self, RegistryError> {
        check("judge", &self.judges, entry, false)?;
        self.judges.push(entry);
        Ok(self)
    }

    /// Makes this the registry of the process. Call it first thing in `main`.
    ///
    /// # Errors
    /// A registry is in use: one was installed, or a combination was parsed or made before.
    pub fn install(self) -> Result<(), RegistryError> {
        INSTALLED.set(self).map_err(|_| RegistryError::InUse)
    }

    /// The registry of the process: the one that was [installed](Self::install), else the built-in
    /// strategies. It stays what it is at the first call.
    pub fn installed() -> &'static Self {
        INSTALLED.get_or_init(Self::new)
    }

    /// The loss detectors.
    pub fn detections(&self) -> &[&'static Entry<dyn LossDetection>] {
        &self.detections
    }

    /// The congestion controls.
    pub fn controls(&self) -> &[&'static Entry<dyn CongestionControl>] {
        &self.controls
    }

    /// The judges, in the order in which they are asked.
    pub fn judges(&self) -> &[&'static Entry<dyn LossJudge>] {
        &self.judges
    }
}

/// The loss detectors of the [registry of the process](Registry::installed).
pub fn detections() -> &'static [&'static Entry<dyn LossDetection>] {
    Registry::installed().detections()
}

/// The congestion controls of the [registry of the process](Registry::installed).
pub fn controls() -> &'static [&'static Entry<dyn CongestionControl>] {
    Registry::installed().controls()
}

/// The judges of the [registry of the process](Registry::installed), in the order in which they are
/// asked.
pub fn judges() -> &'static [&'static Entry<dyn LossJudge>] {
    Registry::installed().judges()
}

/// The reason why the registry rejects a strategy.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name could not be typed, or not be told from something else.
    #[error(
        "`{name}` cannot be the name of a {kind}: use lower-case letters, digits and `-`, a colon before a variant, \
         as in `le:echo`, and none of {}", RESERVED.join(", ")
    )]
    Name {
        /// `detection`, `control` or `judge`.
        kind: &'static str,
        /// The name.
        name: &'static str,
    },
    /// The name, or the name with a parameter, means a strategy that is there.
    #[error("a {kind} `{name}` already exists: use another name")]
    Taken {
        /// `detection`, `control` or `judge`.
        kind: &'static str,
        /// The name.
        name: &'static str,
    },
    /// The entry does not describe its strategy.
    #[error("the {kind} `{name}` cannot be registered: {why}")]
    Entry {
        /// `detection`, `control` or `judge`.
        kind: &'static str,
        /// The name.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A registry was installed, or names were looked up, before.
    #[error("a registry is already in use: install yours once, before a combination is parsed")]
    InUse,
}

/// The sentence, because that is what a `main` that fails prints.
impl Debug for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Words that stand in the place of a combination on the command line and in scenarios.
const RESERVED: [&str; 3] = ["all", "usual", "rrtp"];

/// Whether `entry` can stand after `entries`. A strategy that is not left out where the peer does
/// not grant what it `needs` has a fallback.
fn check<T: ?Sized>(
    kind: &'static str,
    entries: &[&'static Entry<T>],
    entry: &'static Entry<T>,
    needs_fallback: bool,
) -> Result<(), RegistryError> {
    let name = entry.name;
    let is_plain = |part: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(plain)
    };
    let first = name.split(':').next().unwrap_or_default();
    if !name.split(':').all(is_plain) || RESERVED.contains(&first) {
        return Err(RegistryError::Name { kind, name });
    }
    // As a user would type it: `cubic:rfc` is cubic with a parameter.
    if Choice::find(kind, entries, name).is_ok() || entries.iter().any(|e| e.name == name) {
        return Err(RegistryError::Taken { kind, name });
    }
    let refuse = |why: String| Err(RegistryError::Entry { kind, name, why });
    let is_line = |text: &str| !text.trim().is_empty() && !text.contains('\n');
    if !is_line(entry.summary) || !is_line(entry.source) {
        return refuse("summary and source are one line each, and not empty".to_owned());
    }
    if entry.parameter.is_empty() != entry.example.is_none() {
        return refuse("`parameter` and `example` are both given, or neither is".to_owned());
    }
    match entry.fallback {
        Some(fallback) if Choice::find(kind, entries, fallback).is_err() => {
            return refuse(format!("its fallback `{fallback}` is not in the registry"));
        }
        None if needs_fallback && entry.needs != WireNeeds::NONE => {
            return refuse("it needs TCP options and has no fallback".to_owned());
        }
        _ => {}
    }
    if let Err(error) = Choice::new(entry, entry.example).and(Choice::plain(entry)) {
        return refuse(error.to_string());
    }
    Ok(())
}

pub(crate) fn no_parameter(parameter: Option<&str>) -> Result<(), String> {
    parameter.map_or(Ok(()), |_| Err("it takes no parameter".to_owned()))
}

#[cfg(test)]
mod tests;
