//! Two hosts and an emulated link between them, or another node, with real packets.

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

/// The device by which a namespace reaches the link.
const LINK: &str = "link0";
/// The device of a stack.
const AIR: &str = "air0";
const MTU: u32 = 1500;

/// What a [`Dumbbell`] is made of.
pub struct Plan<N = Link> {
    /// Whose TCP is at port 0 of the node.
    pub left: Host,
    /// Whose TCP is at port 1 of the node.
    pub right: Host,
    /// What is between them.
    pub node: N,
    /// The clock of the node and of the stacks.
    pub clock: Clock,
    /// Who is shown the node and the hosts, under the numbers [`Dumbbell::LEFT`],
    /// [`Dumbbell::LINK`] and [`Dumbbell::RIGHT`]. A kernel has packets, but tells no events.
    pub observer: Option<Arc<Mutex<dyn Observer + Send>>>,
    /// Has the node make events, or make none.
    pub set_events: fn(&mut N, bool),
}

/// Whose TCP a host runs.
#[derive(Clone, Debug)]
pub enum Host {
    /// The Linux kernel's.
    Kernel,
    /// Ours, with these settings; the addresses are the dumbbell's.
    Stack(Box<HostConfig>),
}

impl Plan {
    /// Two hosts at the ends of `link`.
    pub fn new(left: Host, link: Link, right: Host) -> Self {
        Self::over(left, link, right, Link::set_events)
    }
}

impl<N> Plan<N> {
    /// Two hosts at ports 0 and 1 of `node`, which makes events if there is an observer:
    /// `set_events` tells it.
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

/// One of the two hosts.
#[derive(Debug)]
pub enum End {
    /// The kernel's, in this namespace: what is run inside has its sockets.
    Kernel(Namespace),
    /// Our stack, on a TUN device of its own. The kernel of the namespace routes between that one
    /// and the link's.
    Stack(Stack, Namespace),
}

impl End {
    /// Its namespace.
    pub const fn namespace(&self) -> &Namespace {
        match self {
            Self::Kernel(namespace) | Self::Stack(_, namespace) => namespace,
        }
    }

    /// The stack, if it is ours.
    pub const fn stack(&self) -> Option<&Stack> {
        match self {
            Self::Kernel(_) => None,
            Self::Stack(stack, _) => Some(stack),
        }
    }
}

/// Host, TUN device, emulated link, TUN device, host: each host in a namespace of its own, the link
/// on a thread of its own. Any other node of two ports may be in the link's place, a base station
/// for one.
///
/// Both hosts have an IPv4 and an IPv6 address. The devices are without offload, so that each
/// packet the link sees has at most 1500 bytes and its checksum, and nothing but the hosts' own
/// packets crosses it. All of it goes with the value, or with the process.
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
    // First, so that it ends before the namespaces of its devices.
    emulator: Emulator<N>,
    left: End,
    right: End,
}

impl Dumbbell {
    /// The host at port 0 of what is between them.
    pub const LEFT: NodeId = NodeId(0);
    /// What is between them: the link.
    pub const LINK: NodeId = NodeId(1);
    /// The host at port 1 of what is between them.
    pub const RIGHT: NodeId = NodeId(2);

    /// The address of a host, [`LEFT`](Self::LEFT) or [`RIGHT`](Self::RIGHT).
    pub fn address(host: NodeId, is_ipv6: bool) -> IpAddr {
        number(if host == Self::LEFT { 1 } else { 2 }, is_ipv6)
    }

    /// What one direction of the link did so far.
    pub fn counters(&self, way: Way) -> Counters {
        self.look(move |driver| *driver.node().counters(way))
    }
}

impl<N: Node + Send + 'static> Dumbbell<N> {
    /// Makes all of it.
    ///
    /// # Errors
    /// [`TestbedError::Unavailable`] when this process may not; what the kernel refuses.
    pub fn build(plan: Plan<N>) -> Result<Self, TestbedError> {
        let Plan { left, right, mut node, clock, observer, set_events } = plan;
        set_events(&mut node, observer.is_some());
        let watch = |place| observer.clone().map(|observer| Watch::new(observer, place));
        let (left_device, left) = end(Dumbbell::LEFT, left, clock, watch(Dumbbell::LEFT))?;
        let (right_device, right) = end(Dumbbell::RIGHT, right, clock, watch(Dumbbell::RIGHT))?;
        let devices = [left_device, right_device];
        // A stack shows itself; of a kernel, the node's driver shows what it sees.
        let hosts = [(&left, Dumbbell::LEFT), (&right, Dumbbell::RIGHT)]
            .map(|(end, place)| if end.stack().is_none() { watch(place) } else { None });
        let emulator = Emulator::start(node, devices, clock, watch(Dumbbell::LINK), hosts)?;
        Ok(Self { emulator, left, right })
    }

    /// Gives the kernel of a stack's namespace an IPv4 address of its own on the link, so that what
    /// it sends shares the link with what the stack sends. A host that is the kernel's has one
    /// already.
    ///
    /// # Errors
    /// The kernel refuses the address.
    pub fn add_kernel(&self, host: NodeId) -> Result<(), TestbedError> {
        let (end, last) = if host == Dumbbell::LEFT { (&self.left, 3) } else { (&self.right, 4) };
        match end {
            End::Kernel(_) => Ok(()),
            // The route to the network is there.
            End::Stack(_, namespace) => {
                namespace.add_address(LINK, Cidr { address: number(last, false), prefix: 32 })
            }
        }
    }

    /// The host at port 0 of the link.
    pub const fn left(&self) -> &End {
        &self.left
    }

    /// The host at port 1 of the link.
    pub const fn right(&self) -> &End {
        &self.right
    }

    /// How late the node's packets left.
    pub fn lateness(&self) -> Lateness {
        self.look(|driver| driver.lateness().clone())
    }

    /// What `look` sees of the node and its devices while they run.
    pub fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Driver<N, Tun>) -> T + Send + 'static,
    ) -> T {
        self.emulator.look(|driver| look(driver))
    }

    /// Has `act` tell the running node something, at the time that it is given.
    pub fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut N, Instant) -> T + Send + 'static,
    ) -> T {
        self.emulator.look(|driver| {
            let now = driver.clock().now();
            act(driver.node_mut(), now)
        })
    }

    /// Ends all of it. Dropping does so too.
    ///
    /// # Errors
    /// The node broke on the way: a device of its was removed.
    pub fn stop(mut self) -> Result<(), TestbedError> {
        self.emulator.stop()
    }
}

/// Prefix lengths of the network that both hosts are in, IPv4's and IPv6's.
const PREFIXES: [(bool, u8); 2] = [(false, 24), (true, 64)];

/// An address of that network.
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

/// A host in a namespace of its own, and the device for the link.
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

/// A TUN device that is still down, on which the kernel says nothing of its own.
fn open(namespace: &Namespace, name: &'static str) -> Result<TunFile, TestbedError> {
    let file = namespace.run(move || TunFile::open(name))?;
    // No link-local address, so nothing to solicit routers from; and no group of routers to report.
    for (key, value) in [("addr_gen_mode", "1"), ("forwarding", "0")] {
        namespace.set_sysctl(&format!("net.ipv6.conf.{name}.{key}"), value)?;
    }
    Ok(file)
}

/// A stack on the namespace's own thread.
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
