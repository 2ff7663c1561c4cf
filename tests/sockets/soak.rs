//! Many tasks on two stacks with impaired devices between them: with any actions, all bytes arrive.
//!
//! A seed, `AIRTCP_SEED` if it is set, determines the actions of every task; the runtime determines
//! their order.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Memory, memory};
use airtcp_net::{OwnedReadHalf, OwnedWriteHalf, Stack, TcpStream};
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::KeepAlive;
use airtcp_testbed::Pattern;
use airtcp_types::rng::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::impaired::{Harm, Impaired, Impairment};

/// Connections of one run.
const CONNECTIONS: u64 = 48;
/// The most bytes that one end sends.
const MOST: u64 = 200_000;
const STRATEGIES: [&str; 5] =
    ["rack/bbr3/spike", "rack/cubic", "le/westwood", "sack/reno", "newreno/cubic"];

/// The actions of both ends of a connection, which both derive from its number.
struct Plan {
    /// Bytes from the client, and from the server.
    bytes: [u64; 2],
    /// The end that resets the connection once it has read and written its whole part. The peer
    /// then receives only what has arrived.
    aborts: Option<usize>,
    /// The end that reads everything before it writes.
    reads_first: Option<usize>,
    strategy: &'static str,
    buffers: [u32; 2],
}

impl Plan {
    fn of(seed: u64, number: u64) -> Self {
        let mut draw = Stream::new(seed, number);
        let mut below = |most: u64| draw.below(most);
        let bytes = [below(MOST), below(MOST)];
        let end = below(8);
        Self {
            bytes,
            aborts: (end < 2).then_some(end as usize),
            reads_first: (2..4).contains(&end).then(|| end as usize - 2),
            strategy: STRATEGIES[below(4) as usize],
            buffers: [2_000 + below(100_000) as u32, 2_000 + below(100_000) as u32],
        }
    }
}

/// One end of a connection.
struct End {
    plan: Plan,
    /// 0 for the client, 1 for the server.
    side: usize,
    seed: u64,
    number: u64,
}

impl End {
    async fn run(self, stream: TcpStream) {
        let (reader, writer) = stream.into_split();
        let (mut reader, mut writer) = if self.plan.reads_first == Some(self.side) {
            let reader = self.read(reader).await;
            (reader, self.write(writer).await)
        } else {
            tokio::join!(self.read(reader), self.write(writer))
        };
        if self.plan.aborts == Some(self.side) {
            reader.reunite(writer).expect("halves of one stream").abort();
        } else if self.plan.aborts.is_some() {
            let error = reader.read(&mut [0; 1]).await.expect_err("the peer resets it");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        } else {
            writer.shutdown().await.expect("a FIN");
            assert_eq!(reader.read(&mut [0; 1]).await.expect("the peer's FIN"), 0);
        }
    }

    fn draw(&self, cause: u64) -> Stream {
        Stream::new(self.seed ^ (self.number << 8), cause * 2 + self.side as u64)
    }

    fn pattern(&self, side: usize) -> Pattern {
        Pattern::new(self.seed ^ (self.number * 2 + side as u64))
    }

    /// Writes all data of this end, in pieces of random sizes, with every write call.
    async fn write(&self, mut writer: OwnedWriteHalf) -> OwnedWriteHalf {
        let (mut draw, mut pattern) = (self.draw(1), self.pattern(self.side));
        let mut all = vec![0; self.plan.bytes[self.side] as usize];
        pattern.fill(&mut all);
        let mut left = &all[..];
        while !left.is_empty() {
            let piece = &left[..left.len().min(1 + draw.below(20_000) as usize)];
            let (one, other) = piece.split_at(draw.below(piece.len() as u64 + 1) as usize);
            let parts = [IoSlice::new(one), IoSlice::new(other)];
            let written = match draw.below(5) {
                0 => writer.write(piece).await.expect("written"),
                1 => writer.write_vectored(&parts).await.expect("written"),
                2 => loop {
                    // The write is cancelled and repeated until it succeeds.
                    tokio::select! {
                        biased;
                        written = writer.write(piece) => break written.expect("written"),
                        () = tokio::time::sleep(Duration::from_millis(1)) => {}
                    }
                },
                kind => {
                    writer.writable().await.expect("writable");
                    let taken = match kind {
                        3 => writer.try_write(piece),
                        _ => writer.try_write_vectored(&parts),
                    };
                    taken.expect("there is room")
                }
            };
            left = &left[written..];
            if draw.below(8) == 0 {
                tokio::task::yield_now().await;
            }
        }
        writer
    }

