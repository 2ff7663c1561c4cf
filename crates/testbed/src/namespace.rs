//! An anonymous network namespace with a thread inside.

use std::fs::File;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::{TestbedError, link, privilege, sys};

type Job = Box<dyn FnOnce() + Send>;

/// An anonymous network namespace with one thread in it.
///
/// The thread runs its own tokio runtime: [`run`](Namespace::run) executes a closure on it,
/// [`spawn`](Namespace::spawn) a future. Sockets and TUN devices opened there belong to the
/// namespace wherever they are used. Loopback is up from the start.
///
/// Dropping the value ends the thread with all its tasks and child processes. The kernel frees the
/// namespace with the last thread and descriptor in it, so killing the process cleans up too.
#[derive(Debug)]
pub struct Namespace {
    // Taken in `drop`: the thread ends when all senders are dropped.
    jobs: Option<UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
    runtime: Handle,
    thread_id: ThreadId,
    net: File,
}

impl Namespace {
    /// Creates a namespace with nothing but loopback.
    ///
    /// # Errors
    /// [`TestbedError::Unavailable`] without the necessary privileges.
    pub fn new() -> Result<Self, TestbedError> {
        let (started, start) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("netns".to_owned())
            .spawn(move || serve_jobs(&started))
            .map_err(TestbedError::refused("starting a thread"))?;
        let (jobs, runtime, net) = start.recv().unwrap_or_else(|_| {
            let reason = "its thread ended at the start".to_owned();
            Err(TestbedError::Unavailable { reason })
        })?;
        let thread_id = thread.thread().id();
        Ok(Self { jobs: Some(jobs), thread: Some(thread), runtime, thread_id, net })
    }

    /// Runs `work` on the namespace's thread and returns its result.
    ///
    /// This blocks the caller and the namespace's tasks: use [`spawn`](Namespace::spawn) or
    /// [`spawn_thread`](Namespace::spawn_thread) for long work. Inside, a tokio runtime is current.
    /// A panic in `work` is resumed in the caller.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        if thread::current().id() == self.thread_id {
            return work();
        }
        let (done, result) = mpsc::channel();
        let job: Job = Box::new(move || {
            // Fails if the caller has ended, which needs no result.
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        });
        let jobs = self.jobs.as_ref().expect("it is only taken by drop");
        assert!(jobs.send(job).is_ok(), "the namespace's thread lives as long as it");
        result.recv().expect("a job always answers").unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs `future` as a task on the namespace's thread. The handle can be awaited in any runtime.
    pub fn spawn<F>(&self, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.runtime.spawn(future)
    }

    /// Runs `future` on the namespace's thread and waits for its result.
    ///
    /// # Panics
    /// If called on the namespace's own thread, which cannot wait for itself, or if `future`
    /// panics.
    pub fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        assert_ne!(thread::current().id(), self.thread_id, "await inside a namespace instead");
        let (done, result) = mpsc::channel();
        self.runtime.spawn(async move {
            let _ = done.send(future.await);
        });
        result.recv().expect("the future ran to its end")
    }

    /// Starts a thread inside the namespace, for work that blocks.
    ///
    /// The thread keeps the namespace alive while it runs.
    ///
    /// # Errors
    /// The kernel cannot create a thread.
    pub fn spawn_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.run(|| thread::Builder::new().name("netns-work".to_owned()).spawn(work))
    }

    /// Starts a child process inside the namespace. It is killed when the namespace or this process
    /// ends.
    ///
    /// # Errors
    /// Those of [`Command::spawn`].
    pub fn spawn_child(&self, mut command: Command) -> io::Result<Child> {
        sys::die_with_parent(&mut command);
        // The death signal is tied to the forking thread, so the namespace's thread must fork.
        self.run(move || command.spawn())
    }

    /// Sets a sysctl of the namespace, for example `net.ipv4.tcp_sack` to `0`.
    ///
    /// # Errors
    /// The sysctl does not exist, is not per namespace, or rejects the value.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<(), TestbedError> {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        let value_owned = value.to_owned();
        self.run(move || std::fs::write(path, value_owned))
            .map_err(TestbedError::refused(format!("setting {key} to {value}")))
    }

    /// Returns the descriptor of the namespace, for `setns` or to move an interface into it.
    pub fn as_file(&self) -> &File {
        &self.net
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic on the thread was already passed to the caller.
            let _ = thread.join();
        }
    }
}

type Started = Result<(UnboundedSender<Job>, Handle, File), TestbedError>;

/// The thread: enters a new namespace, then runs jobs until all senders are dropped.
fn serve_jobs(started: &mpsc::Sender<Started>) {
    let (sender, mut jobs) = unbounded_channel::<Job>();
    let entered = enter().and_then(|net| {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(TestbedError::refused("starting a runtime"))?;
        runtime.block_on(link::set_up_loopback())?;
        Ok((net, runtime))
    });
    let (net, runtime) = match entered {
        Ok(entered) => entered,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    if started.send(Ok((sender, runtime.handle().clone(), net))).is_err() {
        return;
    }
    runtime.block_on(async {
        while let Some(job) = jobs.recv().await {
            job();
        }
    });
    // A blocking task must not delay the drop of the namespace.
    runtime.shutdown_timeout(Duration::from_millis(100));
}

fn enter() -> Result<File, TestbedError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| TestbedError::Unavailable {
        reason: privilege::why_no_namespace(errno.into()),
    })?;
    privilege::make_tun_node_usable();
    File::open("/proc/thread-self/ns/net")
        .map_err(TestbedError::refused("opening /proc/thread-self/ns/net"))
}
