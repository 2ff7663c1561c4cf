//! The two ends of the demo and the network between them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_device::{TunFile, TunOptions, memory};
use airtcp_net::Stack;
use airtcp_stack::host::Cidr;
use airtcp_testbed::Namespace;
use airtcp_trace::NodeKind;
use airtcp_types::NodeId;
use anyhow::Context;

use super::transfer::Course;
use crate::args::{DemoArgs, SenderArgs};
use crate::attach::{host_config, needs_plain_packets};
use crate::device::with_offload_if_possible;
use crate::record::{self, Recording};

const TUN: &str = "tun0";
const MTU: u16 = 1500;

/// The addresses of the first and of the second end.
const FIRST: [&str; 2] = ["10.77.0.1/24", "fd77::1/64"];
const SECOND: [&str; 2] = ["10.77.0.2/24", "fd77::2/64"];

/// Packets in flight in memory, per direction.
const CAPACITY: usize = 1024;

/// A TUN device in a network namespace of its own.
pub(super) struct Tun {
    namespace: Namespace,
    file: TunFile,
}

impl Tun {
    /// Creates namespace and device. The kernel gets the first end's addresses.
    ///
    /// # Errors
    /// This process lacks the permission, or the kernel has no TUN driver; the text says what to
    /// type.
    pub(super) fn new(sender: &SenderArgs) -> anyhow::Result<Self> {
        let namespace = Namespace::new()?;
        let offload = !needs_plain_packets(sender);
        let file = namespace.run(move || {
            with_offload_if_possible(TUN, offload, |offload| {
                TunFile::open_with(TUN, TunOptions { offload, ..TunOptions::default() })
            })
        })?;
        let mut addresses = Vec::new();
        for address in FIRST {
            addresses.push(address.parse()?);
        }
        namespace.configure(TUN, &addresses, Some(MTU.into()))?;
        Ok(Self { namespace, file })
    }

    /// Returns both parts. The namespace must outlive the device.
    pub(super) fn into_parts(self) -> (Namespace, TunFile) {
        (self.namespace, self.file)
    }
}

/// Two connected ends.
pub(super) struct Network<'a> {
    /// The kernel, or a stack in its place.
    pub(super) first: End<'a>,
    /// A stack of this project.
    pub(super) second: Stack,
    /// The recording of the stacks, if one was requested.
    recording: Option<Recording>,
}

/// The implementation of the first end.
pub(super) enum End<'a> {
    /// The kernel's TCP, in this namespace.
    Kernel(&'a Namespace),
    /// A stack like the second end.
    Stack(Stack),
}

impl<'a> Network<'a> {
    /// Connects the kernel and a stack by `file`.
    ///
    /// # Errors
    /// The stack does not start.
    pub(super) fn with_kernel(
        namespace: &'a Namespace,
        file: TunFile,
        args: &DemoArgs,
    ) -> anyhow::Result<Self> {
        let recording = record(args, &["airtcp"])?;
        let device = airtcp_device::Tun::new(file)?;
        let config = host_config(cidrs(SECOND)?, &args.sender)?;
        let second = record::stack(recording.as_ref(), NodeId(0), device, config)
            .context("starting the stack")?;
        Ok(Self { first: End::Kernel(namespace), second, recording })
    }

    /// Connects two stacks by a device in memory.
    ///
    /// # Errors
    /// A stack does not start.
    pub(super) fn in_memory(args: &DemoArgs) -> anyhow::Result<Self> {
        let recording = record(args, &["first", "second"])?;
        let (left, right) = memory::pair(MTU.into(), CAPACITY);
        let start = |node, device, addresses| {
            let config = host_config(cidrs(addresses)?, &args.sender)?;
            record::stack(recording.as_ref(), NodeId(node), device, config)
                .context("starting a stack")
        };
        let (first, second) = (start(0, left, FIRST)?, start(1, right, SECOND)?);
        Ok(Self { first: End::Stack(first), second, recording })
    }

    /// Returns whether the first end is the kernel.
    pub(super) const fn has_kernel(&self) -> bool {
        matches!(self.first, End::Kernel(_))
    }

    /// Returns all transfers of the demo.
    pub(super) fn courses(&self) -> Vec<Course> {
        let mut courses = Vec::new();
        for is_ipv6 in [false, true] {
            for first_calls in [true, false] {
                for first_sends in [first_calls, !first_calls] {
                    let has_kernel = self.has_kernel();
                    courses.push(Course { has_kernel, is_ipv6, first_calls, first_sends });
                }
            }
        }
        courses
    }

    /// Returns the address of an end.
    ///
    /// # Errors
    /// None: the addresses are constants.
    pub(super) fn address(first: bool, is_ipv6: bool, port: u16) -> anyhow::Result<SocketAddr> {
        let texts = if first { FIRST } else { SECOND };
        let cidr: Cidr = texts[usize::from(is_ipv6)].parse()?;
        let ip: IpAddr = cidr.address();
        Ok(SocketAddr::new(ip, port))
    }

    /// Shuts down the stacks, and ends the trace.
    ///
    /// # Errors
    /// The trace could not be written.
    pub(super) async fn shutdown(self) -> anyhow::Result<()> {
        const PATIENCE: Duration = Duration::from_secs(1);
        if let End::Stack(stack) = &self.first {
            tokio::join!(stack.shutdown_within(PATIENCE), self.second.shutdown_within(PATIENCE));
        } else {
            self.second.shutdown_within(PATIENCE).await;
        }
        match self.recording {
            Some(recording) => recording.finish().map(drop),
            None => Ok(()),
        }
    }
}

fn record(args: &DemoArgs, names: &[&str]) -> anyhow::Result<Option<Recording>> {
    let Some(directory) = &args.trace else { return Ok(None) };
    let nodes: Vec<_> = names.iter().map(|name| (*name, NodeKind::Host)).collect();
    Ok(Some(Recording::start(directory, "airtcp demo", &nodes)?))
}

fn cidrs(texts: [&str; 2]) -> anyhow::Result<Vec<Cidr>> {
    texts.iter().map(|text| Ok(text.parse()?)).collect()
}
