//! A foreign agent and a home agent on one router: the kernel routes between them, and the test is
//! the mobile behind one device and the Internet behind another.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use airtcp_basestation::home::{Algorithm, Key};
use airtcp_device::{Device, Tun};
use airtcp_types::{FlowId, Packet};
use airtcp_wire::mobility::{self, Ends, Message, Request, code};
use airtcp_wire::{ip, udp};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// The commands of the manual, for a router whose mobiles are behind `air0`.
const ROUTES: [&str; 12] = [
    "-4 route add 198.51.100.1 dev visit0",
    "-4 route add default dev visit1 table 101",
    "-4 route add default dev air0 table 102",
    "-4 rule add iif air0 lookup 101",
    "-4 rule add iif visit1 lookup 102",
    "-4 route add 192.0.2.0/24 dev home0",
    "-6 route add 2001:db8:1::1 dev visit0",
    "-6 route add default dev visit1 table 101",
    "-6 route add default dev air0 table 102",
    "-6 rule add iif air0 lookup 101",
    "-6 rule add iif visit1 lookup 102",
    "-6 route add 2001:db8::/64 dev home0",
];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn key(spi: u32) -> Key {
    Key::new(spi, Algorithm::HmacSha256, vec![1; 24]).unwrap()
}

/// Writes the settings of both agents, which use one secret; returns their paths.
fn settings(directory: &Path) -> [String; 2] {
    let (key, state) = (directory.join("all.key"), directory.join("home.json"));
    // Bytes of 1 in base64.
    std::fs::write(&key, "AQEB".repeat(8)).unwrap();
    // Otherwise a warning precedes `ready`.
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (key, state) = (key.display(), state.display());
    let peer = |table: &str, addresses: [&str; 2], spi: u32| {
        format!(
            "[[{table}]]\nname = '{table}'\naddresses = {addresses:?}\nspi = {spi}\nkey = '{key}'\n"
        )
    };
    let van = ["192.0.2.7", "2001:db8::7"];
    let [agent, north] = [["192.0.2.1", "2001:db8::1"], ["198.51.100.1", "2001:db8:1::1"]];
    let home = format!("tun = 'home0'\naddresses = {agent:?}\nstate = '{state}'\n")
        + &peer("mobile", van, 300)
        + &peer("station", north, 400);
    let foreign = format!("wired = 'visit0'\nwireless = 'visit1'\naddresses = {north:?}\n")
        + &peer("home-agent", agent, 400)
        + &peer("mobile", van, 500);
    [("home.toml", home), ("foreign.toml", foreign)].map(|(name, text)| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    })
}

fn datagram(from: SocketAddr, to: SocketAddr, data: &[u8]) -> Packet {
    udp::emit(&FlowId { local: from, remote: to }, 64, data)
}

/// The request of the mobile through the foreign agent, and its identification.
fn request(home: &str, agent: &str, care_of: &str, lifetime: u16) -> (Packet, u64) {
    let (home, home_agent, care_of) = (address(home), address(agent), address(care_of));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let identification = mobility::timestamp(now);
    let request = Request { flags: 0, lifetime, home, home_agent, care_of, identification };
    let mut message = Message::Request(request).emit();
    key(300).sign(&mut message, Ends::MobileHome);
    key(500).sign(&mut message, Ends::MobileForeign);
    let port = if home.is_ipv6() { mobility::V6_PORT } else { mobility::PORT };
    let packet = datagram(SocketAddr::new(home, 5_000), SocketAddr::new(care_of, port), &message);
    (packet, identification)
}

/// Waits for a packet for which `read` returns something; others, such as the kernel's own, are
/// skipped.
async fn receive<T>(tun: &mut Tun, mut read: impl FnMut(&[u8]) -> Option<T>) -> T {
    let mut received = Vec::new();
    let find = async {
        loop {
            received.clear();
            tun.recv(&mut received, 1).await.unwrap();
            if let Some(found) = read(&received[0].data) {
                return found;
            }
        }
    };
    tokio::time::timeout(PATIENCE, find).await.expect("a packet that is expected")
}

