//! Reads configuration files in TOML, whose keys are the flags of a command.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use airtcp_types::ByteCount;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::output::{self, Mistake};
use crate::{file, live, value};

/// The maximum size of a configuration file, in bytes.
const LONGEST: u64 = 1 << 20;

/// A setting or the settings of a command, which may be given in two places.
pub(crate) trait Merge {
    /// Returns these settings, with missing ones from `other`.
    fn or(self, other: Self) -> Self;
}

impl<T> Merge for Option<T> {
    fn or(self, other: Self) -> Self {
        Self::or(self, other)
    }
}

impl<T> Merge for Vec<T> {
    fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

impl Merge for bool {
    fn or(self, other: Self) -> Self {
        self || other
    }
}

/// Implements [`Merge`] for a struct: merges each of the fields, which must all be listed.
macro_rules! merge {
    ($settings:ident: $($field:ident),+ $(,)?) => {
        impl $crate::settings::Merge for $settings {
            fn or(self, other: Self) -> Self {
                Self { $($field: $crate::settings::Merge::or(self.$field, other.$field)),+ }
            }
        }
    };
}

pub(crate) use merge;

/// Reads the configuration file of `--config`; without that flag, returns no settings.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_if_given<T: DeserializeOwned + Default>(
    config: Option<&Path>,
) -> anyhow::Result<T> {
    config.map_or_else(|| Ok(T::default()), read)
}

/// Reads a configuration file.
///
/// # Errors
/// The file cannot be read, or is wrong; the text has the position and the mistake.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let name = path.display();
    let text = file::read(path, LONGEST).map_err(|error| {
        let advice = "give --config a TOML file, whose keys are the flags of the command";
        output::if_missing(error.context(name.to_string()), advice)
    })?;
    toml::from_str(&text).map_err(|error| {
        let mistake = file::mistake(&text, &error);
        let is_text = mistake.contains("expected a string");
        let hint = error.span().and_then(|span| as_text(&text, span.start, is_text));
        let hint = hint.map_or(String::new(), |line| format!("; write {line}"));
        Mistake::new(format!("{name}{}{hint}", plain(&mistake))).into()
    })
}

/// Rewords a mistake: serde names Rust types, not those of TOML.
pub(crate) fn plain(mistake: &str) -> String {
    let words = [
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("missing field", "missing key"),
        ("duplicate field", "duplicate key"),
        ("expected a string", "expected a text in quotes"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected a table"),
        ("expected struct InterceptSettings", "expected a table"),
        ("expected u8", "expected a whole number"),
        ("expected u16", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected i64", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("invalid type: ", "this is "),
        ("sequence,", "a list,"),
        ("map,", "a table,"),
    ];
    words.iter().fold(mistake.to_owned(), |text, (serde, toml)| text.replacen(serde, toml, 1))
}

/// Returns the line at `place` with its value as a quoted string, if the value is bare and either a
/// word or `is_text`.
fn as_text(text: &str, place: usize, is_text: bool) -> Option<String> {
    let begin = text.get(..place)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(begin..)?.lines().next()?;
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next()?.trim();
    let is_word =
        value.starts_with(|c: char| c.is_ascii_alphabetic()) && !["true", "false"].contains(&value);
    let is_bare = !value.is_empty() && !value.contains(['"', '\'', '[', '{']);
    // A password must not be logged.
    let is_secret = key.trim() == "login";
    (is_bare && !is_secret && (is_word || is_text)).then(|| format!("{} = \"{value}\"", key.trim()))
}

/// Parses a value that is a string.
pub(crate) fn text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    read(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

/// Parses a value with the `FromStr` of its type.
pub(crate) fn written<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    text(deserializer, value::parsed)
}

/// Parses a list of values with the `FromStr` of their type.
pub(crate) fn each_written<'de, T, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    let values = texts.iter().map(|text| value::parsed(text)).collect::<Result<_, _>>();
    values.map(Some).map_err(D::Error::custom)
}

/// Parses the name of a TUN device.
pub(crate) fn device<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, value::tun)
}

/// Parses an address and a port.
pub(crate) fn socket<'de, D>(deserializer: D) -> Result<Option<SocketAddr>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, value::socket)
}

/// Parses the address of a live page.
pub(crate) fn live<'de, D>(deserializer: D) -> Result<Option<SocketAddr>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, live::address)
}

/// Parses a number of seconds.
pub(crate) fn seconds<'de, D>(deserializer: D) -> Result<Option<Duration>, D::Error>
where
    D: Deserializer<'de>,
{
    value::seconds(&f64::deserialize(deserializer)?.to_string()).map(Some).map_err(D::Error::custom)
}

/// Parses a number of bytes, which may have a unit.
pub(crate) fn size<'de, D>(deserializer: D) -> Result<Option<ByteCount>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, value::size)
}
