//! A file that is read in pieces, with its position.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::TraceError;

/// The maximum length of a block: a greater length is an error.
const MAX_BLOCK: u32 = 1 << 24;

#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    file: BufReader<File>,
    /// The position of the reader.
    pub(super) at: u64,
    /// The start of the current block or packet.
    pub(super) block_at: u64,
    /// Whether the file ended within the current block.
    pub(super) cut: bool,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(TraceError::file(path))?;
        let file = BufReader::with_capacity(1 << 16, file);
        Ok(Self { path: path.to_owned(), file, at: 0, block_at: 0, cut: false })
    }

    /// Creates an error in the current block.
    pub(super) fn wrong(&self, reason: impl Into<String>) -> TraceError {
        TraceError::Capture { path: self.path.clone(), at: self.block_at, reason: reason.into() }
    }

    /// Records that the file ends within the current block, and creates the error.
    pub(super) fn cut_short(&mut self) -> TraceError {
        self.cut = true;
        self.wrong("cut short")
    }

    /// Reads the next `N` bytes; `None` if the file ends exactly here.
    pub(super) fn head<const N: usize>(&mut self) -> Result<Option<[u8; N]>, TraceError> {
        let mut bytes = [0; N];
        let mut filled = 0;
        while filled < N {
            match self.file.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(self.cut_short()),
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::file(&self.path)(error)),
            }
        }
        self.at += N as u64;
        Ok(Some(bytes))
    }

    /// Reads the next `len` bytes into `body`.
    pub(super) fn body(&mut self, len: u32, body: &mut Vec<u8>) -> Result<(), TraceError> {
        if len > MAX_BLOCK {
            return Err(self.wrong(format!("a length of {len} bytes cannot be true")));
        }
        body.clear();
        let mut limited = (&mut self.file).take(u64::from(len));
        let read = limited.read_to_end(body).map_err(TraceError::file(&self.path))?;
        if read < len as usize {
            return Err(self.cut_short());
        }
        self.at += u64::from(len);
        Ok(())
    }
}

/// The byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        if self == Self::Big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        if self == Self::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        if self == Self::Big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    /// Returns the 32-bit word at `at`; `None` beyond the end.
    pub(super) fn word(self, bytes: &[u8], at: usize) -> Option<u32> {
        Some(self.u32(*bytes.get(at..)?.first_chunk()?))
    }

    /// Returns the 16-bit word at `at`; `None` beyond the end.
    pub(super) fn half(self, bytes: &[u8], at: usize) -> Option<u16> {
        Some(self.u16(*bytes.get(at..)?.first_chunk()?))
    }
}
