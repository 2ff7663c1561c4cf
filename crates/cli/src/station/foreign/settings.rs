//! Settings of a foreign agent: flags, and a file with the same keys and the home agents.

use std::net::IpAddr;
use std::time::Duration;

use airtcp_basestation::home::{Key, Relay, RelayConfig};
use clap::Args;
use serde::Deserialize;

use crate::output::Mistake;
use crate::station::home::settings::Peer;
use crate::{settings, value};

const EXAMPLE: &str = "docs/foreign-agent.md has an example";

/// The largest maximum of registered mobiles.
const VISITORS: usize = 65_536;

/// Flags, and the keys of a file. A flag takes precedence over its key.
#[derive(Args, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Settings {
    /// The TUN device on the wired side, to which the care-of addresses are routed, for example
    /// visit0
    #[arg(long, value_name = "TUN", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    wired: Option<String>,
    /// The TUN device on the side of the mobiles, for example visit1
    #[arg(long, value_name = "TUN", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    wireless: Option<String>,
    /// Care-of addresses, for example 198.51.100.1,2001:db8:1::1: one IPv4 address, one IPv6
    /// address, or both, that no other host has
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', value_parser = value::parsed::<IpAddr>)]
    addresses: Option<Vec<IpAddr>>,
    /// The longest lifetime of a registration [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds)]
    #[serde(deserialize_with = "settings::seconds")]
    lifetime: Option<Duration>,
    /// The maximum number of registered mobiles [default: 1024]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = value::whole(1, VISITORS, "--visitors 1024"))]
    visitors: Option<usize>,
    /// Keep the devices at exit, with their routes
    #[arg(long)]
    persist: bool,
    /// Print the registrations and the counters as JSON, one line at a time
    #[arg(long)]
    json: bool,
    #[arg(skip)]
    home_agent: Vec<Peer>,
    #[arg(skip)]
    mobile: Vec<Peer>,
}

/// The validated settings.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plan {
    /// The devices on the wired and on the wireless side.
    pub(super) devices: [String; 2],
    pub(super) relay: RelayConfig,
    pub(super) persist: bool,
    pub(super) json: bool,
}

settings::merge!(Settings:
    wired, wireless, addresses, lifetime, visitors, persist, json, home_agent, mobile,
);

impl Settings {
    /// Validates the settings, and reads the keys.
    ///
    /// # Errors
    /// A setting is missing, or contradicts another; a key cannot be read.
    pub(super) fn plan(self) -> anyhow::Result<Plan> {
        let (Some(wired), Some(wireless), Some(addresses)) =
            (self.wired, self.wireless, self.addresses)
        else {
            return Err(Mistake::new(format!(
                "wired, wireless and addresses are required, as keys or as flags: {EXAMPLE}"
            ))
            .into());
        };
        if wired == wireless {
            return Err(Mistake::new(format!(
                "wired and wireless are both `{wired}`: name two devices, for example visit0 and visit1"
            ))
            .into());
        }
        let Self { home_agent, mobile, lifetime, visitors, .. } = self;
        let agent = Agent { addresses, home_agent, mobile, lifetime, visitors };
        let relay = agent.plan("home-agent", EXAMPLE)?;
        Ok(Plan { devices: [wired, wireless], relay, persist: self.persist, json: self.json })
    }
}

/// The settings of a foreign agent that do not concern its devices.
pub(in crate::station) struct Agent {
    pub(in crate::station) addresses: Vec<IpAddr>,
    pub(in crate::station) home_agent: Vec<Peer>,
    pub(in crate::station) mobile: Vec<Peer>,
    pub(in crate::station) lifetime: Option<Duration>,
    pub(in crate::station) visitors: Option<usize>,
}

impl Agent {
    /// Validates the settings, and reads the keys. `table` is the name of the table of home agents,
    /// and `example` says where an example is.
    ///
    /// # Errors
    /// There is no home agent, a setting is out of range, or a key cannot be read.
    pub(in crate::station) fn plan(
        self,
        table: &str,
        example: &str,
    ) -> anyhow::Result<RelayConfig> {
        if self.home_agent.is_empty() {
            return Err(Mistake::new(format!("there is no [[{table}]]: {example}")).into());
        }
        let visitors = self.visitors.unwrap_or(1_024);
        if !(1..=VISITORS).contains(&visitors) {
            let text = format!("visitors is {visitors}: use 1 to {VISITORS}");
            return Err(Mistake::new(text).into());
        }
        let relay = RelayConfig {
            addresses: self.addresses,
            home_agents: keys(&self.home_agent, example)?,
            mobiles: keys(&self.mobile, example)?,
            lifetime: self.lifetime.unwrap_or(Duration::from_secs(600)),
            visitors,
        };
        Relay::new(relay.clone()).map_err(|error| Mistake::new(error.to_string()))?;
        Ok(relay)
    }
}

/// Reads the keys of peers; returns one for each of their addresses.
pub(in crate::station) fn keys(
    peers: &[Peer],
    example: &str,
) -> anyhow::Result<Vec<(IpAddr, Key)>> {
    let mut keys = Vec::new();
    for peer in peers {
        let key = peer.key(example)?;
        keys.extend(peer.addresses.iter().map(|address| (*address, key.clone())));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Merge;
    use crate::station::home::settings::tests::page;

    fn plan(directory: &tempfile::TempDir, text: &str, flags: Settings) -> anyhow::Result<Plan> {
        let path = directory.path().join("foreign-agent.toml");
        std::fs::write(&path, text).unwrap();
        flags.or(settings::read(&path)?).plan()
    }

    #[test]
    fn the_settings_of_the_page_are_understood_and_flags_override_them() {
        let (directory, text) = page("foreign-agent.md", ["north", "van-north"]);
        let flags = Settings { visitors: Some(7), ..Settings::default() };
        let plan = plan(&directory, &text, flags).unwrap();
        assert_eq!(plan.devices, ["visit0", "visit1"]);
        let relay = plan.relay;
        assert_eq!(
            (relay.addresses.len(), relay.home_agents.len(), relay.mobiles.len()),
            (2, 2, 2)
        );
        assert_eq!((relay.lifetime, relay.visitors), (Duration::from_secs(600), 7));
        assert!(plan.persist && !plan.json);
    }

    #[test]
    fn a_mistake_names_the_place_and_what_to_write() {
        let (directory, text) = page("foreign-agent.md", ["north", "van-north"]);
        for (from, to, expected) in [
            ("wired = \"visit0\"", "", "wired, wireless and addresses are required"),
            ("visit1", "visit0", "name two devices"),
            ("[[home-agent]]", "[[mobile]]", "there is no [[home-agent]]"),
            ("spi = 400", "spi = 4", "home: the SPI 4 is reserved"),
            ("\"192.0.2.1\"", "\"198.51.100.1\"", "198.51.100.1 is given twice"),
            ("wired =", "visitors = 0\nwired =", "1 to 65536"),
        ] {
            assert!(text.contains(from), "{from}");
            let changed = text.replacen(from, to, 1);
            let error = plan(&directory, &changed, Settings::default()).unwrap_err();
            let said = format!("{error:#}");
            assert!(said.contains(expected), "{said}");
        }
    }
}
