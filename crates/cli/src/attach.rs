//! The flags of all commands with a stack on a TUN device, and how they open the device.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_device::TunFile;
use airtcp_recovery::{Combination, SenderConfig};
use airtcp_stack::HostConfig;
use airtcp_stack::host::Cidr;
use airtcp_stack::tcp::{EcnMode, KeepAlive, TcpConfig};
use airtcp_testbed::here;
use airtcp_types::ByteCount;
use airtcp_wire::options::HackForm;
use anyhow::Context;
use clap::Args;

use crate::args::SenderArgs;
use crate::device::{KernelSide, Opened};
use crate::{device, output, taken, value};

/// Keep-alive of every connection: probes a peer that has been silent for 30 s.
const ASKED: KeepAlive =
    KeepAlive { idle: Duration::from_secs(30), interval: Duration::from_secs(10), probes: 6 };

/// Options of every command with a stack on a TUN device.
#[derive(Args, Debug)]
pub(crate) struct AttachArgs {
    /// TUN device; it is created if it does not exist, and then removed at exit
    #[arg(long, value_name = "NAME", value_parser = value::tun)]
    pub(crate) tun: String,
    /// Address of this stack with its prefix length; repeat for more addresses
    #[arg(long, value_name = "CIDR", required = true, value_parser = value::cidr)]
    pub(crate) address: Vec<Cidr>,
    /// Address of the kernel on a device that this command creates; once per IP version. The stack
    /// sends all packets to the kernel, which forwards them if IP forwarding is enabled
    #[arg(long, value_name = "IP", value_parser = value::gateway)]
    pub(crate) gateway: Vec<IpAddr>,
    /// Largest IP packet in bytes [default: the MTU of the device]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = value::mtu)]
    pub(crate) mtu: Option<u16>,
    #[command(flatten)]
    pub(crate) buffers: BufferArgs,
    /// Disable segmentation and checksum offload: exchange packets of MTU size with complete
    /// checksums. Offload is faster: super-segments of up to 64 KiB, which the kernel segments. The
    /// judge hack disables offload by itself; a receiver of HACK also needs `--judge hack`
    #[arg(long)]
    pub(crate) no_offload: bool,
    /// Explicit congestion notification: off; passive, accept ECN (RFC 3168) if the peer requests
    /// it; active, request ECN; accurate, request AccECN (RFC 9768), which counts marks exactly,
    /// and fall back to ECN. passive-accurate and active-accurate are passive and active, and also
    /// accept AccECN if the peer requests it
    #[arg(long, value_name = "MODE", default_value = "passive", value_parser = value::ecn)]
    pub(crate) ecn: EcnMode,
    /// Exchange super-segments with the kernel, which is the default
    #[arg(long, hide = true, conflicts_with = "no_offload")]
    pub(crate) offload: bool,
    /// Control socket for `airtcp ss` [default of serve: a path that `airtcp ss` finds]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sender: SenderArgs,
}

/// The buffers of each connection.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(crate) struct BufferArgs {
    /// Maximum size of the send buffer of a connection, which limits the data in flight: a flow
    /// carries at most this per round trip, and about half of it while it repairs losses [default:
    /// 16MiB]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = value::buffer)]
    pub(crate) send_buffer: Option<ByteCount>,
    /// Maximum size of the receive buffer of a connection, which limits what the peer has in flight
    /// [default: 16MiB]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = value::buffer)]
    pub(crate) receive_buffer: Option<ByteCount>,
}

impl BufferArgs {
    /// Sets the sizes that the command line gives.
    fn set(self, tcp: &mut TcpConfig) {
        tcp.send_buffer = self.send_buffer.unwrap_or(tcp.send_buffer);
        tcp.receive_buffer = self.receive_buffer.unwrap_or(tcp.receive_buffer);
    }
}

