//! A stack under test: a process in its own namespace.

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

/// The name of the kernel's interface, and of the stack's if the stack is the kernel.
pub(crate) const DEVICE: &str = "tun0";
/// The number of connections that may wait for accept.
pub(crate) const BACKLOG: usize = 1024;
const MTU: u32 = 1500;
/// The line by which a stack reports that it is ready, as `airtcp serve` does.
const READY: &str = "ready";
/// The argument that makes this program a stack under test.
pub(crate) const SERVE: &str = "--serve";
/// The unit that /proc calls kB.
const KIB: u64 = 1024;

/// A stack to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `airtcp serve --no-offload`.
    Airtcp,
    /// `airtcp serve` with its defaults.
    AirtcpOffload,
    /// With two queues and a thread for each.
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

/// How a subject is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The number of echo connections that may open at the same time.
    pub(crate) echoes: usize,
    /// Whether the stack's application copies what it reads.
    pub(crate) is_copied: bool,
    /// The CPU to which the stack is pinned.
    pub(crate) cpu: Option<usize>,
}

/// A running stack. It ends when this is dropped or when this process is killed.
pub(crate) struct Subject {
    child: Child,
    client: Namespace,
    /// The stack's namespace, unless its device is in the client's.
    _own: Option<Namespace>,
    /// The lines of its stderr.
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
        // Check that it answers, and let each end learn where all addresses of the other are.
        subject.at_client(|| {
            let mut streams = (0..ADDRESSES.into()).map(|turn| connect(Service::Echo, turn));
            streams.try_for_each(|stream| connections::close(stream?))
        })?;
        Ok(subject)
    }

    /// The namespace of its peers.
    pub(crate) fn client(&self) -> &Namespace {
        &self.client
    }

    /// Runs blocking work in the peers' namespace, on its own thread.
    pub(crate) fn at_client<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let thread = self.client.spawn_thread(work)?;
        thread.join().map_err(|_| io::Error::other("the client has panicked"))?
    }

    /// CPU time of its process, including the kernel's work charged to it.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        cpu_time(&self.child.id().to_string())
    }

    /// The resident memory of its process in bytes.
    pub(crate) fn resident(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map(|kib| kib * KIB).ok_or_else(|| io::Error::other("its process has ended"))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of all current threads of this process.
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

/// Makes a namespace for the kernel's server and connects it to the client's.
fn cable(client: &Namespace) -> Result<Namespace, airtcp_testbed::TestbedError> {
    let own = Namespace::new()?;
    own.connect(DEVICE, client, DEVICE)?;
    own.configure(DEVICE, &[cidr(STACK.into())], Some(MTU))?;
    Ok(own)
}

fn cidr(address: IpAddr) -> Cidr {
    Cidr { address, prefix: PREFIX }
}

/// Reports on stderr that a stack accepts connections or has its device.
pub(crate) fn say_ready() {
    eprintln!("{READY}");
}

/// Replaces this process by `airtcp serve`. Returns only on an error.
fn airtcp_serve(flags: &str) -> io::Result<()> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.args(["serve", "--tun", DEVICE, "--address", &cidr(STACK.into()).to_string()]);
    command.args(flags.split_whitespace()).env_remove("RUST_LOG");
    for service in [Service::Sink, Service::Source, Service::Echo] {
        command.arg(format!("{}:{}", service.name(), service.port()));
    }
    Err(command.exec())
}

/// Runs this program as a stack under test, with the arguments after [`SERVE`].
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
