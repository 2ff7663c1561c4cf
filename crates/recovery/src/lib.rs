//! TCP loss detection, loss classification, congestion control and pacing.
//!
//! A [`Sender`] combines interchangeable strategies that are selected by name at run time (a
//! [`Combination`]): a [`LossDetection`] decides which transmissions are lost, [`LossJudge`]s
//! decide what a loss means, and a [`CongestionControl`] decides how much data may be in flight.
//! The strategies are independent of each other: they read views and return decisions. Only the
//! sender changes the board, the timers and the counters; a strategy changes only its own state.
//!
//! The inputs are ACKs ([`Sender::on_ack`]) and the time ([`Sender::on_timeout`]); the outputs are
//! the segments to send ([`Sender::next_transmission`]) and the next deadline
//! ([`Sender::poll_timeout`]). This crate handles no packets, opens no sockets and reads no clock.
//!
//! ```
//! use airtcp_recovery::{Ack, Decision, Limit, Sender, SenderConfig, Start, Supply, WireNeeds};
//! use airtcp_types::{ByteCount, ExtSeq, Instant, SendRule};
//! use std::time::Duration;
//!
//! let config = SenderConfig { combination: "newreno/reno".parse()?, ..Default::default() };
//! let first = ExtSeq(1);
//! let mut sender = Sender::new(&config, &Start {
//!     now: Instant::ZERO,
//!     first,
//!     smss: ByteCount(1000),
//!     granted: WireNeeds::default(),
//!     handshake_rtt: Some(Duration::from_millis(20)),
//!     syn_retransmitted: false,
//!     seed: 0,
//! });
//! // A lot to send, and a wide window at the peer: the initial window of ten segments leaves.
//! let supply =
//!     Supply { end: first + 1_000_000, fin: false, window_edge: first + 65_535, nodelay: false };
//! let mut segments = 0;
//! while let Decision::Send(_) = sender.next_transmission(Instant::ZERO, &supply) {
//!     segments += 1;
//! }
//! assert_eq!(segments, 10);
//! assert_eq!(sender.next_transmission(Instant::ZERO, &supply), Decision::Blocked(Limit::Cwnd));
//!
//! // The first segment is lost: after three duplicate ACKs it is retransmitted.
//! let duplicate = Ack {
//!     ack: first,
//!     window_changed: false,
//!     window_opened: false,
//!     has_payload: false,
//!     sack: &[],
//!     dsack: None,
//!     echo: None,
//!     ece: false,
//!     ce: ByteCount::ZERO,
//!     echoed: None,
//! };
//! let now = Instant::from_millis(20);
//! for _ in 0..3 {
//!     sender.on_ack(now, &duplicate);
//! }
//! let Decision::Send(repair) = sender.next_transmission(now, &supply) else { panic!("no retransmission") };
//! assert_eq!((repair.range.start, repair.rule), (first, SendRule::FastRetransmit));
//! assert_eq!(sender.stats().reductions, 1);
//! # Ok::<(), airtcp_recovery::CombinationError>(())
//! ```
#![forbid(unsafe_code)]

mod board;
mod combination;
pub mod control;
mod deferred;
pub mod detection;
pub mod judge;
mod learned;
mod pacer;
mod profile;
mod rate;
pub mod registry;
mod rtt;
mod run;
mod sender;
mod stats;
pub mod testkit;
mod transmission;
mod view;

pub use board::Board;
pub use combination::{Choice, Combination, CombinationError};
pub use control::{
    CongestionControl, ControlParams, ControlState, Loss, Notice, NoticeKind, PathModel,
};
pub use detection::{Certainty, Finding, Findings, LossDetection, RecoveryEnd, Repair, SACK1};
pub use judge::{Cause, LossJudge, Raised, Ruling, When};
pub use learned::{Learned, LearnedRtt, RandomLosses};
pub use profile::{Profile, UnknownProfile};
pub use rate::RateSample;
pub use registry::{Entry, Registry, RegistryError, TakesOver, WireNeeds};
pub use rtt::{RtoForm, RttEstimator};
pub use run::Run;
pub use sender::{Ack, Decision, Limit, Sender, SenderConfig, Start, Supply, Transmit, UndoSign};
pub use stats::Stats;
pub use transmission::{Delivered, Transmission, TxState};
pub use view::{AckView, Phase, View};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
