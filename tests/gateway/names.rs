//! Names are asked for with dnsmasq as the server.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_testbed::dumbbell::Dumbbell;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::Outcome;
use super::intercept::network;
use super::programs::{ADDRESSES, Server, has};

const PROXY: &str = "127.0.0.1:1080";

/// Encodes a DNS query for the addresses of `example.test` (RFC 1035 section 4.1): A or AAAA.
fn question(number: u8, is_ipv6: bool) -> Vec<u8> {
    let header = [0, number, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let kind = if is_ipv6 { 28 } else { 1 };
    [&header[..], b"\x07example\x04test\x00", &[0, kind, 0, 1]].concat()
}

/// The path of a resolver's datagrams and connections.
#[derive(Clone, Copy)]
enum Way {
    Intercepted,
    Proxy,
}

/// Encodes an address as in the SOCKS5 header of a datagram (RFC 1928 section 7) and in a request.
fn target(to: SocketAddr) -> Vec<u8> {
    let address = match to.ip() {
        std::net::IpAddr::V4(ip) => [&[1][..], &ip.octets()].concat(),
        std::net::IpAddr::V6(ip) => [&[4][..], &ip.octets()].concat(),
    };
    [&address[..], &to.port().to_be_bytes()].concat()
}

/// Sends a SOCKS5 request with `command`; returns the connection and the port of the reply.
async fn socks(command: u8, to: &[u8]) -> io::Result<(TcpStream, u16)> {
    let mut control = TcpStream::connect(PROXY).await?;
    control.write_all(&[&[5, 1, 0, 5, command, 0], to].concat()).await?;
    let mut reply = [0; 12];
    control.read_exact(&mut reply).await?;
    assert_eq!(reply[..4], [5, 0, 5, 0]);
    Ok((control, u16::from_be_bytes([reply[10], reply[11]])))
}

async fn ask_by_udp(way: Way, to: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let (server, header, _control) = match way {
        Way::Intercepted => (to, Vec::new(), None),
        Way::Proxy => {
            let (control, port) = socks(3, &[1, 0, 0, 0, 0, 0, 0]).await?;
            let relay = SocketAddr::from(([127, 0, 0, 1], port));
            (relay, [&[0, 0, 0][..], &target(to)].concat(), Some(control))
        }
    };
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let client = UdpSocket::bind(any).await?;
    client.connect(server).await?;
    // Retries as resolvers do: the link loses packets.
    for _ in 0..20 {
        client.send(&[&header, question].concat()).await?;
        let mut answer = vec![0; 2000];
        if let Ok(length) = timeout(Duration::from_secs(1), client.recv(&mut answer)).await {
            return Ok(answer[header.len()..length?].to_vec());
        }
    }
    Err(ErrorKind::TimedOut.into())
}

async fn ask_by_tcp(way: Way, to: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut server = match way {
        Way::Intercepted => TcpStream::connect(to).await?,
        Way::Proxy => socks(1, &target(to)).await?.0,
    };
    server.write_all(&[&(question.len() as u16).to_be_bytes(), question].concat()).await?;
    let mut answer = vec![0; server.read_u16().await?.into()];
    server.read_exact(&mut answer).await?;
    Ok(answer)
}

#[test]
fn names_are_asked_for_by_udp_and_by_tcp() -> Outcome {
    if !has(&["ip", "dnsmasq"]) {
        return Ok(());
    }
    let network = network()?;
    let command = "dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --pid-file= --user=root \
                   --listen-address=192.0.2.2 --listen-address=2001:db8::2 --bind-interfaces \
                   --address=/example.test/192.0.2.77 --address=/example.test/2001:db8::77";
    let _dns = Server::start(&network.servers, command, "192.0.2.2:53".parse()?)?;
    let _far = network.start_far(&[])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    for way in [Way::Intercepted, Way::Proxy] {
        let flags: &[&str] = match way {
            Way::Intercepted => &["--intercept"],
            Way::Proxy => &["--socks5", PROXY],
        };
        let near = network.start_near(endpoint, flags)?;
        for server in ADDRESSES {
            let at = SocketAddr::new(server.parse()?, 53);
            for (number, is_ipv6) in [(1, false), (2, true)] {
                let asked = question(number, is_ipv6);
                let answers = network.near().block_on(async move {
                    let by_udp = ask_by_udp(way, at, &asked).await?;
                    Ok::<_, io::Error>([by_udp, ask_by_tcp(way, at, &asked).await?])
                })?;
                let found: &[u8] = match is_ipv6 {
                    true => &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x77],
                    false => &[192, 0, 2, 77],
                };
                for answer in answers {
                    assert_eq!(answer[..2], [0, number]);
                    assert!(answer.ends_with(found), "{answer:?}");
                }
            }
        }
        near.stop()?;
    }
    Ok(())
}
