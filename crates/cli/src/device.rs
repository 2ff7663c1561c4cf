//! Opens TUN devices, and configures the kernel's side of new ones.

use std::fmt::Display;
use std::net::IpAddr;

use airtcp_device::{DeviceError, TunFile, TunOptions};
use airtcp_stack::host::Cidr;
use airtcp_testbed::{Cidr as KernelCidr, here};
use airtcp_types::ByteCount;
use anyhow::{Context, anyhow, bail};

use crate::output;

/// A device that is ready for use.
pub(crate) struct Opened {
    /// One file per queue.
    pub(crate) files: Vec<TunFile>,
    /// The largest packet that fits the device.
    pub(crate) mtu: ByteCount,
    /// Whether this call created the device.
    pub(crate) is_new: bool,
}

/// Opens the TUN device `name` with `queues` queues, and with offload if `offload` is set and the
/// kernel supports it. A new device is set to `mtu`; an existing one must have at least that MTU.
///
/// # Errors
/// The device cannot be opened, or has a smaller MTU.
pub(crate) fn open(
    name: &str,
    mtu: Option<u16>,
    offload: bool,
    queues: u16,
) -> anyhow::Result<Opened> {
    let is_new = !exists(name);
    let multi_queue = queues > 1;
    // The kernel would attach a further queue and direct a part of the other program's flows to it.
    if multi_queue && !is_new && here::queues(name)? > 0 {
        return Err(DeviceError::Busy { name: name.to_owned() }.into());
    }
    let files = with_offload_if_possible(name, offload, |offload| {
        let options = TunOptions { offload, multi_queue };
        (0..queues).map(|_| TunFile::open_with(name, options)).collect::<Result<Vec<_>, _>>()
    });
    let files = files.map_err(explain)?;
    let tun = files.first().context("a device without a queue")?;
    if let Some(mtu) = mtu.map(usize::from) {
        if is_new {
            tun.set_mtu(mtu).with_context(|| format!("setting the MTU of {name} to {mtu}"))?;
        } else if mtu > tun.mtu()? {
            bail!(
                "--mtu {mtu} is more than the MTU of {name}, which is {}; for example: ip link set \
                 {name} mtu {mtu}",
                tun.mtu()?
            );
        }
    }
    let mtu = ByteCount::from(mtu.map_or_else(|| tun.mtu(), |mtu| Ok(mtu.into()))?);
    Ok(Opened { files, mtu, is_new })
}

/// Calls `open`, with offload if that is wanted. If it fails with offload and succeeds without, a
/// note says so.
///
/// # Errors
/// Those of `open` without offload.
pub(crate) fn with_offload_if_possible<T, E: Display>(
    name: &str,
    offload: bool,
    open: impl Fn(bool) -> Result<T, E>,
) -> Result<T, E> {
    let refused = match open(offload) {
        Err(refused) if offload => refused,
        opened => return opened,
    };
    let opened = open(false)?;
    tracing::info!(name, %refused, "opened without offload");
    output::note(format_args!(
        "note: {name} is open without offload, which the kernel does not support"
    ));
    Ok(opened)
}

/// Explains an error in opening a device, if a flag of this command is involved.
fn explain(error: DeviceError) -> anyhow::Error {
    match error {
        DeviceError::SingleQueue { name } => anyhow!(
            "the TUN device {name} has a single queue: omit --queues, or choose another name: a device \
             created by this command gets enough queues (with `ip tuntap add`: multi_queue)"
        ),
        DeviceError::MultiQueue { name } => anyhow!(
            "the TUN device {name} has several queues, which needs `airtcp serve` with --queues 2 or more; \
             or choose another name"
        ),
        other => other.into(),
    }
}

/// Configuration that the kernel needs on a new device to exchange packets with the stack.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct KernelSide {
    /// The kernel's addresses on the device.
    pub(crate) addresses: Vec<KernelCidr>,
    /// Further destinations that the kernel routes to the device.
    routes: Vec<KernelCidr>,
}

impl KernelSide {
    /// Returns the configuration for a stack with these addresses. Without a gateway the kernel
    /// gets the first free address of the network; if there is none, only a route.
    pub(crate) fn of(own: &[Cidr], gateways: &[IpAddr]) -> Self {
        let mut side = Self::default();
        for cidr in own {
            let (address, prefix) = (cidr.address(), cidr.prefix_len());
            let longest = if address.is_ipv4() { 32 } else { 128 };
            let gateway = gateways.iter().find(|gateway| gateway.is_ipv4() == address.is_ipv4());
            let (kernel, route) = match gateway.copied() {
                Some(gateway) if cidr.contains(gateway) => (Some((gateway, prefix)), None),
                Some(gateway) => (Some((gateway, longest)), Some(address)),
                None => match neighbour(*cidr, own) {
                    Some(neighbour) => (Some((neighbour, prefix)), None),
                    None => (None, Some(address)),
                },
            };
            let kernel = kernel.map(|(address, prefix)| KernelCidr { address, prefix });
            let route = route.map(|address| KernelCidr { address, prefix: longest });
            side.addresses.extend(kernel.filter(|new| !side.addresses.contains(new)));
            side.routes.extend(route);
        }
        side
    }

    /// A route to `address` alone.
    pub(crate) fn with_route(address: IpAddr) -> Self {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        Self { routes: vec![KernelCidr { address, prefix }], ..Self::default() }
    }

