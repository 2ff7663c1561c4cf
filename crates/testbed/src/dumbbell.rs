//! Two hosts with an emulated link or another node between them, and real packets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use airtcp_device::{Clock, Tun, TunFile, Watch};
use airtcp_link::{Counters, Link, Way};
use airtcp_net::Stack;
use airtcp_net::{Driver, Lateness};
use airtcp_stack::HostConfig;
use airtcp_types::{Instant, Node, NodeId, Observer};

use crate::emulator::Emulator;
use crate::{Cidr, Namespace, TestbedError};

/// The name of a namespace's device towards the link.
const LINK: &str = "link0";
/// The name of a stack's device.
const AIR: &str = "air0";
const MTU: u32 = 1500;

/// The parts of a [`Dumbbell`].
pub struct Plan<N = Link> {
    /// The host at port 0 of the node.
    pub left: Host,
    /// The host at port 1 of the node.
    pub right: Host,
    /// The node between the hosts.
    pub node: N,
    /// The clock of the node and of the stacks.
    pub clock: Clock,
    /// The observer of the node and the hosts, which have the IDs [`Dumbbell::LEFT`],
    /// [`Dumbbell::LINK`] and [`Dumbbell::RIGHT`]. For a kernel host there are packets but no
    /// events.
    pub observer: Option<Arc<Mutex<dyn Observer + Send>>>,
    /// Enables or disables the events of the node.
    pub set_events: fn(&mut N, bool),
}

/// The TCP of a host.
#[derive(Clone, Debug)]
pub enum Host {
    /// The Linux kernel.
    Kernel,
    /// An airtcp stack with this configuration; the addresses are those of the dumbbell.
    Stack(Box<HostConfig>),
}

impl Plan {
    /// Creates a plan with two hosts at the ends of `link`.
    pub fn new(left: Host, link: Link, right: Host) -> Self {
        Self::over(left, link, right, Link::set_events)
    }
}

impl<N> Plan<N> {
    /// Creates a plan with two hosts at ports 0 and 1 of `node`. `set_events` enables the node's
    /// events if there is an observer.
    pub fn over(left: Host, node: N, right: Host, set_events: fn(&mut N, bool)) -> Self {
        Self { left, right, node, clock: Clock::start(), observer: None, set_events }
    }
}

impl<N> fmt::Debug for Plan<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, right, .. } = self;
        f.debug_struct("Plan").field("left", left).field("right", right).finish_non_exhaustive()
    }
}

/// A host of a dumbbell.
#[derive(Debug)]
pub enum End {
    /// The kernel in this namespace, whose sockets are used by what runs inside.
    Kernel(Namespace),
    /// An airtcp stack on a TUN device of its own. The kernel of the namespace routes between this
    /// device and the link's.
    Stack(Stack, Namespace),
}

impl End {
    /// Returns the namespace.
    pub const fn namespace(&self) -> &Namespace {
        match self {
            Self::Kernel(namespace) | Self::Stack(_, namespace) => namespace,
        }
    }

    /// Returns the stack, if the host is an airtcp stack.
    pub const fn stack(&self) -> Option<&Stack> {
        match self {
            Self::Kernel(_) => None,
            Self::Stack(stack, _) => Some(stack),
        }
    }
}

/// Two hosts in their own namespaces, each with a TUN device, and an emulated link between the
/// devices on its own thread. Another node with two ports, such as a base station, can replace the
/// link.
///
/// Both hosts have an IPv4 and an IPv6 address. The devices have no offload, so each packet on the
/// link has at most 1500 bytes and a complete checksum, and only packets of the hosts cross the
/// link. Everything is removed when the value is dropped or the process ends.
///
/// ```no_run
/// use airtcp_link::{Link, Way};
/// use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
/// use airtcp_testbed::{Service, peer};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = "rate 20mbit delay 10ms limit 50 loss 1%".parse()?;
/// let plan = Plan::new(Host::Kernel, Link::new(&spec, &spec)?, Host::Kernel);
/// let dumbbell = Dumbbell::build(plan)?;
/// let at = (Dumbbell::address(Dumbbell::RIGHT, false), 0).into();
/// let server = dumbbell.right().namespace().serve(at, Service::Sink, None)?;
/// let address = server.address();
/// let call = async move { peer::upload(peer::connect(address, None).await?, 1, 100_000).await };
/// assert_eq!(dumbbell.left().namespace().spawn(call).await??, 100_000);
/// println!("{:?}", dumbbell.counters(Way::Forth));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Dumbbell<N = Link> {
    // Declared first, so that it is dropped before the namespaces of its devices.
    emulator: Emulator<N>,
    left: End,
    right: End,
}

impl Dumbbell {
    /// The host at port 0 of the node.
    pub const LEFT: NodeId = NodeId(0);
    /// The node between the hosts.
    pub const LINK: NodeId = NodeId(1);
    /// The host at port 1 of the node.
    pub const RIGHT: NodeId = NodeId(2);

    /// Returns the address of a host, [`LEFT`](Self::LEFT) or [`RIGHT`](Self::RIGHT).
    pub fn address(host: NodeId, is_ipv6: bool) -> IpAddr {
        number(if host == Self::LEFT { 1 } else { 2 }, is_ipv6)
    }

    /// Returns the counters of one direction of the link.
    pub fn counters(&self, way: Way) -> Counters {
        self.look(move |driver| *driver.node().counters(way))
    }
}

