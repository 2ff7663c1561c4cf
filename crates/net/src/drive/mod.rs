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

/// The maximum number of packets taken from a device or the node at a time.
const BATCH: usize = 64;

/// The maximum number of packets that wait for a full device; further ones are dropped.
const ROOM: usize = 1024;

/// The reason why a driver ended.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// A device was removed: its interface was deleted, or the other end of a
    /// [`Memory`](airtcp_device::Memory) was dropped, for example because its stack ended.
    #[error("the device {name} was removed ({source})")]
    Gone {
        /// The port of the device.
        port: PortId,
        /// The name of the device.
        name: String,
        /// The error of the device.
        source: io::Error,
    },
    /// No timer is available.
    #[error("no timer is available: {0}")]
    Timer(#[from] io::Error),
}

/// Drives a [`Node`] between devices: port n of the node is the n-th device.
///
/// A super-segment from an offloading device is split into segments with checksums, so the node
/// sees packets of MTU size, as on a wire.
///
/// The driver passes packets to the node with the current time, and calls it at each deadline.
/// Packets for a full device wait, at most 1024; further ones are dropped and counted.
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

/// A device, and the packets between it and the node.
#[derive(Debug)]
struct Port<D> {
    device: D,
    inbox: Vec<Packet>,
    outbox: VecDeque<Packet>,
    /// The due time of each packet in the outbox; `None` for packets that had none.
    due: VecDeque<Option<Instant>>,
    /// When the device accepted its first and its last packet.
    span: Option<(Instant, Instant)>,
    dropped: u64,
    /// The observer of the host behind the device.
    watch: Option<Watch>,
}

impl<N: Node, D: Device> Driver<N, D> {
    /// Creates a driver for `node` between `devices` on the current runtime. `clock` supplies the
    /// time.
    ///
    /// # Errors
    /// [`DriveError::Timer`]: no timer is available.
    ///
    /// # Panics
    /// Outside a tokio runtime, and in a runtime built without its IO driver.
    pub fn new(
        node: N,
        devices: impl IntoIterator<Item = D>,
        clock: Clock,
    ) -> Result<Self, DriveError> {
        let ports = devices.into_iter().map(Port::new).collect();
        let (alarm, lateness) = (Alarm::new(clock)?, Lateness::default());
        Ok(Self { work: Between { node, ports, clock, watch: None, lateness }, alarm })
    }

    /// Sets the observer of the node.
    pub fn watch(&mut self, watch: Watch) {
        self.work.watch = Some(watch);
    }

    /// Sets the observer of the host behind the device of a port. It sees the packets between that
    /// device and the node as sent and received by the host, but no events of the host.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn watch_host(&mut self, port: usize, watch: Watch) {
        self.work.ports[port].watch = Some(watch);
    }

    /// Runs until a device is removed, for example until a stack at the other end of a
    /// [`Memory`](airtcp_device::Memory) has ended.
    ///
    /// Cancel-safe: drop the future to stop the driver, and call this again to continue. No packet
    /// is lost in between, but time passes.
    ///
    /// # Errors
    /// [`DriveError`]. A link that is down is not an error.
    pub async fn run(&mut self) -> Result<Infallible, DriveError> {
        task::run(&mut self.work, &mut self.alarm).await
    }

    /// The node, for reading, such as its counters.
    pub const fn node(&self) -> &N {
        &self.work.node
    }

    /// The node, for changes. Packets that it then has to send leave when the driver runs again.
    pub const fn node_mut(&mut self) -> &mut N {
        &mut self.work.node
    }

    /// The device of a port.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn device(&self, port: usize) -> &D {
        &self.work.ports[port].device
    }

    /// The number of packets dropped because the device of a port was full.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn dropped(&self, port: usize) -> u64 {
        self.work.ports[port].dropped
    }

    /// The times at which the device of a port accepted its first and its last packet.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn span(&self, port: usize) -> Option<(Instant, Instant)> {
        self.work.ports[port].span
    }

    /// The time from the due time of packets to their acceptance by a device. Packets without a due
    /// time are not counted: a packet that a link delays has one, an immediate answer has not.
    pub const fn lateness(&self) -> &Lateness {
        &self.work.lateness
    }

    /// The clock that supplies the node's time.
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
    /// Receives a batch from each device, runs the timers, and transmits. Returns whether a device
    /// may have more.
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

    /// Drains the node's events and passes them to the observer.
    fn report(&mut self) {
        while let Some(event) = self.node.poll_event() {
            if let Some(watch) = &self.watch {
                watch.event(&event);
            }
        }
    }

    /// Takes at most [`BATCH`] packets from the node; returns whether it may have more.
    fn take(&mut self, now: Instant) -> bool {
        for _ in 0..BATCH {
            // After `handle_timeout`, a deadline in the past is the due time of the next packet
            // out.
            let due = self.node.poll_timeout().filter(|due| *due <= now);
            let Some((port, packet)) = self.node.poll_transmit(now) else { return false };
            if let Some(watch) = &self.watch {
                watch.packet(now, Crossing::Out, &packet);
            }
            // The node may have more ports than devices; packets for the others are dropped.
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

    /// Returns the futures that complete when the port has work.
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

/// Waits for the first future that completes; returns its port and result.
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
