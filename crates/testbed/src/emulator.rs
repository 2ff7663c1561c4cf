//! Runs a node between two hosts on a thread of its own.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use airtcp_device::{Clock, Tun, TunFile, Watch};
use airtcp_net::{DriveError, Driver};
use airtcp_types::Node;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::TestbedError;

type Look<N> = Box<dyn FnOnce(&mut Driver<N, Tun>) + Send>;

/// A node between two TUN devices, an emulated link for one, driven by a thread that does nothing
/// else, so that it is late for no one's sake.
#[derive(Debug)]
pub(crate) struct Emulator<N> {
    // Taken at the end: the thread ends when no sender is left.
    looks: Option<UnboundedSender<Look<N>>>,
    thread: Option<JoinHandle<Result<(), TestbedError>>>,
}

impl<N: Node + Send + 'static> Emulator<N> {
    /// Starts it: port 0 of `node` is the first device. An observer is shown the node, and of the
    /// hosts those that are asked for.
    pub(crate) fn start(
        node: N,
        devices: [TunFile; 2],
        clock: Clock,
        watch: Option<Watch>,
        hosts: [Option<Watch>; 2],
    ) -> Result<Self, TestbedError> {
        let (looks, receiver) = unbounded_channel();
        let (started, start) = mpsc::channel();
        let run = move || {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(TestbedError::refused("starting a runtime"))?;
            runtime.block_on(async {
                let [a, b] = devices;
                let mut driver = Driver::new(node, [Tun::new(a)?, Tun::new(b)?], clock)?;
                if let Some(watch) = watch {
                    driver.watch(watch);
                }
                for (port, watch) in hosts.into_iter().enumerate() {
                    if let Some(watch) = watch {
                        driver.watch_host(port, watch);
                    }
                }
                // Whoever waits for it hears of an error by the thread's end.
                let _ = started.send(());
                serve(driver, receiver).await.map_err(TestbedError::from)
            })
        };
        let thread = thread::Builder::new()
            .name("link".to_owned())
            .spawn(run)
            .map_err(TestbedError::refused("starting a thread"))?;
        let mut emulator = Self { looks: Some(looks), thread: Some(thread) };
        if start.recv().is_err() {
            emulator.stop()?;
        }
        Ok(emulator)
    }

    /// What `look` gives, which sees the running node, or tells it something.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Driver<N, Tun>) -> T + Send + 'static,
    ) -> T {
        let (done, result) = mpsc::channel();
        let look: Look<N> = Box::new(move |driver| {
            let _ = done.send(look(driver));
        });
        let looks = self.looks.as_ref().expect("it is only taken at the end");
        assert!(looks.send(look).is_ok(), "the link's thread lives as long as it");
        result.recv().expect("a look always answers")
    }
}

impl<N> Emulator<N> {
    /// Ends it, and tells if it broke on the way.
    pub(crate) fn stop(&mut self) -> Result<(), TestbedError> {
        drop(self.looks.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(ended)) => ended,
            None => Ok(()),
        }
    }
}

impl<N> Drop for Emulator<N> {
    fn drop(&mut self) {
        if !thread::panicking() {
            // Whoever wants to know how it ended calls `stop`.
            let _ = self.stop();
        }
    }
}

/// Drives until nobody can look any more. A node whose device is gone is still there to be looked
/// at.
async fn serve<N: Node>(
    mut driver: Driver<N, Tun>,
    mut looks: UnboundedReceiver<Look<N>>,
) -> Result<(), DriveError> {
    let mut broken = Ok(());
    loop {
        tokio::select! {
            Err(error) = driver.run(), if broken.is_ok() => broken = Err(error),
            look = looks.recv() => match look {
                Some(look) => look(&mut driver),
                None => return broken,
            },
        }
    }
}
