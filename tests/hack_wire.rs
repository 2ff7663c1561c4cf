//! HACK between namespaces: real packets over a link that flips bits, captured and read by tshark.

use std::error::Error;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airtcp_device::Clock;
use airtcp_link::{Counters as LinkCounters, Link, Way};
use airtcp_net::Stack;
use airtcp_recovery::Combination;
use airtcp_stack::{Counters, HostConfig};
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{or_skip, peer, requirements};
use airtcp_trace::{NodeInfo, NodeKind, Recorder};
use airtcp_wire::options::HackForm;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const PORT: u16 = 5001;
const SEED: u64 = 14;
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns whether tshark is installed. If it is not, the test is skipped, or fails where tshark is
/// required.
fn have_tshark() -> bool {
    let found = Command::new("tshark").arg("-v").output().is_ok();
    if !found {
        let hint = "tshark is not installed: apt-get install tshark";
        assert!(std::env::var_os("AIRTCP_REQUIRE_TOOLS").is_none(), "{hint}");
        eprintln!("SKIPPED: {hint}");
    }
    found
}

/// A file sent over a link that corrupts only data.
struct Course {
    forth: &'static str,
    back: &'static str,
    combination: &'static str,
    /// The form in which the client offers HACK; the server follows it.
    form: HackForm,
    bytes: u64,
}

/// The capture and the counters of a course.
struct Wire {
    dir: tempfile::TempDir,
    sender: Counters,
    receiver: Counters,
    link: LinkCounters,
}

impl Course {
    async fn run(&self) -> Outcome<Wire> {
        let dir = tempfile::tempdir()?;
        let names =
            [("sender", NodeKind::Host), ("link", NodeKind::Link), ("receiver", NodeKind::Host)];
        let nodes = names.map(|(name, kind)| NodeInfo { name: name.to_owned(), kind });
        let clock = Clock::start();
        let recorder = Recorder::create(dir.path(), "HACK", &nodes, clock.origin())?;
        let recording = Arc::new(Mutex::new(Some(recorder)));
        let host = |form| -> Outcome<Host> {
            let mut config = HostConfig::new([]);
            config.tcp.sender.combination = self.combination.parse::<Combination>()?;
            config.tcp.hack_form = form;
            Ok(Host::Stack(Box::new(config)))
        };
        let link = Link::new(&self.forth.parse()?, &self.back.parse()?)?;
        let plan = Plan {
            clock,
            observer: Some(recording.clone()),
            ..Plan::new(host(self.form)?, link, host(HackForm::default())?)
        };
        let dumbbell = Dumbbell::build(plan)?;
        let [left, right] = [dumbbell.left(), dumbbell.right()];
        let stacks = [left, right].map(|end| end.stack().expect("both are ours").clone());
        tokio::time::timeout(PATIENCE, self.transfer(&dumbbell, &stacks)).await??;
        // Each stack must answer the other's FIN.
        tokio::join!(stacks[0].shutdown(), stacks[1].shutdown());
        let [sender, receiver] = stacks.map(|stack| stack.counters());
        let link = dumbbell.counters(Way::Forth);
        dumbbell.stop()?;
        let recorder = recording.lock().unwrap_or_else(PoisonError::into_inner).take();
        recorder.expect("it is taken once").finish()?;
        Ok(Wire { dir, sender, receiver, link })
    }

    /// Transfers the file and checks that it arrives intact.
    async fn transfer(&self, dumbbell: &Dumbbell, [left, right]: &[Stack; 2]) -> Outcome {
        let server = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), PORT);
        let listener = right.listen(server, 1)?;
        let receiving = dumbbell.right().namespace().spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            peer::receive(&mut stream, SEED).await
        });
        let (client, bytes) = (left.clone(), self.bytes);
        let sending = dumbbell.left().namespace().spawn(async move {
            let mut stream = client.connect(server).await?;
            peer::send(&mut stream, SEED, bytes).await
        });
        sending.await??;
        assert_eq!(receiving.await??, self.bytes);
        Ok(())
    }
}

/// A packet as tshark reads it.
struct Line {
    seq: u32,
    /// The kinds of its options.
    kinds: Vec<u8>,
    /// All its options in hexadecimal.
    options: String,
}

impl Wire {
    /// The packets that a node sent or received and that match the filter.
    fn at(&self, node: &str, filter: &str) -> Outcome<Vec<Line>> {
        let filter = format!("frame.interface_name == \"{node}\" && {filter}");
        let fields = ["tcp.seq_raw", "tcp.option_kind", "tcp.options"];
        let mut command = Command::new("tshark");
        command.arg("-r").arg(self.dir.path().join("packets.pcapng"));
        command.args(["-o", "tcp.check_checksum:TRUE", "-Y", &filter, "-T", "fields"]);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = command.output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        text.lines().map(|line| Ok(Line::parse(line)?)).collect()
    }

    /// HACK 3.1: every SYN offers HACK, and every segment with data has the checksum of its header.
    fn assert_offered_and_carried(&self, option: &str) -> Outcome {
        let syns = self.at("sender", "tcp.flags.syn == 1")?;
        assert!(syns.len() >= 2, "a SYN and its answer");
        let data = self.at("sender", &format!("ip.src == {} && tcp.len > 0", left()))?;
        assert!(data.len() > 100, "{}", data.len());
        for line in syns.iter().chain(&data) {
            assert!(line.options.contains(option), "{} without {option}", line.options);
        }
        Ok(())
    }

