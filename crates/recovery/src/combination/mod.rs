//! A choice of strategies: `detection/control[/judge+judge]`.

use std::fmt;
use std::str::FromStr;

use crate::control::{CongestionControl, ControlParams};
use crate::detection::LossDetection;
use crate::judge::LossJudge;
use crate::registry::{self, Entry, WireNeeds};
use airtcp_types::ByteCount;

/// A strategy chosen by name, with its parameter.
pub struct Choice<T: ?Sized + 'static> {
    entry: &'static Entry<T>,
    parameter: Option<Box<str>>,
}

impl<T: ?Sized> Choice<T> {
    /// Chooses `entry`, which need not be in the registry, with the parameter that would follow the
    /// colon.
    ///
    /// # Errors
    /// The parameter is not one the strategy takes.
    pub fn new(
        entry: &'static Entry<T>,
        parameter: Option<&str>,
    ) -> Result<Self, CombinationError> {
        (entry.make)(parameter, &PROBE).map_err(|why| CombinationError::Parameter {
            name: entry.name,
            parameter: parameter.map(str::to_owned),
            why,
        })?;
        Ok(Self { entry, parameter: parameter.map(Box::from) })
    }

    /// Chooses `entry` without a parameter if it can do without, else with the example of one.
    ///
    /// # Errors
    /// The entry gives no example, or one that it does not take.
    pub fn plain(entry: &'static Entry<T>) -> Result<Self, CombinationError> {
        Self::new(entry, None).or_else(|_| Self::new(entry, entry.example))
    }

    /// The registry entry of the strategy.
    pub const fn entry(&self) -> &'static Entry<T> {
        self.entry
    }

    /// The one of `entries` that `text` names, with its parameter.
    pub(crate) fn find(
        kind: &'static str,
        entries: &[&'static Entry<T>],
        text: &str,
    ) -> Result<Self, CombinationError> {
        // `westwood+` is how its authors write `westwood-plus`.
        let plus = text.strip_suffix('+').map(|name| format!("{name}-plus"));
        let text = plus.as_deref().unwrap_or(text);
        let named = |name| entries.iter().copied().find(|entry| entry.name == name);
        // A variant has its colon in its name.
        let (found, parameter) = match (named(text), text.rsplit_once(':')) {
            (None, Some((name, parameter))) => (named(name), Some(parameter)),
            (found, _) => (found, None),
        };
        let entry = found.ok_or_else(|| CombinationError::Unknown {
            kind,
            name: text.to_owned(),
            allowed: if entries.is_empty() {
                "there is none yet".to_owned()
            } else {
                let names: Vec<_> =
                    entries.iter().map(|e| format!("{}{}", e.name, e.parameter)).collect();
                let nearest = |word| airtcp_types::nearest(word, entries.iter().map(|e| e.name));
                let meant = nearest(text).or_else(|| nearest(text.split(':').next()?));
                let hint = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
                format!("use one of {}{hint}", names.join(", "))
            },
        })?;
        Self::new(entry, parameter)
    }

    /// Itself, or the first of its fallbacks that needs no more than was granted.
    fn granted(
        &self,
        kind: &'static str,
        entries: &[&'static Entry<T>],
        granted: WireNeeds,
    ) -> Self {
        let mut choice = self.clone();
        for _ in entries {
            let met = choice.entry.needs.missing(granted).is_none();
            match choice.entry.fallback.filter(|_| !met).map(|name| Self::find(kind, entries, name))
            {
                Some(Ok(next)) => choice = next,
                _ => break,
            }
        }
        choice
    }

    /// `None` only if the parameter was taken once and is refused now, which no strategy does.
    fn make(&self, params: &ControlParams) -> Option<Box<T>> {
        (self.entry.make)(self.parameter.as_deref(), params).ok()
    }
}

/// For trying a parameter out; its values do not matter.
const PROBE: ControlParams = ControlParams::new(ByteCount(1460), ByteCount(14_600));

impl<T: ?Sized> Clone for Choice<T> {
    fn clone(&self) -> Self {
        Self { entry: self.entry, parameter: self.parameter.clone() }
    }
}

/// By name and parameter.
impl<T: ?Sized> PartialEq for Choice<T> {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.parameter == other.parameter
    }
}

