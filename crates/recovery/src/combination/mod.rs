//! A combination of strategies: `detection/control[/judge+judge]`.

use std::fmt;
use std::str::FromStr;

use crate::control::{CongestionControl, ControlParams};
use crate::detection::LossDetection;
use crate::judge::LossJudge;
use crate::registry::{self, Entry, WireNeeds};
use airtcp_types::ByteCount;

/// A selected strategy and its parameter.
pub struct Choice<T: ?Sized + 'static> {
    entry: &'static Entry<T>,
    parameter: Option<Box<str>>,
}

impl<T: ?Sized> Choice<T> {
    /// Selects `entry`, which need not be in the registry, with the text after the colon as
    /// parameter.
    ///
    /// # Errors
    /// The strategy does not accept the parameter, or needs one.
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

    /// Selects `entry` without a parameter, or with the example if it needs one.
    ///
    /// # Errors
    /// The entry has no example, or an invalid one.
    pub fn plain(entry: &'static Entry<T>) -> Result<Self, CombinationError> {
        Self::new(entry, None).or_else(|_| Self::new(entry, entry.example))
    }

    /// Returns the registry entry of the strategy.
    pub const fn entry(&self) -> &'static Entry<T> {
        self.entry
    }

    /// Finds the entry that `text` names, and selects it with the parameter in `text`.
    pub(crate) fn find(
        kind: &'static str,
        entries: &[&'static Entry<T>],
        text: &str,
    ) -> Result<Self, CombinationError> {
        // The authors of `westwood-plus` call it `westwood+`.
        let plus = text.strip_suffix('+').map(|name| format!("{name}-plus"));
        let text = plus.as_deref().unwrap_or(text);
        let named = |name| entries.iter().copied().find(|entry| entry.name == name);
        // The name of a variant includes its colon.
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

    /// Returns this strategy, or its first fallback that needs only granted options.
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

    /// Creates the strategy. `None` only if it rejects a parameter that it accepted before, which
    /// no strategy does.
    fn make(&self, params: &ControlParams) -> Option<Box<T>> {
        (self.entry.make)(self.parameter.as_deref(), params).ok()
    }
}

/// Parameters to validate a strategy's parameter with; the values do not matter.
const PROBE: ControlParams = ControlParams::new(ByteCount(1460), ByteCount(14_600));

impl<T: ?Sized> Clone for Choice<T> {
    fn clone(&self) -> Self {
        Self { entry: self.entry, parameter: self.parameter.clone() }
    }
}

/// Choices are equal if name and parameter are equal.
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

/// The strategies of a sender.
///
/// The text form is `detection/control`, with judges after a second slash, and parameters after a
/// colon. Omitted parts are those of the default. The default judge belongs to the default control:
/// if a control is given, only the given judges apply.
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
    /// Creates a combination from its parts. `None` selects the default, and an empty `judge`
    /// selects no judge. The default judge belongs to the default control: with a `control` and no
    /// `judge` there is no judge.
    ///
    /// # Errors
    /// A name is unknown, a parameter is invalid, or a judge is named twice.
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

    /// Returns the combination with some parts replaced, which have the form of
    /// [`from_parts`](Self::from_parts). `None` keeps a part, and an empty `judge` selects no
    /// judge. If control and judges are the default, replacing the control also removes the judge.
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

    /// Parses a list of combinations, separated by commas.
    ///
    /// # Errors
    /// As [`from_parts`](Self::from_parts), or a combination has the wrong shape; the error is that
    /// of the first invalid combination.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, CombinationError> {
        text.split(',').map(|one| one.trim().parse()).collect()
    }

    /// Returns every detection with every control, in the order of the registry. Strategies that
    /// need a parameter have that of their example.
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

    /// Returns every detection with every judge, in the order of the registry, with the control
    /// `reno`.
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

    /// Returns every set of at most two judges of the registry that a combination accepts, without
    /// two variants of one judge.
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

    /// Replaces the detection by one that need not be in the registry.
    #[must_use]
    pub fn with_detection(mut self, choice: Choice<dyn LossDetection>) -> Self {
        self.detection = choice;
        self
    }

    /// Returns whether `control` removes the judge: control and judge are the default, and
    /// `control` is not.
    fn loses_judge_by(&self, control: &Choice<dyn CongestionControl>) -> bool {
        let default = Self::default();
        self.control == default.control
            && self.judges == default.judges
            && *control != default.control
    }

    /// Replaces the control by one that need not be in the registry. If control and judges are the
    /// default, another control also removes the judge.
    #[must_use]
    pub fn with_control(mut self, choice: Choice<dyn CongestionControl>) -> Self {
        if self.loses_judge_by(&choice) {
            self.judges.clear();
        }
        self.control = choice;
        self
    }

    /// Replaces the judges. They are asked in this order and need not be in the registry.
    #[must_use]
    pub fn with_judges(mut self, judges: Vec<Choice<dyn LossJudge>>) -> Self {
        self.judges = judges;
        self
    }

    /// Returns the loss detection.
    pub const fn detection(&self) -> &Choice<dyn LossDetection> {
        &self.detection
    }

    /// Returns the congestion control.
    pub const fn control(&self) -> &Choice<dyn CongestionControl> {
        &self.control
    }

    /// Returns the TCP options that the strategies need together.
    pub fn needs(&self) -> WireNeeds {
        let judges = self.judges.iter().map(|judge| judge.entry.needs);
        judges.fold(self.detection.entry.needs.union(self.control.entry.needs), WireNeeds::union)
    }

    /// Returns whether any of the strategies draws random numbers from the seed.
    pub fn uses_seed(&self) -> bool {
        self.detection.entry.uses_seed
            || self.control.entry.uses_seed
            || self.judges.iter().any(|judge| judge.entry.uses_seed)
    }

    /// Returns the combination for a connection with the `granted` options: a detection or control
    /// that needs others is replaced by its fallback, and such a judge is left out.
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

