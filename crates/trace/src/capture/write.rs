//! Writing of a recorder's capture.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use airtcp_types::{Crossing, Fate, Instant, NodeId};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::NodeInfo;

/// The maximum packet length that readers accept (libpcap's `MAXIMUM_SNAPLEN`); longer packets are
/// cut.
const SNAP_LEN: usize = 262_144;

/// `if_tsresol`: timestamps in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes packets to a pcapng file: one interface per node, timestamps in nanoseconds, raw IP.
pub(crate) struct Writer {
    file: PcapNgWriter<BufWriter<File>>,
    /// The time of [`Instant::ZERO`], since the Unix epoch.
    origin: Duration,
}

impl Writer {
    pub(crate) fn create(
        path: &Path,
        title: &str,
        nodes: &[NodeInfo],
        origin: Duration,
    ) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(Cow::Owned(title.to_owned())),
                SectionHeaderOption::UserApplication(Cow::Borrowed("airtcp")),
            ],
            ..SectionHeaderBlock::default()
        };
        let buffered = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let mut file = PcapNgWriter::with_section_header(buffered, section).map_err(unwrapped)?;
        for node in nodes {
            let mut interface = InterfaceDescriptionBlock::new(DataLink::RAW, SNAP_LEN as u32);
            interface.options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(&node.name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            file.write_pcapng_block(interface).map_err(unwrapped)?;
        }
        // With its interfaces on disk, a truncated capture can be read.
        file.get_mut().flush()?;
        Ok(Self { file, origin })
    }

    /// Writes a packet that crosses the edge of a node.
    pub(crate) fn crossing(
        &mut self,
        at: Instant,
        node: NodeId,
        crossing: Crossing,
        data: &[u8],
    ) -> io::Result<()> {
        // epb_flags, bits 0 and 1: the direction.
        let direction = match crossing {
            Crossing::In => 1,
            Crossing::Out => 2,
        };
        self.write(at, node, data, vec![EnhancedPacketOption::Flags(direction)])
    }

    /// Writes a packet with its fate at a node.
    pub(crate) fn fate(
        &mut self,
        at: Instant,
        node: NodeId,
        fate: &Fate,
        data: &[u8],
    ) -> io::Result<()> {
        let comment = EnhancedPacketOption::Comment(Cow::Owned(fate.to_string()));
        self.write(at, node, data, vec![comment])
    }

    fn write(
        &mut self,
        at: Instant,
        node: NodeId,
        data: &[u8],
        options: Vec<EnhancedPacketOption<'_>>,
    ) -> io::Result<()> {
        let stamp = self.origin.saturating_add(Duration::from_nanos(at.as_nanos()));
        let block = EnhancedPacketBlock {
            interface_id: node.0,
            // The field has 64 bits of nanoseconds, which end in the year 2554.
            timestamp: stamp.min(Duration::from_nanos(u64::MAX)),
            original_len: u32::try_from(data.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(&data[..data.len().min(SNAP_LEN)]),
            options,
        };
        self.file.write_pcapng_block(block).map(drop).map_err(unwrapped)
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.get_mut().flush()
    }
}

/// Implemented by hand because `PcapNgWriter` has no `Debug`.
impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Returns the inner I/O error, if there is one.
fn unwrapped(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
