//! The mark by which a base station reports losses on the wired side to a mobile.

/// The TCP-ECN bit in the thirteenth byte of a TCP header: the first of the four bits after the
/// data offset. AE of AccECN (RFC 9768) is the last of them.
pub const TCP_ECN_MARK: u8 = 0x08;
