//! A stack of a command's own, and calls from it.

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

/// How long the peers have for the goodbye.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// After so long without an answer, the user is told what may be missing.
const SILENCE: Duration = Duration::from_secs(3);

/// How often it is looked whether the network says why there is none.
const LOOK: Duration = Duration::from_millis(100);

/// How much longer a peer is called that the network says cannot be reached: a router may have lost
/// its way for a moment, and the stack itself goes on for minutes (RFC 9293 section 3.9.2.2,
/// MUST-56).
const GRACE: Duration = Duration::from_secs(3);

/// The most connections that are looked at: one call, and those that redirections have left.
const MOST: usize = 100;

/// A stack for as long as a command runs.
pub(super) struct Session {
    /// What keeps a processor busy for the command, such as hashing, is not on this thread.
    thread: StackThread,
    tun: String,
    addresses: Vec<Cidr>,
}

impl Session {
    /// Opens the device, which is set up if it is new, and starts a stack on it.
    ///
    /// # Errors
    /// The device cannot be had, or is down; what to do is said.
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

    /// The stack.
    pub(super) const fn stack(&self) -> &Stack {
        self.thread.stack()
    }

    /// Where what serves its connections belongs.
    pub(super) const fn runtime(&self) -> &Handle {
        self.thread.runtime()
    }

    /// Ends what serves its connections, and waits for that.
    pub(super) fn end(self) {
        self.thread.join();
    }

    /// Calls the first address of a host that answers.
    ///
    /// # Errors
    /// The name has no address of a version that the stack has, or nobody answers.
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
            // Who says no has been reached.
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

    /// Waits until the network says that `remote` cannot be reached, and a while longer.
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

    /// What the network said last of a call that nobody has answered yet.
    fn soft_error(&self, remote: SocketAddr) -> Option<Unreachable> {
        // A command has one call at a time.
        let listed = self.stack().listing(MOST);
        let call = listed.iter().find(|one| one.peer == remote && one.state == State::SynSent);
        call.and_then(|call| call.info.as_ref()?.soft_error)
    }

    /// The addresses of a host that the stack can call, as the operating system gives them.
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

    /// What may be in the way to an address, if anything is known to be.
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

/// Runs `work` on a stack of its own, until it is done or this process is told to end.
///
/// # Errors
/// Those of `work`; the stack does not start, or loses its device; the process was told to end.
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
    // Nobody waits for a line to be typed, or for a disk that hangs.
    runtime.shutdown_timeout(Duration::from_millis(100));
    outcome
}
