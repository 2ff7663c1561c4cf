//! A stack of the command's own, and connections from it.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use airtcp_device::Tun;
use airtcp_net::{Stack, StackThread, TcpStream};
use airtcp_stack::host::Cidr;
use airtcp_stack::tcp::{State, Unreachable};
use airtcp_testbed::here;
use anyhow::{Context, anyhow, bail};
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::place::Place;
use crate::attach::AttachArgs;
use crate::output;
use crate::signals::Signals;
use crate::ss::Served;

/// How long the connections may take to close at the end.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// The time without an answer after which a note says what may be missing.
const SILENCE: Duration = Duration::from_secs(3);

/// How often the state of a connection attempt is checked for an ICMP error.
const LOOK: Duration = Duration::from_millis(100);

/// How much longer connecting is retried after an ICMP error: a router may have lost its route for
/// a moment. The stack itself retries for minutes (RFC 9293 section 3.9.2.2, MUST-56).
const GRACE: Duration = Duration::from_secs(3);

/// The maximum number of connections that are searched for the attempt; besides it there are only
/// those left by redirections.
const MOST: usize = 100;

/// The stack of a running command.
pub(super) struct Session {
    /// Work that keeps a processor busy, such as hashing, must not run on this thread.
    thread: StackThread,
    tun: String,
    addresses: Vec<Cidr>,
}

impl Session {
    /// Opens the device, configures it if it is new, and starts a stack on it.
    ///
    /// # Errors
    /// The device cannot be opened or configured, or is down; the text says what to do.
    pub(super) async fn start(command: &'static str, attach: &AttachArgs) -> anyhow::Result<Self> {
        let (file, config, is_new) = attach.open()?;
        let name = attach.tun.clone();
        if is_new {
            attach.kernel_side().apply(&name).await?;
        } else if let Some(lack) = attach.lack()? {
            if lack.is_down {
                bail!(lack.text);
            }
            output::note(format_args!("note: {}", lack.text));
        }
        let addresses = config.addresses.clone();
        let start = || Stack::new(Tun::new(file)?, config).context("starting the stack");
        let thread = StackThread::start(command, start)?;
        if let Some(path) = &attach.control {
            let (device, stacks) = (name.clone(), vec![thread.stack().clone()]);
            Served { command, device, stacks }.listen(path)?;
        }
        Ok(Self { thread, tun: name, addresses })
    }

    /// Returns the stack.
    pub(super) const fn stack(&self) -> &Stack {
        self.thread.stack()
    }

    /// Returns the runtime for tasks that serve its connections.
    pub(super) const fn runtime(&self) -> &Handle {
        self.thread.runtime()
    }

    /// Ends these tasks, and waits for their end.
    pub(super) fn end(self) {
        self.thread.join();
    }

    /// Connects to the first address of a host that answers.
    ///
    /// # Errors
    /// The name has no address of the stack's IP versions, or none answers.
    pub(super) async fn connect(&self, place: &Place) -> anyhow::Result<TcpStream> {
        let mut failure = None;
        for address in self.resolve(place).await? {
            match self.call(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| anyhow!("{place} has no address")))
    }

    async fn call(&self, remote: SocketAddr) -> anyhow::Result<TcpStream> {
        let mut connecting = pin!(self.stack().connect(remote));
        let mut unreachable = pin!(self.unreachable(remote));
        let mut silence = pin!(sleep(SILENCE));
        let mut is_silent = false;
        let connected = loop {
            tokio::select! {
                connected = &mut connecting => break connected,
                error = &mut unreachable => bail!("{remote}: {error} (ICMP)"),
                () = &mut silence, if !is_silent => {
                    is_silent = true;
                    if self.soft_error(remote).is_none() {
                        let hint = self.hint(remote.ip());
                        let hint = hint.map_or(String::new(), |hint| format!(": {hint}"));
                        output::note(format_args!("note: {remote} does not answer yet{hint}"));
                    }
                }
            }
        };
        connected.map_err(|error| {
            // A peer that refuses the connection can be reached, so that the hint does not apply.
            let is_lost = error.kind() == ErrorKind::TimedOut || remote.ip().is_loopback();
            let hint = self.hint(remote.ip()).filter(|_| is_lost);
            let place = remote.to_string();
            let mut text = error.to_string();
            if !text.starts_with(&place) {
                text = format!("{place}: {text}");
            }
            match hint {
                Some(hint) => anyhow!("{text}: {hint}"),
                None => anyhow!(text),
            }
        })
    }

