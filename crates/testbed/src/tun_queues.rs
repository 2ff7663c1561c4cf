//! Counts the open queues of a TUN device, which the kernel reports only through netlink.

use std::io;

use rtnetlink::packet_core::{
    NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla as _,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{InfoData, InfoTun, LinkAttribute, LinkInfo, LinkMessage};
use rtnetlink::sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// The attribute of a multi-queue TUN device: `IFLA_TUN_NUM_QUEUES` of linux/if_link.h.
const NUM_QUEUES: u16 = 8;

/// Returns the number of open queues of a device in the calling thread's namespace; zero if it is
/// not a multi-queue TUN device.
pub(crate) fn queues(name: &str) -> io::Result<u32> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(name), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
    let link = match answer.map_err(io::Error::other)?.payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => link,
        NetlinkPayload::Error(error) => return Err(error.to_io()),
        _ => return Ok(0),
    };
    let infos = link.attributes.iter().filter_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => Some(infos),
        _ => None,
    });
    let of_tun = infos.flatten().filter_map(|info| match info {
        LinkInfo::Data(InfoData::Tun(of_tun)) => Some(of_tun),
        _ => None,
    });
    Ok(of_tun.flatten().find_map(count).unwrap_or(0))
}

fn request(name: &str) -> Vec<u8> {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let payload = NetlinkPayload::from(RouteNetlinkMessage::GetLink(link));
    let mut message = NetlinkMessage::new(header, payload);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn count(attribute: &InfoTun) -> Option<u32> {
    let mut value = [0; 4];
    if attribute.kind() != NUM_QUEUES || attribute.value_len() != value.len() {
        return None;
    }
    attribute.emit_value(&mut value);
    Some(u32::from_ne_bytes(value))
}

#[cfg(test)]
mod tests {
    use airtcp_device::{TunFile, TunOptions};

    use super::*;
    use crate::{Namespace, or_skip, requirements};

    #[test]
    fn queues_that_are_open_are_counted() {
        let Some(()) = or_skip(requirements()) else { return };
        let namespace = Namespace::new().unwrap();
        let count = || namespace.run(|| queues("tun0"));
        assert!(count().is_err());
        let options = TunOptions { multi_queue: true, ..TunOptions::default() };
        let open = || namespace.run(move || TunFile::open_with("tun0", options)).unwrap();
        let first = open();
        assert_eq!(count().unwrap(), 1);
        let _second = open();
        assert_eq!(count().unwrap(), 2);
        drop(first);
        assert_eq!(count().unwrap(), 1);
        assert_eq!(namespace.run(|| queues("lo")).unwrap(), 0);
    }
}
