//! Scenarios with placeholders: a table of a larger file, with `{name}` in its strings.

use std::borrow::Cow;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use airtcp_link::Trace;
use serde::Deserialize;

use super::file::ScenarioFile;
use super::{Source, build};
use crate::{Scenario, SimError};

/// A scenario with placeholders: a table of a larger file, parsed once and filled in many times.
#[derive(Clone, Debug)]
pub struct Template<'s> {
    source: Source<'s>,
    table: Spanned<DeTable<'s>>,
}

impl<'s> Source<'s> {
    /// Returns the table `key` of the file as a scenario with placeholders. Settings are not
    /// applied.
    ///
    /// # Errors
    ///
    /// [`SimError::File`] if the text is not TOML or has no such table.
    pub fn template(&self, key: &str) -> Result<Template<'s>, SimError> {
        let document = DeTable::parse(self.text).map_err(|error| self.refuse_toml(&error))?;
        let document = document.into_inner();
        let table = document.into_iter().find(|(name, _)| name.get_ref() == key);
        let Some((_, table)) = table else {
            return Err(self.refuse(self.text.len(), &format!("the table `[{key}]` is missing")));
        };
        let span = table.span();
        let DeValue::Table(table) = table.into_inner() else {
            return Err(
                self.refuse(span.start, &format!("`{key}` is not a table: write `[{key}]`"))
            );
        };
        Ok(Template { source: *self, table: Spanned::new(span, table) })
    }
}

impl Template<'_> {
    /// Replaces each `{name}` in the strings by its value, and parses the scenario. Returns it
    /// together with its text as a file of its own, for [`Source::read`]: without comments, and
    /// with keys in alphabetical order.
    ///
    /// A string that consists of one placeholder becomes a number or a boolean if its value is one:
    /// `count = "{flows}"`.
    ///
    /// ```
    /// let text = r#"
    ///     [scenario]
    ///     wire = ["rate 10mbit delay 10ms loss {loss}%"]
    ///     flow = [{ strategies = "sack/reno", count = "{flows}" }]
    /// "#;
    /// let source = airtcp_sim::toml::Source { name: "loss.toml", text, settings: &[] };
    /// let template = source.template("scenario")?;
    /// let values = [("loss", "0.1"), ("flows", "3")].map(|(name, value)| (name.into(), value.into()));
    /// let (scenario, filled) = template.fill(&values, |_| Err("no traces here".into()))?;
    /// assert_eq!(scenario.flows[0].count, 3);
    /// assert!(filled.contains("count = 3"), "{filled}");
    /// # Ok::<(), airtcp_sim::SimError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SimError::File`] for the first invalid value, and for a placeholder without a value.
    pub fn fill(
        &self,
        values: &[(String, String)],
        mut load: impl FnMut(&str) -> Result<Trace, String>,
    ) -> Result<(Scenario, String), SimError> {
        let source = &self.source;
        let mut table = self.table.clone();
        table.get_mut().iter_mut().try_for_each(|(_, inner)| source.fill(inner, values))?;
        let text = source.text_of(table.clone())?;
        let file = ScenarioFile::deserialize(::toml::de::Deserializer::from(table));
        let file = file.map_err(|error| source.refuse_toml(&error))?;
        Ok((build::scenario(source, file, &mut load)?, text))
    }
}

impl Source<'_> {
    fn fill<'a>(
        &self,
        value: &mut Spanned<DeValue<'a>>,
        values: &'a [(String, String)],
    ) -> Result<(), SimError> {
        let begin = value.span().start;
        let raw = self.text.get(value.span()).unwrap_or_default();
        match value.get_mut() {
            DeValue::Table(table) => {
                table.iter_mut().try_for_each(|(_, inner)| self.fill(inner, values))
            }
            DeValue::Array(list) => list.iter_mut().try_for_each(|inner| self.fill(inner, values)),
            DeValue::String(text) => match filled(text, values) {
                Ok(Some(whole)) => {
                    *value.get_mut() = whole;
                    Ok(())
                }
                Ok(None) => Ok(()),
                Err(unknown) => {
                    let at = begin + raw.find(&format!("{{{unknown}}}")).unwrap_or(0);
                    let known: Vec<_> =
                        values.iter().map(|(name, _)| format!("`{{{name}}}`")).collect();
                    let what = match known.len() {
                        0 => format!("unknown placeholder `{{{unknown}}}`: no axis has that name"),
                        _ => format!(
                            "unknown placeholder `{{{unknown}}}`, expected one of {}",
                            known.join(", ")
                        ),
                    };
                    Err(self.refuse(at, &what))
                }
            },
            _ => Ok(()),
        }
    }
}

/// Replaces the placeholders of a string; returns `None` if it has none.
///
/// # Errors
///
/// The name of the first placeholder without a value.
fn filled<'a>(text: &str, values: &'a [(String, String)]) -> Result<Option<DeValue<'a>>, String> {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = placeholder(rest) {
        let Some((_, value)) = values.iter().find(|(known, _)| known == name) else {
            return Err(name.to_owned());
        };
        if before.len() + after.len() == 0 && written.is_empty() {
            return Ok(Some(whole(value)));
        }
        written.push_str(before);
        written.push_str(value);
        rest = after;
    }
    if rest.len() == text.len() {
        return Ok(None);
    }
    written.push_str(rest);
    Ok(Some(DeValue::String(Cow::Owned(written))))
}

/// Finds the first placeholder; returns its name with the text before and after it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// Parses a value that replaces a whole string: numbers and booleans keep their type.
fn whole(value: &str) -> DeValue<'_> {
    match DeValue::parse(value).map(Spanned::into_inner) {
        Ok(number @ (DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_))) => number,
        _ => DeValue::String(Cow::Borrowed(value)),
    }
}
