//! A station on a router, set up by the commands of its page, which is killed under running flows.

use super::*;

/// Three namespaces in a row, with the router in the middle.
struct Gateway {
    host: Namespace,
    router: Namespace,
    mobile: Namespace,
}

const ARGUMENTS: [&str; 8] = [
    "--wired",
    "wired0",
    "--wireless",
    "wireless0",
    "--radio",
    "rate 200mbit control 54mbit preamble short error 10% queue 1000",
    "--policy",
    "tcp-ecn",
];

impl Gateway {
    fn new() -> Self {
        let [host, router, mobile] = [(); 3].map(|()| Namespace::new().unwrap());
        let any = "0.0.0.0/0".parse().unwrap();
        for (end, name, network) in [(&host, "eth0", 1), (&mobile, "wlan0", 2)] {
            end.connect("link0", &router, name).unwrap();
            let cidr = |last| [format!("10.9.{network}.{last}/24").parse().unwrap()];
            end.configure("link0", &cidr(2), None).unwrap();
            router.configure(name, &cidr(1), None).unwrap();
            let gateway = format!("10.9.{network}.1").parse().unwrap();
            end.add_route("link0", any, Some(gateway)).unwrap();
        }
        Self { host, router, mobile }
    }

    /// Runs the commands of the page on the router.
    fn route(&self) {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/basestation.md"))
                .unwrap();
        let (_, rest) = page.split_once("\n## On a router\n").unwrap();
        let block = rest.split("```").find_map(|block| block.strip_prefix("sh\n")).unwrap();
        // Leaves out the command of the station itself.
        let commands: Vec<_> =
            block.lines().filter(|line| !line.starts_with("basestation ")).collect();
        assert!(commands.len() > 5, "{block}");
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &commands.join("\n")]).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = self.router.spawn_child(shell).unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn no_flow_breaks_when_the_station_is_killed_and_started_again() {
    const FLOWS: u8 = 100;
    let Some(()) = or_skip(requirements()) else { return };
    let gateway = Gateway::new();
    gateway.route();
    let first = BaseStation::ready(&gateway.router, &ARGUMENTS);
    let server = gateway.mobile.serve("10.9.2.2:0".parse().unwrap(), Service::Echo, None).unwrap();
    let address = server.address();
    let mut transfers: Vec<_> =
        (0..FLOWS).map(|seed| Transfer::start(&gateway.host, address, seed, 4_000)).collect();
    transfers.iter_mut().for_each(Transfer::wait_for_begin);
    // Dropping kills the child with SIGKILL.
    drop(first);
    let interfaces = gateway.router.interfaces().unwrap();
    for name in ["wired0", "wireless0"] {
        assert!(interfaces.iter().any(|interface| interface.name == name), "{name} is gone");
    }
    let _second = BaseStation::ready(&gateway.router, &ARGUMENTS);
    transfers.iter().for_each(Transfer::assert_enough);
    transfers.into_iter().for_each(Transfer::end);
}