impl AttachArgs {
    /// Settings of a device with these addresses, and the defaults otherwise.
    pub(crate) fn of(
        tun: String,
        address: Vec<Cidr>,
        gateway: Vec<IpAddr>,
        strategies: Option<Combination>,
    ) -> Self {
        let sender = SenderArgs::of(strategies);
        let (no_offload, offload, ecn) = (false, false, EcnMode::default());
        let (mtu, control, buffers) = (None, None, BufferArgs::default());
        Self { tun, address, gateway, mtu, buffers, no_offload, ecn, offload, control, sender }
    }

    /// Checks the options against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (index, cidr) in self.address.iter().enumerate() {
            let address = cidr.address();
            if self.address[..index].iter().any(|other| other.address() == address) {
                return Err(format!(
                    "--address {address} is given twice: remove one; for example --address \
                     10.0.0.2/24 --address fd00::2/64"
                ));
            }
        }
        for (index, gateway) in self.gateway.iter().enumerate() {
            let same = |other: &IpAddr| other.is_ipv4() == gateway.is_ipv4();
            let version = if gateway.is_ipv4() { "IPv4" } else { "IPv6" };
            let why = if self.gateway[..index].iter().any(same) {
                format!(
                    "is a second one of {version}: the kernel needs one address of each version"
                )
            } else if self.address.iter().any(|cidr| cidr.address() == *gateway) {
                "is this stack's own --address: the kernel needs another".to_owned()
            } else if !self.address.iter().any(|cidr| same(&cidr.address())) {
                format!("requires an --address of {version}")
            } else {
                continue;
            };
            return Err(format!(
                "--gateway {gateway} {why}; for example --address 10.0.0.2/24 --gateway 10.0.0.1"
            ));
        }
        if self.offload && needs_plain_packets(&self.sender) {
            return Err(
                "--offload cannot be used with the judge hack: an offloading device hides checksum errors, so that \
                 HACK never sees corrupted packets; remove one of them"
                    .to_owned(),
            );
        }
        // RFC 8200 section 5: IPv6 needs links of at least 1280 bytes.
        let has_ipv6 = self.address.iter().any(|cidr| cidr.address().is_ipv6());
        match self.mtu {
            Some(mtu) if has_ipv6 && mtu < 1280 => Err(format!(
                "--mtu {mtu} is too small for an IPv6 address, which needs 1280 or more; for \
                 example --mtu 1500"
            )),
            _ => Ok(()),
        }
    }

    /// Opens the device with one queue, and returns the settings of a host on it.
    ///
    /// # Errors
    /// As [`open_queues`](Self::open_queues).
    pub(crate) fn open(&self) -> anyhow::Result<(TunFile, HostConfig, bool)> {
        let (files, config, is_new) = self.open_queues(1)?;
        let file = files.into_iter().next().context("a device without a queue")?;
        Ok((file, config, is_new))
    }

    /// Opens the device with `queues` queues, and returns them, the settings of a host on it, and
    /// whether the device is new.
    ///
    /// # Errors
    /// An address belongs to the kernel, or the network of a new device belongs to another
    /// interface; the device cannot be opened, or has a smaller MTU; the strategies cannot be
    /// combined.
    pub(crate) fn open_queues(
        &self,
        queues: u16,
    ) -> anyhow::Result<(Vec<TunFile>, HostConfig, bool)> {
        let there = here::interfaces()?;
        if device::exists(&self.tun) {
            taken::check_addresses(&self.address, &there)?;
            if !self.gateway.is_empty() {
                let name = &self.tun;
                output::note(format_args!(
                    "note: --gateway has no effect on {name}, which existed already"
                ));
            }
        } else {
            taken::check_networks(&self.kernel_side(), &self.address, &there)?;
        }
        let offload = self.offloads();
        if !(offload || self.no_offload) {
            output::note(format_args!("note: {} is open without offload, for HACK", self.tun));
        }
        let Opened { files, mtu, is_new } = device::open(&self.tun, self.mtu, offload, queues)?;
        Ok((files, self.config(mtu)?, is_new))
    }

    /// Returns whether the device is opened with offload.
    fn offloads(&self) -> bool {
        !self.no_offload && !needs_plain_packets(&self.sender)
    }

    /// Returns the settings of a host on a device with this MTU. TCP segments use all of it.
    fn config(&self, mtu: ByteCount) -> anyhow::Result<HostConfig> {
        let mut config = host_config(self.address.iter().copied(), &self.sender)?;
        config.mtu = mtu;
        config.tcp.mtu = u16::try_from(mtu.0).unwrap_or(u16::MAX);
        config.tcp.keep_alive = Some(ASKED);
        config.tcp.ecn = self.ecn;
        self.buffers.set(&mut config.tcp);
        Ok(config)
    }

    /// Returns the addresses and routes of the kernel on a new device.
    pub(crate) fn kernel_side(&self) -> KernelSide {
        KernelSide::of(&self.address, &self.gateway)
    }

    /// Returns what an existing device lacks, with the commands that set it up; `None` if it lacks
    /// nothing.
    ///
    /// # Errors
    /// The kernel does not list its interfaces.
    pub(crate) fn lack(&self) -> anyhow::Result<Option<Lack>> {
        let name = &self.tun;
        let Some(device) = here::interfaces()?.into_iter().find(|one| one.name == *name) else {
            return Ok(None);
        };
        let has_address = device.addresses.iter().any(|own| !taken::is_link_local(own.address));
        let what = match (device.is_up, has_address) {
            (true, true) => return Ok(None),
            (false, _) => "is down",
            (true, false) => "has no address",
        };
        let todo = self.kernel_side().commands(name);
        let text = format!("{name} existed already and {what}; type: {todo}");
        Ok(Some(Lack { is_down: !device.is_up, text }))
    }
}

