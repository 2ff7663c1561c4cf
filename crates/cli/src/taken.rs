//! Checks addresses and networks against those of the kernel, so that a new device does not take
//! them over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airtcp_stack::host::Cidr;
use airtcp_testbed::{Cidr as KernelCidr, Interface};
use anyhow::bail;

use crate::device::{KernelSide, neighbour};

/// Checks that none of a stack's `own` addresses belongs to the kernel.
///
/// # Errors
/// One does; the text suggests another.
pub(crate) fn check_addresses(own: &[Cidr], there: &[Interface]) -> anyhow::Result<()> {
    for cidr in own {
        let address = cidr.address();
        let Some(name) = holder(address, there) else { continue };
        let all: Vec<_> = there.iter().flat_map(networks).chain(own.iter().copied()).collect();
        let other = neighbour(*cidr, &all).map_or_else(
            || free(address.is_ipv4(), &all),
            |address| format!("{address}/{}", cidr.prefix_len()),
        );
        bail!("{address} is the kernel's address on {name}: choose another, such as {other}");
    }
    Ok(())
}

/// Checks that the kernel's `side` of a new device overlaps no network of another interface, and
/// that none of the stack's `own` addresses belongs to the kernel.
///
/// # Errors
/// One does; the text suggests a free network.
pub(crate) fn check_networks(
    side: &KernelSide,
    own: &[Cidr],
    there: &[Interface],
) -> anyhow::Result<()> {
    let all: Vec<_> = there.iter().flat_map(networks).chain(own.iter().copied()).collect();
    for new in side.addresses.iter().filter_map(stack_cidr) {
        // Every interface has the link-local network.
        if is_link_local(new.address()) {
            continue;
        }
        for interface in there {
            let Some(old) = networks(interface).find(|old| overlap(*old, new)) else { continue };
            bail!(
                "{} is in use on {}: choose another network, such as {}",
                network(old),
                interface.name,
                free(new.address().is_ipv4(), &all)
            );
        }
    }
    check_addresses(own, there)
}

/// Returns whether an address is link-local (RFC 4291 section 2.5.6).
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn holder(address: IpAddr, there: &[Interface]) -> Option<&str> {
    let has = |one: &&Interface| one.addresses.iter().any(|own| own.address == address);
    there.iter().find(has).map(|one| one.name.as_str())
}

fn networks(interface: &Interface) -> impl Iterator<Item = Cidr> {
    interface.addresses.iter().filter_map(stack_cidr)
}

fn stack_cidr(cidr: &KernelCidr) -> Option<Cidr> {
    Cidr::new(cidr.address, cidr.prefix).ok()
}

fn overlap(one: Cidr, other: Cidr) -> bool {
    one.contains(other.address()) || other.contains(one.address())
}

/// Formats the network, with the host bits cleared.
fn network(cidr: Cidr) -> String {
    let length = u32::from(cidr.prefix_len());
    let address: IpAddr = match cidr.address() {
        IpAddr::V4(own) => {
            let hosts = u32::MAX.checked_shr(length).unwrap_or(0);
            Ipv4Addr::from_bits(own.to_bits() & !hosts).into()
        }
        IpAddr::V6(own) => {
            let hosts = u128::MAX.checked_shr(length).unwrap_or(0);
            Ipv6Addr::from_bits(own.to_bits() & !hosts).into()
        }
    };
    format!("{address}/{length}")
}

/// Returns an address in a private network that overlaps none of `taken`; if all do, in the first
/// one.
fn free(is_ipv4: bool, taken: &[Cidr]) -> String {
    let candidate = |n: u8| -> Cidr {
        let (address, prefix) = match is_ipv4 {
            true => (Ipv4Addr::new(10, 0, n, 2).into(), 24),
            false => (Ipv6Addr::new(0xfd00, 0, 0, n.into(), 0, 0, 0, 2).into(), 64),
        };
        Cidr::new(address, prefix).expect("a host's address")
    };
    let is_free = |cidr: &Cidr| !taken.iter().any(|other| overlap(*cidr, *other));
    let found = (0..=u8::MAX).map(candidate).find(is_free).unwrap_or_else(|| candidate(0));
    format!("{}/{}", found.address(), found.prefix_len())
}

