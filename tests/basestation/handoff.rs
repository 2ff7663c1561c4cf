//! A mobile that moves between two stations, with a home agent: five namespaces, and kernels at both
//! ends of its flows.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use airtcp_basestation::home::{Algorithm, Key};
use airtcp_testbed::Server;
use airtcp_wire::mobility::{self, Ends, Message, Request, code};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);
/// A radio that is fast enough for a test, and loses a few frames.
const RADIO: &str = "rate 200mbit control 54mbit preamble short error 2% seed 1 queue 1000";

/// The addresses of the mobile, of its home agent, and of the stations.
const HOME: [&str; 2] = ["192.0.2.7", "2001:db8::7"];
const AGENT: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const CARE_OF: [[&str; 2]; 2] =
    [["198.51.100.1", "2001:db8:1::1"], ["198.51.100.2", "2001:db8:1::2"]];
const NAMES: [&str; 2] = ["north", "south"];
/// The mobile's device towards each station.
const AIR: [&str; 2] = ["air0", "air1"];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The parts of the page with this fence.
fn blocks(fence: &str) -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/handoff.md");
    let page = std::fs::read_to_string(page).unwrap();
    let start = format!("{fence}\n");
    page.split("```").filter_map(|block| block.strip_prefix(&start)).map(str::to_owned).collect()
}

/// Exchanges the stations in a text of the page, for the second one.
fn for_station(of: usize, text: &str) -> String {
    if of == 0 {
        return text.to_owned();
    }
    [("198.51.100.1", "198.51.100.2"), ("2001:db8:1::1", "2001:db8:1::2"), ("north", "south")]
        .iter()
        .fold(text.to_owned(), |text, (one, other)| {
            text.replace(one, "?").replace(other, one).replace('?', other)
        })
        .replace("spi = 400", "spi = 401")
}

/// Runs commands in a namespace.
#[track_caller]
fn shell(namespace: &Namespace, commands: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", commands]).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = namespace.spawn_child(shell).unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
}

struct Field {
    // The programs, which end before the namespaces do.
    stations: [Option<BaseStation>; 2],
    _home: BaseStation,
    server: Namespace,
    routers: [Namespace; 2],
    mobile: Namespace,
    _core: Namespace,
    directory: tempfile::TempDir,
}

impl Field {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for key in ["van", "north", "south", "stations"] {
            let file = path.join(format!("{key}.key"));
            // Bytes of 1 in base64.
            std::fs::write(&file, "AQEB".repeat(8)).unwrap();
            // Otherwise a warning precedes `ready`.
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let [server, core, north, south, mobile] = [(); 5].map(|()| Namespace::new().unwrap());
        for namespace in [&server, &core, &north, &south, &mobile] {
            for (key, value) in [
                ("net.ipv4.ip_forward", "1"),
                ("net.ipv6.conf.all.forwarding", "1"),
                ("net.ipv4.conf.all.rp_filter", "0"),
                ("net.ipv4.conf.default.rp_filter", "0"),
                ("net.ipv6.conf.all.keep_addr_on_down", "1"),
                ("net.ipv6.conf.default.accept_dad", "0"),
            ] {
                namespace.set_sysctl(key, value).unwrap();
            }
        }
        let routers = [north, south];
        let put = |namespace: &Namespace, device: &str, addresses: &[&str]| {
            let addresses: Vec<_> = addresses.iter().map(|cidr| cidr.parse().unwrap()).collect();
            namespace.configure(device, &addresses, None).unwrap();
        };
        server.connect("eth0", &core, "out0").unwrap();
        put(&server, "eth0", &["203.0.113.9/24", "2001:db8:9::9/64"]);
        put(&core, "out0", &["203.0.113.254/24", "2001:db8:9::fe/64"]);
        shell(
            &server,
            "ip route add default via 203.0.113.254\nip -6 route add default via 2001:db8:9::fe",
        );
        for (of, router) in routers.iter().enumerate() {
            let to = ["to0", "to1"][of];
            core.connect(to, router, "wan0").unwrap();
            router.connect("wlan0", &mobile, AIR[of]).unwrap();
            let [wan, air] = [format!("10.{}.0", 1 + of), format!("10.{}.0", 3 + of)];
            let [wan6, air6] = [format!("fd0{}:", 1 + of), format!("fd0{}:", 3 + of)];
            put(&core, to, &[&format!("{wan}.1/24"), &format!("{wan6}:1/64")]);
            put(router, "wan0", &[&format!("{wan}.2/24"), &format!("{wan6}:2/64")]);
            put(router, "wlan0", &[&format!("{air}.1/24"), &format!("{air6}:1/64")]);
            let [home, home6] = [format!("{}/32", HOME[0]), format!("{}/128", HOME[1])];
            put(
                &mobile,
                AIR[of],
                &[&format!("{air}.2/24"), &format!("{air6}:2/64"), &home, &home6],
            );
            let [care_of, care_of6] = CARE_OF[of];
            shell(
                &core,
                &format!(
                    "ip route add {care_of} via {wan}.2\nip -6 route add {care_of6} via {wan6}:2"
                ),
            );
            shell(
                router,
                &format!("ip route add default via {wan}.1\nip -6 route add default via {wan6}:1"),
            );
        }
        let home = home_agent(path);
        let home = BaseStation::ready(&core, &["home-agent", "--config", &home]);
        core.configure("home0", &[], None).unwrap();
        shell(
            &core,
            "ip route add 192.0.2.0/24 dev home0\nip -6 route add 2001:db8::/64 dev home0",
        );
        let mut field = Self {
            stations: [None, None],
            _home: home,
            server,
            routers,
            mobile,
            _core: core,
            directory,
        };
        for of in 0..2 {
            // Without the command of the station itself.
            let commands = blocks("sh").pop().unwrap();
            let commands = commands.lines().filter(|line| !line.starts_with("basestation "));
            let commands: Vec<_> = commands.filter(|line| !line.starts_with("mkdir ")).collect();
            shell(&field.routers[of], &for_station(of, &commands.join("\n")));
            field.start(of);
        }
        field
    }

