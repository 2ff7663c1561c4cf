//! Bulk transfers from left to right over one bottleneck, with real packets or in virtual time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_link::{Counters, LinkSpec};
use airtcp_net::Stack;
use airtcp_recovery::{Combination, Profile};
use airtcp_sim::{App, FlowResult, FlowSpec, Scenario, Topology, Wire};
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::TcpConfig;
use airtcp_testbed::dumbbell::{Dumbbell, End, Host, Plan};
use airtcp_testbed::{Pattern, peer};
use airtcp_types::{ByteCount, Node};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::bottleneck::{Bottleneck, Sent};
use crate::study::Fields;
use crate::timeline::Timeline;
use crate::{Ground, LabError, Run, Verdict, feed};

/// The end of the warm-up and the end of the course in a small run.
pub(crate) const SMALL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// Returns `warm_up` and `end`, or those of a small run.
pub(crate) const fn times(run: &Run, warm_up: Duration, end: Duration) -> (Duration, Duration) {
    if run.is_small { SMALL } else { (warm_up, end) }
}

/// The link over which senders are compared: a round-trip time of 20 ms, and a queue of one
/// bandwidth-delay product.
pub(crate) const LINK: &str = "rate 100mbit delay 10ms limit 167";
/// The link for ACKs.
pub(crate) const BACK: &str = "rate 100mbit delay 10ms limit 1000";

/// The TCP implementation of an end.
#[derive(Clone, Debug)]
pub(crate) enum Tcp {
    /// The kernel's, with this congestion control or the system's default.
    Kernel(Option<&'static str>),
    /// Our stack.
    Ours(Combination, Profile),
}

impl Tcp {
    /// Returns our stack with the combination of this name.
    ///
    /// # Panics
    ///
    /// Panics if the registry has no such combination.
    pub(crate) fn ours(combination: &str, profile: Profile) -> Self {
        Self::Ours(combination.parse().expect("a name of the registry"), profile)
    }

    /// Returns the name in tables: the kernel's, or in virtual time that of the combination that
    /// replaces the kernel.
    pub(crate) fn name(&self, ground: Ground) -> String {
        match (self, ground) {
            (Self::Ours(combination, _), _) => combination.to_string(),
            (Self::Kernel(congestion), Ground::Real) => {
                format!("Linux {}", congestion.unwrap_or("TCP"))
            }
            (Self::Kernel(congestion), Ground::Simulated) => stand_in(*congestion),
        }
    }

    /// Returns our combination, or the one that replaces the kernel's sender in virtual time.
    fn combination(&self) -> Result<Combination, LabError> {
        match self {
            Self::Ours(combination, _) => Ok(combination.clone()),
            Self::Kernel(congestion) => Ok(stand_in(*congestion).parse()?),
        }
    }
}

/// Returns the name of the combination that replaces the kernel's sender in virtual time.
fn stand_in(congestion: Option<&str>) -> String {
    format!("rack/{}", congestion.unwrap_or("cubic"))
}

/// One flow of a [`Course`].
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) sender: Tcp,
    /// The start time.
    pub(crate) start: Duration,
    /// A delay added to the round-trip time of this flow only.
    pub(crate) delay: Duration,
    /// The number of bytes to transfer; if `None`, as many as possible until the end.
    pub(crate) size: Option<ByteCount>,
    /// The wake-up delay of its hosts, in virtual time: see [`FlowSpec::wake_up_delay`].
    pub(crate) wake_up_delay: Duration,
}

impl Flow {
    /// Returns a flow that lasts the whole course.
    pub(crate) fn new(sender: Tcp) -> Self {
        let (start, delay, wake_up_delay) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { sender, start, delay, size: None, wake_up_delay }
    }
}

/// Flows that share a bottleneck for a time.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// All flows run from the left host to the right one. Our flows share one stack, kernel flows
    /// share the host's kernel.
    pub(crate) flows: Vec<Flow>,
    pub(crate) receiver: Tcp,
    pub(crate) forth: LinkSpec,
    pub(crate) back: LinkSpec,
    /// The start of the measurement of goodput.
    pub(crate) warm_up: Duration,
    /// The end of the course, and of the measurement.
    pub(crate) end: Duration,
}

