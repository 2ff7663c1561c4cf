//! Port allocation: explicit ports, and ephemeral ports by algorithm 4 of RFC 6056.

use std::net::SocketAddr;

use super::secret::Secret;
use super::{HostConfig, HostError, Share};

/// The first ephemeral port, and their number (Linux's `ip_local_port_range`).
const FIRST: u16 = 32_768;
const COUNT: u16 = 28_232;
/// The number of classes of peers, each with its own counter.
const CLASSES: usize = 256;

/// The number of ports chosen in each class of peers: the ports that one peer sees reveal little
/// about those of others.
#[derive(Debug)]
pub(super) struct Ports {
    chosen: [u16; CLASSES],
    share: Share,
}

impl Ports {
    pub(super) const fn new(share: Share) -> Self {
        Self { chosen: [0; CLASSES], share }
    }

    /// Chooses a port at `local` that is not `taken`; `hash` identifies the peer (RFC 6056 section
    /// 3.3.4). Every port is tried once, the one chosen longest ago first. The ports of siblings
    /// are skipped, because siblings may choose them.
    pub(super) fn choose(
        &mut self,
        local: SocketAddr,
        hash: u64,
        taken: impl Fn(SocketAddr) -> bool,
    ) -> Result<SocketAddr, HostError> {
        let count = &mut self.chosen[(hash >> 32) as usize % CLASSES];
        let offset = (hash as u32 % u32::from(COUNT)) as u16;
        for _ in 0..COUNT {
            let candidate = SocketAddr::new(local.ip(), FIRST + (offset + *count) % COUNT);
            *count = (*count + 1) % COUNT;
            if self.share.has_port(candidate.port()) && !taken(candidate) {
                return Ok(candidate);
            }
        }
        Err(HostError::NoPorts)
    }

    /// Checks that `local` can be bound and is not `taken`. Chooses a port if the port is zero.
    pub(super) fn bind(
        &mut self,
        config: &HostConfig,
        secret: &Secret,
        local: SocketAddr,
        taken: impl Fn(SocketAddr) -> bool,
    ) -> Result<SocketAddr, HostError> {
        if !local.ip().is_unspecified() && !config.is_own(local.ip()) {
            return Err(HostError::NotLocal(local.ip()));
        }
        if local.port() == 0 {
            let hash = secret.port(local.ip(), local);
            return self.choose(local, hash, taken);
        }
        if taken(local) { Err(HostError::AddressInUse(local)) } else { Ok(local) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn local() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 0))
    }

    #[test]
    fn every_port_is_tried_once_and_none_is_left_then() {
        let mut ports = Ports::new(Share::default());
        let mut seen = BTreeSet::new();
        for _ in 0..COUNT {
            let chosen = ports.choose(local(), 77, |candidate| seen.contains(&candidate)).unwrap();
            assert!((FIRST..FIRST + COUNT).contains(&chosen.port()) && seen.insert(chosen));
        }
        let result = ports.choose(local(), 77, |candidate| seen.contains(&candidate));
        assert_eq!(result, Err(HostError::NoPorts));
    }

    #[test]
    fn ports_of_one_class_of_peers_do_not_affect_others() {
        let mut ports = Ports::new(Share::default());
        let other = 1 << 32;
        let first = ports.choose(local(), other, |_| false).unwrap().port();
        for _ in 0..100 {
            ports.choose(local(), 0, |_| false).unwrap();
        }
        assert_eq!(ports.choose(local(), other, |_| false).unwrap().port(), first + 1);
    }

    #[test]
    fn siblings_never_choose_the_same() {
        let chosen = |index| {
            let mut ports = Ports::new(Share { index, of: 3 });
            (0..100).map(|_| ports.choose(local(), 77, |_| false).unwrap().port()).collect()
        };
        let [one, two, three]: [BTreeSet<u16>; 3] = [0, 1, 2].map(chosen);
        assert_eq!((&one | &two).union(&three).count(), 300);
    }
}
