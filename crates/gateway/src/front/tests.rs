//! The front ends on a near and a far gateway, whose stacks are joined in memory, with kernel
//! servers on loopback.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use airtcp_device::memory;
use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use airtcp_types::Instant;
use data_encoding::BASE64;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::*;
use crate::datagram::{
    Channel, FarDatagrams, FarDatagramsConfig, NearDatagrams, NearDatagramsConfig,
};
use crate::{Destination, Far, FarConfig, Near, NearConfig, Refusal, Rules};

/// A near and a far gateway, with tasks that end with them.
struct Gateway {
    near: Near,
    datagrams: NearDatagrams,
    clients: Clients,
    tasks: JoinSet<()>,
}

#[derive(Clone, Copy)]
enum Front {
    Socks,
    Http,
}

impl Gateway {
    /// Gateways whose far end may dial loopback.
    fn new() -> Self {
        let allow = ["127.0.0.1", "::1"].map(|rule| rule.parse().unwrap());
        Self::with(Rules { allow: allow.into(), ..Rules::default() })
    }

    fn with(rules: Rules) -> Self {
        let (left, right) = memory::pair(1420, 256);
        let stack = |device, address: &str| {
            Stack::new(device, HostConfig::new([address.parse().unwrap()])).unwrap()
        };
        let (near, far) = (stack(left, "10.77.0.2/24"), stack(right, "10.77.0.1/24"));
        let at = "10.77.0.1:7077".parse().unwrap();
        let mut tasks = JoinSet::new();
        let config = FarDatagramsConfig { rules: rules.clone(), ..FarDatagramsConfig::default() };
        let far_datagrams = FarDatagrams::new(&far, at, config).unwrap();
        tasks.spawn(async move { drop(far_datagrams.run().await) });
        let datagrams = NearDatagrams::start(&near, at, NearDatagramsConfig::default()).unwrap();
        let permit_listen = vec!["127.0.0.1".parse().unwrap()];
        let config = FarConfig { rules, permit_listen, ..FarConfig::new(at) };
        let far = Far::new(far, config).unwrap();
        tasks.spawn(async move { drop(far.run().await) });
        let near = Near::start(near, NearConfig::new(at));
        Self { near, datagrams, clients: Clients::new(64), tasks }
    }

    /// Starts a front end, and connects a client to it.
    async fn client(&mut self, front: Front, login: Option<&str>) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, clients) = (self.near.clone(), self.clients.clone());
        let datagrams = Some(self.datagrams.clone());
        let login = login.map(|login| login.parse().unwrap());
        self.tasks.spawn(async move {
            match front {
                Front::Socks => serve_socks5(listener, near, datagrams, clients, login).await,
                Front::Http => serve_http_connect(listener, near, clients, login).await,
            };
        });
        TcpStream::connect(address).await.unwrap()
    }

    async fn socks(&mut self) -> TcpStream {
        let mut client = self.client(Front::Socks, None).await;
        client.write_all(&[5, 1, 0]).await.unwrap();
        assert_eq!(read(&mut client, 2).await, [5, 0]);
        client
    }

    async fn http(&mut self, request: &str) -> String {
        let mut client = self.client(Front::Http, Some("alice:secret")).await;
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

/// Starts a server that reads to the end, and then sends back all that it read.
async fn server(at: &str) -> SocketAddr {
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                stream.write_all(&heard).await.unwrap();
            });
        }
    });
    address
}

/// Returns an address on loopback without a listener.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

async fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

/// Whether the data comes back after a half-close, followed by the end of the stream.
async fn echoes(mut stream: TcpStream) -> bool {
    let sent: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    stream.write_all(&sent).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.unwrap();
    heard == sent
}

/// Encodes the rest of a SOCKS5 request: address type, address and port.
fn target(host: &str, port: u16) -> Vec<u8> {
    let mut bytes = match host.parse() {
        Ok(std::net::IpAddr::V4(address)) => [&[1][..], &address.octets()].concat(),
        Ok(std::net::IpAddr::V6(address)) => [&[4][..], &address.octets()].concat(),
        Err(_) => [&[3, host.len() as u8], host.as_bytes()].concat(),
    };
    bytes.extend(port.to_be_bytes());
    bytes
}

