//! The function table of packetdrill's `so_testing.h`, written down a second time.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::{offset_of, zeroed};
use std::path::PathBuf;

use libloading::os::unix::Library;
use nix::errno::Errno;
use nix::libc;

type Call<A> = unsafe extern "C" fn(*mut c_void, A) -> c_int;
type Unused = usize;

#[repr(C)]
struct Interface {
    userdata: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    socket: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int,
    bind: unsafe extern "C" fn(*mut c_void, c_int, *const libc::sockaddr_in, u32) -> c_int,
    listen: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    accept: unsafe extern "C" fn(*mut c_void, c_int, *mut libc::sockaddr_in, *mut u32) -> c_int,
    connect: unsafe extern "C" fn(*mut c_void, c_int, *const libc::sockaddr_in, u32) -> c_int,
    read: unsafe extern "C" fn(*mut c_void, c_int, *mut u8, usize) -> isize,
    readv: Unused,
    recv: unsafe extern "C" fn(*mut c_void, c_int, *mut u8, usize, c_int) -> isize,
    recvfrom: Unused,
    recvmsg: unsafe extern "C" fn(*mut c_void, c_int, *mut libc::msghdr, c_int) -> isize,
    write: unsafe extern "C" fn(*mut c_void, c_int, *const u8, usize) -> isize,
    writev: Unused,
    send: Unused,
    sendto: Unused,
    sendmsg: Unused,
    fcntl: unsafe extern "C" fn(*mut c_void, c_int, c_int, ...) -> c_int,
    ioctl: unsafe extern "C" fn(*mut c_void, c_int, libc::c_ulong, ...) -> c_int,
    close: Call<c_int>,
    shutdown: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    getsockopt:
        unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut c_void, *mut u32) -> c_int,
    setsockopt: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *const c_void, u32) -> c_int,
    poll: unsafe extern "C" fn(*mut c_void, *mut libc::pollfd, libc::nfds_t, c_int) -> c_int,
    netdev_send: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int,
    netdev_receive: unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize, *mut i64) -> c_int,
    usleep: Call<u32>,
    gettimeofday: unsafe extern "C" fn(*mut c_void, *mut libc::timeval, *mut c_void) -> c_int,
    epoll_create: Call<c_int>,
    epoll_ctl:
        unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut libc::epoll_event) -> c_int,
    epoll_wait:
        unsafe extern "C" fn(*mut c_void, c_int, *mut libc::epoll_event, c_int, c_int) -> c_int,
    pipe: Call<*mut c_int>,
    splice: Unused,
}

const _: () = assert!(size_of::<Interface>() == 264 && offset_of!(Interface, splice) == 256);

/// The flags with which packetdrill loads a library, which then stays loaded.
const LIKE_PACKETDRILL: c_int =
    libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE | libc::RTLD_DEEPBIND;

/// A stack behind the table. Several threads may call it, as packetdrill does.
pub(super) struct Target {
    interface: Interface,
}

// SAFETY: the library serializes its calls; packetdrill calls it from two threads.
unsafe impl Sync for Target {}
// SAFETY: as above; nothing in the table belongs to a thread.
unsafe impl Send for Target {}

/// A packet that left, and its time (µs).
pub(super) struct Sent {
    pub(super) at: i64,
    pub(super) bytes: Vec<u8>,
}

impl Target {
    /// Loads the library, which was built with this test.
    pub(super) fn load(flags: &str) -> Self {
        let path = library();
        let flags = CString::new(flags).unwrap();
        // SAFETY: the library runs no code when it is loaded, and its one function fills a table of
        // the declared size.
        unsafe {
            let library = Library::open(Some(&path), LIKE_PACKETDRILL)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let init = library
                .get::<unsafe extern "C" fn(*const c_char, *mut Interface)>(
                    b"packetdrill_interface_init",
                )
                .unwrap();
            // A table that was not filled contains null pointers, which function pointers must not
            // be, so it is read as integers.
            let mut raw = [0u64; 33];
            init(flags.as_ptr(), raw.as_mut_ptr().cast());
            assert!(raw.iter().all(|pointer| *pointer != 0), "none of the calls is missing");
            Self { interface: std::mem::transmute::<[u64; 33], Interface>(raw) }
        }
    }

    pub(super) fn socket(&self) -> Result<i32, Errno> {
        // SAFETY: no pointer is passed.
        result(unsafe { (self.interface.socket)(self.u(), libc::AF_INET, libc::SOCK_STREAM, 0) })
    }