    /// The sequence numbers that follow `option` in special ACKs, in the order in which these leave
    /// the receiver.
    fn named(&self, kind: u8, option: &str) -> Outcome<Vec<u32>> {
        let acks = self.at("receiver", &format!("ip.src == {} && tcp.len == 0", right()))?;
        let special = acks.iter().filter(|line| line.kinds.contains(&kind));
        let named = special.filter_map(|line| line.options.split_once(option));
        named.map(|(_, rest)| Ok(u32::from_str_radix(&rest[..8], 16)?)).collect()
    }

    /// Special ACKs name segments that arrived corrupted, in their order. Their number is that of
    /// the counter, and that of the corrupted segments except for those whose data had arrived in
    /// another copy. The link's count of damaged packets is only a bound: the link also carries the
    /// kernels' ICMP after a stack has ended.
    fn assert_answered(&self, named: &[u32]) -> Outcome {
        let bad = format!("ip.src == {} && tcp.checksum.status == Bad", left());
        let corrupted = self.at("receiver", &bad)?;
        let mut rest = corrupted.iter();
        for seq in named {
            assert!(rest.any(|line| line.seq == *seq), "{seq} of {named:?} arrived whole");
        }
        let Counters { tcp_ext_hack_acks_sent, tcp_ext_hack_unanswered, .. } = self.receiver;
        assert_eq!(named.len() as u64, tcp_ext_hack_acks_sent);
        let arrived = corrupted.len() as u64;
        assert!(arrived <= self.link.corrupted, "{arrived} of {}", self.link.corrupted);
        // If the flipped bit is in the TCP checksum itself, the header's checksum is still correct.
        let answerable = arrived.saturating_sub(self.link.corrupted_header)..=arrived;
        let met = named.len() as u64 + tcp_ext_hack_unanswered;
        assert!(answerable.contains(&met), "{met} of {answerable:?}");
        Ok(())
    }
}

impl Line {
    fn parse(line: &str) -> Result<Self, std::num::ParseIntError> {
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap_or_default();
        let seq = field().parse()?;
        let kinds = field().split(',').filter(|kind| !kind.is_empty());
        let kinds = kinds.map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { seq, kinds, options: field().to_owned() })
    }
}

fn left() -> String {
    Dumbbell::address(Dumbbell::LEFT, false).to_string()
}

fn right() -> String {
    Dumbbell::address(Dumbbell::RIGHT, false).to_string()
}

async fn run(course: &Course) -> Outcome<Option<Wire>> {
    let reader = have_tshark();
    let Some(()) = or_skip(requirements()) else { return Ok(None) };
    if reader { course.run().await.map(Some) } else { Ok(None) }
}

/// HACK 3.2: the receiver sends one special ACK for each segment that it waits for and whose data
/// is corrupted.
#[tokio::test]
async fn every_corrupted_segment_is_answered_by_a_special_ack() -> Outcome {
    let course = Course {
        forth: "rate 10mbit delay 10ms limit 1000 corrupt 5% header 0% only payload seed 1",
        back: "rate 10mbit delay 10ms limit 1000",
        combination: "sack/reno/hack",
        form: HackForm::Kinds,
        bytes: 1_000_000,
    };
    let Some(wire) = run(&course).await? else { return Ok(()) };
    wire.assert_offered_and_carried("0e04")?;
    let named = wire.named(15, "0f06")?;
    assert!(named.len() > 10, "{}", named.len());
    wire.assert_answered(&named)?;
    assert_eq!(named.len() as u64, wire.sender.tcp_ext_hack_acks_recv);
    assert_eq!(wire.receiver.tcp_ext_hack_hdr_errors, 0);
    Ok(())
}

/// HACK 3.2 (2): if the header is corrupted too, no special ACK is sent.
#[tokio::test]
async fn bursts_are_answered_as_far_as_headers_are_whole() -> Outcome {
    let course = Course {
        forth: "rate 10mbit delay 10ms limit 1000 corrupt 5% header 50% run 5 only payload seed 2",
        back: "rate 10mbit delay 10ms limit 1000",
        combination: "newreno/reno/hack",
        form: HackForm::Kinds,
        bytes: 300_000,
    };
    let Some(wire) = run(&course).await? else { return Ok(()) };
    wire.assert_offered_and_carried("0e04")?;
    let named = wire.named(15, "0f06")?;
    assert!(named.len() > 5, "{}", named.len());
    wire.assert_answered(&named)?;
    assert!(wire.link.corrupted_header > 5 && wire.receiver.tcp_ext_hack_hdr_errors > 0);
    Ok(())
}

/// RFC 6994: the experimental form uses kind 253 and two bytes that identify the experiment.
#[tokio::test]
async fn the_experimental_form_is_on_the_wire_where_it_is_asked_for() -> Outcome {
    let course = Course {
        forth: "rate 10mbit delay 10ms limit 1000 corrupt 5% header 0% only payload seed 3",
        back: "rate 10mbit delay 10ms limit 1000",
        combination: "sack/reno/hack",
        form: HackForm::ExId,
        bytes: 300_000,
    };
    let Some(wire) = run(&course).await? else { return Ok(()) };
    wire.assert_offered_and_carried("fd064843")?;
    let named = wire.named(253, "fd084841")?;
    assert!(named.len() > 3, "{}", named.len());
    wire.assert_answered(&named)?;
    assert!(wire.named(15, "0f06")?.is_empty(), "no other form");
    Ok(())
}
