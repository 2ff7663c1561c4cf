//! A pair of devices that are connected in memory.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_types::Packet;
use tokio::sync::Notify;

use crate::{Capabilities, Counters, Device};

/// Creates a pair of connected devices: packets sent into one are received from the other, in
/// order.
///
/// Each direction holds up to `capacity` packets (at least one) of up to `mtu` bytes. A full
/// direction exerts back-pressure: the sender keeps its packets and waits in [`Device::writable`].
/// No packet is lost; to lose packets, put a link between two pairs.
pub fn pair(mtu: usize, capacity: usize) -> (Memory, Memory) {
    ends(mtu, capacity, Capabilities::default())
}

/// Creates a [`pair`] of offloading devices. Super-segments, whose segments have up to `mtu` bytes,
/// and packets with a partial checksum are received as they were sent, as between two containers on
/// one machine.
pub fn offloading_pair(mtu: usize, capacity: usize) -> (Memory, Memory) {
    ends(mtu, capacity, Capabilities { checksum_offload: true, segmentation_offload: true })
}

fn ends(mtu: usize, capacity: usize, capabilities: Capabilities) -> (Memory, Memory) {
    let one = Arc::new(Direction::new(capacity));
    let other = Arc::new(Direction::new(capacity));
    let end = |inbound: &Arc<Direction>, outbound: &Arc<Direction>| Memory {
        mtu,
        capabilities,
        inbound: inbound.clone(),
        outbound: outbound.clone(),
        counters: Counters::default(),
    };
    (end(&one, &other), end(&other, &one))
}

/// One end of a [`pair`]. Dropping it closes the other end.
#[derive(Debug)]
pub struct Memory {
    mtu: usize,
    capabilities: Capabilities,
    inbound: Arc<Direction>,
    outbound: Arc<Direction>,
    counters: Counters,
}

#[derive(Debug)]
struct Direction {
    capacity: usize,
    queue: Mutex<Queue>,
    // Each has at most one waiter, the end on its side, so no wake-up is lost with one stored
    // permit.
    arrived: Notify,
    drained: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Packet>,
    closed: bool,
}

impl Direction {
    fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            queue: Mutex::default(),
            arrived: Notify::new(),
            drained: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
        self.drained.notify_one();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.outbound.close();
        self.inbound.close();
    }
}

