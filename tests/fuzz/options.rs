//! Parses TCP options from arbitrary bytes.

use airtcp_wire::options::{AccEcn, MAX_LEN, SackBlocks, TcpOptions};

/// Checks that parsed options survive encoding, except SACK blocks and an AccECN option without
/// space: those may have come without padding. Returns whether no option was malformed.
pub(crate) fn run(data: &[u8]) -> bool {
    let mut options = TcpOptions::parse(&data[..data.len().min(MAX_LEN)]);
    let room = TcpOptions { accecn: None, ..options }.room();
    options.accecn =
        options.accecn.filter(|option| AccEcn::len_of(option.counters().len()) <= room);
    let mut sack = SackBlocks::EMPTY;
    for (start, end) in &options.sack.as_slice()[..options.sack.len().min(options.sack_room())] {
        sack.push(*start, *end);
    }
    let mut buf = [0; MAX_LEN];
    let len = options.encode(&mut buf);
    assert_eq!(len, options.encoded_len());
    let again = TcpOptions::parse(&buf[..len]);
    assert_eq!(again, TcpOptions { unknown: 0, malformed: 0, sack, ..options });
    options.malformed == 0
}