    fn control(&self, of: usize) -> String {
        self.directory.path().join(format!("{}.sock", NAMES[of])).display().to_string()
    }

    /// Starts a station with the settings of the page.
    fn start(&mut self, of: usize) {
        let directory = self.directory.path().display().to_string();
        let text = for_station(of, &blocks("toml")[0])
            .replace("/etc/airtcp", &directory)
            .replace("/run/airtcp/basestation.sock", &self.control(of))
            .replace("radio = \"\"", &format!("radio = \"{RADIO}\""));
        let file = self.directory.path().join(format!("{}.toml", NAMES[of]));
        std::fs::write(&file, text).unwrap();
        let arguments = ["--config", file.to_str().unwrap()];
        self.stations[of] = Some(BaseStation::ready(&self.routers[of], &arguments));
    }

    fn ctl(&self, of: usize, words: &[&str]) -> Value {
        let control = self.control(of);
        let more = ["--json", "--control", &control];
        serde_json::from_str(&ctl(&[words, &more].concat()).unwrap()).unwrap()
    }

    /// A counter of the moves of a station.
    fn moves(&self, of: usize, name: &str) -> u64 {
        let status = self.ctl(of, &["status"]);
        status["handoff"]["moves"][name].as_u64().unwrap_or_else(|| panic!("{status}"))
    }

    #[track_caller]
    fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < PATIENCE, "{what} did not come");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Moves the mobile's link to a station, and registers both of its addresses there.
    fn attach(&self, to: usize) {
        let air = 3 + to;
        shell(
            &self.mobile,
            &format!(
                "ip link set {old} down\nip link set {new} up\n\
                 ip route replace default via 10.{air}.0.1 dev {new} src {home}\n\
                 ip -6 route replace default via fd0{air}::1 dev {new}",
                old = AIR[1 - to],
                new = AIR[to],
                home = HOME[0],
            ),
        );
        for family in 0..2 {
            self.register(to, family);
        }
    }

    fn register(&self, to: usize, family: usize) {
        let [home, home_agent, care_of] =
            [HOME[family], AGENT[family], CARE_OF[to][family]].map(address);
        let socket = self.mobile.run(move || UdpSocket::bind(SocketAddr::new(home, 0))).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let port = if home.is_ipv6() { mobility::V6_PORT } else { mobility::PORT };
        let begin = Instant::now();
        let mut asked = Vec::new();
        while begin.elapsed() < PATIENCE {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let identification = mobility::timestamp(since);
            asked.push(identification);
            let request =
                Request { flags: 0, lifetime: 60, home, home_agent, care_of, identification };
            let mut message = Message::Request(request).emit();
            let key = Key::new(300, Algorithm::HmacSha256, vec![1; 24]).unwrap();
            key.sign(&mut message, Ends::MobileHome);
            // Fails while there is no route yet.
            let _ = socket.send_to(&message, SocketAddr::new(care_of, port));
            let mut bytes = [0; 2_000];
            let Ok((len, _)) = socket.recv_from(&mut bytes) else { continue };
            let Ok((Message::Reply(reply), _)) = mobility::parse(&bytes[..len], home.is_ipv6())
            else {
                panic!("{:?}", &bytes[..len]);
            };
            if asked.contains(&reply.identification) {
                assert_eq!(reply.code, code::ACCEPTED, "{reply:?}");
                return;
            }
        }
        panic!("no reply to {home} through {}", NAMES[to]);
    }

    /// Starts a transfer in each IP version, and returns them with their servers.
    fn transfers(&self) -> Vec<(Transfer, Server)> {
        let transfers = HOME.map(|home| {
            let server =
                self.mobile.serve(SocketAddr::new(address(home), 0), Service::Echo, None).unwrap();
            let mut transfer = Transfer::start(&self.server, server.address(), 7, 1 << 20);
            transfer.wait_for_begin();
            (transfer, server)
        });
        transfers.into()
    }

    /// Waits until both flows have brought this many bytes more over a station's radio.
    #[track_caller]
    fn wait_for_bytes(&self, of: usize, bytes: u64) {
        let crossed = || {
            let status = self.ctl(of, &["status"]);
            status["mobiles"][0]["traffic"]["to_mobile"]["bytes"].as_u64().unwrap()
        };
        let before = crossed();
        self.wait_until("data", || crossed() >= before + bytes);
    }
}

