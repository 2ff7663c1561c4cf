//! A device without some of the packets that arrive at another one.

use std::collections::VecDeque;
use std::io;

use airtcp_device::{Capabilities, Counters, Device};
use airtcp_types::Packet;

use crate::waiting::Waiting;

/// Decides which packets of a device reach the stack.
pub(crate) trait Filter: Send + Sync + 'static {
    /// Whether the stack receives `packet`. If not, the filter may take its content.
    fn admits(&mut self, packet: &mut Packet) -> bool;

    /// The filter's own packets to send by the device.
    fn outbox(&self) -> Option<&Waiting> {
        None
    }

    /// Sends packets of the stack, as [`Device::try_send`].
    fn try_send(&mut self, device: &mut impl Device, packets: &mut VecDeque<Packet>) -> usize {
        device.try_send(packets)
    }
}

/// A device with a filter between it and the stack.
#[derive(Debug)]
pub(crate) struct Filtered<D, F> {
    device: D,
    filter: F,
    /// Packets that the stack does not receive, for [`Device::recycle`].
    removed: Vec<Packet>,
}

impl<D, F> Filtered<D, F> {
    pub(crate) fn new(device: D, filter: F) -> Self {
        Self { device, filter, removed: Vec::new() }
    }
}

impl<D: Device, F: Filter> Device for Filtered<D, F> {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn mtu(&self) -> usize {
        self.device.mtu()
    }

    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }

    async fn readable(&self) -> io::Result<()> {
        match self.filter.outbox() {
            None => self.device.readable().await,
            Some(outbox) => tokio::select! {
                readable = self.device.readable() => readable,
                () = outbox.changed() => Ok(()),
            },
        }
    }

    async fn writable(&self) -> io::Result<()> {
        self.device.writable().await
    }

    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize> {
        let Self { device, filter, removed } = self;
        if let Some(outbox) = filter.outbox() {
            outbox.send(device);
        }
        let before = into.len();
        device.try_recv(into, max)?;
        removed.extend(into.extract_if(before.., |packet| !filter.admits(packet)));
        removed.retain(|packet| !packet.data.is_empty());
        device.recycle(removed);
        Ok(into.len() - before)
    }

    fn recycle(&mut self, packets: &mut Vec<Packet>) {
        self.device.recycle(packets);
    }

    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize {
        self.filter.try_send(&mut self.device, packets)
    }

    fn reclaim(&mut self, into: &mut Vec<Packet>) {
        self.device.reclaim(into);
    }
}
