//! Pings through a device.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use airtcp_device::Device;
use airtcp_types::Packet;
use airtcp_wire::icmp::{self, Message};
use airtcp_wire::ip;
use tokio::time::{Instant, timeout_at};

use super::{Found, LEAST, PATIENCE};

/// The interval between pings until the first answer.
const AGAIN: Duration = Duration::from_millis(250);
/// The number of pings for loss and round trips, the interval between them, and their length
/// (bytes).
const PINGS: usize = 100;
const DISTANCE: Duration = Duration::from_millis(20);
const LENGTH: usize = 100;
/// The time limit for answers after the last ping.
const LATE: Duration = Duration::from_secs(1);
/// The number of tries for each length.
const TRIES: usize = 4;
/// The echo identifier of all pings.
const IDENTIFIER: [u8; 2] = *b"at";

/// Sends pings from `own` to `far` through a device.
pub(super) struct Pinger<D> {
    device: D,
    own: IpAddr,
    far: IpAddr,
    sequence: u16,
    /// The send times of the unanswered pings, by sequence number.
    sent: HashMap<u16, Instant>,
}

impl<D: Device> Pinger<D> {
    pub(super) fn new(device: D, own: IpAddr, far: IpAddr) -> Self {
        Self { device, own, far, sequence: 0, sent: HashMap::new() }
    }

    /// Returns the time until the first answer; `None` if there is none.
    pub(super) async fn first(&mut self) -> io::Result<Option<Duration>> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.send(LENGTH).await;
            if !self.answers(Instant::now() + AGAIN, 1).await?.is_empty() {
                return Ok(Some(began.elapsed()));
            }
        }
        Ok(None)
    }

    /// Measures the loss, the round trips, and the largest packet of at most `mtu` bytes that comes
    /// back.
    pub(super) async fn look(&mut self, mtu: usize) -> io::Result<Found> {
        self.sent.clear();
        let mut trips = Vec::new();
        let began = Instant::now();
        for number in 1..=PINGS {
            self.send(LENGTH).await;
            // `PINGS + 1` answers never arrive, so this waits for the whole interval.
            trips.extend(self.answers(began + DISTANCE * number as u32, PINGS + 1).await?);
        }
        let missing = PINGS - trips.len();
        trips.extend(self.answers(Instant::now() + LATE, missing).await?);
        trips.sort_unstable();
        let milliseconds = |trip: &Duration| trip.as_secs_f64() * 1e3;
        let round_trip_ms = match &trips[..] {
            [] => None,
            [least, ..] => {
                let (median, most) = (&trips[trips.len() / 2], &trips[trips.len() - 1]);
                Some([least, median, most].map(milliseconds))
            }
        };
        Ok(Found {
            endpoint: String::new(),
            first: "first ping",
            first_answer_ms: 0.0,
            pings: PINGS,
            answers: trips.len(),
            round_trip_ms,
            mtu: self.largest(mtu).await?,
            mtu_asked: mtu,
        })
    }

    async fn largest(&mut self, mtu: usize) -> io::Result<Option<usize>> {
        if self.comes_back(mtu).await? {
            return Ok(Some(mtu));
        }
        let (mut fits, mut too_long) = (LEAST.min(mtu), mtu);
        if !self.comes_back(fits).await? {
            return Ok(None);
        }
        while too_long - fits > 1 {
            let middle = fits.midpoint(too_long);
            let half = if self.comes_back(middle).await? { &mut fits } else { &mut too_long };
            *half = middle;
        }
        Ok(Some(fits))
    }

    /// Whether a packet of `length` bytes is answered.
    async fn comes_back(&mut self, length: usize) -> io::Result<bool> {
        self.sent.clear();
        for _ in 0..TRIES {
            self.send(length).await;
            if !self.answers(Instant::now() + DISTANCE, 1).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(!self.answers(Instant::now() + LATE, 1).await?.is_empty())
    }

    async fn send(&mut self, length: usize) {
        self.sequence = self.sequence.wrapping_add(1);
        let headers = if self.own.is_ipv4() { 20 } else { 40 } + icmp::HEADER_LEN;
        let mut data = vec![0; 4 + length.saturating_sub(headers)];
        data[..2].copy_from_slice(&IDENTIFIER);
        data[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        let ping = icmp::emit_echo(self.own, self.far, 64, &data);
        self.sent.insert(self.sequence, Instant::now());
        self.device.send(&mut [ping].into()).await;
    }

    /// Waits for `wanted` answers, at most until `end`; returns their round trips.
    async fn answers(&mut self, end: Instant, wanted: usize) -> io::Result<Vec<Duration>> {
        let (mut trips, mut batch) = (Vec::new(), Vec::new());
        while trips.len() < wanted {
            match timeout_at(end, self.device.recv(&mut batch, 64)).await {
                Ok(received) => drop(received?),
                Err(_) => return Ok(trips),
            }
            trips.extend(batch.drain(..).filter_map(|packet| self.answered(&packet)));
        }
        Ok(trips)
    }

    /// Returns the round trip if the packet answers a ping.
    fn answered(&mut self, packet: &Packet) -> Option<Duration> {
        let datagram = ip::parse(&packet.data).ok()?;
        let Ok(Message::EchoReply) = icmp::parse(&datagram) else { return None };
        let (identifier, rest) = datagram.payload.get(4..)?.split_first_chunk()?;
        let sequence = u16::from_be_bytes(*rest.first_chunk()?);
        let sent = self.sent.remove(&sequence).filter(|_| *identifier == IDENTIFIER)?;
        Some(sent.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use airtcp_device::memory;
    use airtcp_net::Stack;
    use airtcp_stack::HostConfig;
    use airtcp_stack::host::Cidr;
    use airtcp_types::ByteCount;

    use super::*;

    #[tokio::test]
    async fn a_far_gateway_answers_pings_up_to_its_mtu() {
        for (own, far, mtu) in [
            ("10.77.0.2", "10.77.0.1/24", 1440),
            ("10.77.0.2", "10.77.0.1/24", 1300),
            ("fd77::2", "fd77::1/64", 1440),
        ] {
            let (left, right) = memory::pair(1440, 64);
            let far: Cidr = far.parse().unwrap();
            let mut config = HostConfig::new([far]);
            config.mtu = ByteCount(mtu);
            let _far = Stack::new(right, config).unwrap();
            let mut pinger = Pinger::new(left, own.parse().unwrap(), far.address());
            assert!(pinger.first().await.unwrap().is_some());
            let found = pinger.look(1440).await.unwrap();
            assert_eq!((found.answers, found.mtu), (PINGS, Some(mtu as usize)));
            assert!(found.round_trip_ms.is_some());
            let advice = found.to_string().contains("set --mtu 1300");
            assert_eq!(advice, mtu == 1300, "{found}");
        }
    }
}