    /// Configures the device `name` and sets it up.
    ///
    /// # Errors
    /// The kernel refuses; the text says what to type.
    pub(crate) async fn apply(&self, name: &str) -> anyhow::Result<()> {
        tracing::info!(name, kernel = %self.commands(name), "setting up the new device");
        here::configure(name, &self.addresses, &self.routes).await.with_context(|| {
            format!(
                "{name} was created, but could not be configured as by `{}`",
                self.commands(name)
            )
        })
    }

    /// Returns the text that says how to configure the device `name` by hand.
    pub(crate) fn advice(&self, name: &str) -> String {
        format!(
            "{name} is new and has no address (--gateway sets one); type: {}",
            self.commands(name)
        )
    }

    pub(crate) fn commands(&self, name: &str) -> String {
        let addresses = self.addresses.iter().map(|cidr| format!("ip addr add {cidr} dev {name}"));
        // The kernel accepts routes only on a link that is up, but addresses on any.
        let up = std::iter::once(format!("ip link set {name} up"));
        let routes =
            self.routes.iter().map(|cidr| format!("ip route add {} dev {name}", cidr.address));
        addresses.chain(up).chain(routes).collect::<Vec<_>>().join(" && ")
    }
}

/// Returns the first host address of the network that is none of the stack's `own`.
pub(crate) fn neighbour(cidr: Cidr, own: &[Cidr]) -> Option<IpAddr> {
    let length = u32::from(cidr.prefix_len());
    let is_free = |address: &IpAddr| {
        cidr.contains(*address) && !own.iter().any(|cidr| cidr.address() == *address)
    };
    // One more than the addresses to avoid.
    let hosts = 1..=own.len() as u32 + 1;
    match cidr.address() {
        IpAddr::V4(own) if length < 31 => {
            let hosts_mask = u32::MAX >> length;
            let network = own.to_bits() & !hosts_mask;
            let hosts = hosts.filter(|host| *host < hosts_mask);
            hosts.map(|host| IpAddr::V4((network | host).into())).find(is_free)
        }
        IpAddr::V6(own) if length < 127 => {
            let network = own.to_bits() & !(u128::MAX >> length);
            hosts.map(|host| IpAddr::V6((network | u128::from(host)).into())).find(is_free)
        }
        _ => None,
    }
}

/// Returns whether a device of that name exists.
pub(crate) fn exists(name: &str) -> bool {
    // In this thread's network namespace, which /sys need not show.
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    table.lines().any(|line| line.split_once(':').is_some_and(|(device, _)| device.trim() == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(addresses: &[&str], gateways: &[&str]) -> String {
        let addresses: Vec<Cidr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let gateways: Vec<IpAddr> = gateways.iter().map(|text| text.parse().unwrap()).collect();
        let text = KernelSide::of(&addresses, &gateways).advice("tun0");
        text.split_once("type: ").unwrap().1.to_owned()
    }

    #[test]
    fn a_device_that_refuses_offload_is_opened_without() {
        let plain_only = |offload| if offload { Err("no offload") } else { Ok(offload) };
        for wanted in [true, false] {
            assert_eq!(with_offload_if_possible("tun0", wanted, plain_only), Ok(false));
            assert_eq!(with_offload_if_possible("tun0", wanted, Ok::<_, &str>), Ok(wanted));
            let never = |offload| Err::<(), _>(offload);
            assert_eq!(with_offload_if_possible("tun0", wanted, never), Err(false));
        }
    }

    #[test]
    fn the_kernel_gets_the_first_free_address() {
        assert_eq!(
            advice(&["10.0.0.2/24", "fd00::1/64"], &[]),
            "ip addr add 10.0.0.1/24 dev tun0 && ip addr add fd00::2/64 dev tun0 && ip link set \
             tun0 up"
        );
    }

    #[test]
    fn an_address_alone_gets_a_route() {
        assert_eq!(
            advice(&["10.0.0.2/32", "fd00::2/64"], &[]),
            "ip addr add fd00::1/64 dev tun0 && ip link set tun0 up && ip route add 10.0.0.2 dev \
             tun0"
        );
    }

    #[test]
    fn no_address_of_the_stack_is_given_away() {
        assert_eq!(
            advice(&["10.0.0.1/24", "10.0.0.2/24"], &[]),
            "ip addr add 10.0.0.3/24 dev tun0 && ip link set tun0 up"
        );
        // Both hosts of the network belong to the stack.
        assert_eq!(
            advice(&["10.0.0.1/30", "10.0.0.2/30"], &[]),
            "ip link set tun0 up && ip route add 10.0.0.1 dev tun0 && ip route add 10.0.0.2 dev tun0"
        );
    }

    #[test]
    fn a_gateway_is_the_kernels_address_in_the_network_or_out_of_it() {
        assert_eq!(
            advice(&["10.0.0.2/24", "fd00::2/64"], &["10.0.0.254"]),
            "ip addr add 10.0.0.254/24 dev tun0 && ip addr add fd00::1/64 dev tun0 && ip link set \
             tun0 up"
        );
        assert_eq!(
            advice(&["10.0.0.2/32"], &["192.0.2.1"]),
            "ip addr add 192.0.2.1/32 dev tun0 && ip link set tun0 up && ip route add 10.0.0.2 dev \
             tun0"
        );
    }

    #[test]
    fn loopback_is_there_and_nonsense_is_not() {
        assert!(exists("lo"));
        assert!(!exists("no-such-device"));
    }
}