    pub(super) fn bind(&self, fd: i32, address: [u8; 4], port: u16) -> Result<i32, Errno> {
        let address = sockaddr(address, port);
        // SAFETY: the address has the stated length.
        result(unsafe { (self.interface.bind)(self.u(), fd, &address, 16) })
    }

    pub(super) fn listen(&self, fd: i32) -> Result<i32, Errno> {
        // SAFETY: no pointer is passed.
        result(unsafe { (self.interface.listen)(self.u(), fd, 8) })
    }

    /// Returns the new descriptor and the peer's address and port.
    pub(super) fn accept(&self, fd: i32) -> Result<(i32, [u8; 4], u16), Errno> {
        // SAFETY: there is room for an IPv4 address.
        unsafe {
            let mut address: libc::sockaddr_in = zeroed();
            let mut len = 16;
            let new = result((self.interface.accept)(self.u(), fd, &mut address, &mut len))?;
            assert_eq!((len, i32::from(address.sin_family)), (16, libc::AF_INET));
            let octets = address.sin_addr.s_addr.to_ne_bytes();
            Ok((new, octets, u16::from_be(address.sin_port)))
        }
    }

    pub(super) fn connect(&self, fd: i32, address: [u8; 4], port: u16) -> Result<i32, Errno> {
        let address = sockaddr(address, port);
        // SAFETY: the address has the stated length.
        result(unsafe { (self.interface.connect)(self.u(), fd, &address, 16) })
    }

    pub(super) fn write(&self, fd: i32, data: &[u8]) -> Result<isize, Errno> {
        // SAFETY: the pointer and the length are those of a slice.
        long_result(unsafe { (self.interface.write)(self.u(), fd, data.as_ptr(), data.len()) })
    }

    pub(super) fn read(&self, fd: i32, most: usize) -> Result<Vec<u8>, Errno> {
        let mut data = vec![0; most];
        // SAFETY: the buffer has the stated length.
        let n = unsafe { (self.interface.read)(self.u(), fd, data.as_mut_ptr(), most) };
        data.truncate(long_result(n)? as usize);
        Ok(data)
    }

    /// Calls recv(2) with a pointer to unmapped memory.
    pub(super) fn read_to_nowhere(&self, fd: i32) -> Result<isize, Errno> {
        let nowhere = std::ptr::without_provenance_mut(8);
        // SAFETY: the library does not access the unmapped memory, which this call tests.
        long_result(unsafe {
            (self.interface.recv)(self.u(), fd, nowhere, 100, libc::MSG_DONTWAIT)
        })
    }

