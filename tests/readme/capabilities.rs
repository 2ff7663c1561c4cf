//! Probes the code for each row of the table of capabilities.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use airtcp_basestation::{Bridge, Side};
use airtcp_device::{Clock, Device, Memory, Tun, TunOptions, memory};
use airtcp_net::{Sibling, TcpStream, UdpSocket};
use airtcp_recovery::registry::{Entry, controls, detections, judges};
use airtcp_recovery::{Profile, Ruling, When};
use airtcp_stack::Counters;
use airtcp_stack::tcp::{EcnMode, TcpConfig};
use airtcp_tunnel::Tunnel;
use airtcp_types::{ByteCount, Instant, Node, Packet};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{gateways, hosts, links, sockets, worlds};

/// A row of the table.
pub(crate) struct Row<'a> {
    pub(crate) what: &'a str,
    /// The names between backticks in the row.
    pub(crate) names: Vec<&'a str>,
    pub(crate) there: bool,
}

/// Returns whether the code has everything that the row names.
pub(crate) fn is_there(row: &Row<'_>) -> bool {
    let are_all = |known: Vec<&str>| {
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let of_row = row.names.iter().map(|name| (*name).to_owned()).collect();
        sorted(of_row) == sorted(known.into_iter().map(str::to_owned).collect())
    };
    match row.what {
        what if what.starts_with("Loss detection `") => are_all(names(detections())),
        what if what.starts_with("Congestion control `") => are_all(names(controls())),
        what if what.starts_with("Judges `") => are_all(names(judges())),
        what if what.starts_with("Commands `") => {
            let commands = commands();
            assert_eq!(row.names, commands);
            true
        }
        what if what.starts_with("Profiles `") => {
            row.names.iter().all(|name| name.parse::<Profile>().is_ok())
        }
        "Without a judge, every loss is congestion" => {
            (Ruling::CONGESTION.repair, Ruling::CONGESTION.reduce) == (When::Now, When::Now)
        }
        "Limited transmit, undo of a spurious reduction (Eifel, DSACK, F-RTO), tail loss probes, PRR" =>
        {
            let modern = Profile::modern();
            modern.limited_transmit
                && modern.undo
                && modern.f_rto
                && modern.tail_loss_probe
                && modern.proportional_rate_reduction
        }
        "HyStart++, window validation" => {
            Profile::modern().hystart && Profile::modern().window_validation
        }
        "IPv4 and IPv6, ICMP and ICMPv6 echo and unreachable, UDP" => {
            hosts::answers_echo() && hosts::speaks_udp() && hosts::reports_closed_ports()
        }
        "Reassembly of IP fragments" => hosts::reassembles(),
        "Sending IP fragments, routing, multicast, neighbour discovery" => {
            hosts::fragments() || hosts::routes()
        }
        "TCP: active and passive open, data both ways, half-close, reset" => {
            hosts::half_closes() && hosts::resets()
        }
        "TCP options: MSS, window scaling, timestamps with PAWS, SACK with DSACK" => {
            let syn = hosts::syn().options;
            let offered = [syn.mss.is_some(), syn.window_scale.is_some(), syn.sack_permitted];
            offered == [true; 3]
                && syn.timestamps.is_some()
                && counts(&["TcpExtPAWSEstab", "TcpExtTCPDSACKOldSent"])
        }
        "TCP: delayed ACKs with quick ACKs, Nagle, zero-window probes" => {
            let config = TcpConfig::default();
            config.sender.profile.delayed_acks
                && !config.nodelay
                && counts(&["TcpExtDelayedACKs", "TcpExtTCPWinProbe"])
        }
        "TCP: buffers that grow to 16 MiB in each direction, or to another size (`serve --send-buffer`, `serve --receive-buffer`)" =>
        {
            let tcp = TcpConfig::default();
            [tcp.send_buffer, tcp.receive_buffer] == [ByteCount::from_mib(16); 2]
                && ["--send-buffer", "--receive-buffer"]
                    .iter()
                    .all(|flag| serve_help().contains(flag))
        }
        "TCP: path MTU discovery" => hosts::obeys_too_big(),
        "TCP: SYN cookies" => hosts::answers_every_syn(),
        "TCP: keep-alive, off by default" => {
            TcpConfig::default().keep_alive.is_none() && counts(&["TcpExtTCPKeepAlive"])
        }
        "TCP: ECN, granted to peers that request it, requested only if configured" => {
            hosts::grants_ecn() && !hosts::syn().ecn_flags
        }
        "TCP: AccECN (RFC 9768), only if configured" => {
            hosts::grants_accecn(EcnMode::PassiveAccurate)
                && !hosts::grants_accecn(TcpConfig::default().ecn)
        }
        "TCP: a new connection starts with what earlier ones to the same peer measured (RFC 9040), only if configured, as in a gateway" =>
        {
            let gateway = airtcp_gateway::carrier_config([], ByteCount::from_mib(1), 1);
            !TcpConfig::default().path_memory && gateway.tcp.path_memory
        }
        "TCP: Fast Open, urgent data out of band" => {
            hosts::syn().options.unknown > 0 || code_has("crates/stack", &["oob"])
        }
        "TCP: HACK options, transmission numbers on the wire" => {
            code_has("crates/stack", &["hack", "exid", "txnoecho"])
                || hosts::syn().options.unknown > 0
        }
        "Sockets for tokio: TCP and UDP" => {
            fn is_stream<T: AsyncRead + AsyncWrite>() {}
            is_stream::<TcpStream>();
            size_of::<UdpSocket>() > 0
        }
        "Sockets for tokio: options before connecting or listening, readiness, non-blocking calls, peeking, draining" => {
            sockets::have_tokios_calls()
        }
        "Sockets for tokio: TCP and UDP for every destination, SYNs held until the program decides" => {
            sockets::take_every_destination()
        }
        "Devices: TUN, a pair in memory" => {
            fn is_device<D: Device>() {}
            is_device::<Tun>();
            is_device::<Memory>();
            true
        }
        "Devices: WireGuard over UDP, without root (crate `airtcp-tunnel`)" => {
            fn is_device<D: Device>() {}
            is_device::<Tunnel>();
            true
        }
        "Devices: offload of checksums and segmentation, several queues of a TUN device" => {
            let _asked = TunOptions { offload: true, multi_queue: true };
            let able = memory::offloading_pair(1500, 1).0.capabilities();
            able.checksum_offload && able.segmentation_offload
        }
        "Several stacks that act as one host, each with a queue and a thread (`serve --queues`)" => {
            let family = Sibling::family(2, Clock::start()).unwrap();
            family.len() == 2 && serve_help().contains("--queues")
        }
        "Base station: forwarding between two TUN devices" => {
            let (mut bridge, packet) = (Bridge::new(1), Packet::new(vec![0x45; 20]));
            bridge.handle_packet(Instant::ZERO, Side::Wired.port(), packet.clone());
            bridge.poll_transmit(Instant::ZERO) == Some((Side::Wireless.port(), packet))
        }
        "Base station: marks, filtering of duplicate ACKs, freezing of senders (TCP-ECN); Snoop and delayed duplicate ACKs for comparison" =>
        {
            let policy = airtcp_basestation::Policy::TcpEcn;
            let config = airtcp_basestation::StationConfig { policy, ..Default::default() };
            airtcp_basestation::Station::new(&config).is_ok()
        }
        "`serve`: Prometheus metrics, a control socket for `ss`; shell completions, manual pages" =>
        {
            let serve = serve_help();
            ["--metrics", "--control"].iter().all(|flag| serve.contains(flag))
                && ["ss", "completions", "man"]
                    .iter()
                    .all(|name| commands().iter().any(|one| one == name))
        }
        what if what.starts_with("Gateway: ") => gateways::has(what),
        "A live page of `serve`, the gateways, the base station, `sim run` and `lab run` (`--live`)" =>
        {
            let shows = |program: &str| help(program).contains("--live");
            serve_help().contains("--live") && shows(env!("CARGO_BIN_EXE_basestation"))
        }
        "HTTP: GET with ranges and PUT, on both sides" => {
            let commands = commands();
            ["serve", "get", "put"].iter().all(|name| commands.iter().any(|one| one == name))
        }
        "TLS, HTTP/2" => code_has("crates/cli", &["rustls", "http2"]),
        "Base station: a control socket, a settings file, Prometheus metrics, restarts under running flows" =>
        {
            let help = help(env!("CARGO_BIN_EXE_basestation"));
            ["--control", "--config", "--metrics", "--persist"]
                .iter()
                .all(|flag| help.contains(flag))
        }
        "Base station: flows of a mobile handed over to another station (`[handoff]`)" => {
            code_has("crates/cli/src/station", &["handoffsettings"])
                && code_has("crates/basestation/src/handoff", &["export"])
        }
        "Home agent: registrations of Mobile IP, IP-in-IP tunnels, restarts with the registrations (`basestation home-agent`)" => {
            help(env!("CARGO_BIN_EXE_basestation")).contains("home-agent")
                && code_has("crates/basestation/src/home", &["encapsulate"])
        }
        "Foreign agent: registrations of visiting mobiles relayed, IP-in-IP tunnels (`basestation foreign-agent`)" => {
            help(env!("CARGO_BIN_EXE_basestation")).contains("foreign-agent")
                && code_has("crates/basestation/src/home", &["decapsulate"])
        }
        "RRTP as a state machine, and as sockets for tokio over any UDP socket" => {
            code_has("crates/net/src/rrtp", &["datagramsocket"])
        }
        "RRTP in the simulator, beside TCP" => worlds::carries_rrtp(),
        "Link emulator: rate, mahimahi traces, queues, delay, reordering, loss, corruption, outages, half duplex" => {
            links::has_every_part()
        }
        "Link emulator: policers, aggregation into bursts, changes of rate, delay and loss at given times" => {
            links::polices() && links::aggregates() && links::changes()
        }
        "Link emulator: an event for each action on a packet; named links" => {
            links::reports_drops() && airtcp_link::named::find("weak-4g").is_some()
        }
        "Link emulator: correlations of netem" => links::correlates(),
        "A radio: power by distance, collisions, tries, link retransmission" => {
            let words = "error 20% tries 7 at 0s 50 at 20s 300";
            words.parse::<airtcp_link::RadioSpec>().is_ok()
        }
        "Simulator: scenario files, dumbbells and chains, applications, intervals over seeds" => {
            worlds::runs_every_part()
        }
        "Simulator: links that change while a scenario runs" => worlds::links_change(),
        "Sweeps over any key of a scenario, on one machine or in shards, as CSV, JSON lines and pictures" => {
            worlds::sweeps_in_shards()
        }
        "Trace: pcapng with comments, a qlog event log, time-sequence graphs for xplot and as SVG" => {
            worlds::records_every_file()
        }
        "Lab: experiments with verdicts, the emulator and the simulator checked against theory and packets" => {
            worlds::lab_has_self_checks()
        }
        "Conformance tests by packetdrill" => has_crate(&["packetdrill"]),
        what => panic!("no check for the row `{what}`: add one here"),
    }
}

