//! A transfer that runs until the test ends it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_testbed::{Namespace, Pattern, peer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A flow that takes longer is broken.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Transfer {
    runtime: Runtime,
    began: Option<oneshot::Receiver<()>>,
    enough: watch::Sender<bool>,
    ends: JoinHandle<io::Result<()>>,
}

impl Transfer {
    /// Connects to an echo service, and keeps up to `most` bytes in flight.
    pub(crate) fn start(namespace: &Namespace, to: SocketAddr, seed: u8, most: u64) -> Self {
        let (begin, began) = oneshot::channel();
        let (enough, is_enough) = watch::channel(false);
        let ends = namespace.spawn(async move {
            exchange(peer::connect(to, None).await?, seed, most, begin, is_enough).await
        });
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, began: Some(began), enough, ends }
    }

    /// Waits until data has come back.
    pub(crate) fn wait_for_begin(&mut self) {
        if let Some(began) = self.began.take() {
            let begun = self.runtime.block_on(async { timeout(PATIENCE, began).await });
            begun.expect("nothing came back in time").expect("the transfer broke");
        }
    }

    /// Makes the transfer send one more chunk, from now on, and end.
    #[track_caller]
    pub(crate) fn assert_enough(&self) {
        self.enough.send(true).expect("the transfer broke");
    }

    /// Waits for the end, and checks that all data came back.
    #[track_caller]
    pub(crate) fn end(self) {
        // The channel stays open until the end: a transfer that was not asked to end continues.
        let Self { runtime, enough: _enough, ends, .. } = self;
        let ended = runtime.block_on(async { timeout(PATIENCE, ends).await });
        ended.expect("nothing more came back").unwrap().unwrap();
    }
}

/// Sends until it is enough and one chunk more, and compares what comes back.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite,
    seed: u8,
    most: u64,
    begin: oneshot::Sender<()>,
    is_enough: watch::Receiver<bool>,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let [mut written, mut expected] = [(); 2].map(|()| Pattern::new(seed.into()));
    let (came, mut come) = watch::channel(0);
    let sending = async {
        let (mut sent, mut chunk) = (0, vec![0; 4_000]);
        loop {
            // If this fails, the receiving side has failed and reports the error.
            let _ = come.wait_for(|received| sent - received < most).await;
            let is_last = *is_enough.borrow();
            written.fill(&mut chunk);
            writer.write_all(&chunk).await?;
            sent += chunk.len() as u64;
            if is_last {
                writer.shutdown().await?;
                return Ok(sent);
            }
        }
    };
    let receiving = async {
        let (mut begin, mut received, mut buffer) = (Some(begin), 0, vec![0; 1 << 14]);
        loop {
            let length = reader.read(&mut buffer).await?;
            if length == 0 {
                return io::Result::Ok(received);
            }
            assert_eq!(expected.check(&buffer[..length]), Ok(()), "other bytes came back");
            received += length as u64;
            came.send_replace(received);
            if let Some(begin) = begin.take() {
                let _ = begin.send(());
            }
        }
    };
    let (sent, received) = tokio::try_join!(sending, receiving)?;
    assert_eq!(sent, received);
    Ok(())
}
