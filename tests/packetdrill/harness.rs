//! Calls packetdrill's function table without packetdrill, with two threads and virtual time.

use std::fs;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::gettid;

use super::abi::Target;
use super::packets::{Heard, LOCAL, LOCAL_PORT, REMOTE, REMOTE_PORT, Segment};

/// The peer's initial sequence number.
const ISS: u32 = 1000;

/// A listening stack and its scripted peer.
struct World {
    target: Target,
    listener: i32,
    /// The stack's port.
    port: u16,
    /// The stack's initial sequence number, and in `next` the peer's next sequence number.
    iss: u32,
    next: u32,
}

impl World {
    fn new(flags: &str) -> Self {
        let target = Target::load(&format!("sysctl=off,{flags}"));
        let listener = target.socket().unwrap();
        target.bind(listener, LOCAL, LOCAL_PORT).unwrap();
        target.listen(listener).unwrap();
        Self { target, listener, port: LOCAL_PORT, iss: 0, next: ISS }
    }

    /// A world with an accepted connection.
    fn connected(flags: &str) -> (Self, i32) {
        let mut world = Self::new(flags);
        world.handshake();
        let (fd, address, port) = world.target.accept(world.listener).unwrap();
        assert_eq!((address, port), (REMOTE, REMOTE_PORT));
        (world, fd)
    }

    fn handshake(&mut self) {
        self.inject(Segment { seq: ISS, syn: true, ..Segment::default() });
        let (_, answer) = self.hear();
        assert_eq!((answer.flags.as_str(), answer.ack), ("S", Some(ISS + 1)));
        (self.iss, self.next) = (answer.seq, ISS + 1);
        self.acknowledge(0);
    }

    fn inject(&self, segment: Segment<'_>) {
        self.target.inject(&segment.to(self.port));
    }

    /// Acknowledges this many bytes of the stack.
    fn acknowledge(&self, bytes: u32) {
        let ack = Some(self.iss + 1 + bytes);
        self.inject(Segment { seq: self.next, ack, ..Segment::default() });
    }

    /// Sends the peer's data in order.
    fn data(&mut self, data: &[u8]) {
        let ack = Some(self.iss + 1);
        self.inject(Segment { seq: self.next, ack, data, ..Segment::default() });
        self.next += data.len() as u32;
    }

    /// Returns the next segment and its time (µs).
    #[track_caller]
    fn hear(&self) -> (i64, Heard) {
        let sent = self.target.sniff().expect("a packet is to leave");
        (sent.at, Heard::parse(&sent.bytes))
    }
}

#[test]
fn a_connection_is_opened_used_and_closed() {
    let (mut world, fd) = World::connected("");
    world.data(b"hello");
    let (_, ack) = world.hear();
    assert_eq!((ack.ack, ack.data.len()), (Some(world.next), 0));
    assert_eq!(world.target.queued(fd, libc::FIONREAD), Ok(5));
    assert_eq!(world.target.read(fd, 100), Ok(b"hello".to_vec()));

    assert_eq!(world.target.write(fd, b"goodbye"), Ok(7));
    let (_, data) = world.hear();
    assert_eq!((data.seq, data.data.as_slice()), (world.iss + 1, b"goodbye".as_slice()));
    assert_eq!(world.target.queued(fd, libc::TIOCOUTQ), Ok(7));
    world.acknowledge(7);
    assert_eq!(world.target.queued(fd, libc::TIOCOUTQ), Ok(0));

    world.target.close(fd).unwrap();
    let (_, fin) = world.hear();
    assert_eq!((fin.flags.as_str(), fin.seq), ("F", world.iss + 8));
    let ack = Some(world.iss + 9);
    world.inject(Segment { seq: world.next, ack, fin: true, ..Segment::default() });
    let (_, last) = world.hear();
    assert_eq!((last.seq, last.ack), (world.iss + 9, Some(world.next + 1)));
    assert_eq!(world.target.close(fd), Err(Errno::EBADF));
}