async fn ask(client: &mut TcpStream, command: u8, target: &[u8]) -> u8 {
    client.write_all(&[&[5, command, 0][..], target].concat()).await.unwrap();
    let reply = read(client, 10).await;
    assert_eq!((reply[0], &reply[2..]), (5, &[0, 1, 0, 0, 0, 0, 0, 0][..]));
    reply[1]
}

#[tokio::test]
async fn socks_carries_to_both_families_and_to_names_and_passes_a_half_close_on() {
    let mut gateway = Gateway::new();
    for (at, host) in
        [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("127.0.0.1:0", "localhost")]
    {
        let port = server(at).await.port();
        let mut client = gateway.socks().await;
        assert_eq!(ask(&mut client, 1, &target(host, port)).await, 0, "{host}");
        assert!(echoes(client).await, "{host}");
    }
    gateway.clients.drained().await;
}

#[tokio::test]
async fn socks_names_the_reason_of_a_refusal() {
    let closed = nobody().await.port();
    let mut open = Gateway::new();
    let mut strict = Gateway::with(Rules::default());
    for (is_open, command, target, code) in [
        (true, 1, target("127.0.0.1", closed), 5),
        (true, 1, target("no-such-host.invalid", 80), 4),
        (true, 1, target("two words", 80), 4),
        (true, 1, target("127.0.0.1", 0), 4),
        (true, 2, target("127.0.0.1", 80), 7),
        (true, 9, target("127.0.0.1", 80), 7),
        (true, 1, vec![2, 1, 2, 3, 4, 0, 80], 8),
        (false, 1, target("127.0.0.1", 80), 2),
    ] {
        let gateway = if is_open { &mut open } else { &mut strict };
        let mut client = gateway.socks().await;
        assert_eq!(ask(&mut client, command, &target).await, code, "{command} {target:?}");
        let ended = client.read(&mut [0]).await;
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn socks_relays_datagrams_of_the_program_alone_until_it_hangs_up() {
    let mut gateway = Gateway::new();
    for (at, host) in
        [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("127.0.0.1:0", "localhost")]
    {
        let server = UdpSocket::bind(at).await.unwrap();
        let server_at = server.local_addr().unwrap();
        let mut control = gateway.socks().await;
        control.write_all(&[&[5, 3, 0][..], &target("0.0.0.0", 0)].concat()).await.unwrap();
        let reply = read(&mut control, 10).await;
        assert_eq!(&reply[..8], &[5, 0, 0, 1, 127, 0, 0, 1]);
        let relay = SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([reply[8], reply[9]])));
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let header = [&[0, 0, 0][..], &target(host, server_at.port())].concat();
        let mut buffer = [0; 2000];
        // Invalid requests are dropped: too short, reserved bytes set, an unknown type, a fragment,
        // port 0.
        for wrong in [&[][..], &[0, 0], &[1, 0, 0, 1], &[0, 0, 0, 9, 1, 2, 3, 4, 0, 7, 1]] {
            client.send_to(wrong, relay).await.unwrap();
        }
        let fragment = [&[0, 0, 1][..], &header[3..], b"fragment"].concat();
        client.send_to(&fragment, relay).await.unwrap();
        client
            .send_to(&[&header[..header.len() - 2], &[0, 0], b"port"].concat(), relay)
            .await
            .unwrap();
        client.send_to(&[&header[..], b"ping"].concat(), relay).await.unwrap();
        let (length, from) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"ping");
        // Datagrams of another program on this machine are ignored.
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        other.send_to(&[&header[..], b"other"].concat(), relay).await.unwrap();
        server.send_to(b"pong", from).await.unwrap();
        let (length, from) = client.recv_from(&mut buffer).await.unwrap();
        assert_eq!(from, relay);
        let ip = server_at.ip().to_string();
        let expected = [&[0, 0, 0][..], &target(&ip, server_at.port()), b"pong"].concat();
        assert_eq!(buffer[..length], expected);
        client.send_to(&[&header[..], b"again"].concat(), relay).await.unwrap();
        let (length, _) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"again");
    }
    // Each association ends with its TCP connection.
    gateway.clients.drained().await;
}

