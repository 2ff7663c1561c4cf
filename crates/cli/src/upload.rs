//! Resumable uploads: the header fields and formats shared by client and server.
//!
//! Fields, media type and responses are those of draft-ietf-httpbis-resumable-upload, and the
//! digests those of RFC 9530. One deviation: the upload of `/name` is the resource `/name?upload`,
//! so that a client that was killed finds it again. In the draft the server chooses the resource
//! and announces it in an interim response (104), which hyper cannot send.

use std::io::{self, Read};

use data_encoding::BASE64;
use hyper::header::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};

/// The number of bytes that the server holds, or the position of a request's content.
pub(crate) static UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
/// Whether the upload is complete; in a request, with its content.
pub(crate) static UPLOAD_COMPLETE: HeaderName = HeaderName::from_static("upload-complete");
/// The length of the whole file, in bytes.
pub(crate) static UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
/// The SHA-256 of the whole file, or of the held bytes.
pub(crate) static REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// Requests that digest (RFC 9530 section 4).
pub(crate) static WANT_REPR_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");

/// The media type of a PATCH that appends.
pub(crate) const PARTIAL_UPLOAD: &str = "application/partial-upload";

/// The query that turns the URL of a target into that of its upload.
pub(crate) const QUERY: &str = "upload";

/// Size of a read, in bytes.
const CHUNK: usize = 1 << 20;

/// Parses a field that is a non-negative integer of RFC 9651 (section 3.3.1). A field that is
/// invalid or repeated counts as absent.
pub(crate) fn integer(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let text = only(headers, name)?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 15;
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns whether a field is the boolean true (RFC 9651 section 3.3.6).
pub(crate) fn is_true(headers: &HeaderMap, name: &HeaderName) -> bool {
    only(headers, name) == Some("?1")
}

/// Returns the SHA-256 of the field Repr-Digest, in the form of [`field`]. A digest that is invalid
/// or repeated counts as absent.
pub(crate) fn digest(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(&REPR_DIGEST).iter().filter_map(|line| line.to_str().ok());
    let mut all = lines.flat_map(|line| line.split(',').map(str::trim));
    let one = all.by_ref().find(|one| one.starts_with("sha-256="))?;
    let is_read = one.len() == field(&Sha256::new()).len()
        && one.starts_with("sha-256=:")
        && one.ends_with(':')
        && !all.any(|other| other.starts_with("sha-256="));
    is_read.then(|| one.to_owned())
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.trim();
    values.next().is_none().then_some(value)
}

/// Formats the hash so far as a value of `Repr-Digest` (RFC 9530 section 3): `sha-256=:BASE64:`.
pub(crate) fn field(hash: &Sha256) -> String {
    format!("sha-256=:{}:", BASE64.encode(&hash.clone().finalize()))
}

/// Adds the next `length` bytes of `reader` to `hash`.
///
/// # Errors
/// Those of reading; `reader` has fewer bytes.
pub(crate) fn take_in(hash: &mut Sha256, reader: impl Read, length: u64) -> io::Result<()> {
    let mut left = length;
    let mut reader = reader.take(length);
    let mut chunk = vec![0; CHUNK];
    while left > 0 {
        let read = reader.read(&mut chunk)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was truncated"));
        }
        hash.update(&chunk[..read]);
        left -= read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_digest_is_written_as_the_rfc_has_it_and_read_back() {
        // RFC 9530 appendix A: the digest of an empty representation.
        let empty = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";
        assert_eq!(field(&Sha256::new()), empty);
        let mut headers = HeaderMap::new();
        assert_eq!(digest(&headers), None);
        for (value, read) in [
            (empty.to_owned(), Some(empty)),
            (format!("sha-512=:AAAA:, {empty}"), Some(empty)),
            ("sha-256=:47DE:".to_owned(), None),
            (format!("{empty}, {empty}"), None),
            ("md5=:AAAA:".to_owned(), None),
        ] {
            headers.insert(&REPR_DIGEST, HeaderValue::try_from(&value).unwrap());
            assert_eq!(digest(&headers).as_deref(), read, "{value}");
        }
        headers.append(&REPR_DIGEST, HeaderValue::from_static(empty));
        assert_eq!(digest(&headers).as_deref(), Some(empty));
        headers.append(&REPR_DIGEST, HeaderValue::from_static(empty));
        assert_eq!(digest(&headers), None);
    }

    #[test]
    fn only_one_integer_that_is_not_negative_is_one() {
        let mut headers = HeaderMap::new();
        assert_eq!(integer(&headers, &UPLOAD_OFFSET), None);
        for (value, read) in [
            ("0", Some(0)),
            ("999999999999999", Some(999_999_999_999_999)),
            ("1000000000000000", None),
            ("18446744073709551616", None),
            ("-1", None),
            ("+1", None),
            ("1.0", None),
            ("0x1", None),
            ("", None),
            ("1, 1", None),
        ] {
            headers.insert(&UPLOAD_OFFSET, HeaderValue::from_static(value));
            assert_eq!(integer(&headers, &UPLOAD_OFFSET), read, "{value}");
        }
        headers.insert(&UPLOAD_OFFSET, HeaderValue::from_static("1"));
        headers.append(&UPLOAD_OFFSET, HeaderValue::from_static("1"));
        assert_eq!(integer(&headers, &UPLOAD_OFFSET), None);
    }

    #[test]
    fn a_file_that_is_shorter_than_it_was_is_an_error() {
        let mut hash = Sha256::new();
        take_in(&mut hash, &b"0123"[..], 2).unwrap();
        assert_eq!(field(&hash), field(&Sha256::new_with_prefix(b"01")));
        assert!(take_in(&mut hash, &b"0123"[..], 5).is_err());
    }
}