/// The outcome of a course.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// In the order of the course's flows.
    pub(crate) flows: Vec<FlowDone>,
    /// The link's counters for data over the whole course.
    pub(crate) link: Counters,
    /// The same counters when the warm-up ended.
    pub(crate) at_warm_up: Counters,
    /// All flows together, over the whole course.
    pub(crate) timeline: Timeline,
    /// The 99th percentile of the link's packet lateness, in seconds.
    pub(crate) lateness: f64,
}

/// The outcome of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowDone {
    /// The payload received in order after the warm-up, in bit/s; in virtual time, in any order.
    pub(crate) goodput: f64,
    /// The same during the warm-up.
    pub(crate) start_up: f64,
    /// Data segments sent in the whole course, including retransmissions.
    pub(crate) segments: u64,
    /// Retransmitted data segments.
    pub(crate) retransmissions: u64,
    /// Round-trip times after the warm-up.
    pub(crate) rtt: Rtt,
    /// The time when all bytes had arrived, in seconds from the flow's start.
    pub(crate) finished: Option<f64>,
}

/// A summary of round-trip times, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub(crate) struct Rtt {
    /// The number of samples; if it is zero, so are the other fields.
    pub(crate) samples: usize,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    /// The 95th percentile.
    pub(crate) p95: f64,
}

impl Rtt {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let samples = values.len();
        let Some(min) = values.first().copied() else { return Self::default() };
        let mean = values.iter().sum::<f64>() / samples as f64;
        Self { samples, min, mean, p95: values[(samples * 95).div_ceil(100) - 1] }
    }
}

impl Done {
    /// Returns the first flow's goodput, in bit/s.
    pub(crate) fn goodput(&self) -> f64 {
        self.flows.first().map_or(0.0, |flow| flow.goodput)
    }

    /// Returns the number of segments that the first flow retransmitted.
    pub(crate) fn retransmissions(&self) -> u64 {
        self.flows.first().map_or(0, |flow| flow.retransmissions)
    }

    /// Returns whether the link of `course` was on time.
    pub(crate) fn is_in_time(&self, course: &Course) -> bool {
        is_in_time(self.lateness, &course.forth, &course.back)
    }
}

/// Returns whether a link was on time: at most one packet in a hundred was late by more than a
/// tenth of the round-trip time. A later link does not match its description.
pub(crate) fn is_in_time(lateness: f64, forth: &LinkSpec, back: &LinkSpec) -> bool {
    lateness <= LATE * (forth.delay.base + back.delay.base).as_secs_f64()
}

/// Returns the verdict for an experiment with late runs.
pub(crate) fn late(late: u64, runs: u64) -> Verdict {
    Verdict::NotComparable(format!(
        "the link was late in {late} of {runs} runs: use an idle machine"
    ))
}

/// The maximum lateness as a fraction of the round-trip time.
const LATE: f64 = 0.1;
/// The maximum number of runs of a course until the link is on time.
const TRIES: u32 = 3;
/// The port of the first flow; each later flow has the next port.
const PORT: u16 = 5001;
/// The seed of the stream's content.
const SEED: u64 = 1;

impl Course {
    /// A course of one flow from `sender` to Linux, over links given as text; measured from
    /// `warm_up` to `end`.
    ///
    /// # Errors
    ///
    /// [`LabError::Spec`] if the text does not describe a link.
    pub(crate) fn to_linux(
        sender: &Tcp,
        (forth, back): (&str, &str),
        (warm_up, end): (Duration, Duration),
    ) -> Result<Self, LabError> {
        let (forth, back) = (feed::spec(forth)?, feed::spec(back)?);
        let (flows, receiver) = (vec![Flow::new(sender.clone())], Tcp::Kernel(None));
        Ok(Self { flows, receiver, forth, back, warm_up, end })
    }

