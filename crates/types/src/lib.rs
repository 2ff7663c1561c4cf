//! The types that all airtcp crates share.
//!
//! Nothing here knows a clock, a socket or a task. Time comes in as an [`Instant`], randomness as
//! a seeded [`rng::Stream`], packets as a [`Packet`]; a state machine that takes and gives them is
//! a [`Node`]. Observers hear of what happened as [`Event`]s.
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
pub use nearest::{distance, nearest};
pub use node::{Node, PortId};
pub use observer::{Crossing, NodeId, Observer};
pub use packet::{Checksum, Packet};
pub use range_set::RangeSet;
pub use seq::{ExtSeq, SeqNumber, SeqRange, TxNo};
pub use shared_bytes::SharedBytes;
pub use time::{Instant, maybe_millis};
pub use units::{ByteCount, Rate};
