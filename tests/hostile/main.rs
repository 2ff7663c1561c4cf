//! The stack under attack, with real packets: a raw socket of the kernel's sends with any source
//! address, and the kernel's TCP is the honest peer.
//!
//! Skipped with a loud reason where namespaces or TUN devices are not to be had; that is a failure
//! when `AIRTCP_REQUIRE_NETNS=1`.

mod blind;
mod flood;
#[path = "../soak/resident.rs"]
mod resident;
mod setup;
