//! An async user-space TCP/IP stack on TUN devices whose sender is made of interchangeable parts.
//!
//! This crate is a facade: each part is a crate of its own, and is found here under its short name.
//!
//! - [`stack`]: IPv4, IPv6, ICMP, UDP and TCP as one state machine (`stack::host::Host`), and tokio
//!   sockets on it;
//! - [`recovery`]: the sender's brain: loss detection, judges and congestion control, by name;
//! - [`device`]: TUN devices, and a pair in memory;
//! - [`link`]: the link emulator, described in netem's words;
//! - [`sim`]: whole networks of both in virtual time;
//! - [`trace`]: what observers make of packets and events;
//! - [`basestation`]: the bridge between a wired and a wireless device;
//! - [`types`]: what all share.
//!
//! Packets and the time flow into a state machine, packets and its next deadline flow out of it
//! ([`types::Node`]); nothing below the tokio shells knows a socket or a clock. The README has an
//! example with sockets; here is a sender made of parts chosen by name:
//!
//! ```
//! use airtcp::recovery::{Combination, registry};
//!
//! let combination: Combination = "newreno/fixed:32".parse()?;
//! assert_eq!(combination.recovery().entry().source, "RFC 6582");
//! assert!(registry::CONTROLS.iter().any(|control| control.name == "cubic"));
//! # Ok::<(), airtcp::recovery::CombinationError>(())
//! ```
#![forbid(unsafe_code)]

pub use airtcp_basestation as basestation;
pub use airtcp_device as device;
pub use airtcp_link as link;
pub use airtcp_recovery as recovery;
pub use airtcp_sim as sim;
pub use airtcp_stack as stack;
pub use airtcp_trace as trace;
pub use airtcp_types as types;

/// The examples of the README and of the pages are compiled, and run where they can be.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[doc = include_str!("../docs/write-your-own-strategy.md")]
    struct WriteYourOwnStrategy;
}
