//! Parses values of the command line. Each error says what is allowed, and gives an example.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use airtcp_link::{Arq, LinkSpec, RadioSpec, SpecError, spec};
use airtcp_recovery::{Combination, Profile};
use airtcp_sim::Sender;
use airtcp_stack::host::{Cidr, Quota};
use airtcp_stack::tcp::EcnMode;
use airtcp_types::{ByteCount, Rate};

use crate::args::{ServiceKind, ServiceSpec};

/// The maximum of `--size`.
const LARGEST: ByteCount = ByteCount::from_mib(64 * 1024);

/// Parses a value with the `FromStr` of its type, whose errors name the allowed values.
pub(crate) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Parses `--strategies`.
pub(crate) fn strategies(text: &str) -> Result<Combination, String> {
    if matches!(text.parse::<Sender>(), Ok(Sender::Rrtp(_))) {
        return Err("rrtp is another transport than TCP: use airtcp quickserve and airtcp quickget; for example \
                    airtcp quickserve . --listen rrtp://0.0.0.0:8000"
            .to_owned());
    }
    text.parse().map_err(|error| format!("{error}; for example --strategies rack/cubic/dcr:timer"))
}

/// Rejects a whole combination, which a user may have copied from a table, in place of one part.
fn refuse_whole(text: &str) -> Result<(), String> {
    match text.contains('/') {
        true => Err(format!("this names more than one part: use --strategies {text}")),
        false => Ok(()),
    }
}

/// Parses `--detection`.
pub(crate) fn detection(text: &str) -> Result<String, String> {
    refuse_whole(text)?;
    match Combination::from_parts(Some(text), None, None) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; for example --detection sack")),
    }
}

/// Parses `--congestion`.
pub(crate) fn congestion(text: &str) -> Result<String, String> {
    refuse_whole(text)?;
    match Combination::from_parts(None, Some(text), None) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; for example --congestion cubic")),
    }
}

/// Parses `--judge`.
pub(crate) fn judge(text: &str) -> Result<String, String> {
    refuse_whole(text)?;
    match Combination::from_parts(None, None, Some(text)) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(match airtcp_recovery::registry::judges().first() {
            Some(first) => format!("{error}; for example --judge {}", first.name),
            None => format!("{error}; omit --judge"),
        }),
    }
}

/// Parses a rate, in the syntax of links.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    spec::rate(text)
        .ok_or_else(|| "expected a number with kbit, mbit or gbit; for example 20mbit".to_owned())
}

/// Parses `--profile`.
pub(crate) fn profile(text: &str) -> Result<Profile, String> {
    text.parse().map_err(|error| format!("{error}; for example --profile modern"))
}

/// Parses `--ecn`.
pub(crate) fn ecn(text: &str) -> Result<EcnMode, String> {
    text.parse().map_err(|error| format!("{error}; for example --ecn accurate"))
}

/// Parses `--tun`.
pub(crate) fn tun(text: &str) -> Result<String, String> {
    let forbidden = |c: char| c.is_whitespace() || "/:%".contains(c);
    if !(1..=15).contains(&text.len()) || text.contains(forbidden) || [".", ".."].contains(&text) {
        return Err(
            "a device's name has 1 to 15 bytes without white space, `/`, `:` and `%`; for \
                    example tun0"
                .into(),
        );
    }
    Ok(text.to_owned())
}

/// Parses `--queues`. The maximum is the kernel's `MAX_TAP_QUEUES`.
pub(crate) fn queues(text: &str) -> Result<u16, String> {
    let count = text.parse().ok().filter(|count| (1..=256).contains(count));
    count.ok_or_else(|| "a TUN device has 1 to 256 queues; for example --queues 2".to_owned())
}

/// Parses `--address`.
pub(crate) fn cidr(text: &str) -> Result<Cidr, String> {
    const EXAMPLE: &str = "for example --address 10.0.0.2/24 or --address fd00::2/64";
    const ALLOWED: &str =
        "expected an address with a prefix length, up to /32 for IPv4 and /128 for IPv6";
    let cidr: Cidr = text.parse().map_err(|error| format!("{ALLOWED} ({error}); {EXAMPLE}"))?;
    // The network of a single host has no address for the kernel; a user who wants that writes the
    // prefix length.
    if !text.contains('/') {
        return Err(format!("{ALLOWED} (the prefix length is missing); {EXAMPLE}"));
    }
    let address = cidr.address();
    let is_reserved = names_a_network(cidr)
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_loopback();
    if is_reserved {
        return Err(format!("expected a unicast address of a host; {EXAMPLE}"));
    }
    Ok(cidr)
}

/// Returns whether the host bits of an IPv4 address are all zeros or all ones, which is the network
/// itself or its broadcast address (RFC 1122 section 3.2.1.3). Networks of two addresses have
/// neither (RFC 3021).
fn names_a_network(cidr: Cidr) -> bool {
    let IpAddr::V4(address) = cidr.address() else { return false };
    let hosts = u32::MAX.checked_shr(cidr.prefix_len().into()).unwrap_or(0);
    hosts > 1 && [0, hosts].contains(&(address.to_bits() & hosts))
}

