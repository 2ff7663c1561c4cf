//! Rules for the destinations that the far gateway dials.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A set of destinations: a network, and all its ports or a range of them.
///
/// Written as `10.0.0.0/8`, `192.0.2.1:443`, `2001:db8::/32`, `[2001:db8::/32]:8000-8999`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    network: IpAddr,
    prefix_len: u8,
    ports: RangeInclusive<u16>,
}

/// The reason why a text is not a rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a rule: write an address or a network and, if it is not for all ports, a port or \
     a range of them, such as 10.0.0.0/8, 127.0.0.1:8000-8999 or [2001:db8::/32]:443"
)]
pub struct RuleError(String);

/// The rules of a far gateway, applied to each address that it would dial.
///
/// Of the rules that match, the one with the longest prefix decides; of two equally long ones, the
/// one in `deny`. If none matches, an address is allowed only if `allow` is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Destinations that may be dialled.
    pub allow: Vec<Rule>,
    /// Destinations that may not be dialled.
    pub deny: Vec<Rule>,
}

impl Rule {
    pub(crate) fn matches(&self, to: SocketAddr) -> bool {
        let in_network = match (self.network, to.ip()) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                let host_bits = 32 - u32::from(self.prefix_len);
                (network.to_bits() ^ ip.to_bits()).checked_shr(host_bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                let host_bits = 128 - u32::from(self.prefix_len);
                (network.to_bits() ^ ip.to_bits()).checked_shr(host_bits).unwrap_or(0) == 0
            }
            _ => false,
        };
        in_network && self.ports.contains(&to.port())
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let parse = || {
            let (network, ports) = if let Some(rest) = text.strip_prefix('[') {
                let (network, rest) = rest.split_once(']')?;
                (network, Some(rest.strip_prefix(':')?))
            } else if text.matches(':').count() == 1 {
                let (network, ports) = text.split_once(':')?;
                (network, Some(ports))
            } else {
                (text, None)
            };
            let (address, prefix_len) = match network.split_once('/') {
                Some((address, prefix_len)) => (address, Some(prefix_len.parse().ok()?)),
                None => (network, None),
            };
            let network: IpAddr = address.parse().ok()?;
            let longest = if network.is_ipv4() { 32 } else { 128 };
            let prefix_len = prefix_len.unwrap_or(longest);
            let ports = match ports.map(|ports| ports.split_once('-').unwrap_or((ports, ports))) {
                Some((first, last)) => first.parse().ok()?..=last.parse().ok()?,
                None => 0..=u16::MAX,
            };
            (prefix_len <= longest && !ports.is_empty()).then_some(Self {
                network,
                prefix_len,
                ports,
            })
        };
        parse().ok_or_else(|| RuleError(text.to_owned()))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.ports.start(), self.ports.end());
        let all = (*first, *last) == (0, u16::MAX);
        let bracketed = self.network.is_ipv6() && !all;
        f.write_str(if bracketed { "[" } else { "" })?;
        write!(f, "{}/{}", self.network, self.prefix_len)?;
        f.write_str(if bracketed { "]" } else { "" })?;
        match (all, first == last) {
            (true, _) => Ok(()),
            (_, true) => write!(f, ":{first}"),
            _ => write!(f, ":{first}-{last}"),
        }
    }
}

impl Default for Rules {
    /// Allows everything except loopback, link-local, multicast and unspecified addresses,
    /// addresses that embed an IPv4 address, and the metadata services of clouds. Other addresses
    /// of the far gateway's machine are allowed.
    fn default() -> Self {
        let deny = [
            "0.0.0.0/8",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "224.0.0.0/4",
            "255.255.255.255/32",
            // IPv4-compatible (RFC 4291 section 2.5.5.1), mapped, translated (RFC 2765), NAT64 (RFC
            // 6052, RFC 8215), Teredo (RFC 4380), 6to4 (RFC 3056).
            "::/96",
            "::ffff:0:0/96",
            "::ffff:0:0:0/96",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "2001::/32",
            "2002::/16",
            "fe80::/10",
            "ff00::/8",
            // Metadata services of cloud machines, which hand out credentials, at addresses that
            // are not link-local: Azure, Alibaba, AWS, GCP.
            "168.63.129.16/32",
            "100.100.100.200/32",
            "fd00:ec2::254/128",
            "fd20:ce::254/128",
        ];
        let deny = deny.map(|rule| rule.parse().expect("a rule"));
        Self { allow: Vec::new(), deny: deny.into() }
    }
}

