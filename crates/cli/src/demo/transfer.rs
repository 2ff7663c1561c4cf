//! Transfers the file once, from one end to the other.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use airtcp_net::{Stack, TcpListener};
use airtcp_testbed::{Namespace, peer};
use anyhow::{Context, anyhow};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::file::{self, Reader, Sample};
use super::network::{End, Network};

const PORT: u16 = 7777;

/// Bytes per read and write.
const CHUNK: usize = 256 * 1024;

/// The roles of the ends: which one connects, and which one sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) has_kernel: bool,
    pub(super) is_ipv6: bool,
    pub(super) first_calls: bool,
    pub(super) first_sends: bool,
}

impl Course {
    /// Describes sender and receiver.
    pub(super) const fn direction(&self) -> &'static str {
        match (self.has_kernel, self.first_calls, self.first_sends) {
            (true, true, true) => "kernel client -> our server",
            (true, true, false) => "our server -> kernel client",
            (true, false, false) => "our client -> kernel server",
            (true, false, true) => "kernel server -> our client",
            (false, true, true) => "client 1 -> server 2",
            (false, true, false) => "server 2 -> client 1",
            (false, false, false) => "client 2 -> server 1",
            (false, false, true) => "server 1 -> client 2",
        }
    }

    /// Returns the IP version.
    pub(super) const fn ip(&self) -> &'static str {
        if self.is_ipv6 { "IPv6" } else { "IPv4" }
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.direction(), self.ip())
    }
}

/// A finished transfer.
pub(super) struct Done {
    /// The sender's strategies.
    pub(super) strategy: String,
    /// From the start of the connection until both ends were done.
    pub(super) duration: Duration,
    /// Retransmitted segments, if known.
    pub(super) retransmissions: Option<u64>,
    /// As measured by a stack of this project.
    pub(super) rtt: Option<Duration>,
    /// The received data.
    pub(super) received: File,
}

/// Sends `sample` along `course`, and counts the received bytes in `arrived`.
///
/// # Errors
/// Those of the sockets and files.
pub(super) async fn run(
    network: &Network<'_>,
    course: &Course,
    sample: &Sample,
    arrived: Arc<AtomicU64>,
) -> anyhow::Result<Done> {
    let received = file::nameless()?;
    let sending = Job::Send(sample.reader()?);
    let receiving = Job::Receive(received.try_clone()?, arrived);
    let (first_job, second_job) =
        if course.first_sends { (sending, receiving) } else { (receiving, sending) };
    let before = kernel_retransmissions(network);

    let server = Network::address(!course.first_calls, course.is_ipv6, PORT)?;
    let start;
    let (first, second) = if course.first_calls {
        let listener = network.second.listen(server, 1)?;
        let second = accept(listener, second_job);
        start = Instant::now();
        let first = match &network.first {
            End::Kernel(namespace) => call_from_kernel(namespace, server, first_job),
            End::Stack(stack) => call(stack, server, first_job),
        };
        (first, second)
    } else {
        let first = match &network.first {
            End::Kernel(namespace) => accept_in_kernel(namespace, server, first_job).await?,
            End::Stack(stack) => accept(stack.listen(server, 1)?, first_job),
        };
        start = Instant::now();
        (first, call(&network.second, server, second_job))
    };
    let (first, second) = tokio::try_join!(joined(first), joined(second))?;
    let duration = start.elapsed();

    let sender = if course.first_sends { &first } else { &second };
    let retransmissions = match sender.retransmissions {
        None => kernel_retransmissions(network).zip(before).map(|(n, m)| n.saturating_sub(m)),
        known => known,
    };
    Ok(Done {
        strategy: sender.strategy.clone(),
        duration,
        retransmissions,
        rtt: sender.rtt.or(second.rtt),
        received,
    })
}

/// The task of an end.
enum Job {
    Send(Reader),
    Receive(File, Arc<AtomicU64>),
}

/// The statistics of an end.
struct Account {
    strategy: String,
    retransmissions: Option<u64>,
    rtt: Option<Duration>,
}

type Running = AbortOnDrop<anyhow::Result<Account>>;

fn call(stack: &Stack, server: SocketAddr, job: Job) -> Running {
    let stack = stack.clone();
    AbortOnDrop(tokio::spawn(async move {
        let stream = stack.connect(server).await.with_context(|| format!("calling {server}"))?;
        play_ours(stream, job).await
    }))
}

