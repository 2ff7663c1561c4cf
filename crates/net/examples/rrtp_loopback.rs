//! Sends data between two RRTP sockets over the loopback interface at a given rate; prints the
//! duration and whether the data arrived intact.
//!
//! `cargo run --release -p airtcp-net --features rrtp --example rrtp_loopback -- [GIGABYTES [GBIT_PER_SECOND]]`
use std::error::Error;
use std::time::Instant;

use airtcp_net::rrtp::{RrtpListener, RrtpStream};
use airtcp_rrtp::Config;
use airtcp_types::Rate;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The size of each write and read, in bytes.
const CHUNK: usize = 64 * 1024;

/// Both ends run on one thread.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let gigabytes: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let gigabits: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let rate = Rate::from_bits_per_sec((gigabits * 1e9) as u64);
    let mut config = Config { rate_cap: rate, ..Config::default() };
    config.profile.send_rate = Some(rate);
    let listener = RrtpListener::bind("127.0.0.1:0".parse()?, config.clone()).await?;
    let mut client = RrtpStream::connect(listener.local_addr()?, config).await?;
    let (mut server, _) = listener.accept().await?;
    let start = Instant::now();
    let chunks = (gigabytes * (1 << 30) as f64) as u64 / CHUNK as u64;
    let sending = tokio::spawn(async move {
        let (mut chunk, mut hash) = (vec![0; CHUNK], Sha256::new());
        for number in 0..chunks {
            chunk[..8].copy_from_slice(&number.to_be_bytes());
            hash.update(&chunk);
            client.write_all(&chunk).await?;
        }
        client.shutdown().await?;
        // Waits until the peer has received everything.
        client.read_to_end(&mut Vec::new()).await?;
        Ok::<_, std::io::Error>((hash.finalize(), client.info()?))
    });
    let (mut chunk, mut hash, mut count) = (vec![0; CHUNK], Sha256::new(), 0);
    loop {
        let read = server.read(&mut chunk).await?;
        if read == 0 {
            break;
        }
        hash.update(&chunk[..read]);
        count += read as u64;
    }
    let took = start.elapsed().as_secs_f64();
    server.shutdown().await?;
    let (sent, info) = sending.await??;
    let intact = if sent == hash.finalize() { "intact" } else { "NOT INTACT" };
    println!(
        "{count} bytes in {took:.2} s, {:.3} Gbit/s of payload, {intact}; {} packets, {} of them again",
        count as f64 * 8e-9 / took,
        info.packets_sent,
        info.retransmissions,
    );
    Ok(())
}
