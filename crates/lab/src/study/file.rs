//! The format of an experiment's file.

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::toml::Source;
use airtcp_trace::figure::Scale;
use serde::Deserialize;
use toml::Spanned;

use super::measure::Asked;
use super::work::{Claimed, Design, Drawn, Where};
use super::{Axis, Value};
use crate::registry::EXPERIMENTS;
use crate::report::Heading;
use crate::theory::Bound;
use crate::{Ground, Kind, LabError};

/// The whole file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    name: Option<Spanned<String>>,
    what: Option<String>,
    source: Option<String>,
    #[serde(default = "ten")]
    seeds: Spanned<u64>,
    #[serde(default)]
    axis: Vec<AxisFile>,
    scenario: Spanned<toml::Table>,
    measures: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    claim: Vec<Spanned<ClaimFile>>,
    #[serde(default)]
    picture: Vec<PictureFile>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "a table: `[[axis]]`")]
struct AxisFile {
    name: Spanned<String>,
    values: Spanned<Vec<Value>>,
    /// For the table and the axis of a picture.
    label: Option<String>,
}

type Values = BTreeMap<String, Spanned<Value>>;

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "a table: `[[claim]]`")]
struct ClaimFile {
    what: Option<String>,
    measure: Spanned<String>,
    #[serde(default)]
    of: Values,
    over: Option<Values>,
    above: Option<f64>,
    below: Option<f64>,
    within: Option<[f64; 2]>,
    why: Option<String>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "a table: `[[picture]]`")]
struct PictureFile {
    name: Spanned<String>,
    title: Option<String>,
    x: Spanned<String>,
    y: Spanned<String>,
    series: Option<Spanned<String>>,
    #[serde(default)]
    at: Values,
    x_scale: Option<Spanned<ScaleFile>>,
    y_scale: Option<Spanned<ScaleFile>>,
}

#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
enum ScaleFile {
    Linear,
    Log,
}

fn ten() -> Spanned<u64> {
    Spanned::new(0..0, 10)
}

/// The maximum number of repetitions; more are a typing mistake.
const MOST_SEEDS: u64 = 10_000;

/// Reads an experiment, except the scenarios of its points.
///
/// # Errors
///
/// The first mistake, with its line and column.
pub(super) fn read(source: &Source<'_>) -> Result<Design, LabError> {
    let file: StudyFile = toml::from_str(source.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        source.refuse(at, error.message())
    })?;
    let reader = Reader { source, axes: axes(source, &file)? };
    let heading = reader.heading(&file)?;
    let seeds = *file.seeds.get_ref();
    if !(1..=MOST_SEEDS).contains(&seeds) {
        let what = format!("`{seeds}`: expected a whole number from 1 to {MOST_SEEDS}");
        return Err(reader.refuse(&file.seeds, &what));
    }
    if file.measures.get_ref().is_empty() {
        let what = "nothing is measured: name a measure, such as \"goodput\"";
        return Err(reader.refuse(&file.measures, what));
    }
    let measures: Vec<Asked> =
        file.measures.get_ref().iter().map(|m| reader.measure(m)).collect::<Result<_, _>>()?;
    let claims =
        file.claim.iter().map(|claim| reader.claim(claim)).collect::<Result<Vec<_>, _>>()?;
    let pictures = file
        .picture
        .iter()
        .map(|picture| reader.picture(picture))
        .collect::<Result<Vec<_>, _>>()?;
    let labels = file
        .axis
        .iter()
        .map(|axis| axis.label.clone().unwrap_or_else(|| axis.name.get_ref().clone()));
    let labels = labels.collect();
    Ok(Design { heading, seeds, labels, axes: reader.axes, measures, claims, pictures })
}

