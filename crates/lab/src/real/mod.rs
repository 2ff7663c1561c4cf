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
use crate::timeline::Timeline;
use crate::{Ground, LabError, Run, Verdict, feed};

/// The warm-up and the end of a small form.
pub(crate) const SMALL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// `warm_up` and `end`, or those of the small form.
pub(crate) const fn times(run: &Run, warm_up: Duration, end: Duration) -> (Duration, Duration) {
    if run.is_small { SMALL } else { (warm_up, end) }
}

/// What senders are compared over: 20 ms back and forth, and one bandwidth-delay product before the
/// link.
pub(crate) const LINK: &str = "rate 100mbit delay 10ms limit 167";
/// For ACKs alone.
pub(crate) const BACK: &str = "rate 100mbit delay 10ms limit 1000";

/// Whose TCP an end runs.
#[derive(Clone, Debug)]
pub(crate) enum Tcp {
    /// The kernel's, with the congestion control named, or the system's.
    Kernel(Option<&'static str>),
    /// Ours.
    Ours(Combination, Profile),
}

impl Tcp {
    /// Ours, by the combination's name.
    ///
    /// # Panics
    ///
    /// The registry has no such combination.
    pub(crate) fn ours(combination: &str, profile: Profile) -> Self {
        Self::Ours(combination.parse().expect("a name of the registry"), profile)
    }

    /// Its name in tables: of the kernel, or in virtual time of what takes its place.
    pub(crate) fn name(&self, ground: Ground) -> String {
        match (self, ground) {
            (Self::Ours(combination, _), _) => combination.to_string(),
            (Self::Kernel(congestion), Ground::Real) => {
                format!("Linux {}", congestion.unwrap_or("TCP"))
            }
            (Self::Kernel(congestion), Ground::Simulated) => stand_in(*congestion),
        }
    }

    /// Our strategies, or those that take the kernel's place in virtual time.
    fn combination(&self) -> Result<Combination, LabError> {
        match self {
            Self::Ours(combination, _) => Ok(combination.clone()),
            Self::Kernel(congestion) => Ok(stand_in(*congestion).parse()?),
        }
    }
}

/// What takes the place of the kernel's sender in virtual time.
fn stand_in(congestion: Option<&str>) -> String {
    format!("rack/{}", congestion.unwrap_or("cubic"))
}

/// One flow of a [`Course`].
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) sender: Tcp,
    /// When it begins.
    pub(crate) start: Duration,
    /// Added to its round-trip time alone.
    pub(crate) delay: Duration,
    /// What it transfers; without it, as much as there is time for.
    pub(crate) size: Option<ByteCount>,
    /// How late its hosts run, in virtual time: see [`FlowSpec::wake_up_delay`].
    pub(crate) wake_up_delay: Duration,
}

impl Flow {
    /// A flow from the begin to the end.
    pub(crate) fn new(sender: Tcp) -> Self {
        let (start, delay, wake_up_delay) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { sender, start, delay, size: None, wake_up_delay }
    }
}

/// Flows that share a bottleneck, for a time.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// All from the left host to the right one. Ours have one stack, the kernel's have its host's.
    pub(crate) flows: Vec<Flow>,
    pub(crate) receiver: Tcp,
    pub(crate) forth: LinkSpec,
    pub(crate) back: LinkSpec,
    /// Goodput is counted from here on.
    pub(crate) warm_up: Duration,
    /// And up to here.
    pub(crate) end: Duration,
}

/// What came of a course.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// In the course's order.
    pub(crate) flows: Vec<FlowDone>,
    /// What the link did to data, in all.
    pub(crate) link: Counters,
    /// Of this, what it did before the warm-up ended.
    pub(crate) at_warm_up: Counters,
    /// All flows together, from the start on.
    pub(crate) timeline: Timeline,
    /// 99 % of the link's packets were no later than this, in seconds.
    pub(crate) lateness: f64,
}

/// What came of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowDone {
    /// Payload in order during the time that counts, bit/s; in virtual time in any order.
    pub(crate) goodput: f64,
    /// The same of the warm-up.
    pub(crate) start_up: f64,
    /// Data segments of the whole course, those sent again included.
    pub(crate) segments: u64,
    /// Of these, those sent again.
    pub(crate) retransmissions: u64,
    /// Round-trip times during the time that counts.
    pub(crate) rtt: Rtt,
    /// When all of it had arrived, in seconds from its start.
    pub(crate) finished: Option<f64>,
}

