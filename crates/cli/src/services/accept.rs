//! Accepts the connections of one listener, each in a task of its own.

use std::io;
use std::io::ErrorKind::{NetworkDown, NotConnected};
use std::pin::pin;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Stop;

/// The number of ended tasks that are collected only with the next connection: a wake-up for each
/// end is a part of the cost of a short connection.
const UNREAPED: usize = 256;

/// A source of connections.
pub(crate) trait Accept: Send + Sync {
    type Connection: Send;

    /// Accepts the next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

impl Accept for airtcp_net::TcpListener {
    type Connection = airtcp_net::TcpStream;

    async fn accept(&self) -> io::Result<Self::Connection> {
        Ok(self.accept().await?.0)
    }
}

/// Runs `handle` for each connection until `stop`, then waits up to `patience` for their ends.
///
/// # Errors
/// The stack or socket of the listener is gone.
pub(crate) async fn accept<L: Accept, F: Future<Output = ()> + Send + 'static>(
    listener: L,
    mut stop: Stop,
    patience: Duration,
    handle: impl Fn(L::Connection) -> F + Send,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    let mut stopped = pin!(stop.wait());
    let ended = loop {
        while connections.try_join_next().is_some() {}
        tokio::select! {
            biased;
            () = &mut stopped => break Ok(()),
            accepted = listener.accept() => match accepted {
                Ok(connection) => {
                    connections.spawn(handle(connection));
                }
                Err(error) if matches!(error.kind(), NetworkDown | NotConnected) => break Err(error),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next(), if connections.len() > UNREAPED => {}
        }
    };
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(patience, all).await.is_err() {
        tracing::warn!(open = connections.len(), "closing the rest");
        // This drops their streams, which closes them.
        connections.shutdown().await;
    }
    ended
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::*;

    struct Script(Mutex<VecDeque<io::Result<u32>>>);

    impl Accept for Script {
        type Connection = u32;

        async fn accept(&self) -> io::Result<u32> {
            self.0.lock().unwrap().pop_front().expect("the script has ended")
        }
    }

    #[tokio::test]
    async fn a_closed_listener_ends_accepting_and_a_failed_connection_does_not() {
        for kind in [NetworkDown, NotConnected] {
            let script =
                [Ok(1), Err(io::ErrorKind::ConnectionAborted.into()), Ok(2), Err(kind.into())];
            let (sender, mut handled) = tokio::sync::mpsc::unbounded_channel();
            let (_stopping, stop) = Stop::new();
            let script = Script(Mutex::new(script.into_iter().collect()));
            let patience = Duration::from_secs(60);
            let ended = accept(script, stop, patience, |connection| {
                let sender = sender.clone();
                async move {
                    let _ = sender.send(connection);
                }
            });
            assert_eq!(ended.await.unwrap_err().kind(), kind);
            let mut both = [handled.recv().await, handled.recv().await];
            both.sort_unstable();
            assert_eq!(both, [Some(1), Some(2)]);
        }
    }
}