/// A deficiency of an existing device.
pub(crate) struct Lack {
    /// Whether the device is down, so that no packet passes. Otherwise it only has no address, and
    /// the user may have routes of their own.
    pub(crate) is_down: bool,
    /// The deficiency and the commands that correct it.
    pub(crate) text: String,
}

/// Returns whether the strategies need a device without offload: an offloading device reports
/// checksums as valid, so that HACK never sees a corrupted packet.
pub(crate) fn needs_plain_packets(sender: &SenderArgs) -> bool {
    sender.combination().is_ok_and(|asked| asked.needs().hack)
}

/// Returns the settings of a host from the command line.
///
/// # Errors
/// The strategies cannot be combined.
pub(crate) fn host_config(
    addresses: impl IntoIterator<Item = Cidr>,
    sender: &SenderArgs,
) -> anyhow::Result<HostConfig> {
    let mut config = HostConfig::new(addresses);
    config.tcp.sender = SenderConfig {
        combination: sender.combination()?,
        profile: sender.profile.clone(),
        pacing: sender.pacing,
        ..SenderConfig::default()
    };
    if sender.hack_exid {
        config.tcp.hack_form = HackForm::ExId;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use airtcp_stack::tcp::Offer;
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        sender: SenderArgs,
    }

    #[test]
    fn hack_is_offered_if_a_judge_needs_it_in_the_form_of_the_flag() {
        let form = |line: &str| {
            let line = Line::try_parse_from(line.split(' ')).unwrap();
            let tcp = host_config([], &line.sender).unwrap().tcp;
            assert_eq!(tcp.hack, Offer::IfNeeded);
            (tcp.sender.combination.needs().hack, tcp.hack_form)
        };
        assert_eq!(form("serve --judge hack"), (true, HackForm::Kinds));
        assert_eq!(form("serve --judge hack --hack-exid"), (true, HackForm::ExId));
        assert_eq!(form("serve --hack-exid"), (false, HackForm::ExId));
    }

    #[derive(Parser, Debug)]
    struct Attached {
        #[command(flatten)]
        attach: AttachArgs,
    }

    fn attach(line: &str) -> AttachArgs {
        let line = format!("get --tun tun0 {line}");
        Attached::try_parse_from(line.split_whitespace()).unwrap().attach
    }

    fn refused(line: &str) -> String {
        attach(line).check().unwrap_err()
    }

    #[test]
    fn every_connection_has_keep_alive() {
        let config = attach("--address 10.0.0.2/24").config(ByteCount(1500)).unwrap();
        assert_eq!(config.tcp.keep_alive, Some(ASKED));
    }

    #[test]
    fn segments_are_as_large_as_the_device_takes() {
        for (mtu, segment) in [(1400, 1400), (9000, 9000), (65_536, u16::MAX)] {
            let config = attach("--address 10.0.0.2/24").config(ByteCount(mtu)).unwrap();
            assert_eq!((config.mtu, config.tcp.mtu), (ByteCount(mtu), segment));
        }
    }

    #[test]
    fn ecn_is_what_the_flag_says_and_the_default_is_the_stacks() {
        let mode = |line: &str| attach(line).config(ByteCount(1500)).unwrap().tcp.ecn;
        assert_eq!(mode("--address 10.0.0.2/24"), EcnMode::default());
        for wanted in EcnMode::ALL {
            assert_eq!(mode(&format!("--address 10.0.0.2/24 --ecn {wanted}")), wanted);
        }
    }

    #[test]
    fn buffers_are_what_the_flags_say_and_the_help_names_the_stacks_defaults() {
        let sizes = |line: &str| {
            let attach = attach(&format!("--address 10.0.0.2/24 {line}"));
            let tcp = attach.config(ByteCount(1500)).unwrap().tcp;
            (tcp.send_buffer, tcp.receive_buffer)
        };
        let stack = TcpConfig::default();
        assert_eq!(sizes(""), (stack.send_buffer, stack.receive_buffer));
        assert_eq!(sizes("--send-buffer 64MiB"), (ByteCount::from_mib(64), stack.receive_buffer));
        assert_eq!(sizes("--receive-buffer 64kB"), (stack.send_buffer, ByteCount(64_000)));
        for argument in BufferArgs::augment_args(clap::Command::new("get")).get_arguments() {
            let help = argument.get_help().unwrap().to_string();
            let (_, default) = help.split_once("[default: ").unwrap();
            let default = value::buffer(default.trim_end_matches(']')).unwrap();
            assert_eq!([default; 2], [stack.send_buffer, stack.receive_buffer], "{help}");
        }
    }

    #[test]
    fn hack_and_offload_exclude_each_other() {
        let both = refused("--address 10.0.0.2/24 --offload --judge rr+hack");
        assert!(both.contains("hides checksum errors") && both.contains("remove one"), "{both}");
        for (line, offloads) in [
            ("", true),
            ("--offload", true),
            ("--offload --judge rr", true),
            ("--no-offload", false),
            ("--judge hack", false),
            ("--no-offload --judge hack", false),
        ] {
            let attach = attach(&format!("--address 10.0.0.2/24 {line}"));
            attach.check().unwrap();
            assert_eq!(attach.offloads(), offloads, "{line}");
        }
    }

    #[test]
    fn gateway_refuses_own_addresses_other_versions_and_duplicates() {
        let own = refused("--address 10.0.0.2/24 --gateway 10.0.0.2");
        assert!(own.contains("own --address: the kernel needs another"), "{own}");
        let version = refused("--address 10.0.0.2/24 --gateway fd00::1");
        assert!(version.contains("requires an --address of IPv6"), "{version}");
        let twice = refused("--address 10.0.0.2/24 --gateway 10.0.0.1 --gateway 10.0.0.3");
        assert!(twice.contains("10.0.0.3 is a second one of IPv4"), "{twice}");
    }
}
