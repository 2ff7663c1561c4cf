//! `airtcp connect`: stdin to a peer, and what it says to stdout.

use std::io::{ErrorKind, IsTerminal};
use std::pin::pin;
use std::time::Instant;

use airtcp_net::TcpStream;
use airtcp_stack::tcp::Info;
use anyhow::Context;
use serde::Serialize;
use tokio::io::{AsyncWriteExt, BufReader, copy_buf};

use super::args::ConnectArgs;
use super::session::{self, Session};
use crate::output;

/// Bytes that are moved at once.
const CHUNK: usize = 64 * 1024;

/// How it went, in both directions.
#[derive(Debug, Serialize)]
struct Report {
    local: std::net::SocketAddr,
    peer: std::net::SocketAddr,
    seconds: f64,
    /// Each counted once.
    bytes_sent: u64,
    bytes_received: u64,
    /// Why it ended before both directions had.
    error: Option<String>,
    /// At the end, in the words of `ss -ti`.
    info: Info,
}

/// Connects, until both directions have ended; on a terminal, until the peer's has.
///
/// # Errors
/// Nobody answers, the connection breaks, stdin or stdout does.
pub(crate) fn run(args: &ConnectArgs) -> anyhow::Result<()> {
    session::run("connect", &args.attach, async |session| talk(session, args).await)
}

async fn talk(session: &Session, args: &ConnectArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut stream = session.connect(&args.place).await?;
    let outcome = relay(&mut stream).await;
    if args.json {
        let info = stream.info()?;
        let report = Report {
            local: stream.local_addr()?,
            peer: stream.peer_addr()?,
            seconds: start.elapsed().as_secs_f64(),
            bytes_sent: info.bytes_sent.0 - info.bytes_retrans.0,
            bytes_received: info.bytes_received.0,
            error: outcome.as_ref().err().map(output::explain),
            info,
        };
        output::tell(serde_json::to_string_pretty(&report)?);
    }
    outcome
}

async fn relay(stream: &mut TcpStream) -> anyhow::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut sending = pin!(async {
        let mut stdin = BufReader::with_capacity(CHUNK, tokio::io::stdin());
        copy_buf(&mut stdin, &mut writer).await.context("sending")?;
        // As `nc -N`: the peer hears of the end, and goes on.
        writer.shutdown().await.context("sending")
    });
    let mut receiving = pin!(async {
        let mut stdout = tokio::io::stdout();
        let mut reader = BufReader::with_capacity(CHUNK, reader);
        let copied = match copy_buf(&mut reader, &mut stdout).await {
            Ok(_) => stdout.flush().await,
            Err(error) => Err(error),
        };
        match copied {
            // Nobody reads stdout any more, as with `| head`. A connection that breaks has other
            // errors.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            copied => copied.map(|()| true).context("receiving"),
        }
    });
    tokio::select! {
        sent = &mut sending => {
            sent?;
            receiving.await.map(drop)
        }
        received = &mut receiving => {
            // Whoever types has seen the end, and whoever went away enough. What comes from
            // elsewhere is still sent.
            if !received? || std::io::stdin().is_terminal() { Ok(()) } else { sending.await }
        }
    }
}