/// Parses `--gateway`.
pub(crate) fn gateway(text: &str) -> Result<IpAddr, String> {
    let address: Option<IpAddr> = text.parse().ok();
    address.filter(|ip| !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback()).ok_or_else(
        || {
            "expected a unicast address without a prefix length; for example \
             --gateway 10.0.0.1"
                .to_owned()
        },
    )
}

/// Parses `--metrics`.
pub(crate) fn socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected ADDRESS:PORT; for example --metrics 127.0.0.1:9464 or --metrics [::1]:9464"
            .to_owned()
    })
}

/// Parses `--send-buffer` and `--receive-buffer`.
pub(crate) fn buffer(text: &str) -> Result<ByteCount, String> {
    // From two segments to the memory that the connections of a peer may hold together.
    let sizes = ByteCount::from_kib(4)..=Quota::PEER.memory;
    size(text).ok().filter(|bytes| sizes.contains(bytes)).ok_or_else(|| {
        format!(
            "a buffer is {} to {} bytes, alone or with KiB, MiB, kB or MB; for example 64MiB",
            sizes.start(),
            sizes.end()
        )
    })
}

/// Parses `--mtu`.
pub(crate) fn mtu(text: &str) -> Result<u16, String> {
    let mtu = text.parse().ok().filter(|mtu| *mtu >= 576);
    mtu.ok_or_else(|| "the MTU is 576 to 65535 bytes; for example --mtu 1500".to_owned())
}

/// Parses `SERVICE`.
pub(crate) fn service(text: &str) -> Result<ServiceSpec, String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let (port, directory) = match rest.split_once(':') {
        Some((port, directory)) => (port, Some(directory)),
        None => (rest, None),
    };
    let kind = match (name, directory) {
        ("echo", None) => ServiceKind::Echo,
        ("sink", None) => ServiceKind::Sink,
        ("source", None) => ServiceKind::Source,
        ("http", Some(directory)) => ServiceKind::Http(Path::new(directory).to_owned()),
        ("http", None) => {
            return Err("http needs a port and a directory; for example http:80:/srv/www".into());
        }
        _ => {
            return Err("write echo:PORT, sink:PORT, source:PORT or http:PORT:DIR; for example \
                        echo:7"
                .into());
        }
    };
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        let rest = if name == "http" { ":/srv/www" } else { "" };
        let usual = if name == "http" { 80 } else { 7 };
        format!("the port is a number from 1 to 65535; for example {name}:{usual}{rest}")
    })?;
    match &kind {
        ServiceKind::Http(directory) if !directory.is_dir() => Err(format!(
            "`{}` is not a directory; create it, or use another, for example http:{port}:/tmp",
            directory.display()
        )),
        _ => Ok(ServiceSpec { port, kind }),
    }
}

/// Both directions of a link.
#[derive(Clone, Debug)]
pub(crate) struct LinkPair {
    /// From the first end to the second.
    pub(crate) forth: LinkSpec,
    /// From the second end to the first.
    pub(crate) back: LinkSpec,
}

impl LinkPair {
    /// Returns this link, with the back direction of `other` if it is given.
    pub(crate) fn with_back(&self, other: Option<&Self>) -> Self {
        Self { forth: self.forth.clone(), back: other.unwrap_or(self).back.clone() }
    }
}

/// A list without duplicates.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Several<T>(pub(crate) Vec<T>);

impl<T: PartialEq> Several<T> {
    /// Appends the items that are not in the list yet.
    pub(crate) fn extend(&mut self, others: impl IntoIterator<Item = T>) {
        for one in others {
            if !self.0.contains(&one) {
                self.0.push(one);
            }
        }
    }
}

/// Parses `--with`.
pub(crate) fn several<T: FromStr<Err: Display> + PartialEq>(
    text: &str,
) -> Result<Several<T>, String> {
    const EXAMPLE: &str = "for example --with rack/cubic,sack/westwood,rack/cubic/dcr:timer";
    let mut list = Several(Vec::new());
    for one in text.split(',').map(str::trim) {
        if one.is_empty() {
            return Err(format!("expected combinations separated by commas; {EXAMPLE}"));
        }
        list.extend([one.parse().map_err(|error| format!("{error}; {EXAMPLE}"))?]);
    }
    Ok(list)
}

/// Parses a link in netem's syntax, or by name.
pub(crate) fn link(text: &str) -> Result<LinkPair, String> {
    if text.trim().is_empty() {
        return Err(
            "the link is empty: write a description, for example \"rate 10mbit delay 20ms \
                    loss 1%\", or a name, for example weak-4g"
                .to_owned(),
        );
    }
    let (forth, back) = airtcp_link::parse_pair(text).map_err(|error| {
        // A shell splits a description without quotes, so only its first word is here.
        let is_cut = error.offset == text.len() && !text.contains(char::is_whitespace);
        let hint = if is_cut { "; put a description of several words in quotes" } else { "" };
        format!("{error}{hint}")
    })?;
    Ok(LinkPair { forth, back })
}

/// Parses `--radio`.
pub(crate) fn radio(text: &str) -> Result<RadioSpec, String> {
    text.parse().map_err(|error: SpecError| error.to_string())
}

