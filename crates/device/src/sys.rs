//! The unsafe call that registers a timer's descriptor.
#![expect(unsafe_code, reason = "the reactor takes descriptors as numbers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::sys::timerfd::TimerFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A kernel timer.
#[derive(Debug)]
pub(crate) struct Timer(pub(crate) TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Registers a timer's descriptor with the current runtime's reactor.
pub(crate) fn register_timer(timer: Timer) -> io::Result<AsyncFd<Timer>> {
    // SAFETY: a `TimerFd` owns one descriptor, always the same, and closes it when dropped.
    unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }.map_err(io::Error::from)
}