/// Checks the axes; every axis must be used in the scenario.
fn axes(source: &Source<'_>, file: &StudyFile) -> Result<Vec<Axis>, LabError> {
    let mut axes: Vec<Axis> = Vec::new();
    let mut written = Vec::new();
    file.scenario.get_ref().values().for_each(|value| placeholders(value, &mut written));
    for AxisFile { name: spanned, values, .. } in &file.axis {
        let name = spanned.get_ref();
        let refuse = |what: &str| Err(source.refuse(spanned.span().start, what).into());
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_word) {
            return refuse(&format!("`{name}`: expected letters, digits, `-` and `_`"));
        }
        if name == "seed" || super::measure::names().any(|measure| measure == name) {
            return refuse(&format!("`{name}` is a name that records have already: use another"));
        }
        if axes.iter().any(|axis| axis.name == *name) {
            return refuse(&format!("there are two axes `{name}`: use another name"));
        }
        if !written.contains(&name.as_str()) {
            if let Some(misspelt) = misspelt(name, &written, &file.axis) {
                return Err(unknown_placeholder(source, misspelt, &file.axis));
            }
            return refuse(&format!(
                "axis `{name}` is unused: write `{{{name}}}` in a string of [scenario]"
            ));
        }
        let all = values.get_ref();
        if all.is_empty() {
            let what = format!("axis `{name}` has no values: name one at least");
            return Err(source.refuse(values.span().start, &what).into());
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = all.iter().find(|value| !seen.insert(value.key())) {
            let what = format!("axis `{name}` has the value {twice} twice");
            return Err(source.refuse(values.span().start, &what).into());
        }
        axes.push(Axis { name: name.clone(), values: all.clone() });
    }
    Ok(axes)
}

/// Collects the names in braces of all texts.
fn placeholders<'a>(value: &'a toml::Value, found: &mut Vec<&'a str>) {
    match value {
        toml::Value::String(text) => {
            let names = text.split('{').skip(1).filter_map(|part| part.split_once('}'));
            found.extend(names.map(|(name, _)| name));
        }
        toml::Value::Array(list) => list.iter().for_each(|inner| placeholders(inner, found)),
        toml::Value::Table(table) => table.values().for_each(|inner| placeholders(inner, found)),
        _ => {}
    }
}

/// Returns the placeholder that is no axis and similar to the name of this one.
fn misspelt<'a>(name: &str, written: &[&'a str], axes: &[AxisFile]) -> Option<&'a str> {
    let is_axis = |word: &str| axes.iter().any(|axis| axis.name.get_ref() == word);
    let is_meant = |word: &&&str| !is_axis(word) && airtcp_types::nearest(word, [name]).is_some();
    written.iter().find(is_meant).copied()
}

fn unknown_placeholder(source: &Source<'_>, name: &str, axes: &[AxisFile]) -> LabError {
    let at = source.text.find(&format!("{{{name}}}")).unwrap_or(0);
    let known: Vec<_> = axes.iter().map(|axis| format!("`{{{}}}`", axis.name.get_ref())).collect();
    let what = format!("unknown placeholder `{{{name}}}`, expected one of {}", known.join(", "));
    source.refuse(at, &what).into()
}

struct Reader<'a> {
    source: &'a Source<'a>,
    axes: Vec<Axis>,
}

