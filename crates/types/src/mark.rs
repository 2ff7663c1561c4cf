//! The mark by which a base station tells a mobile of losses on the wired side.

/// TCP-ECN's bit in the thirteenth byte of a TCP header: the first after the data offset. AccECN's
/// (RFC 9768) is the last of those four.
pub const TCP_ECN_MARK: u8 = 0x08;
