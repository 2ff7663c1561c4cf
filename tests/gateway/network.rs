//! The gateways and the network of the tests.

use std::io::{BufRead, BufReader, Lines, Read};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use airtcp_link::Link;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Namespace, or_skip, requirements};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{BYTES, LINK, Outcome, airtcp, body, keys};

/// A running gateway.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) stderr: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(super) fn start(namespace: &Namespace, arguments: &[&str]) -> Outcome<Self> {
        let mut running = Self::of(namespace, airtcp(arguments))?;
        running.wait_for("ready")?;
        Ok(running)
    }

    pub(super) fn of(namespace: &Namespace, mut command: Command) -> Outcome<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = namespace.spawn_child(command)?;
        let stderr = BufReader::new(child.stderr.take().ok_or("it is piped")?).lines();
        Ok(Self { child, stderr })
    }

    /// Waits for a line that contains `words`.
    pub(super) fn wait_for(&mut self, words: &str) -> Outcome {
        let mut before = Vec::new();
        for line in self.stderr.by_ref() {
            let line = line?;
            if line.contains(words) {
                return Ok(());
            }
            before.push(line);
        }
        Err(format!("it ended without `{words}`: {before:?}").into())
    }

    pub(super) fn terminate(&self) -> Outcome {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status()?.success());
        Ok(())
    }

    /// Stops the gateway with SIGTERM; returns its stdout and stderr.
    pub(super) fn stop(mut self) -> Outcome<(String, String)> {
        self.terminate()?;
        let mut stdout = String::new();
        self.child.stdout.take().ok_or("it is piped")?.read_to_string(&mut stdout)?;
        let stderr = self.stderr.by_ref().collect::<Result<Vec<_>, _>>()?.join("\n");
        assert_eq!(self.child.wait()?.code(), Some(0), "{stderr}");
        Ok((stdout, stderr))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two machines with keys, a link between them, and servers behind the far machine.
pub(super) struct Network {
    pub(super) dumbbell: Dumbbell,
    pub(super) servers: Namespace,
    pub(super) directory: TempDir,
    pub(super) public: [String; 2],
}

impl Network {
    pub(super) fn new() -> Outcome<Self> {
        Self::over(LINK)
    }

    pub(super) fn over(link: &str) -> Outcome<Self> {
        let spec = link.parse()?;
        let dumbbell =
            Dumbbell::build(Plan::new(Host::Kernel, Link::new(&spec, &spec)?, Host::Kernel))?;
        let servers = Namespace::new()?;
        let far = dumbbell.right().namespace();
        far.connect("lan0", &servers, "lan0")?;
        for (namespace, host) in [(far, 1), (&servers, 2)] {
            let addresses = [format!("192.0.2.{host}/24"), format!("2001:db8::{host}/64")];
            let addresses = addresses
                .map(|address| address.parse())
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?;
            namespace.configure("lan0", &addresses, None)?;
        }
        let directory = tempfile::tempdir()?;
        let near = keys::generate(&directory.path().join("near.key"))?;
        let far = keys::generate(&directory.path().join("far.key"))?;
        Ok(Self { dumbbell, servers, directory, public: [near, far] })
    }

    pub(super) fn near(&self) -> &Namespace {
        self.dumbbell.left().namespace()
    }

    pub(super) fn far(&self) -> &Namespace {
        self.dumbbell.right().namespace()
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Starts the far gateway, which may dial the servers behind it and its own loopback address.
    pub(super) fn start_far(&self, more: &[&str]) -> Outcome<Running> {
        let (key, [near, _]) = (self.path("far.key"), &self.public);
        self.start_far_with(&["--key", &key, "--peer", near], more)
    }

    pub(super) fn start_far_with(&self, carrier: &[&str], more: &[&str]) -> Outcome<Running> {
        let own = [
            "--allow",
            "127.0.0.1",
            "--allow",
            "::1",
            "--allow",
            "192.0.2.0/24",
            "--allow",
            "2001:db8::/32",
        ];
        Running::start(self.far(), &[&["gateway", "far"], carrier, &own[..], more].concat())
    }

    /// Starts a near gateway, and waits until the far gateway answers.
    pub(super) fn start_near(&self, endpoint: IpAddr, more: &[&str]) -> Outcome<Running> {
        let mut near = self.launch_near(endpoint, more)?;
        near.wait_for("ready")?;
        near.wait_for("answers")?;
        Ok(near)
    }

    pub(super) fn launch_near(&self, endpoint: IpAddr, more: &[&str]) -> Outcome<Running> {
        let (key, [_, far]) = (self.path("near.key"), &self.public);
        let endpoint = SocketAddr::new(endpoint, 51_820).to_string();
        let line = ["gateway", "near", "--key", &key, "--peer", far, "--endpoint", &endpoint];
        Running::of(self.near(), airtcp(&[&line, more].concat()))
    }

    /// Starts an HTTP server with one body.
    pub(super) fn serve(namespace: &Namespace, at: &str) -> Outcome<SocketAddr> {
        let at = at.to_owned();
        let listener = namespace.block_on(async move { TcpListener::bind(at).await })?;
        let address = listener.local_addr()?;
        namespace.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        request.push(stream.read_u8().await?);
                    }
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\nconnection: close\r\n\r\n"
                    );
                    stream.write_all(head.as_bytes()).await?;
                    stream.write_all(&body()).await
                });
            }
        });
        Ok(address)
    }

    /// Runs curl at the near side.
    pub(super) fn curl(&self, arguments: &[&str]) -> Outcome<Output> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "60"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(self.near().spawn_child(command)?.wait_with_output()?)
    }

    pub(super) fn fetch(&self, arguments: &[&str]) -> Outcome {
        let output = self.curl(arguments)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && output.stdout == body(), "{arguments:?}: {stderr}");
        Ok(())
    }

    pub(super) fn refused(&self, arguments: &[&str], code: i32, words: &str) -> Outcome {
        let output = self.curl(arguments)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
        Ok(())
    }
}

/// Whether namespaces and curl are available; prints a message if the test is skipped.
pub(super) fn is_possible() -> bool {
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    if !has_curl {
        assert!(std::env::var_os("AIRTCP_REQUIRE_TOOLS").is_none(), "curl is not installed");
        println!("skipped: curl is not installed");
    }
    has_curl && or_skip(requirements()).is_some()
}
