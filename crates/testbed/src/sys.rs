//! The unsafe call between fork and exec.
#![expect(unsafe_code, reason = "a child asks for its own death signal before it execs")]

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::{prctl, signal::Signal};

/// Makes the children of `command` receive SIGKILL when the thread that spawned them ends.
pub(crate) fn die_with_parent(command: &mut Command) {
    // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?));
    }
}