    /// Waits for an ICMP error of the connection attempt to `remote`, prints it, and waits for
    /// [`GRACE`].
    async fn unreachable(&self, remote: SocketAddr) -> Unreachable {
        let error = loop {
            sleep(LOOK).await;
            if let Some(error) = self.soft_error(remote) {
                break error;
            }
        };
        let more = GRACE.as_secs();
        output::note(format_args!("note: {remote}: {error} (ICMP); retrying for {more} s"));
        sleep(GRACE).await;
        error
    }

    /// Returns the last ICMP error of the pending connection attempt to `remote`.
    fn soft_error(&self, remote: SocketAddr) -> Option<Unreachable> {
        // A command has one connection attempt at a time.
        let listed = self.stack().listing(MOST);
        let call = listed.iter().find(|one| one.peer == remote && one.state == State::SynSent);
        call.and_then(|call| call.info.as_ref()?.soft_error)
    }

    /// Resolves a host with the operating system; returns the addresses of the stack's IP versions.
    async fn resolve(&self, place: &Place) -> anyhow::Result<Vec<SocketAddr>> {
        let found = place.lookup().await?;
        let has =
            |ip: IpAddr| self.addresses.iter().any(|own| own.address().is_ipv4() == ip.is_ipv4());
        let usable: Vec<_> = found.iter().copied().filter(|address| has(address.ip())).collect();
        match (usable.is_empty(), found.first()) {
            (false, _) => Ok(usable),
            (true, None) => bail!("{} has no address", place.host),
            (true, Some(only)) => {
                let (version, example) = match only.is_ipv4() {
                    true => ("IPv4", "10.0.0.2/24"),
                    false => ("IPv6", "fd00::2/64"),
                };
                let (host, address) = (&place.host, only.ip().to_string());
                let subject = match *host == address {
                    true => format!("to call {address},"),
                    false => format!("{host} is {address}, and"),
                };
                bail!(
                    "{subject} this stack has no {version} address: add one, for example --address {example}"
                )
            }
        }
    }

    /// Returns the probable reason why `remote` does not answer, if one is known.
    fn hint(&self, remote: IpAddr) -> Option<String> {
        let tun = &self.tun;
        if remote.is_loopback() {
            return Some(format!(
                "services on this machine are reachable at the kernel's address on {tun}, not by loopback"
            ));
        }
        let is_near = self.addresses.iter().any(|own| own.contains(remote));
        let is_kernels = here::interfaces().is_ok_and(|all| {
            all.iter().any(|one| one.addresses.iter().any(|own| own.address == remote))
        });
        (!is_near && !is_kernels).then(|| {
            let key = match remote {
                IpAddr::V4(_) => "net.ipv4.ip_forward",
                IpAddr::V6(_) => "net.ipv6.conf.all.forwarding",
            };
            let is_on = std::fs::read_to_string(format!("/proc/sys/{}", key.replace('.', "/")))
                .is_ok_and(|text| text.trim() == "1");
            match is_on {
                true => format!(
                    "the kernel forwards packets to it; check that the return route leads to {tun}: docs/tools.md lists \
                     the commands"
                ),
                false => format!(
                    "the kernel does not forward packets; type: sudo sysctl -w {key}=1; docs/tools.md lists the commands \
                     for other hosts"
                ),
            }
        })
    }
}

/// Runs `work` on a stack of its own until it ends or a signal arrives.
///
/// # Errors
/// Those of `work`; the stack does not start or loses its device; a signal arrived.
pub(super) fn run<T>(
    command: &'static str,
    attach: &AttachArgs,
    work: impl AsyncFnOnce(&Session) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let session = Session::start(command, attach).await?;
        let outcome = tokio::select! {
            outcome = work(&session) => outcome,
            signal = signals.wait() => Err(signal.into()),
            error = session.stack().closed() => Err(anyhow!("{error}")),
        };
        tokio::select! {
            () = session.stack().shutdown_within(PATIENCE) => {}
            _ = signals.wait() => session.stack().shutdown_within(Duration::ZERO).await,
        }
        session.end();
        outcome
    });
    // Do not wait for input on stdin, nor for a disk that hangs.
    runtime.shutdown_timeout(Duration::from_millis(100));
    outcome
}
