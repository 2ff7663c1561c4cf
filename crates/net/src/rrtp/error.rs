//! Conversion of connection errors to [`io::Error`].

use std::io::{self, ErrorKind};

use airtcp_rrtp::{CallError, ConnectionError};

/// Converts an error of a call to an [`io::Error`] with the same text.
pub(super) fn io_error(error: CallError) -> io::Error {
    let kind = match error {
        CallError::NoConnection => ErrorKind::NotConnected,
        CallError::Finished => ErrorKind::BrokenPipe,
        CallError::TooMany => ErrorKind::QuotaExceeded,
        CallError::Ended(error) => match error {
            ConnectionError::HandshakeTimeout
            | ConnectionError::TimedOut
            | ConnectionError::Stalled => ErrorKind::TimedOut,
            ConnectionError::Version { .. } => ErrorKind::Unsupported,
            ConnectionError::Refused => ErrorKind::ConnectionRefused,
            ConnectionError::Unknown | ConnectionError::Aborted => ErrorKind::ConnectionReset,
            ConnectionError::AbortedHere | ConnectionError::FalseAck => {
                ErrorKind::ConnectionAborted
            }
        },
    };
    io::Error::new(kind, error)
}
