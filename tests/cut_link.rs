//! A link that the test cuts and restores, and a client that connects and retries on its own.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airtcp::device::{Clock, memory};
use airtcp::link::{Driver, Link, LinkSpec};
use airtcp::types::{Event, Instant, Node, Packet, PortId};
use airtcp::{HostConfig, Stack, TcpListener};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// A link that loses every packet while it is cut.
struct Cut {
    link: Link,
    is_cut: Arc<AtomicBool>,
}

impl Node for Cut {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        if !self.is_cut.load(Ordering::Relaxed) {
            self.link.handle_packet(now, port, packet);
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.link.poll_transmit(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.link.poll_event()
    }
}

/// The code under test connects and retries on its own. The program passes a closure with tokio's
/// `connect`.
async fn fetch<S>(connect: impl AsyncFn() -> io::Result<S>) -> io::Result<String>
where
    S: AsyncRead + Unpin,
{
    loop {
        match connect().await {
            Ok(mut stream) => {
                let mut text = String::new();
                stream.read_to_string(&mut text).await?;
                return Ok(text);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            Err(error) => return Err(error),
        }
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        // Writing fails if the client has given up this attempt.
        if stream.write_all(b"hello").await.is_ok() {
            let _ = stream.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_client_tries_again_until_the_link_is_restored() -> Result<(), Box<dyn Error>> {
    let (server, port_0) = memory::pair(1500, 256);
    let (client, port_1) = memory::pair(1500, 256);
    let spec: LinkSpec = "rate 10mbit delay 5ms limit 50".parse()?;
    let is_cut = Arc::new(AtomicBool::new(true));
    let node = Cut { link: Link::new(&spec, &spec)?, is_cut: is_cut.clone() };
    let mut driver = Driver::new(node, [port_0, port_1], Clock::start())?;
    let server = Stack::new(server, HostConfig::new(["10.0.0.1/24".parse()?]))?;
    let client = Stack::new(client, HostConfig::new(["10.0.0.2/24".parse()?]))?;

    let address: SocketAddr = "10.0.0.1:80".parse()?;
    let listener = server.listen(address, 16)?;
    let connect = async || {
        let connected = client.connect_timeout(address, Duration::from_millis(200)).await;
        if connected.is_err() {
            is_cut.store(false, Ordering::Relaxed);
        }
        connected
    };
    let text = tokio::select! {
        Err(gone) = driver.run() => return Err(gone.into()),
        Err(error) = serve(listener) => return Err(error.into()),
        text = fetch(connect) => text?,
    };
    assert_eq!(text, "hello");
    assert!(!is_cut.load(Ordering::Relaxed), "the first attempt went through the cut link");
    Ok(())
}
