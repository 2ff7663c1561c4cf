//! A continuous stream across a dumbbell, until it is ended.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airtcp_link::Way;
use airtcp_types::{ByteCount, Node};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::dumbbell::{Dumbbell, End};
use crate::{Pattern, kernel_counters, peer};

const CHUNK: usize = 64 * 1024;
const SEED: u64 = 3;
/// The maximum time until the first byte arrives, including a few lost SYNs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The parameters of a stream.
#[derive(Clone, Debug)]
pub struct Course {
    /// The direction. [`Way::Forth`]: the left host sends.
    pub way: Way,
    /// Whether to use IPv6 instead of IPv4.
    pub is_ipv6: bool,
    /// The congestion control of a kernel sender; `None` for the system's default.
    pub congestion: Option<String>,
}

/// A connection whose sender writes as much as it can, and whose receiver verifies every byte.
///
/// The connection is aborted when the value is dropped.
#[derive(Debug)]
pub struct Stream {
    sending: Task,
    receiving: Task,
    ask: Ask,
    goes: watch::Sender<bool>,
    written: Arc<AtomicU64>,
    arrived: Arc<AtomicU64>,
}

/// Figures of a sender at its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The sender: `kernel cubic`, or the name of a combination.
    pub sender: String,
    /// The total number of retransmitted segments.
    pub retransmissions: u64,
}

impl<N: Node + Send + 'static> Dumbbell<N> {
    /// Opens a stream; returns when its first byte has arrived.
    ///
    /// Concurrent streams share the node between the hosts.
    ///
    /// # Errors
    /// The connection cannot be opened or breaks, or the kernel does not know the congestion
    /// control.
    pub async fn stream(&self, course: &Course) -> io::Result<Stream> {
        let (sender, receiver, to) = match course.way {
            Way::Forth => (self.left(), self.right(), Dumbbell::RIGHT),
            Way::Back => (self.right(), self.left(), Dumbbell::LEFT),
        };
        let arrived = Arc::new(AtomicU64::new(0));
        let any = SocketAddr::new(Dumbbell::address(to, course.is_ipv6), 0);
        let (address, receiving) = receive(receiver, any, arrived.clone()).await?;
        let (goes, going) = watch::channel(true);
        let written = Arc::new(AtomicU64::new(0));
        let writing = Writing { going, written: written.clone() };
        let (sending, ask) = send(sender, address, course.congestion.clone(), writing);
        let mut stream = Stream { sending, receiving, ask, goes, written, arrived };
        let count = stream.arrived.clone();
        let first = async {
            while count.load(Ordering::Relaxed) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let first = tokio::time::timeout(PATIENCE, first);
        stream
            .unbroken(first)
            .await?
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no byte has arrived"))?;
        Ok(stream)
    }
}

impl Stream {
    /// Returns the number of bytes that the receiving application has read in order and verified.
    pub fn arrived(&self) -> ByteCount {
        ByteCount(self.arrived.load(Ordering::Relaxed))
    }

    /// Returns the number of bytes that the sending application has written.
    pub fn written(&self) -> ByteCount {
        ByteCount(self.written.load(Ordering::Relaxed))
    }

    /// Pauses the sending application after its current write, or resumes it.
    pub fn set_going(&self, goes: bool) {
        self.goes.send_replace(goes);
    }

    /// Waits for this time.
    ///
    /// # Errors
    /// The connection breaks, or a byte differs.
    pub async fn wait(&mut self, time: Duration) -> io::Result<()> {
        self.unbroken(tokio::time::sleep(time)).await
    }

    /// Ends the sender and the receiver; returns the sender's figures.
    ///
    /// # Errors
    /// The sender has already ended.
    pub async fn end(self) -> io::Result<Ended> {
        let Self { sending: _sending, receiving: _receiving, ask, goes: _goes, .. } = self;
        let ended = || io::Error::other("the sender has ended");
        let (answer, answered) = oneshot::channel();
        ask.send(answer).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())
    }

    async fn unbroken<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        tokio::select! {
            done = work => Ok(done),
            ended = &mut self.sending.0 => Err(early("the sender", ended)),
            ended = &mut self.receiving.0 => Err(early("the receiver", ended)),
        }
    }
}

