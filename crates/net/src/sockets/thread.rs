//! A stack on a thread of its own.

use std::io;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::Stack;
use crate::runtime_thread::RuntimeThread;

/// A stack on a thread of its own with a single-threaded tokio runtime: the fastest way to run one
/// stack, on any number of cores.
///
/// The driver and the tasks that use the sockets take turns on that thread. A packet wakes no other
/// core, no lock is contended, and an ACK leaves with the response. [`spawn`](Self::spawn) starts
/// tasks there. Run work that blocks or keeps a processor busy, such as hashing or file access,
/// elsewhere: with `tokio::task::spawn_blocking`, or on another runtime. The sockets work on other
/// runtimes, too, at the price of a wake-up between threads. To serve flows on several cores, open
/// a device with several queues and start a [`Sibling`](super::Sibling) on a thread for each.
///
/// Only [`Stack::shutdown`] and [`Stack::drain`] close the connections. Dropping this value stops
/// its tasks and the stack soon after; [`join`](Self::join) waits until they and the device are
/// gone.
///
/// ```
/// use airtcp_device::memory;
/// use airtcp_net::{Stack, StackThread};
/// use airtcp_stack::HostConfig;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// // Instead of one end of a pair in memory: Tun::open("tun0")
/// let (device, other) = memory::pair(1500, 64);
/// let config = HostConfig::new(["10.0.0.1/24".parse()?]);
/// let server = StackThread::start("server", move || Stack::new(device, config))?;
/// let listener = server.stack().listen("10.0.0.1:7".parse()?, 16)?;
/// server.spawn(async move {
///     while let Ok((mut stream, _)) = listener.accept().await {
///         tokio::spawn(async move { stream.write_all(b"hello").await });
///     }
/// });
///
/// let client = Stack::new(other, HostConfig::new(["10.0.0.2/24".parse()?]))?;
/// let mut stream = client.connect("10.0.0.1:7".parse()?).await?;
/// let mut received = String::new();
/// stream.read_to_string(&mut received).await?;
/// assert_eq!(received, "hello");
/// server.stack().shutdown().await;
/// server.join();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StackThread {
    stack: Stack,
    thread: RuntimeThread,
}

impl StackThread {
    /// Starts a thread named `name` with a runtime, and calls `start` to create the stack.
    ///
    /// `start` runs on the calling thread, inside the new runtime: [`Stack::new`] and `Tun::open`
    /// in it use that runtime.
    ///
    /// # Errors
    /// The errors of `start`; the operating system cannot provide another thread or file
    /// descriptor.
    pub fn start<E: From<io::Error>>(
        name: impl Into<String>,
        start: impl FnOnce() -> Result<Stack, E>,
    ) -> Result<Self, E> {
        let thread = RuntimeThread::start(name)?;
        let stack = {
            let _entered = thread.runtime().enter();
            start()?
        };
        Ok(Self { stack, thread })
    }

    /// The stack.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Spawns a task on the thread of the stack.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.thread.spawn(task)
    }

    /// The runtime of the thread.
    pub const fn runtime(&self) -> &Handle {
        self.thread.runtime()
    }

    /// Drops the tasks, the stack and its device, and waits until they are gone, like
    /// [`RuntimeThread::join`].
    pub fn join(self) {
        self.thread.join();
    }
}
