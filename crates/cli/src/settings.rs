//! Files of settings in TOML, whose keys are those of a command's flags.

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

/// The longest file of settings.
const LONGEST: u64 = 1 << 20;

/// Reads a file.
///
/// # Errors
/// It cannot be read, or a place in it and what is wrong there.
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

/// A mistake in the words of TOML: serde's are of Rust.
fn plain(mistake: &str) -> String {
    let words = [
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
        ("duplicate field", "duplicate key"),
        ("expected a string", "expected a text in quotes"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected a table"),
        ("expected struct InterceptSettings", "expected a table"),
        ("expected u16", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected i64", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("invalid type: ", "this is "),
        ("sequence,", "a list,"),
        ("map,", "a table,"),
    ];
    words.iter().fold(mistake.to_owned(), |text, (serde, toml)| text.replacen(serde, toml, 1))
}

/// The line of a file at a place with its value as a text, if that is a bare word or `is_text`, and
/// bare.
fn as_text(text: &str, place: usize, is_text: bool) -> Option<String> {
    let begin = text.get(..place)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(begin..)?.lines().next()?;
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next()?.trim();
    let is_word =
        value.starts_with(|c: char| c.is_ascii_alphabetic()) && !["true", "false"].contains(&value);
    let is_bare = !value.is_empty() && !value.contains(['"', '\'', '[', '{']);
    // A password goes to no log.
    let is_secret = key.trim() == "login";
    (is_bare && !is_secret && (is_word || is_text)).then(|| format!("{} = \"{value}\"", key.trim()))
}

/// A value that is a text.
pub(crate) fn text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    read(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

/// A value in the words that its type reads.
pub(crate) fn written<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    text(deserializer, value::parsed)
}

/// A list of values in the words that their type reads.
pub(crate) fn each_written<'de, T, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    let values = texts.iter().map(|text| value::parsed(text)).collect::<Result<_, _>>();
    values.map(Some).map_err(D::Error::custom)
}

/// An address and a port.
pub(crate) fn socket<'de, D>(deserializer: D) -> Result<Option<SocketAddr>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, value::socket)
}

/// The address of a live page.
pub(crate) fn live<'de, D>(deserializer: D) -> Result<Option<SocketAddr>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, live::address)
}

/// A number of seconds.
pub(crate) fn seconds<'de, D>(deserializer: D) -> Result<Option<Duration>, D::Error>
where
    D: Deserializer<'de>,
{
    value::seconds(&f64::deserialize(deserializer)?.to_string()).map(Some).map_err(D::Error::custom)
}

/// A number of bytes, which may have a unit.
pub(crate) fn size<'de, D>(deserializer: D) -> Result<Option<ByteCount>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, value::size)
}