/// Writes the settings of the home agent; returns their path.
fn home_agent(directory: &Path) -> String {
    let peer = |table: &str, name: &str, addresses: [&str; 2], spi: u32| {
        let key = directory.join(format!("{name}.key"));
        format!(
            "[[{table}]]\nname = '{name}'\naddresses = {addresses:?}\nspi = {spi}\nkey = '{}'\n",
            key.display()
        )
    };
    let text = format!(
        "tun = 'home0'\naddresses = {AGENT:?}\nmtu = 1400\nstate = '{}'\n",
        directory.join("home.json").display()
    ) + &peer("mobile", "van", HOME, 300)
        + &peer("station", "north", CARE_OF[0], 400)
        + &peer("station", "south", CARE_OF[1], 401);
    let path = directory.join("home-agent.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const STEP: u64 = 1 << 20;

#[test]
fn a_mobile_moves_there_and_back_in_the_middle_of_transfers() {
    let Some(()) = or_skip(requirements()) else { return };
    let field = Field::new();
    field.attach(0);
    let transfers = field.transfers();
    field.wait_for_bytes(0, STEP);
    let moves = [1, 0, 1];
    for (done, to) in moves.into_iter().enumerate() {
        let old = 1 - to;
        field.ctl(old, &["leave", "van"]);
        if done > 0 {
            field.ctl(to, &["join", "van"]);
        }
        let counts = || [field.moves(to, "taken_over"), field.moves(old, "completed")];
        let before = counts();
        field.attach(to);
        field.wait_until("the flows", || {
            counts().iter().zip(before).all(|(now, before)| *now >= before + 2)
        });
        field.wait_for_bytes(to, STEP);
    }
    for (transfer, server) in transfers {
        transfer.assert_enough();
        transfer.end();
        drop(server);
    }
    let sum = |name: &str| field.moves(0, name) + field.moves(1, name);
    // Each address registers for the first time, and moves three times with one flow. On a slow
    // machine it registers again.
    for (name, least) in [("arrivals", 8), ("departures", 6), ("flows_sent", 6)] {
        assert!(sum(name) >= least, "{name}: {}", field.ctl(0, &["status"]));
    }
    assert_eq!(sum("flows_sent"), sum("flows_received"));
    for name in ["failed", "discarded", "ignored", "adopted", "refused"] {
        assert_eq!(sum(name), 0, "{name}: {}", field.ctl(0, &["status"]));
    }
}

#[test]
fn a_station_that_is_killed_costs_no_flow() {
    let Some(()) = or_skip(requirements()) else { return };
    let mut field = Field::new();
    field.attach(0);
    let transfers = field.transfers();
    field.wait_for_bytes(0, STEP);
    // Dropping kills the process with SIGKILL.
    drop(field.stations[0].take());
    field.attach(1);
    field.wait_for_bytes(1, STEP);
    assert!(field.moves(1, "adopted") >= 2, "{}", field.ctl(1, &["status"]));
    // It comes back without state, and gets the flows of the other one.
    field.start(0);
    field.attach(0);
    field.wait_for_bytes(0, STEP);
    assert!(field.moves(0, "flows_received") >= 2, "{}", field.ctl(0, &["status"]));
    for (transfer, server) in transfers {
        transfer.assert_enough();
        transfer.end();
        drop(server);
    }
}