/// A task that is aborted when it is dropped.
#[derive(Debug)]
struct Task(JoinHandle<io::Result<()>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn early(who: &str, ended: Result<io::Result<()>, tokio::task::JoinError>) -> io::Error {
    match ended {
        Ok(Err(error)) => io::Error::new(error.kind(), format!("{who}: {error}")),
        Ok(Ok(())) => io::Error::other(format!("{who} ended early")),
        Err(error) => io::Error::other(format!("{who}: {error}")),
    }
}

type Answer = oneshot::Sender<Ended>;
type Ask = oneshot::Sender<Answer>;

async fn receive(
    end: &End,
    at: SocketAddr,
    arrived: Arc<AtomicU64>,
) -> io::Result<(SocketAddr, Task)> {
    match end {
        End::Kernel(namespace) => {
            let listen = namespace.spawn(async move { peer::listen(at, None) });
            let listener = listen.await.map_err(io::Error::other)??;
            let address = listener.local_addr()?;
            let task =
                namespace.spawn(async move { count(listener.accept().await?.0, &arrived).await });
            Ok((address, Task(task)))
        }
        End::Stack(stack, namespace) => {
            let listener = stack.listen(at, 1)?;
            let address = listener.local_addr()?;
            let task =
                namespace.spawn(async move { count(listener.accept().await?.0, &arrived).await });
            Ok((address, Task(task)))
        }
    }
}

/// Reads to the end of the stream, verifies, and counts.
async fn count(mut stream: impl AsyncRead + Unpin, arrived: &AtomicU64) -> io::Result<()> {
    let mut pattern = Pattern::new(SEED);
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        pattern.check(&buffer[..length]).map_err(peer::differs_at)?;
        arrived.fetch_add(length as u64, Ordering::Relaxed);
    }
}

fn send(
    end: &End,
    to: SocketAddr,
    congestion: Option<String>,
    mut writing: Writing,
) -> (Task, Ask) {
    let (ask, asked) = oneshot::channel();
    let task = match end {
        End::Kernel(namespace) => namespace.spawn(async move {
            let before = kernel_counters::retransmissions()?;
            let mut stream = peer::connect(to, congestion.as_deref()).await?;
            let sender = format!("kernel {}", peer::congestion(&stream)?);
            if let Some(answer) = writing.until_asked(&mut stream, asked).await? {
                let retransmissions = kernel_counters::retransmissions()? - before;
                let _ = answer.send(Ended { sender, retransmissions });
            }
            // Discards buffered data, so that it does not disturb the next transfer.
            stream.set_zero_linger()
        }),
        End::Stack(stack, namespace) => {
            let stack = stack.clone();
            namespace.spawn(async move {
                let mut stream = stack.connect(to).await?;
                if let Some(answer) = writing.until_asked(&mut stream, asked).await? {
                    let info = stream.info()?;
                    let _ = answer
                        .send(Ended { sender: info.combination, retransmissions: info.retrans });
                }
                stream.abort();
                Ok(())
            })
        }
    };
    (Task(task), ask)
}

/// The sending application.
struct Writing {
    going: watch::Receiver<bool>,
    written: Arc<AtomicU64>,
}

impl Writing {
    /// Writes until the figures are requested, and returns the channel for them; `None` if the
    /// stream was dropped.
    async fn until_asked(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        asked: oneshot::Receiver<Answer>,
    ) -> io::Result<Option<Answer>> {
        tokio::select! {
            written = self.write(stream) => written.map(|()| None),
            answer = asked => Ok(answer.ok()),
        }
    }

    async fn write(&mut self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut pattern = Pattern::new(SEED);
        let mut buffer = vec![0; CHUNK];
        while self.going.wait_for(|goes| *goes).await.is_ok() {
            pattern.fill(&mut buffer);
            stream.write_all(&buffer).await?;
            self.written.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}
