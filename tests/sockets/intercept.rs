//! The example `intercept` between two namespaces, one with the kernel's clients and one with the
//! kernel's servers.

#[path = "../../examples/intercept.rs"]
#[expect(dead_code, reason = "the example's main is not called here")]
mod example;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use airtcp_device::{Tun, TunFile};
use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::Unreachable;
use airtcp_testbed::{Cidr, Namespace, Service, TestbedError, or_skip, peer, tun_options};

const MIB: u64 = 1 << 20;

/// The servers' addresses; the stack has no addresses.
fn far_addresses() -> [IpAddr; 2] {
    ["192.0.2.7", "2001:db8::7"].map(|text| text.parse().expect("an address"))
}

fn cidrs<const N: usize>(texts: [&str; N]) -> [Cidr; N] {
    texts.map(|text| text.parse().expect("an address with a prefix"))
}

/// Returns the clients' namespace, which sends all packets to the example, and the namespace from
/// which the example connects to the servers.
fn setup() -> Result<(Namespace, Namespace), TestbedError> {
    let (near, file) = clients()?;
    let far = Namespace::new()?;
    far.configure("lo", &cidrs(["192.0.2.7/32", "2001:db8::7/128"]), None)?;
    far.spawn(async move { example::intercept(stack(file)).await });
    Ok((near, far))
}

/// A namespace, and the device that receives all its packets.
fn clients() -> Result<(Namespace, TunFile), TestbedError> {
    airtcp_testbed::requirements()?;
    let near = Namespace::new()?;
    let file = near.run(|| TunFile::open_with("tun0", tun_options())).expect("a TUN device");
    near.configure("tun0", &cidrs(["10.77.0.1/24", "fd77::1/64"]), Some(1500))?;
    for everything in cidrs(["0.0.0.0/0", "::/0"]) {
        near.add_route("tun0", everything, None)?;
    }
    Ok((near, file))
}

fn stack(file: TunFile) -> Stack {
    let tun = Tun::new(file).expect("a TUN device in the runtime");
    Stack::new(tun, HostConfig::new([])).expect("a stack")
}

#[tokio::test]
async fn a_connection_reaches_its_destination() {
    let Some((near, far)) = or_skip(setup()) else { return };
    for address in far_addresses() {
        let server = far.serve(SocketAddr::new(address, 0), Service::Echo, None).expect("a server");
        let at = server.address();
        let echo = near.spawn(async move {
            let stream = peer::connect(at, None).await?;
            assert_eq!(stream.peer_addr()?, at);
            peer::echo(stream, 1, MIB).await
        });
        assert_eq!(echo.await.expect("no panic").expect("an echo"), MIB);
    }
}

#[tokio::test]
async fn a_closed_port_refuses() {
    let Some((near, far)) = or_skip(setup()) else { return };
    for address in far_addresses() {
        // The port is bound only to learn a free number.
        let closed =
            far.run(move || TcpListener::bind((address, 0))?.local_addr()).expect("a port");
        let refused = near.spawn(peer::connect(closed, None)).await.expect("no panic");
        assert_eq!(refused.expect_err("nobody is there").kind(), ErrorKind::ConnectionRefused);
    }
}

#[tokio::test]
async fn a_client_gets_the_icmp_error_of_a_router() {
    let Some((near, file)) = or_skip(clients()) else { return };
    let listener = stack(file).listen_any(8).expect("a listener");
    for address in far_addresses() {
        // For a filter, the kernel's errors differ between IPv4 and IPv6.
        let filtered = if address.is_ipv4() {
            ErrorKind::HostUnreachable
        } else {
            ErrorKind::PermissionDenied
        };
        for (why, error) in [
            (Unreachable::Host, ErrorKind::HostUnreachable),
            (Unreachable::Network, ErrorKind::NetworkUnreachable),
            (Unreachable::Prohibited, filtered),
        ] {
            let calling = near.spawn(peer::connect(SocketAddr::new(address, 443), None));
            listener.next().await.expect("a SYN").refuse_with(why);
            let refused = calling.await.expect("no panic").expect_err("it is refused");
            assert_eq!(refused.kind(), error, "{address} {why}");
        }
    }
}

#[tokio::test]
async fn datagrams_have_one_port_for_all_destinations_and_answers_come_from_there() {
    let Some((near, far)) = or_skip(setup()) else { return };
    let bind = |namespace: &Namespace, at: SocketAddr| {
        let socket = namespace.run(move || UdpSocket::bind(at)).expect("a port");
        // Fail instead of waiting forever.
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        socket
    };
    for (address, any) in far_addresses().into_iter().zip(["0.0.0.0:0", "[::]:0"]) {
        let client = bind(&near, any.parse().expect("an address"));
        let mut sources = Vec::new();
        for _ in 0..2 {
            let server = bind(&far, SocketAddr::new(address, 0));
            let at = server.local_addr().expect("an address");
            let mut buf = [0; 16];
            client.send_to(b"question", at).expect("sent");
            let (len, source) = server.recv_from(&mut buf).expect("a question");
            assert_eq!(&buf[..len], b"question");
            server.send_to(b"answer", source).expect("sent");
            assert_eq!(client.recv_from(&mut buf).expect("an answer"), (6, at));
            sources.push(source);
        }
        assert_eq!(sources[0], sources[1]);
    }
}
