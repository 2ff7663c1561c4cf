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
/// colon. Parts that are left out are the default's, but for its judge, which goes with its control:
/// where a control is named, there are no judges but those named.
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
    congestion: Choice<dyn CongestionControl>,
    judges: Vec<Choice<dyn LossJudge>>,
}

static RENO: Entry<dyn CongestionControl> = crate::control::RENO;

impl Combination {
    /// From its three parts as the flags `--detection`, `--congestion` and `--judge` take them;
    /// `None` leaves the default, and an empty `judge` leaves no judge. The default's judge goes with
    /// its control: with a `congestion`, a `judge` of `None` leaves no judge, too.
    ///
    /// # Errors
    /// A name that is unknown, or a parameter that its strategy does not take.
    pub fn from_parts(
        detection: Option<&str>,
        congestion: Option<&str>,
        judge: Option<&str>,
    ) -> Result<Self, CombinationError> {
        let judge = match (judge, congestion) {
            (None, None) => DEFAULT_JUDGE,
            (judge, _) => judge.unwrap_or_default().trim(),
        };
        let detection = detection.map_or(DEFAULT_DETECTION, str::trim);
        let congestion = congestion.map_or(DEFAULT_CONGESTION, str::trim);
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
            congestion: Choice::find("congestion control", registry::controls(), congestion)?,
            judges,
        })
    }

    /// The same with other parts, as [`from_parts`](Self::from_parts) takes them; `None` leaves the
    /// part that is there, and an empty `judge` leaves no judge. Where control and judge are the default's,
    /// another control takes the judge with it.
    ///
    /// # Errors
    /// As [`from_parts`](Self::from_parts).
    pub fn with_parts(
        &self,
        detection: Option<&str>,
        congestion: Option<&str>,
        judge: Option<&str>,
    ) -> Result<Self, CombinationError> {
        let mut next = Self::from_parts(detection, congestion, judge)?;
        if detection.is_none() {
            next.detection = self.detection.clone();
        }
        if congestion.is_none() {
            next.congestion = self.congestion.clone();
        }
        if judge.is_none() && !self.loses_judge_by(&next.congestion) {
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
                let (Ok(detection), Ok(congestion)) =
                    (Choice::plain(detection), Choice::plain(control))
                else {
                    continue;
                };
                all.push(Self { detection, congestion, judges: Vec::new() });
            }
        }
        all
    }

    /// Every detection with every judge, in the registry's order, under the control `reno`.
    pub fn all_judged() -> Vec<Self> {
        let reno = Self::default().with_congestion(Choice { entry: &RENO, parameter: None });
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

    /// Every set of at most two judges of the registry that a combination accepts: one variant of each judge.
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
    fn loses_judge_by(&self, congestion: &Choice<dyn CongestionControl>) -> bool {
        let default = Self::default();
        self.congestion == default.congestion
            && self.judges == default.judges
            && *congestion != default.congestion
    }

    /// The same with another control, which need not be in the registry. The default's judge goes
    /// with the default's control.
    #[must_use]
    pub fn with_congestion(mut self, choice: Choice<dyn CongestionControl>) -> Self {
        if self.loses_judge_by(&choice) {
            self.judges.clear();
        }
        self.congestion = choice;
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
    pub const fn congestion(&self) -> &Choice<dyn CongestionControl> {
        &self.congestion
    }

    /// What its parts together need on the wire.
    pub fn needs(&self) -> WireNeeds {
        let judges = self.judges.iter().map(|judge| judge.entry.needs);
        judges.fold(self.detection.entry.needs.union(self.congestion.entry.needs), WireNeeds::union)
    }

    /// Whether any of its parts draws random numbers from the seed.
    pub fn uses_seed(&self) -> bool {
        self.detection.entry.uses_seed
            || self.congestion.entry.uses_seed
            || self.judges.iter().any(|judge| judge.entry.uses_seed)
    }

    /// The combination for a connection that was `granted` so much on the wire: a detection or
    /// control that needs more is replaced by its fallback, and a judge that does is left out.
    #[must_use]
    pub fn granted(&self, granted: WireNeeds) -> Self {
        Self {
            detection: self.detection.granted("detection", registry::detections(), granted),
            congestion: self.congestion.granted("congestion", registry::controls(), granted),
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
                .congestion
                .make(params)
                .unwrap_or_else(|| Box::new(crate::control::Reno::new(params))),
            judges: self.judges.iter().filter_map(|judge| judge.make(params)).collect(),
        }
    }
}

/// The first of two that are the same judge, in whatever variants. They are in the order of their rank.
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
const DEFAULT_CONGESTION: &str = "bbr3";
const DEFAULT_JUDGE: &str = "spike";

impl Default for Combination {
    fn default() -> Self {
        Self::from_parts(None, None, None).expect("the default names are in the registry")
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.detection, self.congestion)?;
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
        /// `detection`, `congestion` or `judge`.
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
mod tests {
    use super::*;
    use crate::registry::{controls, detections};

    #[test]
    fn one_part_is_exchanged_and_the_others_stay() {
        let combination: Combination = "le/westwood/dcr:timer".parse().unwrap();
        let with = |detection, congestion, judge| {
            combination.with_parts(detection, congestion, judge).unwrap().to_string()
        };
        assert_eq!(with(Some("sack"), None, None), "sack/westwood/dcr:timer");
        assert_eq!(with(None, Some("fixed:4"), None), "le/fixed:4/dcr:timer");
        assert_eq!(with(None, None, Some("rr:3+hack")), "le/westwood/hack+rr:3");
        assert_eq!(with(None, None, Some("")), "le/westwood");
        assert!(combination.with_parts(None, None, Some("hack+hack")).is_err());
    }

    #[test]
    fn the_judge_of_the_default_goes_with_its_control() {
        let parts = |detection, congestion, judge| {
            Combination::from_parts(detection, congestion, judge).unwrap().to_string()
        };
        assert_eq!(parts(None, None, None), "rack/bbr3/spike");
        assert_eq!(parts(Some("le"), None, None), "le/bbr3/spike");
        assert_eq!(parts(None, Some("cubic"), None), "rack/cubic");
        assert_eq!(parts(None, Some("bbr3"), None), "rack/bbr3");
        assert_eq!(parts(None, None, Some("hack")), "rack/bbr3/hack");
        assert_eq!(parts(None, None, Some("")), "rack/bbr3");
        for empty in [(Some(""), None), (None, Some(" "))] {
            let error = Combination::from_parts(empty.0, empty.1, None).unwrap_err().to_string();
            assert!(error.contains(" ``: use one of "), "{error}");
        }
        let cubic = Choice::plain(&crate::control::CUBIC).unwrap();
        let with_cubic = |text: &str| {
            text.parse::<Combination>().unwrap().with_congestion(cubic.clone()).to_string()
        };
        assert_eq!(with_cubic("le/bbr3/spike"), "le/cubic");
        assert_eq!(with_cubic("le/reno/spike"), "le/cubic/spike");
        let mut combination = Combination::default();
        let mut exchange = |detection, congestion| {
            combination = combination.with_parts(detection, congestion, None).unwrap();
            combination.to_string()
        };
        assert_eq!(exchange(Some("le"), None), "le/bbr3/spike");
        assert_eq!(exchange(None, Some("bbr3")), "le/bbr3/spike");
        assert_eq!(exchange(None, Some("cubic")), "le/cubic");
        assert_eq!(exchange(None, Some("bbr3")), "le/bbr3");
    }

    #[test]
    fn what_is_written_is_what_is_shown() {
        for text in ["sack/cubic", "newreno:slow/fixed:7", "reno/reno"] {
            assert_eq!(text.parse::<Combination>().unwrap().to_string(), text);
        }
        assert_eq!("reno".parse::<Combination>().unwrap().to_string(), "reno/bbr3/spike");
    }

    #[test]
    fn errors_name_the_value_and_what_is_allowed() {
        let error = |text: &str| text.parse::<Combination>().unwrap_err().to_string();
        assert_eq!(
            error("sack/illinois"),
            "no congestion control `illinois`: use one of reno, cubic[:rfc], fixed:N, westwood, westwood-plus, vegas, veno, bbr, bbr3"
        );
        for (text, name) in
            [("sakc/reno", "sack"), ("rack/cubci:rfc", "cubic"), ("rack/reno/hakc", "hack")]
        {
            let error = error(text);
            assert!(error.ends_with(&format!("; did you mean `{name}`?")), "{error}");
        }
        assert_eq!(
            error("cubic"),
            "no detection `cubic`: it is a congestion control: write rack/cubic"
        );
        assert!(error("cubic/reno").starts_with("no detection `cubic`: use one of reno, "));
        assert!(error("sack/fixed").contains("as in `fixed:32`"));
        assert!(error("sack/fixed:0").contains("1 to 65535"));
        assert!(error("sack:3/reno").contains("no parameter"));
        for text in ["a/b/c/d", "", "/reno", "rack/", "rack//hack", "rack/cubic/"] {
            assert!(error(text).contains(&format!("`{text}` is not a combination")), "{text}");
        }
        assert!(
            error("sack/reno/dcr")
                .contains("no judge `dcr`: use one of hack, rr[:K], spike, dcr:timer")
        );
    }

    #[test]
    fn judges_are_asked_by_rank_and_left_out_where_the_wire_lacks_what_they_need() {
        let combination: Combination = "sack/westwood+/dcr:timer+hack".parse().unwrap();
        assert_eq!(combination.to_string(), "sack/westwood-plus/hack+dcr:timer");
        assert!(combination.needs().hack && combination.needs().sack);
        let granted = WireNeeds { sack: true, ..WireNeeds::NONE };
        assert_eq!(combination.granted(granted).to_string(), "sack/westwood-plus/dcr:timer");
        let echo: Combination = "le:echo/cubic".parse().unwrap();
        assert_eq!(echo.granted(granted).to_string(), "le/cubic");
        assert_eq!(echo.granted(WireNeeds::NONE).to_string(), "newreno/cubic");
    }

    #[test]
    fn a_judge_is_named_once() {
        for (text, first) in [
            ("hack+hack", "hack"),
            ("rr:2+hack+rr:3", "rr:2"),
            ("dcr:count+hack+dcr:timer", "dcr:timer"),
        ] {
            let error = format!("sack/reno/{text}").parse::<Combination>().unwrap_err();
            assert_eq!(error, CombinationError::Twice { first: first.to_owned() });
            let shown = error.to_string();
            assert!(shown.ends_with(&format!("as in `sack/cubic/{first}`")), "{shown}");
        }
    }

    #[test]
    fn a_list_is_separated_by_commas() {
        let list = Combination::parse_list("sack/cubic, reno/reno").unwrap();
        assert_eq!(
            list.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["sack/cubic", "reno/reno"]
        );
    }

    #[test]
    fn without_sack_the_detection_falls_back() {
        let combination: Combination = "sack/cubic".parse().unwrap();
        assert_eq!(combination.granted(WireNeeds::default()).to_string(), "newreno/cubic");
        let granted = WireNeeds { sack: true, ..WireNeeds::NONE };
        assert_eq!(combination.granted(granted), combination);
    }

    #[test]
    fn all_combinations_parse_back() {
        let all = Combination::all();
        assert_eq!(all.len(), detections().len() * controls().len());
        for combination in all {
            assert_eq!(combination.to_string().parse::<Combination>().unwrap(), combination);
        }
    }
}
