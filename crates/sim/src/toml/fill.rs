//! Scenarios with placeholders: a table of a larger file, with `{name}` in its texts.

use std::borrow::Cow;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use airtcp_link::Trace;
use serde::Deserialize;

use super::file::ScenarioFile;
use super::{Source, build};
use crate::{Scenario, SimError};

impl Source<'_> {
    /// Reads the scenario that the table `key` of the file holds, with values in the place of `{name}` in its texts.
    ///
    /// A text that is one placeholder and nothing else becomes a number or a truth value if the value is one:
    /// `count = "{flows}"`. Settings are not applied.
    ///
    /// ```
    /// let text = r#"
    ///     [scenario]
    ///     wire = ["rate 10mbit delay 10ms loss {loss}%"]
    ///     flow = [{ strategies = "sack/reno", count = "{flows}" }]
    /// "#;
    /// let source = airtcp_sim::toml::Source { name: "loss.toml", text, settings: &[] };
    /// let values = [("loss", "0.1"), ("flows", "3")].map(|(name, value)| (name.into(), value.into()));
    /// let scenario = source.read_filled("scenario", &values, |_| Err("no traces here".into()))?;
    /// assert_eq!(scenario.flows[0].count, 3);
    /// # Ok::<(), airtcp_sim::SimError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SimError::File`] for the first thing that is not understood, and for a placeholder without a value.
    pub fn read_filled(
        &self,
        key: &str,
        values: &[(String, String)],
        mut load: impl FnMut(&str) -> Result<Trace, String>,
    ) -> Result<Scenario, SimError> {
        let table = self.filled_table(key, values)?;
        let file = ScenarioFile::deserialize(::toml::de::Deserializer::from(table));
        build::scenario(self, file.map_err(|error| self.refuse_toml(&error))?, &mut load)
    }

    /// The text of that scenario as a file of its own, for [`read`](Self::read). Comments are lost.
    ///
    /// ```
    /// let text = "[scenario]\nflow = [{ strategies = \"sack/reno\", count = \"{flows}\" }]\n";
    /// let source = airtcp_sim::toml::Source { name: "flows.toml", text, settings: &[] };
    /// let filled = source.filled_text("scenario", &[("flows".into(), "3".into())])?;
    /// assert!(filled.contains("count = 3"), "{filled}");
    /// # Ok::<(), airtcp_sim::SimError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SimError::File`] for what is no TOML, and for a placeholder without a value.
    pub fn filled_text(&self, key: &str, values: &[(String, String)]) -> Result<String, SimError> {
        let table = self.filled_table(key, values)?;
        let table = ::toml::Table::deserialize(::toml::de::Deserializer::from(table));
        Ok(table.map_err(|error| self.refuse_toml(&error))?.to_string())
    }

    fn filled_table<'a>(
        &'a self,
        key: &str,
        values: &'a [(String, String)],
    ) -> Result<Spanned<DeTable<'a>>, SimError> {
        let document = DeTable::parse(self.text).map_err(|error| self.refuse_toml(&error))?;
        let document = document.into_inner();
        let table = document.into_iter().find(|(name, _)| name.get_ref() == key);
        let Some((_, mut table)) = table else {
            return Err(self.refuse(self.text.len(), &format!("the table `[{key}]` is missing")));
        };
        self.fill(&mut table, values)?;
        let span = table.span();
        let DeValue::Table(table) = table.into_inner() else {
            return Err(
                self.refuse(span.start, &format!("`{key}` is not a table: write `[{key}]`"))
            );
        };
        Ok(Spanned::new(span, table))
    }

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
                        values.iter().map(|(name, _)| format!("`{name}`")).collect();
                    let what = match known.len() {
                        0 => format!("unknown placeholder `{unknown}`: no axis has that name"),
                        _ => format!(
                            "unknown placeholder `{unknown}`, expected one of {}",
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

/// A text with its placeholders filled in, if it has any.
///
/// # Errors
///
/// The name of the first that has no value.
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

/// The first placeholder, with the text before it and behind it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// A value that takes the whole place of a text.
fn whole(value: &str) -> DeValue<'_> {
    match DeValue::parse(value).map(Spanned::into_inner) {
        Ok(number @ (DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_))) => number,
        _ => DeValue::String(Cow::Borrowed(value)),
    }
}
