//! The event log: qlog's JSON text sequences, with TCP's names in addition to the draft's.
//!
//! The header is that of draft-ietf-quic-qlog-main-schema (`file_schema` and `serialization_format`
//! of the newer drafts, `qlog_version` and `qlog_format` of those that tools read). Event names are
//! those of the draft where one fits. Each record is one line after an RS byte (RFC 7464). Unknown
//! fields are ignored; numbers keep all their digits.

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

/// The byte before every record (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
