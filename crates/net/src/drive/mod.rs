//! A driver that runs one node between devices in real time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;

use airtcp_device::{Alarm, Clock, Device, Watch};
use airtcp_types::{Crossing, Instant, Node, Packet, PortId};
use airtcp_wire::into_segments;

use crate::Lateness;
use crate::task::{self, Next, Work};

/// Packets taken from a device, or from the node, before the others' turn.
const BATCH: usize = 64;

/// Packets that wait for a device that is full; what comes on top is dropped.
const ROOM: usize = 1024;

/// The reason why a driver ended.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// A device was removed: its interface was deleted, or the other end of a
    /// [`Memory`](airtcp_device::Memory) was dropped, for example because its stack ended.
    #[error("the device {name} was removed ({source})")]
    Gone {
        /// The port it was on.
        port: PortId,
        /// Its name.
        name: String,
        /// What the device said.
        source: io::Error,
    },
    /// No timer is available.
    #[error("no timer is available: {0}")]
    Timer(#[from] io::Error),
}

/// Drives a [`Node`] between devices: the node's port n is the n-th device.
///
/// A super-segment from an offloading device is split into segments with checksums, so the node
/// sees packets of MTU size, as on a wire.
///
/// It calls the node with the current time, and at each deadline as soon as it expires. Packets for
/// a full device wait, at most 1024; further ones are dropped and counted.
///
/// ```
/// use std::collections::VecDeque;
///
/// use airtcp_device::{Clock, Device, memory};
/// use airtcp_net::Driver;
/// use airtcp_types::{Event, Instant, Node, Packet, PortId};
///
/// /// Gives each packet to the other port.
/// #[derive(Default)]
/// struct Wire(VecDeque<(PortId, Packet)>);
///
/// impl Node for Wire {
///     fn handle_packet(&mut self, _: Instant, port: PortId, packet: Packet) {
///         self.0.push_back((PortId(1 - port.0), packet));
///     }
///     fn handle_timeout(&mut self, _: Instant) {}
///     fn poll_transmit(&mut self, _: Instant) -> Option<(PortId, Packet)> {
///         self.0.pop_front()
///     }
///     fn poll_timeout(&self) -> Option<Instant> {
///         None
///     }
///     fn poll_event(&mut self) -> Option<Event> {
///         None
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (mut left, a) = memory::pair(1500, 64);
/// let (b, mut right) = memory::pair(1500, 64);
/// let mut driver = Driver::new(Wire::default(), [a, b], Clock::start())?;
///
/// left.send(&mut VecDeque::from([Packet::new(vec![0x45; 40])])).await;
/// let mut arrived = Vec::new();
/// tokio::select! {
///     ended = driver.run() => return Err(ended.unwrap_err().into()),
///     received = right.recv(&mut arrived, 1) => assert_eq!(received?, 1),
/// }
/// assert_eq!(driver.device(0).counters().rx_packets, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Driver<N, D> {
    work: Between<N, D>,
    alarm: Alarm,
}

/// A node between its devices.
#[derive(Debug)]
struct Between<N, D> {
    node: N,
    ports: Vec<Port<D>>,
    clock: Clock,
    watch: Option<Watch>,
    lateness: Lateness,
}

/// A device and what is on its way between it and the node.
#[derive(Debug)]
struct Port<D> {
    device: D,
    inbox: Vec<Packet>,
    outbox: VecDeque<Packet>,
    /// When each packet in the outbox was due, if the node had a time for it.
    due: VecDeque<Option<Instant>>,
    /// When the device took the first packet and the last one.
    span: Option<(Instant, Instant)>,
    dropped: u64,
    /// Who is shown what is beyond the device.
    watch: Option<Watch>,
}

impl<N: Node, D: Device> Driver<N, D> {
    /// Creates a driver for `node` between `devices` on the current runtime, with the time of
    /// `clock`.
    ///
    /// # Errors
    /// [`DriveError::Timer`].
    ///
    /// # Panics
    /// Outside a tokio runtime, and in one built without its IO driver.
    pub fn new(
        node: N,
        devices: impl IntoIterator<Item = D>,
        clock: Clock,
    ) -> Result<Self, DriveError> {
        let ports = devices.into_iter().map(Port::new).collect();
        let (alarm, lateness) = (Alarm::new(clock)?, Lateness::default());
        Ok(Self { work: Between { node, ports, clock, watch: None, lateness }, alarm })
    }

    /// Adds an observer of the node.
    pub fn watch(&mut self, watch: Watch) {
        self.work.watch = Some(watch);
    }

    /// Adds an observer of the host behind the device of a port. It sees the packets between that
    /// device and the node as sent and received by the host; it sees no events of the host.
    ///
    /// # Panics
    /// There are not so many ports.
    pub fn watch_host(&mut self, port: usize, watch: Watch) {
        self.work.ports[port].watch = Some(watch);
    }

    /// Runs until a device is removed, for example until a stack at the other end of a
    /// [`Memory`](airtcp_device::Memory) has ended.
    ///
    /// Cancel-safe: drop the future to stop, and call it again to continue. Nothing is lost in
    /// between, but time passes.
    ///
    /// # Errors
    /// [`DriveError`]; a link that is down is no error.
    pub async fn run(&mut self) -> Result<Infallible, DriveError> {
        task::run(&mut self.work, &mut self.alarm).await
    }

    /// The node, for its counters.
    pub const fn node(&self) -> &N {
        &self.work.node
    }

    /// The node, for changes; its packets are sent when the driver runs again.
    pub const fn node_mut(&mut self) -> &mut N {
        &mut self.work.node
    }

