//! The sockets as programs use them: hyper and rustls over them, between two stacks and with the
//! Linux kernel at the other end, and many tasks that do whatever they like over bad devices.
//!
//! The kernel's part is skipped with a loud reason where namespaces or TUN devices are not to be
//! had; that is a failure when `AIRTCP_REQUIRE_NETNS=1`.

mod http;
#[path = "../interop/impaired.rs"]
mod impaired;
mod intercept;
mod kernel;
mod memory;
mod soak;
mod tls;
