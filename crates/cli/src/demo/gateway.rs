//! `airtcp demo --gateway`: curl downloads over a lossy link, directly and through two gateways.
//!
//! Packets are real, and curl and the server use the kernel's TCP. The gateways are this program,
//! started as a user starts it: `airtcp gateway far` and `airtcp gateway near`, each in the network
//! namespace of its machine.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airtcp_link::Link;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Cidr, Namespace, peer, requirements};
use anyhow::{Context, bail};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::args::DemoArgs;
use crate::output;
use crate::table::{link_lines, rate_unit, table, wrapped};
use crate::value::LinkPair;

/// The kernel's congestion controls of the server in direct downloads; those that the kernel lacks
/// are skipped.
const DIRECT: [&str; 2] = ["cubic", "bbr"];
/// The server's congestion control in the download through the gateways: Linux's default.
const CARRIED: &str = "cubic";
/// The network between the far gateway and the server.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 81, 0, 2));
const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 81, 0, 1));
/// The listening address of the near gateway's proxy.
const PROXY: &str = "127.0.0.1:1080";
/// How long the gateways may take to connect.
const START: Duration = Duration::from_secs(20);
/// The interval between attempts.
const AGAIN: Duration = Duration::from_millis(200);
/// Size of a write of the server, in bytes.
const CHUNK: usize = 64 * 1024;
/// The maximum length of a request to the server, in bytes.
const REQUEST: u64 = 16 * 1024;
/// The exit code of a curl that `--max-time` ended.
const TIMED_OUT: i32 = 28;

/// Downloads directly and through the gateways, and prints the results.
///
/// # Errors
/// Network namespaces are unavailable, curl is missing, the gateways do not start, or a download
/// fails.
pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    // Before anything else: a process with several threads cannot enter a user namespace.
    airtcp_testbed::enter_user_namespace_if_needed()
        .and_then(|()| requirements())
        .context("--gateway sends real packets")?;
    let machines = Machines::build(args)?;
    let mut report = Report::new(args);
    let mut direct = Vec::new();
    for control in DIRECT {
        match machines.serve(control) {
            Ok(at) => direct.push((control, at)),
            Err(error) => {
                output::note(format_args!(
                    "note: {control} is left out: {}",
                    output::explain(&error)
                ));
            }
        }
    }
    let runs = direct.len() + 1;
    for (number, (control, at)) in (1..).zip(direct) {
        output::note(format_args!("[{number}/{runs}] direct, the server sends with {control}"));
        let row =
            Row::new(format!("direct, kernel {control}"), machines.curl(at, args.phase(), None)?);
        report.rows.push(row);
    }
    let strategies = args.sender.combination()?.to_string();
    output::note(format_args!("[{runs}/{runs}] carried by {strategies}"));
    let files = tempfile::tempdir().context("making a directory for keys and sockets")?;
    let _gateways = machines.carry(files.path(), &strategies)?;
    let at = machines.serve(CARRIED)?;
    machines.until_carried(at)?;
    // The gateways have read their keys. Without the directory, nothing is left when this process is
    // killed.
    drop(files);
    report.rows.push(Row::new(
        format!("gateway, {strategies}"),
        machines.curl(at, args.phase(), Some(PROXY))?,
    ));
    output::print_result(&report, args.json)
}

/// The client's machine, the lossy link, the machine at its other end, and the server behind that.
struct Machines {
    link: Dumbbell,
    server: Namespace,
}

