//! The table of calls, as in packetdrill's `so_testing.h`.

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void};

use crate::calls;
use crate::target::Target;

/// The handle of a script's stack, an argument of every call.
pub type Handle = *mut c_void;

/// `struct packetdrill_interface`: the handle of the stack, and 32 calls with the handle as an
/// argument. On failure a call returns -1 and sets `errno`.
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
    /// The last argument is variadic in C; if present, it is in the same register.
    pub fcntl: extern "C" fn(Handle, c_int, c_int, c_long) -> c_int,
    /// The last argument is variadic in C, as that of `fcntl`.
    pub ioctl: extern "C" fn(Handle, c_int, c_ulong, *mut c_void) -> c_int,
    pub close: extern "C" fn(Handle, c_int) -> c_int,
    pub shutdown: extern "C" fn(Handle, c_int, c_int) -> c_int,
    pub getsockopt: extern "C" fn(Handle, c_int, c_int, c_int, *mut c_void, *mut c_void) -> c_int,
    pub setsockopt: extern "C" fn(Handle, c_int, c_int, c_int, *const c_void, c_uint) -> c_int,
    pub poll: extern "C" fn(Handle, *mut c_void, c_ulong, c_int) -> c_int,
    /// Injects a packet into the stack.
    pub netdev_send: extern "C" fn(Handle, *const c_void, usize) -> c_int,
    /// Returns a packet that was sent with its time in microseconds; advances the time until there
    /// is one.
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

/// Creates the stack for a script, and fills in the table of calls. Errors in `flags`
/// (docs/packetdrill.md) are printed to stderr and end the process, because a script must not test
/// a stack with other flags.
///
/// # Safety
///
/// `flags` is null or a string that ends with a zero byte, and `interface` can hold an
/// [`Interface`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut Interface,
) {
    let flags = match flags.is_null() {
        true => String::new(),
        // SAFETY: guaranteed by the caller.
        false => unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned(),
    };
    let flags = flags.parse().unwrap_or_else(|error| {
        eprintln!("--so_flags: {error}");
        std::process::exit(2);
    });
    let userdata = Target::register(Target::new(flags));
    // SAFETY: guaranteed by the caller.
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

    /// Asserts that the fields are in this order, eight bytes each.
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
