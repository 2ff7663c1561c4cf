//! Frames with datagrams to a gateway, each behind a byte with its length, from any bytes.

use std::time::Duration;

use airtcp_gateway::HostAddress;
use airtcp_gateway::datagram::Channel;
use airtcp_types::Instant;

/// The longest frame.
const FRAME: usize = 1392;

/// Every datagram is answered, and no frame is too long. Gives whether a datagram was understood.
pub(crate) fn run(mut data: &[u8]) -> bool {
    let mut channel = Channel::new(FRAME, 22, 2);
    let mut now = Instant::ZERO;
    let mut understood = false;
    while let Some((&len, rest)) = data.split_first() {
        let (frame, rest) = rest.split_at(rest.len().min(len.into()));
        data = rest;
        now += Duration::from_millis(10);
        channel.handle_frame(now, frame);
        channel.handle_timeout(now);
        while let Some(datagram) = channel.poll_datagram() {
            // Port 0 of an address is a ping.
            let is_name = matches!(datagram.remote.host, HostAddress::Name(_));
            assert!(datagram.remote.port != 0 || !is_name);
            understood = true;
            channel.send(now, datagram.association, &datagram.remote, &datagram.data);
        }
        while let Some(frame) = channel.poll_transmit() {
            assert!(frame.len() <= FRAME, "{} bytes", frame.len());
        }
    }
    understood
}
