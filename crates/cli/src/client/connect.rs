//! `airtcp connect`: sends stdin to a peer, and writes its data to stdout.

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

/// Size of the buffer of each direction, in bytes.
const CHUNK: usize = 64 * 1024;

/// The report of both directions.
#[derive(Debug, Serialize)]
struct Report {
    local: std::net::SocketAddr,
    peer: std::net::SocketAddr,
    seconds: f64,
    /// Payload without retransmissions.
    bytes_sent: u64,
    bytes_received: u64,
    /// The error that ended the connection early.
    error: Option<String>,
    /// State at the end, with the field names of `ss -ti`.
    info: Info,
}

/// Connects, and relays until both directions have ended; if stdin is a terminal, until the peer
/// closes.
///
/// # Errors
/// The peer does not answer; the connection, stdin or stdout fails.
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
        output::print_stderr(serde_json::to_string_pretty(&report)?);
    }
    outcome
}

async fn relay(stream: &mut TcpStream) -> anyhow::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut sending = pin!(async {
        let mut stdin = BufReader::with_capacity(CHUNK, tokio::io::stdin());
        copy_buf(&mut stdin, &mut writer).await.context("sending")?;
        // As `nc -N`: send a FIN, and continue to receive.
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
            // The reader of stdout has exited, as with `| head`. A broken connection has other
            // error kinds.
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
            // Stop if stdout has no reader, or if a user types the input: the user sees that the
            // peer has closed. Other input is still sent.
            if !received? || std::io::stdin().is_terminal() { Ok(()) } else { sending.await }
        }
    }
}
