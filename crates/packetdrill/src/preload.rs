//! `getsockopt` and `close`, for `LD_PRELOAD`: packetdrill asks libc, and not its table, for the
//! figures of its assertions, and closes by libc what a script has left open.

use std::ffi::{c_int, c_void};

use nix::errno::Errno;
use nix::libc;

use crate::calls::{finish, get_option};
use crate::target::Target;

/// As libc's; a descriptor of ours is answered for here.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut c_void,
) -> c_int {
    match Target::with_descriptor(fd) {
        Some(target) => finish(get_option(&target, fd, level, name, value.into(), len.into())),
        // SAFETY: the caller vouches for what it would say to libc.
        None => unsafe { raw(libc::syscall(libc::SYS_getsockopt, fd, level, name, value, len)) },
    }
}

/// As libc's; a descriptor of ours is closed here.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(fd: c_int) -> c_int {
    match Target::with_descriptor(fd) {
        Some(target) => finish(target.call(|world| world.close(fd)).map(|()| 0)),
        // SAFETY: the caller vouches for what it would say to libc.
        None => unsafe { raw(libc::syscall(libc::SYS_close, fd)) },
    }
}

/// `syscall(2)` has set `errno`.
fn raw(result: libc::c_long) -> c_int {
    finish(c_int::try_from(result).map_err(|_| Errno::EIO))
}
