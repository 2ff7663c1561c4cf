//! The emulated link in real time between real devices: it keeps its rate, and loses the same
//! packets as in virtual time.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use airtcp_link::{Link, LinkSpec, Way};
use airtcp_stack::HostConfig;
use airtcp_testbed::dumbbell::{Dumbbell, End, Host, Plan};
use airtcp_testbed::{Namespace, Service, or_skip, peer, requirements};
use airtcp_types::{Instant as Virtual, Node, Packet, PortId};
use serde_json::Value;

type Outcome = Result<(), Box<dyn Error>>;

const MIB: u64 = 1 << 20;

fn link(forth: &str, back: &str) -> Result<Link, Box<dyn Error>> {
    Ok(Link::new(&forth.parse::<LinkSpec>()?, &back.parse::<LinkSpec>()?)?)
}

fn ours() -> Host {
    Host::Stack(Box::new(HostConfig::new([])))
}

/// Sends `count` numbered datagrams from the left kernel to the right one, each of `size` bytes
/// with all headers. Calls `pace` before each, with its number and one more than the highest number
/// that has arrived. Returns the numbers that arrive and their times.
fn datagrams(
    dumbbell: &Dumbbell,
    count: u32,
    size: usize,
    pace: impl Fn(u32, &AtomicU32) + Send + 'static,
) -> Result<Vec<(u32, Instant)>, Box<dyn Error>> {
    let to = Dumbbell::address(Dumbbell::RIGHT, false);
    let receiver = dumbbell.right().namespace().run(move || UdpSocket::bind((to, 0)))?;
    let address = receiver.local_addr()?;
    receiver.set_read_timeout(Some(Duration::from_secs(2)))?;
    let sender = dumbbell.left().namespace().run(|| UdpSocket::bind("0.0.0.0:0"))?;
    let seen = Arc::new(AtomicU32::new(0));
    let sending = std::thread::spawn({
        let seen = seen.clone();
        move || {
            // An IPv4 and a UDP header are added.
            let mut datagram = vec![0; size - 28];
            for number in 0..count {
                pace(number, &seen);
                datagram[..4].copy_from_slice(&number.to_be_bytes());
                sender.send_to(&datagram, address).expect("the kernel takes a datagram");
            }
        }
    });
    let mut arrived = Vec::new();
    let mut datagram = [0; 2048];
    while let Ok(length) = receiver.recv(&mut datagram) {
        assert_eq!(length, size - 28);
        let number = u32::from_be_bytes(datagram[..4].try_into()?);
        arrived.push((number, Instant::now()));
        seen.fetch_max(number + 1, Ordering::Relaxed);
    }
    sending.join().expect("the sender does not panic");
    Ok(arrived)
}

#[test]
fn the_rate_holds_for_ten_seconds() -> Outcome {
    const RATE: f64 = 20e6;
    const SIZE: usize = 1250;
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    // 2000 packets fill a second, and the queue holds half a second's: the link does not become
    // idle if the machine delays the sender.
    let plan = Plan::new(Host::Kernel, link("rate 20mbit delay 5ms limit 1000", "")?, Host::Kernel);
    let dumbbell = Dumbbell::build(plan)?;
    let start = Instant::now();
    let arrived = datagrams(&dumbbell, 40_000, SIZE, move |number, _| {
        let due = start + Duration::from_millis(10) * (number / 40);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    })?;
    let (first, last) = (arrived[0].1, arrived[arrived.len() - 1].1);
    let bits = (arrived.len() - 1) as f64 * SIZE as f64 * 8.0;
    let rate = bits / (last - first).as_secs_f64();
    let counters = dumbbell.counters(Way::Forth);
    println!("{:.4} Mbit/s at the receiver over {:?}, {counters:?}", rate / 1e6, last - first);
    println!("{}", dumbbell.lateness());
    assert!(last - first > Duration::from_secs(9), "{:?}", last - first);
    assert!((rate / RATE - 1.0).abs() < 0.02, "{rate}");
    assert!(counters.queue_dropped > 0, "the queue was full at times: {counters:?}");
    Ok(())
}

