//! Stations that mobiles left: revocations (RFC 3543) and the flow lists in their acknowledgments.

use std::net::{IpAddr, SocketAddr};

use airtcp_types::Instant;
use airtcp_wire::mobility::{
    Acknowledgment, Ends, Extension, Extensions, Message, Revocation, code, push_vendor,
};

use super::HomeAgent;
use super::binding::Answer;
use super::forward::port;

/// The kind of the vendor extension of a revocation that names the new care-of address: the
/// identification of the request (8 bytes), then the address.
pub const FORWARD: u16 = 1;
/// The kind of the vendor extension of an acknowledgment with a part of the flow list, which a reply
/// passes on unchanged: the identification (8 bytes), the number of the part from 0, the number of
/// parts up to 128, then data for the new station.
pub const FLOWS: u16 = 2;
/// The kind of the extension of a reply that names the station that the mobile has left: its address.
/// Agents of others skip it.
pub const PREVIOUS: u16 = 3;
/// The maximum length of a part of the flow list in bytes, all of the above included.
pub const MAX_PART: usize = 1_200;

impl HomeAgent {
    /// Sends the revocations that are due.
    pub(super) fn revoke(&mut self, now: Instant, place: usize) {
        for index in 0..self.mobiles[place].left.len() {
            let left = &mut self.mobiles[place].left[index];
            if left.next.is_none_or(|next| next > now) {
                continue;
            }
            left.on_sent(now);
            let left = *left;
            let home = self.config.mobiles[place].address;
            let station = &self.config.stations[left.station];
            let to = SocketAddr::new(station.address, port(home.is_ipv6()));
            let mut message = Message::Revocation(Revocation {
                is_from_home: true,
                informs: false,
                home,
                home_agent: self.config.own(home.is_ipv6()).unwrap_or(home),
                foreign_agent: station.address,
                identifier: left.identifier(),
            })
            .emit();
            if let Some(forward) = left.forward {
                let mut value = left.identification.to_be_bytes().to_vec();
                value.extend(bytes_of(forward));
                push_vendor(&mut message, FORWARD, &value);
            }
            station.key.sign(&mut message, Ends::ForeignHome);
            self.counters.revocations += 1;
            self.send_message(to, &message);
        }
    }

    /// Processes the acknowledgment of a station, and passes its flow list on.
    pub(super) fn on_acknowledgment(
        &mut self,
        from: SocketAddr,
        acknowledgment: &Acknowledgment,
        extensions: Extensions<'_>,
    ) {
        let station = self.stations.get(&from.ip()).copied();
        let Some(station) = station.filter(|place| self.is_signed(*place, extensions)) else {
            self.counters.unauthenticated += 1;
            return;
        };
        let Some(&place) = self.by_address.get(&acknowledgment.home) else {
            self.counters.unknown += 1;
            return;
        };
        let identifier = acknowledgment.identifier;
        let mut left = self.mobiles[place].left.iter();
        let left = left.position(|left| left.station == station && left.identifier() == identifier);
        let Some(left) = left else { return };
        let before = self.mobiles[place].deadline();
        let lists = extensions.filter_map(|extension| match extension {
            Extension::Vendor { kind: FLOWS, value } => Some(value),
            _ => None,
        });
        let lists: Vec<&[u8]> = lists.collect();
        if lists.is_empty() {
            self.mobiles[place].left[left].next = None;
        }
        self.send_waiting_reply(place);
        for list in lists {
            self.on_list(place, left, list);
        }
        self.schedule(place, before);
    }

    /// Whether a message ends with a valid authenticator of a station.
    fn is_signed(&self, station: usize, extensions: Extensions<'_>) -> bool {
        match extensions.last() {
            Some(Extension::Authentication(of)) => {
                of.ends == Ends::ForeignHome && self.config.stations[station].key.verifies(&of)
            }
            _ => false,
        }
    }

    /// Passes a part of a flow list to the mobile's new station, once.
    fn on_list(&mut self, place: usize, left: usize, list: &[u8]) {
        let mobile = &mut self.mobiles[place];
        let left = &mut mobile.left[left];
        let Some((identification, &[part, parts, ..])) =
            list.split_first_chunk().filter(|_| list.len() <= MAX_PART)
        else {
            return;
        };
        let identification = u64::from_be_bytes(*identification);
        if identification != left.identification || !left.on_part(part, parts) {
            return;
        }
        let Some(binding) = mobile.binding else { return };
        let Some(station) = binding.station else { return };
        let answer = Answer {
            to: SocketAddr::new(binding.care_of, binding.port),
            code: code::ACCEPTED,
            lifetime: binding.lifetime,
            identification,
            station: Some(station),
        };
        let mut message = self.reply_to(place, &answer);
        push_vendor(&mut message, FLOWS, list);
        self.config.stations[station].key.sign(&mut message, Ends::ForeignHome);
        self.counters.flow_parts += 1;
        self.send_message(answer.to, &message);
    }
}

/// The bytes of an address in an extension.
pub(super) fn bytes_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// Reads an address in an extension.
pub(super) fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
