//! Whether the machine has IPv6.

/// How a newly created device handles IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::gateway) enum Ipv6 {
    /// IPv6 is carried.
    On,
    /// New devices have no IPv6, but others may: IPv6 is blocked, so that it does not bypass the
    /// gateway.
    Blocked,
    /// The machine has no IPv6.
    Absent,
}

impl Ipv6 {
    /// Reads the kernel's settings.
    pub(in crate::gateway) fn of_this_machine() -> Self {
        let is_disabled = |device: &str| {
            let path = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
            // The file may be hidden from a service; then IPv6 counts as enabled.
            std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
        };
        let addresses = std::fs::read_to_string("/proc/thread-self/net/if_inet6");
        // A device can have IPv6 although `all` disables it.
        let is_used = addresses.as_ref().is_ok_and(|addresses| !addresses.is_empty());
        if addresses.is_err() || (is_disabled("all") && !is_used) {
            Self::Absent
        } else if is_disabled("all") || is_disabled("default") {
            Self::Blocked
        } else {
            Self::On
        }
    }
}