/// The numbers of the packets that pass the link in virtual time, with one packet per millisecond.
fn in_virtual_time(mut link: Link, count: u32, size: usize) -> BTreeSet<u32> {
    let mut arrived = BTreeSet::new();
    for step in 0..count + 1_000 {
        let now = Virtual::from_millis(step.into());
        if step < count {
            let mut data = vec![0; size];
            data[0] = 0x45;
            data[28..32].copy_from_slice(&step.to_be_bytes());
            link.handle_packet(now, PortId(0), Packet::new(data));
        }
        while let Some((_, packet)) = link.poll_transmit(now) {
            arrived.insert(u32::from_be_bytes(packet.data[28..32].try_into().expect("four")));
        }
    }
    arrived
}

#[test]
fn the_same_packets_are_lost_in_real_and_in_virtual_time() -> Outcome {
    const SIZE: usize = 400;
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let losing = [
        "delay 10ms loss 5% seed 11",
        "rate 50mbit limit 4000 delay 3ms 2ms loss gemodel 2% 20% 60% 0.5% burst 1% 4 seed 12",
        "rate 100mbit limit 4000 drop 3,17,100-120 seed 13",
        "delay 3ms aggregate 2ms packets 20 seed 14 at 0s loss 5%",
        // Tokens for all but the last fifty packets, refilled at one bit per second.
        "police rate 1bit burst 1580000b delay 1ms",
    ];
    for spec in losing {
        let count = 4_000;
        let expected = in_virtual_time(link(spec, "")?, count, SIZE);
        let plan = Plan::new(Host::Kernel, link(spec, "")?, Host::Kernel);
        let dumbbell = Dumbbell::build(plan)?;
        // Few enough in flight that no device and no socket drops any.
        let arrived = datagrams(&dumbbell, count, SIZE, |number, seen| {
            let begun = Instant::now();
            while number > seen.load(Ordering::Relaxed) + 100
                && begun.elapsed() < Duration::from_millis(500)
            {
                std::thread::sleep(Duration::from_micros(200));
            }
        })?;
        let counters = dumbbell.counters(Way::Forth);
        assert_eq!(
            counters.received,
            u64::from(count),
            "nothing but the datagrams came: {counters:?}"
        );
        let arrived: BTreeSet<u32> = arrived.into_iter().map(|(number, _)| number).collect();
        let lost = u64::from(count) - expected.len() as u64;
        println!("{spec}: {lost} of {count} lost");
        assert!(lost > 20 && arrived == expected, "{spec}: {counters:?}");
        dumbbell.stop()?;
    }
    Ok(())
}