impl<N: Node + Send + 'static> Dumbbell<N> {
    /// Creates the namespaces, the devices, the hosts and the node.
    ///
    /// # Errors
    /// [`TestbedError::Unavailable`] without the necessary privileges; other errors of the kernel.
    pub fn build(plan: Plan<N>) -> Result<Self, TestbedError> {
        let Plan { left, right, mut node, clock, observer, set_events } = plan;
        set_events(&mut node, observer.is_some());
        let watch = |place| observer.clone().map(|observer| Watch::new(observer, place));
        let (left_device, left) = end(Dumbbell::LEFT, left, clock, watch(Dumbbell::LEFT))?;
        let (right_device, right) = end(Dumbbell::RIGHT, right, clock, watch(Dumbbell::RIGHT))?;
        let devices = [left_device, right_device];
        // A stack reports to the observer itself; the node's driver reports the packets of a kernel
        // host.
        let hosts = [(&left, Dumbbell::LEFT), (&right, Dumbbell::RIGHT)]
            .map(|(end, place)| if end.stack().is_none() { watch(place) } else { None });
        let emulator = Emulator::start(node, devices, clock, watch(Dumbbell::LINK), hosts)?;
        Ok(Self { emulator, left, right })
    }

    /// Gives the kernel in a stack's namespace an IPv4 address of its own on the link, so that its
    /// packets share the link with the stack's. A kernel host already has one.
    ///
    /// # Errors
    /// The kernel rejects the address.
    pub fn add_kernel(&self, host: NodeId) -> Result<(), TestbedError> {
        let (end, last) = if host == Dumbbell::LEFT { (&self.left, 3) } else { (&self.right, 4) };
        match end {
            End::Kernel(_) => Ok(()),
            // The route to the network exists already.
            End::Stack(_, namespace) => {
                namespace.add_address(LINK, Cidr { address: number(last, false), prefix: 32 })
            }
        }
    }

    /// Returns the host at port 0 of the node.
    pub const fn left(&self) -> &End {
        &self.left
    }

    /// Returns the host at port 1 of the node.
    pub const fn right(&self) -> &End {
        &self.right
    }

    /// Returns how late the node's packets were sent.
    pub fn lateness(&self) -> Lateness {
        self.look(|driver| driver.lateness().clone())
    }

    /// Calls `look` with the node's driver while it runs; returns the result.
    pub fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Driver<N, Tun>) -> T + Send + 'static,
    ) -> T {
        self.emulator.look(|driver| look(driver))
    }

    /// Calls `act` with the running node and the current time; returns the result.
    pub fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut N, Instant) -> T + Send + 'static,
    ) -> T {
        self.emulator.look(|driver| {
            let now = driver.clock().now();
            act(driver.node_mut(), now)
        })
    }

    /// Stops everything. Dropping does so too.
    ///
    /// # Errors
    /// The node failed while it ran, for example because a device was removed.
    pub fn stop(mut self) -> Result<(), TestbedError> {
        self.emulator.stop()
    }
}

/// The prefix lengths of the network of both hosts, for IPv4 and IPv6.
const PREFIXES: [(bool, u8); 2] = [(false, 24), (true, 64)];

/// Returns an address of this network.
fn number(host: u8, is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, host.into()).into()
    } else {
        Ipv4Addr::new(10, 80, 0, host).into()
    }
}

fn addresses(host: NodeId) -> [Cidr; 2] {
    PREFIXES.map(|(is_ipv6, prefix)| Cidr { address: Dumbbell::address(host, is_ipv6), prefix })
}

/// Creates a host in a namespace of its own, and the device for the link.
fn end(
    place: NodeId,
    host: Host,
    clock: Clock,
    watch: Option<Watch>,
) -> Result<(TunFile, End), TestbedError> {
    let namespace = Namespace::new()?;
    if let Host::Stack(_) = host {
        for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
            namespace.set_sysctl(key, "1")?;
        }
    }
    let device = open(&namespace, LINK)?;
    match host {
        Host::Kernel => {
            namespace.configure(LINK, &addresses(place), Some(MTU))?;
            Ok((device, End::Kernel(namespace)))
        }
        Host::Stack(config) => {
            let air = open(&namespace, AIR)?;
            for name in [LINK, AIR] {
                namespace.configure(name, &[], Some(MTU))?;
            }
            for (is_ipv6, prefix) in PREFIXES {
                let address = Dumbbell::address(place, is_ipv6);
                let whole = if is_ipv6 { 128 } else { 32 };
                namespace.add_route(AIR, Cidr { address, prefix: whole }, None)?;
                let network = Cidr { address: number(0, is_ipv6), prefix };
                namespace.add_route(LINK, network, None)?;
            }
            let stack = start(&namespace, air, place, *config, clock, watch)?;
            Ok((device, End::Stack(stack, namespace)))
        }
    }
}

/// Opens a TUN device that is still down, and on which the kernel sends no packets of its own.
fn open(namespace: &Namespace, name: &'static str) -> Result<TunFile, TestbedError> {
    let file = namespace.run(move || TunFile::open(name))?;
    // Without a link-local address the kernel sends no router solicitations; without forwarding it
    // joins no group of routers.
    for (key, value) in [("addr_gen_mode", "1"), ("forwarding", "0")] {
        namespace.set_sysctl(&format!("net.ipv6.conf.{name}.{key}"), value)?;
    }
    Ok(file)
}

/// Starts a stack on the namespace's thread.
fn start(
    namespace: &Namespace,
    air: TunFile,
    place: NodeId,
    mut config: HostConfig,
    clock: Clock,
    watch: Option<Watch>,
) -> Result<Stack, TestbedError> {
    config.addresses = addresses(place)
        .iter()
        .filter_map(|cidr| airtcp_stack::host::Cidr::new(cidr.address, cidr.prefix).ok())
        .collect();
    namespace.run(move || {
        let device = Tun::new(air)?;
        let stack = match watch {
            Some(watch) => Stack::watched(device, config, clock, watch),
            None => Stack::new(device, config),
        };
        stack.map_err(TestbedError::refused("starting a stack"))
    })
}