    /// Builds the network, runs the transfers and removes the network.
    ///
    /// # Errors
    ///
    /// [`LabError::Testbed`] if the network of namespaces cannot be created; [`LabError::Transfer`]
    /// if a transfer fails or a received byte differs from the sent one.
    pub(crate) fn run(&self, run: &Run) -> Result<Done, LabError> {
        run.may_run()?;
        let delays = self.flows.iter().map(|flow| flow.delay);
        let node = Bottleneck::new(&self.forth, &self.back, PORT, delays)?;
        let is_ours = |flow: &&Flow| matches!(flow.sender, Tcp::Ours(..));
        let ours = self.flows.iter().find(is_ours);
        let left = host(ours.map_or(&Tcp::Kernel(None), |flow| &flow.sender));
        // The link's events are not needed.
        let dumbbell = Dumbbell::build(Plan::over(left, node, host(&self.receiver), |_, _| {}))?;
        if !self.flows.iter().all(|flow| is_ours(&flow)) {
            dumbbell.add_kernel(Dumbbell::LEFT)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::Transfer)?;
        let transfers = self.transfers(&dumbbell);
        let received = runtime.block_on(transfers).map_err(LabError::Transfer)?;
        let ([at_warm_up, link], sent, timeline) =
            dumbbell.act(|node, _| (node.counters(), node.sent(), node.timeline()));
        let lateness = dumbbell.lateness().percentile(99.0).as_secs_f64();
        dumbbell.stop()?;
        run.done.add();
        let flows = received.iter().zip(sent).map(|(received, sent)| self.flow(received, &sent));
        Ok(Done { flows: flows.collect(), link, at_warm_up, timeline, lateness })
    }

    /// Returns whether the link was late in a run with the field `lateness`.
    pub(crate) fn was_late(&self, run: &Fields) -> bool {
        !is_in_time(run.number("lateness").unwrap_or_default(), &self.forth, &self.back)
    }

    /// Calls [`run`](Self::run) up to three times, until the link is on time. Returns the run in
    /// which the link was least late.
    ///
    /// # Errors
    ///
    /// See [`run`](Self::run).
    pub(crate) fn run_in_time(&self, run: &Run) -> Result<Done, LabError> {
        let mut best = self.run(run)?;
        for _ in 1..TRIES {
            if best.is_in_time(self) {
                break;
            }
            let again = self.run(run)?;
            if again.lateness < best.lateness {
                best = again;
            }
        }
        Ok(best)
    }

    /// Runs the course in virtual time. Our `rack/cubic` replaces the kernel's CUBIC, and so on.
    ///
    /// # Errors
    ///
    /// [`LabError::Sim`]; [`LabError::Combination`] if no combination replaces the kernel's
    /// congestion control.
    pub(crate) fn simulate(&self, run: &Run, seed: u64) -> Result<Done, LabError> {
        let flow = |flow: &Flow| {
            let profile = match &flow.sender {
                Tcp::Ours(_, profile) => profile.clone(),
                Tcp::Kernel(_) => Profile::modern(),
            };
            // ACKs cross two access links, each with half of the delay.
            let mut access = Wire::default();
            access.back.delay.base = flow.delay / 2;
            let access = (!flow.delay.is_zero()).then_some(access);
            let (start, app) = (flow.start, App::Bulk { size: flow.size });
            let spec = FlowSpec::new(flow.sender.combination()?.into());
            let wake_up_delay = flow.wake_up_delay;
            Ok(FlowSpec { profile, start, app, access, wake_up_delay, ..spec })
        };
        let flows = self.flows.iter().map(flow).collect::<Result<_, LabError>>()?;
        let bottleneck = Wire { forth: self.forth.clone(), back: self.back.clone() };
        let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
        let (warm_up, duration) = (self.warm_up, self.end);
        let named = Scenario::new("course", topology);
        let scenario = Scenario { flows, warm_up, duration, seed, samples: true, ..named };
        let mut timeline = Timeline::default();
        let result = airtcp_sim::run(&scenario, Some(&mut timeline))?;
        run.done.add();
        for samples in result.flows.iter().filter_map(|flow| flow.samples.as_ref()) {
            samples.rtt.iter().for_each(|(at, rtt)| timeline.on_rtt(*at, *rtt));
        }
        let link =
            result.links.iter().find(|link| link.way == "forth" && link.name == "bottleneck");
        let counters = link.map(|link| (link.counters, link.at_warm_up)).unwrap_or_default();
        let flows = result.flows.iter().map(|flow| self.simulated(flow)).collect();
        Ok(Done { flows, link: counters.0, at_warm_up: counters.1, timeline, lateness: 0.0 })
    }