    /// Calls recvmsg(2) with two buffers and control data. Returns the bytes read, the bytes of
    /// control data, and the flags.
    pub(super) fn read_message(
        &self,
        fd: i32,
        first: &mut [u8],
        second: &mut [u8],
        control: &mut [u8],
    ) -> Result<(isize, usize, i32), Errno> {
        let piece = |bytes: &mut [u8]| libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let mut pieces = [piece(first), piece(second)];
        // SAFETY: a zeroed message has no name; the buffers have the stated lengths.
        unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = pieces.as_mut_ptr();
            message.msg_iovlen = 2;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = control.len();
            let n = long_result((self.interface.recvmsg)(self.u(), fd, &mut message, 0))?;
            Ok((n, message.msg_controllen, message.msg_flags))
        }
    }

    pub(super) fn set_nonblocking(&self, fd: i32) -> Result<i32, Errno> {
        // SAFETY: the argument of F_SETFL is an int.
        result(unsafe {
            (self.interface.fcntl)(self.u(), fd, libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK)
        })
    }

    /// Bytes that can be read (`SIOCINQ`) or that are not acknowledged (`SIOCOUTQ`).
    pub(super) fn queued(&self, fd: i32, request: libc::c_ulong) -> Result<i32, Errno> {
        let mut bytes: c_int = 0;
        // SAFETY: the argument of both requests is a pointer to an int.
        result(unsafe { (self.interface.ioctl)(self.u(), fd, request, &raw mut bytes) })?;
        Ok(bytes)
    }

    pub(super) fn close(&self, fd: i32) -> Result<i32, Errno> {
        // SAFETY: no pointer is passed.
        result(unsafe { (self.interface.close)(self.u(), fd) })
    }

    pub(super) fn shutdown(&self, fd: i32, how: i32) -> Result<i32, Errno> {
        // SAFETY: no pointer is passed.
        result(unsafe { (self.interface.shutdown)(self.u(), fd, how) })
    }

    pub(super) fn option(&self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>, Errno> {
        let (mut value, mut len) = (vec![0u8; 512], 512);
        let at = value.as_mut_ptr().cast();
        // SAFETY: the buffer has the stated length.
        result(unsafe { (self.interface.getsockopt)(self.u(), fd, level, name, at, &mut len) })?;
        value.truncate(len as usize);
        Ok(value)
    }

    pub(super) fn set_option(
        &self,
        fd: i32,
        level: i32,
        name: i32,
        value: i32,
    ) -> Result<i32, Errno> {
        let at = (&raw const value).cast();
        // SAFETY: the value has the stated length.
        result(unsafe { (self.interface.setsockopt)(self.u(), fd, level, name, at, 4) })
    }

    /// Waits for events of one descriptor, at most `timeout` ms.
    pub(super) fn poll(&self, fd: i32, events: i16, timeout: i32) -> Result<i16, Errno> {
        let mut one = libc::pollfd { fd, events, revents: 0 };
        // SAFETY: the pointer is to an array of one.
        result(unsafe { (self.interface.poll)(self.u(), &mut one, 1, timeout) })?;
        Ok(one.revents)
    }

    /// Sends a packet into the stack.
    pub(super) fn inject(&self, packet: &[u8]) {
        // SAFETY: the pointer and the length are those of a slice.
        let done = unsafe { (self.interface.netdev_send)(self.u(), packet.as_ptr(), packet.len()) };
        assert_eq!(done, 0);
    }

    /// Returns the next packet that left the stack, or `None` if no packet follows.
    pub(super) fn sniff(&self) -> Option<Sent> {
        let (mut bytes, mut len, mut at) = (vec![0; 65_536], 65_536, 0);
        // SAFETY: the buffer has the stated length.
        let done = unsafe {
            (self.interface.netdev_receive)(self.u(), bytes.as_mut_ptr(), &mut len, &mut at)
        };
        assert_eq!(done, 0);
        bytes.truncate(len);
        (len > 0).then_some(Sent { at, bytes })
    }

    pub(super) fn sleep(&self, micros: u32) {
        // SAFETY: no pointer is passed.
        assert_eq!(unsafe { (self.interface.usleep)(self.u(), micros) }, 0);
    }

    /// The time (µs).
    pub(super) fn now(&self) -> i64 {
        // SAFETY: a zeroed timeval is valid, and the time zone may be null.
        unsafe {
            let mut time: libc::timeval = zeroed();
            let none = std::ptr::null_mut();
            assert_eq!((self.interface.gettimeofday)(self.u(), &mut time, none), 0);
            time.tv_sec * 1_000_000 + time.tv_usec
        }
    }

    pub(super) fn epoll_create(&self) -> Result<i32, Errno> {
        // SAFETY: no pointer is passed.
        result(unsafe { (self.interface.epoll_create)(self.u(), 1) })
    }

    pub(super) fn epoll_add(&self, epoll: i32, fd: i32, events: i32) -> Result<i32, Errno> {
        let mut event = libc::epoll_event { events: events as u32, u64: fd as u64 };
        let op = libc::EPOLL_CTL_ADD;
        // SAFETY: the pointer is to a valid event.
        result(unsafe { (self.interface.epoll_ctl)(self.u(), epoll, op, fd, &mut event) })
    }

    /// Returns events with their descriptors.
    pub(super) fn epoll_wait(&self, epoll: i32, timeout: i32) -> Result<Vec<(i32, u64)>, Errno> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        let at = events.as_mut_ptr();
        // SAFETY: there is room for four.
        let n = result(unsafe { (self.interface.epoll_wait)(self.u(), epoll, at, 4, timeout) })?;
        Ok(events[..n as usize].iter().map(|event| (event.events as i32, event.u64)).collect())
    }

    pub(super) fn pipe(&self) -> Result<i32, Errno> {
        let mut ends = [0; 2];
        // SAFETY: there is room for two.
        result(unsafe { (self.interface.pipe)(self.u(), ends.as_mut_ptr()) })
    }

    /// Frees the stack. Calls after this fail.
    pub(super) fn free(&self) {
        // SAFETY: no pointer is passed.
        unsafe { (self.interface.free)(self.u()) };
    }

    fn u(&self) -> *mut c_void {
        self.interface.userdata
    }
}

/// The library's path: cargo puts it beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libairtcp_packetdrill.so")
}

fn sockaddr(address: [u8; 4], port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address) },
        sin_zero: [0; 8],
    }
}

fn result(code: c_int) -> Result<c_int, Errno> {
    Errno::result(code)
}

fn long_result(code: isize) -> Result<isize, Errno> {
    Errno::result(code)
}
