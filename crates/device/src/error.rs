//! Errors of opening a device.

use std::io;

/// The reason why a TUN device could not be opened. The message says which command solves it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The name is not a valid interface name.
    #[error(
        "\"{name}\" cannot name a TUN device: {reason}; a name has 1 to 15 bytes without white \
         space, '/', ':' or '%', for example tun0"
    )]
    Name {
        /// The requested name.
        name: String,
        /// The reason why the name is invalid.
        reason: &'static str,
    },
    /// `/dev/net/tun` or its driver is missing.
    #[error(
        "there is no TUN driver at /dev/net/tun ({source}); load it with `sudo modprobe tun`; if \
         the node is still missing, as in some containers, make it: `sudo mkdir -p /dev/net && \
         sudo mknod -m 666 /dev/net/tun c 10 200` (docker: `--device /dev/net/tun`)"
    )]
    NoDriver {
        /// The kernel's error.
        source: io::Error,
    },
    /// The user may not open `/dev/net/tun`.
    #[error(
        "/dev/net/tun may not be opened by this user ({source}); run as root, or let your user open it: `sudo \
         setfacl -m u:$USER:rw /dev/net/tun` (until the next boot). To create devices without root, {}",
        without_root("tun0")
    )]
    NodeForbidden {
        /// The kernel's error.
        source: io::Error,
    },
    /// The process lacks CAP_NET_ADMIN, and the interface does not exist.
    #[error(
        "creating the TUN device {name} requires CAP_NET_ADMIN, which this process does not have; run as root; or \
         {} (in a container: add the capability NET_ADMIN)",
        without_root(name)
    )]
    NotPermitted {
        /// The requested name.
        name: String,
    },
    /// The process lacks CAP_NET_ADMIN, and the interface belongs to another user.
    #[error(
        "the TUN device {name} belongs to another user, and this process does not have CAP_NET_ADMIN; run as root, \
         or choose another name (`ip -details tuntap show` lists the devices with their users)"
    )]
    OtherUser {
        /// The requested name.
        name: String,
    },
    /// Another process has the device open.
    #[error(
        "the TUN device {name} is in use by another process; end that process (`sudo fuser -v \
         /dev/net/tun` lists its users), or choose another name"
    )]
    Busy {
        /// The requested name.
        name: String,
    },
    /// The name belongs to an interface that is not a TUN device. The message does not propose to
    /// delete it: the machine may be reached through it.
    #[error(
        "{name} is not a TUN device (`ip -details link show dev {name}` shows its type); choose \
         another name, for example tun0"
    )]
    Taken {
        /// The requested name.
        name: String,
    },
    /// The interface was created with a single queue, but is opened with `multi_queue`.
    #[error(
        "the TUN device {name} has a single queue and cannot be opened with multi_queue; open it \
         without, or choose another name: a new device gets the queues that it is opened with (with `ip \
         tuntap add`: `multi_queue`)"
    )]
    SingleQueue {
        /// The requested name.
        name: String,
    },
    /// The interface was created with `multi_queue`, but is opened without.
    #[error(
        "the TUN device {name} has several queues (multi_queue) and cannot be opened \
         without; open it with multi_queue, or choose another name"
    )]
    MultiQueue {
        /// The requested name.
        name: String,
    },
    /// The kernel created a device with another name.
    #[error("asked for the TUN device {name}, got {got}; choose another name")]
    OtherName {
        /// The requested name.
        name: String,
        /// The name of the created device.
        got: String,
    },
    /// There is no current tokio runtime.
    #[error(
        "the TUN device {name} needs a running tokio runtime: open it inside one, or open a \
         TunFile first"
    )]
    NoRuntime {
        /// The requested name.
        name: String,
    },
    /// Any other error.
    #[error("the TUN device {name} could not be opened: {source}")]
    Other {
        /// The requested name.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Returns how to let a user who is not root use the device `name`.
fn without_root(name: &str) -> String {
    let program = std::env::current_exe();
    let program = program.map_or_else(|_| "PROGRAM".to_owned(), |path| path.display().to_string());
    format!(
        "make the device once for your user: `sudo ip tuntap add dev {name} mode tun user $USER`; or give the \
         program the capability, which is lost when it is built again: `sudo setcap cap_net_admin+ep {program}`"
    )
}