    /// Reads all data of the peer with every read call, and compares it.
    async fn read(&self, mut reader: OwnedReadHalf) -> OwnedReadHalf {
        let peer = 1 - self.side;
        let (mut draw, mut pattern) = (self.draw(2), self.pattern(peer));
        let mut buf = vec![0; 20_000];
        while pattern.position() < self.plan.bytes[peer] {
            let left = (self.plan.bytes[peer] - pattern.position()) as usize;
            let len = left.min(1 + draw.below(buf.len() as u64) as usize);
            match self.read_some(&mut reader, &mut draw, &pattern, &mut buf[..len]).await {
                Ok(0) => panic!("the stream ends {left} bytes early"),
                Ok(read) => pattern.check(&buf[..read]).expect("what the peer wrote"),
                Err(error) if self.plan.aborts == Some(peer) => {
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                    break;
                }
                Err(error) => panic!("{left} bytes early: {error}"),
            }
        }
        reader
    }

    async fn read_some(
        &self,
        reader: &mut OwnedReadHalf,
        draw: &mut Stream,
        expected: &Pattern,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        match draw.below(5) {
            0 => reader.read(buf).await,
            1 => loop {
                tokio::select! {
                    biased;
                    read = reader.read(buf) => return read,
                    () = tokio::time::sleep(Duration::from_millis(1)) => {}
                }
            },
            2 => {
                let seen = reader.peek(buf).await?;
                expected.clone().check(&buf[..seen]).expect("what the peer wrote");
                // Peeking has not consumed the data.
                reader.read_exact(&mut buf[..seen]).await
            }
            3 => {
                reader.readable().await?;
                reader.try_read(buf)
            }
            _ => {
                reader.readable().await?;
                let (one, other) = buf.split_at_mut(buf.len() / 2);
                reader.try_read_vectored(&mut [one, other].map(IoSliceMut::new))
            }
        }
    }
}

fn start(device: Memory, address: &str, seed: u64, harm: &Arc<Harm>) -> Stack {
    let impairment = Impairment { loss: 0.02, duplicate: 0.01, reorder: 0.02, seed };
    let config = HostConfig::new([address.parse().expect("an address")]);
    Stack::new(Impaired::new(device, impairment, Arc::clone(harm)), config).expect("a stack")
}

/// Connects from a port that identifies the connection's number.
async fn connect(stack: Stack, to: SocketAddr, seed: u64, number: u64) {
    let plan = Plan::of(seed, number);
    let socket = stack.tcp_socket();
    socket.set_combination(&plan.strategy.parse().expect("a combination")).expect("set");
    socket.set_send_buffer_size(plan.buffers[0]).expect("set");
    socket.set_recv_buffer_size(plan.buffers[1]).expect("set");
    socket.bind(SocketAddr::from(([10, 0, 0, 2], 1_000 + number as u16))).expect("its port");
    let stream = socket.connect(to).await.expect("a connection");
    stream.set_keep_alive(Some(quick())).expect("set");
    End { plan, side: 0, seed, number }.run(stream).await;
}

/// Keep-alive settings with which an end detects a reset whose RST was lost.
fn quick() -> KeepAlive {
    KeepAlive { idle: Duration::from_secs(1), interval: Duration::from_secs(1), probes: 60 }
}

async fn soak(seed: u64) {
    eprintln!("AIRTCP_SEED={seed}");
    let (left, right) = memory::pair(1500, 4096);
    let harm = Arc::new(Harm::default());
    let server = start(left, "10.0.0.1/24", seed, &harm);
    let client = start(right, "10.0.0.2/24", seed + 1, &harm);
    let socket = server.tcp_socket();
    socket.set_keep_alive(Some(quick())).expect("set");
    socket.bind("10.0.0.1:80".parse().expect("an address")).expect("a port");
    let listener = socket.listen(128).expect("a listener");
    let to = listener.local_addr().expect("its address");
    let mut tasks = JoinSet::new();
    for number in 0..CONNECTIONS {
        tasks.spawn(connect(client.clone(), to, seed, number));
    }
    for _ in 0..CONNECTIONS {
        let (stream, peer) = listener.accept().await.expect("a connection");
        let number = u64::from(peer.port()) - 1_000;
        tasks.spawn(End { plan: Plan::of(seed, number), side: 1, seed, number }.run(stream));
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task that ends well");
    }
    tokio::join!(server.drain(Duration::from_secs(60)), client.drain(Duration::from_secs(60)));
    assert!(harm.done().lost > 0 && harm.done().duplicated > 0 && harm.done().overtaken > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_bytes_arrive_with_random_tasks() {
    let seeds = match std::env::var("AIRTCP_SEED") {
        Ok(seed) => vec![seed.parse().expect("AIRTCP_SEED is a number")],
        Err(_) => vec![1, 2, 3],
    };
    for seed in seeds {
        let all = tokio::time::timeout(Duration::from_secs(300), soak(seed));
        all.await.expect("a task hangs");
    }
}
