//! Decodes messages of Mobile IP from arbitrary bytes; the first one chooses the IP version.

use airtcp_wire::mobility::{self, Extension};

/// Checks that a decoded message encodes to its fields, and that its authenticators cover what is
/// before them. Returns whether a message was decoded.
pub(crate) fn run(data: &[u8]) -> bool {
    let Some((version, data)) = data.split_first() else { return false };
    let v6 = version & 1 == 1;
    let Ok((message, extensions)) = mobility::parse(data, v6) else { return false };
    let fields = message.emit();
    assert_eq!(mobility::parse(&fields, v6).unwrap().0, message);
    for extension in extensions {
        match extension {
            Extension::Authentication(of) => {
                assert!(data.starts_with(of.covered) && of.covered.len() > fields.len());
            }
            Extension::Vendor { value, .. } => assert!(value.len() < data.len()),
            Extension::Other(kind) => assert!(kind >= 128),
        }
    }
    true
}
