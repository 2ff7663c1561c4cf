//! The TUN options for tests.

use airtcp_device::TunOptions;

const OFFLOAD: &str = "AIRTCP_OFFLOAD";

/// Returns the options of a TUN device for tests that do not depend on its kind: with
/// `AIRTCP_OFFLOAD=1` in the environment the device has offload, so that the tests cover both
/// kinds.
pub fn tun_options() -> TunOptions {
    let offload = std::env::var_os(OFFLOAD).is_some_and(|value| value == "1");
    TunOptions { offload, ..TunOptions::default() }
}
