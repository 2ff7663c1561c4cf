//! The kernel's TCP as the other end: services and clients on real sockets.
//!
//! Run everything here inside a namespace, with [`Namespace::spawn`] or [`Namespace::block_on`].
//! Errors are those of the sockets; wrong data is [`InvalidData`](io::ErrorKind::InvalidData).

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

/// The data of [`Service::Source`]: a pattern with this seed and period, repeated. The period is a
/// prime.
const SOURCE_SEED: u64 = 0;
const SOURCE_PERIOD: usize = 65_521;

/// Returns one period of the data of [`Service::Source`], generated once for all connections of a
/// thread.
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

/// Returns the pattern of [`Service::Source`], to verify data.
pub const fn source_pattern() -> Pattern {
    Pattern::repeating(SOURCE_SEED, SOURCE_PERIOD as u64)
}

/// The service of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Sends back the received data, then closes.
    Echo,
    /// Reads to the end of the stream, sends the number of bytes as 8 bytes big-endian, and closes.
    Sink,
    /// Sends [`source_bytes`] repeatedly, until the peer closes.
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
    /// Returns the address of the listener, with the port that the kernel chose for port zero.
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
    /// Serves `service` at `address` inside the namespace, with the named congestion control, or
    /// the system's default (`sysctl net.ipv4.tcp_congestion_control`).
    ///
    /// # Errors
    /// The namespace does not have the address, the port is in use, or the kernel does not know the
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

/// Opens a listener at `address`, for services that this module does not have. Call it inside the
/// namespace.
///
/// # Errors
/// Those of [`Namespace::serve`].
pub fn listen(address: SocketAddr, congestion: Option<&str>) -> io::Result<TcpListener> {
    let socket = socket(address, congestion)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // Accepted sockets inherit the listener's congestion control.
    socket.listen(4096)
}

/// Connects to `address`, with the named congestion control, or the system's default.
///
/// # Errors
/// The kernel does not know the congestion control, or connecting fails.
pub async fn connect(address: SocketAddr, congestion: Option<&str>) -> io::Result<TcpStream> {
    socket(address, congestion)?.connect(address).await
}

/// Returns the congestion control of a socket.
///
/// # Errors
/// The socket is not a TCP socket.
pub fn congestion(socket: &impl AsFd) -> io::Result<String> {
    let name = getsockopt(socket, sockopt::TcpCongestion)?;
    // The kernel pads its buffer with zeros.
    Ok(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

// The clients below accept any stream, so that the stack under test can be the client too.

/// Sends `bytes` bytes of the pattern of `seed` to a sink, and returns the sink's count.
///
/// # Errors
/// The connection breaks, or the response is not 8 bytes long.
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

/// Reads `bytes` bytes from a source and closes; verifies them against `pattern` if given.
///
/// # Errors
/// The connection breaks or ends early, or a byte differs.
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

/// Sends `bytes` bytes of the pattern of `seed` to an echo service while reading and verifying the
/// response; returns the number of bytes received, which is `bytes`.
///
/// # Errors
/// The connection breaks, a byte differs, or the response is too short or too long.
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

/// Sends `bytes` bytes of the pattern of `seed` and shuts down the sending half.
///
/// # Errors
/// The connection breaks.
pub async fn send(stream: &mut (impl AsyncWrite + Unpin), seed: u64, bytes: u64) -> io::Result<()> {
    write_pattern(stream, seed, bytes).await?;
    stream.shutdown().await
}

/// Reads to the end of the stream and verifies the data against the pattern of `seed`; returns the
/// number of bytes.
///
/// # Errors
/// The connection breaks, or a byte differs.
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
    // Dropped with this task, which aborts its connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // Errors of a connection are reported at its other end.
                Ok((stream, _)) => { connections.spawn(handle(stream, service)); }
                // Usually out of file descriptors: wait until one is closed.
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
                // Ends at the peer's FIN, not only at a reset.
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
