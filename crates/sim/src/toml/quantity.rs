//! Values with units, parsed so that errors keep their position.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use airtcp_recovery::{Combination, Profile};
use airtcp_types::ByteCount;
use serde::de::{Deserializer, Error, Visitor};

use crate::{FlowDirection, Sender};

/// The longest time in a scenario: a million seconds.
const MAX_TIME: Duration = Duration::from_secs(1_000_000);
/// The largest size in a scenario: a tebibyte.
const MAX_SIZE: u64 = 1 << 40;
/// The maximum length of a value in an error.
const SHOWN: usize = 40;

const TIME_UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];
const SIZE_UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// A type that is parsed from a string.
pub(super) trait Word: Sized {
    /// The expected value, for errors.
    const EXPECTED: &'static str;

    /// Parses the string; `None` if it is invalid.
    fn read(text: &str) -> Option<Self>;

    /// Describes the error of an invalid string.
    fn explain(text: &str) -> String {
        let shown: String = text.chars().take(SHOWN).collect();
        format!("`{shown}`: expected {}", Self::EXPECTED)
    }
}

/// Parses a [`Word`], for serde's `deserialize_with`.
pub(super) fn word<'de, D: Deserializer<'de>, T: Word>(deserializer: D) -> Result<T, D::Error> {
    struct Words<T>(PhantomData<T>);

    impl<T: Word> Visitor<'_> for Words<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(T::EXPECTED)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::read(text).ok_or_else(|| E::custom(T::explain(text)))
        }
    }

    deserializer.deserialize_str(Words(PhantomData))
}

/// Parses an optional [`Word`].
pub(super) fn some_word<'de, D: Deserializer<'de>, T: Word>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    word(deserializer).map(Some)
}

/// Parses a whole number from `MIN` to `MAX`.
pub(super) fn whole<'de, D: Deserializer<'de>, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<u64, D::Error> {
    struct Whole<const MIN: u64, const MAX: u64>;

    impl<const MIN: u64, const MAX: u64> Visitor<'_> for Whole<MIN, MAX> {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number from {MIN} to {MAX}")
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
            if (MIN..=MAX).contains(&value) {
                Ok(value)
            } else {
                Err(E::custom(format_args!(
                    "`{value}`: expected a whole number from {MIN} to {MAX}"
                )))
            }
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
            match u64::try_from(value) {
                Ok(value) => self.visit_u64(value),
                Err(_) => Err(E::custom(format_args!(
                    "`{value}`: expected a whole number from {MIN} to {MAX}"
                ))),
            }
        }
    }

    deserializer.deserialize_u64(Whole::<MIN, MAX>)
}

/// Parses an optional whole number from `MIN` to `MAX`.
pub(super) fn some_whole<'de, D: Deserializer<'de>, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    whole::<D, MIN, MAX>(deserializer).map(Some)
}

impl Word for Duration {
    const EXPECTED: &'static str =
        "a time with its unit (h, min, s, ms, us or ns), such as \"5ms\"";

    fn read(text: &str) -> Option<Self> {
        with_unit(text, &TIME_UNITS, MAX_TIME.as_nanos() as u64).map(Self::from_nanos)
    }
}

/// A size above zero.
impl Word for ByteCount {
    const EXPECTED: &'static str =
        "a size over zero with its unit (B, kB, MB, GB, KiB, MiB or GiB), such as \"10MB\"";

    fn read(text: &str) -> Option<Self> {
        with_unit(text, &SIZE_UNITS, MAX_SIZE).filter(|bytes| *bytes > 0).map(Self)
    }
}

impl Word for FlowDirection {
    const EXPECTED: &'static str = "\"forth\" or \"back\"";

    fn read(text: &str) -> Option<Self> {
        match text {
            "forth" => Some(Self::LeftToRight),
            "back" => Some(Self::RightToLeft),
            _ => None,
        }
    }
}

impl Word for Profile {
    const EXPECTED: &'static str = "the name of a profile, such as \"modern\"";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn explain(text: &str) -> String {
        why(text.parse::<Self>())
    }
}

/// The name of a loss detection.
#[derive(Debug)]
pub(super) struct Detection(pub(super) String);

impl Word for Detection {
    const EXPECTED: &'static str = "a name from `airtcp names`, such as \"sack\"";

    fn read(text: &str) -> Option<Self> {
        Combination::from_parts(Some(text), None, None).ok().map(|_| Self(text.to_owned()))
    }

    fn explain(text: &str) -> String {
        why(Combination::from_parts(Some(text), None, None))
    }
}

/// The name of a congestion control.
#[derive(Debug)]
pub(super) struct Congestion(pub(super) String);

impl Word for Congestion {
    const EXPECTED: &'static str = "a name from `airtcp names`, such as \"cubic\"";

    fn read(text: &str) -> Option<Self> {
        Combination::from_parts(None, Some(text), None).ok().map(|_| Self(text.to_owned()))
    }

    fn explain(text: &str) -> String {
        why(Combination::from_parts(None, Some(text), None))
    }
}

/// The names of judges.
#[derive(Debug)]
pub(super) struct Judge(pub(super) String);

impl Word for Judge {
    const EXPECTED: &'static str = "names from `airtcp names`, joined by `+`";

    fn read(text: &str) -> Option<Self> {
        Combination::from_parts(None, None, Some(text)).ok().map(|_| Self(text.to_owned()))
    }

    fn explain(text: &str) -> String {
        why(Combination::from_parts(None, None, Some(text)))
    }
}

/// The three parts of TCP's strategies in one string, or another transport.
#[derive(Debug)]
pub(super) struct Strategies(pub(super) Sender);

impl Word for Strategies {
    const EXPECTED: &'static str = "`detection/control[/judge+judge]`, such as \"rack/cubic\"";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    fn explain(text: &str) -> String {
        why(text.parse::<Sender>())
    }
}

fn why<T, E: fmt::Display>(read: Result<T, E>) -> String {
    read.err().map(|error| error.to_string()).unwrap_or_default()
}

/// Parses a decimal number that is followed by a unit, with or without a space between them.
fn with_unit(text: &str, units: &[(&str, u64)], max: u64) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at_checked(end)?;
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = match digits.parse::<u64>() {
        Ok(whole) => whole.checked_mul(*factor)?,
        // The result is exact below 2^53 units; larger values exceed `max` or are whole.
        Err(_) => (digits.parse::<f64>().ok()? * *factor as f64).round() as u64,
    };
    (value <= max).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        let time = <Duration as Word>::read;
        assert_eq!(time("5ms"), Some(Duration::from_millis(5)));
        assert_eq!(time("1.5 s"), Some(Duration::from_millis(1_500)));
        assert_eq!(time("0s"), Some(Duration::ZERO));
        assert_eq!(time("2h"), Some(Duration::from_secs(7_200)));
        for bad in
            ["", "5", "s", "-5s", "5 m", "5mS", "1e3s", "1..5s", ".s", "5s ", "5ss", "277778h"]
        {
            assert_eq!(time(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_decimal_or_binary_as_they_say() {
        let size = |text| <ByteCount as Word>::read(text).map(|bytes| bytes.0);
        assert_eq!(size("10MB"), Some(10_000_000));
        assert_eq!(size("64KiB"), Some(65_536));
        assert_eq!(size("1.5kB"), Some(1_500));
        for bad in ["10", "0B", "10mb", "10Mbit", "99999999999999999999B"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }
}