impl<T: ?Sized> Eq for Choice<T> {}

impl<T: ?Sized> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parameter {
            None => f.write_str(self.entry.name),
            Some(parameter) => write!(f, "{}:{parameter}", self.entry.name),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Which strategies a sender is made of.
///
/// It is written `detection/control`, with judges after a second slash, and parameters after a
/// colon. Parts that are left out are the default's, but for its judge, which goes with its
/// control: where a control is named, there are no judges but those named.
///
/// ```
/// use airtcp_recovery::Combination;
///
/// let combination: Combination = "newreno/fixed:32".parse()?;
/// assert_eq!(combination.to_string(), "newreno/fixed:32");
/// assert_eq!(Combination::default().to_string(), "rack/bbr3/spike");
/// assert_eq!("le".parse::<Combination>()?.to_string(), "le/bbr3/spike");
/// assert_eq!("le/cubic".parse::<Combination>()?.to_string(), "le/cubic");
/// assert!("newreno/vega".parse::<Combination>().is_err());
/// # Ok::<(), airtcp_recovery::CombinationError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination {
    detection: Choice<dyn LossDetection>,
    control: Choice<dyn CongestionControl>,
    judges: Vec<Choice<dyn LossJudge>>,
}

static RENO: Entry<dyn CongestionControl> = crate::control::RENO;

impl Combination {
    /// From its three parts. `None` leaves the default, and an empty `judge` leaves no judge. The
    /// default's judge goes with its control: with a `control`, a `judge` of `None` leaves no
    /// judge, too.
    ///
    /// # Errors
    /// A name that is unknown, or a parameter that its strategy does not take.
    pub fn from_parts(
        detection: Option<&str>,
        control: Option<&str>,
        judge: Option<&str>,
    ) -> Result<Self, CombinationError> {
        let judge = match (judge, control) {
            (None, None) => DEFAULT_JUDGE,
            (judge, _) => judge.unwrap_or_default().trim(),
        };
        let detection = detection.map_or(DEFAULT_DETECTION, str::trim);
        let control = control.map_or(DEFAULT_CONTROL, str::trim);
        let mut judges = Vec::new();
        for judge in judge.split('+').filter(|_| !judge.is_empty()) {
            judges.push(Choice::find("judge", registry::judges(), judge)?);
        }
        let rank = |choice: &Choice<dyn LossJudge>| {
            registry::judges().iter().position(|entry| entry.name == choice.entry.name)
        };
        judges.sort_by_key(rank);
        if let Some(first) = twice(&judges) {
            return Err(CombinationError::Twice { first: first.to_string() });
        }
        Ok(Self {
            detection: Choice::find("detection", registry::detections(), detection)?,
            control: Choice::find("congestion control", registry::controls(), control)?,
            judges,
        })
    }

    /// The same with other parts, as [`from_parts`](Self::from_parts) takes them; `None` leaves the
    /// part that is there, and an empty `judge` leaves no judge. Where control and judge are the
    /// default's, another control takes the judge with it.
    ///
    /// # Errors
    /// As [`from_parts`](Self::from_parts).
    pub fn with_parts(
        &self,
        detection: Option<&str>,
        control: Option<&str>,
        judge: Option<&str>,
    ) -> Result<Self, CombinationError> {
        let mut next = Self::from_parts(detection, control, judge)?;
        if detection.is_none() {
            next.detection = self.detection.clone();
        }
        if control.is_none() {
            next.control = self.control.clone();
        }
        if judge.is_none() && !self.loses_judge_by(&next.control) {
            next.judges.clone_from(&self.judges);
        }
        Ok(next)
    }

