//! The stack under attack, with real packets: a raw socket of the kernel sends with any source
//! address, and the kernel's TCP is the honest peer.
//!
//! Without namespaces or TUN devices the tests are skipped with the reason; with
//! `AIRTCP_REQUIRE_NETNS=1` they fail instead.

mod blind;
mod flood;
#[path = "../soak/resident.rs"]
mod resident;
mod setup;