#[tokio::test]
async fn socks_serves_only_those_who_give_the_login() {
    let mut gateway = Gateway::new();
    let port = server("127.0.0.1:0").await.port();
    let mut client = gateway.client(Front::Socks, Some("alice:secret")).await;
    client.write_all(&[5, 1, 0]).await.unwrap();
    assert_eq!(read(&mut client, 2).await, [5, 0xff]);
    for (password, is_right) in
        [("secret", true), ("Secret", false), ("", false), ("secrets", false)]
    {
        let mut client = gateway.client(Front::Socks, Some("alice:secret")).await;
        client.write_all(&[5, 2, 0, 2]).await.unwrap();
        assert_eq!(read(&mut client, 2).await, [5, 2]);
        let length = [password.len() as u8];
        let proof = [b"\x01\x05alice", &length[..], password.as_bytes()].concat();
        client.write_all(&proof).await.unwrap();
        assert_eq!(read(&mut client, 2).await, [1, u8::from(!is_right)], "{password}");
        if is_right {
            assert_eq!(ask(&mut client, 1, &target("127.0.0.1", port)).await, 0);
            assert!(echoes(client).await);
        } else {
            assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "{password}");
        }
    }
}

#[tokio::test]
async fn socks_hangs_up_on_another_protocol() {
    let mut gateway = Gateway::new();
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[4, 1, 0, 80, 127, 0, 0, 1, 0]] {
        let mut client = gateway.client(Front::Socks, None).await;
        client.write_all(words).await.unwrap();
        let ended = client.read(&mut [0]).await;
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn http_connect_carries_what_follows_the_request_at_once() {
    let mut gateway = Gateway::new();
    let to = server("127.0.0.1:0").await;
    let answer = gateway
        .http(&format!(
            "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nProxy-Authorization: Basic {}\r\n\r\nhello",
            BASE64.encode(b"alice:secret")
        ))
        .await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(body, "hello");
    for header in ["content-length", "transfer-encoding", "connection: close"] {
        assert!(!head.to_lowercase().contains(header), "{head}");
    }
    let mut client = gateway.client(Front::Http, None).await;
    let request =
        format!("CONNECT localhost:{0} HTTP/1.1\r\nHost: localhost:{0}\r\n\r\n", to.port());
    client.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    assert!(echoes(client).await);
    gateway.clients.drained().await;
}

#[tokio::test]
async fn http_connect_answers_what_it_does_not_carry_with_the_reason() {
    let closed = nobody().await;
    let mut gateway = Gateway::new();
    let proof = format!("Proxy-Authorization: basic {}\r\n", BASE64.encode(b"alice:secret"));
    let wrong = format!("Proxy-Authorization: Basic {}\r\n", BASE64.encode(b"alice:guess"));
    for (request, proof, status, words) in [
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example", "", "405", "allow: CONNECT"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a.example", "", "405", "--proxytunnel"),
        ("CONNECT a.example:80 HTTP/1.1\r\nHost: a", "", "407", "proxy-authenticate: Basic"),
        ("CONNECT a.example:80 HTTP/1.1\r\nHost: a", &wrong, "407", "user and password"),
        ("CONNECT a.example:80 HTTP/1.1\r\nHost: a", "Proxy-Authorization: x\r\n", "407", "user"),
        ("CONNECT a.example HTTP/1.1\r\nHost: a", &proof, "400", "CONNECT host:port"),
        (&format!("CONNECT {closed} HTTP/1.1\r\nHost: a"), &proof, "502", "refused"),
        ("CONNECT 127.0.0.2:80 HTTP/1.1\r\nHost: a", &proof, "403", "does not allow"),
        ("CONNECT no-such-host.invalid:80 HTTP/1.1\r\nHost: a", &proof, "502", "resolve"),
    ] {
        let answer = gateway.http(&format!("{request}\r\n{proof}\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(answer.contains(words), "{request}: {answer}");
    }
}

#[test]
fn a_forward_is_written_as_in_ssh() {
    for (text, shown) in [
        ("8080:intranet:80", "8080:intranet:80"),
        ("localhost:8080:intranet:80", "8080:intranet:80"),
        ("*:8080:10.0.0.1:80", "*:8080:10.0.0.1:80"),
        (":8080:10.0.0.1:80", "*:8080:10.0.0.1:80"),
        ("192.0.2.1:22:[fd00::7]:22", "192.0.2.1:22:[fd00::7]:22"),
        ("[::1]:22:[fd00::7]:22", "[::1]:22:[fd00::7]:22"),
    ] {
        assert_eq!(text.parse::<Forward>().unwrap().to_string(), shown);
    }
    for (text, why) in [
        ("8080", "does not have 3 or 4 parts"),
        ("8080:80", "does not have 3 or 4 parts"),
        ("::1:22:fd00::7:22", "does not have 3 or 4 parts"),
        ("0:a:80", "`0` is not a port from 1 to 65535"),
        ("x:a:80", "`x` is not"),
        ("99999:a:80", "1 to 65535"),
        ("here:80:a:80", "`here` is not an IP address"),
        ("8080:a b:80", "not a host"),
        ("8080:a:0", "no port from 1 to 65535"),
        ("8080:a:70000", "no port from 1 to 65535"),
        ("8080:[a:80", "does not have 3 or 4 parts"),
        ("", "does not have 3 or 4 parts"),
    ] {
        let error = text.parse::<Forward>().unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("for example 8080:intranet:80"), "{error}");
    }
}

#[tokio::test]
async fn a_forward_carries_and_resets_what_is_refused() {
    let gateway = Gateway::new();
    let (open, closed) = (server("[::1]:0").await, nobody().await);
    for (to, is_open) in [(open, true), (closed, false)] {
        let port = nobody().await.port();
        let forward: Forward = format!("127.0.0.1:{port}:{to}").parse().unwrap();
        let listener = forward.listen().await.unwrap().remove(0);
        let (near, clients) = (gateway.near.clone(), gateway.clients.clone());
        tokio::spawn(async move { serve_forward(listener, near, clients, forward.to).await });
        let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        if is_open {
            assert!(echoes(client).await);
        } else {
            let reset = client.read(&mut [0]).await.unwrap_err();
            assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        }
    }
    gateway.clients.drained().await;
    assert_eq!(gateway.clients.count(), 0);
}

#[tokio::test]
async fn a_forward_to_loopback_listens_on_both_of_its_addresses() {
    let port = nobody().await.port();
    let listeners = format!("{port}:a:80").parse::<Forward>().unwrap().listen().await.unwrap();
    let addresses: Vec<_> = listeners.iter().map(|one| one.local_addr().unwrap().ip()).collect();
    assert!(addresses.iter().all(|ip| ip.is_loopback()) && !addresses.is_empty(), "{addresses:?}");
    let everywhere = format!("*:{port}:a:80").parse::<Forward>().unwrap();
    // The kernel refuses an address that is partly in use.
    drop(listeners);
    let listeners = everywhere.listen().await.unwrap();
    assert!(listeners.iter().all(|one| one.local_addr().unwrap().ip().is_unspecified()));
    TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let taken = everywhere.listen().await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
}

#[tokio::test]
async fn clients_that_are_reset_see_no_end_of_their_data() {
    let gateway = Gateway::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (near, clients) = (gateway.near.clone(), gateway.clients.clone());
    let to: Destination = server("127.0.0.1:0").await.into();
    tokio::spawn(async { match serve_forward(listener, near, clients, to).await {} });
    let mut client = TcpStream::connect(at).await.unwrap();
    client.write_all(b"half").await.unwrap();
    gateway.clients.reset();
    let reset = client.read(&mut [0]).await.unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    gateway.clients.drained().await;
}

#[tokio::test]
async fn clients_above_the_limit_wait_until_another_has_ended() {
    let mut gateway = Gateway::new();
    gateway.clients = Clients::new(1);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (near, clients) = (gateway.near.clone(), gateway.clients.clone());
    let to: Destination = server("127.0.0.1:0").await.into();
    gateway.tasks.spawn(async { match serve_forward(listener, near, clients, to).await {} });
    let mut first = TcpStream::connect(at).await.unwrap();
    first.write_all(b"first").await.unwrap();
    let mut second = TcpStream::connect(at).await.unwrap();
    second.write_all(b"second").await.unwrap();
    second.shutdown().await.unwrap();
    let mut heard = String::new();
    let served = second.read_to_string(&mut heard);
    let mut served = std::pin::pin!(served);
    for _ in 0..50 {
        tokio::task::yield_now().await;
        assert!(gateway.clients.count() <= 1);
    }
    // The first connection is open, so the second one gets no answer.
    tokio::select! {
        biased;
        _ = &mut served => panic!("it was served beside the first"),
        () = tokio::task::yield_now() => {}
    }
    first.shutdown().await.unwrap();
    assert_eq!(read(&mut first, 5).await, b"first");
    assert_eq!(served.await.unwrap(), 6);
    assert_eq!(heard, "second");
}

#[tokio::test]
async fn an_eighth_of_the_places_is_kept_from_each_address() {
    let clients = Clients::new(16);
    let enter = async |text: &str| clients.enter(text.parse().unwrap()).await;
    for (one, same, other) in [
        ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
        ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"),
    ] {
        let mut slots = Vec::new();
        while let Some(slot) = enter(one).await {
            slots.push(slot);
        }
        assert_eq!(slots.len(), 14);
        assert!(enter(same).await.is_none());
        assert!(enter(other).await.is_some());
        slots.pop();
        assert!(enter(same).await.is_some());
    }
    for loopback in ["127.0.0.1", "::1"] {
        let mut slots = Vec::new();
        for _ in 0..16 {
            slots.push(enter(loopback).await.unwrap());
        }
        assert_eq!(clients.count(), 16);
    }
    assert!(clients.sources.lock().unwrap().is_empty());
}

/// Creates a stack whose connections and datagrams are intercepted.
fn intercepted(gateway: &mut Gateway) -> Stack {
    let (left, right) = memory::pair(1420, 256);
    let programs = Stack::new(left, HostConfig::new(["10.1.1.1/24".parse().unwrap()])).unwrap();
    let stack = Stack::new(right, intercept_config(1420)).unwrap();
    let (near, clients) = (gateway.near.clone(), gateway.clients.clone());
    let datagrams = Some(gateway.datagrams.clone());
    gateway.tasks.spawn(async move {
        drop(intercept(stack, near, datagrams, clients, InterceptConfig::default()).await);
    });
    programs
}

#[tokio::test]
async fn interception_without_connections_takes_no_place_of_other_clients() {
    let mut gateway = Gateway::new();
    gateway.clients = Clients::new(1);
    let programs = intercepted(&mut gateway);
    // The far gateway's rules refuse this connection; the interception then waits for the next one.
    programs.connect("192.0.2.1:80".parse().unwrap()).await.unwrap_err();
    let to = server("127.0.0.1:0").await;
    let mut client = gateway.socks().await;
    assert_eq!(ask(&mut client, 1, &target("127.0.0.1", to.port())).await, 0);
    assert!(echoes(client).await);
}

#[tokio::test]
async fn an_intercepted_address_that_has_as_many_connections_as_it_may_is_refused() {
    let mut gateway = Gateway::new();
    gateway.clients = Clients::new(8);
    let programs = intercepted(&mut gateway);
    let mut others = Vec::new();
    for _ in 0..7 {
        others.push(gateway.clients.enter("10.1.1.1".parse().unwrap()).await.unwrap());
    }
    let to = "192.0.2.1:80".parse().unwrap();
    let refused = programs.connect(to).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    others.pop();
    // There is a free place, but the far gateway's rules refuse the destination.
    let refused = programs.connect(to).await.unwrap_err();
    assert_ne!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn an_intercepted_datagram_is_refused_by_its_destination() {
    let (left, right) = memory::pair(1420, 256);
    let stack = |device, address: &str| {
        Stack::new(device, HostConfig::new([address.parse().unwrap()])).unwrap()
    };
    let (carrier, far) = (stack(left, "10.77.0.2/24"), stack(right, "10.77.0.1/24"));
    let at = "10.77.0.1:7077".parse().unwrap();
    // A far gateway that refuses each datagram.
    let socket = far.udp_bind(at).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut channel, mut buf) = (Channel::new(1392, 0, 2), [0; 1500]);
        while let Ok((len, from)) = socket.recv_from(&mut buf).await {
            channel.handle_frame(Instant::ZERO, &buf[..len]);
            while let Some(datagram) = channel.poll_datagram() {
                channel.refuse(Instant::ZERO, datagram.association, &datagram.remote);
            }
            while let Some(frame) = channel.poll_transmit(Instant::ZERO) {
                socket.send_to(&frame, from).await.unwrap();
            }
        }
    });
    let mut gateway = Gateway::new();
    gateway.datagrams = NearDatagrams::start(&carrier, at, NearDatagramsConfig::default()).unwrap();
    let programs = intercepted(&mut gateway);
    let program = programs.udp_bind("10.1.1.1:4444".parse().unwrap()).unwrap();
    program.connect("192.0.2.1:9".parse().unwrap()).await.unwrap();
    let ask = async || -> io::Result<usize> {
        program.send(b"x").await?;
        program.recv(&mut [0; 9]).await
    };
    for _ in 0..3 {
        // Datagrams are lost until the interception has started.
        let refused = loop {
            let answer = tokio::time::timeout(std::time::Duration::from_millis(100), ask());
            if let Ok(answer) = answer.await {
                break answer.unwrap_err();
            }
        };
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
}

