//! `airtcp quickserve`: serves files below a directory until Ctrl-C or SIGTERM.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use airtcp_net::RuntimeThread;
use airtcp_net::rrtp::{RrtpListener, RrtpSocket};
use airtcp_rrtp::{Counters, Limits};
use anyhow::{Context, anyhow};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::args::QuickServeArgs;
use super::line::Line;
use super::network::Network;
use super::patient::Patient;
use crate::client::session::{PATIENCE, Session};
use crate::client::url::{Scheme, Url};
use crate::output::{self, Mistake};
use crate::services::{Accept, Files, Stop, accept, serve_files};
use crate::signals::Signals;

/// The accept backlog of a listener of this stack.
const BACKLOG: usize = 1_024;

/// How long a client may accept no data. The kernel's TCP cannot distinguish a pause from a peer
/// that has vanished.
const PAUSE: Duration = Duration::from_secs(300);

/// How long a refused client has to send its request, so that it can receive the reason, and how
/// many bytes of the request are read.
const REFUSAL: Duration = Duration::from_secs(1);
const ASKED: usize = 4_096;

/// Serves until a signal arrives. A second signal stops at once.
///
/// # Errors
/// The directory does not exist, or an address cannot be bound.
pub(crate) fn run(args: &QuickServeArgs) -> anyhow::Result<()> {
    // For the kernel's TCP; the other transports have a thread each.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(args));
    // A file system that hangs must not delay the exit.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn serve(args: &QuickServeArgs) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let directory = &args.directory;
    if !directory.is_dir() {
        let what =
            format!("{} is not a directory: create it, or specify another", directory.display());
        return Err(Mistake::new(what).into());
    }
    let files = Files::read_only(directory).with_context(|| directory.display().to_string())?;
    let session = match args.attach() {
        Some(attach) => Some(Session::start("quickserve", &attach).await?),
        None => None,
    };
    let threads = Threads {
        session,
        rrtp: match args.listen.iter().any(|url| url.0.scheme() == Scheme::Rrtp) {
            true => Some(RuntimeThread::start("rrtp")?),
            false => None,
        },
    };
    let (stopping, stop) = Stop::new();
    let (mut places, mut sockets, mut running) = (Vec::new(), Vec::new(), JoinSet::new());
    for url in args.listen.iter().map(|url| &url.0) {
        let port = url.address().map_or(0, |address| address.port());
        let listener = Listener::bind(url, args, &threads)
            .await
            .with_context(|| format!("listening on {url}"))
            .map_err(|error| output::if_privileged(error, port))?;
        let place = Place {
            url: format!("{}://{}", url.scheme().name(), listener.local_addr()?),
            limit: args.connections,
            room: Arc::new(Semaphore::new(args.connections)),
            served: Arc::default(),
        };
        let is_reported = url.scheme() == Scheme::Rrtp && args.profile.is_none();
        output::note(format_args!("listening on {}", place.url));
        sockets.push(listener.socket());
        let accepting = {
            let (place, stop) = (place.clone(), stop.clone());
            let files = files.clone();
            accept(listener, stop.clone(), PATIENCE, move |line| {
                handle(line, files.clone(), is_reported, stop.clone(), place.clone())
            })
        };
        running.spawn_on(accepting, &threads.of(url.scheme()));
        places.push(place);
    }
    output::note("ready");
    let ended = tokio::select! {
        _ = signals.wait() => Ok(()),
        error = ended(threads.session.as_ref(), &mut running) => Err(anyhow!("{error}; restart to create it again")),
    };
    let farewell = async {
        let _ = stopping.send(true);
        while running.join_next().await.is_some() {}
        for socket in sockets.iter().flatten() {
            socket.shutdown_within(PATIENCE).await;
        }
        if let Some(session) = &threads.session {
            session.stack().shutdown_within(PATIENCE).await;
        }
    };
    tokio::select! {
        () = farewell => {}
        _ = signals.wait() => {
            tracing::warn!("stopped before every connection was closed");
            // Inform the peers that their connections are aborted.
            for socket in sockets.iter().flatten() {
                socket.shutdown_within(Duration::ZERO).await;
            }
            if let Some(session) = &threads.session {
                session.stack().shutdown_within(Duration::ZERO).await;
            }
        }
    }
    threads.end();
    if args.json {
        let all = places.iter().zip(&sockets);
        let reports: Vec<_> = all.map(|(place, socket)| place.report(socket.as_ref())).collect();
        output::print_json(&reports)?;
    }
    ended
}

/// The threads that serve over this stack and over RRTP.
struct Threads {
    session: Option<Session>,
    rrtp: Option<RuntimeThread>,
}

impl Threads {
    /// Returns the runtime that serves the connections of a scheme.
    fn of(&self, scheme: Scheme) -> Handle {
        let own = match scheme {
            Scheme::Airtcp => self.session.as_ref().map(Session::runtime),
            Scheme::Rrtp => self.rrtp.as_ref().map(RuntimeThread::runtime),
            _ => None,
        };
        own.cloned().unwrap_or_else(Handle::current)
    }

    /// Waits until the threads have ended.
    fn end(self) {
        self.session.into_iter().for_each(Session::end);
        self.rrtp.into_iter().for_each(RuntimeThread::join);
    }
}

