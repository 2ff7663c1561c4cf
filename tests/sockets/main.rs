//! The sockets as programs use them: hyper and rustls over them, between two stacks and with the
//! Linux kernel at the other end, and many tasks with random actions over impaired devices.
//!
//! Without namespaces or TUN devices the kernel's tests are skipped with the reason; with
//! `AIRTCP_REQUIRE_NETNS=1` they fail instead.

mod http;
#[path = "../interop/impaired.rs"]
mod impaired;
mod intercept;
mod kernel;
mod memory;
mod soak;
mod tls;
