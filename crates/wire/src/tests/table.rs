//! All readers of this crate agree on every row, and with the correct reading.

use super::rows::{Right, rows};
use crate::tcp::View;
use crate::{Headers, Layout, icmp, ip, is_accepted, tcp, udp};

/// Returns the reading of a host.
fn host(bytes: &[u8]) -> Right {
    let datagram = match ip::parse(bytes) {
        Ok(datagram) => datagram,
        Err(crate::ParseError::Fragment) => return Right::Fragment,
        Err(_) => return Right::Refused,
    };
    let ip::Datagram { src, dst, protocol, payload, .. } = datagram;
    let at = payload.as_ptr().addr() - bytes.as_ptr().addr();
    match protocol {
        ip::TCP => tcp::parse(payload)
            .map_or(Right::Refused, |(_, _, segment)| Right::Tcp(at, segment.payload.len())),
        ip::UDP => udp::parse(payload)
            .ok()
            .filter(|udp| udp.is_intact(src, dst))
            .map_or(Right::Refused, |udp| Right::Udp(at, udp.payload.len())),
        protocol => Right::Other(protocol),
    }
}

#[test]
fn every_reader_says_what_is_right() {
    for row in rows() {
        let (bytes, what) = (&row.bytes[..], format!("{} ({})", row.what, row.source));
        assert_eq!(host(bytes), row.host, "{what}");
        let is_taken = matches!(row.host, Right::Tcp(..) | Right::Udp(..));
        assert_eq!(is_accepted(bytes), is_taken, "{what}");
        let checked = View::checked(bytes);
        let data = match row.host {
            Right::Tcp(_, data) => Some(data),
            _ => None,
        };
        assert_eq!(checked.map(|view| view.data_len()), data, "{what}");
        assert!(checked.is_none_or(|view| view.is_intact() && view.dst().port() == 80), "{what}");

        let layout = Layout::of(bytes).map(|layout| (layout.tcp, layout.transport, layout.payload));
        let (expected, data) = match row.passer_by {
            Right::Tcp(at, data) => (Some((true, at, at + 24)), Some(data)),
            Right::Udp(at, _) => (Some((false, at, at + 8)), None),
            _ => (None, None),
        };
        assert_eq!(layout, expected, "{what}");
        assert_eq!(View::of(bytes).map(|view| view.data_len()), data, "{what}");
        let headers = Headers::of(bytes);
        assert_eq!(
            headers.is_ok_and(|headers| headers.is_fragment()),
            row.passer_by == Right::Fragment,
            "{what}"
        );
        // An ICMP error quotes only the ports and the sequence number.
        if row.passer_by != Right::Fragment && !row.what.starts_with("TCP") {
            assert_eq!(icmp::parse_quote(bytes).is_some(), expected.is_some(), "{what}");
        }
    }
}

#[test]
fn the_first_fragment_has_the_ports_that_an_error_quotes() {
    for row in rows().into_iter().filter(|row| row.host == Right::Fragment) {
        let quote = icmp::parse_quote(&row.bytes);
        assert_eq!(quote.is_some(), row.what.contains("first"), "{}", row.what);
    }
}
