//! Times in milliseconds, exact to the nanosecond.
//!
//! A double represents nanoseconds exactly for only 104 days, so decimal digits are written and
//! parsed directly.

use std::time::Duration;

use airtcp_types::Instant;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

/// A time in milliseconds with up to six decimals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Millis(u128);

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self(duration.as_nanos())
    }
}

impl From<Instant> for Millis {
    fn from(at: Instant) -> Self {
        Self(u128::from(at.as_nanos()))
    }
}

impl Millis {
    pub(super) fn duration(self) -> Result<Duration, String> {
        let seconds = u64::try_from(self.0 / 1_000_000_000).map_err(|_| TOO_LONG.to_owned())?;
        Ok(Duration::new(seconds, (self.0 % 1_000_000_000) as u32))
    }

    pub(super) fn instant(self) -> Result<Instant, String> {
        u64::try_from(self.0).map(Instant::from_nanos).map_err(|_| TOO_LONG.to_owned())
    }

    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
            return None;
        }
        let nanos = fraction.parse::<u128>().ok()? * 10_u128.pow(6 - fraction.len() as u32);
        whole.parse::<u128>().ok()?.checked_mul(1_000_000)?.checked_add(nanos).map(Self)
    }
}

const TOO_LONG: &str = "a time that is too long";

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        RawValue::from_string(text).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let wrong = || de::Error::custom(format!("{} is no time in milliseconds", raw.get()));
        Self::parse(raw.get()).ok_or_else(wrong)
    }
}
