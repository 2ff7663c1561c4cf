//! Requests to a far gateway from any bytes.

use airtcp_gateway::header::{Decoded, Request};

/// What is understood is written as it was read, and nothing that is cut is taken for more. Gives
/// whether it was understood.
pub(crate) fn run(data: &[u8]) -> bool {
    let mut wanted = 0;
    // As the far gateway reads: no byte more than it is asked for.
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
