//! Parsing of the TCP segments in IP packets, as far as pictures need them.

use std::net::SocketAddr;

use airtcp_types::SeqNumber;
use airtcp_wire::options::TcpOptions;
use airtcp_wire::tcp::{View, flag};

/// A TCP segment. The packet may be cut anywhere behind the TCP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: SeqNumber,
    /// The acknowledgement; `None` without the ACK flag.
    pub(crate) ack: Option<SeqNumber>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) psh: bool,
    /// The window field, before scaling.
    pub(crate) window: u16,
    /// Bytes of payload before the packet was cut.
    pub(crate) len: u32,
    pub(crate) options: TcpOptions,
}

impl Segment {
    /// Parses an IP packet; `None` if it has no TCP header or is a fragment.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let view = View::of(packet)?;
        let fields = view.fields();
        Some(Self {
            from: view.src(),
            to: view.dst(),
            seq: fields.seq(),
            ack: fields.has(flag::ACK).then(|| fields.ack()),
            syn: fields.has(flag::SYN),
            fin: fields.has(flag::FIN),
            rst: fields.has(flag::RST),
            psh: fields.has(flag::PSH),
            window: fields.window(),
            len: u32::try_from(view.data_len()).ok()?,
            options: view.options().unwrap_or_default(),
        })
    }
}
