//! One file transferred over its own link.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use airtcp_link::{Link, LinkSpec};
use airtcp_stack::HostConfig;
use airtcp_testbed::dumbbell::{Dumbbell, End, Host, Plan};
use data_encoding::BASE64;
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::link::{LinkCase, Size};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The sender of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// RRTP that knows only that it has the link to itself.
    Native,
    /// RRTP that also knows the link's numbers.
    Seeded,
    /// The kernel's TCP with this congestion control.
    Kernel(&'static str),
    /// This stack's TCP with this combination.
    Ours(&'static str),
}

pub(crate) const SENDERS: [Sender; 5] = [
    Sender::Native,
    Sender::Seeded,
    Sender::Kernel("cubic"),
    Sender::Kernel("bbr"),
    Sender::Ours("rack/cubic"),
];

impl Sender {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Native => "rrtp".to_owned(),
            Self::Seeded => "rrtp-seeded".to_owned(),
            Self::Kernel(control) => format!("kernel-{control}"),
            Self::Ours(combination) => format!("airtcp-{combination}"),
        }
    }
}

/// A directory with the served files.
pub(crate) struct Site(TempDir);

impl Site {
    /// Writes the files that the transfers need.
    pub(crate) fn new(transfers: &[Transfer]) -> Outcome<Self> {
        let directory = tempfile::tempdir()?;
        for Size { name, bytes } in transfers.iter().map(|one| one.size) {
            let path = directory.path().join(name);
            if !path.exists() {
                fs::write(path, content(*bytes))?;
            }
        }
        Ok(Self(directory))
    }
}

fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One transfer: a link, a file, a sender and a seed.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) link: &'static LinkCase,
    pub(crate) size: &'static Size,
    pub(crate) sender: Sender,
    pub(crate) seed: u64,
}

impl Transfer {
    pub(crate) fn name(&self) -> String {
        format!("{} {} {}", self.link.name, self.size.name, self.sender.name())
    }

    /// Returns the transfer's duration in seconds, from the call to the last byte.
    pub(crate) fn run(&self, site: &Site) -> Outcome<f64> {
        let (down, up): (LinkSpec, LinkSpec) =
            (self.spec(self.link.down).parse()?, self.spec(self.link.up).parse()?);
        let left = match self.sender {
            Sender::Ours(combination) => {
                let mut config = HostConfig::new([]);
                config.tcp.sender.combination = combination.parse()?;
                Host::Stack(Box::new(config))
            }
            _ => Host::Kernel,
        };
        let dumbbell = Dumbbell::build(Plan::new(left, Link::new(&down, &up)?, Host::Kernel))?;
        let address = Dumbbell::address(Dumbbell::LEFT, false);
        let scheme = match self.sender {
            Sender::Native | Sender::Seeded => "rrtp",
            Sender::Kernel(_) | Sender::Ours(_) => "tcp",
        };
        let _server = self.serve(site, dumbbell.left(), &format!("{scheme}://{address}"))?;
        let directory = tempfile::tempdir()?;
        let mut get = self.command("quickget", directory.path())?;
        get.arg(format!("{scheme}://{address}/{}", self.size.name));
        get.args(["-o", "file", "--json"]).current_dir(&directory);
        let client = dumbbell.right().namespace().spawn_child(get)?;
        let report: Value = serde_json::from_str(&self.wait(client)?)?;
        report["seconds"].as_f64().ok_or_else(|| "the report has no time".into())
    }

    fn spec(&self, link: &str) -> String {
        format!("{link} seed {}", self.seed)
    }

    /// A command of `airtcp`. For RRTP it gets a profile with what the sender may know of the link.
    fn command(&self, name: &str, directory: &std::path::Path) -> Outcome<Command> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
        command.arg(name).env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let LinkCase { rate, rtt_ms, loss, .. } = self.link;
        let numbers = match self.sender {
            Sender::Native => String::new(),
            Sender::Seeded => format!(
                "send-rate-bits-per-second = {rate}\nround-trip-time-ms = {rtt_ms}\nloss-rate = {loss:?}\n"
            ),
            Sender::Kernel(_) | Sender::Ours(_) => return Ok(command),
        };
        let path = directory.join("profile.toml");
        fs::write(&path, format!("kind = \"wireless-last-hop\"\n{numbers}"))?;
        command.arg("--profile").arg(path);
        Ok(command)
    }

    /// Starts the server. Dropping the result ends it.
    fn serve(&self, site: &Site, left: &End, at: &str) -> Outcome<Option<(Running, TempDir)>> {
        let namespace = left.namespace();
        let address = SocketAddr::from((Dumbbell::address(Dumbbell::LEFT, false), 80));
        let content = fs::read(site.0.path().join(self.size.name))?;
        match (left, self.sender) {
            (End::Stack(stack, _), _) => {
                let listener = stack.listen(address, 1)?;
                drop(
                    namespace
                        .spawn(async move { answer(listener.accept().await?.0, content).await }),
                );
                return Ok(None);
            }
            (_, Sender::Kernel(control)) => {
                let listener = namespace.block_on(async move {
                    let listener = TcpListener::bind(address).await?;
                    let control = OsString::from(control);
                    setsockopt(&listener, sockopt::TcpCongestion, &control)?;
                    Ok::<_, io::Error>(listener)
                })?;
                drop(
                    namespace
                        .spawn(async move { answer(listener.accept().await?.0, content).await }),
                );
                return Ok(None);
            }
            _ => {}
        }
        let directory = tempfile::tempdir()?;
        let mut serve = self.command("quickserve", directory.path())?;
        serve.arg(site.0.path()).args(["--listen", at]);
        let mut server = Running(namespace.spawn_child(serve)?);
        let notes = server.0.stderr.take().ok_or("stderr is piped")?;
        let mut lines = BufReader::new(notes).lines();
        while lines.next().ok_or("quickserve has ended")?? != "ready" {}
        Ok(Some((server, directory)))
    }

    /// Returns the client's output if it succeeds in time.
    fn wait(&self, client: Child) -> Outcome<String> {
        let limit = Duration::from_secs(120) + self.link.ideal(self.size.bytes) * 6;
        let begin = Instant::now();
        let mut client = Running(client);
        while client.0.try_wait()?.is_none() {
            if begin.elapsed() > limit {
                return Err(format!("not done after {} s", limit.as_secs()).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = |pipe: &mut dyn std::io::Read| {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        };
        let said = text(client.0.stderr.as_mut().ok_or("stderr is piped")?)?;
        match client.0.wait()?.success() {
            true => Ok(text(client.0.stdout.as_mut().ok_or("stdout is piped")?)?),
            false => Err(said.trim().to_owned().into()),
        }
    }
}

/// Serves one response over TCP, the kernel's or this stack's, with the header that a client needs.
async fn answer<S>(mut stream: S, content: Vec<u8>) -> io::Result<usize>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await? > 0 {}
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nrepr-digest: {}\r\n\r\n",
        content.len(),
        digest(&content)
    );
    stream.write_all(&[answer.as_bytes(), &content].concat()).await?;
    stream.shutdown().await?;
    // Wait until the client has everything and closes.
    stream.read_to_end(&mut head).await
}

/// The SHA-256 as a value of `Repr-Digest` (RFC 9530 section 3), without which `quickget` rejects a
/// response.
fn digest(content: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64.encode(&Sha256::digest(content)))
}
