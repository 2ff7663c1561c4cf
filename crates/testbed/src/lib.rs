//! Real networks for tests and demonstrations, created and removed by code.
//!
//! A [`Namespace`] is an anonymous network namespace with a thread inside. It runs closures and
//! futures and returns their results; whatever these open (sockets, TUN devices, child processes)
//! belongs to the namespace. Addresses, routes and veth pairs are configured by interface name.
//! [`peer`] is the kernel's TCP as the other end, as server and client. A
//! [`Dumbbell`](dumbbell::Dumbbell) is two hosts, each the kernel or an airtcp stack, with an
//! emulated link between them. A namespace ends with its last thread, so that even SIGKILL leaves
//! no process, interface or file behind.
//!
//! ```no_run
//! use airtcp_testbed::{Namespace, Service, peer};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let namespace = Namespace::new()?;
//! // The device belongs to the namespace, and may be driven from anywhere.
//! let tun = namespace.run(|| airtcp_device::TunFile::open("tun0"))?;
//! namespace.configure("tun0", &["10.0.0.1/24".parse()?, "fd00::1/64".parse()?], Some(1500))?;
//! let server = namespace.serve("10.0.0.1:7".parse()?, Service::Echo, None)?;
//! let address = server.address();
//! let call = async move { peer::echo(peer::connect(address, None).await?, 1, 4096).await };
//! let echoed = namespace.spawn(call).await??;
//! assert_eq!(echoed, 4096);
//! # Ok(())
//! # }
//! ```
//!
//! Root needs nothing else. The program of another user calls [`enter_user_namespace_if_needed`] at
//! the start of `main`; a test uses [`or_skip`].
#![deny(unsafe_code)]

mod arrivals;
mod bulk;
mod cidr;
mod delivery;
pub mod dumbbell;
mod emulator;
mod error;
pub mod here;
mod kernel_counters;
mod link;
mod namespace;
mod pattern;
pub mod peer;
mod privilege;
mod raw;
mod stream;
mod sys;
mod tun_options;
mod tun_queues;

pub use arrivals::Arrivals;
pub use bulk::{Bulk, Bulked};
pub use cidr::Cidr;
pub use delivery::Delivered;
pub use error::TestbedError;
pub use link::Interface;
pub use namespace::Namespace;
pub use pattern::Pattern;
pub use peer::{Server, Service};
pub use privilege::{enter_user_namespace_if_needed, or_skip, requirements};
pub use raw::RawSender;
pub use stream::{Course, Ended, Stream};
pub use tun_options::tun_options;

#[cfg(test)]
mod tests;
