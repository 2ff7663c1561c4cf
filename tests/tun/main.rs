//! TUN devices with the Linux kernel at the other end.

mod offload;
mod opening;
mod plain;
#[path = "../../crates/device/src/tun/testkit.rs"]
mod testkit;

use airtcp_device::TunFile;
use airtcp_testbed::{Namespace, or_skip, requirements};

/// A namespace with an open TUN device whose link is still down.
fn open(name: &'static str) -> Option<(Namespace, TunFile)> {
    or_skip(requirements())?;
    let namespace = Namespace::new().unwrap();
    let file = namespace.run(move || TunFile::open(name)).unwrap();
    Some((namespace, file))
}
