//! Local addresses in use, and their sockets.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::ports::Ports;
use super::secret::{Keyed, Secret};
use super::{HostConfig, HostError, Share, SocketId};

/// The key of sockets for every address and port. No other socket has port 0.
pub(super) const ANY: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// Listeners, bound addresses and UDP sockets, and the ports that the host chooses.
#[derive(Debug)]
pub(super) struct Bindings {
    ports: Ports,
    listeners: HashMap<SocketAddr, SocketId, Keyed>,
    /// Addresses that are bound, and neither connected nor listening yet.
    reserved: BTreeSet<SocketAddr>,
    udp: HashMap<SocketAddr, SocketId, Keyed>,
}

impl Bindings {
    pub(super) fn new(share: Share, secret: &Secret) -> Self {
        Self {
            ports: Ports::new(share),
            listeners: HashMap::with_hasher(secret.keyed()),
            reserved: BTreeSet::new(),
            udp: HashMap::with_hasher(secret.keyed()),
        }
    }

    /// The listener at `local`. For an address of the host: the listener at the address itself, or
    /// at all addresses of its version; otherwise the listener for every address and port.
    pub(super) fn listener(&self, local: SocketAddr, is_own: bool) -> Option<SocketId> {
        find_or_any(&self.listeners, local, is_own)
    }

    /// The UDP socket at `local`, by the same rules.
    pub(super) fn udp(&self, local: SocketAddr, is_own: bool) -> Option<SocketId> {
        find_or_any(&self.udp, local, is_own)
    }

    /// Checks that `local` is an address of the host and that no TCP listener or bound address has
    /// it. Chooses a port if the port is zero.
    pub(super) fn free_for_tcp(
        &mut self,
        config: &HostConfig,
        secret: &Secret,
        local: SocketAddr,
    ) -> Result<SocketAddr, HostError> {
        let Self { ports, listeners, reserved, .. } = self;
        let taken = |at| listeners.contains_key(&at) || reserved.contains(&at);
        ports.bind(config, secret, local, taken)
    }

    /// Does the same for UDP sockets.
    pub(super) fn free_for_udp(
        &mut self,
        config: &HostConfig,
        secret: &Secret,
        local: SocketAddr,
    ) -> Result<SocketAddr, HostError> {
        let Self { ports, udp, .. } = self;
        ports.bind(config, secret, local, |at| udp.contains_key(&at))
    }

    /// Chooses a port towards `remote` that is not bound and that no connection uses (`in_use`).
    pub(super) fn port_towards(
        &mut self,
        secret: &Secret,
        source: IpAddr,
        remote: SocketAddr,
        in_use: impl Fn(SocketAddr) -> bool,
    ) -> Result<SocketAddr, HostError> {
        let Self { ports, listeners, reserved, .. } = self;
        ports.choose(SocketAddr::new(source, 0), secret.port(source, remote), |local| {
            in_use(local)
                || find(listeners, local).is_some()
                || reserved.contains(&local)
                || reserved.contains(&any(local))
        })
    }

    pub(super) fn reserve(&mut self, local: SocketAddr) {
        self.reserved.insert(local);
    }

    pub(super) fn release(&mut self, local: SocketAddr) {
        self.reserved.remove(&local);
    }

    pub(super) fn add_listener(&mut self, local: SocketAddr, id: SocketId) {
        self.listeners.insert(local, id);
    }

    pub(super) fn remove_listener(&mut self, local: SocketAddr) {
        self.listeners.remove(&local);
    }

    pub(super) fn add_udp(&mut self, local: SocketAddr, id: SocketId) {
        self.udp.insert(local, id);
    }

    pub(super) fn remove_udp(&mut self, local: SocketAddr) {
        self.udp.remove(&local);
    }
}

/// The same port at all addresses of the version.
fn any(local: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match local.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, local.port())
}

/// Finds the socket at `local`: at the address itself, or at all addresses.
fn find(table: &HashMap<SocketAddr, SocketId, Keyed>, local: SocketAddr) -> Option<SocketId> {
    table.get(&local).or_else(|| table.get(&any(local))).copied()
}

fn find_or_any(
    table: &HashMap<SocketAddr, SocketId, Keyed>,
    local: SocketAddr,
    is_own: bool,
) -> Option<SocketId> {
    let own = is_own.then(|| find(table, local)).flatten();
    own.or_else(|| table.get(&ANY).copied())
}

#[cfg(test)]
mod tests {
    use super::super::slab::Slab;
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_very_address_goes_before_all_and_each_version_is_for_itself() {
        let (secret, mut slab) = (Secret::new([1; 16]), Slab::new());
        let mut bindings = Bindings::new(Share::default(), &secret);
        let [one, all] = [slab.insert(()), slab.insert(())];
        bindings.add_listener(at("10.0.0.1:80"), one);
        bindings.add_listener(at("0.0.0.0:80"), all);
        let listener = |bindings: &Bindings, text| bindings.listener(at(text), true);
        assert_eq!(listener(&bindings, "10.0.0.1:80"), Some(one));
        assert_eq!(listener(&bindings, "10.0.0.2:80"), Some(all));
        assert_eq!(listener(&bindings, "[::1]:80"), None);
        assert_eq!(bindings.udp(at("10.0.0.1:80"), true), None);
        bindings.remove_listener(at("10.0.0.1:80"));
        assert_eq!(listener(&bindings, "10.0.0.1:80"), Some(all));
    }

    #[test]
    fn one_for_every_destination_comes_last_and_is_the_only_one_for_addresses_of_others() {
        let (secret, mut slab) = (Secret::new([1; 16]), Slab::new());
        let mut bindings = Bindings::new(Share::default(), &secret);
        let [all, any] = [slab.insert(()), slab.insert(())];
        bindings.add_listener(at("0.0.0.0:80"), all);
        bindings.add_listener(ANY, any);
        assert_eq!(bindings.listener(at("10.0.0.1:80"), true), Some(all));
        assert_eq!(bindings.listener(at("10.0.0.1:81"), true), Some(any));
        for other in ["192.0.2.1:80", "[2001:db8::1]:80"] {
            assert_eq!(bindings.listener(at(other), false), Some(any));
        }
        let (source, remote) = (at("10.0.0.1:0").ip(), at("10.0.0.2:80"));
        assert!(bindings.port_towards(&secret, source, remote, |_| false).is_ok());
    }

    #[test]
    fn a_reserved_port_is_not_chosen_for_connections() {
        let secret = Secret::new([1; 16]);
        let mut bindings = Bindings::new(Share::default(), &secret);
        let (source, remote) = (at("10.0.0.1:0").ip(), at("10.0.0.2:80"));
        let choose = |bindings: &mut Bindings| {
            bindings.port_towards(&secret, source, remote, |_| false).unwrap()
        };
        let first = choose(&mut bindings);
        for local in [first, any(first)] {
            let mut bindings = Bindings::new(Share::default(), &secret);
            bindings.reserve(local);
            assert_ne!(choose(&mut bindings), first);
            let mut bindings = Bindings::new(Share::default(), &secret);
            bindings.reserve(local);
            bindings.release(local);
            assert_eq!(choose(&mut bindings), first);
        }
    }
}
