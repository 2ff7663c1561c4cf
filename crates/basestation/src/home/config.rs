//! Settings of a home agent.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use super::Key;

/// The settings of a [`HomeAgent`](super::HomeAgent).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HomeConfig {
    /// The agent's own addresses: one IPv4 address, one IPv6 address, or both.
    pub addresses: Vec<IpAddr>,
    /// The home addresses, at most 65,536. A mobile with an IPv4 and an IPv6 address has two.
    pub mobiles: Vec<HomeMobile>,
    /// The stations that relay registrations, at most 1,024.
    pub stations: Vec<HomeStation>,
    /// The longest lifetime that is granted: whole seconds, from 1 to 65,534.
    pub lifetime: Duration,
    /// The MTU of the paths to the care-of addresses in bytes, from 1,320 to 65,535.
    pub mtu: usize,
}

/// A home address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HomeMobile {
    /// The name of the mobile.
    pub name: String,
    /// Its home address.
    pub address: IpAddr,
    /// The key that it shares with the home agent.
    pub key: Key,
}

/// A station, which is a foreign agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HomeStation {
    /// The name of the station.
    pub name: String,
    /// Its care-of address.
    pub address: IpAddr,
    /// The key that it shares with the home agent.
    pub key: Key,
}

/// An invalid setting.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum HomeConfigError {
    /// There is no address, or two of one IP version.
    #[error("the agent has {0} IPv4 and {1} IPv6 addresses: give one, or one of each")]
    Addresses(usize, usize),
    /// An agent, a mobile or a station has an address that another has too.
    #[error("the address {0} is given twice: each agent, mobile and station has its own")]
    Twice(IpAddr),
    /// The address of an agent, mobile or station is not that of one host.
    #[error("{0} is not the address of a host")]
    NotUnicast(IpAddr),
    /// The agent has no address of the version of this one.
    #[error("the agent has no address of the IP version of {0}: add one")]
    NoAddress(IpAddr),
    /// The lifetime is out of range.
    #[error("the lifetime is {0} s: use a whole number from 1 to 65534")]
    Lifetime(f64),
    /// The MTU is out of range.
    #[error("the MTU is {0}: use 1320 to 65535")]
    Mtu(usize),
    /// There are too many mobiles or stations.
    #[error("there are {0} home addresses and {1} stations: at most 65536 and 1024 are possible")]
    TooMany(usize, usize),
}

impl HomeConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`HomeConfigError`].
    pub fn check(&self) -> Result<(), HomeConfigError> {
        if self.mobiles.len() > 65_536 || self.stations.len() > 1_024 {
            return Err(HomeConfigError::TooMany(self.mobiles.len(), self.stations.len()));
        }
        let mobiles = self.mobiles.iter().map(|mobile| mobile.address);
        let stations = self.stations.iter().map(|station| station.address);
        check_addresses(&self.addresses, mobiles.chain(stations))?;
        check_lifetime(self.lifetime)?;
        // IPv6 requires 1,280 bytes within the tunnel.
        if !(1_320..=65_535).contains(&self.mtu) {
            return Err(HomeConfigError::Mtu(self.mtu));
        }
        Ok(())
    }

    /// Returns the agent's address of an IP version.
    pub(super) fn own(&self, v6: bool) -> Option<IpAddr> {
        of_version(&self.addresses, v6)
    }
}

/// Returns the address of an IP version.
pub(super) fn of_version(own: &[IpAddr], v6: bool) -> Option<IpAddr> {
    own.iter().copied().find(|address| address.is_ipv6() == v6)
}

/// Checks the addresses of an agent and of the others that it knows.
pub(super) fn check_addresses(
    own: &[IpAddr],
    others: impl Iterator<Item = IpAddr>,
) -> Result<(), HomeConfigError> {
    let v4 = own.iter().filter(|address| address.is_ipv4()).count();
    let v6 = own.len() - v4;
    if v4 > 1 || v6 > 1 || v4 + v6 == 0 {
        return Err(HomeConfigError::Addresses(v4, v6));
    }
    let mut seen = BTreeSet::new();
    for address in own.iter().copied().chain(others) {
        if !is_host(address) {
            return Err(HomeConfigError::NotUnicast(address));
        }
        if of_version(own, address.is_ipv6()).is_none() {
            return Err(HomeConfigError::NoAddress(address));
        }
        if !seen.insert(address) {
            return Err(HomeConfigError::Twice(address));
        }
    }
    Ok(())
}

/// Checks the longest lifetime that an agent permits: whole seconds.
pub(super) fn check_lifetime(lifetime: Duration) -> Result<(), HomeConfigError> {
    let is_whole = lifetime.subsec_nanos() == 0;
    if !is_whole || !(1..=65_534).contains(&lifetime.as_secs()) {
        return Err(HomeConfigError::Lifetime(lifetime.as_secs_f64()));
    }
    Ok(())
}

/// Whether an address can be that of one host behind a router.
pub(super) fn is_host(address: IpAddr) -> bool {
    let is_special = match address {
        IpAddr::V4(v4) => v4.is_broadcast() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    !(is_special || address.is_unspecified() || address.is_multicast() || address.is_loopback())
}
