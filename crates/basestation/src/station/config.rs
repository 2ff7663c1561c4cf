//! Configuration of a base station.

use std::collections::BTreeSet;
use std::net::IpAddr;
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
    /// Third and later duplicate ACKs are delayed, and dropped if the radio repairs the loss in
    /// time (Vaidya et al. 2002), for comparison.
    DelayedDupack,
}

impl Policy {
    /// Returns the name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::TcpEcn => "tcp-ecn",
            Self::Snoop => "snoop",
            Self::DelayedDupack => "delayed-dupack",
        }
    }

    /// Whether it relies on link-layer retransmission.
    pub(super) const fn needs_repair(self) -> bool {
        matches!(self, Self::TcpEcn | Self::DelayedDupack)
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
    /// The maximum number of flows, in equal shares for the mobiles. If a mobile has more, its
    /// least recently used one is removed.
    pub flows: usize,
    /// The maximum number of flows in which the mobile has not acknowledged anything, in equal
    /// shares; most of them are SYNs.
    pub unproven: usize,
    /// The maximum memory of packets that are held while mobiles are out of reach, in equal shares.
    pub hold: ByteCount,
    /// The maximum number of packets that are held for each mobile; if `None`, only their memory is
    /// limited.
    pub hold_packets: Option<usize>,
    /// How long the mobile may be out of reach before its flows are released.
    #[serde(with = "seconds")]
    pub absence: Duration,
    /// The networks of the mobiles: packets from the wireless side with other sources are dropped.
    /// If empty, all sources are accepted.
    pub mobiles: Vec<Prefix>,
    /// The mobiles that are known by name. Each has its own queue, reach, limits and counters. All
    /// addresses of no known mobile are treated as those of one mobile.
    pub mobile: Vec<MobileConfig>,
    /// The maximum number of mobiles that become known because the station receives a packet from
    /// an unknown address.
    pub heard: usize,
    /// The maximum size of the cache of the policy `snoop`, and of the ACKs that `delayed-dupack`
    /// delays, in equal shares.
    pub cache: ByteCount,
    /// How long the policy `delayed-dupack` delays duplicate ACKs.
    #[serde(with = "seconds")]
    pub dupack_delay: Duration,
}

/// A mobile that is known by name.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MobileConfig {
    /// The name, of letters, digits and `.-_`.
    pub name: String,
    /// The addresses: networks, or single addresses.
    #[serde(deserialize_with = "addresses")]
    pub addresses: Vec<Prefix>,
    /// The words of the radio's description that differ for this mobile.
    #[serde(default)]
    pub radio: String,
    /// The maximum memory of packets that are held for it, in place of an equal share.
    #[serde(default)]
    pub hold: Option<ByteCount>,
    /// The maximum number of packets that are held for it, in place of the station's setting.
    #[serde(default)]
    pub hold_packets: Option<usize>,
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
            hold_packets: None,
            // About as long as Linux retransmits before it aborts a connection (tcp_retries2).
            absence: Duration::from_secs(15 * 60),
            mobiles: Vec::new(),
            mobile: Vec::new(),
            heard: 0,
            cache: ByteCount::from_mib(4),
            // As long as a mark-aware receiver withholds them, and below Linux's minimum RTO.
            dupack_delay: Duration::from_millis(150),
        }
    }
}

/// The name that stands for all mobiles without a name.
pub const UNNAMED: &str = "others";
/// The maximum delay of duplicate ACKs.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The maximum length of a mobile's name.
const LONGEST_NAME: usize = 64;
/// The maximum number of known mobiles: their numbers have 16 bits.
const MOST_MOBILES: usize = u16::MAX as usize - 1;

/// An invalid combination of settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StationError {
    /// The policy would drop or delay duplicate ACKs although no link-layer retransmission repairs
    /// the loss.
    #[error(
        "policy {} hides duplicate ACKs that link retransmission answers: it needs arq mac, mac+link or head", .0.name()
    )]
    NothingRepairs(Policy),
    /// The mark has no bit, or bits outside its four.
    #[error("mark-bits {0:#04x} is none of the four bits after the data offset: 0x08 is the first")]
    MarkBits(u8),
    /// A limit is 0.
    #[error("{0} is 0: expected 1 or more")]
    Zero(&'static str),
    /// Duplicate ACKs would be delayed for longer than any sender waits.
    #[error("dupack-delay is {} s: expected at most 60", .0.as_secs_f64())]
    DupackDelay(Duration),
    /// There are more mobiles than numbers.
    #[error("{0} known mobiles: expected at most 65534, those of `heard` included")]
    TooManyMobiles(usize),
    /// The settings of a mobile are invalid.
    #[error("mobile `{name}`: {what}")]
    Mobile {
        /// Its name.
        name: String,
        /// The mistake.
        what: String,
    },
}

impl StationConfig {
    /// Checks whether the settings are valid and compatible.
    ///
    /// # Errors
    ///
    /// The first invalid setting or combination.
    pub fn check(&self) -> Result<(), StationError> {
        if self.policy.needs_repair() && self.arq == Arq::Off {
            return Err(StationError::NothingRepairs(self.policy));
        }
        if !(0x01..=0x0f).contains(&self.mark_bits) {
            return Err(StationError::MarkBits(self.mark_bits));
        }
        let hold_packets = self.hold_packets.unwrap_or(1);
        for (name, count) in
            [("flows", self.flows), ("unproven", self.unproven), ("hold-packets", hold_packets)]
        {
            if count == 0 {
                return Err(StationError::Zero(name));
            }
        }
        if self.dupack_delay > LONGEST_DELAY {
            return Err(StationError::DupackDelay(self.dupack_delay));
        }
        let count = self.mobile.len().saturating_add(self.heard);
        if count > MOST_MOBILES {
            return Err(StationError::TooManyMobiles(count));
        }
        self.check_mobiles()
    }

