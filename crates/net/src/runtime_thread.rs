//! A thread with its own tokio runtime.

use std::convert::Infallible;
use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long calls that block may go on at the end, such as those of a file system that hangs.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread with a tokio runtime of one thread, for a driver and the tasks that use its sockets.
///
/// Dropping it ends its tasks soon; [`join`](Self::join) waits until they are gone.
#[derive(Debug)]
pub struct RuntimeThread {
    runtime: Handle,
    /// Dropping it ends the thread.
    ending: oneshot::Sender<Infallible>,
    thread: thread::JoinHandle<()>,
}

impl RuntimeThread {
    /// Starts a thread with this name.
    ///
    /// # Errors
    /// The operating system has no thread or no descriptor left.
    pub fn start(name: impl Into<String>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (ending, ended) = oneshot::channel();
        let run = move || {
            // The sender is dropped, and sends nothing.
            let _ = runtime.block_on(ended);
            runtime.shutdown_timeout(PATIENCE);
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        Ok(Self { runtime: handle, ending, thread })
    }

    /// Runs a task on the thread.
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

    /// Drops the tasks and waits until that is done, and at most a second for calls that block
    /// (`spawn_blocking`). It blocks, and is not for a task of this thread.
    pub fn join(self) {
        drop(self.ending);
        // A panic has been reported.
        let _ = self.thread.join();
    }
}
