//! The AccECN options (RFC 9768 section 3.2.3): the number of bytes received with each ECN
//! codepoint.
//!
//! ```text
//! order 0   172  len  EE0B  ECEB  EE1B     24 bits each
//! order 1   174  len  EE1B  ECEB  EE0B
//! ```
//!
//! The last one or two counters, or all three, may be left out. With any other length, the counters
//! that fit are read and the rest of the option is padding (section 3.2.3).

use super::{KIND_NOP, Writer};

pub(super) const KIND_ORDER_0: u8 = 172;
pub(super) const KIND_ORDER_1: u8 = 174;

/// The length of a counter in bytes.
const COUNTER: usize = 3;
/// The counters are modulo this.
const MODULUS: u32 = 1 << 24;

/// The order of the counters in the option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// ECT(0), CE, ECT(1): kind 172.
    #[default]
    Zero,
    /// ECT(1), CE, ECT(0): kind 174.
    One,
}

/// The counters of an AccECN option, each the lower 24 bits of a number of bytes.
///
/// ```
/// use airtcp_wire::options::{AccEcn, Order, TcpOptions};
///
/// let accecn = AccEcn::new(Order::Zero, &[1001, 0]);
/// let options = TcpOptions { accecn: Some(accecn), ..TcpOptions::default() };
/// let mut bytes = [0; 40];
/// let len = options.encode(&mut bytes);
/// assert_eq!(bytes[..len], [172, 8, 0, 0x03, 0xe9, 0, 0, 0]);
/// let read = TcpOptions::parse(&bytes[..len]).accecn.expect("the option");
/// assert_eq!((read.e0b(), read.ceb(), read.e1b()), (Some(1001), Some(0), None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccEcn {
    order: Order,
    /// The number of counters present; the others are zero.
    count: u8,
    counters: [u32; 3],
}

impl AccEcn {
    /// Creates the option with at most three counters in this order, each truncated to its lower 24
    /// bits.
    pub fn new(order: Order, counters: &[u32]) -> Self {
        let mut option = Self { order, ..Self::default() };
        for (to, counter) in option.counters.iter_mut().zip(counters) {
            *to = counter % MODULUS;
            option.count += 1;
        }
        option
    }

    /// The order of the counters.
    pub const fn order(&self) -> Order {
        self.order
    }

    /// The counters present, in the option's order.
    pub fn counters(&self) -> &[u32] {
        &self.counters[..usize::from(self.count)]
    }

    /// EE0B: bytes received with ECT(0).
    pub fn e0b(&self) -> Option<u32> {
        self.counters().get(if self.order == Order::Zero { 0 } else { 2 }).copied()
    }

    /// ECEB: bytes received with CE.
    pub fn ceb(&self) -> Option<u32> {
        self.counters().get(1).copied()
    }

    /// EE1B: bytes received with ECT(1).
    pub fn e1b(&self) -> Option<u32> {
        self.counters().get(if self.order == Order::Zero { 2 } else { 0 }).copied()
    }

    /// The length of an option with `counters` counters, including padding (bytes).
    pub const fn len_of(counters: usize) -> usize {
        (2 + COUNTER * counters).next_multiple_of(4)
    }

    /// The length of this option, including padding (bytes).
    pub(super) const fn encoded_len(&self) -> usize {
        Self::len_of(self.count as usize)
    }

    /// Reads the bytes after kind and length.
    pub(super) fn read(kind: u8, body: &[u8]) -> Self {
        let order = if kind == KIND_ORDER_0 { Order::Zero } else { Order::One };
        let mut option = Self { order, ..Self::default() };
        for (to, &[a, b, c]) in option.counters.iter_mut().zip(body.as_chunks::<COUNTER>().0) {
            *to = u32::from_be_bytes([0, a, b, c]);
            option.count += 1;
        }
        option
    }

