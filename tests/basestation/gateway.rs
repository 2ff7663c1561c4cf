//! A station on a router, by the commands of its page; and one that is killed under running flows.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use super::*;

/// Three namespaces in a row: the router is in the middle.
struct Gateway {
    host: Namespace,
    router: Namespace,
    mobile: Namespace,
}

const ARGUMENTS: [&str; 9] = [
    "--wired",
    "wired0",
    "--wireless",
    "wireless0",
    "--radio",
    "rate 200mbit control 54mbit preamble short error 10% queue 200",
    "--policy",
    "tcp-ecn",
    "--persist",
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

    /// Runs the page's commands on the router.
    fn route(&self) {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/basestation.md"))
                .unwrap();
        let (_, rest) = page.split_once("\n## On a gateway\n").unwrap();
        let block = rest.split("```").find_map(|block| block.strip_prefix("sh\n")).unwrap();
        let commands: Vec<_> =
            block.lines().filter(|line| !line.starts_with("basestation ")).collect();
        assert!(commands.len() > 5, "{block}");
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &commands.join("\n")]).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = self.router.spawn_child(shell).unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Sends a chunk and has it back, again and again, until `is_enough` and once more. Gives how many came back.
async fn ping_pong(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    seed: u8,
    began: UnboundedSender<()>,
    is_enough: watch::Receiver<bool>,
) -> io::Result<u32> {
    let mut stream = stream;
    let (mut chunk, mut back) = (vec![seed; 4_000], vec![0; 4_000]);
    for round in 1.. {
        let is_last = *is_enough.borrow();
        chunk[0] = round as u8;
        stream.write_all(&chunk).await?;
        stream.read_exact(&mut back).await?;
        assert_eq!(chunk, back);
        if round == 1 {
            let _ = began.send(());
        }
        if is_last {
            return Ok(round);
        }
    }
    Ok(0)
}

#[test]
fn no_flow_breaks_when_the_station_is_killed_and_started_again() {
    const FLOWS: u8 = 100;
    let Some(()) = or_skip(requirements()) else { return };
    let gateway = Gateway::new();
    let first = BaseStation::ready(&gateway.router, &ARGUMENTS);
    gateway.route();
    let server = gateway.mobile.serve("10.9.2.2:0".parse().unwrap(), Service::Echo, None).unwrap();
    let address = server.address();
    let (began, mut begun) = unbounded_channel();
    let (enough, is_enough) = watch::channel(false);
    let flow = |seed| {
        let (began, is_enough) = (began.clone(), is_enough.clone());
        gateway.host.spawn(async move {
            ping_pong(peer::connect(address, None).await?, seed, began, is_enough).await
        })
    };
    let flows: Vec<_> = (0..FLOWS).map(flow).collect();
    drop(began);
    gateway.host.block_on(async move {
        for _ in 0..FLOWS {
            begun.recv().await.expect("a flow ended before its first chunk was back");
        }
    });
    // The child is killed with SIGKILL.
    drop(first);
    let interfaces = gateway.router.interfaces().unwrap();
    for name in ["wired0", "wireless0"] {
        assert!(interfaces.iter().any(|interface| interface.name == name), "{name} is gone");
    }
    let _second = BaseStation::ready(&gateway.router, &ARGUMENTS);
    enough.send(true).unwrap();
    for flow in flows {
        let rounds = gateway.host.block_on(async move { flow.await.unwrap() }).unwrap();
        // The one after which it stopped began when the station was there again.
        assert!(rounds >= 2);
    }
}