#[test]
fn lost_data_is_retransmitted_in_virtual_time() {
    let (world, fd) = World::connected("detection=sack");
    world.target.write(fd, &[7; 100]).unwrap();
    let (first, data) = world.hear();
    let mut times = vec![first];
    for _ in 0..5 {
        let (at, again) = world.hear();
        assert_eq!((again.seq, &again.data), (data.seq, &data.data));
        times.push(at);
    }
    let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // RFC 6298 section 5.5: each time-out is twice the one before.
    assert!(gaps.windows(2).skip(1).all(|pair| pair[1] == 2 * pair[0]), "{gaps:?}");
    assert!(world.target.now() > *times.last().unwrap());
    world.acknowledge(100);
    assert!(world.target.sniff().is_none(), "nothing is outstanding");
}

#[test]
fn a_blocked_call_returns_at_the_time_of_its_event() {
    let (mut world, fd) = World::connected("");
    for _ in 0..20 {
        let target = &world.target;
        let reader = AtomicI32::new(0);
        let (begin, end, data) = thread::scope(|scope| {
            let blocked = scope.spawn(|| {
                reader.store(gettid().as_raw(), Ordering::Relaxed);
                let data = target.read(fd, 10);
                (target.now(), data)
            });
            while !is_blocked(reader.load(Ordering::Relaxed)) {
                thread::yield_now();
            }
            target.sleep(30_000);
            let ack = Some(world.iss + 1);
            let segment = Segment { seq: world.next, ack, data: b"x", ..Segment::default() };
            let begin = target.now();
            target.inject(&segment.to(LOCAL_PORT));
            // However the threads are scheduled, time does not pass before the reader has read the
            // clock.
            target.sleep(1_000_000);
            let (end, data) = blocked.join().unwrap();
            (begin, end, data)
        });
        assert_eq!((data, end), (Ok(b"x".to_vec()), begin));
        world.next += 1;
        world.hear();
    }
}

/// Whether a thread sleeps, determined as packetdrill does it.
fn is_blocked(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}

#[test]
fn a_blocked_call_returns_at_its_time_out() {
    let (world, fd) = World::connected("");
    let target = &world.target;
    let (begin, end) = thread::scope(|scope| {
        let begin = target.now();
        let waiting = scope.spawn(move || {
            let events = target.poll(fd, libc::POLLIN, 50);
            (target.now(), events)
        });
        let mut waited = 0;
        while !waiting.is_finished() {
            target.sleep(1000);
            waited += 1;
            assert!(waited < 1_000_000, "it never ends");
        }
        let (end, events) = waiting.join().unwrap();
        assert_eq!(events, Ok(0));
        (begin, end)
    });
    assert!(end - begin >= 50_000, "{begin} {end}");
}

#[test]
fn a_refused_connection_returns_its_error_once() {
    let target = Target::load("sysctl=off");
    let fd = target.socket().unwrap();
    target.set_nonblocking(fd).unwrap();
    assert_eq!(target.connect(fd, REMOTE, REMOTE_PORT), Err(Errno::EINPROGRESS));
    assert_eq!(target.connect(fd, REMOTE, REMOTE_PORT), Err(Errno::EALREADY));
    let syn = Heard::parse(&target.sniff().unwrap().bytes);
    assert_eq!(syn.flags, "S");
    let reset = Segment { ack: Some(syn.seq + 1), rst: true, ..Segment::default() };
    target.inject(&reset.to(syn.port));
    assert_eq!(target.poll(fd, 0, 0).map(|events| events & libc::POLLERR), Ok(libc::POLLERR));
    let error = || target.option(fd, libc::SOL_SOCKET, libc::SO_ERROR).unwrap();
    assert_eq!(error(), libc::ECONNREFUSED.to_ne_bytes());
    assert_eq!(error(), 0i32.to_ne_bytes());
    assert_eq!(target.write(fd, b"x"), Err(Errno::EPIPE));
}

