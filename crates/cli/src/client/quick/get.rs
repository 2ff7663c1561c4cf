//! `airtcp quickget`: downloads a file over the transport that its URL names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use airtcp_net::RuntimeThread;
use airtcp_net::rrtp::RrtpSocket;
use airtcp_rrtp::{Config, Limits};
use anyhow::{Context, anyhow};
use tokio::time::timeout;

use super::args::QuickGetArgs;
use super::line::Line;
use super::network::Network;
use crate::client::get::{Asks, Fetched, fetch, to_file};
use crate::client::place::Place;
use crate::client::session::{self, PATIENCE};
use crate::client::sink::{Resume, Sink};
use crate::client::url::Scheme;
use crate::output;
use crate::signals::Signals;

/// How long a connection attempt of the kernel's TCP may take; the same as for RRTP.
const ANSWER: Duration = Duration::from_secs(10);

/// The time without an answer after which a note is printed.
const SILENCE: Duration = Duration::from_secs(1);

/// How long the request may remain unacknowledged.
const GONE: Duration = Duration::from_secs(30);

/// Downloads a file, compares its SHA-256 with the server's, and prints a report.
///
/// # Errors
/// As of `get`; also, the received data differs from the file on the server.
pub(crate) fn run(args: &QuickGetArgs) -> anyhow::Result<()> {
    let url = &args.url.0;
    // A part on stdout cannot be resumed.
    let is_file = args.output.as_os_str() != "-";
    let how = (if is_file { Resume::Named } else { Resume::None }, "the same command");
    let network = args.profile.and_then(|network| network.field());
    let asks = Asks { is_verified: true, network };
    to_file(&args.output, url, how, args.json, |sink| match args.attach() {
        Some(attach) => session::run("quickget", &attach, async |session| {
            let connect = async |place: &Place| Ok(Line::Stack(session.connect(place).await?));
            fetch(connect, url.clone(), sink, &asks).await
        }),
        None => over_the_kernel(args, sink, &asks),
    })
}

/// Downloads over the kernel's TCP or RRTP. This thread hashes and writes the data; RRTP has a
/// thread of its own.
fn over_the_kernel(args: &QuickGetArgs, sink: &mut Sink, asks: &Asks) -> anyhow::Result<Fetched> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let (scheme, config) = (args.url.0.scheme(), Network::config(args.profile));
        let sockets = Sockets::bind(scheme).await?;
        let connect = async |place: &Place| call(place, sockets.as_ref(), &config).await;
        let outcome = tokio::select! {
            outcome = fetch(connect, args.url.0.clone(), sink, asks) => outcome,
            signal = signals.wait() => Err(signal.into()),
        };
        if let Some(sockets) = sockets {
            tokio::select! {
                () = sockets.shutdown() => {}
                _ = signals.wait() => {}
            }
        }
        outcome
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    outcome
}

/// RRTP sockets for both IP versions.
struct Sockets {
    /// Runs the drivers of the sockets, so that acknowledgements do not wait for the disk.
    _thread: RuntimeThread,
    ipv4: RrtpSocket,
    /// `None` without IPv6.
    ipv6: Option<RrtpSocket>,
}

impl Sockets {
    /// Returns `None` for the kernel's TCP.
    async fn bind(scheme: Scheme) -> anyhow::Result<Option<Self>> {
        if scheme != Scheme::Rrtp {
            return Ok(None);
        }
        let thread = RuntimeThread::start("rrtp")?;
        let bind = |any: IpAddr| thread.spawn(RrtpSocket::bind((any, 0).into(), Limits::default()));
        let ipv4 = bind(Ipv4Addr::UNSPECIFIED.into()).await??;
        let ipv6 = bind(Ipv6Addr::UNSPECIFIED.into()).await?;
        Ok(Some(Self { _thread: thread, ipv4, ipv6: ipv6.ok() }))
    }

    /// Waits until the server has been informed that all data has arrived.
    async fn shutdown(self) {
        self.ipv4.shutdown_within(PATIENCE).await;
        if let Some(ipv6) = self.ipv6 {
            ipv6.shutdown_within(PATIENCE).await;
        }
    }
}

/// Connects to the first address of a host that answers.
async fn call(place: &Place, sockets: Option<&Sockets>, config: &Config) -> anyhow::Result<Line> {
    let found = place.lookup().await?;
    let mut failure = anyhow!("{place} has no address");
    for address in found {
        match dial(address, sockets, config).await {
            Ok(line) => return Ok(line),
            Err(error) => failure = error.context(address.to_string()),
        }
    }
    Err(failure)
}

async fn dial(
    address: SocketAddr,
    sockets: Option<&Sockets>,
    config: &Config,
) -> anyhow::Result<Line> {
    let Some(sockets) = sockets else {
        let call = timeout(ANSWER, tokio::net::TcpStream::connect(address));
        let stream = answer(address, call).await;
        let line = Line::kernel(stream.map_err(|_| anyhow!("no answer"))??, address)?;
        line.tune(GONE)?;
        return Ok(line);
    };
    let socket = match address {
        SocketAddr::V4(_) => &sockets.ipv4,
        SocketAddr::V6(_) => sockets.ipv6.as_ref().context("this machine has no IPv6")?,
    };
    Ok(Line::Rrtp(answer(address, socket.connect(address, config.clone())).await?))
}

/// Waits for a connection attempt, and prints a note if that takes long.
async fn answer<T>(from: SocketAddr, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    match timeout(SILENCE, &mut call).await {
        Ok(answer) => answer,
        Err(_) => {
            output::note(format_args!("waiting for an answer from {from}"));
            call.await
        }
    }
}
