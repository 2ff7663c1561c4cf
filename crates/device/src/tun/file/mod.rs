//! Opening a TUN device, and its errors.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use nix::errno::Errno;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::sys;
use crate::DeviceError;

const NODE: &str = "/dev/net/tun";

/// The maximum length of an interface name: IFNAMSIZ without the terminating zero.
const NAME_MAX: usize = 15;

/// Options for opening a TUN device.
///
/// Open all descriptors of one interface, which requires `multi_queue`, with the same options: the
/// kernel keeps offload settings for each interface, and the last ones set apply to all.
#[derive(Clone, Copy, Debug, Default)]
pub struct TunOptions {
    /// Whether super-segments and packets with a partial checksum pass between the kernel and the
    /// user of the device, as between the kernel and a network card. Kernels before 6.2 segment UDP
    /// packets themselves.
    pub offload: bool,
    /// Whether the interface can be opened several times. Each open descriptor is a queue that
    /// receives the packets of its own flows.
    pub multi_queue: bool,
}

/// An open TUN device that is not yet driven by a runtime.
///
/// Opening looks up the name in the network namespace of the calling thread. The descriptor stays
/// bound to that namespace and can be used from any thread. To use a device inside a namespace,
/// open it on a thread that has entered the namespace, and pass it to [`Tun::new`](crate::Tun::new)
/// on the runtime.
#[derive(Debug)]
pub struct TunFile {
    pub(super) interface: Interface,
}

/// An open descriptor of an interface.
pub(crate) struct Interface {
    pub(super) device: SyncDevice,
    pub(super) name: String,
    pub(super) options: TunOptions,
    /// A socket for ioctls. Unlike /sys, it is bound to the namespace in which it was created.
    control: UnixDatagram,
}

impl TunFile {
    /// Opens the TUN device `name`, and creates it if it does not exist.
    ///
    /// A device created here is removed when it is dropped; a device created by `ip tuntap add`
    /// stays.
    ///
    /// # Errors
    /// See [`DeviceError`]; its message says which command solves the problem.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        Self::open_with(name, TunOptions::default())
    }

    /// Opens the TUN device `name` like [`open`](Self::open), with options.
    ///
    /// # Errors
    /// See [`DeviceError`]; also if the interface was created with a different `multi_queue`.
    pub fn open_with(name: &str, options: TunOptions) -> Result<Self, DeviceError> {
        check_name(name)?;
        // tun-rs would create a missing node, which is the administrator's decision.
        if let Ok(false) = Path::new(NODE).try_exists() {
            return Err(DeviceError::NoDriver { source: Errno::ENOENT.into() });
        }
        let control = UnixDatagram::unbound().map_err(|source| other(name, source))?;
        // Without `offload`, tun-rs resets the offload settings that the device's previous user may
        // have left, so that the kernel sends complete packets only.
        let device = DeviceBuilder::new()
            .name(name)
            .inherit_enable_state()
            .with(|builder| {
                builder.offload(options.offload).multi_queue(options.multi_queue);
            })
            .build_sync()
            .map_err(|source| match source.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EINVAL) if sys::is_tun(&control, name) => queues(name, options),
                _ => explain(name, source, Path::new(NODE), sys::is_tun(&control, name)),
            })?;
        // The kernel expands a name template and truncates a long name; `check_name` rejects both.
        let got = device.name().map_err(|source| other(name, source))?;
        if got != name {
            return Err(DeviceError::OtherName { name: name.to_owned(), got });
        }
        device.set_nonblocking(true).map_err(|source| other(name, source))?;
        Ok(Self { interface: Interface { device, name: got, control, options } })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.interface.name
    }

    /// The interface's MTU, in bytes.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn mtu(&self) -> io::Result<usize> {
        self.interface.mtu()
    }

    /// Sets the interface's MTU, in bytes.
    ///
    /// # Errors
    /// The process lacks CAP_NET_ADMIN in the namespace; `mtu` is not within 68..=65535.
    pub fn set_mtu(&self, mtu: usize) -> io::Result<()> {
        self.interface.set_mtu(mtu)
    }
}

impl Interface {
    // Not tun-rs's function, which queries the namespace of the calling thread.
    pub(super) fn mtu(&self) -> io::Result<usize> {
        sys::mtu(&self.control, &self.name)
    }

    pub(super) fn set_mtu(&self, mtu: usize) -> io::Result<()> {
        sys::set_mtu(&self.control, &self.name, mtu)
    }
}

impl AsRawFd for Interface {
    fn as_raw_fd(&self) -> RawFd {
        self.device.as_raw_fd()
    }
}

impl fmt::Debug for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interface")
            .field("name", &self.name)
            .field("fd", &self.as_raw_fd())
            .finish_non_exhaustive()
    }
}

fn check_name(name: &str) -> Result<(), DeviceError> {
    let forbidden = |byte: u8| byte.is_ascii_whitespace() || b"/:%\x0b\0".contains(&byte);
    let reason = match name {
        "" => "the name is empty",
        "." | ".." => "the name is reserved",
        _ if name.len() > NAME_MAX => "the name is longer than 15 bytes",
        _ if name.bytes().any(forbidden) => "the name has an invalid character",
        _ => return Ok(()),
    };
    Err(DeviceError::Name { name: name.to_owned(), reason })
}

/// Returns the error of opening an interface with the wrong `multi_queue`.
fn queues(name: &str, options: TunOptions) -> DeviceError {
    let name = name.to_owned();
    match options.multi_queue {
        true => DeviceError::SingleQueue { name },
        false => DeviceError::MultiQueue { name },
    }
}

/// Translates the kernel's error. `node` stands for /dev/net/tun; `exists` is whether there is a TUN
/// device of this name.
fn explain(name: &str, source: io::Error, node: &Path, exists: bool) -> DeviceError {
    let owned = || name.to_owned();
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => DeviceError::NoDriver { source },
        // Opening the node fails with EACCES, or with EPERM if a container forbids the device;
        // opening another user's interface fails in the same way. Trying to open the node
        // distinguishes them.
        Some(Errno::EPERM | Errno::EACCES) => {
            match std::fs::OpenOptions::new().read(true).write(true).open(node) {
                Ok(_) if exists => DeviceError::OtherUser { name: owned() },
                Ok(_) => DeviceError::NotPermitted { name: owned() },
                Err(source) => DeviceError::NodeForbidden { source },
            }
        }
        Some(Errno::EBUSY) => DeviceError::Busy { name: owned() },
        Some(Errno::EINVAL | Errno::EEXIST) => DeviceError::Taken { name: owned() },
        _ => other(name, source),
    }
}

pub(super) fn other(name: &str, source: io::Error) -> DeviceError {
    DeviceError::Other { name: name.to_owned(), source }
}

#[cfg(test)]
mod tests;
