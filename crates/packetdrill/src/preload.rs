//! `getsockopt` and `close` for `LD_PRELOAD`: packetdrill calls those of libc, not of its table,
//! for the values of its assertions, and to close the sockets that a script has left open.

use std::ffi::{c_int, c_void};

use nix::errno::Errno;
use nix::libc;

use crate::calls::{finish, get_option};
use crate::target::Target;

/// libc's `getsockopt`, which also supports the descriptors of this library.
///
/// # Safety
///
/// As for libc's function.
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
        // SAFETY: the caller guarantees what libc requires.
        None => unsafe { raw(libc::syscall(libc::SYS_getsockopt, fd, level, name, value, len)) },
    }
}

/// libc's `close`, which also supports the descriptors of this library.
///
/// # Safety
///
/// As for libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(fd: c_int) -> c_int {
    match Target::with_descriptor(fd) {
        Some(target) => finish(target.call(|world| world.close(fd)).map(|()| 0)),
        // SAFETY: the caller guarantees what libc requires.
        None => unsafe { raw(libc::syscall(libc::SYS_close, fd)) },
    }
}

/// Converts the result of `syscall(2)`, which has set `errno`.
fn raw(result: libc::c_long) -> c_int {
    finish(c_int::try_from(result).map_err(|_| Errno::EIO))
}
