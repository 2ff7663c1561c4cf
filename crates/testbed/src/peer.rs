//! The kernel's TCP as the other end: services and calls on real sockets.
//!
//! Everything here belongs inside a namespace: run it by [`Namespace::spawn`] or
//! [`Namespace::block_on`]. Errors are those of the sockets; data that is not what it should be is
//! [`InvalidData`](io::ErrorKind::InvalidData).

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::str::FromStr;
use std::sync::Arc;

use airtcp_types::SharedBytes;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::{Namespace, Pattern, TestbedError};

/// Bytes per read and write.
const CHUNK: usize = 64 * 1024;

/// What [`Service::Source`] writes: the first bytes of the pattern of a seed, over and over. The
/// period is a prime.
const SOURCE_SEED: u64 = 0;
const SOURCE_PERIOD: usize = 65_521;

/// One period of what [`Service::Source`] writes, made once for all connections of a thread.
pub fn source_bytes() -> SharedBytes {
    thread_local! {
        static BYTES: SharedBytes = {
            let mut bytes = vec![0; SOURCE_PERIOD];
            source_pattern().fill(&mut bytes);
            SharedBytes::new(&Arc::new(bytes), 0..SOURCE_PERIOD)
        };
    }
    BYTES.with(SharedBytes::clone)
}

/// What [`Service::Source`] writes, to compare with.
pub const fn source_pattern() -> Pattern {
    Pattern::repeating(SOURCE_SEED, SOURCE_PERIOD as u64)
}

/// What a server does with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Sends back what it reads, then closes.
    Echo,
    /// Reads to the end, answers with the number of bytes as 8 bytes big-endian, closes.
    Sink,
    /// Writes [`source_bytes`], over and over, until the peer closes.
    Source,
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "echo" => Ok(Self::Echo),
            "sink" => Ok(Self::Sink),
            "source" => Ok(Self::Source),
            _ => Err(format!("there is no service \"{text}\"; there are echo, sink and source")),
        }
    }
}

/// A service on a kernel socket. Dropping it closes the listener and aborts its connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: AbortHandle,
}

impl Server {
    /// Where it listens: the port is the one the kernel chose if zero was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Namespace {
    /// Serves `service` at `address` inside the namespace, with the congestion control named, or
    /// the system's if none is (`sysctl net.ipv4.tcp_congestion_control`).
    ///
    /// # Errors
    /// The address is not the namespace's, the port is taken, or the kernel does not know the
    /// congestion control.
    pub fn serve(
        &self,
        address: SocketAddr,
        service: Service,
        congestion: Option<&str>,
    ) -> Result<Server, TestbedError> {
        let congestion = congestion.map(str::to_owned);
        let doing = format!("listening at {address}");
        let (listener, address) = self
            .run(move || {
                let listener = listen(address, congestion.as_deref())?;
                let address = listener.local_addr()?;
                Ok((listener, address))
            })
            .map_err(TestbedError::refused(doing))?;
        let task = self.spawn(accept(listener, service)).abort_handle();
        Ok(Server { address, task })
    }
}

/// A listener at `address`, for services that this module has not. Call it inside the namespace.
///
/// # Errors
/// As [`Namespace::serve`].
pub fn listen(address: SocketAddr, congestion: Option<&str>) -> io::Result<TcpListener> {
    let socket = socket(address, congestion)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // Accepted sockets inherit the listener's congestion control.
    socket.listen(4096)
}

/// Connects to `address`, with the congestion control named, or the system's if none is.
///
/// # Errors
/// The kernel does not know the congestion control; those of connecting.
pub async fn connect(address: SocketAddr, congestion: Option<&str>) -> io::Result<TcpStream> {
    socket(address, congestion)?.connect(address).await
}