/// Sends data in both directions over both versions of IP, and compares the echo.
async fn exchange(dumbbell: &Dumbbell, bytes: u64) -> Outcome {
    for is_ipv6 in [false, true] {
        let ends = [(Dumbbell::LEFT, dumbbell.left()), (Dumbbell::RIGHT, dumbbell.right())];
        for [(_, client), (place, server)] in [ends, [ends[1], ends[0]]] {
            let at = (Dumbbell::address(place, is_ipv6), 0).into();
            let (address, _serving) = match server {
                End::Kernel(namespace) => {
                    let server = namespace.serve(at, Service::Echo, Some("cubic"))?;
                    (server.address(), Some(server))
                }
                End::Stack(stack, _) => {
                    let listener = stack.listen(at, 16)?;
                    let address = listener.local_addr()?;
                    tokio::spawn(async move {
                        let (stream, _) = listener.accept().await?;
                        let (mut reader, mut writer) = stream.into_split();
                        tokio::io::copy(&mut reader, &mut writer).await?;
                        tokio::io::AsyncWriteExt::shutdown(&mut writer).await
                    });
                    (address, None)
                }
            };
            let echoed = match client {
                End::Kernel(namespace) => {
                    let call = async move {
                        peer::echo(peer::connect(address, Some("cubic")).await?, 3, bytes).await
                    };
                    namespace.spawn(call).await??
                }
                End::Stack(stack, _) => peer::echo(stack.connect(address).await?, 3, bytes).await?,
            };
            assert_eq!(echoed, bytes);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pair_of_hosts_talks_through_a_lossy_link() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let pairs = [
        ("kernel, kernel", Host::Kernel, Host::Kernel),
        ("ours, kernel", ours(), Host::Kernel),
        ("kernel, ours", Host::Kernel, ours()),
        ("ours, ours", ours(), ours()),
    ];
    for (name, left, right) in pairs {
        let spec = "rate 100mbit delay 1ms loss 0.5% limit 200";
        let dumbbell = Dumbbell::build(Plan::new(left, link(spec, spec)?, right))?;
        exchange(&dumbbell, MIB).await?;
        for way in Way::BOTH {
            let counters = dumbbell.counters(way);
            assert!(counters.channel_lost > 0, "{name}: {counters:?}");
            assert!(counters.forwarded_bytes.0 > 4 * MIB, "{name}: {counters:?}");
        }
        tokio::task::spawn_blocking(|| dumbbell.stop()).await??;
    }
    Ok(())
}

/// `airtcp link` running in `namespace`.
struct Running {
    child: Child,
    stderr: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Running {
    fn start(namespace: &Namespace, arguments: &[&str]) -> std::io::Result<Self> {
        Self::printing_to(Stdio::piped(), namespace, arguments)
    }

    fn printing_to(
        stdout: Stdio,
        namespace: &Namespace,
        arguments: &[&str],
    ) -> std::io::Result<Self> {
        Self::spawn(airtcp(arguments), stdout, namespace)
    }

    fn spawn(mut command: Command, stdout: Stdio, namespace: &Namespace) -> std::io::Result<Self> {
        command.stdout(stdout).stderr(Stdio::piped());
        let mut child = namespace.spawn_child(command)?;
        let stderr = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        Ok(Self { child, stderr })
    }

    fn wait_until_ready(&mut self) -> Outcome {
        for line in self.stderr.by_ref() {
            if line? == "ready" {
                return Ok(());
            }
        }
        Err("it ended before it was ready".into())
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn airtcp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

/// Runs the command between two namespaces with an address each.
fn between_two(arguments: &[&str]) -> Result<(Namespace, Namespace, Running), Box<dyn Error>> {
    let (left, right) = (Namespace::new()?, Namespace::new()?);
    let arguments = [&["link", "--a", "tun0", "--b", "tun1"], arguments].concat();
    let mut running = Running::start(&left, &arguments)?;
    running.wait_until_ready()?;
    left.hand_over("tun1", &right)?;
    for (namespace, device, address) in
        [(&left, "tun0", "10.9.0.1/24"), (&right, "tun1", "10.9.0.2/24")]
    {
        namespace.configure(device, &[address.parse()?], Some(1500))?;
    }
    Ok((left, right, running))
}

#[test]
fn the_command_shapes_and_counts_and_says_so_when_asked() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    shapes_and_counts(&[])?;
    shapes_and_counts(&["--offload"])
}

fn shapes_and_counts(more: &[&str]) -> Outcome {
    let specs = ["rate 50mbit delay 2ms loss 1% limit 100", "rate 50mbit delay 2ms", "--json"];
    let (left, right, mut running) = between_two(&[&specs, more].concat())?;
    let server = right.serve("10.9.0.2:0".parse()?, Service::Sink, Some("cubic"))?;
    let address = server.address();
    let uploaded = left.block_on(async move {
        peer::upload(peer::connect(address, Some("cubic")).await?, 1, MIB).await
    })?;
    assert_eq!(uploaded, MIB);

    let mut stdout = BufReader::new(running.child.stdout.take().expect("it is piped"));
    running.signal("USR1");
    let mut asked = String::new();
    stdout.read_line(&mut asked)?;
    running.signal("TERM");
    let mut last = String::new();
    stdout.read_to_string(&mut last)?;
    assert!(running.child.wait()?.success());
    for line in [asked, last] {
        let report: Value = serde_json::from_str(&line)?;
        assert_eq!(
            (&report["forth"]["from"], &report["forth"]["to"]),
            (&"tun0".into(), &"tun1".into())
        );
        let of = |way: &str, name: &str| report[way][name].as_u64().unwrap_or_default();
        assert!(of("forth", "channel_lost") > 0, "{report}");
        // The packets are single ones, however many the kernel passed at a time.
        assert!(of("forth", "forwarded_bytes") <= 1500 * of("forth", "forwarded"), "{report}");
        assert!(of("forth", "forwarded_bytes") > MIB && of("back", "forwarded") > 0, "{report}");
        assert!((1_000_000..51_000_000).contains(&of("forth", "bits_per_second")), "{report}");
        assert!(report["lateness"]["p50_us"].as_f64().is_some_and(|late| late > 0.0), "{report}");
    }
    assert!(left.interfaces()?.iter().all(|interface| interface.name != "tun0"));
    Ok(())
}

#[test]
fn the_command_ends_when_its_time_is_over_and_prints_a_table() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let namespace = Namespace::new()?;
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("trace");
    let to = trace.display().to_string();
    let words = ["link", "--a", "tun0", "--b", "tun1", "weak-4g", "--seconds", "1", "--trace", &to];
    let mut running = Running::start(&namespace, &words)?;
    running.wait_until_ready()?;
    // A datagram to a missing neighbour crosses the link and is not received.
    namespace.configure("tun0", &["10.9.0.1/24".parse()?], Some(1500))?;
    let sender = namespace.run(|| UdpSocket::bind("10.9.0.1:0"))?;
    sender.send_to(b"somebody?", "10.9.0.2:9")?;
    let mut table = String::new();
    running.child.stdout.take().expect("it is piped").read_to_string(&mut table)?;
    assert!(running.child.wait()?.success());
    for word in ["tun0 -> tun1", "tun1 -> tun0", "rate 2mbit", "rate 500kbit", "received"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let capture = std::fs::read(trace.join("packets.pcapng"))?;
    let addresses = [10, 9, 0, 1, 10, 9, 0, 2];
    assert!(capture.windows(8).any(|window| window == addresses), "{table}");
    Ok(())
}

#[test]
fn a_hangup_ends_a_link_in_order_and_stays_ignored_under_nohup() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let words = ["link", "--a", "tun0", "--b", "tun1", "--json", "delay 1ms"];
    // The tests may run under nohup themselves.
    let default = ["env", "--default-signal=HUP"];
    for (prefix, is_ignored) in [(&default[..], false), (&["nohup"][..], true)] {
        let mut command = Command::new(prefix[0]);
        command.args(&prefix[1..]).arg(env!("CARGO_BIN_EXE_airtcp")).args(words);
        command.env_remove("RUST_LOG");
        let namespace = Namespace::new()?;
        let mut running = Running::spawn(command, Stdio::piped(), &namespace)?;
        running.wait_until_ready()?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id()))?;
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
        assert_eq!(u64::from_str_radix(ignored.trim(), 16)? & 1 == 1, is_ignored, "{status}");
        running.signal("HUP");
        if is_ignored {
            running.signal("TERM");
        }
        let mut counters = String::new();
        running.child.stdout.take().expect("it is piped").read_to_string(&mut counters)?;
        assert_eq!(running.child.wait()?.code(), Some(0));
        assert_eq!(counters.lines().count(), 1, "{counters}");
    }
    Ok(())
}

#[test]
fn a_trace_is_whole_even_if_nothing_can_be_printed() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    for signals in [&["TERM"][..], &["USR1"]] {
        let (namespace, directory) = (Namespace::new()?, tempfile::tempdir()?);
        let trace = directory.path().join("trace");
        let to = trace.display().to_string();
        let words = ["link", "--a", "tun0", "--b", "tun1", "delay 1ms", "--trace", &to];
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
        let mut running = Running::printing_to(full.into(), &namespace, &words)?;
        running.wait_until_ready()?;
        namespace.configure("tun0", &["10.9.0.1/24".parse()?], Some(1500))?;
        let sender = namespace.run(|| UdpSocket::bind("10.9.0.1:0"))?;
        sender.send_to(b"somebody?", "10.9.0.2:9")?;
        std::thread::sleep(Duration::from_millis(200));
        signals.iter().for_each(|signal| running.signal(signal));
        assert_eq!(running.child.wait()?.code(), Some(1), "{signals:?}");
        let lines: Vec<_> = running.stderr.by_ref().collect::<Result<_, _>>()?;
        assert!(lines.iter().any(|line| line.contains("No space left")), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("wrote ")), "{lines:?}");
        let capture = std::fs::read(trace.join("packets.pcapng"))?;
        let addresses = [10, 9, 0, 1, 10, 9, 0, 2];
        assert!(capture.windows(8).any(|window| window == addresses), "{lines:?}");
    }
    Ok(())
}

