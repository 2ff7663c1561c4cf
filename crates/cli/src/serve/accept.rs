//! Runs the listener of one service, and its connections.

use std::time::Instant;

use airtcp_net::{TcpListener, TcpStream};

use super::PATIENCE;
use super::summary::{Connection, Summary};
use crate::output;
use crate::services::{Service, Stop, accept};

/// Serves until `stop`, then waits up to [`PATIENCE`] for the connections to end.
pub(super) async fn run(listener: TcpListener, service: Service, stop: Stop, summary: Summary) {
    let accepted = accept(listener, stop.clone(), PATIENCE, |stream| {
        handle(stream, service.clone(), stop.clone(), summary.clone())
    });
    // `serve` reports the end of the stack.
    let _ = accepted.await;
}

async fn handle(mut stream: TcpStream, service: Service, stop: Stop, summary: Summary) {
    let start = Instant::now();
    let (local, peer) = (stream.local_addr().ok(), stream.peer_addr().ok());
    if let (Some(peer), Ok(combination)) = (peer, stream.combination()) {
        tracing::info!(service = service.name(), %peer, %combination, "accepted");
        if let Some(news) = summary.begin(peer, &combination) {
            output::note(format_args!("note: {news}"));
        }
    }
    // Services write data in pieces as large as possible, so that Nagle's algorithm has no use.
    let _ = stream.set_nodelay(true);
    let served = service.serve(&mut stream, stop).await;
    let info = if summary.is_listed() { stream.info().ok() } else { None };
    drop(stream);
    let duration = start.elapsed();
    match &served {
        Ok(()) => tracing::info!(service = service.name(), ?peer, ?duration, "done"),
        Err(error) => tracing::info!(service = service.name(), ?peer, ?duration, %error, "broken"),
    }
    summary.add(Connection {
        service: service.name(),
        local,
        peer,
        seconds: duration.as_secs_f64(),
        error: served.err().map(|error| error.to_string()),
        info,
    });
}
