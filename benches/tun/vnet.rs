//! A TUN device for smoltcp that allocates nothing per packet, optionally with checksum and
//! segmentation offload.

use std::io;
use std::num::{NonZeroU16, NonZeroUsize};
use std::os::fd::{AsRawFd, RawFd};

use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium, PacketMeta};
use smoltcp::time::Instant;
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

const MTU: usize = 1500;
/// The largest packet before segmentation. It is less than IP's 65,535, so that its length is
/// always written in its header.
const SUPER: usize = 65_000;
/// Room for the virtio header before each packet and the longest IP packet.
const ROOM: usize = VIRTIO_NET_HDR_LEN + 65_535;
const TCP: u8 = 6;
/// The offset of the checksum in a TCP header.
const TCP_CHECKSUM: usize = 16;
// Virtio 1.3, section 5.1.6.
const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;

pub(crate) struct TunDevice {
    tun: SyncDevice,
    offload: bool,
    rx: Box<[u8]>,
    tx: Box<[u8]>,
}

impl TunDevice {
    /// Creates and opens the device `name`.
    pub(crate) fn open(name: &str, offload: bool) -> io::Result<Self> {
        let tun = DeviceBuilder::new().name(name).offload(offload).build_sync()?;
        tun.set_nonblocking(true)?;
        let buffer = || vec![0; ROOM].into_boxed_slice();
        Ok(Self { tun, offload, rx: buffer(), tx: buffer() })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.tun.as_raw_fd()
    }
}

impl Device for TunDevice {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let header = if self.offload { VIRTIO_NET_HDR_LEN } else { 0 };
        // An empty queue is reported as an error, too.
        let length = self.tun.recv(&mut self.rx).ok()?;
        let packet = self.rx.get(header..length)?;
        let Self { tun, offload, tx, .. } = self;
        let meta = PacketMeta::default();
        Some((Received(packet), Sending { tun, offload: *offload, buffer: tx, meta }))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sending<'_>> {
        let Self { tun, offload, tx, .. } = self;
        Some(Sending { tun, offload: *offload, buffer: tx, meta: PacketMeta::default() })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        if self.offload {
            capabilities.checksum.tcp = Checksum::None;
            capabilities.segmentation.tcpv4 = NonZeroUsize::new(SUPER);
        }
        capabilities
    }
}

pub(crate) struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, consume: F) -> R {
        consume(self.0)
    }
}

pub(crate) struct Sending<'a> {
    tun: &'a SyncDevice,
    offload: bool,
    buffer: &'a mut [u8],
    meta: PacketMeta,
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let header = if self.offload { VIRTIO_NET_HDR_LEN } else { 0 };
        let packet = &mut self.buffer[..header + length];
        let result = fill(&mut packet[header..]);
        if self.offload {
            let (header, packet) = packet.split_at_mut(VIRTIO_NET_HDR_LEN);
            leave_checksum(header, packet, self.meta.segmentation_offload_size);
        }
        // A packet that the kernel does not take is lost, as on any link.
        let _ = self.tun.send(packet);
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.meta = meta;
    }
}

/// Writes the virtio header by which the kernel completes a TCP packet's checksum and, with an
/// `mss`, cuts the packet into segments with that many bytes of payload. The checksum field gets
/// the sum of the pseudo-header.
fn leave_checksum(header: &mut [u8], packet: &mut [u8], mss: Option<NonZeroU16>) {
    header.fill(0);
    if packet[9] != TCP {
        return;
    }
    let ip = usize::from(packet[0] & 15) * 4;
    let tcp = usize::from(packet[ip + 12] >> 4) * 4;
    let addresses = packet[12..20].chunks_exact(2);
    let mut sum: u32 =
        addresses.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    sum += u32::from(TCP) + (packet.len() - ip) as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[ip + TCP_CHECKSUM..][..2].copy_from_slice(&(sum as u16).to_be_bytes());
    header[0] = NEEDS_CHECKSUM;
    if let Some(mss) = mss {
        header[1] = GSO_TCPV4;
        header[4..6].copy_from_slice(&mss.get().to_ne_bytes());
    }
    let mut put = |at: usize, value: usize| {
        header[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
    };
    put(2, ip + tcp);
    put(6, ip);
    put(8, TCP_CHECKSUM);
}
