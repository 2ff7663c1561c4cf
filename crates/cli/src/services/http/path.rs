//! Converts the path of a request to a path below the directory, and back.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use hyper::StatusCode;

use super::{Refusal, held};

/// Returns the file that the path of a request names, relative to the directory; never above it.
///
/// # Errors
/// 400 for an invalid escape, and for names that no file has: `..`, `.`, or with a slash or a zero
/// byte inside. 403 for the name of an incomplete upload.
pub(super) fn resolve(path: &str) -> Result<PathBuf, Refusal> {
    let mut below = PathBuf::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let name = decode(part).filter(|name| {
            !matches!(name.as_slice(), b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
        });
        let name = name.ok_or_else(|| {
            Refusal::new(StatusCode::BAD_REQUEST, format!("{part:?} is not a valid file name"))
        })?;
        if held::is_name(&name) {
            let text = "such names are reserved for incomplete uploads";
            return Err(Refusal::new(StatusCode::FORBIDDEN, text));
        }
        below.push(OsString::from_vec(name));
    }
    Ok(below)
}

/// Percent-encodes `name` as a segment of a path (RFC 3986 section 2.3: unreserved characters
/// stay).
pub(super) fn encode(name: &[u8]) -> String {
    let mut text = String::new();
    for &byte in name {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn decode(part: &str) -> Option<Vec<u8>> {
    let mut bytes = part.bytes();
    let mut decoded = Vec::with_capacity(part.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_decoded() {
        let name = "a b/ü%.txt".as_bytes();
        assert_eq!(encode(name), "a%20b%2F%C3%BC%25.txt");
        assert_eq!(decode(&encode(name)).as_deref(), Some(name));
        assert_eq!(resolve("//a%20b///c/").unwrap(), PathBuf::from("a b/c"));
        assert_eq!(resolve("/").unwrap(), PathBuf::new());
    }

    #[test]
    fn nothing_leads_above_the_directory() {
        for path in [
            "/..",
            "/../etc/passwd",
            "/a/../../b",
            "/%2e%2e/b",
            "/.%2E",
            "/a%2Fb",
            "/..%2fb",
            "/%00",
            "/%",
            "/%2",
            "/%zz",
            "/.",
        ] {
            let refusal = resolve(path).unwrap_err();
            assert_eq!(refusal.status, StatusCode::BAD_REQUEST, "{path}");
        }
        for path in ["/.airtcp-put-0", "/a/.AirTCP-put-/b", "/%2eairtcp-put-%30"] {
            assert_eq!(resolve(path).unwrap_err().status, StatusCode::FORBIDDEN, "{path}");
        }
        // Two dots inside a name are allowed.
        assert_eq!(resolve("/..a/b..").unwrap(), PathBuf::from("..a/b.."));
    }
}
