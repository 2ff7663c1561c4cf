//! Interfaces, addresses and routes of a namespace.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};

use crate::{Cidr, Namespace, TestbedError};

const ROUTES: &str = "/proc/thread-self/net/ipv6_route";
/// The flag of a route to a local address; linux/ipv6_route.h.
const RTF_LOCAL: u32 = 0x8000_0000;
/// The maximum time in which the kernel must create such a route.
const PATIENCE: Duration = Duration::from_secs(10);

/// An interface of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Interface {
    /// The name.
    pub name: String,
    /// Whether the interface is up.
    pub is_up: bool,
    /// The addresses with their prefix lengths, in ascending order.
    pub addresses: Vec<Cidr>,
}

impl Namespace {
    /// Configures the interface `name`: adds addresses, sets the MTU in bytes if given, and sets
    /// the interface up.
    ///
    /// IPv6 addresses are usable at once: there is no duplicate address detection.
    ///
    /// # Errors
    /// The interface does not exist, or the kernel rejects a setting.
    pub fn configure(
        &self,
        name: &str,
        addresses: &[Cidr],
        mtu: Option<u32>,
    ) -> Result<(), TestbedError> {
        if let Some(mtu) = mtu {
            self.set_mtu(name, mtu)?;
        }
        for address in addresses {
            self.add_address(name, *address)?;
        }
        self.set_up(name, true)?;
        self.until_usable(name, addresses)
    }

    /// Adds an address to the interface `name`, and thereby the route to its network.
    ///
    /// # Errors
    /// The interface does not exist, or the kernel rejects the address.
    pub fn add_address(&self, name: &str, cidr: Cidr) -> Result<(), TestbedError> {
        let index = self.index(name)?;
        self.request(format!("adding {cidr} to {name}"), async move |netlink| {
            add_address(&netlink, index, cidr).await
        })?;
        self.until_usable(name, &[cidr])
    }

    /// Removes an address from the interface `name`. The address's connections stay, but no packets
    /// reach them.
    ///
    /// # Errors
    /// The interface does not exist, or does not have the address.
    pub fn remove_address(&self, name: &str, cidr: Cidr) -> Result<(), TestbedError> {
        let index = self.index(name)?;
        self.request(format!("removing {cidr} from {name}"), async move |netlink| {
            let mut adding = netlink.address().add(index, cidr.address, cidr.prefix);
            netlink.address().del(adding.message_mut().clone()).execute().await
        })
    }

    /// Sets the MTU of the interface `name`, in bytes.
    ///
    /// # Errors
    /// The interface does not exist, or the kernel rejects the MTU.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<(), TestbedError> {
        let index = self.index(name)?;
        self.request(format!("setting the MTU of {name} to {mtu}"), async move |netlink| {
            let message = LinkUnspec::new_with_index(index).mtu(mtu).build();
            netlink.link().set(message).execute().await
        })
    }

    /// Sets the interface `name` up or down.
    ///
    /// # Errors
    /// The interface does not exist, or the kernel rejects the change.
    pub fn set_up(&self, name: &str, up: bool) -> Result<(), TestbedError> {
        let index = self.index(name)?;
        let doing = format!("setting {name} {}", if up { "up" } else { "down" });
        self.request(doing, async move |netlink| set_link_up(&netlink, index, up).await)
    }

    /// Removes the interface `name`.
    ///
    /// # Errors
    /// The interface does not exist, or the kernel rejects the removal.
    pub fn remove(&self, name: &str) -> Result<(), TestbedError> {
        let index = self.index(name)?;
        self.request(format!("removing {name}"), async move |netlink| {
            netlink.link().del(index).execute().await
        })
    }

    /// Routes `destination` through the interface `name`, with the router `gateway` if given.
    ///
    /// # Errors
    /// The interface does not exist, `gateway` has the other IP version, or the kernel rejects the
    /// route.
    pub fn add_route(
        &self,
        name: &str,
        destination: Cidr,
        gateway: Option<IpAddr>,
    ) -> Result<(), TestbedError> {
        let index = self.index(name)?;
        let doing = format!("routing {destination} through {name}");
        self.block_on(add_route(index, destination, gateway)).map_err(TestbedError::refused(doing))
    }

    /// Creates a veth pair between two namespaces: `name` here, `peer_name` in `peer`, both down.
    ///
    /// # Errors
    /// A name is in use, or the kernel has no veth.
    pub fn connect(
        &self,
        name: &str,
        peer: &Namespace,
        peer_name: &str,
    ) -> Result<(), TestbedError> {
        // The peer is created in its own namespace, so its name may be in use in this one.
        let born = LinkMessageBuilder::<LinkUnspec>::new()
            .name(peer_name)
            .setns_by_fd(peer.as_file().as_raw_fd())
            .build();
        let message = LinkVeth::new(name, peer_name)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(born)))
            .build();
        self.request(format!("making the veth pair {name}, {peer_name}"), async move |netlink| {
            netlink.link().add(message).execute().await
        })
    }

    /// Moves the interface `name` to another namespace, where it is down and has no addresses. Open
    /// descriptors of a TUN device stay valid.
    ///
    /// # Errors
    /// The interface does not exist, or `other` has one with the same name.
    pub fn hand_over(&self, name: &str, other: &Namespace) -> Result<(), TestbedError> {
        let index = self.index(name)?;
        let target = other.as_file().as_raw_fd();
        self.request(format!("moving {name} over"), async move |netlink| {
            let message = LinkUnspec::new_with_index(index).setns_by_fd(target).build();
            netlink.link().set(message).execute().await
        })
    }

    /// Returns the interfaces of the namespace in the kernel's order, loopback first.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn interfaces(&self) -> Result<Vec<Interface>, TestbedError> {
        self.run(list).map_err(TestbedError::refused("listing the interfaces"))
    }

    fn until_usable(&self, name: &str, addresses: &[Cidr]) -> Result<(), TestbedError> {
        let doing = format!("waiting for the addresses of {name}");
        let (name, addresses) = (name.to_owned(), addresses.to_vec());
        self.block_on(async move { until_usable(&name, &addresses).await })
            .map_err(TestbedError::refused(doing))
    }

    fn index(&self, name: &str) -> Result<u32, TestbedError> {
        let owned = name.to_owned();
        self.run(move || if_nametoindex(owned.as_str()))
            .map_err(|_| TestbedError::NoInterface { name: name.to_owned() })
    }

    /// Makes a netlink request inside the namespace.
    fn request<F>(
        &self,
        doing: String,
        request: impl FnOnce(Handle) -> F + Send + 'static,
    ) -> Result<(), TestbedError>
    where
        F: Future<Output = Result<(), rtnetlink::Error>> + Send + 'static,
    {
        self.block_on(with_netlink(request)).map_err(TestbedError::refused(doing))
    }
}

