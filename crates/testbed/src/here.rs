//! The interfaces of the namespace that the calling thread is in, for commands that set up what
//! they have made.

use nix::net::if_::if_nametoindex;

use crate::link::{self, add_address, add_route, set_link_up, until_usable, with_netlink};
use crate::{Cidr, Interface, TestbedError, tun_queues};

/// Gives the interface `name` addresses, sets it up, and routes `routes` through it.
///
/// IPv6 addresses are usable at once: there is no duplicate address detection.
///
/// # Errors
/// No such interface, or the kernel refuses one of them, for want of CAP_NET_ADMIN for example.
pub async fn configure(
    name: &str,
    addresses: &[Cidr],
    routes: &[Cidr],
) -> Result<(), TestbedError> {
    let index =
        if_nametoindex(name).map_err(|_| TestbedError::NoInterface { name: name.to_owned() })?;
    for cidr in addresses {
        with_netlink(async |netlink| add_address(&netlink, index, *cidr).await)
            .await
            .map_err(TestbedError::refused(format!("adding {cidr} to {name}")))?;
    }
    with_netlink(async |netlink| set_link_up(&netlink, index, true).await)
        .await
        .map_err(TestbedError::refused(format!("setting {name} up")))?;
    until_usable(name, addresses)
        .await
        .map_err(TestbedError::refused(format!("waiting for the addresses of {name}")))?;
    for cidr in routes {
        add_route(index, *cidr, None)
            .await
            .map_err(TestbedError::refused(format!("routing {cidr} through {name}")))?;
    }
    Ok(())
}

/// How many queues the TUN device `name` has that somebody has open, if it was made for several.
///
/// # Errors
/// The kernel does not tell.
pub fn queues(name: &str) -> Result<u32, TestbedError> {
    let doing = format!("asking for the queues of {name}");
    tun_queues::queues(name).map_err(TestbedError::refused(doing))
}

/// The interfaces in the kernel's order, loopback first.
///
/// # Errors
/// The kernel does not tell.
pub fn interfaces() -> Result<Vec<Interface>, TestbedError> {
    link::list().map_err(TestbedError::refused("listing the interfaces"))
}
