//! Decodes requests to a far gateway from arbitrary bytes.

use airtcp_gateway::header::{Decoded, Request};

/// Checks that a decoded request encodes to the same bytes and that a truncated request is not
/// decoded. Returns whether a request was decoded.
pub(crate) fn run(data: &[u8]) -> bool {
    let mut wanted = 0;
    // Reads like the far gateway: never more bytes than the decoder asks for.
    loop {
        match Request::decode(&data[..wanted]) {
            Ok(Decoded::Short(more)) if more <= data.len() => {
                assert!(wanted < more, "{more} bytes are no progress");
                wanted = more;
            }
            Ok(Decoded::Short(more)) => {
                assert!(more <= 261, "{more} bytes are more than a request has");
                return false;
            }
            Ok(Decoded::Request(request, length)) => {
                let mut again = Vec::new();
                request.encode(&mut again).expect("what was decoded");
                assert_eq!((again.as_slice(), length), (&data[..length], wanted));
                return true;
            }
            Err(error) => {
                assert_eq!(Request::decode(data), Err(error));
                return false;
            }
        }
    }
}