/// The congestion control of a socket.
///
/// # Errors
/// It is no TCP socket.
pub fn congestion(socket: &impl AsFd) -> io::Result<String> {
    let name = getsockopt(socket, sockopt::TcpCongestion)?;
    // The kernel fills the rest of its buffer with zeros.
    Ok(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

// The clients below take any stream, so that the stack under test can be the client too.

/// Sends `bytes` bytes of the pattern of `seed` to a sink and gives the count it answers with.
///
/// # Errors
/// The connection breaks; the answer is not 8 bytes.
pub async fn upload(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seed: u64,
    bytes: u64,
) -> io::Result<u64> {
    send(&mut stream, seed, bytes).await?;
    let count = stream.read_u64().await?;
    let mut more = [0; 1];
    match stream.read(&mut more).await? {
        0 => Ok(count),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the sink answered more than 8 bytes")),
    }
}

/// Reads `bytes` bytes from a source and closes; compares them with `pattern` if one is given.
///
/// # Errors
/// The connection breaks or ends before; a byte differs.
pub async fn download(
    mut stream: impl AsyncRead + Unpin,
    mut pattern: Option<Pattern>,
    bytes: u64,
) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut received = 0;
    while received < bytes {
        let room = usize::try_from(bytes - received).unwrap_or(CHUNK).min(CHUNK);
        let length = stream.read(&mut buffer[..room]).await?;
        if length == 0 {
            return Err(ended_after(received));
        }
        if let Some(pattern) = &mut pattern {
            pattern.check(&buffer[..length]).map_err(differs_at)?;
        }
        received += length as u64;
    }
    Ok(received)
}

/// Sends `bytes` bytes of the pattern of `seed` to an echo service while reading them back, and
/// compares; gives the number of bytes that came back, which is `bytes`.
///
/// # Errors
/// The connection breaks; a byte differs, is missing or is too many.
pub async fn echo(stream: impl AsyncRead + AsyncWrite, seed: u64, bytes: u64) -> io::Result<u64> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sending = async move {
        write_pattern(&mut writer, seed, bytes).await?;
        writer.shutdown().await
    };
    let receiving = async move {
        let received = receive(&mut reader, seed).await?;
        if received == bytes { Ok(received) } else { Err(ended_after(received)) }
    };
    let ((), received) = tokio::try_join!(sending, receiving)?;
    Ok(received)
}

/// Sends `bytes` bytes of the pattern of `seed` and shuts the sending half down.
///
/// # Errors
/// The connection breaks.
pub async fn send(stream: &mut (impl AsyncWrite + Unpin), seed: u64, bytes: u64) -> io::Result<()> {
    write_pattern(stream, seed, bytes).await?;
    stream.shutdown().await
}

/// Reads to the end of the stream and compares with the pattern of `seed`; gives the number of
/// bytes.
///
/// # Errors
/// The connection breaks; a byte differs.
pub async fn receive(stream: &mut (impl AsyncReadExt + Unpin), seed: u64) -> io::Result<u64> {
    let mut pattern = Pattern::new(seed);
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(pattern.position());
        }
        pattern.check(&buffer[..length]).map_err(differs_at)?;
    }
}

async fn accept(listener: TcpListener, service: Service) {
    // Dropped with this task, and its connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // How a connection ends is for its other end to see.
                Ok((stream, _)) => { connections.spawn(handle(stream, service)); }
                // Out of descriptors, mostly: wait for one to close.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn handle(mut stream: TcpStream, service: Service) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    match service {
        Service::Echo => {
            let (mut reader, mut writer) = stream.split();
            loop {
                let length = reader.read(&mut buffer).await?;
                if length == 0 {
                    return writer.shutdown().await;
                }
                writer.write_all(&buffer[..length]).await?;
            }
        }
        Service::Sink => {
            let mut count = 0;
            loop {
                let length = stream.read(&mut buffer).await?;
                if length == 0 {
                    break;
                }
                count += length as u64;
            }
            stream.write_u64(count).await?;
            stream.shutdown().await
        }
        Service::Source => {
            let (mut reader, mut writer) = stream.split();
            let bytes = source_bytes();
            let writing = async {
                loop {
                    writer.write_all(&bytes).await?;
                }
            };
            tokio::select! {
                written = writing => written,
                // The peer's end of stream ends it too, not only its reset.
                closed = async { while reader.read(&mut buffer).await? > 0 {} Ok(()) } => closed,
            }
        }
    }
}

pub(crate) async fn write_pattern(
    writer: &mut (impl AsyncWriteExt + Unpin),
    seed: u64,
    bytes: u64,
) -> io::Result<()> {
    let mut pattern = Pattern::new(seed);
    let mut buffer = vec![0; CHUNK];
    while pattern.position() < bytes {
        let left = bytes - pattern.position();
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        pattern.fill(&mut buffer[..length]);
        writer.write_all(&buffer[..length]).await?;
    }
    Ok(())
}

fn socket(address: SocketAddr, congestion: Option<&str>) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(name) = congestion {
        setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(name)).map_err(|errno| {
            let error = io::Error::from(errno);
            let text = format!("the kernel refuses the congestion control \"{name}\" ({error})");
            io::Error::new(error.kind(), text)
        })?;
    }
    Ok(socket)
}

pub(crate) fn differs_at(position: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("byte {position} is not what was sent"))
}

fn ended_after(bytes: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the stream ended after {bytes} bytes"))
}