fn accept(listener: TcpListener, job: Job) -> Running {
    AbortOnDrop(tokio::spawn(async move {
        let (stream, _) = listener.accept().await.context("accepting")?;
        play_ours(stream, job).await
    }))
}

async fn play_ours(mut stream: airtcp_net::TcpStream, job: Job) -> anyhow::Result<Account> {
    job.play(&mut stream).await.context("our end")?;
    let info = stream.info()?;
    Ok(Account {
        retransmissions: Some(info.retrans),
        rtt: info.rtt.or(info.rcv_rtt),
        strategy: info.combination,
    })
}

fn call_from_kernel(namespace: &Namespace, server: SocketAddr, job: Job) -> Running {
    AbortOnDrop(namespace.spawn(async move {
        let stream = peer::connect(server, None).await;
        play_kernel(stream.with_context(|| format!("the kernel calling {server}"))?, job).await
    }))
}

async fn accept_in_kernel(
    namespace: &Namespace,
    server: SocketAddr,
    job: Job,
) -> anyhow::Result<Running> {
    let listener = namespace.spawn(async move { peer::listen(server, None) }).await?;
    let listener = listener.with_context(|| format!("the kernel listening at {server}"))?;
    Ok(AbortOnDrop(namespace.spawn(async move {
        let (stream, _) = listener.accept().await.context("the kernel accepting")?;
        play_kernel(stream, job).await
    })))
}

async fn play_kernel(mut stream: tokio::net::TcpStream, job: Job) -> anyhow::Result<Account> {
    let congestion = peer::congestion(&stream)?;
    job.play(&mut stream).await.context("the kernel's end")?;
    Ok(Account { strategy: format!("kernel {congestion}"), retransmissions: None, rtt: None })
}

impl Job {
    /// Sends or receives the file; returns when the peer is done as well.
    async fn play<S: AsyncRead + AsyncWrite + Unpin>(self, stream: &mut S) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        match self {
            Self::Send(mut reader) => {
                // Read from the page cache, a chunk at a time: not worth a thread of its own.
                loop {
                    let length = io::Read::read(&mut reader, &mut buffer)?;
                    if length == 0 {
                        break;
                    }
                    stream.write_all(&buffer[..length]).await?;
                }
                stream.shutdown().await?;
                match stream.read(&mut buffer).await? {
                    0 => Ok(()),
                    _ => Err(io::Error::other("the receiver sent unexpected data")),
                }
            }
            Self::Receive(file, arrived) => {
                // Writes in the background, so that a slow disk does not delay the stack.
                let mut file = tokio::fs::File::from_std(file);
                loop {
                    let length = stream.read(&mut buffer).await?;
                    if length == 0 {
                        break;
                    }
                    file.write_all(&buffer[..length]).await?;
                    arrived.fetch_add(length as u64, Ordering::Relaxed);
                }
                file.flush().await?;
                stream.shutdown().await
            }
        }
    }
}

/// A task that is aborted when this is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn joined<T>(mut task: AbortOnDrop<anyhow::Result<T>>) -> anyhow::Result<T> {
    (&mut task.0).await.map_err(|error| anyhow!("a task ended early: {error}"))?
}

/// Returns the kernel's retransmitted segments in the whole namespace, for both IP versions.
fn kernel_retransmissions(network: &Network<'_>) -> Option<u64> {
    match &network.first {
        End::Kernel(namespace) => namespace.retransmissions().ok(),
        End::Stack(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::ByteCount;

    use super::*;

    #[tokio::test]
    async fn a_file_goes_through_a_pipe() {
        let sample = Sample::make(ByteCount(300_000)).unwrap();
        let received = file::nameless().unwrap();
        let arrived = Arc::new(AtomicU64::new(0));
        let (mut left, mut right) = tokio::io::duplex(10_000);
        let sending = Job::Send(sample.reader().unwrap());
        let receiving = Job::Receive(received.try_clone().unwrap(), Arc::clone(&arrived));
        tokio::try_join!(sending.play(&mut left), receiving.play(&mut right)).unwrap();
        assert_eq!(arrived.load(Ordering::Relaxed), 300_000);
        assert_eq!(file::digest(received).unwrap(), (300_000, sample.sha256().to_owned()));
    }
}
