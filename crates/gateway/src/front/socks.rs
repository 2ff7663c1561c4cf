//! A SOCKS5 server (RFC 1928): CONNECT and UDP ASSOCIATE, optionally with a user name and password
//! (RFC 1929).
//!
//! Not supported: BIND, fragmented datagrams (optional in RFC 1928 section 7), and GSSAPI.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use fast_socks5::server::{
    AuthMethod, AuthMethodSuccessState, NoAuthentication, Socks5ServerProtocol, SocksServerError,
    states,
};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

use super::associate::Relay;
use super::clients::GREETING;
use super::{Clients, Login};
use crate::datagram::NearDatagrams;
use crate::{Destination, DestinationError, Near, Refusal, splice};

/// The bound address in a reply; the near gateway does not know the real one.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A client whose request was read and not yet replied to.
type Asked = Socks5ServerProtocol<TcpStream, states::CommandRead>;

/// Serves SOCKS5 to the clients of `listener`. The far gateway resolves names.
///
/// With a `login`, a client must authenticate; a client that does not offer that method is refused.
/// Without `datagrams`, UDP ASSOCIATE is refused.
pub async fn serve_socks5(
    listener: TcpListener,
    near: Near,
    datagrams: Option<NearDatagrams>,
    clients: Clients,
    login: Option<Login>,
) -> Infallible {
    let login = login.map(Arc::new);
    let serve = |stream, peer| {
        let (near, datagrams, login) = (near.clone(), datagrams.clone(), login.clone());
        async move {
            let served = serve(stream, peer, &near, datagrams.as_ref(), login.as_deref());
            if let Err(error) = served.await {
                tracing::debug!(%peer, %error, "SOCKS5");
            }
        }
    };
    clients.accept(listener, serve).await
}

/// Reads a client's request, and serves it.
async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    near: &Near,
    datagrams: Option<&NearDatagrams>,
    login: Option<&Login>,
) -> Result<(), SocksServerError> {
    let local = stream.local_addr().map_err(|error| failed(error, "accepting"))?;
    let Ok(asked) = timeout(GREETING, greet(stream, login)).await else {
        return Err(failed(ErrorKind::TimedOut.into(), "reading the request"));
    };
    let (asked, command, target) = asked?;
    match (command, datagrams) {
        (Socks5Command::TCPConnect, _) => connect(asked, target, peer, near).await,
        (Socks5Command::UDPAssociate, Some(datagrams)) => {
            associate(asked, Relay::address(peer, &target), local, datagrams).await
        }
        (Socks5Command::UDPAssociate | Socks5Command::TCPBind, _) => {
            asked.reply_error(&ReplyError::CommandNotSupported).await
        }
    }
}

/// Authenticates the client, and reads its request.
async fn greet(
    stream: TcpStream,
    login: Option<&Login>,
) -> Result<(Asked, Socks5Command, TargetAddr), SocksServerError> {
    let client = Socks5ServerProtocol::start(stream);
    let client = match login {
        None => client.negotiate_auth(&[NoAuthentication]).await?.finish_auth(),
        Some(login) => {
            let Unproven(mut stream) = client.negotiate_auth(&[Password]).await?;
            let is_right = prove(&mut stream, login).await;
            if !is_right.map_err(|error| failed(error, "reading the password"))? {
                return Err(SocksServerError::AuthenticationRejected);
            }
            Proven(stream).finish_auth()
        }
    };
    client.read_command().await
}

async fn connect(
    asked: Asked,
    target: TargetAddr,
    peer: SocketAddr,
    near: &Near,
) -> Result<(), SocksServerError> {
    let to = match destination(target) {
        Ok(to) => to,
        Err(error) => {
            tracing::info!(%peer, %error, "SOCKS5");
            return asked.reply_error(&ReplyError::HostUnreachable).await;
        }
    };
    match near.connect(&to).await {
        Ok(far) => {
            let stream = asked.reply_success(UNKNOWN).await?;
            tracing::debug!(%peer, %to, "SOCKS5");
            splice(stream, far).await;
            Ok(())
        }
        Err(refusal) => {
            tracing::info!(%peer, %to, %refusal, "SOCKS5");
            asked.reply_error(&reply(&refusal)).await
        }
    }
}

/// Opens a socket for the datagrams of a program, at the local address of its TCP connection.
async fn associate(
    asked: Asked,
    address: SocketAddr,
    local: SocketAddr,
    datagrams: &NearDatagrams,
) -> Result<(), SocksServerError> {
    let opened = UdpSocket::bind((local.ip().to_canonical(), 0)).await;
    let opened = opened.and_then(|socket| Ok((socket, datagrams.associate(address)?)));
    let (socket, association) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            tracing::info!(%address, %error, "SOCKS5 UDP");
            return asked.reply_error(&ReplyError::GeneralFailure).await;
        }
    };
    let bound = socket.local_addr().map_err(|error| failed(error, "binding"))?;
    let control = asked.reply_success(bound).await?;
    Relay { socket, association, address }.run(control).await;
    Ok(())
}

/// Converts a target. A name that is the text of an address becomes that address.
fn destination(target: TargetAddr) -> Result<Destination, DestinationError> {
    let (host, port) = target.into_string_and_port();
    Destination::new(&host, port)
}

/// Returns the reply code for a refusal. RFC 1928 section 6 has no codes for unknown names and
/// time-outs: these follow other servers.
fn reply(refusal: &Refusal) -> ReplyError {
    match refusal {
        Refusal::Refused => ReplyError::ConnectionRefused,
        Refusal::HostUnreachable | Refusal::NoSuchName => ReplyError::HostUnreachable,
        Refusal::NetworkUnreachable | Refusal::NoGateway(_) => ReplyError::NetworkUnreachable,
        Refusal::TimedOut => ReplyError::TtlExpired,
        Refusal::NotAllowed => ReplyError::ConnectionNotAllowed,
        _ => ReplyError::GeneralFailure,
    }
}

fn failed(source: io::Error, context: &'static str) -> SocksServerError {
    SocksServerError::Io { source, context }
}

/// Authentication by user name and password. `fast_socks5`'s own method writes them to its log.
#[derive(Clone, Copy)]
struct Password;

/// A client that has not authenticated yet.
struct Unproven(TcpStream);

/// A client that has authenticated.
struct Proven(TcpStream);

impl AuthMethod<TcpStream> for Password {
    type StartingState = Unproven;

    fn method_id(self) -> u8 {
        0x02
    }

    fn new(self, stream: TcpStream) -> Unproven {
        Unproven(stream)
    }
}

impl AuthMethodSuccessState<TcpStream> for Proven {
    fn into_inner(self) -> TcpStream {
        self.0
    }
}

/// Reads the user name and the password, and replies whether they are right (RFC 1929 section 2).
async fn prove(stream: &mut TcpStream, login: &Login) -> io::Result<bool> {
    let version = stream.read_u8().await?;
    let user = field(stream).await?;
    let password = field(stream).await?;
    let is_right = version == 1 && login.is(&user, &password);
    stream.write_all(&[1, u8::from(!is_right)]).await?;
    Ok(is_right)
}

/// Reads a length byte, and that number of bytes.
async fn field(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