    fn simulated(&self, flow: &FlowResult) -> FlowDone {
        let counted = flow.goodput * (self.end - self.warm_up).as_secs_f64();
        let before = (flow.bytes as f64 * 8.0 - counted).max(0.0);
        let from = self.warm_up.as_secs_f64();
        let rtts = flow.samples.iter().flat_map(|samples| &samples.rtt);
        let rtts = rtts.filter(|(at, _)| *at >= from).map(|(_, rtt)| *rtt).collect();
        FlowDone {
            goodput: flow.goodput,
            start_up: rate(before, self.warm_up),
            segments: flow.segments_sent,
            retransmissions: flow.retransmissions,
            rtt: Rtt::of(rtts),
            finished: flow.finished,
        }
    }

    fn flow(&self, received: &Received, sent: &Sent) -> FlowDone {
        let Received { warm_up, all, finished, .. } = received;
        FlowDone {
            goodput: rate((all - warm_up) as f64 * 8.0, self.end - self.warm_up),
            start_up: rate(*warm_up as f64 * 8.0, self.warm_up),
            segments: sent.segments,
            retransmissions: sent.retransmissions,
            rtt: sent.rtt,
            finished: finished.map(|time| time.as_secs_f64()),
        }
    }

    /// Returns the bytes that each flow's receiver got by the end of the course, or by the time all
    /// flows of a given size were complete.
    async fn transfers(&self, dumbbell: &Dumbbell<Bottleneck>) -> io::Result<Vec<Received>> {
        let begin = Instant::now();
        let mut flows = Vec::new();
        for (flow, port) in self.flows.iter().zip(PORT..) {
            flows.push(self.transfer(dumbbell, flow, port, begin).await?);
        }
        sleep_until(begin + self.warm_up).await;
        dumbbell.act(|node, _| node.end_warm_up());
        let mut received = Vec::new();
        for flow in flows {
            received.push(flow.await?);
        }
        Ok(received)
    }

    /// Starts a flow. The returned future resolves to the receiver's result.
    async fn transfer<N: Node + Send + 'static>(
        &self,
        dumbbell: &Dumbbell<N>,
        flow: &Flow,
        port: u16,
        begin: Instant,
    ) -> io::Result<impl Future<Output = io::Result<Received>> + use<N>> {
        let server = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), port);
        let clock = Clock {
            start: begin + flow.start,
            warm_up: begin + self.warm_up,
            end: begin + self.end,
        };
        let size = flow.size.map(|size| size.0);
        let receiving = receive(dumbbell.right(), server, clock, size).await?;
        let (left, bytes) = (dumbbell.left(), size.unwrap_or(u64::MAX));
        let mut sending = match &flow.sender {
            Tcp::Kernel(congestion) => {
                left.namespace().spawn(send_kernel(*congestion, server, clock.start, bytes))
            }
            Tcp::Ours(combination, profile) => {
                let stack = left.stack().cloned().ok_or(io::ErrorKind::NotConnected)?;
                let config = config(combination, profile);
                left.namespace().spawn(send_ours(stack, config, server, clock.start, bytes))
            }
        };
        Ok(async move {
            // The receiver does not see the errors of the sender, which only returns on error.
            let received = tokio::select! {
                received = receiving => received?,
                broken = &mut sending => {
                    return Err(broken?.err().unwrap_or(io::ErrorKind::UnexpectedEof.into()));
                }
            };
            sending.abort();
            received
        })
    }
}

