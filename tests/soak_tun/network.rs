//! A namespace, a slightly impaired TUN device, and this stack behind it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Tun, TunFile};
use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::KeepAlive;
use airtcp_testbed::{Namespace, TestbedError, tun_options};

use crate::impaired::{Harm, Impaired, Impairment};

const TUN: &str = "tun0";
const OURS: [&str; 2] = ["10.79.0.2/24", "fd00:79::2/64"];
const STAYING: [&str; 2] = ["10.79.0.1/24", "fd00:79::1/64"];
const LEAVING: [&str; 2] = ["10.79.0.3/24", "fd00:79::3/64"];
/// The kernel also detects vanished peers within seconds, and keeps addresses until the test
/// removes them.
const SYSCTLS: [(&str, &str); 9] = [
    ("net.ipv4.tcp_keepalive_time", "1"),
    ("net.ipv4.tcp_keepalive_intvl", "1"),
    ("net.ipv4.tcp_keepalive_probes", "2"),
    ("net.ipv4.tcp_retries2", "3"),
    ("net.ipv4.tcp_syn_retries", "1"),
    ("net.ipv4.tcp_synack_retries", "1"),
    ("net.ipv4.tcp_fin_timeout", "1"),
    ("net.ipv6.bindv6only", "1"),
    ("net.ipv6.conf.tun0.keep_addr_on_down", "1"),
];

pub(crate) struct Network {
    pub(crate) namespace: Namespace,
    pub(crate) stack: Stack,
    /// Counts the device's impairments.
    pub(crate) harm: Arc<Harm>,
}

impl Network {
    /// Must be called in a runtime.
    pub(crate) fn new(seed: u64) -> Result<Self, TestbedError> {
        airtcp_testbed::requirements()?;
        let namespace = Namespace::new()?;
        let file = namespace.run(|| TunFile::open_with(TUN, tun_options())).expect("a TUN device");
        for (key, value) in SYSCTLS {
            namespace.set_sysctl(key, value)?;
        }
        let kernel = [STAYING, LEAVING].concat();
        let kernel: Vec<_> = kernel.iter().map(|cidr| cidr.parse().expect("an address")).collect();
        namespace.configure(TUN, &kernel, Some(1500))?;
        let mut config = HostConfig::new(OURS.map(|cidr| cidr.parse().expect("an address")));
        let second = Duration::from_secs(1);
        config.tcp.keep_alive = Some(KeepAlive { idle: second, interval: second, probes: 2 });
        config.tcp.user_timeout = Some(3 * second);
        config.tcp.syn_retries = 1;
        config.tcp.fin_wait_2 = second;
        config.tcp.time_wait = second;
        let tun = Tun::new(file).expect("a TUN device in the runtime");
        let impairment = Impairment { loss: 0.01, duplicate: 0.01, reorder: 0.01, seed };
        let harm = Arc::new(Harm::default());
        let device = Impaired::new(tun, impairment, harm.clone());
        let stack = Stack::new(device, config).expect("a stack");
        Ok(Self { namespace, stack, harm })
    }

    /// Sets the kernel's link up or down. While it is down, no packet passes.
    pub(crate) fn set_up(&self, up: bool) {
        self.namespace.set_up(TUN, up).expect("the kernel's link");
    }

    /// Removes half of the kernel's addresses, so that packets to them are lost.
    pub(crate) fn take_addresses(&self) {
        for cidr in LEAVING {
            let cidr = cidr.parse().expect("an address");
            self.namespace.remove_address(TUN, cidr).expect("an address less");
        }
    }

    pub(crate) fn give_addresses(&self) {
        for cidr in LEAVING {
            let cidr = cidr.parse().expect("an address");
            self.namespace.add_address(TUN, cidr).expect("an address more");
        }
    }
}

/// The stack's addresses, with a port.
pub(crate) fn ours(port: u16) -> [SocketAddr; 2] {
    OURS.map(|cidr| SocketAddr::new(address(cidr), port))
}

/// The kernel's addresses, with a port: first those that stay, then those that are removed.
pub(crate) fn kernels(port: u16) -> [SocketAddr; 4] {
    let [[a, b], [c, d]] = [STAYING, LEAVING];
    [a, b, c, d].map(|cidr| SocketAddr::new(address(cidr), port))
}

fn address(cidr: &str) -> IpAddr {
    cidr.parse::<airtcp_stack::host::Cidr>().expect("an address").address()
}