impl Device for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    async fn readable(&self) -> io::Result<()> {
        loop {
            {
                let queue = self.inbound.lock();
                if !queue.packets.is_empty() || queue.closed {
                    return Ok(());
                }
            }
            self.inbound.arrived.notified().await;
        }
    }

    async fn writable(&self) -> io::Result<()> {
        loop {
            {
                let queue = self.outbound.lock();
                if queue.packets.len() < self.outbound.capacity || queue.closed {
                    return Ok(());
                }
            }
            self.outbound.drained.notified().await;
        }
    }

    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize> {
        let mut queue = self.inbound.lock();
        let taken = max.min(queue.packets.len());
        if taken == 0 && max > 0 && queue.closed {
            self.counters.rx_errors += 1;
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the other end was dropped"));
        }
        for packet in queue.packets.drain(..taken) {
            self.counters.rx_packets += 1;
            self.counters.rx_bytes += packet.len() as u64;
            into.push(packet);
        }
        if taken > 0 {
            self.inbound.drained.notify_one();
        }
        Ok(taken)
    }

    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize {
        let capabilities = self.capabilities;
        let mut queue = self.outbound.lock();
        let before = packets.len();
        let mut arrived = false;
        while queue.closed || queue.packets.len() < self.outbound.capacity {
            let Some(packet) = packets.pop_front() else { break };
            if queue.closed || !capabilities.allow(&packet, self.mtu) {
                self.counters.tx_errors += 1;
                continue;
            }
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += packet.len() as u64;
            queue.packets.push_back(packet);
            arrived = true;
        }
        if arrived {
            self.outbound.arrived.notify_one();
        }
        before - packets.len()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use airtcp_types::{Checksum, SharedBytes};

    use super::*;

    fn packets(lengths: &[usize]) -> VecDeque<Packet> {
        lengths.iter().map(|&length| Packet::new(vec![0x45; length])).collect()
    }

    #[tokio::test]
    async fn packets_arrive_in_order_and_are_counted() {
        let (mut left, mut right) = pair(1500, 8);
        left.send(&mut packets(&[40, 41, 42])).await;
        let mut batch = Vec::new();
        assert_eq!(right.recv(&mut batch, 2).await.unwrap(), 2);
        assert_eq!(right.recv(&mut batch, 2).await.unwrap(), 1);
        assert_eq!(batch.iter().map(Packet::len).collect::<Vec<_>>(), [40, 41, 42]);
        assert_eq!((left.counters().tx_packets, left.counters().tx_bytes), (3, 123));
        assert_eq!((right.counters().rx_packets, right.counters().rx_bytes), (3, 123));
    }

    #[tokio::test]
    async fn a_full_direction_pushes_back() {
        let (mut left, mut right) = pair(1500, 2);
        let mut waiting = packets(&[40, 41, 42]);
        assert_eq!(left.try_send(&mut waiting), 2);
        assert_eq!(waiting.len(), 1);
        {
            let mut blocked = pin!(left.writable());
            assert!(
                std::future::poll_fn(|cx| {
                    std::task::Poll::Ready(blocked.as_mut().poll(cx).is_pending())
                })
                .await
            );
            right.try_recv(&mut Vec::new(), 1).unwrap();
            blocked.await.unwrap();
        }
        assert_eq!(left.try_send(&mut waiting), 1);
        assert_eq!(left.counters().tx_errors, 0);
    }

    #[tokio::test]
    async fn packets_that_the_device_cannot_carry_are_counted_and_dropped() {
        let (mut left, mut right) = pair(1500, 8);
        let mut batch = packets(&[1501, 40, 40, 60]);
        batch[1].segment_size = Some(20);
        batch[2].checksum = Checksum::Partial;
        assert_eq!(left.try_send(&mut batch), 4);
        assert_eq!((left.counters().tx_errors, left.counters().tx_packets), (3, 1));
        let mut received = Vec::new();
        assert_eq!(right.try_recv(&mut received, 8).unwrap(), 1);
        assert_eq!(received[0].len(), 60);
    }

    /// An IPv4 TCP super-segment with `len` bytes of payload behind its headers.
    fn super_segment(len: usize, segment_size: u16) -> Packet {
        let mut data = vec![0; 40];
        (data[0], data[9], data[32]) = (0x45, 6, 5 << 4);
        let payload = Arc::new(vec![7; len]);
        let tail = vec![SharedBytes::new(&payload, 0..len)];
        Packet { data, tail, segment_size: Some(segment_size), checksum: Checksum::Partial }
    }

    #[test]
    fn an_offloading_pair_carries_super_segments_as_they_are() {
        let (mut left, mut right) = offloading_pair(1500, 8);
        let good = super_segment(60_000, 1460);
        let mut odd = super_segment(100, 100);
        odd.data[9] = 47;
        let bad = [
            super_segment(60_000, 1461),
            super_segment(65_496, 1460),
            super_segment(100, 0),
            Packet { segment_size: None, ..super_segment(1461, 1) },
            Packet { segment_size: None, ..odd.clone() },
            Packet { checksum: Checksum::Verified, ..odd },
        ];
        let mut batch: VecDeque<Packet> = bad.into();
        batch.push_back(good.clone());
        batch.push_back(Packet { segment_size: None, ..super_segment(1460, 1) });
        let refused = batch.len() as u64 - 2;
        left.try_send(&mut batch);
        assert_eq!((left.counters().tx_errors, left.counters().tx_bytes), (refused, 61_540));
        let mut received = Vec::new();
        right.try_recv(&mut received, 8).unwrap();
        assert_eq!((received.len(), &received[0]), (2, &good));

        // A pair without offload refuses both.
        let (mut left, _right) = pair(65_535, 8);
        let whole = Packet { segment_size: None, checksum: Checksum::Full, ..good.clone() };
        assert_eq!(left.try_send(&mut VecDeque::from([good, whole])), 2);
        assert_eq!(left.counters().tx_errors, 2);
    }

    #[tokio::test]
    async fn a_dropped_end_is_an_error_after_its_last_packet() {
        let (mut left, mut right) = pair(1500, 8);
        left.try_send(&mut packets(&[40]));
        drop(left);
        let mut batch = Vec::new();
        assert_eq!(right.recv(&mut batch, 8).await.unwrap(), 1);
        assert!(right.recv(&mut batch, 8).await.is_err());
        // Sending to a dropped end does not block; the packets are counted.
        right.send(&mut packets(&[40; 20])).await;
        assert_eq!(right.counters().tx_errors, 20);
    }

    #[tokio::test]
    async fn a_waiting_receiver_is_woken() {
        let (mut left, mut right) = pair(1500, 8);
        let receiver = tokio::spawn(async move {
            let mut batch = Vec::new();
            right.recv(&mut batch, 8).await.unwrap();
            batch.len()
        });
        tokio::task::yield_now().await;
        left.send(&mut packets(&[40])).await;
        assert_eq!(receiver.await.unwrap(), 1);
    }
}
