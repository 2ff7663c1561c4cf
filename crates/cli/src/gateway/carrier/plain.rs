//! `--carrier tun`: unencrypted packets, through a TUN device that the kernel routes to the link.

use std::net::IpAddr;

use airtcp_device::TunFile;
use airtcp_stack::host::Cidr;
use airtcp_testbed::here;
use anyhow::Context;

use crate::device::{self, KernelSide};
use crate::{output, taken};

/// The default MTU: that of Ethernet.
const MTU: u16 = 1500;

/// The TUN device of a plain carrier, and the address of the stack behind it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plain {
    pub(crate) device: String,
    pub(crate) address: Cidr,
    pub(crate) mtu: u16,
}

impl Plain {
    pub(crate) fn new(device: String, address: Cidr, mtu: Option<u16>) -> Self {
        Self { device, address, mtu: mtu.unwrap_or(MTU) }
    }

    /// The kernel settings that route packets for the stack to the device.
    fn kernel_side(&self) -> KernelSide {
        KernelSide::with_route(self.address.address())
    }

    /// Returns the equivalent `ip` commands, one per line.
    pub(crate) fn commands(&self) -> String {
        let Self { device, mtu, .. } = self;
        let side = self.kernel_side().commands(device).replace(" && ", "\n");
        format!("ip tuntap add dev {device} mode tun\nip link set dev {device} mtu {mtu}\n{side}")
    }

    /// Opens the device. A new device is set up and gets a route to the stack. Offloading is off,
    /// because it hides damaged payloads, which HACK needs.
    ///
    /// # Errors
    /// The device cannot be opened, or the kernel has the stack's address.
    pub(crate) async fn open(&self) -> anyhow::Result<TunFile> {
        let name = &self.device;
        taken::check_addresses(&[self.address], &here::interfaces()?)
            .context("--address is to be of no device")?;
        let opened = device::open(name, Some(self.mtu), false, 1)
            .with_context(|| format!("--carrier tun:{name}"))?;
        if opened.is_new {
            self.kernel_side().apply(name).await?;
        }
        if let Some(key) = self.unset_forwarding() {
            output::note(format_args!(
                "note: the kernel does not forward packets between {name} and the link; type: sysctl -w {key}=1"
            ));
        }
        opened.files.into_iter().next().context("a device without a queue")
    }

    /// Returns the sysctl to set if the kernel does not forward.
    fn unset_forwarding(&self) -> Option<&'static str> {
        let (family, key) = match self.address.address() {
            IpAddr::V4(_) => ("ipv4", "net.ipv4.ip_forward"),
            IpAddr::V6(_) => ("ipv6", "net.ipv6.conf.all.forwarding"),
        };
        let path = format!("/proc/sys/net/{family}/conf/{}/forwarding", self.device);
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "0").then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_make_the_device_and_the_route_to_the_stack() {
        for (address, route) in [("10.77.0.2/24", "10.77.0.2"), ("fd77::2/64", "fd77::2")] {
            let plain = Plain::new("tun7".to_owned(), address.parse().unwrap(), Some(1400));
            let expected = [
                "ip tuntap add dev tun7 mode tun",
                "ip link set dev tun7 mtu 1400",
                "ip link set tun7 up",
                &format!("ip route add {route} dev tun7"),
            ];
            assert_eq!(plain.commands().lines().collect::<Vec<_>>(), expected);
        }
    }
}
