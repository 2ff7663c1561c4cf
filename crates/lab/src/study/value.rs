//! Values of axes and of records.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Fields;

/// A value of an axis, or of a field in a record.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Value {
    /// A whole number.
    Whole(u64),
    /// Any other number.
    Real(f64),
    /// A Boolean.
    Flag(bool),
    /// A text.
    Text(String),
    /// Numbers, such as one for each flow.
    List(Vec<f64>),
    /// Counts, such as one for each bin.
    Counts(Vec<u64>),
    /// Fields that belong together.
    Group(Fields),
    /// Nothing was measured.
    Missing,
}

impl Value {
    /// Parses a number, `true` or `false`; any other text stays a text.
    pub(crate) fn of_text(text: &str) -> Self {
        let whole = || text.parse().ok().map(Self::Whole);
        let real = || text.parse().ok().filter(|real: &f64| real.is_finite()).map(Self::Real);
        let flag = || text.parse().ok().map(Self::Flag);
        whole().or_else(real).or_else(flag).unwrap_or_else(|| text.into())
    }

    /// Reads a value of a record. Numbers are those that were written, bit for bit; what is not
    /// finite was written as `null`.
    ///
    /// # Errors
    ///
    /// The text is an object, or a list of other things than numbers.
    pub(super) fn of_json(text: &str) -> serde_json::Result<Self> {
        if text.starts_with('[') {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text)?;
            let counts = items.iter().map(|item| item.get().parse().ok()).collect();
            return match counts {
                Some(counts) if !items.is_empty() => Ok(Self::Counts(counts)),
                _ => items
                    .iter()
                    .map(|item| Self::real(item.get()))
                    .collect::<Result<_, _>>()
                    .map(Self::List),
            };
        }
        Ok(match text {
            "null" => Self::Missing,
            _ if text.starts_with(['"', '{']) => Self::Text(serde_json::from_str(text)?),
            _ => Self::of_text(text),
        })
    }

    fn real(text: &str) -> serde_json::Result<f64> {
        let refuse = |_| serde_json::Error::custom(format!("`{text}`: expected a number"));
        if text == "null" { Ok(f64::NAN) } else { text.parse().map_err(refuse) }
    }

    /// Returns a text that is the same for equal values only.
    pub(crate) fn key(&self) -> String {
        // Adding 0.0 turns -0.0 into 0.0.
        self.number().map_or_else(|| format!("{self:?}"), |number| (number + 0.0).to_string())
    }

    /// Returns the number, if it is one; for a list, its sum.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(whole) => Some(*whole as f64),
            Self::Real(real) => Some(*real),
            Self::List(list) => Some(list.iter().sum()),
            _ => None,
        }
    }
}

/// Numbers are equal if their values are: `1` equals `1.0`.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Flag(one), Self::Flag(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Counts(one), Self::Counts(other)) => one == other,
            (Self::Group(one), Self::Group(other)) => one == other,
            (Self::Missing, Self::Missing) => true,
            _ => self.number().is_some() && self.number() == other.number(),
        }
    }
}

/// The text for tables and placeholders.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => whole.fmt(f),
            Self::Real(real) => real.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::List(list) => write!(f, "{list:?}"),
            Self::Counts(counts) => write!(f, "{counts:?}"),
            Self::Group(fields) => write!(f, "{fields:?}"),
            Self::Missing => f.write_str("-"),
        }
    }
}

impl From<u64> for Value {
    fn from(whole: u64) -> Self {
        Self::Whole(whole)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u32> for Value {
    fn from(whole: u32) -> Self {
        Self::Whole(whole.into())
    }
}

impl From<usize> for Value {
    fn from(whole: usize) -> Self {
        Self::Whole(whole as u64)
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<f64>> for Value {
    fn from(list: Vec<f64>) -> Self {
        Self::List(list)
    }
}

impl From<Vec<u64>> for Value {
    fn from(counts: Vec<u64>) -> Self {
        Self::Counts(counts)
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Group(fields)
    }
}

impl From<Option<f64>> for Value {
    fn from(real: Option<f64>) -> Self {
        real.map_or(Self::Missing, Self::Real)
    }
}

impl From<Option<u64>> for Value {
    fn from(whole: Option<u64>) -> Self {
        whole.map_or(Self::Missing, Self::Whole)
    }
}

/// Written by hand, because the error of a derived untagged enum does not say what is expected.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;

        impl Visitor<'_> for Scalar {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true or false")
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Flag(flag))
            }

            fn visit_u64<E: Error>(self, whole: u64) -> Result<Value, E> {
                Ok(Value::Whole(whole))
            }

            fn visit_i64<E: Error>(self, whole: i64) -> Result<Value, E> {
                Ok(u64::try_from(whole).map_or(Value::Real(whole as f64), Value::Whole))
            }

            fn visit_f64<E: Error>(self, real: f64) -> Result<Value, E> {
                Ok(Value::Real(real))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_any(Scalar)
    }
}
