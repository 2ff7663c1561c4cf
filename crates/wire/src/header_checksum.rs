//! HACK's checksum of a TCP header (HACK 3), by which a receiver detects that the header of a
//! corrupted segment is intact.
//!
//! It is the Internet checksum of the pseudo-header and the TCP header with its options. The paper
//! does not specify how the checksums exclude themselves. Here both the TCP checksum and the
//! option's own two bytes count as zero, so that neither depends on the other; the TCP checksum is
//! computed last, over everything. The pseudo-header is that of the segment: its length includes
//! the data.

use std::net::IpAddr;

use crate::checksum::Sum;
use crate::options::extension::checksum_at;

const TCP: u8 = 6;
/// The offset of the TCP checksum.
const TCP_CHECKSUM: usize = 16;
const HEADER_LEN: usize = 20;

/// Writes the checksum into the HACK option of a TCP segment; does nothing without the option.
///
/// Compute the TCP checksum after this.
pub fn seal_header(src: IpAddr, dst: IpAddr, segment: &mut [u8]) {
    if let Some((at, checksum)) = compute(src, dst, segment) {
        segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Whether the header of a TCP segment is intact according to its HACK option; `false` without the
/// option, or if the options cannot be read.
///
/// ```
/// use airtcp_wire::header_checksum::{seal_header, verify_header};
///
/// let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
/// let mut segment = [0; 30];
/// segment[12] = 6 << 4; // 24 bytes of header
/// segment[20..22].copy_from_slice(&[14, 4]);
/// seal_header(src, dst, &mut segment);
/// segment[25] ^= 1;
/// assert!(verify_header(src, dst, &segment), "only data was hit");
/// segment[5] ^= 1;
/// assert!(!verify_header(src, dst, &segment));
/// ```
pub fn verify_header(src: IpAddr, dst: IpAddr, segment: &[u8]) -> bool {
    compute(src, dst, segment)
        .is_some_and(|(at, checksum)| segment[at..at + 2] == checksum.to_be_bytes())
}

/// Returns the offset of the checksum in a segment, and its correct value.
fn compute(src: IpAddr, dst: IpAddr, segment: &[u8]) -> Option<(usize, u16)> {
    let header_len = usize::from(segment.get(12)? >> 4) * 4;
    let header = segment.get(..header_len)?;
    let at = HEADER_LEN + checksum_at(header.get(HEADER_LEN..)?)?;
    let mut sum = Sum::new();
    sum.add_pseudo_header(src, dst, TCP, segment.len());
    sum.add_bytes(&header[..TCP_CHECKSUM]);
    sum.add_bytes(&[0; 2]);
    sum.add_bytes(&header[TCP_CHECKSUM + 2..at]);
    // Another implementation may place it at an odd offset: zero bytes are zero there, too.
    sum.add_bytes(&[0; 2]);
    sum.add_bytes(&header[at + 2..]);
    Some((at, sum.finish()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum::checksum;
    use crate::options::{Hack, HackForm, TcpOptions, Timestamps};

    const SRC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const DST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn segment(form: HackForm, timestamps: bool, data: &[u8]) -> Vec<u8> {
        let options = TcpOptions {
            hack: Some(Hack { form, checksum: 0 }),
            timestamps: timestamps.then_some(Timestamps { val: 0x0102_0304, ecr: 9 }),
            ..TcpOptions::default()
        };
        let mut buf = [0; 40];
        let len = options.encode(&mut buf);
        let mut bytes: Vec<u8> = (1..=20).collect();
        bytes[12] = ((20 + len) as u8 / 4) << 4;
        bytes.extend_from_slice(&buf[..len]);
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn it_is_the_sum_over_pseudo_header_and_header_with_both_checksums_zero() {
        let mut bytes = segment(HackForm::Kinds, false, b"data!");
        let mut whole = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, 29];
        whole.extend_from_slice(&bytes[..24]);
        whole[12 + 16..12 + 18].fill(0);
        seal_header(SRC, DST, &mut bytes);
        assert_eq!(bytes[22..24], checksum(&whole).to_be_bytes());
    }

    #[test]
    fn without_the_option_nothing_holds_and_nothing_is_written() {
        let mut bytes = vec![0; 40];
        bytes[12] = 5 << 4;
        let before = bytes.clone();
        seal_header(SRC, DST, &mut bytes);
        assert_eq!(bytes, before);
        assert!(!verify_header(SRC, DST, &bytes));
    }

    proptest! {
        #[test]
        fn damage_to_data_passes_and_damage_to_the_header_does_not(
            exid in any::<bool>(),
            timestamps in any::<bool>(),
            data in prop::collection::vec(any::<u8>(), 1..100),
            at in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let form = if exid { HackForm::ExId } else { HackForm::Kinds };
            let mut bytes = segment(form, timestamps, &data);
            let header_len = bytes.len() - data.len();
            seal_header(SRC, DST, &mut bytes);
            prop_assert!(verify_header(SRC, DST, &bytes));
            let at = at.index(bytes.len());
            bytes[at] ^= 1u8 << bit;
            // The TCP checksum is not protected.
            let passes = at >= header_len || (16..18).contains(&at);
            prop_assert_eq!(verify_header(SRC, DST, &bytes), passes);
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            seal_header(SRC, DST, &mut bytes);
            let sealed = compute(SRC, DST, &bytes).is_some();
            prop_assert_eq!(verify_header(SRC, DST, &bytes), sealed);
        }
    }
}
