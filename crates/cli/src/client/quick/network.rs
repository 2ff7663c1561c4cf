//! Parses the description of a network for RRTP: a name, or a file.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use airtcp_rrtp::{Config, NetworkKind, NetworkProfile};
use airtcp_types::Rate;
use hyper::header::HeaderValue;
use serde::Deserialize;

use crate::file;

/// The maximum size of a network file, in bytes.
const LONGEST: u64 = 1 << 16;

/// The kinds of a network, as written in the header field.
const KINDS: [(&str, NetworkKind); 2] =
    [("general", NetworkKind::General), ("wireless-last-hop", NetworkKind::WirelessLastHop)];

/// Properties of a network, as far as the user knows them. Unknown ones are `None`.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Network {
    kind: NetworkKind,
    /// Of IP packets.
    send_rate_bits_per_second: Option<u64>,
    round_trip_time_ms: Option<f64>,
    /// 0 to 1.
    loss_rate: Option<f64>,
}

/// Networks by name: the thesis's environments (Table 4.3), `edge` as the link of that name in
/// `airtcp names`, and `evdo`, with values chosen here.
const NAMES: [(&str, Network); 6] = {
    use NetworkKind::{General, WirelessLastHop};
    [
        ("cdma-1x", Network::of(WirelessLastHop, 144_000, 150.0, 0.01)),
        ("evdo", Network::of(WirelessLastHop, 1_000_000, 150.0, 0.005)),
        ("edge", Network::of(WirelessLastHop, 240_000, 840.0, 0.0)),
        ("satellite", Network::of(WirelessLastHop, 20_000, 600.0, 0.01)),
        ("lan", Network::of(General, 100_000_000, 2.0, 0.001)),
        ("wlan", Network::of(General, 11_000_000, 10.0, 0.01)),
    ]
};

impl Network {
    const fn of(kind: NetworkKind, rate: u64, rtt: f64, loss: f64) -> Self {
        Self {
            kind,
            send_rate_bits_per_second: Some(rate),
            round_trip_time_ms: Some(rtt),
            loss_rate: Some(loss),
        }
    }

    /// Reads the description of a network from a file.
    ///
    /// # Errors
    /// The text to print after the name of the file.
    fn read(path: &Path) -> Result<Self, String> {
        let text = file::read(path, LONGEST).map_err(|error| format!(": {error:#}"))?;
        let network: Self = toml::from_str(&text).map_err(|error| file::mistake(&text, &error))?;
        match network.is_sound() {
            true => Ok(network),
            false => {
                Err(": a rate must be at least 1 bit/s, a round-trip time 0.001 to 60000 ms, and a loss \
                          rate 0 to 1"
                    .to_owned())
            }
        }
    }

    fn is_sound(&self) -> bool {
        self.send_rate_bits_per_second != Some(0)
            && self.round_trip_time_ms.is_none_or(|ms| (0.001..=60_000.0).contains(&ms))
            && self.loss_rate.is_none_or(|share| (0.0..1.0).contains(&share))
    }

    /// Returns the settings of a connection over this network.
    pub(super) fn config(network: Option<Self>) -> Config {
        let Some(network) = network else { return Config::default() };
        let (kind, profile) = network.settings();
        Config { kind, profile, ..Config::default() }
    }

    /// Returns the kind and the profile for RRTP.
    pub(super) fn settings(&self) -> (NetworkKind, NetworkProfile) {
        let profile = NetworkProfile {
            send_rate: self.send_rate_bits_per_second.map(Rate::from_bits_per_sec),
            round_trip_time: self.round_trip_time_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
            loss_rate: self.loss_rate,
        };
        (self.kind, profile)
    }

    /// Returns the header field that describes the network to the server, whose sender uses it:
    /// `KIND;rate=BITS;rtt=MS;loss=SHARE`, an item of RFC 9651 (section 3.3).
    pub(super) fn field(&self) -> Option<HeaderValue> {
        let mut text = KINDS.iter().find(|(_, kind)| *kind == self.kind)?.0.to_owned();
        let numbers = [
            ("rate", self.send_rate_bits_per_second.map(|rate| rate.to_string())),
            ("rtt", self.round_trip_time_ms.map(|ms| ms.to_string())),
            ("loss", self.loss_rate.map(|share| share.to_string())),
        ];
        for (key, number) in numbers {
            text += &number.map_or(String::new(), |number| format!(";{key}={number}"));
        }
        HeaderValue::try_from(text).ok()
    }

    /// Parses such a field; returns `None` if it is malformed.
    pub(crate) fn of_field(value: &HeaderValue) -> Option<Self> {
        let mut parts = value.to_str().ok()?.split(';').map(str::trim);
        let kind = parts.next()?;
        let (_, kind) = *KINDS.iter().find(|(name, _)| *name == kind)?;
        let mut network = Self {
            kind,
            send_rate_bits_per_second: None,
            round_trip_time_ms: None,
            loss_rate: None,
        };
        for part in parts {
            match part.split_once('=')? {
                ("rate", rate) => network.send_rate_bits_per_second = Some(rate.parse().ok()?),
                ("rtt", ms) => network.round_trip_time_ms = Some(ms.parse().ok()?),
                ("loss", share) => network.loss_rate = Some(share.parse().ok()?),
                _ => return None,
            }
        }
        network.is_sound().then_some(network)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, network)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*network);
        }
        if text.ends_with(".toml") {
            return Self::read(Path::new(text)).map_err(|why| format!("{text}{why}"));
        }
        let names = NAMES.map(|(name, _)| name).join(", ");
        Err(format!("expected {names}, or the name of a file.toml; for example --profile cdma-1x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_known_by_name_or_from_a_file() {
        let config = Network::config(Some("satellite".parse().unwrap()));
        assert_eq!(config.kind, NetworkKind::WirelessLastHop);
        assert_eq!(config.profile.send_rate, Some(Rate::from_bits_per_sec(20_000)));
        assert_eq!(config.profile.round_trip_time, Some(Duration::from_millis(600)));
        assert_eq!(Network::config(None), Config::default());

        let directory = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = directory.path().join("a.toml");
            std::fs::write(&path, text).unwrap();
            path.display().to_string().parse::<Network>()
        };
        let part = read("kind = \"general\"\nloss-rate = 0.02\n").unwrap();
        let config = Network::config(Some(part));
        assert_eq!(config.kind, NetworkKind::General);
        assert_eq!((config.profile.loss_rate, config.profile.send_rate), (Some(0.02), None));
        for (text, why) in [
            ("kind = \"radio\"\n", "radio"),
            ("kind = \"general\"\nrate = 1\n", "a.toml:2:1: unknown field `rate`"),
            ("kind = \"general\"\nloss-rate = 1.5\n", "0 to 1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("a.toml:") && error.contains(why), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        for network in NAMES.map(|(_, network)| network).into_iter().chain([part]) {
            assert_eq!(Network::of_field(&network.field().unwrap()), Some(network));
        }
        let of = |text: &'static str| Network::of_field(&HeaderValue::from_static(text));
        assert_eq!(of("general;loss=0.02"), Some(part));
        for text in
            ["", "radio", "general;rate=0", "general;rate", "general;rtt=nan", "general;size=1"]
        {
            assert_eq!(of(text), None, "{text}");
        }
        assert!("gprs".parse::<Network>().unwrap_err().contains("cdma-1x, evdo, edge"));
    }
}
