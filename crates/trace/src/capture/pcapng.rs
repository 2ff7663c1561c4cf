//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng).
//!
//! Simple packet blocks have no timestamp and are skipped.

use crate::TraceError;

use super::file::{Order, Source};
use super::read::{Direction, Frame, Record};

/// The type of a section header block, the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPTION_COMMENT: u16 = 1;
const OPTION_EPB_FLAGS: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_IF_TSOFFSET: u16 = 14;

/// The maximum number of interfaces, above that of any machine.
const MAX_INTERFACES: usize = 65_536;

/// The current section.
#[derive(Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
    /// The number of interfaces in the earlier sections: numbers start again in each section.
    before: u32,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    /// Units of its timestamps per second.
    per_second: u128,
    /// The offset in seconds to add to timestamps.
    offset: i64,
}

impl Section {
    /// Reads a section header after its type.
    pub(super) fn read(source: &mut Source) -> Result<Self, TraceError> {
        let order = Order::Big;
        let mut section = Self { order, interfaces: Vec::new(), before: 0, body: Vec::new() };
        section.start(source)?;
        Ok(section)
    }

    fn start(&mut self, source: &mut Source) -> Result<(), TraceError> {
        let head = source.head::<8>()?.ok_or_else(|| source.cut_short())?;
        let [len, magic] = [0, 4].map(|at| Order::Big.word(&head, at).unwrap_or(0));
        self.order = match magic {
            0x1a2b_3c4d => Order::Big,
            0x4d3c_2b1a => Order::Little,
            _ => return Err(source.wrong("a section header without its byte-order magic")),
        };
        let len = if self.order == Order::Little { len.swap_bytes() } else { len };
        if len < 28 || !len.is_multiple_of(4) {
            return Err(source.wrong(format!("a section header of {len} bytes")));
        }
        source.body(len - 12, &mut self.body)?;
        let interfaces = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.before = self.before.saturating_add(interfaces);
        self.interfaces.clear();
        self.check_trailer(source, len)
    }

    /// Checks that the block ends with a copy of its length.
    fn check_trailer(&mut self, source: &Source, len: u32) -> Result<(), TraceError> {
        let at = self.body.len().saturating_sub(4);
        if self.order.word(&self.body, at) != Some(len) {
            return Err(source.wrong("the length at the end of the block is not that at its start"));
        }
        self.body.truncate(at);
        Ok(())
    }

    /// Reads the next block.
    pub(super) fn next(&mut self, source: &mut Source) -> Result<Option<Frame>, TraceError> {
        let Some(kind) = source.head::<4>()? else { return Ok(None) };
        let kind = self.order.u32(kind);
        if kind == SECTION_HEADER {
            self.start(source)?;
            return Ok(Some(Frame::Other));
        }
        let len = source.head::<4>()?.ok_or_else(|| source.cut_short())?;
        let len = self.order.u32(len);
        if len < 12 || !len.is_multiple_of(4) {
            return Err(source.wrong(format!("a block of {len} bytes")));
        }
        source.body(len - 8, &mut self.body)?;
        self.check_trailer(source, len)?;
        match kind {
            INTERFACE_DESCRIPTION => {
                if self.interfaces.len() == MAX_INTERFACES {
                    return Err(source.wrong("more interfaces than there can be"));
                }
                let interface = self
                    .interface()
                    .ok_or_else(|| source.wrong("an interface description that ends early"))?;
                self.interfaces.push(interface);
                Ok(Some(Frame::Other))
            }
            ENHANCED_PACKET => self.packet().map(Some).map_err(|reason| source.wrong(reason)),
            _ => Ok(Some(Frame::Other)),
        }
    }

    fn interface(&self) -> Option<Interface> {
        let link = u32::from(self.order.half(&self.body, 0)?);
        let mut interface = Interface { link, per_second: 1_000_000, offset: 0 };
        for (code, value) in options(self.order, self.body.get(8..)?) {
            match (code, value) {
                // The top bit selects between powers of two and of ten.
                (OPTION_IF_TSRESOL, &[exponent]) => {
                    let base = if exponent & 0x80 == 0 { 10_u128 } else { 2 };
                    let power = base.checked_pow(u32::from(exponent & 0x7f));
                    interface.per_second = power.unwrap_or(u128::MAX);
                }
                (OPTION_IF_TSOFFSET, value) => {
                    let bytes = value.first_chunk()?;
                    interface.offset = self.order.u64(*bytes) as i64;
                }
                _ => {}
            }
        }
        Some(interface)
    }

    fn packet(&self) -> Result<Frame, &'static str> {
        let short = "a packet that ends early";
        let word = |at| self.order.word(&self.body, at).ok_or(short);
        let id = word(0)?;
        let interface = self.interfaces.get(id as usize);
        let interface = interface.ok_or("a packet of an interface that was not described")?;
        let units = u128::from(word(4)?) << 32 | u128::from(word(8)?);
        let captured = word(12)? as usize;
        let rest = self.body.get(20..).ok_or(short)?;
        let data = rest.get(..captured).ok_or(short)?.to_vec();
        let mut record = Record {
            at: interface.nanos(units),
            interface: self.before.saturating_add(id),
            direction: Direction::Unknown,
            comment: None,
            data,
        };
        let padded = captured.next_multiple_of(4);
        for (code, value) in options(self.order, rest.get(padded..).unwrap_or_default()) {
            match code {
                OPTION_COMMENT => {
                    record.comment = Some(String::from_utf8_lossy(value).into_owned());
                }
                OPTION_EPB_FLAGS => {
                    record.direction = match self.order.word(value, 0).unwrap_or(0) & 3 {
                        1 => Direction::In,
                        2 => Direction::Out,
                        _ => Direction::Unknown,
                    };
                }
                _ => {}
            }
        }
        Ok(Frame::Packet(interface.link, record))
    }
}

impl Interface {
    /// Converts a timestamp of this interface to nanoseconds since the Unix epoch.
    fn nanos(&self, units: u128) -> u64 {
        // Units are below 2^64, so the product fits.
        let nanos = units * 1_000_000_000 / self.per_second;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let nanos = nanos.saturating_add(i128::from(self.offset) * 1_000_000_000);
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

/// Returns the options of a block, up to the first invalid one.
fn options(order: Order, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = order.half(bytes, 0)?;
        let len = usize::from(order.half(bytes, 2)?);
        let value = bytes.get(4..4 + len)?;
        bytes = bytes.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        (code != 0).then_some((code, value))
    })
}
