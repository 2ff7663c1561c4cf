//! A bulk transfer across a dumbbell, for a time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use airtcp_link::Way;
use airtcp_types::{ByteCount, Rate};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::dumbbell::{Dumbbell, End};
use crate::{Namespace, Pattern, peer};

const CHUNK: usize = 64 * 1024;
const SEED: u64 = 3;
/// What a connection may take to open, a few lost SYNs included.
const PATIENCE: Duration = Duration::from_secs(30);

/// A transfer to be made.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// [`Way::Forth`]: the left host sends.
    pub way: Way,
    /// Over IPv6, and not IPv4.
    pub is_ipv6: bool,
    /// The congestion control of a sender that is the kernel; the system's if none is named.
    pub congestion: Option<String>,
    /// What passes before bytes count.
    pub warm_up: Duration,
    /// For how long they count.
    pub time: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Bulked {
    /// Bytes that the receiving application read in the time that counts: in order, and compared.
    pub bytes: ByteCount,
    /// The time that counts, as the clock had it.
    pub time: Duration,
    /// Segments sent again, from the first to the end of the time.
    pub retransmissions: u64,
    /// What sent: `kernel cubic`, or a combination's name.
    pub sender: String,
}

impl Bulked {
    /// Payload per time.
    pub fn goodput(&self) -> Rate {
        Rate::from_bytes_over(self.bytes, self.time)
    }
}

impl Dumbbell {
    /// Sends as much as the time allows, then breaks the connection off.
    ///
    /// Several at once share the link.
    ///
    /// # Errors
    /// The connection does not open or breaks; a byte differs; the kernel does not know the congestion control.
    pub async fn bulk(&self, bulk: &Bulk) -> io::Result<Bulked> {
        let (sender, receiver, to) = match bulk.way {
            Way::Forth => (self.left(), self.right(), Self::RIGHT),
            Way::Back => (self.right(), self.left(), Self::LEFT),
        };
        let arrived = Arc::new(AtomicU64::new(0));
        let any = SocketAddr::new(Self::address(to, bulk.is_ipv6), 0);
        let (address, mut receiving) = receive(receiver, any, arrived.clone()).await?;
        let (mut sending, report) = send(sender, address, bulk.congestion.clone());
        let clock = async {
            tokio::time::timeout(PATIENCE, async {
                while arrived.load(Ordering::Relaxed) == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no byte has arrived"))?;
            tokio::time::sleep(bulk.warm_up).await;
            let (before, start) = (arrived.load(Ordering::Relaxed), Instant::now());
            tokio::time::sleep(bulk.time).await;
            let (after, time) = (arrived.load(Ordering::Relaxed), start.elapsed());
            io::Result::Ok((ByteCount(after - before), time))
        };
        let (bytes, time) = tokio::select! {
            counted = clock => counted?,
            ended = &mut sending.0 => return Err(early("the sender", ended)),
            ended = &mut receiving.0 => return Err(early("the receiver", ended)),
        };
        // Asked, the sender tells and ends; the receiver ends with it.
        let (answer, answered) = oneshot::channel();
        report.send(answer).map_err(|_| io::Error::other("the sender has ended"))?;
        let (sender, retransmissions) =
            answered.await.map_err(|_| io::Error::other("the sender has ended"))?;
        Ok(Bulked { bytes, time, retransmissions, sender })
    }
}

/// A task that ends when nobody waits for it any more.
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

type Told = (String, u64);
type Ask = oneshot::Sender<oneshot::Sender<Told>>;

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

/// Reads to the end of the stream, compares, and counts.
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

fn send(end: &End, to: SocketAddr, congestion: Option<String>) -> (Task, Ask) {
    let (ask, asked) = oneshot::channel();
    let task = match end {
        End::Kernel(namespace) => namespace.spawn(async move {
            let before = kernel_retransmissions()?;
            let mut stream = peer::connect(to, congestion.as_deref()).await?;
            let name = format!("kernel {}", peer::congestion(&stream)?);
            if let Some(answer) = write_until_asked(&mut stream, asked).await? {
                let _ = answer.send((name, kernel_retransmissions()? - before));
            }
            // What is still buffered is not to trickle into the next transfer.
            stream.set_zero_linger()
        }),
        End::Stack(stack, namespace) => {
            let stack = stack.clone();
            namespace.spawn(async move {
                let mut stream = stack.connect(to).await?;
                if let Some(answer) = write_until_asked(&mut stream, asked).await? {
                    let info = stream.info()?;
                    let _ = answer.send((info.combination, info.retrans));
                }
                stream.abort();
                Ok(())
            })
        }
    };
    (Task(task), ask)
}

/// Writes until somebody asks how it went, who is given; or until nobody can any more.
async fn write_until_asked(
    stream: &mut (impl AsyncWrite + Unpin),
    asked: oneshot::Receiver<oneshot::Sender<Told>>,
) -> io::Result<Option<oneshot::Sender<Told>>> {
    tokio::select! {
        written = peer::write_pattern(stream, SEED, u64::MAX) => written.map(|()| None),
        answer = asked => Ok(answer.ok()),
    }
}

/// Segments that the kernel has sent again in the namespace of this thread, over both versions of IP.
fn kernel_retransmissions() -> io::Result<u64> {
    let table = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    snmp(&table, "Tcp:", "RetransSegs").ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "/proc/net/snmp has no RetransSegs")
    })
}

impl Namespace {
    /// Segments that the kernel's TCP has sent again in this namespace, over both versions of IP.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn retransmissions(&self) -> io::Result<u64> {
        self.run(kernel_retransmissions)
    }

    /// How often a retransmission timer of the kernel's TCP began to run out in this namespace, over both versions
    /// of IP.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn timeouts(&self) -> io::Result<u64> {
        // The kernel counts a time-out in one of these, by what it was in the midst of.
        const NAMES: [&str; 6] = [
            "TCPTimeouts",
            "TCPRenoRecoveryFail",
            "TCPSackRecoveryFail",
            "TCPLossFailures",
            "TCPRenoFailures",
            "TCPSackFailures",
        ];
        let table = self.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat"))?;
        let counts = NAMES.map(|name| snmp(&table, "TcpExt:", name));
        counts.into_iter().sum::<Option<u64>>().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/proc/net/netstat has no time-outs")
        })
    }
}

/// A value of the table in /proc/net/snmp: a line of names, and one of values.
fn snmp(table: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter(|line| line.starts_with(protocol));
    let column = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_name() {
        let table = "Ip: RetransSegs\nIp: 9\nTcp: InSegs RetransSegs\nTcp: 1 2\n";
        assert_eq!(snmp(table, "Tcp:", "RetransSegs"), Some(2));
        assert_eq!(snmp(table, "Tcp:", "OutSegs"), None);
        assert_eq!(snmp(table, "Udp:", "InSegs"), None);
    }
}
