//! The sockets as programs use them: hyper and rustls over them, between two stacks and with the Linux kernel at
//! the other end.
//!
//! The kernel's part is skipped with a loud reason where namespaces or TUN devices are not to be had; that
//! is a failure when `AIRTCP_REQUIRE_NETNS=1`.

mod http;
mod kernel;
mod memory;
mod tls;
