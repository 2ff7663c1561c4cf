//! Parsing of `--so_flags`: `key=value`, separated by commas.

use std::str::FromStr;

use airtcp_recovery::Profile;
use airtcp_stack::host::Cidr;
use airtcp_stack::tcp::{EcnMode, Offer, TcpConfig};

/// The addresses of the machine under test, packetdrill's defaults and those of Google's scripts.
const ADDRESSES: [&str; 2] = ["192.168.0.1/16", "fd3d:a0b:17d6::1/48"];

const LINUX: &str = "rack/cubic";

/// The configuration of a script's stack.
#[derive(Clone, Debug)]
pub(crate) struct Flags {
    /// `address=192.168.0.1/16`: one or more for each IP version.
    pub(crate) addresses: Vec<Cidr>,
    /// `profile=`, `byte_counting_limit=`, `detection=`, `congestion=`, `judge=`, `hack=`,
    /// `tx_numbers=`, `mtu=`.
    pub(crate) tcp: TcpConfig,
    /// `ecn=`, which overrides the sysctl.
    pub(crate) ecn: Option<EcnMode>,
    /// `sysctl=off`: the namespace's sysctls are ignored.
    pub(crate) sysctls: bool,
}

impl FromStr for Flags {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut addresses, mut tcp, mut sysctls) = (Vec::new(), TcpConfig::default(), true);
        // The default is Linux's, for which scripts are written.
        tcp.sender.combination = LINUX.parse().map_err(text_of)?;
        let mut ecn = None;
        for flag in text.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
            let (key, value) = flag.split_once('=').ok_or(format!("`{flag}` is not key=value"))?;
            let parts = |detection, congestion, judge| {
                tcp.sender.combination.with_parts(detection, congestion, judge).map_err(text_of)
            };
            match key {
                "address" => addresses.push(value.parse::<Cidr>().map_err(text_of)?),
                "detection" | "recovery" => {
                    tcp.sender.combination = parts(Some(value), None, None)?
                }
                "congestion" | "control" => {
                    tcp.sender.combination = parts(None, Some(value), None)?
                }
                "judge" => tcp.sender.combination = parts(None, None, Some(value))?,
                "profile" => tcp.sender.profile = value.parse::<Profile>().map_err(text_of)?,
                "byte_counting_limit" => {
                    let limit = value.parse().map_err(|_| format!("byte_counting_limit `{value}`"));
                    tcp.sender.profile.byte_counting_limit = limit?;
                }
                "ecn" => ecn = Some(value.parse().map_err(text_of)?),
                "hack" => tcp.hack = offer(value)?,
                "tx_numbers" => tcp.tx_numbers = offer(value)?,
                "mtu" => tcp.mtu = value.parse().map_err(|_| format!("mtu `{value}`"))?,
                "sysctl" if value == "off" => sysctls = false,
                "sysctl" if value == "on" => sysctls = true,
                _ => {
                    return Err(format!(
                        "no flag `{flag}`: use address, detection, congestion, judge, profile, byte_counting_limit, ecn, hack, tx_numbers, mtu, sysctl=off"
                    ));
                }
            }
        }
        if addresses.is_empty() {
            let parsed = ADDRESSES.iter().map(|address| address.parse().map_err(text_of));
            addresses = parsed.collect::<Result<_, _>>()?;
        }
        tcp.ecn = ecn.unwrap_or(tcp.ecn);
        Ok(Self { addresses, tcp, ecn, sysctls })
    }
}

fn offer(value: &str) -> Result<Offer, String> {
    match value {
        "always" => Ok(Offer::Always),
        "never" => Ok(Offer::Never),
        _ => Err(format!("`{value}`: use always or never")),
    }
}

fn text_of(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use airtcp_recovery::Combination;

    use super::*;

    fn combination(flags: &str) -> Combination {
        flags.parse::<Flags>().unwrap().tcp.sender.combination
    }

    #[test]
    fn strategies_are_named_one_by_one() {
        let chosen = combination("detection=rack,congestion=reno,judge=hack+dcr:timer");
        assert_eq!(chosen.to_string(), "rack/reno/hack+dcr:timer");
        assert_eq!(combination("").to_string(), LINUX);
        // The older names.
        assert_eq!(combination("recovery=le").to_string(), "le/cubic");
        assert_eq!(combination("control=reno").to_string(), "rack/reno");
    }

    #[test]
    fn addresses_and_switches() {
        let flags: Flags = "address=10.0.0.1/24,sysctl=off,profile=paper,hack=always,ecn=accurate"
            .parse()
            .unwrap();
        assert_eq!((flags.ecn, flags.tcp.ecn), (Some(EcnMode::Accurate), EcnMode::Accurate));
        assert_eq!(flags.addresses, ["10.0.0.1/24".parse().unwrap()]);
        assert!(!flags.sysctls && flags.tcp.hack == Offer::Always);
        assert_eq!(flags.tcp.sender.profile, Profile::paper());
        let flags: Flags = "byte_counting_limit=2".parse().unwrap();
        assert_eq!((flags.tcp.sender.profile.byte_counting_limit, flags.addresses.len()), (2, 2));
    }

    #[test]
    fn an_unknown_flag_is_named() {
        for (flags, named) in [
            ("rack", "rack"),
            ("detection=x", "x"),
            ("speed=1", "speed=1"),
            ("hack=x", "x"),
            ("ecn=x", "x"),
            ("byte_counting_limit=x", "x"),
        ] {
            let error = flags.parse::<Flags>().unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
