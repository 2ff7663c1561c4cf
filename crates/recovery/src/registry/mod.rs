//! The registry of strategies by name.
//!
//! To add a strategy to this crate, write one file that implements its trait and has an [`Entry`],
//! and add one line here. The command line, the property tests and the benches then include it. A
//! strategy of another crate is registered at run time: see [`Registry`].

use std::fmt::{self, Debug};
use std::sync::OnceLock;

use crate::combination::Choice;
use crate::control::{self, CongestionControl, ControlParams};
use crate::detection::{self, LossDetection};
use crate::judge::{self, LossJudge};

/// The TCP options that a strategy needs; the connection negotiates them.
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
    /// No options.
    pub const NONE: Self =
        Self { sack: false, timestamps: false, hack: false, txno_echo: false, ecn: false };

    /// All options.
    pub const ALL: Self =
        Self { sack: true, timestamps: true, hack: true, txno_echo: true, ecn: true };

    /// Returns the options that either of the two needs.
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

    /// Returns the name of the first needed option that was not `granted`; `None` if all were
    /// granted.
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
    /// The response in fast recovery: the control's window and pacing rate limit what is sent,
    /// instead of proportional rate reduction (RFC 9937).
    pub recovery: bool,
    /// The response to congestion marks: the control sees them in the ACKs, and the sender does not
    /// reduce the window itself (RFC 3168 section 6.1.2).
    pub marks: bool,
}

impl TakesOver {
    /// Takes over nothing.
    pub const NONE: Self = Self { recovery: false, marks: false };
}

/// Creates a strategy. The parameter is the text after the colon, as in `fixed:32`; `None` without
/// one.
///
/// # Errors
/// The strategy rejects the parameter; the text says which parameters it takes. Whether it accepts
/// a parameter must not depend on `params`.
pub type Make<T> = fn(parameter: Option<&str>, params: &ControlParams) -> Result<Box<T>, String>;

/// The registry entry of a strategy.
pub struct Entry<T: ?Sized> {
    /// The name in a combination. A variant that needs other options has its own entry, with a
    /// colon in the name, such as `le:echo`.
    pub name: &'static str,
    /// The syntax of the parameter after the name, such as `:N`; empty if there is none.
    pub parameter: &'static str,
    /// A valid parameter, for programs that run all strategies.
    pub example: Option<&'static str>,
    /// A summary in one line.
    pub summary: &'static str,
    /// The specification: an RFC, a paper or a page.
    pub source: &'static str,
    /// The TCP options that it needs.
    pub needs: WireNeeds,
    /// The strategy that replaces it if the peer does not grant these options. A judge is left out
    /// instead.
    pub fallback: Option<&'static str>,
    /// The tasks of the sender that it takes over; only for a congestion control.
    pub takes_over: TakesOver,
    /// Whether it draws random numbers from [`ControlParams::seed`]. If so, runs with different
    /// seeds differ even over a link without randomness.
    pub uses_seed: bool,
    /// The constructor.
    pub make: Make<T>,
}

impl<T: ?Sized> Entry<T> {
    /// The defaults: no parameter, no needs, no tasks taken over, no random numbers. The registry
    /// rejects an entry without name, summary, source and `make`, so set these:
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

/// Entries are equal if their names are equal.
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

/// The built-in loss detections.
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

/// The built-in judges, in the order in which they are asked: those that know a cause precede those
/// that only defer the response.
static JUDGES: &[Entry<dyn LossJudge>] =
    &[judge::HACK, judge::RR, judge::SPIKE, judge::DCR_TIMER, judge::DCR_COUNT];

/// The registry of the process, set once.
static INSTALLED: OnceLock<Registry> = OnceLock::new();

/// All strategies that a [`Combination`](crate::Combination) can name.
///
/// A process has one registry. It does not change after its first use, so the same text always
/// gives the same combination. It holds the built-in strategies, and those that the program
/// registers before it parses the first combination:
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
    /// A registry of the built-in strategies.
    #[expect(clippy::new_without_default, reason = "a default that is not empty would surprise")]
    pub fn new() -> Self {
        Self {
            detections: DETECTIONS.iter().collect(),
            controls: CONTROLS.iter().collect(),
            judges: JUDGES.iter().collect(),
        }
    }

    /// Appends a loss detection.
    ///
    /// # Errors
    /// The name is invalid or taken, or the entry is incomplete.
    pub fn with_detection(
        mut self,
        entry: &'static Entry<dyn LossDetection>,
    ) -> Result<Self, RegistryError> {
        check("detection", &self.detections, entry, true)?;
        self.detections.push(entry);
        Ok(self)
    }

    /// Appends a congestion control.
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

    /// Appends a judge, which is asked after all others.
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

    /// Makes this the registry of the process. Call it at the start of `main`.
    ///
    /// # Errors
    /// A registry is in use: one was installed, or a combination was parsed or created.
    pub fn install(self) -> Result<(), RegistryError> {
        INSTALLED.set(self).map_err(|_| RegistryError::InUse)
    }

    /// Returns the registry of the process: the one that was [installed](Self::install), otherwise
    /// the built-in strategies. The first call fixes it.
    pub fn installed() -> &'static Self {
        INSTALLED.get_or_init(Self::new)
    }

    /// Returns the loss detections.
    pub fn detections(&self) -> &[&'static Entry<dyn LossDetection>] {
        &self.detections
    }

    /// Returns the congestion controls.
    pub fn controls(&self) -> &[&'static Entry<dyn CongestionControl>] {
        &self.controls
    }

    /// Returns the judges, in the order in which they are asked.
    pub fn judges(&self) -> &[&'static Entry<dyn LossJudge>] {
        &self.judges
    }
}

/// Returns the loss detections of the [registry of the process](Registry::installed).
pub fn detections() -> &'static [&'static Entry<dyn LossDetection>] {
    Registry::installed().detections()
}

/// Returns the congestion controls of the [registry of the process](Registry::installed).
pub fn controls() -> &'static [&'static Entry<dyn CongestionControl>] {
    Registry::installed().controls()
}

/// Returns the judges of the [registry of the process](Registry::installed), in the order in which
/// they are asked.
pub fn judges() -> &'static [&'static Entry<dyn LossJudge>] {
    Registry::installed().judges()
}

/// The reason why the registry rejects a strategy.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name has invalid characters or is reserved.
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
    /// The name, or the name with a parameter, refers to an existing strategy.
    #[error("a {kind} `{name}` already exists: use another name")]
    Taken {
        /// `detection`, `control` or `judge`.
        kind: &'static str,
        /// The name.
        name: &'static str,
    },
    /// The entry is incomplete or inconsistent.
    #[error("the {kind} `{name}` cannot be registered: {why}")]
    Entry {
        /// `detection`, `control` or `judge`.
        kind: &'static str,
        /// The name.
        name: &'static str,
        /// What is wrong with the entry.
        why: String,
    },
    /// A registry was already installed or used.
    #[error("a registry is already in use: install yours once, before a combination is parsed")]
    InUse,
}

/// Prints the message, because `main` prints an error by `Debug`.
impl Debug for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Words that the command line and scenarios accept instead of a combination.
const RESERVED: [&str; 3] = ["all", "usual", "rrtp"];

/// Checks whether `entry` can be appended to `entries`. With `needs_fallback`, an entry that needs
/// options must have a fallback.
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
    // Parsed as a user would type it: `cubic:rfc` is cubic with a parameter.
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