/// Registers the mobile; the devices need up to a second until the kernel routes into them.
async fn register(air: &mut Tun, [home, agent, care_of]: [&str; 3], lifetime: u16) -> u16 {
    // A late reply to a request of before is not one to these.
    let mut asked = Vec::new();
    for _ in 0..100 {
        let (request, identification) = request(home, agent, care_of, lifetime);
        asked.push(identification);
        air.send(&mut VecDeque::from([request])).await;
        let reply = receive(air, |bytes| {
            let outer = ip::parse(bytes).ok()?;
            let datagram = udp::parse(outer.payload).ok().filter(|_| outer.protocol == ip::UDP)?;
            match mobility::parse(datagram.payload, outer.src.is_ipv6()).ok()?.0 {
                Message::Reply(reply) => Some(reply).filter(|reply| {
                    outer.src == address(care_of) && asked.contains(&reply.identification)
                }),
                _ => None,
            }
        });
        if let Ok(reply) = tokio::time::timeout(Duration::from_millis(300), reply).await {
            assert_eq!(reply.code, code::ACCEPTED);
            return reply.lifetime;
        }
    }
    panic!("no reply to {home}");
}

#[test]
fn a_mobile_registers_through_the_command_and_gets_packets_of_the_internet() {
    let Some(()) = or_skip(requirements()) else { return };
    let router = Namespace::new().unwrap();
    for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        router.set_sysctl(key, "1").unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let [home, foreign] = settings(directory.path());
    let _home = BaseStation::ready(&router, &["home-agent", "--config", &home]);
    let mut foreign =
        BaseStation::ready(&router, &["foreign-agent", "--config", &foreign, "--json"]);
    let [air, out] = ["air0", "out0"].map(|name| router.run(move || TunFile::open(name)).unwrap());
    for key in ["net.ipv4.conf.all.rp_filter", "net.ipv4.conf.visit0.rp_filter"] {
        router.set_sysctl(key, "0").unwrap();
    }
    for device in ["home0", "visit0", "visit1", "air0"] {
        router.configure(device, &[], None).unwrap();
    }
    let addresses = ["203.0.113.254/24", "2001:db8:9::fe/64"];
    router.configure("out0", &addresses.map(|cidr| cidr.parse().unwrap()), None).unwrap();
    for words in ROUTES {
        let mut command = Command::new("ip");
        command.args(words.split(' '));
        assert!(router.spawn_child(command).unwrap().wait().unwrap().success(), "ip {words}");
    }

    router.block_on(async move {
        let [mut air, mut out] = [air, out].map(|file| Tun::new(file).unwrap());
        for (ends, host) in [
            (["192.0.2.7", "192.0.2.1", "198.51.100.1"], "203.0.113.9"),
            (["2001:db8::7", "2001:db8::1", "2001:db8:1::1"], "2001:db8:9::9"),
        ] {
            assert_eq!(register(&mut air, ends, 60).await, 60);
            let [host, mobile] = [host, ends[0]].map(|end| SocketAddr::new(address(end), 9));
            out.send(&mut VecDeque::from([datagram(host, mobile, b"there")])).await;
            let data = |bytes: &[u8]| {
                let datagram = udp::parse(ip::parse(bytes).ok()?.payload).ok()?;
                [&b"there"[..], b"back"]
                    .contains(&datagram.payload)
                    .then(|| datagram.payload.to_vec())
            };
            assert_eq!(receive(&mut air, data).await, b"there");
            air.send(&mut VecDeque::from([datagram(mobile, host, b"back")])).await;
            assert_eq!(receive(&mut out, data).await, b"back");
        }
        assert_eq!(register(&mut air, ["192.0.2.7", "192.0.2.1", "198.51.100.1"], 0).await, 0);
    });

    foreign.signal("TERM");
    let mut stdout = String::new();
    foreign.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(foreign.child.wait().unwrap().success());
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["visitors"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["visitors"][0]["address"], "2001:db8::7", "{report}");
    assert!(report["tunnels"]["detunnelled"].as_u64() >= Some(2), "{report}");
}
