//! A stack on a thread of its own.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Stack;

/// How long calls that block may go on at the end, such as those of a file system that hangs.
const PATIENCE: Duration = Duration::from_secs(1);

/// A stack on a thread of its own, with a tokio runtime of one thread: the fastest way to run a stack, on any number of
/// cores.
///
/// The driver and the tasks that use the sockets take turns on that thread. A packet wakes no other core, no lock is
/// contended, and an ACK leaves with the answer. [`spawn`](Self::spawn) starts tasks there. Work that keeps a processor
/// busy or blocks, such as hashing and files, belongs elsewhere: in `tokio::task::spawn_blocking`, or on another runtime,
/// where the sockets work as well, at the price of a wake-up from thread to thread. To serve flows on several cores, open
/// a device with several queues and start a [`Sibling`](super::Sibling) on a thread each.
///
/// Dropping it ends its tasks and the stack at once. Peers hear of it only after [`Stack::shutdown`] or [`Stack::drain`].
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
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StackThread {
    stack: Stack,
    runtime: Handle,
    /// Dropping it ends the thread.
    _ending: oneshot::Sender<Infallible>,
}

impl StackThread {
    /// Starts a thread of this name with a runtime, has `start` make the stack there, and waits until it is made.
    ///
    /// # Errors
    /// Those of `start`; the operating system has no thread or no descriptor left; `start` panicked.
    pub fn start<E>(
        name: impl Into<String>,
        start: impl FnOnce() -> Result<Stack, E> + Send + 'static,
    ) -> Result<Self, E>
    where
        E: From<io::Error> + Send + 'static,
    {
        let (started, starting) = mpsc::channel();
        let (ending, ended) = oneshot::channel();
        let run = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(error.into()))),
            };
            let stack = {
                let _entered = runtime.enter();
                start()
            };
            // Whoever waits for it waits until it is sent.
            let _ = started.send(stack.map(|stack| (stack, runtime.handle().clone())));
            let _ = runtime.block_on(ended);
            runtime.shutdown_timeout(PATIENCE);
        };
        thread::Builder::new().name(name.into()).spawn(run)?;
        let panicked = |_| io::Error::other("the thread of the stack panicked at its start");
        let (stack, runtime) = starting.recv().map_err(panicked)??;
        Ok(Self { stack, runtime, _ending: ending })
    }

    /// The stack.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Runs a task on the thread of the stack.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.spawn(task)
    }

    /// The runtime of the thread.
    pub const fn runtime(&self) -> &Handle {
        &self.runtime
    }
}
