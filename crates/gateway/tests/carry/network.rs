//! Two gateways with a link between them.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use airtcp_device::{Clock, Device, Memory, memory};
use airtcp_gateway::{
    Far, FarConfig, FarStatus, Near, NearConfig, NearStatus, Rules, Side, carrier_config, splice,
};
use airtcp_link::Link;
use airtcp_net::{Driver, Stack};
use airtcp_stack::HostConfig;
use airtcp_types::{ByteCount, Packet};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The address that the far gateway listens on.
pub(crate) const FAR: &str = "10.77.0.1:7077";

pub(crate) struct Network {
    pub(crate) near: Near,
    pub(crate) far: Far,
    pub(crate) near_stack: Stack,
    pub(crate) far_stack: Stack,
    /// The tasks of the network; they end with it.
    tasks: JoinSet<()>,
}

impl Network {
    /// Two gateways joined by a cable.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// As [`new`](Self::new), with other settings of the far gateway.
    pub(crate) fn with(change: impl FnOnce(&mut FarConfig)) -> Self {
        let (left, right) = memory::pair(1420, 256);
        Self::between(stack(left, 2), stack(right, 1), change, JoinSet::new())
    }

    /// Two gateways joined by a link of this description in each direction.
    pub(crate) fn over(link: &str) -> Self {
        let spec = link.parse().unwrap();
        let ((left, a), (b, right)) = (memory::pair(1420, 4096), memory::pair(1420, 4096));
        let link = Link::new(&spec, &spec).unwrap();
        let mut driver = Driver::new(link, [a, b], Clock::start()).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(driver.run().await) });
        Self::between(stack(left, 2), stack(right, 1), |_| {}, tasks)
    }

    pub(crate) fn between(
        near_stack: Stack,
        far_stack: Stack,
        change: impl FnOnce(&mut FarConfig),
        mut tasks: JoinSet<()>,
    ) -> Self {
        let far = far(&far_stack, change);
        let serving = far.clone();
        tasks.spawn(async move { drop(serving.run().await) });
        let near = Near::start(near_stack.clone(), NearConfig::new(addr(FAR)));
        Self { near, far, near_stack, far_stack, tasks }
    }

    /// Returns the connection of a program that the near gateway has connected to `to`.
    pub(crate) async fn program(&self, to: SocketAddr) -> TcpStream {
        let carried = self.near.connect(&to.into()).await.unwrap();
        self.joined(carried).await
    }

    /// Returns the connection of a program that is spliced to `carried`.
    pub(crate) async fn joined(&self, carried: impl Side + 'static) -> TcpStream {
        let (listener, front) = server().await;
        let (program, accepted) = tokio::join!(TcpStream::connect(front), listener.accept());
        let (accepted, _) = accepted.unwrap();
        tokio::spawn(splice(accepted, carried));
        program.unwrap()
    }

    /// Waits until `so` returns true for the status of both gateways.
    pub(crate) async fn until(&self, so: impl Fn(&NearStatus, &FarStatus) -> bool) {
        while !so(&self.near.status(), &self.far.status()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Ends the far gateway and the network's other tasks at once.
    pub(crate) fn kill(&mut self) {
        self.tasks.abort_all();
    }
}

/// A stack with `last` as the last byte of its carrier address.
pub(crate) fn stack(device: Memory, last: u8) -> Stack {
    Stack::new(device, config(last)).unwrap()
}

pub(crate) fn config(last: u8) -> HostConfig {
    let address = format!("10.77.0.{last}/24").parse().unwrap();
    carrier_config([address], ByteCount::from_mib(256), 1)
}

/// A far gateway that may dial 127.0.0.1 and ::1.
pub(crate) fn far(stack: &Stack, change: impl FnOnce(&mut FarConfig)) -> Far {
    let allow = ["127.0.0.1", "::1"].map(|rule| rule.parse().unwrap()).into();
    let rules = Rules { allow, ..Rules::default() };
    let mut config = FarConfig { rules, ..FarConfig::new(addr(FAR)) };
    change(&mut config);
    Far::new(stack.clone(), config).unwrap()
}

/// Carries packets between a near end and one far end after another, while `on` is set.
pub(crate) async fn relay(
    mut near: Memory,
    mut fars: mpsc::UnboundedReceiver<Memory>,
    on: Arc<AtomicBool>,
) {
    let Some(mut far) = fars.recv().await else { return };
    loop {
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        tokio::select! {
            // The previous far end is gone with its device.
            next = fars.recv() => match next {
                Some(next) => far = next,
                None => return,
            },
            received = near.recv(&mut forth, 64) => drop(received.unwrap()),
            received = far.recv(&mut back, 64) => drop(received.unwrap()),
        }
        if on.load(Relaxed) {
            far.try_send(&mut VecDeque::<Packet>::from(forth));
            near.try_send(&mut VecDeque::<Packet>::from(back));
        }
    }
}

/// A kernel listener on loopback.
pub(crate) async fn server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

pub(crate) fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Returns bytes that depend on the seed and their position.
pub(crate) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|at| ((at + 1).wrapping_mul(seed.wrapping_mul(2) + 0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

pub(crate) async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await?;
    Ok(heard)
}

/// Reads until the stream fails; returns the kind of the error.
pub(crate) async fn reset_of(stream: &mut (impl AsyncRead + Unpin)) -> io::ErrorKind {
    read_all(stream).await.expect_err("a reset").kind()
}

/// Waits for all futures.
pub(crate) async fn all(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Fails after a time limit.
pub(crate) async fn within<T>(test: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(300);
    tokio::time::timeout(limit, test).await.expect("the test ends in time")
}