/// The times of a flow.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
    warm_up: Instant,
    end: Instant,
}

/// The bytes that a receiver got.
#[derive(Default)]
struct Received {
    /// Bytes received in order by the end of the warm-up.
    warm_up: u64,
    /// Bytes received in order.
    all: u64,
    /// The time when all expected bytes had arrived, from the flow's start.
    finished: Option<Duration>,
    /// The connection. It stays open until the course ends, because closing it would abort its
    /// sender.
    _stream: Option<Box<dyn Send>>,
}

fn rate(bits: f64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bits / time.as_secs_f64() }
}

/// Returns the host for a TCP implementation.
pub(crate) fn host(tcp: &Tcp) -> Host {
    match tcp {
        Tcp::Kernel(_) => Host::Kernel,
        Tcp::Ours(combination, profile) => {
            let mut host = HostConfig::new([]);
            host.tcp = config(combination, profile);
            Host::Stack(Box::new(host))
        }
    }
}

fn config(combination: &Combination, profile: &Profile) -> TcpConfig {
    let mut config = TcpConfig::default();
    config.sender.combination = combination.clone();
    config.sender.profile = profile.clone();
    config
}

/// Sends `bytes` bytes with our stack from `start` on. Returns only on error, because the receiver
/// closes the connection.
async fn send_ours(
    stack: Stack,
    config: TcpConfig,
    server: SocketAddr,
    start: Instant,
    bytes: u64,
) -> io::Result<()> {
    sleep_until(start).await;
    let mut stream = stack.connect_with(server, config).await?;
    peer::send(&mut stream, SEED, bytes).await?;
    std::future::pending().await
}

/// Sends like [`send_ours`], with the kernel.
async fn send_kernel(
    congestion: Option<&'static str>,
    server: SocketAddr,
    start: Instant,
    bytes: u64,
) -> io::Result<()> {
    sleep_until(start).await;
    let mut stream = peer::connect(server, congestion).await?;
    peer::send(&mut stream, SEED, bytes).await?;
    std::future::pending().await
}

/// Listens, and starts a task that accepts one connection.
async fn receive(
    end: &End,
    at: SocketAddr,
    clock: Clock,
    size: Option<u64>,
) -> io::Result<JoinHandle<io::Result<Received>>> {
    Ok(match end {
        End::Kernel(namespace) => {
            let listener = namespace.spawn(async move { peer::listen(at, None) }).await??;
            namespace.spawn(async move { count(listener.accept(), clock, size).await })
        }
        End::Stack(stack, namespace) => {
            let listener = stack.listen(at, 1)?;
            namespace.spawn(async move { count(listener.accept(), clock, size).await })
        }
    })
}

/// Reads and checks the stream until the end, or until `size` bytes have arrived.
async fn count<S: AsyncRead + Unpin + Send + 'static>(
    accept: impl Future<Output = io::Result<(S, SocketAddr)>>,
    clock: Clock,
    size: Option<u64>,
) -> io::Result<Received> {
    let mut received = Received::default();
    // Over a link with heavy loss, connecting can take longer than the course.
    let Ok(accepted) = timeout_at(clock.end, accept).await else { return Ok(received) };
    let (mut stream, _) = accepted?;
    let mut pattern = Pattern::new(SEED);
    let mut buffer = vec![0; 256 * 1024];
    while let Ok(length) = timeout_at(clock.end, stream.read(&mut buffer)).await {
        let length = length?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        pattern.check(&buffer[..length]).map_err(|position| {
            let text = format!("byte {position} is not what was sent");
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        let now = Instant::now();
        received.all = pattern.position();
        if now < clock.warm_up {
            received.warm_up = received.all;
        }
        if Some(received.all) == size {
            received.finished = Some(now.saturating_duration_since(clock.start));
            break;
        }
    }
    received._stream = Some(Box::new(stream));
    Ok(received)
}

#[cfg(test)]
mod tests;
