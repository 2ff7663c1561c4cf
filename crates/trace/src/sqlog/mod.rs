//! The event log: qlog's JSON text sequences, with TCP's names beside the draft's.
//!
//! The header is that of draft-ietf-quic-qlog-main-schema (`file_schema` and `serialization_format`
//! of the newer drafts, `qlog_version` and `qlog_format` of those that tools read); event names are
//! the draft's where it has one that fits. Each record is one line behind an RS byte (RFC 7464).
//! Fields that are not known are passed over; numbers are kept to the last digit.

mod data;
mod header;
mod numbers;
mod read;
mod words;
mod write;

pub(crate) use read::Reader;
pub(crate) use write::Writer;

#[cfg(test)]
mod tests;

/// RFC 7464: what stands before every record.
const RECORD_SEPARATOR: u8 = 0x1e;