fn names<T: ?Sized>(entries: &[&Entry<T>]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.name).collect()
}

/// Returns the commands that `airtcp help` lists, without `help` itself.
fn commands() -> Vec<String> {
    help(env!("CARGO_BIN_EXE_airtcp"))
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        // Continuation lines of a long description are indented further.
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn help(binary: &str) -> String {
    let help = Command::new(binary).arg("--help").output().unwrap();
    String::from_utf8(help.stdout).unwrap()
}

pub(crate) fn help_of(command: &[&str]) -> String {
    let airtcp = env!("CARGO_BIN_EXE_airtcp");
    let help = Command::new(airtcp).args(command).arg("--help").output().unwrap();
    String::from_utf8(help.stdout).unwrap()
}

fn serve_help() -> String {
    help_of(&["serve"])
}

fn counts(names: &[&str]) -> bool {
    let known: BTreeSet<_> = Counters::default().iter().map(|(name, _)| name).collect();
    names.iter().all(|name| known.contains(name))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn has_crate(names: &[&str]) -> bool {
    names.iter().any(|name| root().join("crates").join(name).exists())
}

/// Returns whether any of these words is an identifier, or a part of one, in the code below a
/// directory. Comments are ignored, because they can mention missing features.
fn code_has(directory: &str, words: &[&str]) -> bool {
    let mut left: Vec<PathBuf> = vec![root().join(directory)];
    assert!(left[0].is_dir(), "there is no {directory}");
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).unwrap().to_lowercase();
            let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            for word in code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric())) {
                if words.contains(&word) {
                    return true;
                }
            }
        }
    }
    false
}
