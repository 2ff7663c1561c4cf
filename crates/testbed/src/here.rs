//! The interfaces in the namespace of the calling thread, for commands that configure devices that
//! they have created.

use nix::net::if_::if_nametoindex;

use crate::link::{self, add_address, add_route, set_link_up, until_usable, with_netlink};
use crate::{Cidr, Interface, TestbedError, tun_queues};

/// Configures the interface `name`: adds addresses, sets the interface up, and routes `routes`
/// through it.
///
/// IPv6 addresses are usable at once: there is no duplicate address detection.
///
/// # Errors
/// The interface does not exist, or the kernel rejects a setting, for example without
/// CAP_NET_ADMIN.
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

/// Returns the number of open queues of the TUN device `name`; zero if it is not a multi-queue
/// device.
///
/// # Errors
/// The kernel returns an error.
pub fn queues(name: &str) -> Result<u32, TestbedError> {
    let doing = format!("asking for the queues of {name}");
    tun_queues::queues(name).map_err(TestbedError::refused(doing))
}

/// Returns the interfaces in the kernel's order, loopback first.
///
/// # Errors
/// The kernel returns an error.
pub fn interfaces() -> Result<Vec<Interface>, TestbedError> {
    link::list().map_err(TestbedError::refused("listing the interfaces"))
}
