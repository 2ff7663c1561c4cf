//! Bulk transfers with real packets, from left to right over an emulated link between two namespaces.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_link::{Counters, Link, LinkSpec, Way};
use airtcp_recovery::{Combination, Profile};
use airtcp_stack::HostConfig;
use airtcp_testbed::dumbbell::{Dumbbell, End, Host, Plan};
use airtcp_testbed::{Pattern, peer};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{LabError, Run};

/// The warm-up and the end of a small form.
const SMALL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// `warm_up` and `end`, or those of the small form.
pub(crate) const fn times(run: &Run, warm_up: Duration, end: Duration) -> (Duration, Duration) {
    if run.is_small { SMALL } else { (warm_up, end) }
}

/// Whose TCP an end runs.
#[derive(Clone, Debug)]
pub(crate) enum Tcp {
    /// The kernel's, with the congestion control named, or the system's.
    Kernel(Option<&'static str>),
    /// Ours.
    Ours(Combination, Profile),
}

/// One transfer.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) sender: Tcp,
    pub(crate) receiver: Tcp,
    pub(crate) forth: LinkSpec,
    pub(crate) back: LinkSpec,
    /// Goodput is counted from here on, after the connection is accepted.
    pub(crate) warm_up: Duration,
    /// And up to here.
    pub(crate) end: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Payload in order, bit/s.
    pub(crate) goodput: f64,
    /// The link's in the direction of the data.
    pub(crate) link: Counters,
    /// 99 % of the link's packets were no later than this, in seconds.
    pub(crate) lateness: f64,
}

const PORT: u16 = 5001;
/// The content of the stream.
const SEED: u64 = 1;
/// Beyond the transfer's own time: to connect over a link that loses much.
const PATIENCE: Duration = Duration::from_secs(60);

impl Course {
    /// Builds the network, runs the transfer and takes the network down.
    ///
    /// # Errors
    ///
    /// [`LabError::Testbed`] if this process may have no namespaces; [`LabError::Transfer`] if the transfer
    /// breaks, or a byte arrives that was not sent.
    pub(crate) fn run(&self) -> Result<Done, LabError> {
        let link = Link::new(&self.forth, &self.back)?;
        let dumbbell = Dumbbell::build(Plan::new(host(&self.sender), link, host(&self.receiver)))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::Transfer)?;
        let goodput = runtime.block_on(self.transfer(&dumbbell)).map_err(LabError::Transfer)?;
        let link = dumbbell.counters(Way::Forth);
        let lateness = dumbbell.lateness().percentile(99.0).as_secs_f64();
        dumbbell.stop()?;
        Ok(Done { goodput, link, lateness })
    }

    async fn transfer(&self, dumbbell: &Dumbbell) -> io::Result<f64> {
        let server = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), PORT);
        let (warm_up, end) = (self.warm_up, self.end);
        let right = dumbbell.right().namespace();
        let receiving = match dumbbell.right() {
            End::Kernel(namespace) => {
                let listener = namespace.spawn(async move { peer::listen(server, None) }).await??;
                right.spawn(async move { count(listener.accept().await?.0, warm_up, end).await })
            }
            End::Stack(stack, _) => {
                let listener = stack.listen(server, 1)?;
                right.spawn(async move { count(listener.accept().await?.0, warm_up, end).await })
            }
        };
        let left = dumbbell.left().namespace();
        let sending = match dumbbell.left() {
            End::Kernel(_) => {
                let Tcp::Kernel(congestion) = self.sender else { unreachable!("it is the plan's") };
                left.spawn(async move {
                    let mut stream = peer::connect(server, congestion).await?;
                    peer::send(&mut stream, SEED, u64::MAX).await
                })
            }
            End::Stack(stack, _) => {
                let stack = stack.clone();
                left.spawn(async move {
                    let mut stream = stack.connect(server).await?;
                    peer::send(&mut stream, SEED, u64::MAX).await
                })
            }
        };
        // The sender never ends by itself: what it ends by is an error that the receiver cannot see.
        let sent = sending.abort_handle();
        let broken =
            async { Err(sending.await?.err().unwrap_or(io::ErrorKind::UnexpectedEof.into())) };
        let received = async { timeout(self.end + PATIENCE, receiving).await?? };
        let bytes = tokio::select! {
            bytes = received => bytes,
            broken = broken => broken,
        };
        sent.abort();
        Ok(bytes? as f64 * 8.0 / (self.end - self.warm_up).as_secs_f64())
    }
}

fn host(tcp: &Tcp) -> Host {
    match tcp {
        Tcp::Kernel(_) => Host::Kernel,
        Tcp::Ours(combination, profile) => {
            let mut config = HostConfig::new([]);
            config.tcp.sender.combination = combination.clone();
            config.tcp.sender.profile = profile.clone();
            Host::Stack(Box::new(config))
        }
    }
}

/// Reads and checks from now to `end`, and gives the bytes read after the warm-up.
async fn count(
    mut stream: impl AsyncRead + Unpin,
    warm_up: Duration,
    end: Duration,
) -> io::Result<u64> {
    let begin = Instant::now();
    let mut pattern = Pattern::new(SEED);
    let mut buffer = vec![0; 256 * 1024];
    let mut before = 0;
    loop {
        let length = match timeout_at(begin + end, stream.read(&mut buffer)).await {
            Err(_) => return Ok(pattern.position() - before),
            Ok(length) => length?,
        };
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        pattern.check(&buffer[..length]).map_err(|position| {
            let text = format!("byte {position} is not what was sent");
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        if begin.elapsed() < warm_up {
            before = pattern.position();
        }
    }
}
