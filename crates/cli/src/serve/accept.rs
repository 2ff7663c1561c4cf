//! One listener: every connection becomes a task.

use std::io::ErrorKind::{NetworkDown, NotConnected};
use std::time::{Duration, Instant};

use airtcp_stack::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PATIENCE;
use super::summary::{Connection, Summary};
use crate::output;
use crate::services::{Service, Stop};

/// Serves until `stop`, then gives the connections their time to come to an end.
pub(super) async fn run(listener: TcpListener, service: Service, mut stop: Stop, summary: Summary) {
    let mut connections = JoinSet::new();
    let for_connections = stop.clone();
    loop {
        tokio::select! {
            () = stop.wait() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (stop, summary) = (for_connections.clone(), summary.clone());
                    connections.spawn(handle(stream, service.clone(), stop, summary));
                }
                // The stack ended, which `serve` tells.
                Err(error) if matches!(error.kind(), NetworkDown | NotConnected) => stop.wait().await,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(PATIENCE, all).await.is_err() {
        tracing::warn!(open = connections.len(), service = service.name(), "closing the rest");
        // Their streams are dropped, which closes them.
        connections.shutdown().await;
    }
}

async fn handle(mut stream: TcpStream, service: Service, stop: Stop, summary: Summary) {
    let start = Instant::now();
    let (local, peer) = (stream.local_addr().ok(), stream.peer_addr().ok());
    if let (Some(peer), Ok(info)) = (peer, stream.info()) {
        tracing::info!(service = service.name(), %peer, info.combination, "accepted");
        if let Some(news) = summary.news(peer, &info.combination) {
            output::note(format_args!("note: {news}"));
        }
    }
    // Answers are written in pieces that are as long as they get.
    let _ = stream.set_nodelay(true);
    let served = service.serve(&mut stream, stop).await;
    let info = stream.info().ok();
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
