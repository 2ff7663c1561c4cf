//! Settings of a home agent: flags, and a file with the same keys and the mobiles.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use airtcp_basestation::HomeConfig;
use airtcp_basestation::home::{Algorithm, HomeMobile, HomeStation, Key};
use clap::Args;
use data_encoding::BASE64;
use serde::Deserialize;

use crate::gateway::keys;
use crate::output::Mistake;
use crate::{settings, value};

const EXAMPLE: &str = "docs/home-agent.md has an example";

/// Flags, and the keys of a file. A flag takes precedence over its key.
#[derive(Args, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Settings {
    /// The TUN device to which the home network is routed, for example home0
    #[arg(long, value_name = "TUN", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    tun: Option<String>,
    /// Addresses of the home agent, for example 192.0.2.1,2001:db8::1: one IPv4 address, one IPv6
    /// address, or both, that no other host has
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', value_parser = value::parsed::<IpAddr>)]
    addresses: Option<Vec<IpAddr>>,
    /// File with the registrations, which survive a restart
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The longest lifetime of a registration [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds)]
    #[serde(deserialize_with = "settings::seconds")]
    lifetime: Option<Duration>,
    /// MTU of the paths to the care-of addresses; the tunnel carries 20 bytes less with IPv4 and 40
    /// less with IPv6 [default: 1500]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = value::whole(1_320_usize, 65_535, "--mtu 1500"))]
    mtu: Option<usize>,
    /// Keep the device at exit, with its routes
    #[arg(long)]
    persist: bool,
    /// Print the registrations and the counters as JSON, one line at a time
    #[arg(long)]
    json: bool,
    #[arg(skip)]
    mobile: Vec<Peer>,
    #[arg(skip)]
    station: Vec<Peer>,
}

/// `[[mobile]]`, `[[station]]` or `[[home-agent]]`.
#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::station) struct Peer {
    name: String,
    pub(in crate::station) addresses: Vec<IpAddr>,
    spi: u32,
    key: PathBuf,
    #[serde(default)]
    algorithm: Algorithm,
}

/// The validated settings.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plan {
    pub(super) tun: String,
    pub(super) state: PathBuf,
    pub(super) agent: HomeConfig,
    pub(super) persist: bool,
    pub(super) json: bool,
}

settings::merge!(Settings: tun, addresses, state, lifetime, mtu, persist, json, mobile, station);

impl Settings {
    /// Validates the settings, and reads the keys.
    ///
    /// # Errors
    /// A setting is missing, or contradicts another; a key cannot be read.
    pub(super) fn plan(self) -> anyhow::Result<Plan> {
        let (Some(tun), Some(addresses), Some(state)) = (self.tun, self.addresses, self.state)
        else {
            return Err(Mistake::new(format!(
                "tun, addresses and state are required, as keys or as flags: {EXAMPLE}"
            ))
            .into());
        };
        if self.mobile.is_empty() {
            return Err(Mistake::new(format!("there is no [[mobile]]: {EXAMPLE}")).into());
        }
        let (mut mobiles, mut stations) = (Vec::new(), Vec::new());
        for peer in &self.mobile {
            let key = peer.key(EXAMPLE)?;
            let of = |address: &IpAddr| HomeMobile {
                name: peer.name.clone(),
                address: *address,
                key: key.clone(),
            };
            mobiles.extend(peer.addresses.iter().map(of));
        }
        for peer in &self.station {
            let key = peer.key(EXAMPLE)?;
            let of = |address: &IpAddr| HomeStation {
                name: peer.name.clone(),
                address: *address,
                key: key.clone(),
            };
            stations.extend(peer.addresses.iter().map(of));
        }
        let agent = HomeConfig {
            addresses,
            mobiles,
            stations,
            lifetime: self.lifetime.unwrap_or(Duration::from_secs(600)),
            mtu: self.mtu.unwrap_or(1_500),
        };
        agent.check().map_err(|error| Mistake::new(error.to_string()))?;
        Ok(Plan { tun, state, agent, persist: self.persist, json: self.json })
    }
}