    /// A list of combinations, separated by commas.
    ///
    /// # Errors
    /// As [`from_parts`](Self::from_parts), for the first one that is wrong.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, CombinationError> {
        text.split(',').map(|one| one.trim().parse()).collect()
    }

    /// Every detection with every control, in the registry's order, with the example of a parameter
    /// where one has to be given.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for detection in registry::detections() {
            for control in registry::controls() {
                let (Ok(detection), Ok(control)) =
                    (Choice::plain(detection), Choice::plain(control))
                else {
                    continue;
                };
                all.push(Self { detection, control, judges: Vec::new() });
            }
        }
        all
    }

    /// Every detection with every judge, in the registry's order, under the control `reno`.
    pub fn all_judged() -> Vec<Self> {
        let reno = Self::default().with_control(Choice { entry: &RENO, parameter: None });
        let mut all = Vec::new();
        for detection in registry::detections() {
            for judge in registry::judges() {
                let (Ok(detection), Ok(judge)) = (Choice::plain(detection), Choice::plain(judge))
                else {
                    continue;
                };
                all.push(reno.clone().with_detection(detection).with_judges(vec![judge]));
            }
        }
        all
    }

    /// Every set of at most two judges of the registry that a combination accepts: one variant of
    /// each judge.
    pub fn judge_sets() -> Vec<Vec<Choice<dyn LossJudge>>> {
        let all: Vec<_> =
            registry::judges().iter().filter_map(|judge| Choice::plain(judge).ok()).collect();
        let mut sets = vec![Vec::new()];
        for (index, judge) in all.iter().enumerate() {
            sets.push(vec![judge.clone()]);
            sets.extend(all[index + 1..].iter().map(|other| vec![judge.clone(), other.clone()]));
        }
        sets.retain(|set| twice(set).is_none());
        sets
    }

    /// The same with another detection, which need not be in the registry.
    #[must_use]
    pub fn with_detection(mut self, choice: Choice<dyn LossDetection>) -> Self {
        self.detection = choice;
        self
    }

    /// Whether another control takes the judge with it: both are the default's.
    fn loses_judge_by(&self, control: &Choice<dyn CongestionControl>) -> bool {
        let default = Self::default();
        self.control == default.control
            && self.judges == default.judges
            && *control != default.control
    }

    /// The same with another control, which need not be in the registry. The default's judge goes
    /// with the default's control.
    #[must_use]
    pub fn with_control(mut self, choice: Choice<dyn CongestionControl>) -> Self {
        if self.loses_judge_by(&choice) {
            self.judges.clear();
        }
        self.control = choice;
        self
    }

    /// The same with these judges, asked in this order, which need not be in the registry.
    #[must_use]
    pub fn with_judges(mut self, judges: Vec<Choice<dyn LossJudge>>) -> Self {
        self.judges = judges;
        self
    }

    /// The loss detection.
    pub const fn detection(&self) -> &Choice<dyn LossDetection> {
        &self.detection
    }

    /// The congestion control.
    pub const fn control(&self) -> &Choice<dyn CongestionControl> {
        &self.control
    }

    /// What its parts together need on the wire.
    pub fn needs(&self) -> WireNeeds {
        let judges = self.judges.iter().map(|judge| judge.entry.needs);
        judges.fold(self.detection.entry.needs.union(self.control.entry.needs), WireNeeds::union)
    }

    /// Whether any of its parts draws random numbers from the seed.
    pub fn uses_seed(&self) -> bool {
        self.detection.entry.uses_seed
            || self.control.entry.uses_seed
            || self.judges.iter().any(|judge| judge.entry.uses_seed)
    }

    /// The combination for a connection that was `granted` so much on the wire: a detection or
    /// control that needs more is replaced by its fallback, and a judge that does is left out.
    #[must_use]
    pub fn granted(&self, granted: WireNeeds) -> Self {
        Self {
            detection: self.detection.granted("detection", registry::detections(), granted),
            control: self.control.granted("congestion control", registry::controls(), granted),
            judges: (self.judges.iter())
                .filter(|judge| judge.entry.needs.missing(granted).is_none())
                .cloned()
                .collect(),
        }
    }

    pub(crate) fn make(&self, params: &ControlParams) -> Parts {
        Parts {
            detection: self
                .detection
                .make(params)
                .unwrap_or_else(|| Box::<crate::detection::NewReno>::default()),
            control: self
                .control
                .make(params)
                .unwrap_or_else(|| Box::new(crate::control::Reno::new(params))),
            judges: self.judges.iter().filter_map(|judge| judge.make(params)).collect(),
        }
    }
}

