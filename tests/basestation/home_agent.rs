//! A home agent on a router: the kernel routes, and the test is everything behind the other device.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use airtcp_basestation::home::{Algorithm, Key};
use airtcp_device::{Device, Tun};
use airtcp_types::{FlowId, Packet};
use airtcp_wire::icmp::{self, Reason};
use airtcp_wire::mobility::{self, Ends, Message, Request, code};
use airtcp_wire::{ip, tunnel, udp};

use super::*;

/// The secret of the mobile; `AQEB` is 1, 1, 1 in base64.
const SECRET: [u8; 24] = [1; 24];
const PATIENCE: Duration = Duration::from_secs(20);

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The settings: a mobile with two addresses, and no station.
fn settings(directory: &Path) -> String {
    let (key, state) = (directory.join("van.key"), directory.join("home.json"));
    std::fs::write(&key, "AQEB".repeat(8)).unwrap();
    // Otherwise a warning precedes `ready`.
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        "tun = 'home0'\naddresses = ['192.0.2.1', '2001:db8::1']\nstate = '{}'\npersist = true\n\
         [[mobile]]\nname = 'van'\naddresses = ['192.0.2.7', '2001:db8::7']\nspi = 300\nkey = '{}'\n",
        state.display(),
        key.display(),
    );
    let path = directory.join("home-agent.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The Internet behind the router's device out0.
struct Internet {
    tun: Tun,
}

impl Internet {
    async fn send(&mut self, packet: Packet) {
        self.tun.send(&mut VecDeque::from([packet])).await;
    }

    /// Waits for a packet to an address; others, such as the kernel's own, are skipped.
    async fn receive(&mut self, to: &str) -> Packet {
        let mut received = Vec::new();
        let find = async {
            loop {
                received.clear();
                self.tun.recv(&mut received, 1).await.unwrap();
                let (_, dst) = ip::addresses(&received[0].data).unwrap();
                if dst == address(to) {
                    return received.remove(0);
                }
            }
        };
        tokio::time::timeout(PATIENCE, find).await.unwrap_or_else(|_| panic!("nothing to {to}"))
    }
}

/// A request of the mobile, whose care-of address is its own.
fn request(home: &str, agent: &str, care_of: &str) -> Packet {
    let (home, home_agent, care_of) = (address(home), address(agent), address(care_of));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let identification = mobility::timestamp(now);
    let request = Request { flags: 0, lifetime: 60, home, home_agent, care_of, identification };
    let mut message = Message::Request(request).emit();
    let key = Key::new(300, Algorithm::HmacSha256, SECRET.to_vec()).unwrap();
    key.sign(&mut message, Ends::MobileHome);
    let port = if home.is_ipv6() { mobility::V6_PORT } else { mobility::PORT };
    let [local, remote] = [SocketAddr::new(care_of, 5_000), SocketAddr::new(home_agent, port)];
    udp::emit(&FlowId { local, remote }, 64, &message)
}

/// A datagram of a host of the Internet to the mobile, of `len` bytes.
fn data(host: &str, home: &str, len: usize) -> Packet {
    let [local, remote] = [host, home].map(|end| SocketAddr::new(address(end), 9));
    let header = tunnel::overhead(local.is_ipv6()) + udp::HEADER_LEN;
    udp::emit(&FlowId { local, remote }, 64, &vec![7; len - header])
}

/// Sends a datagram to the mobile, which has to arrive through the tunnel.
async fn assert_tunnelled(internet: &mut Internet, host: &str, home: &str, care_of: &str) {
    let mut sent = data(host, home, 500);
    let mut tries = 0;
    let outer = loop {
        internet.send(sent.clone()).await;
        // The kernel needs up to a second to notice that a device is in use again.
        let soon = Duration::from_millis(200);
        match tokio::time::timeout(soon, internet.receive(care_of)).await {
            Ok(outer) => break outer,
            Err(_) => tries += 1,
        }
        assert!(tries < 100, "nothing to {care_of}");
    };
    let inner = tunnel::decapsulate(&outer.data).unwrap();
    // The router forwarded it once before the tunnel.
    ip::set_hop_limit(&mut sent.data, 63);
    assert_eq!(inner.packet.data, sent.data);
}

#[test]
fn a_router_with_a_home_agent_sends_the_mobiles_packets_after_it_also_after_a_kill() {
    let Some(()) = or_skip(requirements()) else { return };
    let router = Namespace::new().unwrap();
    for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        router.set_sysctl(key, "1").unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path());
    let arguments = ["home-agent", "--config", &settings, "--json"];
    let first = BaseStation::ready(&router, &arguments);
    router.configure("home0", &[], None).unwrap();
    for network in ["192.0.2.0/24", "2001:db8::/64"] {
        router.add_route("home0", network.parse().unwrap(), None).unwrap();
    }
    let file = router.run(|| TunFile::open("out0")).unwrap();
    let addresses = ["198.51.100.254/24", "2001:db8:1::fe/64"];
    router.configure("out0", &addresses.map(|cidr| cidr.parse().unwrap()), None).unwrap();

    let families = [
        ("192.0.2.7", "192.0.2.1", "198.51.100.77", "198.51.100.9", 1_480),
        ("2001:db8::7", "2001:db8::1", "2001:db8:1::77", "2001:db8:1::9", 1_460),
    ];
    let mut internet = router.block_on(async move {
        let mut internet = Internet { tun: Tun::new(file).unwrap() };
        for (home, agent, care_of, host, room) in families {
            internet.send(request(home, agent, care_of)).await;
            let reply = internet.receive(care_of).await;
            let outer = ip::parse(&reply.data).unwrap();
            let datagram = udp::parse(outer.payload).unwrap();
            let (message, _) = mobility::parse(datagram.payload, outer.src.is_ipv6()).unwrap();
            let Message::Reply(reply) = message else { panic!("{message:?}") };
            assert_eq!((reply.code, reply.lifetime), (code::ACCEPTED, 60));
            assert_tunnelled(&mut internet, host, home, care_of).await;

            internet.send(data(host, home, room + 1)).await;
            let error = internet.receive(host).await;
            let error = ip::parse(&error.data).unwrap();
            let message = icmp::parse(&error);
            let Ok(icmp::Message::Error { reason, .. }) = message else { panic!("{message:?}") };
            assert_eq!(reason, Reason::TooBig(room as u32));
        }
        internet
    });

    // A second one with the same settings ends, and does not write the state of the first.
    let state = || std::fs::metadata(directory.path().join("home.json")).unwrap().ino();
    let before = state();
    let mut other = BaseStation::start(&router, &arguments);
    let line = other.stderr.next().unwrap().unwrap();
    assert!(line.contains("home0"), "{line}");
    assert_eq!((other.child.wait().unwrap().code(), state()), (Some(1), before));

    // Dropping kills the child with SIGKILL.
    drop(first);
    let mut second = BaseStation::ready(&router, &arguments);
    router.block_on(async move {
        for (home, _, care_of, host, _) in families {
            assert_tunnelled(&mut internet, host, home, care_of).await;
        }
    });
    second.signal("TERM");
    let mut stdout = String::new();
    second.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(second.child.wait().unwrap().success());
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["bindings"].as_array().unwrap().len(), 2, "{report}");
    assert!(report["counters"]["tunnelled"].as_u64() >= Some(2), "{report}");
}
