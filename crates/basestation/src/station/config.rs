//! Settings of a base station.

use std::time::Duration;

use airtcp_link::{Arq, RadioSpec};
use airtcp_types::ByteCount;
use airtcp_types::mark::TCP_ECN_MARK;

use super::Prefix;
use super::marker::Mark;

/// What the base station makes of the flows that pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Nothing: it knows no flow.
    #[default]
    Plain,
    /// Marks, filtered duplicate ACKs and freezing (TCP-ECN).
    TcpEcn,
    /// Copies of what the mobile has not acknowledged, sent again from here (Snoop); to compare
    /// with.
    Snoop,
}

impl Policy {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::TcpEcn => "tcp-ecn",
            Self::Snoop => "snoop",
        }
    }
}

/// The settings of a [`Station`](super::Station), by the names that the command line has.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StationConfig {
    /// The radio, in words.
    #[serde(with = "text")]
    pub radio: RadioSpec,
    /// What is done about lost frames.
    #[serde(with = "text")]
    pub arq: Arq,
    /// What is made of flows.
    pub policy: Policy,
    /// Which marks are given.
    pub mark: Mark,
    /// The bits of the paper's mark in the byte that has the data offset, `0x01..=0x0f`.
    pub mark_bits: u8,
    /// Flows that are known at a time; of those above it the one used least recently is forgotten.
    pub flows: usize,
    /// Flows known at a time that the mobile has not acknowledged anything of: SYNs, for the most
    /// part.
    pub unproven: usize,
    /// Bytes that held packets take while the mobile is gone.
    pub hold: ByteCount,
    /// How long the mobile may be gone before its flows are let go.
    #[serde(with = "seconds")]
    pub absence: Duration,
    /// The networks of the mobiles: what comes from the wireless side with another source is
    /// dropped. If there are none any source passes.
    pub mobiles: Vec<Prefix>,
    /// Bytes of packets that the policy `snoop` keeps copies of.
    pub cache: ByteCount,
}

impl Default for StationConfig {
    fn default() -> Self {
        Self {
            radio: RadioSpec::default(),
            arq: Arq::default(),
            policy: Policy::default(),
            mark: Mark::default(),
            mark_bits: TCP_ECN_MARK,
            flows: 65_536,
            unproven: 4_096,
            hold: ByteCount::from_mib(4),
            // About as long as Linux retransmits before it gives a connection up (tcp_retries2).
            absence: Duration::from_secs(15 * 60),
            mobiles: Vec::new(),
            cache: ByteCount::from_mib(4),
        }
    }
}

/// Settings that contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StationError {
    /// Nobody would repair what the filter hides.
    #[error(
        "policy tcp-ecn hides duplicate ACKs that link retransmission answers: it needs arq mac, mac+link or head"
    )]
    NothingRepairs,
    /// A mark of no bit, or outside its four bits.
    #[error("mark-bits {0:#04x} is none of the four bits after the data offset: 0x08 is the first")]
    MarkBits(u8),
    /// A table without room.
    #[error("{0} is 0: expected 1 or more")]
    NoFlows(&'static str),
}

impl StationConfig {
    /// Whether the settings fit together.
    ///
    /// # Errors
    ///
    /// The first that do not.
    pub fn check(&self) -> Result<(), StationError> {
        if self.policy == Policy::TcpEcn && self.arq == Arq::Off {
            return Err(StationError::NothingRepairs);
        }
        if !(0x01..=0x0f).contains(&self.mark_bits) {
            return Err(StationError::MarkBits(self.mark_bits));
        }
        for (name, count) in [("flows", self.flows), ("unproven", self.unproven)] {
            if count == 0 {
                return Err(StationError::NoFlows(name));
            }
        }
        Ok(())
    }
}

/// Values that are written as they are on the command line.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Times as a number of seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_by_their_names_and_written_again() {
        let json = r#"{"radio": "error 20%", "arq": "mac+link", "policy": "tcp-ecn", "mark": "ce", "absence": 2.5,
                "mobiles": ["192.0.2.0/24", "2001:db8::/64"]}"#;
        let config: StationConfig = serde_json::from_str(json).unwrap();
        assert_eq!((config.arq, config.policy), (Arq::MacLink, Policy::TcpEcn));
        assert_eq!((config.mark, config.flows), (Mark::Ce, 65_536));
        assert_eq!((config.absence, config.mobiles.len()), (Duration::from_millis(2_500), 2));
        let again = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<StationConfig>(&again).unwrap(), config);
        let error = serde_json::from_str::<StationConfig>(r#"{"arq": "some"}"#).unwrap_err();
        assert!(error.to_string().starts_with("`some` is no ARQ mode"), "{error}");
        for wrong in [r#"{"radoi": ""}"#, r#"{"absence": -1.0}"#, r#"{"mobiles": ["10.0.0.1"]}"#] {
            assert!(serde_json::from_str::<StationConfig>(wrong).is_err());
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let config = StationConfig { policy: Policy::TcpEcn, ..StationConfig::default() };
        assert_eq!(config.check(), Ok(()));
        let off = StationConfig { arq: Arq::Off, ..config.clone() };
        assert_eq!(off.check(), Err(StationError::NothingRepairs));
        assert_eq!(StationConfig { policy: Policy::Plain, ..off }.check(), Ok(()));
        let bits = StationConfig { mark_bits: 0x10, ..config.clone() };
        assert_eq!(bits.check(), Err(StationError::MarkBits(0x10)));
        let none = StationConfig { flows: 0, ..config };
        assert_eq!(none.check(), Err(StationError::NoFlows("flows")));
    }
}
