//! Real descriptors, so that their numbers do not collide with others.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// The open descriptors. `close` of the feature `preload` is also called from within this library,
/// and then must not find the descriptor that is being closed.
static OPEN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A descriptor that represents an object of this library.
#[derive(Debug)]
pub(crate) struct Descriptor(EventFd);

impl Descriptor {
    pub(crate) fn open() -> Result<Self, Errno> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        open().insert(event.as_raw_fd());
        Ok(Self(event))
    }

    pub(crate) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        open().remove(&self.number());
    }
}

/// Whether a descriptor belongs to this library.
#[cfg(all(feature = "preload", not(test)))]
pub(crate) fn is_ours(fd: i32) -> bool {
    open().contains(&fd)
}

fn open() -> MutexGuard<'static, BTreeSet<i32>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