/// Connects to a port, and retries until it is open.
async fn connected(to: SocketAddr) -> TcpStream {
    loop {
        match TcpStream::connect(to).await {
            Ok(stream) => return stream,
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_remote_forward_carries_from_the_far_machine_and_resets_what_is_refused() {
    let mut gateway = Gateway::new();
    let (open, closed) = (server("[::1]:0").await, nobody().await);
    for (to, is_open) in [(open, true), (closed, false)] {
        let port = nobody().await;
        let forward: Forward = format!("{}:{to}", port.port()).parse().unwrap();
        let (near, clients) = (gateway.near.clone(), gateway.clients.clone());
        gateway.tasks.spawn(async { match serve_remote(forward, near, clients, None).await {} });
        // More programs than accept requests that wait at a time.
        let mut programs = Vec::new();
        for _ in 0..12 {
            programs.push(connected(port).await);
        }
        for mut program in programs {
            if is_open {
                assert!(echoes(program).await);
            } else {
                let reset = program.read(&mut [0]).await.unwrap_err();
                assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
            }
        }
        gateway.clients.drained().await;
    }
}

#[tokio::test]
async fn the_far_gateway_listens_where_it_is_permitted_and_for_as_long_as_it_is_wanted() {
    let gateway = Gateway::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = async |at| gateway.near.listen(at).await.unwrap_err();
    assert_eq!(refused("127.0.0.2:4000".parse().unwrap()).await, Refusal::NotAllowed);
    assert_eq!(refused(taken.local_addr().unwrap()).await, Refusal::PortInUse);
    let at = nobody().await;
    assert_eq!(gateway.near.accept(at).await.unwrap_err(), Refusal::NotAllowed);
    let port = gateway.near.listen(at).await.unwrap();
    let program = connected(at).await;
    let carried = gateway.near.accept(at).await.unwrap();
    drop((port, carried, program));
    // Waits until the port is free again.
    while TcpListener::bind(at).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A far gateway of a version without remote ports: it answers heartbeats, and cannot decode a
/// listen request. Sends a message to `asked` for each one.
async fn old_far(stack: Stack, at: SocketAddr, asked: mpsc::UnboundedSender<()>) {
    let listener = stack.listen(at, 16).unwrap();
    while let Ok((mut stream, _)) = listener.accept().await {
        let asked = asked.clone();
        tokio::spawn(async move {
            let mut head = [0; 2];
            stream.read_exact(&mut head).await?;
            if head[1] == 2 {
                let _near = stream.read_u64().await?;
                stream.write_all(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 7]).await?;
                loop {
                    let beat = stream.read_u64().await?;
                    stream.write_u64(beat).await?;
                }
            }
            stream.write_all(&[1, 8]).await?;
            stream.shutdown().await?;
            let _ = asked.send(());
            stream.read_to_end(&mut Vec::new()).await
        });
    }
}

/// A writer that collects the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_far_gateway_that_opens_no_ports_is_named_once_and_is_no_refusal_of_a_program() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let (left, right) = memory::pair(1420, 256);
    let stack = |device, address: &str| {
        Stack::new(device, HostConfig::new([address.parse().unwrap()])).unwrap()
    };
    let (near, far) = (stack(left, "10.77.0.2/24"), stack(right, "10.77.0.1/24"));
    let at = "10.77.0.1:7077".parse().unwrap();
    let (asked, mut heard) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(old_far(far, at, asked));
    let near = Near::start(near, NearConfig::new(at));
    let (forward, to_serve) = ("8080:localhost:80".parse().unwrap(), near.clone());
    tasks.spawn(
        async move { match serve_remote(forward, to_serve, Clients::new(1), None).await {} },
    );
    for _ in 0..3 {
        heard.recv().await.unwrap();
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
    let text = "-R 8080:localhost:80: the far gateway cannot read the request";
    assert!(warnings.len() == 1 && warnings[0].contains(text), "{log}");
    assert!(near.status().refused.is_empty());
}
