//! Two stacks connected by a lossy link: a sender and a receiver under test, in real time.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use airtcp::device::{Clock, memory};
use airtcp::link::{Driver, Link, LinkSpec, Way};
use airtcp::{HostConfig, Stack};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The code under test takes any stream: one of tokio's in the program, one of airtcp's here.
async fn send_file(mut stream: impl AsyncWrite + Unpin, file: &[u8]) -> io::Result<()> {
    stream.write_all(file).await?;
    stream.shutdown().await
}

async fn receive_file(mut stream: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    stream.read_to_end(&mut file).await?;
    Ok(file)
}

#[tokio::test]
async fn a_file_arrives_over_a_lossy_link() -> Result<(), Box<dyn Error>> {
    // A cable from each stack to the link: port 0 is on the server's side, port 1 on the client's.
    let (server, port_0) = memory::pair(1500, 256);
    let (client, port_1) = memory::pair(1500, 256);
    let spec: LinkSpec = "rate 10mbit delay 20ms limit 50 loss 1% seed 7".parse()?;
    let link = Link::new(&spec, &spec)?;
    let mut driver = Driver::new(link, [port_0, port_1], Clock::start())?;
    let server = Stack::new(server, HostConfig::new(["10.0.0.1/24".parse()?]))?;
    let client = Stack::new(client, HostConfig::new(["10.0.0.2/24".parse()?]))?;

    let file = vec![7_u8; 1 << 20];
    let address: SocketAddr = "10.0.0.1:80".parse()?;
    let listener = server.listen(address, 16)?;
    let sending = async {
        let (stream, _) = listener.accept().await?;
        send_file(stream, &file).await
    };
    let receiving = async { receive_file(client.connect(address).await?).await };
    let transfer = async { tokio::try_join!(sending, receiving) };
    let ((), received) = tokio::select! {
        Err(gone) = driver.run() => return Err(gone.into()),
        done = transfer => done?,
    };
    assert!(received == file);
    // `Forth` is from port 0 to port 1. The seed determines which packets are lost.
    assert!(driver.node().counters(Way::Forth).channel_lost > 0);
    Ok(())
}
