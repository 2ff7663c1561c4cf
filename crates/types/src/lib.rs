//! Types that all airtcp crates share.
//!
//! This crate has no clock, no socket and no task. Time is an [`Instant`] that the caller passes
//! in, randomness a seeded [`rng::Stream`], and a [`Packet`] an IP packet. A state machine that
//! receives and sends packets is a [`Node`]; it reports [`Event`]s to observers.
//!
//! ```
//! use airtcp_types::{Instant, SeqNumber};
//! use std::time::Duration;
//!
//! let start = Instant::ZERO + Duration::from_millis(3);
//! assert_eq!(start.as_nanos(), 3_000_000);
//! assert!(SeqNumber(u32::MAX) < SeqNumber(5), "sequence numbers wrap");
//! ```
#![forbid(unsafe_code)]

mod chain;
mod event;
pub mod mark;
mod nearest;
mod node;
mod observer;
mod packet;
mod range_set;
pub mod rng;
mod seq;
mod shared_bytes;
mod time;
mod units;

pub use chain::Chain;
pub use event::{Event, EventKind, Fate, FlowId, SendRule};
pub use nearest::{distance, nearest, suggestion};
pub use node::{Node, PortId};
pub use observer::{Crossing, NodeId, Observer};
pub use packet::{Checksum, Packet};
pub use range_set::RangeSet;
pub use seq::{ExtSeq, SeqNumber, SeqRange, TxNo};
pub use shared_bytes::SharedBytes;
pub use time::{Instant, maybe_millis};
pub use units::{ByteCount, Rate};