/// Returns the first judge that is named twice, in whatever variants. `judges` is sorted by rank.
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
        let control = |name: &str| {
            registry::controls().iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
        };
        let is_detection = |name: &str| {
            registry::detections().iter().any(|entry| entry.name.eq_ignore_ascii_case(name))
        };
        let judge = |word: &str| Choice::find("judge", registry::judges(), word).ok();
        let unknown = |kind, name: &str, allowed| {
            Err(CombinationError::Unknown { kind, name: name.to_owned(), allowed })
        };
        match parts[..] {
            [only] if !is_detection(only) => {
                if let Some(control) = control(only) {
                    let hint = format!("it is a congestion control: write rack/{}", control.name);
                    return unknown("detection", only, hint);
                }
                if let Some(judge) = judge(only) {
                    let hint = format!("it is a judge: write rack/bbr3/{judge}");
                    return unknown("detection", only, hint);
                }
            }
            // Each kind has its own names: a judge may have that of a control.
            [detection, word] | [detection, word, _] if control(word).is_none() => {
                if let Some(judge) = judge(word) {
                    let detection = Choice::find("detection", registry::detections(), detection)?;
                    let third = parts.get(2).and_then(|third| {
                        Choice::find("congestion control", registry::controls(), third).ok()
                    });
                    let control = third.map_or(DEFAULT_CONTROL.to_owned(), |it| it.to_string());
                    let hint = format!("it is a judge: write {detection}/{control}/{judge}");
                    return unknown("congestion control", word, hint);
                }
            }
            _ => {}
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
        /// The valid names, and the closest match.
        allowed: String,
    },
    /// The parameter is invalid, or missing.
    #[error("`{name}` {}: {why}", refused(.parameter.as_deref()))]
    Parameter {
        /// The strategy.
        name: &'static str,
        /// The parameter, if one was given.
        parameter: Option<String>,
        /// What the strategy accepts.
        why: String,
    },
    /// The same judge is named twice.
    #[error("the same judge is named twice: name it once, as in `sack/cubic/{first}`")]
    Twice {
        /// The first occurrence.
        first: String,
    },
    /// A strategy needs a TCP option that was not negotiated.
    #[error(
        "`{combination}` needs {missing}, which this connection did not negotiate: choose it when you open the connection"
    )]
    NotGranted {
        /// The combination.
        combination: String,
        /// The missing option.
        missing: &'static str,
    },
    /// The text has too many slashes, or an empty part.
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
