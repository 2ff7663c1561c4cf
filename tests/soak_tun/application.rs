//! An application on a stream of this stack or of the kernel.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airtcp_testbed::Pattern;
use airtcp_types::rng::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::sleep;

/// The most bytes that one end sends.
const MOST: u64 = 300_000;
const CHUNK: u64 = 20_000;
/// The seed of the pattern that every stream carries.
const SEED: u64 = 1;

/// A stream that can be reset.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    fn abort(self);
}

impl Socket for airtcp_net::TcpStream {
    fn abort(self) {
        self.abort();
    }
}

impl Socket for tokio::net::TcpStream {
    fn abort(self) {
        self.set_zero_linger().expect("set");
    }
}

/// Counts of events.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) opened: AtomicU64,
    /// Connections that did not open.
    pub(crate) failed: AtomicU64,
    /// Connections of the applications on both sides that were read to the end and closed.
    pub(crate) ended: AtomicU64,
    pub(crate) aborted: AtomicU64,
    /// Connections dropped before the end.
    pub(crate) dropped: AtomicU64,
    /// Connections reset by the peer, or timed out.
    pub(crate) broken: AtomicU64,
    /// Bytes read.
    pub(crate) read: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Tally {
    /// All counts in the order of the fields.
    pub(crate) fn each(&self) -> [u64; 7] {
        let Self { opened, failed, ended, aborted, dropped, broken, read } = self;
        [opened, failed, ended, aborted, dropped, broken, read]
            .map(|counter| counter.load(Ordering::Relaxed))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [opened, failed, ended, aborted, dropped, broken, read] = self.each();
        write!(
            f,
            "{opened} opened, {failed} not; {ended} ended, {aborted} aborted, {dropped} dropped, {broken} broken; {} MB \
             read",
            read / 1_000_000,
        )
    }
}

/// Writes and reads for a while, and ends in one of several ways. When `over` is set, it ends or
/// waits only for the peer's end.
pub(crate) async fn use_stream(
    mut stream: impl Socket,
    mut draw: Stream,
    mut over: watch::Receiver<bool>,
    tally: &Tally,
) {
    let bytes = draw.below(MOST);
    let way = draw.below(8);
    let most = if draw.chance(0.1) { 8_000 } else { 300 };
    let patience = Duration::from_millis(draw.below(most));
    let closes = way < 4;
    let work = async {
        let (mut reader, mut writer) = tokio::io::split(&mut stream);
        let writing = async {
            write(&mut writer, bytes, &mut draw).await?;
            if closes { writer.shutdown().await } else { Ok(()) }
        };
        if way == 7 {
            // It never reads, so that the peer's window closes.
            writing.await?;
            return std::future::pending().await;
        }
        tokio::try_join!(writing, read(&mut reader, tally)).map(|_| ())
    };
    let given_up = async {
        if closes {
            std::future::pending().await
        } else {
            tokio::select! {
                _ = over.wait_for(|over| *over) => {}
                () = sleep(patience) => {}
            }
        }
    };
    let worked = tokio::select! {
        worked = work => Some(worked),
        () = given_up => None,
    };
    match worked {
        Some(Ok(())) => count(&tally.ended, 1),
        Some(Err(error)) => {
            assert_ne!(error.kind(), io::ErrorKind::InvalidData, "{error}");
            count(&tally.broken, 1);
        }
        None if way == 4 => {
            count(&tally.aborted, 1);
            stream.abort();
        }
        None => count(&tally.dropped, 1),
    }
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    bytes: u64,
    draw: &mut Stream,
) -> io::Result<()> {
    let mut pattern = Pattern::new(SEED);
    while pattern.position() < bytes {
        let mut piece = vec![0; (1 + draw.below(CHUNK)) as usize];
        pattern.fill(&mut piece);
        writer.write_all(&piece).await?;
        if draw.chance(0.2) {
            sleep(Duration::from_millis(draw.below(20))).await;
        }
    }
    Ok(())
}

/// Reads to the end, and compares.
async fn read(reader: &mut (impl AsyncRead + Unpin), tally: &Tally) -> io::Result<()> {
    let mut pattern = Pattern::new(SEED);
    let mut buffer = vec![0; CHUNK as usize];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        pattern.check(&buffer[..length]).map_err(|at| {
            io::Error::new(io::ErrorKind::InvalidData, format!("byte {at} is not what was sent"))
        })?;
        count(&tally.read, length as u64);
    }
}
