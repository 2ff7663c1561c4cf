//! A thread with its own tokio runtime.

use std::convert::Infallible;
use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long [`RuntimeThread::join`] waits for blocking calls, such as file operations that hang.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread with a single-threaded tokio runtime, for a driver and the tasks that use its sockets.
///
/// Dropping it stops the tasks soon after; [`join`](Self::join) waits until they have stopped.
#[derive(Debug)]
pub struct RuntimeThread {
    runtime: Handle,
    /// Dropping the sender stops the thread.
    ending: oneshot::Sender<Infallible>,
    thread: thread::JoinHandle<()>,
}

impl RuntimeThread {
    /// Starts a thread named `name`.
    ///
    /// # Errors
    /// The operating system cannot provide another thread or file descriptor.
    pub fn start(name: impl Into<String>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (ending, ended) = oneshot::channel();
        let run = move || {
            // The channel carries no message: it signals only that the sender was dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_timeout(PATIENCE);
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        Ok(Self { runtime: handle, ending, thread })
    }

    /// Spawns a task on the thread.
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

    /// Drops the tasks and waits until they are gone, for at most one second if blocking calls
    /// (`spawn_blocking`) still run. This call blocks: do not make it from a task of this thread.
    pub fn join(self) {
        drop(self.ending);
        // A panic of the thread has already been reported.
        let _ = self.thread.join();
    }
}
