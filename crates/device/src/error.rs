//! Errors of opening a device, with what to type.

use std::io;

/// Why a TUN device could not be opened. The text says what to type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No interface can have this name.
    #[error(
        "\"{name}\" cannot name a TUN device: {reason}; a name has 1 to 15 bytes without white \
         space, '/', ':' or '%', for example tun0"
    )]
    Name {
        /// The name asked for.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no `/dev/net/tun`, or no driver behind it.
    #[error(
        "there is no TUN driver at /dev/net/tun ({source}); load it with `sudo modprobe tun`; if \
         the node is still missing, as in some containers, make it: `sudo mkdir -p /dev/net && \
         sudo mknod -m 666 /dev/net/tun c 10 200` (docker: `--device /dev/net/tun`)"
    )]
    NoDriver {
        /// What the kernel said.
        source: io::Error,
    },
    /// `/dev/net/tun` is there, but not for this user.
    #[error(
        "/dev/net/tun may not be opened by this user ({source}); run as root, or let your user \
         open it: `sudo setfacl -m u:$USER:rw /dev/net/tun`, and make the device once: \
         `sudo ip tuntap add dev tun0 mode tun user $USER`"
    )]
    NodeForbidden {
        /// What the kernel said.
        source: io::Error,
    },
    /// The interface needs CAP_NET_ADMIN, or a user it belongs to.
    #[error(
        "creating the TUN device {name} requires CAP_NET_ADMIN, which this process does not have; run as \
         root, or make the device once for your user: `sudo ip tuntap add dev {name} mode tun user \
         $USER` (in a container: add the capability NET_ADMIN)"
    )]
    NotPermitted {
        /// The name asked for.
        name: String,
    },
    /// Another process holds the device.
    #[error(
        "the TUN device {name} is in use by another process; end that process (`sudo fuser -v \
         /dev/net/tun` lists its users), or choose another name"
    )]
    Busy {
        /// The name asked for.
        name: String,
    },
    /// The name belongs to an interface that is no TUN device. That it be removed is not proposed:
    /// it may be what the machine is reached by.
    #[error(
        "{name} is not a TUN device (`ip -details link show dev {name}` shows its type); choose \
         another name, for example tun0"
    )]
    Taken {
        /// The name asked for.
        name: String,
    },
    /// The interface was made for one descriptor, and is to be opened as one of several queues.
    #[error(
        "the TUN device {name} has a single queue and cannot be opened with multi_queue; open it \
         without, or choose another name: a new device gets the queues that it is opened with (with `ip \
         tuntap add`: `multi_queue`)"
    )]
    SingleQueue {
        /// The name asked for.
        name: String,
    },
    /// The interface was made for several queues, and is to be opened without.
    #[error(
        "the TUN device {name} has several queues (multi_queue) and cannot be opened \
         without; open it with multi_queue, or choose another name"
    )]
    MultiQueue {
        /// The name asked for.
        name: String,
    },
    /// The kernel made a device of another name.
    #[error("asked for the TUN device {name}, got {got}; choose another name")]
    OtherName {
        /// The name asked for.
        name: String,
        /// The name the kernel gave.
        got: String,
    },
    /// No tokio runtime with IO enabled runs here.
    #[error(
        "the TUN device {name} needs a running tokio runtime: open it inside one, or open a \
         TunFile first"
    )]
    NoRuntime {
        /// The name asked for.
        name: String,
    },
    /// Anything else.
    #[error("the TUN device {name} could not be opened: {source}")]
    Other {
        /// The name asked for.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}
