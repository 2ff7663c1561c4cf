//! Configuration of a base station.

use std::time::Duration;

use airtcp_link::{Arq, RadioSpec};
use airtcp_types::ByteCount;
use airtcp_types::mark::TCP_ECN_MARK;

use super::Prefix;
use super::marker::Mark;

/// What the base station does for the flows that pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Nothing: flows are not tracked.
    #[default]
    Plain,
    /// Marks, filtered duplicate ACKs and freezing (TCP-ECN).
    TcpEcn,
    /// Local retransmission of cached segments (Snoop), for comparison.
    Snoop,
}

impl Policy {
    /// Returns the name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::TcpEcn => "tcp-ecn",
            Self::Snoop => "snoop",
        }
    }
}

/// The configuration of a [`Station`](super::Station). The names are those of the command line.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StationConfig {
    /// The description of the radio.
    #[serde(with = "text")]
    pub radio: RadioSpec,
    /// The link-layer retransmission.
    #[serde(with = "text")]
    pub arq: Arq,
    /// The policy.
    pub policy: Policy,
    /// The marks that the station sets.
    pub mark: Mark,
    /// The bits of the paper's mark, in the byte of the TCP header with the data offset,
    /// `0x01..=0x0f`.
    pub mark_bits: u8,
    /// The maximum number of flows. If there are more, the least recently used one is removed.
    pub flows: usize,
    /// The maximum number of flows in which the mobile has not acknowledged anything; most of them
    /// are SYNs.
    pub unproven: usize,
    /// The maximum memory of packets that are held while the mobile is out of reach.
    pub hold: ByteCount,
    /// How long the mobile may be out of reach before its flows are released.
    #[serde(with = "seconds")]
    pub absence: Duration,
    /// The networks of the mobiles: packets from the wireless side with other sources are dropped.
    /// If empty, all sources are accepted.
    pub mobiles: Vec<Prefix>,
    /// The maximum size of the cache of the policy `snoop`.
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
            // About as long as Linux retransmits before it aborts a connection (tcp_retries2).
            absence: Duration::from_secs(15 * 60),
            mobiles: Vec::new(),
            cache: ByteCount::from_mib(4),
        }
    }
}

/// An invalid combination of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StationError {
    /// The filter would drop duplicate ACKs although no link-layer retransmission repairs the loss.
    #[error(
        "policy tcp-ecn hides duplicate ACKs that link retransmission answers: it needs arq mac, mac+link or head"
    )]
    NothingRepairs,
    /// The mark has no bit, or bits outside its four.
    #[error("mark-bits {0:#04x} is none of the four bits after the data offset: 0x08 is the first")]
    MarkBits(u8),
    /// A flow table has no entries.
    #[error("{0} is 0: expected 1 or more")]
    NoFlows(&'static str),
}

impl StationConfig {
    /// Checks whether the settings are valid and compatible.
    ///
    /// # Errors
    ///
    /// The first invalid setting or combination.
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

/// Values in the syntax of the command line.
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

/// Times in seconds.
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
