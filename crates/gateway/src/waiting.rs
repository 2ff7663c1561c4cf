//! Packets queued for a device that another task drives.

use std::collections::VecDeque;
use std::sync::Mutex;

use airtcp_device::Device;
use airtcp_types::Packet;
use tokio::sync::Notify;

use crate::carried::lock;

/// The most packets that may wait; further ones are dropped.
const MOST: usize = 512;

/// Packets that wait for their device.
#[derive(Default, Debug)]
pub(crate) struct Waiting {
    packets: Mutex<VecDeque<Packet>>,
    changed: Notify,
}

impl Waiting {
    /// Queues a packet.
    pub(crate) fn push(&self, packet: Packet) {
        let mut packets = lock(&self.packets);
        if packets.len() < MOST {
            packets.push_back(packet);
            self.changed.notify_one();
        }
    }

    /// Waits until there may be a packet. Cancel-safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Sends the queued packets. Packets that the device does not accept are dropped.
    pub(crate) fn send(&self, device: &mut impl Device) {
        let mut packets = std::mem::take(&mut *lock(&self.packets));
        if !packets.is_empty() {
            device.try_send(&mut packets);
        }
    }
}
