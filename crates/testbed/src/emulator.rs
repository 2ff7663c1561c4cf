//! Runs the node between two hosts on a thread of its own.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use airtcp_device::{Clock, Tun, TunFile, Watch};
use airtcp_net::{DriveError, Driver};
use airtcp_types::Node;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::TestbedError;

type Look<N> = Box<dyn FnOnce(&mut Driver<N, Tun>) + Send>;

/// A node between two TUN devices, such as an emulated link, driven by a thread that does nothing
/// else, to keep its timing precise.
#[derive(Debug)]
pub(crate) struct Emulator<N> {
    // Taken at the end: the thread ends when all senders are dropped.
    looks: Option<UnboundedSender<Look<N>>>,
    thread: Option<JoinHandle<Result<(), TestbedError>>>,
}

impl<N: Node + Send + 'static> Emulator<N> {
    /// Starts the node; its port 0 is the first device. The observers of `watch` and `hosts`
    /// receive the packets and events of the node and the packets of the hosts.
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
                // An error is returned when the thread is joined.
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

    /// Calls `look` with the running node's driver; returns the result.
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
    /// Stops the node; returns its error, if it failed.
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
            // Call `stop` to get the error.
            let _ = self.stop();
        }
    }
}

/// Drives the node until all callers are gone. After an error of a device, the node can still be
/// inspected.
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