#[test]
fn epoll_reports_once_edge_triggered_and_repeatedly_level_triggered() {
    let (mut world, fd) = World::connected("");
    let (edge, level) =
        (world.target.epoll_create().unwrap(), world.target.epoll_create().unwrap());
    world.target.epoll_add(edge, fd, libc::EPOLLIN | libc::EPOLLET).unwrap();
    world.target.epoll_add(level, fd, libc::EPOLLIN).unwrap();
    let wait = |epoll| world.target.epoll_wait(epoll, 0);
    assert_eq!((wait(edge), wait(level)), (Ok(vec![]), Ok(vec![])));
    let news = vec![(libc::EPOLLIN, fd as u64)];
    world.data(b"a");
    let wait = |epoll| world.target.epoll_wait(epoll, 0);
    assert_eq!([wait(edge), wait(edge)], [Ok(news.clone()), Ok(vec![])]);
    assert_eq!([wait(level), wait(level)], [Ok(news.clone()), Ok(news.clone())]);
    world.data(b"b");
    assert_eq!(world.target.epoll_wait(edge, 0), Ok(news), "more has come");
    assert_eq!(world.target.epoll_add(edge, fd, libc::EPOLLIN), Err(Errno::EEXIST));
}

#[test]
fn figures_are_those_of_the_connection() {
    let (mut world, fd) = World::connected("");
    world.data(b"12345678");
    let (mut first, mut second) = ([0; 3], [0; 30]);
    let read = world.target.read_message(fd, &mut first, &mut second, &mut []);
    assert_eq!(read, Ok((8, 0, 0)));
    assert_eq!((&first, &second[..6]), (b"123", b"45678\0".as_slice()));
    let info = world.target.option(fd, libc::IPPROTO_TCP, libc::TCP_INFO).unwrap();
    assert_eq!(info.len(), 280);
    // Fields of struct tcp_info: the state, the bytes received, the congestion window.
    assert_eq!(info[0], 1, "TCP_ESTABLISHED");
    assert_eq!(info[128..136], 8u64.to_ne_bytes());
    assert_eq!(info[80..84], 10u32.to_ne_bytes(), "RFC 6928");
    let meminfo = world.target.option(fd, libc::SOL_SOCKET, 55).unwrap();
    assert_eq!(meminfo.len(), 36);
}

#[test]
fn recvmsg_returns_the_unread_bytes_if_requested() {
    let (mut world, fd) = World::connected("");
    world.target.set_option(fd, libc::IPPROTO_TCP, libc::TCP_INQ, 1).unwrap();
    world.data(b"12345678");
    let (mut first, mut second, mut control) = ([0; 2], [0; 3], [0; 24]);
    let mut read = |control: &mut [u8]| {
        world.target.read_message(fd, &mut first, &mut second, control).unwrap()
    };
    assert_eq!(read(&mut control), (5, 24, 0));
    // A struct cmsghdr: its length without padding, its level and type, and the number.
    assert_eq!(control[..8], 20u64.to_ne_bytes());
    let numbers: Vec<i32> =
        control[8..20].chunks(4).map(|int| i32::from_ne_bytes(int.try_into().unwrap())).collect();
    assert_eq!(numbers, [libc::SOL_TCP, libc::TCP_CM_INQ, 3]);
    assert_eq!(read(&mut []), (3, 0, libc::MSG_CTRUNC), "no room for the control message");
}

#[test]
fn nonsense_is_an_errno() {
    let (world, fd) = World::connected("");
    let target = &world.target;
    assert_eq!(target.accept(fd), Err(Errno::EINVAL));
    assert_eq!(target.read_to_nowhere(fd), Err(Errno::EAGAIN));
    target.inject(
        &Segment { seq: world.next, ack: Some(world.iss + 1), data: b"x", ..Segment::default() }
            .to(LOCAL_PORT),
    );
    assert_eq!(target.read_to_nowhere(fd), Err(Errno::EFAULT));
    assert_eq!(target.read(fd, 5), Ok(b"x".to_vec()), "nothing was lost by it");
    assert_eq!(target.read(9999, 1), Err(Errno::EBADF));
    assert_eq!(target.shutdown(fd, 9), Err(Errno::EINVAL));
    assert_eq!(target.set_option(fd, libc::IPPROTO_TCP, 9999, 1), Err(Errno::ENOPROTOOPT));
    assert_eq!(target.pipe(), Err(Errno::ENOSYS));
    target.free();
    assert_eq!(target.socket(), Err(Errno::EBADF));
}
