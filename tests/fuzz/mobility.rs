//! Decodes messages of Mobile IP from arbitrary bytes; the first one chooses the IP version. Then
//! both agents get the message, with and without authenticators.

use std::time::Duration;

use airtcp_basestation::home::{
    Algorithm, HomeAgent, HomeConfig, HomeMobile, HomeStation, Key, Relay, RelayConfig,
};
use airtcp_types::{FlowId, Instant, Node, PortId};
use airtcp_wire::mobility::{self, Ends, Extension, Message, Request};
use airtcp_wire::udp;

/// Checks that a decoded message encodes to its fields, and that its authenticators cover what is
/// before them. Returns whether a decoded message registers a mobile.
pub(crate) fn run(data: &[u8]) -> Option<bool> {
    let (version, data) = data.split_first()?;
    let v6 = version & 1 == 1;
    let (message, extensions) = mobility::parse(data, v6).ok()?;
    let fields = message.emit();
    assert_eq!(mobility::parse(&fields, v6).unwrap().0, message);
    for extension in extensions {
        match extension {
            Extension::Authentication(of) => {
                assert!(data.starts_with(of.covered) && of.covered.len() > fields.len());
            }
            Extension::Vendor { value, .. } | Extension::Hint { value, .. } => {
                assert!(value.len() < data.len())
            }
            Extension::Other(kind) => assert!(kind >= 128),
        }
    }
    match message {
        Message::Request(request) => Some(register(&request, data)),
        _ => Some(false),
    }
}

/// Passes a request to a foreign agent and a home agent with the addresses that it names. Returns
/// whether they accept it.
fn register(request: &Request, data: &[u8]) -> bool {
    let Request { home, home_agent, care_of, .. } = *request;
    let key = Key::new(300, Algorithm::HmacMd5, vec![1; 16]).unwrap();
    let config = HomeConfig {
        addresses: vec![home_agent],
        mobiles: vec![HomeMobile { name: String::new(), address: home, key: key.clone() }],
        stations: vec![HomeStation { name: String::new(), address: care_of, key: key.clone() }],
        lifetime: Duration::from_secs(60),
        mtu: 1_500,
    };
    let Ok(mut agent) = HomeAgent::new(config, Instant::ZERO, request.identification) else {
        return false;
    };
    let mut relay = Relay::new(RelayConfig {
        addresses: vec![care_of],
        home_agents: vec![(home_agent, key.clone())],
        mobiles: Vec::new(),
        lifetime: Duration::from_secs(600),
        visitors: 1,
    })
    .unwrap();
    let port = if home.is_ipv6() { mobility::V6_PORT } else { mobility::PORT };
    let [home_at, agent_at, station_at] = [home, home_agent, care_of].map(|ip| (ip, port).into());
    let mut signed = data.to_vec();
    key.sign(&mut signed, Ends::MobileHome);
    for message in [data, &signed] {
        relay.handle_home(Instant::ZERO, agent_at, message);
        relay.handle_mobile(Instant::ZERO, home_at, message);
        while let Some(outgoing) = relay.poll_transmit().filter(|of| !of.is_to_mobile) {
            let flow = FlowId { local: station_at, remote: agent_at };
            agent.handle_packet(Instant::ZERO, PortId(0), udp::emit(&flow, 64, &outgoing.message));
            if let Some((number, _)) = agent.poll_store() {
                agent.stored(Instant::ZERO, number);
            }
            while let Some((_, packet)) = agent.poll_transmit(Instant::ZERO) {
                let header = if home.is_ipv6() { 40 } else { 20 };
                let reply = udp::parse(&packet.data[header..]).unwrap();
                relay.handle_home(Instant::ZERO, agent_at, reply.payload);
            }
        }
    }
    // A mobile is registered at both agents, or at none.
    let is_visitor = relay.visitor(home).is_some();
    assert_eq!(agent.status(Instant::ZERO).bindings.len(), usize::from(is_visitor));
    is_visitor
}
