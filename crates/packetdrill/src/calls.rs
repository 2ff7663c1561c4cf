//! The calls of the table: each fetches its arguments, and returns a result, or -1 with `errno`.

use std::ffi::{c_int, c_long, c_longlong, c_uint, c_ulong, c_void};
use std::net::SocketAddr;
use std::time::Duration;

use nix::errno::Errno;

use crate::abi::Handle;
use crate::address;
use crate::memory::{Address, Pieces};
use crate::poll as polling;
use crate::target::Target;
use crate::transfer::{self, Message};

/// The result of a failed call.
const FAILED: i8 = -1;

/// Makes a call on the target with the handle `handle`.
fn on<T: From<i8>>(handle: Handle, call: impl FnOnce(&Target) -> Result<T, Errno>) -> T {
    finish(Target::find(handle.addr()).and_then(|target| call(&target)))
}

pub(crate) fn finish<T: From<i8>>(result: Result<T, Errno>) -> T {
    result.unwrap_or_else(|error| {
        error.set();
        T::from(FAILED)
    })
}

/// Converts a number of bytes to the result of a call.
fn bytes(result: Result<usize, Errno>) -> Result<isize, Errno> {
    result.and_then(|n| isize::try_from(n).map_err(|_| Errno::EOVERFLOW))
}

pub(crate) extern "C" fn free(handle: Handle) {
    Target::unregister(handle.addr());
}

pub(crate) extern "C" fn socket(u: Handle, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    on(u, |target| target.call(|world| world.open(domain, kind, protocol)))
}

pub(crate) extern "C" fn bind(u: Handle, fd: c_int, at: *const c_void, len: c_uint) -> c_int {
    on(u, |target| {
        let local = address::read(at.into(), len)?;
        target.call(|world| world.bind(fd, local)).map(|()| 0)
    })
}

pub(crate) extern "C" fn listen(u: Handle, fd: c_int, backlog: c_int) -> c_int {
    on(u, |target| target.call(|world| world.listen(fd, backlog)).map(|()| 0))
}

pub(crate) extern "C" fn accept(u: Handle, fd: c_int, at: *mut c_void, len: *mut c_void) -> c_int {
    on(u, |target| transfer::accept(target, fd, at.into(), len.into()))
}

pub(crate) extern "C" fn connect(u: Handle, fd: c_int, at: *const c_void, len: c_uint) -> c_int {
    on(u, |target| {
        let remote: SocketAddr = address::read(at.into(), len)?;
        transfer::connect(target, fd, remote).map(|()| 0)
    })
}

pub(crate) extern "C" fn read(u: Handle, fd: c_int, to: *mut c_void, len: usize) -> isize {
    recv(u, fd, to, len, 0)
}

pub(crate) extern "C" fn readv(u: Handle, fd: c_int, table: *const c_void, n: c_int) -> isize {
    on(u, |target| {
        let pieces = Pieces::fetch(table.into(), count(n)?)?;
        bytes(transfer::receive(target, fd, &pieces, 0))
    })
}

pub(crate) extern "C" fn recv(
    u: Handle,
    fd: c_int,
    to: *mut c_void,
    len: usize,
    flags: c_int,
) -> isize {
    let pieces = Pieces::one(to.into(), len);
    on(u, |target| bytes(transfer::receive(target, fd, &pieces, flags)))
}

pub(crate) extern "C" fn recvfrom(
    u: Handle,
    fd: c_int,
    to: *mut c_void,
    len: usize,
    flags: c_int,
    _name: *mut c_void,
    name_len: *mut c_void,
) -> isize {
    let pieces = Pieces::one(to.into(), len);
    on(u, |target| {
        let n = bytes(transfer::receive(target, fd, &pieces, flags))?;
        // TCP returns no source address.
        let name_len = Address::from(name_len);
        if !name_len.is_null() {
            name_len.write(&0u32.to_ne_bytes())?;
        }
        Ok(n)
    })
}

pub(crate) extern "C" fn recvmsg(
    u: Handle,
    fd: c_int,
    message: *mut c_void,
    flags: c_int,
) -> isize {
    on(u, |target| {
        let message = Message::fetch(message.into())?;
        let n = bytes(transfer::receive(target, fd, &message.pieces, flags))?;
        let unread = target.call(|world| world.unread_to_report(fd))?;
        message.finish(unread)?;
        Ok(n)
    })
}

pub(crate) extern "C" fn write(u: Handle, fd: c_int, from: *const c_void, len: usize) -> isize {
    send(u, fd, from, len, 0)
}

pub(crate) extern "C" fn writev(u: Handle, fd: c_int, table: *const c_void, n: c_int) -> isize {
    on(u, |target| {
        let pieces = Pieces::fetch(table.into(), count(n)?)?;
        bytes(transfer::send(target, fd, &pieces, 0))
    })
}

pub(crate) extern "C" fn send(
    u: Handle,
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
) -> isize {
    let pieces = Pieces::one(from.into(), len);
    on(u, |target| bytes(transfer::send(target, fd, &pieces, flags)))
}

/// The address is ignored for a connection, as in Linux.
pub(crate) extern "C" fn sendto(
    u: Handle,
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
    _name: *const c_void,
    _name_len: c_uint,
) -> isize {
    send(u, fd, from, len, flags)
}

