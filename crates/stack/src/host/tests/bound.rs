//! Bound addresses that are not yet listening or connected.

use std::net::SocketAddr;

use super::*;
use crate::tcp::TcpConfig;

#[test]
fn a_bound_address_is_in_use_until_it_is_closed() {
    let mut host = server();
    let bound = host.tcp_bind(address("10.0.0.1:80")).unwrap();
    assert_eq!(host.local_addr(bound), Ok(address("10.0.0.1:80")));
    let in_use = HostError::AddressInUse(address("10.0.0.1:80"));
    assert_eq!(host.tcp_bind(address("10.0.0.1:80")), Err(in_use));
    assert_eq!(host.tcp_listen(address("10.0.0.1:80"), 1), Err(in_use));
    assert_eq!(
        host.tcp_bind(address("10.0.0.9:80")),
        Err(HostError::NotLocal(address("10.0.0.9:80").ip()))
    );
    host.tcp_close(Instant::ZERO, bound).unwrap();
    assert_eq!(host.local_addr(bound), Err(HostError::Stale));
    let listener = host.tcp_listen(address("10.0.0.1:80"), 1).unwrap();
    assert_eq!(host.tcp_bind(address("10.0.0.1:80")), Err(in_use));
    let wrong = host.tcp_listen_at(listener, 1, TcpConfig::default());
    assert_eq!(wrong, Err(HostError::WrongKind));
}

#[test]
fn an_active_open_has_the_address_that_was_bound() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 4).unwrap();
    let to = address("10.0.0.1:80");
    let connect_from = |pair: &mut Pair, local: &str| {
        let bound = pair.client.tcp_bind(address(local)).unwrap();
        let result = pair.client.tcp_connect_from(pair.now, bound, to, None);
        pair.exchange();
        (bound, result)
    };
    let (bound, stream) = connect_from(&mut pair, "0.0.0.0:5000");
    let stream = stream.unwrap();
    assert!(pair.client.readiness(stream).unwrap().connected);
    assert_eq!(pair.client.local_addr(bound), Err(HostError::Stale));
    let flow = FlowId { local: address("10.0.0.2:5000"), remote: to };
    assert_eq!(pair.client.tcp(stream).unwrap().flow(), flow);
    let (accepted, peer) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    assert_eq!(peer, flow.local);

    // A connection does not prevent binding its address, but two connections with the same peer are
    // impossible.
    let (bound, second) = connect_from(&mut pair, "10.0.0.2:5000");
    assert_eq!(second, Err(HostError::FlowInUse(flow)));
    assert_eq!(pair.client.local_addr(bound), Ok(flow.local), "it stays bound");
    pair.client.tcp_close(pair.now, bound).unwrap();
    let (_, family) = connect_from(&mut pair, "[fd00::2]:5000");
    assert_eq!(family, Err(HostError::Unroutable(to)));

    // A connection in TIME-WAIT does not prevent it, either.
    pair.client.tcp_close(pair.now, stream).unwrap();
    pair.server.tcp_close(pair.now, accepted).unwrap();
    pair.exchange();
    let (bound, waits) = connect_from(&mut pair, "10.0.0.2:5000");
    assert_eq!(waits, Err(HostError::FlowInUse(flow)));
    pair.pass(Duration::from_secs(61));
    let again = pair.client.tcp_connect_from(pair.now, bound, to, None).unwrap();
    pair.exchange();
    assert!(pair.client.readiness(again).unwrap().connected);
}

#[test]
fn a_port_that_the_host_chose_gives_way_to_another() {
    let mut pair = Pair::new();
    pair.server.tcp_listen(address("10.0.0.1:80"), 4).unwrap();
    let to = address("10.0.0.1:80");
    let first = pair.client.tcp_bind(address("10.0.0.2:0")).unwrap();
    let chosen = pair.client.local_addr(first).unwrap();
    // Another socket binds this port by its number and connects from it.
    pair.client.tcp_close(pair.now, first).unwrap();
    let bound = pair.client.tcp_bind(chosen).unwrap();
    pair.client.tcp_connect_from(pair.now, bound, to, None).unwrap();
    let again = loop {
        let bound = pair.client.tcp_bind(address("10.0.0.2:0")).unwrap();
        if pair.client.local_addr(bound) == Ok(chosen) {
            break bound;
        }
        pair.client.tcp_close(pair.now, bound).unwrap();
    };
    let stream = pair.client.tcp_connect_from(pair.now, again, to, None).unwrap();
    pair.exchange();
    assert!(pair.client.readiness(stream).unwrap().connected);
    assert_ne!(pair.client.local_addr(stream), Ok(chosen));
}

#[test]
fn no_connection_takes_a_port_that_is_bound() {
    let mut host = server();
    let peer = address("10.0.0.9:80");
    // Of three ports, two are bound, one of them at all addresses; the third stays free.
    let free: Vec<SocketAddr> = (0..3)
        .map(|_| {
            let id = host.tcp_connect(Instant::ZERO, peer, None).unwrap();
            let local = host.local_addr(id).unwrap();
            host.tcp_abort(Instant::ZERO, id).unwrap();
            local
        })
        .collect();
    let any = SocketAddr::new(address("0.0.0.0:0").ip(), free[1].port());
    let bound = [host.tcp_bind(free[0]).unwrap(), host.tcp_bind(any).unwrap()];
    let mut taken = Vec::new();
    while let Ok(id) = host.tcp_connect(Instant::ZERO, peer, None) {
        taken.push(host.local_addr(id).unwrap());
    }
    assert!(!taken.contains(&free[0]) && !taken.contains(&free[1]), "{} taken", taken.len());
    assert!(taken.contains(&free[2]));
    for id in bound {
        host.tcp_close(Instant::ZERO, id).unwrap();
    }
    assert!(host.tcp_connect(Instant::ZERO, peer, None).is_ok());
}

#[test]
fn a_listener_takes_other_settings_for_connections_to_come() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 8).unwrap();
    for mtu in [1500, 1000] {
        let config = TcpConfig { mtu, timestamps: false, ..TcpConfig::default() };
        pair.server.tcp_set_listener_config(listener, config).unwrap();
        let stream = pair.client.tcp_connect(pair.now, address("10.0.0.1:80"), None).unwrap();
        pair.exchange();
        let info = pair.client.tcp(stream).unwrap().info(pair.now);
        assert_eq!(info.mss, ByteCount(u64::from(mtu) - 40));
        let config = TcpConfig::default();
        assert_eq!(pair.client.tcp_set_listener_config(stream, config), Err(HostError::WrongKind));
    }
}