/// Parses `--arq`.
pub(crate) fn arq(text: &str) -> Result<Arq, String> {
    text.parse().map_err(|error| format!("{error}; for example --arq mac+link"))
}

/// Parses `--seconds`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.001..=1e7).contains(seconds));
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        "expected a number of seconds from 0.001 to 10000000, without a unit; for example 10"
            .to_owned()
    })
}

/// Parses `--from` and `--to`.
pub(crate) fn moment(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        "expected seconds since the start of the trace; for example --from 1.5".to_owned()
    })
}

/// Parses a whole number from `least` to `most`.
pub(crate) fn whole<T>(
    least: T,
    most: T,
    example: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text: &str| {
        let number = text.parse().ok().filter(|number: &T| (least..=most).contains(number));
        number.ok_or_else(|| {
            format!("expected a number from {least} to {most}; for example {example}")
        })
    }
}

/// Parses `--seeds`.
pub(crate) fn seeds(text: &str) -> Result<u32, String> {
    whole(1, 100_000, "--seeds 10")(text)
}

/// Parses `--seed`.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number, 0 or more; for example --seed 7".to_owned())
}

/// Parses `--threads`.
pub(crate) fn threads(text: &str) -> Result<NonZero<usize>, String> {
    let most = NonZero::new(1_024).unwrap_or(NonZero::<usize>::MIN);
    whole(NonZero::<usize>::MIN, most, "--threads 2")(text)
}

/// Parses `--connections`.
pub(crate) fn connections(text: &str) -> Result<usize, String> {
    whole(1, 1_000_000, "--connections 256")(text)
}

/// Parses `--size`.
pub(crate) fn size(text: &str) -> Result<ByteCount, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor: Option<u64> = match &text[digits..] {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        "kB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        _ => None,
    };
    let bytes = factor.zip(text[..digits].parse::<u64>().ok()).and_then(|(f, n)| n.checked_mul(f));
    bytes.map(ByteCount).filter(|bytes| (ByteCount(1)..=LARGEST).contains(bytes)).ok_or_else(|| {
        format!(
            "a size is 1 to {LARGEST} bytes, alone or with KiB, MiB, GiB, kB, MB or GB; for \
             example 64MiB"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(size("64MiB"), Ok(ByteCount::from_mib(64)));
        assert_eq!(size("3kB"), Ok(ByteCount(3_000)));
        assert_eq!(size("1"), Ok(ByteCount(1)));
        for bad in ["", "0", "MiB", "-1", "1.5MiB", "65GiB", "99999999999999999999", "1 MiB", "1é"]
        {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rrtp_is_no_strategy_and_its_commands_are_named() {
        for text in ["rrtp", "rrtp:wireless-last-hop+rate=2mbit"] {
            assert!(strategies(text).unwrap_err().contains("airtcp quickserve"), "{text}");
        }
        let unknown = strategies("rack/vega").unwrap_err();
        assert!(unknown.ends_with("for example --strategies rack/cubic/dcr:timer"), "{unknown}");
    }

    #[test]
    fn a_buffer_is_no_larger_than_the_memory_of_a_peer() {
        assert_eq!(buffer("64MiB"), Ok(ByteCount::from_mib(64)));
        assert_eq!(buffer("4KiB"), Ok(ByteCount::from_kib(4)));
        for bad in ["4095", "129MiB", "1GiB", "64M", ""] {
            let error = buffer(bad).unwrap_err();
            assert!(error.contains("4096 to 134217728 bytes"), "{bad}: {error}");
        }
    }

    #[test]
    fn services_are_read_and_mistakes_named() {
        assert_eq!(service("sink:9"), Ok(ServiceSpec { port: 9, kind: ServiceKind::Sink }));
        let error = |text: &str| service(text).unwrap_err();
        assert!(error("http:80").contains("http:80:/srv/www"));
        assert!(error("http:80:/no/such/place").contains("`/no/such/place` is not a directory"));
        assert!(error("http:0:/tmp").contains("for example http:80:/srv/www"));
        assert!(error("discard:9").contains("echo:PORT, sink:PORT, source:PORT or http:PORT:DIR"));
        assert!(error("echo:7:x").contains("for example echo:7"));
        assert!(error("echo").contains("1 to 65535"));
    }

    #[test]
    fn addresses_are_those_of_a_host() {
        assert_eq!(cidr("fd00::2/64").unwrap().to_string(), "fd00::2/64");
        for good in ["10.0.0.0/32", "10.0.0.0/31", "10.0.0.1/31", "10.0.1.0/16", "fd00::/64"] {
            assert!(cidr(good).is_ok(), "{good}");
        }
        for bad in [
            "10.0.0.0/24",
            "10.0.0.255/24",
            "0.0.0.0/0",
            "224.0.0.1/24",
            "127.0.0.1/8",
            "10.0.0/24",
            "10.0.0.1/-1",
            "10.0.0.1",
            "fd00::2",
        ] {
            assert!(cidr(bad).unwrap_err().contains("for example"), "{bad}");
        }
    }
}
