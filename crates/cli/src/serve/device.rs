//! The TUN device of `serve`, and how the kernel gets to use it.

use std::net::IpAddr;

use airtcp_device::{Device, Tun};
use airtcp_stack::host::Cidr;
use airtcp_types::ByteCount;
use anyhow::{Context, bail};

/// A device that is ready to be used.
pub(super) struct Opened {
    pub(super) tun: Tun,
    /// The longest packet that goes through it.
    pub(super) mtu: ByteCount,
    /// There was none of that name before.
    pub(super) is_new: bool,
}

/// Opens the TUN device `name`. A new one gets the MTU asked for; on one that was there, it has to
/// fit.
///
/// # Errors
/// It cannot be opened, or has a smaller MTU.
pub(super) fn open(name: &str, mtu: Option<u16>) -> anyhow::Result<Opened> {
    let is_new = !exists(name);
    let mut tun = Tun::open(name)?;
    if let Some(mtu) = mtu.map(usize::from) {
        if is_new {
            tun.set_mtu(mtu).with_context(|| format!("setting the MTU of {name} to {mtu}"))?;
        } else if mtu > tun.mtu() {
            bail!(
                "--mtu {mtu} is more than the MTU of {name}, which is {}; for example: ip link set \
                 {name} mtu {mtu}",
                tun.mtu()
            );
        }
    }
    let mtu = ByteCount::from(mtu.map_or_else(|| tun.mtu(), usize::from));
    Ok(Opened { tun, mtu, is_new })
}

/// What to type so that the kernel reaches the stack's `addresses` through the new device `name`.
pub(super) fn how_to_reach(name: &str, addresses: &[Cidr]) -> String {
    let mut commands: Vec<String> = Vec::new();
    for cidr in addresses {
        commands.push(match neighbour(*cidr) {
            Some(address) => format!("ip addr add {address}/{} dev {name}", cidr.prefix_len()),
            None => format!("ip route add {} dev {name}", cidr.address()),
        });
    }
    // A route needs a link that is up, an address does not mind.
    commands.sort_by_key(|command| command.starts_with("ip route"));
    let routes = commands.iter().filter(|command| command.starts_with("ip route")).count();
    commands.insert(commands.len() - routes, format!("ip link set {name} up"));
    format!("{name} is new and has no address yet; type: {}", commands.join(" && "))
}

/// The first address of the network that a host may have and that is not ours.
fn neighbour(cidr: Cidr) -> Option<IpAddr> {
    let length = u32::from(cidr.prefix_len());
    match cidr.address() {
        IpAddr::V4(own) if length < 31 => {
            let network = own.to_bits() & !(u32::MAX >> length);
            let first =
                (1..=2).map(|host| network | host).find(|address| *address != own.to_bits());
            first.map(|address| IpAddr::V4(address.into()))
        }
        IpAddr::V6(own) if length < 127 => {
            let network = own.to_bits() & !(u128::MAX >> length);
            let first =
                (1..=2).map(|host| network | host).find(|address| *address != own.to_bits());
            first.map(|address| IpAddr::V6(address.into()))
        }
        _ => None,
    }
}

/// Whether there is a device of that name.
pub(crate) fn exists(name: &str) -> bool {
    // Of this thread's namespace, which /sys need not show.
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    table.lines().any(|line| line.split_once(':').is_some_and(|(device, _)| device.trim() == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(addresses: &[&str]) -> String {
        let addresses: Vec<Cidr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let text = how_to_reach("tun0", &addresses);
        text.split_once("type: ").unwrap().1.to_owned()
    }

    #[test]
    fn the_kernel_gets_the_first_free_address() {
        assert_eq!(
            advice(&["10.0.0.2/24", "fd00::1/64"]),
            "ip addr add 10.0.0.1/24 dev tun0 && ip addr add fd00::2/64 dev tun0 && ip link set \
             tun0 up"
        );
    }

    #[test]
    fn an_address_alone_gets_a_route() {
        assert_eq!(
            advice(&["10.0.0.2/32", "fd00::2/64"]),
            "ip addr add fd00::1/64 dev tun0 && ip link set tun0 up && ip route add 10.0.0.2 dev \
             tun0"
        );
    }

    #[test]
    fn loopback_is_there_and_nonsense_is_not() {
        assert!(exists("lo"));
        assert!(!exists("no-such-device"));
    }
}