/// The first of two that are the same judge, in whatever variants. They are in the order of their
/// rank.
fn twice(judges: &[Choice<dyn LossJudge>]) -> Option<&Choice<dyn LossJudge>> {
    let name = |choice: &Choice<dyn LossJudge>| choice.entry.name.split(':').next();
    let pairs = judges.iter().zip(judges.iter().skip(1));
    pairs.filter(|(one, other)| name(one) == name(other)).map(|(one, _)| one).next()
}

/// The strategies of one sender.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) detection: Box<dyn LossDetection>,
    pub(crate) control: Box<dyn CongestionControl>,
    pub(crate) judges: Vec<Box<dyn LossJudge>>,
}

const DEFAULT_DETECTION: &str = "rack";
const DEFAULT_CONTROL: &str = "bbr3";
const DEFAULT_JUDGE: &str = "spike";

impl Default for Combination {
    fn default() -> Self {
        Self::from_parts(None, None, None).expect("the default names are in the registry")
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.detection, self.control)?;
        for (judge, separator) in
            self.judges.iter().zip(std::iter::once('/').chain(std::iter::repeat('+')))
        {
            write!(f, "{separator}{judge}")?;
        }
        Ok(())
    }
}

impl FromStr for Combination {
    type Err = CombinationError;

    fn from_str(text: &str) -> Result<Self, CombinationError> {
        let parts: Vec<_> = text.split('/').map(str::trim).collect();
        if parts.len() > 3 || parts.contains(&"") {
            return Err(CombinationError::Shape { text: text.to_owned() });
        }
        let is_control = |name| registry::controls().iter().any(|entry| entry.name == name);
        let is_detection = |name| registry::detections().iter().any(|entry| entry.name == name);
        if let [only] = parts[..]
            && is_control(only)
            && !is_detection(only)
        {
            return Err(CombinationError::Unknown {
                kind: "detection",
                name: only.to_owned(),
                allowed: format!("it is a congestion control: write rack/{only}"),
            });
        }
        Self::from_parts(Some(parts[0]), parts.get(1).copied(), parts.get(2).copied())
    }
}

fn refused(parameter: Option<&str>) -> String {
    match parameter {
        Some(parameter) => format!("does not accept the parameter `{parameter}`"),
        None => "needs a parameter".to_owned(),
    }
}

/// An invalid combination.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CombinationError {
    /// There is no strategy of that name.
    #[error("no {kind} `{name}`: {allowed}")]
    Unknown {
        /// `detection`, `congestion control` or `judge`.
        kind: &'static str,
        /// The name.
        name: String,
        /// What would do.
        allowed: String,
    },
    /// The strategy does not take that parameter, or cannot do without one.
    #[error("`{name}` {}: {why}", refused(.parameter.as_deref()))]
    Parameter {
        /// The strategy.
        name: &'static str,
        /// Its parameter, if it was given one.
        parameter: Option<String>,
        /// What it takes.
        why: String,
    },
    /// One judge, twice.
    #[error("the same judge is named twice: name it once, as in `sack/cubic/{first}`")]
    Twice {
        /// As it was named first.
        first: String,
    },
    /// It needs something on the wire that the connection does not have.
    #[error(
        "`{combination}` needs {missing}, which this connection did not negotiate: choose it when you open the connection"
    )]
    NotGranted {
        /// The combination.
        combination: String,
        /// What it needs.
        missing: &'static str,
    },
    /// There are too many slashes, or nothing beside one.
    #[error(
        "`{text}` is not a combination: write `detection/control[/judge+judge]`, as in `sack/cubic`"
    )]
    Shape {
        /// The text.
        text: String,
    },
}

#[cfg(test)]
mod tests;
