//! A bridge between two devices.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::time;

use airtcp_device::Device;
use airtcp_types::{Instant, Node, Packet};

use crate::{Bridge, Side};

/// Packets taken from a device, or given to it, before the other one's turn.
const BATCH: usize = 64;

/// A device is gone for good: its interface was deleted, or the other end dropped.
#[derive(Debug, thiserror::Error)]
#[error("the {} device {name} is gone ({source})", side.name())]
pub struct DeviceGone {
    /// The side it was on.
    pub side: Side,
    /// Its name.
    pub name: String,
    /// What the device said.
    pub source: io::Error,
}

/// Drives a [`Bridge`] between two devices.
#[derive(Debug)]
pub struct Forwarder<Wired, Wireless> {
    bridge: Bridge,
    wired: Attachment<Wired>,
    wireless: Attachment<Wireless>,
    started: time::Instant,
}

impl<Wired: Device, Wireless: Device> Forwarder<Wired, Wireless> {
    /// Puts `bridge` between two devices.
    pub fn new(bridge: Bridge, wired: Wired, wireless: Wireless) -> Self {
        let (wired, wireless) =
            (Attachment::new(Side::Wired, wired), Attachment::new(Side::Wireless, wireless));
        Self { bridge, wired, wireless, started: time::Instant::now() }
    }

    /// Forwards until a device is gone.
    ///
    /// Cancel-safe: stop it by dropping the future, and go on by calling it again. Nothing is lost
    /// in between.
    ///
    /// # Errors
    /// [`DeviceGone`]; a link that is down is no error.
    pub async fn run(&mut self) -> Result<Infallible, DeviceGone> {
        loop {
            tokio::select! {
                ready = self.wired.device.readable() => self.wired.still(ready)?,
                ready = self.wireless.device.readable() => self.wireless.still(ready)?,
                ready = self.wired.device.writable(), if self.wired.is_full() =>
                    self.wired.still(ready)?,
                ready = self.wireless.device.writable(), if self.wireless.is_full() =>
                    self.wireless.still(ready)?,
            }
            let nanos = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let now = Instant::from_nanos(nanos);
            self.wired.receive(now, &mut self.bridge)?;
            self.wireless.receive(now, &mut self.bridge)?;
            self.wired.send(&mut self.bridge);
            self.wireless.send(&mut self.bridge);
        }
    }

    /// The bridge, for its counters.
    pub const fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    /// The device on the wired side.
    pub const fn wired(&self) -> &Wired {
        &self.wired.device
    }

    /// The device on the wireless side.
    pub const fn wireless(&self) -> &Wireless {
        &self.wireless.device
    }
}

/// A device and what is on its way between it and the bridge.
#[derive(Debug)]
struct Attachment<D> {
    side: Side,
    device: D,
    batch: Vec<Packet>,
    /// What the device has not taken yet. The rest waits in the bridge, whose queue is bounded.
    outbox: VecDeque<Packet>,
}

impl<D: Device> Attachment<D> {
    fn new(side: Side, device: D) -> Self {
        Self { side, device, batch: Vec::new(), outbox: VecDeque::new() }
    }

    fn is_full(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn still<T>(&self, outcome: io::Result<T>) -> Result<T, DeviceGone> {
        outcome.map_err(|source| DeviceGone {
            side: self.side,
            name: self.device.name().to_owned(),
            source,
        })
    }

    fn receive(&mut self, now: Instant, bridge: &mut Bridge) -> Result<(), DeviceGone> {
        let received = self.device.try_recv(&mut self.batch, BATCH);
        self.still(received)?;
        for packet in self.batch.drain(..) {
            bridge.handle_packet(now, self.side.port(), packet);
        }
        Ok(())
    }

    fn send(&mut self, bridge: &mut Bridge) {
        loop {
            let room = BATCH - self.outbox.len().min(BATCH);
            self.outbox.extend((0..room).map_while(|_| bridge.poll_transmit_by(self.side)));
            if self.device.try_send(&mut self.outbox) == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_device::{Memory, memory};

    use super::*;

    fn packets(count: u8) -> VecDeque<Packet> {
        (0..count)
            .map(|number| {
                let mut data = vec![number; 40];
                data[0] = 0x60;
                Packet::new(data)
            })
            .collect()
    }

    fn between(capacity: usize) -> (Memory, Forwarder<Memory, Memory>, Memory) {
        let (server, wired) = memory::pair(1500, 256);
        let (wireless, mobile) = memory::pair(1500, 8);
        (server, Forwarder::new(Bridge::new(capacity), wired, wireless), mobile)
    }

    /// Runs until there is nothing left to do.
    async fn settle(forwarder: &mut Forwarder<Memory, Memory>) {
        tokio::select! {
            biased;
            gone = forwarder.run() => panic!("{}", gone.unwrap_err()),
            () = async { for _ in 0..64 { tokio::task::yield_now().await } } => {}
        }
    }

    #[tokio::test]
    async fn packets_cross_both_ways() {
        let (mut server, mut forwarder, mut mobile) = between(512);
        assert_eq!(server.try_send(&mut packets(5)), 5);
        assert_eq!(mobile.try_send(&mut packets(3)), 3);
        settle(&mut forwarder).await;
        let (mut at_mobile, mut at_server) = (Vec::new(), Vec::new());
        mobile.try_recv(&mut at_mobile, 64).unwrap();
        server.try_recv(&mut at_server, 64).unwrap();
        assert_eq!(at_mobile, Vec::from(packets(5)));
        assert_eq!(at_server, Vec::from(packets(3)));
    }

    #[tokio::test]
    async fn a_full_device_fills_the_queue_and_no_more() {
        let (mut server, mut forwarder, mut mobile) = between(10);
        assert_eq!(server.try_send(&mut packets(200)), 200);
        settle(&mut forwarder).await;
        let counters = *forwarder.bridge().counters(Side::Wired);
        assert_eq!(counters.packets + counters.dropped_full, 200);
        assert!(counters.dropped_full > 0, "{counters:?}");
        assert!(forwarder.bridge().queued(Side::Wireless) <= 10);
        // Stopped and started again, with room at the device now: all that was taken arrives.
        let mut received = Vec::new();
        for _ in 0..64 {
            mobile.try_recv(&mut received, 64).unwrap();
            settle(&mut forwarder).await;
        }
        assert_eq!(received.len() as u64, counters.packets);
        assert!(received.is_sorted_by_key(|packet| packet.data[1]));
    }

    #[tokio::test]
    async fn a_device_that_is_gone_is_named() {
        let (server, mut forwarder, _mobile) = between(10);
        drop(server);
        let gone = forwarder.run().await.unwrap_err();
        assert_eq!(gone.side, Side::Wired);
        assert!(gone.to_string().starts_with("the wired device memory is gone"), "{gone}");
    }
}
