//! Tunnels over a network in memory, and to a stock peer.

mod hostile;
mod interop;
mod kit;
mod sessions;
mod stacks;
