//! A namespace with a TUN device, and this stack behind the device.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use airtcp_device::{Tun, TunFile};
use airtcp_net::Stack;
use airtcp_stack::host::{Cidr, HostConfig};
use airtcp_testbed::{Namespace, TestbedError, tun_options};

use crate::impaired::{Harm, HarmDone, Impaired, Impairment};

#[derive(Clone, Copy)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn ours(self) -> IpAddr {
        match self {
            Self::V4 => [10, 77, 0, 2].into(),
            Self::V6 => [0xfd00, 0x77, 0, 0, 0, 0, 0, 2].into(),
        }
    }

    pub(crate) fn kernel(self) -> IpAddr {
        match self {
            Self::V4 => [10, 77, 0, 1].into(),
            Self::V6 => [0xfd00, 0x77, 0, 0, 0, 0, 0, 1].into(),
        }
    }

    const fn prefix(self) -> u8 {
        match self {
            Self::V4 => 24,
            Self::V6 => 64,
        }
    }
}

pub(crate) struct Setup {
    pub(crate) namespace: Namespace,
    pub(crate) stack: Stack,
    harm: Arc<Harm>,
}

impl Setup {
    /// Must be called in a runtime. Without an impairment the device loses nothing.
    pub(crate) fn new(impairment: Option<Impairment>) -> Result<Self, TestbedError> {
        airtcp_testbed::requirements()?;
        let namespace = Namespace::new()?;
        let file =
            namespace.run(|| TunFile::open_with("tun0", tun_options())).expect("a TUN device");
        let families = [Family::V4, Family::V6];
        let kernel = families.map(|family| {
            let text = format!("{}/{}", family.kernel(), family.prefix());
            text.parse().expect("an address")
        });
        namespace.configure("tun0", &kernel, Some(1500))?;
        let own = families
            .map(|family| Cidr::new(family.ours(), family.prefix()).expect("a prefix that fits"));
        let harm = Arc::new(Harm::default());
        let tun = Tun::new(file).expect("a TUN device in the runtime");
        let none = Impairment { loss: 0.0, duplicate: 0.0, reorder: 0.0, seed: 0 };
        let device = Impaired::new(tun, impairment.unwrap_or(none), Arc::clone(&harm));
        let stack = Stack::new(device, HostConfig::new(own)).expect("a stack");
        Ok(Self { namespace, stack, harm })
    }

    /// The device's impairments so far.
    pub(crate) fn harm(&self) -> HarmDone {
        self.harm.done()
    }

    /// Starts an echo service of the stack on a free port, and returns its address.
    pub(crate) fn serve_echo(&self, family: Family) -> SocketAddr {
        let listener =
            self.stack.listen(SocketAddr::new(family.ours(), 0), 256).expect("a free port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut reader, mut writer) = tokio::io::split(stream);
                    tokio::io::copy(&mut reader, &mut writer).await?;
                    tokio::io::AsyncWriteExt::shutdown(&mut writer).await
                });
            }
        });
        address
    }
}
