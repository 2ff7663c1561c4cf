//! Allocations during a transfer: almost none per segment, and no more memory in use the longer it
//! lasts.
//!
//! The peer is the kernel's TCP at the other end of a TUN device, with and without offload, in both
//! directions, as fast as possible. `AIRTCP_STEADY=60 cargo test --release --test steady --
//! --nocapture` runs a minute for each, and prints the figures.
//!
//! There is only one test, so that the allocator counts only its memory. Without namespaces or TUN
//! devices it is skipped with the reason; with `AIRTCP_REQUIRE_NETNS=1` it fails instead.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to implement; this one hands every call on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use airtcp_device::{Tun, TunFile, TunOptions};
use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use airtcp_testbed::{Namespace, TestbedError, or_skip};
use airtcp_types::ByteCount;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const TUN: &str = "tun0";
const MIB: u64 = 1 << 20;
/// Bytes until windows and buffers have reached their size, and bytes to measure.
const WARM: u64 = 64 * MIB;
const MEASURED: u64 = 256 * MIB;
/// The minimum of segments per allocation.
const SEGMENTS: u64 = 20;
/// The largest change of the memory in use, because buffers grow and shrink: twice the maximum of
/// both buffers.
const CHANGE: i64 = 16 << 20;
/// The maximum of a buffer.
const BUFFER: ByteCount = ByteCount::from_mib(4);
/// The most time that a transfer may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static MADE: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: each call forwards its arguments to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MADE.fetch_add(1, Ordering::Relaxed);
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    In,
    Out,
}

/// The counts at one time.
struct Look {
    made: u64,
    live: i64,
    segments: u64,
    bytes: u64,
    at: Instant,
}

struct Transfer {
    /// Kept as long as the device.
    _namespace: Namespace,
    stack: Stack,
    bytes: Arc<AtomicU64>,
    ours: JoinHandle<()>,
    kernel: std::thread::JoinHandle<()>,
}

impl Transfer {
    async fn begin(way: Way, offload: bool) -> Result<Self, TestbedError> {
        airtcp_testbed::requirements()?;
        let namespace = Namespace::new()?;
        let options = TunOptions { offload, ..TunOptions::default() };
        let file = namespace.run(move || TunFile::open_with(TUN, options)).expect("a TUN device");
        namespace.configure(TUN, &["10.79.0.1/24".parse().expect("an address")], Some(1500))?;
        let mut config = HostConfig::new(["10.79.0.2/24".parse().expect("an address")]);
        config.tcp.send_buffer = BUFFER;
        config.tcp.receive_buffer = BUFFER;
        let stack = Stack::new(Tun::new(file).expect("a device"), config).expect("a stack");
        let address = SocketAddr::from(([10, 79, 0, 2], 9));
        let listener = stack.listen(address, 1).expect("a listener");
        let kernel = namespace.spawn_thread(move || of_the_kernel(way, address)).expect("a thread");
        let (mut stream, _) =
            timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a connection");
        let bytes = Arc::new(AtomicU64::new(0));
        let moved = bytes.clone();
        let ours = tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            // Until the kernel's side closes.
            while let Ok(more @ 1..) = match way {
                Way::In => stream.read(&mut buffer).await,
                Way::Out => stream.write(&buffer).await,
            } {
                moved.fetch_add(more as u64, Ordering::Relaxed);
            }
        });
        Ok(Self { _namespace: namespace, stack, bytes, ours, kernel })
    }

    fn look(&self) -> Look {
        let counters = self.stack.counters();
        Look {
            made: MADE.load(Ordering::Relaxed),
            live: LIVE.load(Ordering::Relaxed),
            segments: counters.tcp_in_segs + counters.tcp_out_segs,
            bytes: self.bytes.load(Ordering::Relaxed),
            at: Instant::now(),
        }
    }

    async fn has_moved(&self, bytes: u64) {
        while self.bytes.load(Ordering::Relaxed) < bytes {
            assert!(!self.ours.is_finished(), "it ended early");
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(self) {
        // The stack's RST, or its end, ends the kernel's side.
        self.ours.abort();
        self.stack.shutdown_within(Duration::from_millis(100)).await;
        let kernel = tokio::task::spawn_blocking(move || self.kernel.join());
        timeout(PATIENCE, kernel)
            .await
            .expect("in time")
            .expect("a task")
            .expect("the kernel's part");
    }
}

/// Sends or receives until the peer is gone.
fn of_the_kernel(way: Way, address: SocketAddr) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time-out");
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(1..) = match way {
        Way::In => stream.write(&buffer),
        Way::Out => stream.read(&mut buffer),
    } {}
    let _ = stream.shutdown(Shutdown::Both);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flowing_data_hardly_allocates() {
    let time = std::env::var("AIRTCP_STEADY").ok();
    let time = time.map(|text| Duration::from_secs(text.parse().expect("a number of seconds")));
    for (offload, way) in [(false, Way::In), (false, Way::Out), (true, Way::In), (true, Way::Out)] {
        let Some(transfer) = or_skip(Transfer::begin(way, offload).await) else { return };
        transfer.has_moved(WARM).await;
        let before = transfer.look();
        match time {
            Some(time) => sleep(time).await,
            None => transfer.has_moved(before.bytes + MEASURED).await,
        }
        let after = transfer.look();
        let (made, segments) = (after.made - before.made, after.segments - before.segments);
        let (change, bytes) = (after.live - before.live, after.bytes - before.bytes);
        let rate = bytes as f64 * 8e-9 / (after.at - before.at).as_secs_f64();
        println!(
            "{way:?}, offload {offload}: {made} allocations for {segments} segments, {change} bytes more in use; {rate:.1} Gbit/s",
        );
        transfer.end().await;
        assert!(segments > bytes / 1500, "{segments} segments of {bytes} bytes");
        assert!(made * SEGMENTS < segments, "{made} allocations for {segments} segments");
        assert!(change < CHANGE, "{change} bytes more in use");
    }
}
