//! Opening a TUN device, and what may go wrong with it.

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

/// The longest interface name: IFNAMSIZ less its closing zero.
const NAME_MAX: usize = 15;

/// How a TUN device is opened.
///
/// All descriptors of one interface, which only `multi_queue` allows, are to be opened with the
/// same options: the kernel keeps them for the interface, and what the last one asked for holds for
/// all.
#[derive(Clone, Copy, Debug, Default)]
pub struct TunOptions {
    /// Whether super-segments and packets with a partial checksum pass between the kernel and the
    /// device's user, as they do between the kernel and a network card. Kernels before 6.2 cut
    /// those of UDP themselves.
    pub offload: bool,
    /// Whether the interface may be opened several times, by which it gets as many queues: each
    /// takes packets of its own flows.
    pub multi_queue: bool,
}

/// An open TUN device that no runtime drives yet.
///
/// Opening looks up the name in the network namespace of the calling thread; the descriptor stays
/// bound to that namespace and may be used from any thread. So a device inside a namespace is
/// opened by a thread that has entered it, and given to [`Tun::new`](crate::Tun::new) wherever the
/// runtime is.
#[derive(Debug)]
pub struct TunFile {
    pub(super) interface: Interface,
}

/// A descriptor of an interface, and what else names it.
pub(crate) struct Interface {
    pub(super) device: SyncDevice,
    pub(super) name: String,
    pub(super) options: TunOptions,
    /// Any socket will do; it is bound to the namespace it was made in, unlike /sys.
    control: UnixDatagram,
}

impl TunFile {
    /// Opens the TUN device `name`, and makes it if there is none.
    ///
    /// A device made here is removed when it is dropped; one that `ip tuntap add` made stays.
    ///
    /// # Errors
    /// See [`DeviceError`]: its text says what to type.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        Self::open_with(name, TunOptions::default())
    }

    /// Opens the TUN device `name` as [`open`](Self::open) does, with options.
    ///
    /// # Errors
    /// See [`DeviceError`]; also those of an interface that was made with another `multi_queue`.
    pub fn open_with(name: &str, options: TunOptions) -> Result<Self, DeviceError> {
        check_name(name)?;
        // The library would make the node where it is missing: that is for whoever owns the
        // machine.
        if let Ok(false) = Path::new(NODE).try_exists() {
            return Err(DeviceError::NoDriver { source: Errno::ENOENT.into() });
        }
        let control = UnixDatagram::unbound().map_err(|source| other(name, source))?;
        // Without offload it has the kernel give whole packets only, whatever the device's last
        // owner had asked for.
        let device = DeviceBuilder::new()
            .name(name)
            .inherit_enable_state()
            .with(|builder| {
                builder.offload(options.offload).multi_queue(options.multi_queue);
            })
            .build_sync()
            .map_err(|source| match source.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EINVAL) if sys::is_tun(&control, name) => queues(name, options),
                _ => explain(name, source, Path::new(NODE)),
            })?;
        // The kernel takes a template for a name and truncates a long one; neither passed above.
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
    /// Without CAP_NET_ADMIN over the namespace; the MTU not within 68..=65535.
    pub fn set_mtu(&self, mtu: usize) -> io::Result<()> {
        self.interface.set_mtu(mtu)
    }
}

impl Interface {
    // Not the library's: it asks in the namespace of the calling thread.
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

/// The one thing that a TUN device and those who open it have to agree on.
fn queues(name: &str, options: TunOptions) -> DeviceError {
    let name = name.to_owned();
    match options.multi_queue {
        true => DeviceError::SingleQueue { name },
        false => DeviceError::MultiQueue { name },
    }
}

/// What the kernel's refusal means. `node` stands for /dev/net/tun.
fn explain(name: &str, source: io::Error, node: &Path) -> DeviceError {
    let owned = || name.to_owned();
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => DeviceError::NoDriver { source },
        // Opening the node gives EACCES, or EPERM where a container forbids the device; so does
        // asking for an interface of another user. Only opening can tell them apart.
        Some(Errno::EPERM | Errno::EACCES) => {
            match std::fs::OpenOptions::new().read(true).write(true).open(node) {
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