/// Round-trip times in short, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub(crate) struct Rtt {
    /// How many; the others are zero if this is.
    pub(crate) samples: usize,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    /// 95 % of the samples are no longer.
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
    /// The first flow's goodput, in bit/s.
    pub(crate) fn goodput(&self) -> f64 {
        self.flows.first().map_or(0.0, |flow| flow.goodput)
    }

    /// Segments that the first flow sent again.
    pub(crate) fn retransmissions(&self) -> u64 {
        self.flows.first().map_or(0, |flow| flow.retransmissions)
    }

    /// Whether the link of `course` kept its times.
    pub(crate) fn is_in_time(&self, course: &Course) -> bool {
        is_in_time(self.lateness, &course.forth, &course.back)
    }
}

/// Whether a link kept its times. One that was later than a tenth of the round-trip time with more
/// than one packet in a hundred was another link than the one described.
pub(crate) fn is_in_time(lateness: f64, forth: &LinkSpec, back: &LinkSpec) -> bool {
    lateness <= LATE * (forth.delay.base + back.delay.base).as_secs_f64()
}

/// The verdict where runs were late.
pub(crate) fn late(late: u64, runs: u64) -> Verdict {
    Verdict::NotComparable(format!(
        "the link was late in {late} of {runs} runs: use an idle machine"
    ))
}

/// Of the round-trip time.
const LATE: f64 = 0.1;
/// How often a transfer is made at most until one is in time.
const TRIES: u32 = 3;
/// Of the first flow; each has a port of its own.
const PORT: u16 = 5001;
/// The content of the stream.
const SEED: u64 = 1;

impl Course {
    /// From `sender` to Linux, over a link in words, with nothing beside it; counted from `warm_up`
    /// to `end`.
    ///
    /// # Errors
    ///
    /// [`LabError::Spec`] if the words describe no link.
    pub(crate) fn to_linux(
        sender: &Tcp,
        (forth, back): (&str, &str),
        (warm_up, end): (Duration, Duration),
    ) -> Result<Self, LabError> {
        let (forth, back) = (feed::spec(forth)?, feed::spec(back)?);
        let (flows, receiver) = (vec![Flow::new(sender.clone())], Tcp::Kernel(None));
        Ok(Self { flows, receiver, forth, back, warm_up, end })
    }

    /// Builds the network, runs the transfers and takes the network down.
    ///
    /// # Errors
    ///
    /// [`LabError::Testbed`] if this process may have no namespaces; [`LabError::Transfer`] if a
    /// transfer breaks, or a byte arrives that was not sent.
    pub(crate) fn run(&self, run: &Run) -> Result<Done, LabError> {
        let delays = self.flows.iter().map(|flow| flow.delay);
        let node = Bottleneck::new(&self.forth, &self.back, PORT, delays)?;
        let is_ours = |flow: &&Flow| matches!(flow.sender, Tcp::Ours(..));
        let ours = self.flows.iter().find(is_ours);
        let left = host(ours.map_or(&Tcp::Kernel(None), |flow| &flow.sender));
        // Nobody asks for the link's events.
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

    /// [`run`](Self::run), and again where the machine did not keep the link's times; of these runs
    /// the one whose link was least late.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
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

    /// Runs the course in virtual time, with our `rack/cubic` in the place of the kernel's cubic,
    /// and so on.
    ///
    /// # Errors
    ///
    /// [`LabError::Sim`]; [`LabError::Combination`] if there is none in the kernel's place.
    pub(crate) fn simulate(&self, run: &Run, seed: u64) -> Result<Done, LabError> {
        let flow = |flow: &Flow| {
            let profile = match &flow.sender {
                Tcp::Ours(_, profile) => profile.clone(),
                Tcp::Kernel(_) => Profile::modern(),
            };
            // ACKs cross two access links.
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

    /// What each flow's receiver has at the end, or once every flow has transferred what it had to.
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

    /// Starts a flow; what comes of it is in the future.
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
            // What a sender ends by is an error that the receiver cannot see.
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

/// What a flow goes by.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
    warm_up: Instant,
    end: Instant,
}

/// What a receiver has.
#[derive(Default)]
struct Received {
    /// Bytes in order until the warm-up ended.
    warm_up: u64,
    /// Bytes in order.
    all: u64,
    /// When all that was to come was there, from the flow's start.
    finished: Option<Duration>,
    /// The connection. Closing it before the course ends would break its sender off.
    _stream: Option<Box<dyn Send>>,
}

fn rate(bits: f64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bits / time.as_secs_f64() }
}

/// The host of an end.
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

/// Sends by our stack from `start` on; it ends by an error alone, as closing is for the receiver.
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

/// The same by the kernel.
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

/// Listens, and starts a task that takes one connection.
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

/// Reads and checks until the end, or until `size` bytes are there.
async fn count<S: AsyncRead + Unpin + Send + 'static>(
    accept: impl Future<Output = io::Result<(S, SocketAddr)>>,
    clock: Clock,
    size: Option<u64>,
) -> io::Result<Received> {
    let mut received = Received::default();
    // Over a link that loses much, a connection may take longer than there is time.
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