/// Child processes that are killed when this is dropped.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // An error means that the process has already exited.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Machines {
    fn build(args: &DemoArgs) -> anyhow::Result<Self> {
        let LinkPair { forth, back } = args.link();
        // Downloads go from right to left.
        let link = Link::new(&back, &forth)?;
        let link = Dumbbell::build(Plan::new(Host::Kernel, link, Host::Kernel))?;
        let server = Namespace::new()?;
        let far = link.right().namespace();
        far.connect("lan0", &server, "eth0")?;
        far.configure("lan0", &[cidr(ROUTER, 24)], None)?;
        server.configure("eth0", &[cidr(SERVER, 24)], None)?;
        far.set_sysctl("net.ipv4.ip_forward", "1")?;
        let network = Cidr { address: Ipv4Addr::new(10, 80, 0, 0).into(), prefix: 24 };
        server.add_route("eth0", network, Some(ROUTER))?;
        let servers = Cidr { address: Ipv4Addr::new(10, 81, 0, 0).into(), prefix: 24 };
        link.left().namespace().add_route("link0", servers, None)?;
        Ok(Self { link, server })
    }

    /// Starts a server that sends until the client closes, and returns its address.
    fn serve(&self, congestion: &'static str) -> anyhow::Result<SocketAddr> {
        let (listener, at) = self.server.run(move || {
            let listener = peer::listen((SERVER, 0).into(), Some(congestion))?;
            let at = listener.local_addr()?;
            anyhow::Ok((listener, at))
        })?;
        drop(self.server.spawn(serve(listener)));
        Ok(at)
    }

    /// Starts both gateways. Their control sockets are in `files`: in the usual directory, `airtcp
    /// gateway ctl` would take them for those of the user.
    fn carry(&self, files: &Path, strategies: &str) -> anyhow::Result<Running> {
        let program = std::env::current_exe().context("finding this program")?;
        let gateway = |machine: &Namespace, name: &str, arguments: &[&str]| {
            let log = files.join(format!("{name}.log"));
            let mut command = Command::new(&program);
            command.args(["gateway", name]).args(arguments).args(["--strategies", strategies]);
            command.arg("--control").arg(files.join(format!("{name}.sock")));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
            machine.spawn_child(command).with_context(|| format!("starting the {name} gateway"))
        };
        let key = |name: &str| -> anyhow::Result<(String, String)> {
            let path = files.join(name).display().to_string();
            let made =
                Command::new(&program).args(["gateway", "keygen", "--out", &path]).output()?;
            if !made.status.success() {
                bail!("making a key: {}", String::from_utf8_lossy(&made.stderr).trim());
            }
            Ok((path, String::from_utf8_lossy(&made.stdout).trim().to_owned()))
        };
        let ((near_key, near), (far_key, far)) = (key("near.key")?, key("far.key")?);
        let endpoint =
            SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), 51820).to_string();
        let mut running = Running(Vec::new());
        let machines = [self.link.right().namespace(), self.link.left().namespace()];
        running.0.push(gateway(machines[0], "far", &["--key", &far_key, "--peer", &near])?);
        let near = ["--key", &near_key, "--peer", &far, "--endpoint", &endpoint, "--socks5", PROXY];
        running.0.push(gateway(machines[1], "near", &near)?);
        let began = Instant::now();
        loop {
            for (child, name) in running.0.iter_mut().zip(["far", "near"]) {
                if let Some(status) = child.try_wait()? {
                    let mut log = String::new();
                    File::open(files.join(format!("{name}.log")))?
                        .take(CHUNK as u64)
                        .read_to_string(&mut log)?;
                    bail!("the {name} gateway ended ({status}): {}", log.trim());
                }
            }
            if self.link.left().namespace().run(|| std::net::TcpStream::connect(PROXY)).is_ok() {
                return Ok(running);
            }
            if began.elapsed() > START {
                bail!("the near gateway did not listen within {} s", START.as_secs());
            }
            thread::sleep(AGAIN);
        }
    }

    /// Waits until the gateways are connected.
    fn until_carried(&self, at: SocketAddr) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < START {
            if self.curl(at, AGAIN * 5, Some(PROXY)).is_ok_and(|got| got.bytes > 0.0) {
                return Ok(());
            }
            thread::sleep(AGAIN);
        }
        bail!("the gateways did not find each other within {} s", START.as_secs())
    }

    /// Downloads for `time`.
    fn curl(
        &self,
        at: SocketAddr,
        time: Duration,
        proxy: Option<&str>,
    ) -> anyhow::Result<Download> {
        let mut command = Command::new("curl");
        command.args(["-q", "--silent", "--show-error", "--output", "/dev/null"]);
        command.args(["--max-time", &time.as_secs_f64().to_string()]);
        command.args(["--write-out", "%{size_download} %{time_starttransfer} %{time_total}"]);
        if let Some(proxy) = proxy {
            command.args(["--socks5-hostname", proxy]);
        }
        for variable in ["http_proxy", "all_proxy", "ALL_PROXY"] {
            command.env_remove(variable);
        }
        command.arg(format!("http://{at}/"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.link.left().namespace().spawn_child(command);
        let done = child.context("starting curl; is it installed?")?.wait_with_output()?;
        // `--max-time` normally ends the download.
        if !done.status.success() && done.status.code() != Some(TIMED_OUT) {
            bail!("{}", String::from_utf8_lossy(&done.stderr).trim());
        }
        let text = String::from_utf8_lossy(&done.stdout);
        let figures: Vec<f64> = text.split(' ').filter_map(|figure| figure.parse().ok()).collect();
        let [bytes, first, total] = figures[..] else { bail!("curl said {text:?}") };
        Ok(Download { bytes, first, total })
    }
}

fn cidr(address: IpAddr, prefix: u8) -> Cidr {
    Cidr { address, prefix }
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream));
    }
}