/// Waits until the stack fails, if there is one, or until a listener ends.
async fn ended(session: Option<&Session>, running: &mut JoinSet<io::Result<()>>) -> anyhow::Error {
    let stack = async {
        match session {
            Some(session) => session.stack().closed().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        error = stack => error.into(),
        Some(ended) = running.join_next() => match ended {
            Ok(Ok(())) => anyhow!("a listener has ended"),
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
        },
    }
}

/// A listener of any transport.
enum Listener {
    Kernel(tokio::net::TcpListener),
    Stack(airtcp_net::TcpListener),
    Rrtp(RrtpListener),
}

/// The limits of RRTP for `served` connections: also room for closed connections, which still
/// answer for some seconds, and for refused clients, which are given the reason. A single address
/// cannot occupy most of them.
fn limits(served: usize) -> Limits {
    Limits {
        connections: 2 * served + 64,
        connections_per_peer: served / 4 + 32,
        ..Limits::default()
    }
}

impl Listener {
    async fn bind(url: &Url, args: &QuickServeArgs, threads: &Threads) -> anyhow::Result<Self> {
        let address = url.address().context("it is no address")?;
        Ok(match (url.scheme(), &threads.session) {
            (Scheme::Rrtp, _) => {
                let bind = RrtpSocket::bind(address, limits(args.connections));
                let socket = threads.of(Scheme::Rrtp).spawn(bind).await??;
                let mut config = Network::config(args.profile);
                if let Some(cap) = args.rate_cap {
                    (config.rate_cap, config.asked_rate_cap) = (cap, cap);
                }
                Self::Rrtp(socket.listen(config)?)
            }
            (Scheme::Airtcp, Some(session)) => {
                Self::Stack(session.stack().listen(address, BACKLOG)?)
            }
            _ => Self::Kernel(tokio::net::TcpListener::bind(address).await?),
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel(listener) => listener.local_addr(),
            Self::Stack(listener) => listener.local_addr(),
            Self::Rrtp(listener) => listener.local_addr(),
        }
    }

    /// Returns the socket of RRTP, which has counters and a shutdown.
    fn socket(&self) -> Option<RrtpSocket> {
        match self {
            Self::Rrtp(listener) => Some(listener.socket().clone()),
            Self::Kernel(_) | Self::Stack(_) => None,
        }
    }
}

impl Accept for Listener {
    type Connection = Line;

    async fn accept(&self) -> io::Result<Line> {
        match self {
            Self::Kernel(listener) => {
                let (stream, peer) = listener.accept().await?;
                Line::kernel(stream, peer)
            }
            Self::Stack(listener) => Ok(Line::Stack(listener.accept().await?.0)),
            Self::Rrtp(listener) => Ok(Line::Rrtp(listener.accept().await?.0)),
        }
    }
}

/// A listener in the report.
#[derive(Clone)]
struct Place {
    url: String,
    /// The maximum number of simultaneous connections, and the free ones.
    limit: usize,
    room: Arc<Semaphore>,
    served: Arc<Served>,
}

#[derive(Default)]
struct Served {
    connections: AtomicU64,
    broken: AtomicU64,
    refused: AtomicU64,
}

/// The entry of `--json` for a listener.
#[derive(Serialize)]
struct Report<'a> {
    url: &'a str,
    connections: u64,
    /// Connections that ended with an error.
    broken: u64,
    /// Connections beyond the maximum.
    refused: u64,
    /// The counters of RRTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Counters>,
}

impl Place {
    fn report(&self, socket: Option<&RrtpSocket>) -> Report<'_> {
        let counters = socket.map(RrtpSocket::counters);
        Report {
            url: &self.url,
            connections: self.served.connections.load(Relaxed),
            broken: self.served.broken.load(Relaxed),
            refused: self.served.refused.load(Relaxed),
            counters,
        }
    }
}

async fn handle(mut line: Line, files: Files, is_reported: bool, stop: Stop, place: Place) {
    let (start, peer) = (Instant::now(), line.peer_addr().ok());
    let Ok(_room) = place.room.clone().try_acquire_owned() else {
        if place.served.refused.fetch_add(1, Relaxed) == 0 {
            let (url, limit) = (&place.url, place.limit);
            output::note(format_args!(
                "note: {url} serves at most {limit} connections: further ones are refused"
            ));
        }
        let _ = timeout(REFUSAL, refuse(&mut line, place.limit)).await;
        return;
    };
    place.served.connections.fetch_add(1, Relaxed);
    let reported = Arc::new(OnceLock::new());
    let files = if is_reported { files.with_network(reported.clone()) } else { files };
    let served = match line.tune(PAUSE) {
        Ok(()) => serve_files(&files, &mut Patient::new(line, PAUSE, reported), stop).await,
        Err(error) => Err(error),
    };
    let duration = start.elapsed();
    match served {
        Ok(()) => tracing::info!(?peer, ?duration, "done"),
        Err(error) => {
            place.served.broken.fetch_add(1, Relaxed);
            tracing::info!(?peer, ?duration, %error, "broken");
        }
    }
}

/// Sends a refusal once the client has sent a request: before that, it would not be a response.
async fn refuse(line: &mut Line, limit: usize) -> io::Result<()> {
    if line.read(&mut [0; ASKED]).await? == 0 {
        return Ok(());
    }
    let text = format!("at most {limit} connections are served at a time\n");
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    );
    line.write_all(answer.as_bytes()).await?;
    line.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_gets_less_than_half_of_the_connections() {
        for served in [1, 2, 64, 256, 4_096] {
            let limits = limits(served);
            let [room, of_one] = [limits.connections, limits.connections_per_peer];
            // The same number may be closed, and further ones refused with a reason.
            assert!(room > 2 * served && of_one > 1, "{served}: {limits:?}");
            assert!(served < 128 || of_one < served / 2, "{served}: {limits:?}");
        }
    }
}
