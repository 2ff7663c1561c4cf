//! Packets for a device that somebody else drives.

use std::collections::VecDeque;
use std::sync::Mutex;

use airtcp_device::Device;
use airtcp_types::Packet;
use tokio::sync::Notify;

use crate::carried::lock;

/// How many packets may wait. One too many is lost.
const MOST: usize = 512;

/// Packets that wait for their device.
#[derive(Default, Debug)]
pub(crate) struct Waiting {
    packets: Mutex<VecDeque<Packet>>,
    changed: Notify,
}

impl Waiting {
    /// Has a packet wait.
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

    /// Sends what waits. What a full device leaves over is lost.
    pub(crate) fn send(&self, device: &mut impl Device) {
        let mut packets = std::mem::take(&mut *lock(&self.packets));
        if !packets.is_empty() {
            device.try_send(&mut packets);
        }
    }
}