    /// Writes the option, with its padding behind it, as Linux does.
    pub(super) fn put(&self, writer: &mut Writer<'_>) {
        let kind = match self.order {
            Order::Zero => KIND_ORDER_0,
            Order::One => KIND_ORDER_1,
        };
        let len = 2 + COUNTER * self.counters().len();
        writer.put(&[kind, len as u8]);
        for counter in self.counters() {
            writer.put(&counter.to_be_bytes()[1..]);
        }
        writer.put(&[KIND_NOP; 3][..self.encoded_len() - len]);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::{MAX_LEN, TcpOptions, Timestamps};

    pub(crate) fn accecn() -> impl Strategy<Value = AccEcn> {
        (any::<bool>(), prop::collection::vec(any::<u32>(), 0..=3)).prop_map(|(one, counters)| {
            AccEcn::new(if one { Order::One } else { Order::Zero }, &counters)
        })
    }

    fn read(bytes: &[u8]) -> TcpOptions {
        TcpOptions::parse(bytes)
    }

    fn encoded(options: &TcpOptions) -> Vec<u8> {
        let mut buf = [0xaa; MAX_LEN];
        let len = options.encode(&mut buf);
        buf[..len].to_vec()
    }

    // Shows: RFC9768-3.2.3-1, RFC9768-3.2.3-2, RFC9768-3.2.3.1-1, RFC9768-7-1
    #[test]
    fn both_orders_are_written_with_three_counters_two_one_and_none() {
        let counters = [0x0100_0001, 0x0002_0304, 0xff_ffff];
        for (order, kind) in [(Order::Zero, 172), (Order::One, 174)] {
            let written = |count: usize| {
                let accecn = AccEcn::new(order, &counters[..count]);
                encoded(&TcpOptions { accecn: Some(accecn), ..TcpOptions::default() })
            };
            assert_eq!(written(3), [kind, 11, 0, 0, 1, 2, 3, 4, 0xff, 0xff, 0xff, 1]);
            assert_eq!(written(2), [kind, 8, 0, 0, 1, 2, 3, 4]);
            assert_eq!(written(1), [kind, 5, 0, 0, 1, 1, 1, 1]);
            assert_eq!(written(0), [kind, 2, 1, 1]);
        }
    }

    // Shows: RFC9768-3.2.3-3, RFC9768-3.2.3-4
    #[test]
    fn each_length_is_read_and_what_fills_no_counter_is_padding() {
        for order in [Order::Zero, Order::One] {
            let kind = if order == Order::Zero { 172 } else { 174 };
            for len in 2..=38 {
                let body: Vec<u8> = (1..=len - 2).collect();
                let list = [&[kind, len], &body[..], &[1, 3, 3, 7]].concat();
                let options = read(&list);
                let whole = body.as_chunks::<3>().0.iter().take(3);
                let counters: Vec<u32> =
                    whole.map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c])).collect();
                assert_eq!(options.accecn, Some(AccEcn::new(order, &counters)), "{len}");
                assert_eq!(options.window_scale, Some(7), "{len}: what follows counts");
                assert_eq!((options.unknown, options.malformed), (0, 0));
            }
        }
        let all = read(&[174, 11, 0, 0, 1, 0, 0, 2, 0, 0, 3]).accecn.unwrap();
        assert_eq!((all.e0b(), all.ceb(), all.e1b()), (Some(3), Some(2), Some(1)));
        let one = read(&[174, 5, 0, 0, 1]).accecn.unwrap();
        assert_eq!((one.e0b(), one.ceb(), one.e1b()), (None, None, Some(1)));
    }

    #[test]
    fn a_length_that_leads_nowhere_is_counted_and_ends_the_list() {
        for list in [&[172, 0][..], &[174, 1, 3, 3, 7], &[172], &[174, 12, 0, 0, 1, 0, 0, 2]] {
            let options = read(list);
            assert_eq!((options.accecn, options.malformed), (None, 1), "{list:?}");
            assert_eq!(options.window_scale, None);
        }
    }

    #[test]
    fn it_stands_where_linux_has_it() {
        let accecn = Some(AccEcn::new(Order::One, &[1, 0, 1]));
        let syn_ack = TcpOptions {
            mss: Some(1460),
            window_scale: Some(8),
            sack_permitted: true,
            accecn,
            ..TcpOptions::default()
        };
        let option = [174, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1];
        let expected = [&[2, 4, 5, 0xb4], &option[..], &[1, 1, 4, 2, 1, 3, 3, 8]].concat();
        assert_eq!(encoded(&syn_ack), expected);
        let timestamps = Some(Timestamps::default());
        let expected =
            [&[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0], &option[..], &[1, 3, 3, 8]]
                .concat();
        assert_eq!(encoded(&TcpOptions { timestamps, ..syn_ack }), expected);
    }

    #[test]
    fn beside_timestamps_there_is_room_for_two_blocks_and_two_counters() {
        let options = |counters: &[u32]| TcpOptions {
            timestamps: Some(Timestamps::default()),
            accecn: Some(AccEcn::new(Order::Zero, counters)),
            ..TcpOptions::default()
        };
        assert_eq!(options(&[1, 2]).sack_room(), 2);
        assert_eq!(options(&[1, 2, 3]).sack_room(), 1);
        assert_eq!(TcpOptions { timestamps: None, ..options(&[1, 2, 3]) }.sack_room(), 3);
    }
}