impl Peer {
    /// Reads the key. `example` says where an example is.
    ///
    /// # Errors
    /// There is no address, or the key is invalid or cannot be read.
    pub(in crate::station) fn key(&self, example: &str) -> anyhow::Result<Key> {
        let name = &self.name;
        if self.addresses.is_empty() {
            return Err(Mistake::new(format!("{name} has no address: {example}")).into());
        }
        let Secret(secret) = secret(&self.key)?;
        let key = Key::new(self.spi, self.algorithm, secret);
        key.map_err(|error| Mistake::new(format!("{name}: {error}")).into())
    }
}

fn secret(path: &Path) -> anyhow::Result<Secret> {
    keys::read(
        path,
        "make one with `airtcp gateway keygen --out FILE`, and give both ends the same",
    )
}

/// The secret of a key, as a line of base64.
struct Secret(Vec<u8>);

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        BASE64.decode(text.as_bytes()).map(Self).map_err(|error| {
            format!(
                "expected a line of base64 ({error}): make one with `airtcp gateway keygen --out FILE`"
            )
        })
    }
}

#[cfg(test)]
pub(in crate::station) mod tests {
    use super::*;
    use crate::settings::Merge;

    /// The settings of a page, with these keys in a directory of the test.
    pub(in crate::station) fn page<const N: usize>(
        name: &str,
        keys: [&str; N],
    ) -> (tempfile::TempDir, String) {
        let page = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(page).unwrap();
        let block = page.split("```").find_map(|block| block.strip_prefix("toml\n")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        for name in keys {
            let key = BASE64.encode(&[name.len() as u8; 32]);
            std::fs::write(directory.path().join(format!("{name}.key")), key).unwrap();
        }
        let path = directory.path().display().to_string();
        let text = block.replace("/etc/airtcp/", &format!("{path}/"));
        (directory, text)
    }

    fn plan(directory: &tempfile::TempDir, text: &str, flags: Settings) -> anyhow::Result<Plan> {
        let path = directory.path().join("home-agent.toml");
        std::fs::write(&path, text).unwrap();
        flags.or(settings::read(&path)?).plan()
    }

    fn refused(directory: &tempfile::TempDir, text: &str) -> String {
        format!("{:#}", plan(directory, text, Settings::default()).unwrap_err())
    }

    #[test]
    fn the_settings_of_the_page_are_understood_and_flags_override_them() {
        let (directory, text) = page("home-agent.md", ["van", "north", "south"]);
        let flags = Settings { mtu: Some(1_400), ..Settings::default() };
        let plan = plan(&directory, &text, flags).unwrap();
        assert_eq!((plan.tun.as_str(), plan.agent.mtu, plan.persist), ("home0", 1_400, true));
        assert_eq!((plan.agent.mobiles.len(), plan.agent.stations.len()), (2, 4));
        let secret = vec![3; 32];
        let key = Key::new(300, Algorithm::HmacSha256, secret).unwrap();
        assert_eq!(plan.agent.mobiles[0].key, key);
        assert_eq!(plan.agent.lifetime, Duration::from_secs(600));
    }

    #[test]
    fn a_mistake_names_the_place_and_what_to_write() {
        let (directory, text) = page("home-agent.md", ["van", "north", "south"]);
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            refused(&directory, &text.replacen(from, to, 1))
        };
        for (from, to, expected) in [
            ("tun = \"home0\"", "", "tun, addresses and state are required"),
            ("spi = 300", "spi = 30", "van: the SPI 30 is reserved"),
            ("spi = 300", "spy = 300", "unknown key `spy`"),
            ("van.key", "none.key", "none.key does not exist: make one with"),
            ("[[mobile]]", "[[station]]", "there is no [[mobile]]"),
            ("hmac-sha256", "md5", "hmac-md5"),
            ("[\"192.0.2.7\", \"2001:db8::7\"]", "[]", "van has no address"),
            ("\"198.51.100.1\"", "\"192.0.2.7\"", "192.0.2.7 is given twice"),
        ] {
            let said = refused(from, to);
            assert!(said.contains(expected), "{said}");
        }
        std::fs::write(directory.path().join("van.key"), "not base64!").unwrap();
        assert!(refused("home0", "home1").contains("expected a line of base64"));
        std::fs::write(directory.path().join("van.key"), "c2hvcnQ=").unwrap();
        assert!(refused("home0", "home1").contains("the secret has 5 bytes: use 16 to 64"));
    }
}
