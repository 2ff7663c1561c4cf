//! Sends a gateway frames with datagrams from arbitrary bytes, each after a byte with its length.

use std::time::Duration;

use airtcp_gateway::HostAddress;
use airtcp_gateway::datagram::Channel;
use airtcp_types::Instant;

/// The largest frame.
const FRAME: usize = 1392;

/// Checks that no frame is too long while every datagram is answered. Returns whether any datagram
/// was decoded.
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
            // Port 0 means a ping, which only an IP address can receive.
            let is_name = matches!(datagram.remote.host, HostAddress::Name(_));
            assert!(datagram.remote.port != 0 || !is_name);
            understood = true;
            channel.send(now, datagram.association, &datagram.remote, &datagram.data);
        }
        while let Some(frame) = channel.poll_transmit(now) {
            assert!(frame.len() <= FRAME, "{} bytes", frame.len());
        }
    }
    understood
}
