//! The table of calls, as packetdrill's `so_testing.h` has it.

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void};

use crate::calls;
use crate::target::Target;

/// What stands for a script's stack in every call.
pub type Handle = *mut c_void;

/// `struct packetdrill_interface`: what stands for the stack, and 32 calls that take it. Each gives
/// -1 and sets `errno` where it fails.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names are those of the system calls")]
pub struct Interface {
    pub userdata: Handle,
    pub free: extern "C" fn(Handle),
    pub socket: extern "C" fn(Handle, c_int, c_int, c_int) -> c_int,
    pub bind: extern "C" fn(Handle, c_int, *const c_void, c_uint) -> c_int,
    pub listen: extern "C" fn(Handle, c_int, c_int) -> c_int,
    pub accept: extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int,
    pub connect: extern "C" fn(Handle, c_int, *const c_void, c_uint) -> c_int,
    pub read: extern "C" fn(Handle, c_int, *mut c_void, usize) -> isize,
    pub readv: extern "C" fn(Handle, c_int, *const c_void, c_int) -> isize,
    pub recv: extern "C" fn(Handle, c_int, *mut c_void, usize, c_int) -> isize,
    pub recvfrom:
        extern "C" fn(Handle, c_int, *mut c_void, usize, c_int, *mut c_void, *mut c_void) -> isize,
    pub recvmsg: extern "C" fn(Handle, c_int, *mut c_void, c_int) -> isize,
    pub write: extern "C" fn(Handle, c_int, *const c_void, usize) -> isize,
    pub writev: extern "C" fn(Handle, c_int, *const c_void, c_int) -> isize,
    pub send: extern "C" fn(Handle, c_int, *const c_void, usize, c_int) -> isize,
    pub sendto:
        extern "C" fn(Handle, c_int, *const c_void, usize, c_int, *const c_void, c_uint) -> isize,
    pub sendmsg: extern "C" fn(Handle, c_int, *const c_void, c_int) -> isize,
    /// In C the last argument is variadic. Where one is given it stands in the same register.
    pub fcntl: extern "C" fn(Handle, c_int, c_int, c_long) -> c_int,
    /// As `fcntl`.
    pub ioctl: extern "C" fn(Handle, c_int, c_ulong, *mut c_void) -> c_int,
    pub close: extern "C" fn(Handle, c_int) -> c_int,
    pub shutdown: extern "C" fn(Handle, c_int, c_int) -> c_int,
    pub getsockopt: extern "C" fn(Handle, c_int, c_int, c_int, *mut c_void, *mut c_void) -> c_int,
    pub setsockopt: extern "C" fn(Handle, c_int, c_int, c_int, *const c_void, c_uint) -> c_int,
    pub poll: extern "C" fn(Handle, *mut c_void, c_ulong, c_int) -> c_int,
    /// A packet goes into the stack.
    pub netdev_send: extern "C" fn(Handle, *const c_void, usize) -> c_int,
    /// A packet comes out, with the moment at which it left (µs); time passes until there is one.
    pub netdev_receive: extern "C" fn(Handle, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
    pub usleep: extern "C" fn(Handle, c_uint) -> c_int,
    pub gettimeofday: extern "C" fn(Handle, *mut c_void, *mut c_void) -> c_int,
    pub epoll_create: extern "C" fn(Handle, c_int) -> c_int,
    pub epoll_ctl: extern "C" fn(Handle, c_int, c_int, c_int, *mut c_void) -> c_int,
    pub epoll_wait: extern "C" fn(Handle, c_int, *mut c_void, c_int, c_int) -> c_int,
    pub pipe: extern "C" fn(Handle, *mut c_int) -> c_int,
    pub splice:
        extern "C" fn(Handle, c_int, *mut c_void, c_int, *mut c_void, usize, c_uint) -> c_int,
}

/// Makes a stack for one script, and tells how to call it. What is wrong with `flags` (see the
/// crate's documentation) is said on stderr, and ends the process: a script must not judge another
/// stack than was asked for.
///
/// # Safety
///
/// `flags` is null or a string that ends with a zero byte, and an [`Interface`] may be written to
/// `interface`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut Interface,
) {
    let flags = match flags.is_null() {
        true => String::new(),
        // SAFETY: the caller vouches for it.
        false => unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned(),
    };
    let flags = flags.parse().unwrap_or_else(|error| {
        eprintln!("--so_flags: {error}");
        std::process::exit(2);
    });
    let userdata = Target::register(Target::new(flags));
    // SAFETY: the caller vouches for it.
    unsafe { interface.write(table(userdata)) };
}

fn table(target: usize) -> Interface {
    Interface {
        userdata: std::ptr::without_provenance_mut(target),
        free: calls::free,
        socket: calls::socket,
        bind: calls::bind,
        listen: calls::listen,
        accept: calls::accept,
        connect: calls::connect,
        read: calls::read,
        readv: calls::readv,
        recv: calls::recv,
        recvfrom: calls::recvfrom,
        recvmsg: calls::recvmsg,
        write: calls::write,
        writev: calls::writev,
        send: calls::send,
        sendto: calls::sendto,
        sendmsg: calls::sendmsg,
        fcntl: calls::fcntl,
        ioctl: calls::ioctl,
        close: calls::close,
        shutdown: calls::shutdown,
        getsockopt: calls::getsockopt,
        setsockopt: calls::setsockopt,
        poll: calls::poll,
        netdev_send: calls::netdev_send,
        netdev_receive: calls::netdev_receive,
        usleep: calls::usleep,
        gettimeofday: calls::gettimeofday,
        epoll_create: calls::epoll_create,
        epoll_ctl: calls::epoll_ctl,
        epoll_wait: calls::epoll_wait,
        pipe: calls::pipe,
        splice: calls::splice,
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::Interface;

    /// Asserts that the fields follow each other in this order, eight bytes each.
    macro_rules! assert_order {
        ($($field:ident)*) => {{
            let offsets = [$((stringify!($field), offset_of!(Interface, $field))),*];
            for (place, (name, offset)) in offsets.iter().enumerate() {
                assert_eq!(*offset, place * 8, "{name}");
            }
            assert_eq!(size_of::<Interface>(), offsets.len() * 8);
        }};
    }

    #[test]
    fn the_table_is_laid_out_as_in_c() {
        assert_eq!(size_of::<Interface>(), 264);
        assert_order!(
            userdata free socket bind listen accept connect read readv recv recvfrom recvmsg write writev
            send sendto sendmsg fcntl ioctl close shutdown getsockopt setsockopt poll netdev_send
            netdev_receive usleep gettimeofday epoll_create epoll_ctl epoll_wait pipe splice
        );
    }
}