impl Reader<'_> {
    fn refuse<T>(&self, at: &Spanned<T>, what: &str) -> LabError {
        self.source.refuse(at.span().start, what).into()
    }

    fn heading(&self, file: &StudyFile) -> Result<Heading, LabError> {
        let path = std::path::Path::new(self.source.name);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name = file.name.as_ref().map_or(stem, |name| name.get_ref());
        let at = file.name.as_ref().map_or(0, |name| name.span().start);
        if !is_name(name) {
            let what = format!(
                "`{name}` is no name for a folder of results: use letters, digits, `-`, `_`, `.` and `/`, \
                 such as name = \"mine/loss\""
            );
            return Err(self.source.refuse(at, &what).into());
        }
        if EXPERIMENTS.iter().any(|experiment| experiment.name == name) {
            let what = format!("the lab has an experiment `{name}`: use another name");
            return Err(self.source.refuse(at, &what).into());
        }
        Ok(Heading {
            name: name.to_owned(),
            what: file.what.clone().unwrap_or_else(|| self.source.name.to_owned()),
            source: file.source.clone().unwrap_or_else(|| self.source.name.to_owned()),
            kind: Kind::Study,
            ground: Ground::Simulated,
        })
    }

    fn measure(&self, text: &Spanned<String>) -> Result<Asked, LabError> {
        Asked::read(text.get_ref(), text.span().start).map_err(|what| self.refuse(text, &what))
    }

    /// Looks up the axis that is named at the byte offset `at`.
    fn axis(&self, at: usize, name: &str) -> Result<&Axis, LabError> {
        self.axes.iter().find(|axis| axis.name == name).ok_or_else(|| {
            let known: Vec<_> = self.axes.iter().map(|a| format!("`{}`", a.name)).collect();
            let what = match known.len() {
                0 => format!("unknown axis `{name}`: there is no [[axis]]"),
                _ => format!("unknown axis `{name}`, expected one of {}", known.join(", ")),
            };
            self.source.refuse(at, &what).into()
        })
    }

    fn values(&self, values: &Values) -> Result<Where, LabError> {
        let mut checked = Where::default();
        for (name, value) in values {
            let at = value.span().start;
            let axis = self.axis(at, name)?;
            if !axis.values.contains(value.get_ref()) {
                let known: Vec<_> = axis.values.iter().map(|value| format!("`{value}`")).collect();
                let what = format!(
                    "unknown value `{}` of the axis `{name}`, expected one of {}",
                    value.get_ref(),
                    known.join(", ")
                );
                return Err(self.source.refuse(at, &what).into());
            }
            checked.0.push((name.clone(), value.get_ref().clone()));
        }
        Ok(checked)
    }

    fn claim(&self, spanned: &Spanned<ClaimFile>) -> Result<Claimed, LabError> {
        let file = spanned.get_ref();
        let bound = match (file.above, file.below, file.within) {
            (Some(least), None, None) => Bound::Above(least),
            (None, Some(most), None) => Bound::Below(most),
            (None, None, Some([low, high])) if low <= high => Bound::Within(low, high),
            (None, None, Some(_)) => {
                return Err(self.refuse(spanned, "`within` is the lower end and the higher one"));
            }
            _ => {
                let what = "a claim has one of `above = 1.0`, `below = 1.0`, `within = [0.9, 1.1]`";
                return Err(self.refuse(spanned, what));
            }
        };
        Ok(Claimed {
            what: file.what.clone(),
            asked: self.measure(&file.measure)?,
            of: self.values(&file.of)?,
            over: file.over.as_ref().map(|over| self.values(over)).transpose()?,
            bound,
            why: file.why.clone().unwrap_or_default(),
        })
    }

    fn picture(&self, file: &PictureFile) -> Result<Drawn, LabError> {
        let name = file.name.get_ref();
        if !is_name(name) || name.contains('/') {
            let what =
                format!("`{name}` is no name for a file: use letters, digits, `-`, `_` and `.`");
            return Err(self.refuse(&file.name, &what));
        }
        let at = self.values(&file.at)?;
        let x = self.axis(file.x.span().start, file.x.get_ref())?;
        if x.values.iter().any(|value| value.number().is_none()) {
            let what =
                format!("axis `{}` has values that are no numbers: use it as `series`", x.name);
            return Err(self.refuse(&file.x, &what));
        }
        let series = match &file.series {
            Some(series) => Some(self.axis(series.span().start, series.get_ref())?.name.clone()),
            None => None,
        };
        let is_free = |axis: &&Axis| {
            axis.name != x.name && Some(&axis.name) != series.as_ref() && !at.has(&axis.name)
        };
        if let Some(Axis { name, values }) = self.axes.iter().find(is_free) {
            let what = format!(
                "the picture leaves axis `{name}` open: use it as `series`, or pick a value, such as at = {{ {name} = {:?} }}",
                values[0].to_string()
            );
            return Err(self.refuse(&file.name, &what));
        }
        let scale = |of: &Option<Spanned<ScaleFile>>| match of.as_ref().map(Spanned::get_ref) {
            Some(ScaleFile::Log) => Scale::Log,
            Some(ScaleFile::Linear) | None => Scale::Linear,
        };
        Ok(Drawn {
            name: name.clone(),
            title: file.title.clone(),
            x: x.name.clone(),
            y: self.measure(&file.y)?,
            series,
            at,
            scales: [scale(&file.x_scale), scale(&file.y_scale)],
        })
    }
}

/// Returns whether the name is a path inside a folder, without hidden files and `..`.
fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.split('/')
        .all(|part| !part.is_empty() && !part.starts_with('.') && part.chars().all(is_word))
}