/// Answers a request with an endless body.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    let (reader, mut writer) = stream.split();
    let mut reader = reader.take(REQUEST);
    while !request.ends_with(b"\r\n\r\n") {
        request.push(reader.read_u8().await?);
    }
    writer.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await?;
    loop {
        writer.write_all(&[b'a'; CHUNK]).await?;
    }
}

/// The statistics of a download from curl.
#[derive(Clone, Copy, Debug)]
struct Download {
    bytes: f64,
    /// Seconds until the first byte of the response.
    first: f64,
    total: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    /// Towards curl, and towards the server.
    link: [String; 2],
    seconds: f64,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    way: String,
    /// In bit/s, from the first byte of the response.
    goodput: f64,
    bytes: f64,
    /// Seconds until the first byte.
    first_byte: f64,
}

impl Row {
    fn new(way: String, got: Download) -> Self {
        let goodput = got.bytes * 8.0 / (got.total - got.first).max(f64::EPSILON);
        Self { way, goodput, bytes: got.bytes, first_byte: got.first }
    }
}

impl Report {
    fn new(args: &DemoArgs) -> Self {
        let LinkPair { forth, back } = args.link();
        Self {
            link: [forth.to_string(), back.to_string()],
            seconds: args.phase().as_secs_f64(),
            rows: Vec::new(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factor, unit) = rate_unit(self.rows.iter().map(|row| row.goodput).fold(0.0, f64::max));
        let header = ["curl's download", &format!("goodput\n{unit}"), "MB", "first byte\nms"];
        let cells = self.rows.iter().map(|row| {
            [
                row.way.clone(),
                format!("{:.2}", row.goodput * factor),
                format!("{:.2}", row.bytes / 1e6),
                format!("{:.0}", row.first_byte * 1e3),
            ]
        });
        writeln!(f, "{} s each, one after the other, real packets", self.seconds)?;
        writeln!(f, "{}\n{}", link_lines(&self.link), table(header, 1, cells))?;
        let advice = "curl and the server use the kernel's TCP; a direct download is as fast as the server's congestion control, \
                      which others choose. The gateways are `airtcp gateway near` and `airtcp gateway far`, one at each end \
                      of the link: see docs/gateway.md. --strategies carries with another sender.";
        write!(f, "{}", wrapped(advice, 0))
    }
}