pub(crate) async fn set_up_loopback() -> Result<(), TestbedError> {
    let doing = "setting lo up";
    let index = if_nametoindex("lo").map_err(|errno| TestbedError::refused(doing)(errno.into()))?;
    with_netlink(async move |netlink| set_link_up(&netlink, index, true).await)
        .await
        .map_err(TestbedError::refused(doing))
}

pub(crate) async fn add_address(
    netlink: &Handle,
    index: u32,
    cidr: Cidr,
) -> Result<(), rtnetlink::Error> {
    let mut request = netlink.address().add(index, cidr.address, cidr.prefix);
    if cidr.address.is_ipv6() {
        request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
    }
    request.execute().await
}

/// Waits until an interface that is running accepts packets for its IPv6 addresses: the kernel
/// shows the addresses a little earlier than it creates their routes.
pub(crate) async fn until_usable(name: &str, addresses: &[Cidr]) -> io::Result<()> {
    let own = addresses.iter().filter_map(|cidr| match cidr.address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address),
    });
    let own: Vec<_> = own.collect();
    if own.is_empty() {
        return Ok(());
    }
    for _ in 0..PATIENCE.as_millis() {
        let is_running = getifaddrs()?.any(|entry| {
            entry.interface_name == name && entry.flags.contains(InterfaceFlags::IFF_RUNNING)
        });
        if !is_running || are_local(&std::fs::read_to_string(ROUTES)?, &own) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "they have no routes"))
}

/// Whether a table of IPv6 routes has a local route for each address.
fn are_local(routes: &str, addresses: &[Ipv6Addr]) -> bool {
    addresses.iter().all(|address| {
        let route = format!("{:032x} 80 ", address.to_bits());
        routes.lines().filter(|line| line.starts_with(&route)).any(|line| {
            let flags = line.split_whitespace().nth(8);
            let flags = flags.and_then(|flags| u32::from_str_radix(flags, 16).ok());
            flags.is_some_and(|flags| flags & RTF_LOCAL != 0)
        })
    })
}

pub(crate) async fn add_route(
    index: u32,
    destination: Cidr,
    gateway: Option<IpAddr>,
) -> io::Result<()> {
    let route = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(destination.address, destination.prefix)
        .and_then(|route| match gateway {
            Some(gateway) => route.gateway(gateway),
            None => Ok(route),
        })
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?
        .output_interface(index)
        .build();
    with_netlink(async move |netlink| netlink.route().add(route).execute().await).await
}

pub(crate) async fn set_link_up(
    netlink: &Handle,
    index: u32,
    up: bool,
) -> Result<(), rtnetlink::Error> {
    let message = LinkUnspec::new_with_index(index);
    let message = if up { message.up() } else { message.down() };
    netlink.link().set(message.build()).execute().await
}

pub(crate) async fn with_netlink<F>(request: impl FnOnce(Handle) -> F) -> io::Result<()>
where
    F: Future<Output = Result<(), rtnetlink::Error>>,
{
    let (connection, handle, _) = rtnetlink::new_connection()?;
    // It ends when the handle is dropped.
    tokio::spawn(connection);
    request(handle).await.map_err(|error| match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    })
}

fn ip(storage: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = storage.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

pub(crate) fn list() -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    for entry in getifaddrs()? {
        let name = entry.interface_name;
        let position = found.iter().position(|known| known.name == name);
        let position = position.unwrap_or_else(|| {
            let is_up = entry.flags.contains(InterfaceFlags::IFF_UP);
            found.push(Interface { name, is_up, addresses: Vec::new() });
            found.len() - 1
        });
        let Some(address) = entry.address.as_ref().and_then(ip) else { continue };
        // A point-to-point link may have no netmask.
        let prefix = match entry.netmask.as_ref().and_then(ip) {
            Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
            Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
            None if address.is_ipv4() => Ipv4Addr::BITS,
            None => Ipv6Addr::BITS,
        };
        found[position].addresses.push(Cidr { address, prefix: prefix as u8 });
    }
    for interface in &mut found {
        interface.addresses.sort_unstable();
    }
    Ok(found)
}
