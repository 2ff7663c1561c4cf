//! Front ends: how a program's connection reaches the near gateway.
//!
//! A SOCKS5 server, an HTTP CONNECT proxy and local forwards. Each accepts connections of the
//! kernel, asks the near gateway for a connection to the destination, reports a refusal to the
//! program in its protocol's terms, and then splices the two connections. Interception needs no
//! server: it takes connections, datagrams and pings to every destination from a device.
//! [`Clients`] limits the number served at a time, over all front ends together.

mod associate;
mod clients;
mod connect;
mod forward;
mod intercept;
mod login;
mod ping;
mod socks;

pub use clients::Clients;
pub use connect::serve_http_connect;
pub use forward::{Forward, InvalidForward, serve_forward, serve_remote};
pub(crate) use intercept::refuse;
pub use intercept::{InterceptConfig, intercept, intercept_config};
pub use login::{InvalidLogin, Login};
pub use ping::{Pings, carry_pings, without_pings};
pub use socks::serve_socks5;

#[cfg(test)]
mod tests;