    /// The device of a port, if there is one.
    ///
    /// # Panics
    /// There are not so many.
    pub fn device(&self, port: usize) -> &D {
        &self.work.ports[port].device
    }

    /// Packets dropped because the device of a port was full for too long.
    ///
    /// # Panics
    /// There are not so many ports.
    pub fn dropped(&self, port: usize) -> u64 {
        self.work.ports[port].dropped
    }

    /// The times of the first and the last packet that the device of a port accepted.
    ///
    /// # Panics
    /// There are not so many ports.
    pub fn span(&self, port: usize) -> Option<(Instant, Instant)> {
        self.work.ports[port].span
    }

    /// How long after their due time packets were taken by their devices, of those that had one: a
    /// packet that a link delays has, one that is answered at once has not.
    pub const fn lateness(&self) -> &Lateness {
        &self.work.lateness
    }

    /// The clock of the node.
    pub const fn clock(&self) -> Clock {
        self.work.clock
    }
}

impl<N: Node, D: Device> Work for Between<N, D> {
    type End = DriveError;

    async fn turn(&mut self) -> Result<Next, DriveError> {
        if self.batch()? {
            tokio::task::consume_budget().await;
            return Ok(Next::Turn);
        }
        Ok(Next::Wait(self.node.poll_timeout()))
    }

    async fn ready(&mut self) -> Result<(), DriveError> {
        let waits = self.ports.iter().enumerate().flat_map(|(index, port)| port.waits(index));
        let (index, ready) = first(waits.collect()).await;
        self.ports[index].still(index, ready)
    }
}

impl<N: Node, D: Device> Between<N, D> {
    /// Receives a batch of each device, runs the timers, transmits. Gives whether a device may have
    /// more.
    fn batch(&mut self) -> Result<bool, DriveError> {
        let mut more = false;
        for (index, port) in self.ports.iter_mut().enumerate() {
            let received = port.device.try_recv(&mut port.inbox, BATCH);
            more |= port.still(index, received)? == BATCH;
            let now = self.clock.now();
            for packet in port.inbox.drain(..) {
                if let Some(watch) = &port.watch {
                    watch.packet(now, Crossing::Out, &packet);
                }
                if let Some(watch) = &self.watch {
                    watch.packet(now, Crossing::In, &packet);
                }
                into_segments(packet, |segment| {
                    self.node.handle_packet(now, PortId(index as u16), segment);
                });
            }
        }
        let now = self.clock.now();
        if self.node.poll_timeout().is_some_and(|due| due <= now) {
            self.node.handle_timeout(now);
        }
        self.report();
        while self.take(now) {
            self.send();
        }
        self.send();
        self.report();
        Ok(more)
    }

    /// Passes on what happened at the node.
    fn report(&mut self) {
        while let Some(event) = self.node.poll_event() {
            if let Some(watch) = &self.watch {
                watch.event(&event);
            }
        }
    }

    /// Takes what the node gives; whether a batch was taken, so that there may be more.
    fn take(&mut self, now: Instant) -> bool {
        for _ in 0..BATCH {
            // Once all that is due is worked, a time that is past is that of the next packet out.
            let due = self.node.poll_timeout().filter(|due| *due <= now);
            let Some((port, packet)) = self.node.poll_transmit(now) else { return false };
            if let Some(watch) = &self.watch {
                watch.packet(now, Crossing::Out, &packet);
            }
            // A node between fewer devices than it has ports talks into the void.
            let Some(port) = self.ports.get_mut(usize::from(port.0)) else { continue };
            if port.outbox.len() >= ROOM {
                port.dropped += 1;
            } else {
                if let Some(watch) = &port.watch {
                    watch.packet(now, Crossing::In, &packet);
                }
                port.outbox.push_back(packet);
                port.due.push_back(due);
            }
        }
        true
    }

    fn send(&mut self) {
        for port in self.ports.iter_mut().filter(|port| port.is_waiting()) {
            let taken = port.device.try_send(&mut port.outbox);
            let left_at = self.clock.now();
            if taken > 0 {
                port.span = Some((port.span.map_or(left_at, |(first, _)| first), left_at));
            }
            for due in port.due.drain(..taken).flatten() {
                self.lateness.record(left_at.since(due));
            }
        }
    }
}

type Wait<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

impl<D: Device> Port<D> {
    fn new(device: D) -> Self {
        let (inbox, outbox, due) = (Vec::new(), VecDeque::new(), VecDeque::new());
        Self { device, inbox, outbox, due, span: None, dropped: 0, watch: None }
    }

    fn is_waiting(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What may give it something to do.
    fn waits(&self, index: usize) -> impl Iterator<Item = (usize, Wait<'_>)> {
        let readable: Wait<'_> = Box::pin(self.device.readable());
        let writable = self.is_waiting().then(|| Box::pin(self.device.writable()) as Wait<'_>);
        std::iter::once(readable).chain(writable).map(move |wait| (index, wait))
    }

    fn still<T>(&self, index: usize, outcome: io::Result<T>) -> Result<T, DriveError> {
        outcome.map_err(|source| DriveError::Gone {
            port: PortId(index as u16),
            name: self.device.name().to_owned(),
            source,
        })
    }
}

/// The first of them that is ready.
async fn first(mut waits: Vec<(usize, Wait<'_>)>) -> (usize, io::Result<()>) {
    poll_fn(|context| {
        for (index, wait) in &mut waits {
            if let Poll::Ready(ready) = wait.as_mut().poll(context) {
                return Poll::Ready((*index, ready));
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests;
