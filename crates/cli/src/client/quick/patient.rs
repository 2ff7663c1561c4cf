//! A connection to a client that must accept data at a minimum rate.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::line::Line;
use super::network::Network;

/// Bytes that a client must accept before its time limit restarts. In five minutes that is less
/// than any link carries.
const PACE: usize = 64 * 1024;

/// A connection that fails if its client accepts too little of the response, and that configures
/// its sender for the network that the client describes.
pub(super) struct Patient {
    line: Line,
    /// How long the client may leave the connection without room for data.
    limit: Duration,
    /// The time limit, set when the connection had no room, and the bytes accepted since.
    full: Option<(Pin<Box<Sleep>>, usize)>,
    network: Arc<OnceLock<Network>>,
    is_configured: bool,
}

impl Patient {
    pub(super) fn new(line: Line, limit: Duration, network: Arc<OnceLock<Network>>) -> Self {
        Self { line, limit, full: None, network, is_configured: false }
    }

    /// Configures the sender with the client's description, before the response is sent.
    fn reconfigure(&mut self) {
        if !self.is_configured
            && let Some(network) = self.network.get()
        {
            self.is_configured = true;
            self.line.reconfigure(network);
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.line).poll_read(context, buf))?;
        // The next request has a time limit of its own.
        self.full = None;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.reconfigure();
        if let Poll::Ready(written) = Pin::new(&mut self.line).poll_write(context, data) {
            let written = written?;
            if let Some((_, taken)) = &mut self.full {
                *taken += written;
            }
            self.full.take_if(|(_, taken)| *taken >= PACE);
            return Poll::Ready(Ok(written));
        }
        let limit = self.limit;
        let (end, _) = self.full.get_or_insert_with(|| (Box::pin(sleep(limit)), 0));
        ready!(end.as_mut().poll(context));
        self.line.abort();
        let text = format!("the client took less than {} KiB in {limit:?}", PACE >> 10);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.line).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.line).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use airtcp_net::rrtp::RrtpListener;
    use airtcp_rrtp::{Config, NetworkKind};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Both ends of a connection with a small receive buffer.
    async fn ends() -> (airtcp_net::rrtp::RrtpStream, airtcp_net::rrtp::RrtpStream) {
        let listener =
            RrtpListener::bind((Ipv4Addr::LOCALHOST, 0).into(), Config::default()).await.unwrap();
        let (at, small) = (listener.local_addr().unwrap(), airtcp_types::ByteCount(64 * 1024));
        let config = Config { receive_buffer: small, ..Config::default() };
        let client = airtcp_net::rrtp::RrtpStream::connect(at, config);
        let (client, server) = tokio::join!(client, listener.accept());
        (client.unwrap(), server.unwrap().0)
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_times_out_and_a_slow_one_does_not() {
        let (mut client, server) = ends().await;
        let mut patient =
            Patient::new(Line::Rrtp(server), Duration::from_millis(50), Arc::default());
        let error = patient.write_all(&vec![7; 32 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "the client took less than 64 KiB in 50ms");
        // The data in the buffer is discarded, too.
        assert!(patient.shutdown().await.is_err());
        let error = client.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

        let (mut client, server) = ends().await;
        let mut patient = Patient::new(Line::Rrtp(server), Duration::from_secs(60), Arc::default());
        let length = 8 << 20;
        let writing = async {
            patient.write_all(&vec![7; length]).await.unwrap();
            patient.shutdown().await.unwrap();
        };
        let mut read = Vec::new();
        let (_, count) = tokio::join!(writing, client.read_to_end(&mut read));
        assert_eq!(count.unwrap(), length);
    }

    #[tokio::test]
    async fn the_clients_network_parameters_reach_the_sender() {
        let (_client, server) = ends().await;
        let reported = Arc::new(OnceLock::new());
        let mut patient =
            Patient::new(Line::Rrtp(server), Duration::from_secs(60), reported.clone());
        patient.write_all(b"before").await.unwrap();
        reported.set("edge".parse().unwrap()).unwrap();
        patient.write_all(b"after").await.unwrap();
        let Line::Rrtp(stream) = &patient.line else { panic!("it is of RRTP") };
        let info = stream.info().unwrap();
        assert_eq!(info.kind, NetworkKind::WirelessLastHop);
        assert_eq!(info.characteristic_rate.map(|rate| rate.bits_per_sec()), Some(240_000));
    }
}