pub(crate) extern "C" fn sendmsg(
    u: Handle,
    fd: c_int,
    message: *const c_void,
    flags: c_int,
) -> isize {
    on(u, |target| {
        let message = Message::fetch(message.into())?;
        bytes(transfer::send(target, fd, &message.pieces, flags))
    })
}

pub(crate) extern "C" fn fcntl(u: Handle, fd: c_int, command: c_int, argument: c_long) -> c_int {
    // The argument is an int: the upper half of the register is undefined.
    on(u, |target| target.call(|world| world.fcntl(fd, command, argument as i32)))
}

pub(crate) extern "C" fn ioctl(
    u: Handle,
    fd: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    on(u, |target| target.call(|world| world.ioctl(fd, request, argument.into())))
}

pub(crate) extern "C" fn close(u: Handle, fd: c_int) -> c_int {
    on(u, |target| target.call(|world| world.close(fd)).map(|()| 0))
}

pub(crate) extern "C" fn shutdown(u: Handle, fd: c_int, how: c_int) -> c_int {
    on(u, |target| target.call(|world| world.shutdown(fd, how)).map(|()| 0))
}

pub(crate) extern "C" fn getsockopt(
    u: Handle,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut c_void,
) -> c_int {
    on(u, |target| get_option(target, fd, level, name, value.into(), len.into()))
}

pub(crate) fn get_option(
    target: &Target,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: Address,
    len: Address,
) -> Result<c_int, Errno> {
    let room = usize::try_from(len.int()?).map_err(|_| Errno::EINVAL)?;
    let bytes = target.call(|world| world.option(fd, level, name))?;
    let n = bytes.len().min(room);
    value.write(&bytes[..n])?;
    len.write(&(n as u32).to_ne_bytes())?;
    Ok(0)
}

pub(crate) extern "C" fn setsockopt(
    u: Handle,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: c_uint,
) -> c_int {
    on(u, |target| {
        let bytes = Address::from(value).read(len as usize)?;
        target.call(|world| world.set_option(fd, level, name, &bytes)).map(|()| 0)
    })
}

pub(crate) extern "C" fn poll(u: Handle, table: *mut c_void, n: c_ulong, timeout: c_int) -> c_int {
    on(u, |target| polling::poll(target, table.into(), n as usize, timeout))
}

pub(crate) extern "C" fn netdev_send(u: Handle, packet: *const c_void, len: usize) -> c_int {
    on(u, |target| {
        let packet = Address::from(packet).read(len)?;
        target.call(|world| {
            world.receive(packet);
            Ok(0)
        })
    })
}

/// If there is no packet, returns a packet of zero bytes: on -1 packetdrill would retry forever.
pub(crate) extern "C" fn netdev_receive(
    u: Handle,
    packet: *mut c_void,
    len: *mut usize,
    time: *mut c_longlong,
) -> c_int {
    on(u, |target| {
        let (len, time) =
            (Address::from(len.cast::<c_void>()), Address::from(time.cast::<c_void>()));
        let Some(sent) = target.receive() else {
            len.write(&0usize.to_ne_bytes())?;
            time.write(&micros(target.time()).to_ne_bytes())?;
            return Ok(0);
        };
        let n = sent.bytes.len().min(len.usize()?);
        Address::from(packet).write(&sent.bytes[..n])?;
        len.write(&n.to_ne_bytes())?;
        time.write(&micros(sent.at).to_ne_bytes())?;
        Ok(0)
    })
}

pub(crate) extern "C" fn usleep(u: Handle, micros: c_uint) -> c_int {
    on(u, |target| {
        target.sleep(Duration::from_micros(micros.into()));
        Ok(0)
    })
}

/// The time zone is never requested.
pub(crate) extern "C" fn gettimeofday(u: Handle, time: *mut c_void, _zone: *mut c_void) -> c_int {
    on(u, |target| {
        let micros = micros(target.time());
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        Address::from(time).write(&[seconds.to_ne_bytes(), rest.to_ne_bytes()].concat())?;
        Ok(0)
    })
}

pub(crate) extern "C" fn epoll_create(u: Handle, _size: c_int) -> c_int {
    on(u, |target| target.call(|world| world.open_epoll()))
}

pub(crate) extern "C" fn epoll_ctl(
    u: Handle,
    epoll: c_int,
    op: c_int,
    fd: c_int,
    event: *mut c_void,
) -> c_int {
    on(u, |target| target.call(|world| world.epoll_ctl(epoll, op, fd, event.into())).map(|()| 0))
}

pub(crate) extern "C" fn epoll_wait(
    u: Handle,
    epoll: c_int,
    events: *mut c_void,
    most: c_int,
    timeout: c_int,
) -> c_int {
    on(u, |target| polling::epoll_wait(target, epoll, events.into(), most, timeout))
}

pub(crate) extern "C" fn pipe(_: Handle, _: *mut c_int) -> c_int {
    finish(Err(Errno::ENOSYS))
}

pub(crate) extern "C" fn splice(
    _: Handle,
    _: c_int,
    _: *mut c_void,
    _: c_int,
    _: *mut c_void,
    _: usize,
    _: c_uint,
) -> c_int {
    finish(Err(Errno::ENOSYS))
}

fn count(n: c_int) -> Result<usize, Errno> {
    usize::try_from(n).map_err(|_| Errno::EINVAL)
}

fn micros(at: airtcp_types::Instant) -> i64 {
    (at.as_nanos() / 1000) as i64
}