#[test]
fn being_killed_leaves_no_device() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let (left, right, mut running) = between_two(&["delay 1ms"])?;
    running.child.kill()?;
    running.child.wait()?;
    let is_empty = |namespace: &Namespace| namespace.interfaces().map(|found| found.len() == 1);
    for namespace in [&left, &right] {
        // The kernel removes the device shortly after its owner has ended.
        let mut gone = false;
        for _ in 0..500 {
            gone = is_empty(namespace)?;
            if gone {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(gone, "{:?}", namespace.interfaces()?);
    }
    Ok(())
}

#[test]
fn persistent_devices_keep_their_addresses_for_the_next_link() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let namespace = Namespace::new()?;
    let words = ["link", "--a", "tun0", "--b", "tun1", "delay 1ms", "--persist", "--json"];
    let mut first = Running::start(&namespace, &words)?;
    first.wait_until_ready()?;
    namespace.configure("tun0", &["10.9.0.1/24".parse()?], Some(1500))?;
    first.signal("TERM");
    assert!(first.child.wait()?.success());
    let names: Vec<_> = namespace.interfaces()?.into_iter().map(|found| found.name).collect();
    assert!(
        ["tun0", "tun1"].iter().all(|name| names.iter().any(|found| found == name)),
        "{names:?}"
    );

    let mut second = Running::start(&namespace, &words)?;
    second.wait_until_ready()?;
    let sender = namespace.run(|| UdpSocket::bind("10.9.0.1:0"))?;
    // The kernel drops packets until the device's queue is up again.
    for _ in 0..20 {
        sender.send_to(b"somebody?", "10.9.0.2:9")?;
        std::thread::sleep(Duration::from_millis(10));
    }
    second.signal("TERM");
    let mut report = String::new();
    second.child.stdout.take().expect("it is piped").read_to_string(&mut report)?;
    let report: Value = serde_json::from_str(&report)?;
    assert!(report["forth"]["received"].as_u64() > Some(0), "{report}");
    Ok(())
}

#[test]
fn a_mistake_is_one_line_with_its_place() -> Outcome {
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("rubbish.up");
    let lines: Vec<_> =
        (1..=20).map(|n| if n == 17 { "x".to_owned() } else { n.to_string() }).collect();
    std::fs::write(&trace, lines.join("\n"))?;
    let (trace, nowhere) = (trace.display().to_string(), directory.path().join("no.up"));
    let mistakes = [
        ("rate 10mbit delay".to_owned(), 2, "at byte 17, the end: expected a time".to_owned()),
        ("rate 10mbit los 1%".to_owned(), 2, "at byte 12, `los`".to_owned()),
        (format!("trace {trace}"), 1, format!("{trace}: line 17: expected a time")),
        (format!("trace {}", nowhere.display()), 1, "no.up: No such file".to_owned()),
    ];
    for (spec, code, text) in mistakes {
        let output = airtcp(&["link", "--a", "tun0", "--b", "tun1", &spec]).output()?;
        let line = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(code), "{spec}: {line}");
        assert!(line.lines().count() == 1 && line.contains(&text), "{spec}: {line}");
        assert!(output.stdout.is_empty());
    }
    Ok(())
}