#[cfg(test)]
mod tests {
    use super::*;

    // In the format of `ip -br addr`.
    fn machine() -> Vec<Interface> {
        let lines = [
            "lo UNKNOWN 127.0.0.1/8 ::1/128",
            "eth0 UP 192.168.1.10/24 fe80::1/64 2001:db8:1::10/64",
            "tun0 UP 10.0.0.1/24 fd00::1/64 fe80::2/64",
            "wg0 UP 10.8.3.4/32",
        ];
        let interface = |line: &str| {
            let mut words = line.split(' ');
            let mut interface = Interface::default();
            interface.name = words.next().unwrap().to_owned();
            interface.is_up = words.next() == Some("UP");
            interface.addresses = words.map(|word| word.parse().unwrap()).collect();
            interface
        };
        lines.map(interface).into()
    }

    fn new_device(own: &str, gateways: &[&str]) -> Result<(), String> {
        let own: Vec<Cidr> = own.split(' ').map(|text| text.parse().unwrap()).collect();
        let gateways: Vec<_> = gateways.iter().map(|text| text.parse().unwrap()).collect();
        let side = KernelSide::of(&own, &gateways);
        check_networks(&side, &own, &machine()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_network_of_another_interface_is_not_taken() {
        for (own, refused) in [
            (
                "192.168.1.201/24",
                "192.168.1.0/24 is in use on eth0: choose another network, such as 10.0.1.2/24",
            ),
            (
                "10.0.0.3/24",
                "10.0.0.0/24 is in use on tun0: choose another network, such as 10.0.1.2/24",
            ),
            // A larger and a smaller network.
            (
                "192.168.0.2/16",
                "192.168.1.0/24 is in use on eth0: choose another network, such as 10.0.1.2/24",
            ),
            (
                "10.0.0.65/28",
                "10.0.0.0/24 is in use on tun0: choose another network, such as 10.0.1.2/24",
            ),
            (
                "10.8.3.9/24",
                "10.8.3.4/32 is in use on wg0: choose another network, such as 10.0.1.2/24",
            ),
            (
                "fd00::5/64",
                "fd00::/64 is in use on tun0: choose another network, such as fd00:0:0:1::2/64",
            ),
            // One of two overlaps, and neither is suggested.
            (
                "10.0.1.2/24 127.0.0.2/8",
                "127.0.0.0/8 is in use on lo: choose another network, such as 10.0.2.2/24",
            ),
        ] {
            assert_eq!(new_device(own, &[]).unwrap_err(), refused, "{own}");
        }
        // The router of another network.
        let router = new_device("10.7.0.2/32", &["192.168.1.1"]).unwrap_err();
        assert!(router.starts_with("192.168.1.0/24 is in use on eth0"), "{router}");
    }

    #[test]
    fn a_free_network_is_accepted() {
        for own in
            ["10.0.1.2/24", "192.168.2.1/24 fd00:0:0:1::2/64", "fe80::9/64", "192.168.1.201/32"]
        {
            assert_eq!(new_device(own, &[]), Ok(()), "{own}");
        }
    }

    #[test]
    fn an_address_of_the_kernels_is_not_ours() {
        let check = |own: &str| {
            let refused = check_addresses(&[own.parse().unwrap()], &machine());
            refused.map_err(|error| error.to_string())
        };
        assert_eq!(
            check("10.0.0.1/24").unwrap_err(),
            "10.0.0.1 is the kernel's address on tun0: choose another, such as 10.0.0.2/24"
        );
        assert_eq!(
            check("10.8.3.4/32").unwrap_err(),
            "10.8.3.4 is the kernel's address on wg0: choose another, such as 10.0.1.2/24"
        );
        assert_eq!(check("10.0.0.2/24"), Ok(()));
        let own = new_device("10.8.3.4/32", &[]).unwrap_err();
        assert!(own.starts_with("10.8.3.4 is the kernel's address on wg0"), "{own}");
    }
}
