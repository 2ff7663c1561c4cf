//! A stack under test: a process of its own in a namespace of its own.

use std::fs;
use std::io::{self, BufRead, BufReader, Lines};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use airtcp_testbed::{Cidr, Namespace};

use crate::client::{ADDRESSES, PREFIX, STACK, address, connect};
use crate::services::Service;
use crate::{airtcp_stack, client, connections, kernel, smoltcp_loop};

/// The interface on the kernel's side, and on the stack's if that is the kernel's, too.
pub(crate) const DEVICE: &str = "tun0";
/// Connections that may wait to be accepted.
pub(crate) const BACKLOG: usize = 1024;
const MTU: u32 = 1500;
/// The line by which a stack says that it is up, as `airtcp serve` does.
const READY: &str = "ready";
/// The argument with which this program is a stack under test, and nothing else.
pub(crate) const SERVE: &str = "--serve";
/// What /proc calls a kB.
const KIB: u64 = 1024;

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `airtcp serve --no-offload`.
    Airtcp,
    /// `airtcp serve` with its defaults.
    AirtcpOffload,
    /// On two queues, with a thread for each.
    AirtcpQueues,
    AirtcpOffloadQueues,
    Smoltcp,
    SmoltcpOffload,
    Kernel,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Airtcp,
        Self::AirtcpOffload,
        Self::AirtcpQueues,
        Self::AirtcpOffloadQueues,
        Self::Smoltcp,
        Self::SmoltcpOffload,
        Self::Kernel,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Airtcp => "airtcp",
            Self::AirtcpOffload => "airtcp-offload",
            Self::AirtcpQueues => "airtcp-queues",
            Self::AirtcpOffloadQueues => "airtcp-offload-queues",
            Self::Smoltcp => "smoltcp",
            Self::SmoltcpOffload => "smoltcp-offload",
            Self::Kernel => "kernel",
        }
    }

    fn serve(self, echoes: usize, is_copied: bool) -> io::Result<()> {
        match self {
            Self::Airtcp if is_copied => airtcp_stack::serve(false),
            Self::AirtcpOffload if is_copied => airtcp_stack::serve(true),
            Self::Airtcp => airtcp_serve("--no-offload"),
            Self::AirtcpOffload => airtcp_serve(""),
            Self::AirtcpQueues => airtcp_serve("--no-offload --queues 2"),
            Self::AirtcpOffloadQueues => airtcp_serve("--queues 2"),
            Self::Smoltcp => smoltcp_loop::serve(false, echoes),
            Self::SmoltcpOffload => smoltcp_loop::serve(true, echoes),
            Self::Kernel => kernel::serve(),
        }
    }
}

/// How one is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Connections for echoes that may begin at the same time.
    pub(crate) echoes: usize,
    /// The stack's application copies what it reads.
    pub(crate) is_copied: bool,
    /// The one CPU that it runs on.
    pub(crate) cpu: Option<usize>,
}

/// It ends when this is dropped, and when this process is killed.
pub(crate) struct Subject {
    child: Child,
    client: Namespace,
    /// The namespace it runs in, unless its device is in the client's.
    _own: Option<Namespace>,
    /// What it says on stderr.
    notes: Lines<BufReader<ChildStderr>>,
}

impl Subject {
    pub(crate) fn start(kind: Kind, settings: Settings) -> io::Result<Self> {
        let client = Namespace::new().map_err(io::Error::other)?;
        let own = match kind {
            Kind::Kernel => Some(cable(&client).map_err(io::Error::other)?),
            _ => None,
        };
        let mut command = Command::new(std::env::current_exe()?);
        let Settings { echoes, is_copied, cpu } = settings;
        command.args([SERVE, kind.name(), &echoes.to_string(), &is_copied.to_string()]);
        command.args(cpu.map(|cpu| cpu.to_string()));
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = own.as_ref().unwrap_or(&client).spawn_child(command)?;
        let notes = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut subject = Self { child, client, _own: own, notes };
        let mut said = Vec::new();
        loop {
            match subject.notes.next().transpose()? {
                Some(line) if line == READY => break,
                Some(line) => said.push(line),
                None => {
                    let (name, said) = (kind.name(), said.join("; "));
                    return Err(io::Error::other(format!("{name} does not come up: {said}")));
                }
            }
        }
        let addresses: Vec<Cidr> =
            (0..ADDRESSES.into()).map(|turn| cidr(address(turn).into())).collect();
        subject.client.configure(DEVICE, &addresses, Some(MTU)).map_err(io::Error::other)?;
        // It answers, and each end knows where all addresses of the other are.
        subject.at_client(|| {
            let mut streams = (0..ADDRESSES.into()).map(|turn| connect(Service::Echo, turn));
            streams.try_for_each(|stream| connections::close(stream?))
        })?;
        Ok(subject)
    }

    /// Where its peers are.
    pub(crate) fn client(&self) -> &Namespace {
        &self.client
    }

    /// Does what blocks where its peers are, on a thread of its own.
    pub(crate) fn at_client<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let thread = self.client.spawn_thread(work)?;
        thread.join().map_err(|_| io::Error::other("the client has panicked"))?
    }

    /// CPU time of its process, and of the kernel's work that it was charged with.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        cpu_time(&self.child.id().to_string())
    }

    /// Bytes of memory that its process has.
    pub(crate) fn resident(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map(|kib| kib * KIB).ok_or_else(|| io::Error::other("its process has ended"))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of all threads that this process has now.
pub(crate) fn own_cpu_time() -> io::Result<Duration> {
    cpu_time("self")
}

fn cpu_time(process: &str) -> io::Result<Duration> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end meanwhile.
        let Ok(schedstat) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let nanoseconds = schedstat.split(' ').next().and_then(|text| text.parse::<u64>().ok());
        sum += nanoseconds.unwrap_or_default();
    }
    Ok(Duration::from_nanos(sum))
}

/// A namespace for the kernel's server, joined to the client's.
fn cable(client: &Namespace) -> Result<Namespace, airtcp_testbed::TestbedError> {
    let own = Namespace::new()?;
    own.connect(DEVICE, client, DEVICE)?;
    own.configure(DEVICE, &[cidr(STACK.into())], Some(MTU))?;
    Ok(own)
}

fn cidr(address: IpAddr) -> Cidr {
    Cidr { address, prefix: PREFIX }
}

/// Told on stderr by a stack that takes connections from now on, or has its device.
pub(crate) fn say_ready() {
    eprintln!("{READY}");
}

/// Becomes the program that users have. Gives an error if that cannot be.
fn airtcp_serve(flags: &str) -> io::Result<()> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.args(["serve", "--tun", DEVICE, "--address", &cidr(STACK.into()).to_string()]);
    command.args(flags.split_whitespace()).env_remove("RUST_LOG");
    for service in [Service::Sink, Service::Source, Service::Echo] {
        command.arg(format!("{}:{}", service.name(), service.port()));
    }
    Err(command.exec())
}

/// This program as a stack under test, by the arguments after [`SERVE`].
pub(crate) fn serve(arguments: &[String]) -> io::Result<()> {
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<usize>().ok());
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| Some(kind.name()) == arguments.first().map(String::as_str));
    let is_copied = arguments.get(2).is_some_and(|text| text == "true");
    let (Some(kind), Some(echoes)) = (kind, number(1)) else {
        return Err(io::Error::other(
            "this program starts itself with --serve, and nobody else does",
        ));
    };
    if let Some(cpu) = number(3) {
        client::pin(cpu)?;
    }
    kind.serve(echoes, is_copied)
}
