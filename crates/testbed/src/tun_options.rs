//! The kind of TUN device of a test.

use airtcp_device::TunOptions;

const OFFLOAD: &str = "AIRTCP_OFFLOAD";

/// The options of a TUN device whose kind does not matter to a test: with `AIRTCP_OFFLOAD=1` in the
/// environment it offloads, so that the same tests judge both kinds.
pub fn tun_options() -> TunOptions {
    let offload = std::env::var_os(OFFLOAD).is_some_and(|value| value == "1");
    TunOptions { offload, ..TunOptions::default() }
}
