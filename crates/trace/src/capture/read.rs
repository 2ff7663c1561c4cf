//! Reading of pcap and pcapng captures of any origin, packet by packet.
//!
//! `pcap-file` writes the captures of recorders but cannot read others: version 2.0 ignores
//! `if_tsresol`, rejects packets that were cut at the snap length, and its errors have no file
//! position.

use std::path::Path;

use crate::TraceError;

use super::file::{Order, Source};
use super::link_layer;
use super::pcapng::{self, Section};

/// The direction of a packet at the interface that captured it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    In,
    Out,
    /// The capture has no direction.
    Unknown,
}

/// One captured IP packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// The time in nanoseconds since the Unix epoch.
    pub(crate) at: u64,
    pub(crate) interface: u32,
    pub(crate) direction: Direction,
    pub(crate) comment: Option<String>,
    /// The IP packet from its first byte; the end may be cut.
    pub(crate) data: Vec<u8>,
}

/// Returns the IP packets of a capture, and skips everything else.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Pcap { order: Order, nanos: bool, link: u32 },
    PcapNg(Section),
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let mut source = Source::open(path)?;
        let magic = source.head::<4>()?.ok_or_else(|| source.wrong("the file is empty"))?;
        let format = match u32::from_be_bytes(magic) {
            0xa1b2_c3d4 => Self::pcap(&mut source, Order::Big, false)?,
            0xa1b2_3c4d => Self::pcap(&mut source, Order::Big, true)?,
            0xd4c3_b2a1 => Self::pcap(&mut source, Order::Little, false)?,
            0x4d3c_b2a1 => Self::pcap(&mut source, Order::Little, true)?,
            pcapng::SECTION_HEADER => Format::PcapNg(Section::read(&mut source)?),
            _ => return Err(source.wrong("neither a pcap nor a pcapng file")),
        };
        Ok(Self { source, format })
    }

    fn pcap(source: &mut Source, order: Order, nanos: bool) -> Result<Format, TraceError> {
        let header = source.head::<20>()?.ok_or_else(|| source.wrong("cut short"))?;
        // The upper bits are the length of the frame check sequence.
        let link = order.word(&header, 16).unwrap_or(0) & 0xffff;
        if !link_layer::is_known(link) {
            return Err(source.wrong(format!("link type {link} is not one that is understood")));
        }
        Ok(Format::Pcap { order, nanos, link })
    }

    /// Returns the next IP packet; `None` at the end of the file, and at a truncated last block.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            self.source.block_at = self.source.at;
            let frame = match &mut self.format {
                Format::Pcap { order, nanos, link } => {
                    next_pcap(&mut self.source, *order, *nanos, *link)
                }
                Format::PcapNg(section) => section.next(&mut self.source),
            };
            let frame = match frame {
                Err(_) if self.source.cut => return Ok(None),
                other => other?,
            };
            let Some(frame) = frame else { return Ok(None) };
            if let Some(record) = frame.into_record() {
                return Ok(Some(record));
            }
        }
    }

    /// Returns the position of the last block if the file ends within it, because its writer was
    /// killed.
    pub(crate) fn cut(&self) -> Option<u64> {
        self.source.cut.then_some(self.source.block_at)
    }
}

/// The content of a block.
pub(super) enum Frame {
    /// A packet with its link type.
    Packet(u32, Record),
    /// Anything else.
    Other,
}

impl Frame {
    /// Removes the link header; `None` if the packet is not IP.
    fn into_record(self) -> Option<Record> {
        let Self::Packet(link, mut record) = self else { return None };
        let (header, direction) = link_layer::header(link, &record.data)?;
        record.data.drain(..header);
        if record.direction == Direction::Unknown {
            record.direction = direction;
        }
        Some(record)
    }
}

fn next_pcap(
    source: &mut Source,
    order: Order,
    nanos: bool,
    link: u32,
) -> Result<Option<Frame>, TraceError> {
    let Some(header) = source.head::<16>()? else { return Ok(None) };
    let [seconds, fraction, captured] = [0, 4, 8].map(|at| order.word(&header, at).unwrap_or(0));
    let mut data = Vec::new();
    source.body(captured, &mut data)?;
    let fraction = u64::from(fraction) * if nanos { 1 } else { 1_000 };
    let at = u64::from(seconds) * 1_000_000_000 + fraction;
    let direction = Direction::Unknown;
    Ok(Some(Frame::Packet(link, Record { at, interface: 0, direction, comment: None, data })))
}