    fn check_mobiles(&self) -> Result<(), StationError> {
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for mobile in &self.mobile {
            let name = mobile.name.clone();
            let wrong = |what: &str| {
                let name = name.chars().take(LONGEST_NAME).flat_map(char::escape_debug).collect();
                Err(StationError::Mobile { name, what: what.to_owned() })
            };
            let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_part) {
                return wrong("a name has 1 to 64 letters, digits and `.-_`");
            }
            if name.parse::<IpAddr>().is_ok() || name == UNNAMED {
                return wrong("choose a name that is no address and not `others`");
            }
            if !names.insert(name.clone()) {
                return wrong("two mobiles have this name");
            }
            if mobile.addresses.is_empty() {
                return wrong("list its addresses, for example addresses = [\"192.0.2.7\"]");
            }
            for network in &mobile.addresses {
                if !addresses.insert(network.to_string()) {
                    return wrong(&format!("{network} is listed twice"));
                }
            }
            if mobile.hold_packets == Some(0) {
                return wrong("hold-packets is 0: expected 1 or more");
            }
            if let Err(error) = self.radio.of_mobile(&mobile.radio) {
                return wrong(&format!("radio: {error}"));
            }
        }
        Ok(())
    }

    /// Returns the number of equal shares of a limit: those of the known mobiles, and one of all
    /// others.
    pub(super) fn shares(&self) -> usize {
        1 + self.mobile.len() + self.heard
    }
}

/// Deserializes a list of texts, each with a network or a single address.
///
/// # Errors
///
/// A text is neither.
pub fn addresses<'de, D>(deserializer: D) -> Result<Vec<Prefix>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let texts: Vec<String> = serde::Deserialize::deserialize(deserializer)?;
    let networks = texts.iter().map(|text| Prefix::host_or_network(text));
    networks.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
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
        assert_eq!(off.check(), Err(StationError::NothingRepairs(Policy::TcpEcn)));
        let delayed = StationConfig { policy: Policy::DelayedDupack, ..off.clone() };
        let error = delayed.check().unwrap_err().to_string();
        assert!(error.starts_with("policy delayed-dupack hides duplicate ACKs"), "{error}");
        assert_eq!(StationConfig { policy: Policy::Plain, ..off }.check(), Ok(()));
        let bits = StationConfig { mark_bits: 0x10, ..config.clone() };
        assert_eq!(bits.check(), Err(StationError::MarkBits(0x10)));
        let dupack_delay = Duration::from_millis(60_001);
        let error = StationConfig { dupack_delay, ..config.clone() }.check().unwrap_err();
        assert_eq!(error.to_string(), "dupack-delay is 60.001 s: expected at most 60");
        let none = StationConfig { flows: 0, ..config };
        assert_eq!(none.check(), Err(StationError::Zero("flows")));
    }

    #[test]
    fn mobiles_that_are_not_distinct_or_have_no_addresses_are_refused() {
        let config = |mobiles: &str| {
            let json = format!(r#"{{"mobile": [{mobiles}]}}"#);
            serde_json::from_str::<StationConfig>(&json).unwrap()
        };
        let good = r#"{"name": "car.1", "addresses": ["192.0.2.7", "2001:db8::/64"],
            "radio": "error 5%"}"#;
        assert_eq!((config(good).check(), config(good).shares()), (Ok(()), 2));
        let again = serde_json::to_string(&config(good)).unwrap();
        assert_eq!(serde_json::from_str::<StationConfig>(&again).unwrap(), config(good));
        for (mobiles, what) in [
            (r#"{"name": "", "addresses": ["::1"]}"#, "a name has 1 to 64 letters"),
            (r#"{"name": "a b", "addresses": ["::1"]}"#, "a name has 1 to 64 letters"),
            (r#"{"name": "192.0.2.1", "addresses": ["::1"]}"#, "a name that is no address"),
            (r#"{"name": "others", "addresses": ["::1"]}"#, "not `others`"),
            (r#"{"name": "a", "addresses": []}"#, "list its addresses"),
            (r#"{"name": "a", "addresses": ["::1"], "hold-packets": 0}"#, "expected 1 or more"),
            (r#"{"name": "a", "addresses": ["::1"], "radio": "rate 1mbit"}"#, "at byte 0, `rate`"),
            (
                r#"{"name": "a", "addresses": ["::1"]}, {"name": "a", "addresses": ["::2"]}"#,
                "two mobiles have this name",
            ),
            (
                r#"{"name": "a", "addresses": ["::1"]}, {"name": "b", "addresses": ["::1/128"]}"#,
                "::1/128 is listed twice",
            ),
        ] {
            let error = config(mobiles).check().unwrap_err().to_string();
            assert!(error.starts_with("mobile `") && error.contains(what), "{error}");
        }
        let many = StationConfig { heard: 65_536, ..StationConfig::default() };
        assert_eq!(many.check(), Err(StationError::TooManyMobiles(65_536)));
    }
}