impl Rules {
    /// Whether `to` may be dialled. An IPv4-mapped IPv6 address must be allowed in both forms.
    pub fn allow(&self, to: SocketAddr) -> bool {
        let canonical = SocketAddr::new(to.ip().to_canonical(), to.port());
        self.judge(to) && (canonical == to || self.judge(canonical))
    }

    fn judge(&self, to: SocketAddr) -> bool {
        let longest = |rules: &[Rule]| {
            rules.iter().filter(|rule| rule.matches(to)).map(|rule| rule.prefix_len).max()
        };
        match (longest(&self.allow), longest(&self.deny)) {
            (None, None) => self.allow.is_empty(),
            (allow, deny) => allow > deny,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> Rules {
        let parse = |rules: &[&str]| rules.iter().map(|rule| rule.parse().unwrap()).collect();
        Rules { allow: parse(allow), deny: parse(deny) }
    }

    fn allows(rules: &Rules, to: &str) -> bool {
        rules.allow(to.parse().unwrap())
    }

    #[test]
    fn by_default_loopback_link_local_multicast_and_hidden_addresses_are_denied() {
        let rules = Rules::default();
        for to in [
            "127.0.0.1:80",
            "0.0.0.0:80",
            "169.254.169.254:80",
            "224.0.0.251:80",
            "255.255.255.255:80",
            "[::1]:80",
            "[::]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:192.0.2.1]:80",
            "[::7f00:1]:80",
            "[::ffff:0:7f00:1]:80",
            "[64:ff9b::7f00:1]:80",
            "[64:ff9b:1::7f00:1]:80",
            "[2001:0:c000:201::1]:80",
            "[2002:7f00:1::1]:80",
            "[fe80::1]:80",
            "[ff02::1]:80",
            "168.63.129.16:80",
            "100.100.100.200:80",
            "[fd00:ec2::254]:80",
            "[fd20:ce::254]:80",
        ] {
            assert!(!allows(&rules, to), "{to}");
        }
        for to in [
            "192.0.2.1:80",
            "10.0.0.1:22",
            "[2001:db8::1]:443",
            "[2001:4860::1]:443",
            "100.100.100.201:80",
            "[fd00:ec2::253]:80",
            "[64:ff9c::1]:80",
        ] {
            assert!(allows(&rules, to), "{to}");
        }
    }

    #[test]
    fn the_longest_prefix_decides_and_denies_on_a_tie() {
        let rules = rules(
            &["0.0.0.0/0", "127.0.0.1:8080", "10.1.0.0/16"],
            &["127.0.0.0/8", "10.0.0.0/8", "10.1.0.0/16:25", "192.0.2.0/24:1-1023"],
        );
        for (to, allowed) in [
            ("127.0.0.1:8080", true),
            ("127.0.0.1:8081", false),
            ("127.0.0.2:8080", false),
            ("10.1.2.3:80", true),
            ("10.1.2.3:25", false),
            ("10.2.2.3:80", false),
            ("192.0.2.9:1023", false),
            ("192.0.2.9:1024", true),
            ("[2001:db8::1]:80", false),
        ] {
            assert_eq!(allows(&rules, to), allowed, "{to}");
        }
    }

    #[test]
    fn a_list_of_what_is_allowed_excludes_the_rest() {
        let rules = Rules { allow: rules(&["192.0.2.0/24"], &[]).allow, ..Rules::default() };
        assert!(allows(&rules, "192.0.2.1:1"));
        assert!(!allows(&rules, "198.51.100.1:1"));
    }

    #[test]
    fn a_mapped_address_is_judged_in_both_forms() {
        let rules = rules(&["::/0", "0.0.0.0/0"], &["127.0.0.0/8"]);
        assert!(!allows(&rules, "[::ffff:127.0.0.1]:80"));
        assert!(allows(&rules, "[::ffff:192.0.2.1]:80"));
    }

    #[test]
    fn rules_are_shown_as_they_are_written() {
        for text in ["10.0.0.0/8", "10.0.0.0/8:443", "2001:db8::/32", "[2001:db8::/32]:1-9"] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        assert_eq!("[::1]:22".parse::<Rule>().unwrap().to_string(), "[::1/128]:22");
        for text in
            ["", "10.0.0.0/33", "::/129", "10.0.0.0/8:", "10.0.0.0/8:9-1", "x", "[::1]", "[::1]22"]
        {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
