//! `--live ADDR`: a page that shows the state of a command, served by HTTP over the kernel's TCP.
//!
//! While the page has viewers, one task takes a snapshot four times a second. All viewers get the
//! same bytes; a slow viewer skips snapshots.

mod aside;
mod page;
mod serve;
mod snapshot;
mod stacks;
mod work;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hyper::body::Bytes;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::output;
pub(crate) use aside::Aside;
use serve::Site;
use snapshot::Message;
pub(crate) use snapshot::{Chart, Snapshot, Table, rounded};
pub(crate) use stacks::{MOST_FLOWS, of_stacks};
pub(crate) use work::Work;

/// The interval between snapshots.
const PERIOD: Duration = Duration::from_millis(250);

/// Parses the address of `--live`.
///
/// # Errors
/// The text is neither `PORT` nor `ADDRESS:PORT`, or the address is unspecified.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let is_port = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| is_port);
    let address = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = address.or_else(|| text.parse().ok()).ok_or_else(|| {
        "expected PORT or ADDRESS:PORT; for example --live 8080 or --live [::1]:8080".to_owned()
    })?;
    if address.ip().to_canonical().is_unspecified() {
        return Err(format!(
            "{address} is every address of this machine, and the page has no login: name the address of one interface; for \
             example --live 127.0.0.1:{}",
            address.port()
        ));
    }
    Ok(address)
}

/// Serves the page until the runtime ends, and returns the address. While the page has viewers,
/// `read` is called for snapshots; it returns `None` once their source has ended.
///
/// # Errors
/// The address cannot be bound.
pub(crate) async fn listen<F>(
    address: SocketAddr,
    title: impl Into<String>,
    read: impl Fn() -> F + Send + 'static,
) -> anyhow::Result<SocketAddr>
where
    F: Future<Output = Option<Snapshot>> + Send + 'static,
{
    let listener = TcpListener::bind(address).await;
    let listener = listener
        .with_context(|| format!("--live {address}"))
        .map_err(|error| output::if_privileged(error, address.port()))?;
    let address = listener.local_addr()?;
    output::note(format_args!("live page: http://{address}/"));
    if !address.ip().to_canonical().is_loopback() {
        output::note(format_args!(
            "note: --live {address}: the page has no login, and everybody who reaches this address can read it"
        ));
    }
    let (snapshots, seen) = watch::channel(Bytes::new());
    let wanted = Arc::new(Notify::new());
    tokio::spawn(sample(title.into(), read, snapshots, wanted.clone()));
    tokio::spawn(Arc::new(Site::new(seen, wanted)).accept(listener));
    Ok(address)
}

/// Takes snapshots while there are viewers.
async fn sample<F: Future<Output = Option<Snapshot>>>(
    title: String,
    read: impl Fn() -> F,
    snapshots: watch::Sender<Bytes>,
    wanted: Arc<Notify>,
) {
    let start = Instant::now();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // One receiver belongs to the site itself.
        if snapshots.receiver_count() == 1 {
            wanted.notified().await;
            continue;
        }
        ticks.tick().await;
        let Some(now) = read().await else { return };
        let message = Message { title: &title, seconds: start.elapsed().as_secs_f64(), now };
        match message.event() {
            Ok(event) => drop(snapshots.send_replace(event)),
            Err(error) => return tracing::warn!(%error, "--live"),
        }
    }
}

#[cfg(test)]
mod tests;
