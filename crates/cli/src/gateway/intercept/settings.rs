//! The settings of `--tun` and `--intercept`.

use std::net::{IpAddr, SocketAddr};

use airtcp_testbed::Cidr;
use clap::Args;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::Plan;
use crate::gateway::routes::{self, EVERYTHING, Ipv6, Routes};
use crate::output::Mistake;
use crate::{settings, value};

/// The default device.
const DEVICE: &str = "airtcp0";

/// The header of a datagram inside the tunnel (bytes).
const HEADER: u16 = 8;
/// The minimum MTU of IPv6 (RFC 8200 section 5).
const LEAST: u16 = 1280;

/// Flags, and the keys of the table `[intercept]` in a file.
#[derive(Args, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::gateway) struct InterceptSettings {
    /// Carry the traffic of all programs of this machine, and of those for which it is the router:
    /// creates a TUN device, and routes and rules, which are removed at exit. Needs root. In a
    /// file: enabled = true below [intercept]
    #[arg(long = "intercept")]
    enabled: bool,
    /// TUN device whose traffic is carried [default with --intercept: airtcp0]. Without
    /// --intercept, routes into it are yours to make
    #[arg(long, value_name = "NAME", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    tun: Option<String>,
    /// Carry what goes to these networks, separated by commas [default: everything but the
    /// machine's own networks]
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', value_parser = routes::network)]
    #[serde(deserialize_with = "networks")]
    route: Option<Vec<Cidr>>,
    /// Do not carry what goes to these networks, separated by commas
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', value_parser = routes::network)]
    #[serde(deserialize_with = "networks")]
    exclude: Option<Vec<Cidr>>,
    /// Answer programs before the far gateway has connected. Saves them a round trip, but they see
    /// a reset instead of a refusal
    #[arg(long)]
    answer_early: bool,
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Cidr>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let networks = texts.iter().map(|text| routes::network(text)).collect::<Result<_, _>>();
    networks.map(Some).map_err(D::Error::custom)
}

settings::merge!(InterceptSettings: enabled, tun, route, exclude, answer_early);

impl InterceptSettings {
    /// Whether the settings ask for a device.
    pub(in crate::gateway) const fn is_wanted(&self) -> bool {
        self.enabled || self.tun.is_some()
    }

    /// Rejects flags without effect.
    ///
    /// # Errors
    /// A flag needs another one, which is missing.
    pub(in crate::gateway) fn check(&self) -> Result<(), Mistake> {
        let needs = |flag: &str, other: &str| {
            Err(Mistake::new(format!(
                "{flag} has no effect without {other}: add it, or remove {flag}"
            )))
        };
        match self {
            Self { enabled: false, route: Some(_), .. } => needs("--route", "--intercept"),
            Self { enabled: false, exclude: Some(_), .. } => needs("--exclude", "--intercept"),
            Self { answer_early: true, .. } if !self.is_wanted() => {
                needs("--answer-early", "--intercept or --tun")
            }
            _ => Ok(()),
        }
    }

    /// Validates the settings, for an MTU of `mtu` bytes inside the tunnel and a far gateway at
    /// `endpoints`; `None` if nothing is intercepted. Packets to `plain_far`, a far gateway without
    /// a tunnel, are not intercepted.
    ///
    /// # Errors
    /// As [`check`](Self::check), and too many networks.
    pub(in crate::gateway) fn plan(
        self,
        mtu: u16,
        endpoints: &[SocketAddr],
        plain_far: Option<IpAddr>,
    ) -> Result<Option<Plan>, Mistake> {
        self.check()?;
        if !self.is_wanted() {
            return Ok(None);
        }
        let device = self.tun.unwrap_or_else(|| DEVICE.to_owned());
        let ipv6 = Ipv6::of_this_machine();
        let networks = self.route.unwrap_or_else(|| EVERYTHING.to_vec());
        let mut excluded = self.exclude.unwrap_or_default();
        excluded.extend(
            plain_far
                .map(|address| Cidr { address, prefix: if address.is_ipv4() { 32 } else { 128 } }),
        );
        let routes = || Routes::new(&device, &networks, &excluded, endpoints, ipv6);
        let routes = self.enabled.then(routes).transpose()?;
        let mtu = mtu.saturating_sub(HEADER).max(LEAST);
        Ok(Some(Plan { device, mtu, routes, ipv6, answer_early: self.answer_early }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::settings::Merge;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        intercept: InterceptSettings,
    }

    fn settings(line: &str) -> InterceptSettings {
        let words = std::iter::once("near").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().intercept
    }

    #[test]
    fn nothing_is_intercepted_unless_it_is_asked_for() {
        assert_eq!(settings("").plan(1440, &[], None).unwrap(), None);
        let plan = settings("--tun tun7").plan(1440, &[], None).unwrap().unwrap();
        assert_eq!((plan.device.as_str(), plan.routes.is_none()), ("tun7", true));
        let plan = settings("--intercept").plan(1440, &[], None).unwrap().unwrap();
        assert_eq!((plan.device.as_str(), plan.mtu), (DEVICE, 1432));
        assert!(plan.routes.is_some());
        let plan = settings("--intercept").plan(1200, &[], None).unwrap().unwrap();
        assert_eq!(plan.mtu, LEAST);
    }

    #[test]
    fn a_flag_without_effect_is_refused() {
        for (line, missing) in [
            ("--route 10.0.0.0/8", "--route has no effect without --intercept"),
            ("--tun tun7 --exclude 10.0.0.0/8", "--exclude has no effect without --intercept"),
            ("--answer-early", "--answer-early has no effect without --intercept or --tun"),
        ] {
            let mistake = settings(line).plan(1440, &[], None).unwrap_err().to_string();
            assert!(mistake.contains(missing), "{mistake}");
        }
    }

    #[test]
    fn a_file_says_the_same_and_flags_override_it() {
        let file = "enabled = true\ntun = \"tun7\"\nroute = [\"10.1.2.3/8\", \"::1\"]\nexclude = [\"10.1.0.0/16\"]\n";
        let file: InterceptSettings = toml::from_str(file).unwrap();
        let line = "--intercept --tun tun7 --route 10.0.0.0/8,::1 --exclude 10.1.0.0/16";
        assert_eq!(file, settings(line));
        let both = settings("--tun tun8 --answer-early").or(file.clone());
        assert_eq!(both, settings(&format!("{line} --answer-early").replace("tun7", "tun8")));
        assert!(toml::from_str::<InterceptSettings>("route = [\"10.0.0.0/33\"]").is_err());
        assert!(toml::from_str::<InterceptSettings>("tun = \"a b\"").is_err());
    }

    #[test]
    fn the_commands_begin_with_the_device_and_end_with_the_rules() {
        let plan =
            settings("--intercept --route 10.0.0.0/8").plan(1440, &[], None).unwrap().unwrap();
        let commands = plan.commands();
        let lines: Vec<_> = commands.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "ip tuntap add dev airtcp0 mode tun",
                "ip link set dev airtcp0 mtu 1432 up",
                "ip address add 198.18.77.1/32 dev airtcp0",
            ]
        );
        let last = "ip -4 rule add priority 27702 to 10.0.0.0/8 lookup 51877 protocol 177";
        assert_eq!(lines.last(), Some(&last));
        let far = "10.77.0.1".parse().unwrap();
        let plan = settings("--intercept").plan(1500, &[], Some(far)).unwrap().unwrap();
        let commands = plan.commands();
        assert!(commands.contains("route add throw 10.77.0.1/32"), "{commands}");
    }
}
