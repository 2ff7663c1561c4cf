//! An async user-space TCP/IP stack on TUN devices, with interchangeable loss recovery and congestion control.
//! It runs on Linux only.
//!
//! # Start here
//!
//! A [`Stack`] runs a host on a [`Device`](device::Device): a TUN device shared with the Linux
//! kernel (`Tun`, the feature `tun`, on by default), or one end of a pair in memory. It makes TCP
//! and UDP sockets, from IP addresses (there is no DNS), whose streams, listeners and UDP sockets
//! have tokio's methods:
//!
//! ```
//! use airtcp::device::memory;
//! use airtcp::{HostConfig, Stack};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (left, right) = memory::pair(1500, 256);
//! let server = Stack::new(left, HostConfig::new(["10.0.0.1/24".parse()?]))?;
//! let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
//!
//! let listener = server.listen("10.0.0.1:7".parse()?, 16)?;
//! let mut stream = client.connect("10.0.0.1:7".parse()?).await?;
//! let (mut accepted, _) = listener.accept().await?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! let mut received = String::new();
//! accepted.read_to_string(&mut received).await?;
//! assert_eq!(received, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! [`StackThread`] runs a stack and the tasks that use its sockets on a thread of its own, which is
//! the fastest way:
//!
//! ```
//! use airtcp::device::memory;
//! use airtcp::{HostConfig, Stack, StackThread};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! // Instead of one end of a pair in memory: Tun::open("tun0")
//! let (device, other) = memory::pair(1500, 256);
//! let config = HostConfig::new(["10.0.0.1/24".parse()?]);
//! let server = StackThread::start("server", move || Stack::new(device, config))?;
//! let listener = server.stack().listen("10.0.0.1:7".parse()?, 16)?;
//! server.spawn(async move {
//!     while let Ok((mut stream, _)) = listener.accept().await {
//!         tokio::spawn(async move { stream.write_all(b"hello").await });
//!     }
//! });
//!
//! let client = Stack::new(other, HostConfig::new(["10.0.0.2/24".parse()?]))?;
//! let mut stream = client.connect("10.0.0.1:7".parse()?).await?;
//! let mut received = String::new();
//! stream.read_to_string(&mut received).await?;
//! assert_eq!(received, "hello");
//!
//! // First close the connections: `join` drops the tasks, the stack and the device at once.
//! server.stack().shutdown().await;
//! server.join();
//! # Ok(())
//! # }
//! ```
//!
//! Stacks and links wait on the kernel's timers and read [`std::time::Instant`]:
//! `tokio::time::pause` does not move them. To test a program on a bad network, put a `link::Link`
//! between two stacks; the repository's `tests/lossy_link.rs` is an example.
//!
//! # Modules
//!
//! - the root: sockets, and how a host and its connections are configured;
//! - [`device`]: TUN devices, and a pair in memory;
//! - [`recovery`]: the strategies of the sender, selected by name or your own;
//! - [`host`]: the stack as a state machine, without sockets, tasks or a clock;
//! - [`types`]: time, sizes, sequence numbers, packets, events;
//! - `rrtp` (feature `rrtp`): sockets for RRTP, a rate-based transport over UDP;
//! - `link` (feature `link`): the link emulator, and a driver that runs it between two devices;
//! - `sim` (feature `sim`): simulated networks of hosts and links.
//!
//! A sender with strategies selected by name:
//!
//! ```
//! use airtcp::recovery::{Combination, registry};
//!
//! let combination: Combination = "newreno/fixed:32".parse()?;
//! assert_eq!(combination.detection().entry().source, "RFC 6582");
//! assert!(registry::controls().iter().any(|control| control.name == "cubic"));
//! # Ok::<(), airtcp::recovery::CombinationError>(())
//! ```
#![forbid(unsafe_code)]

pub use airtcp_net::{
    AnyTcpListener, AnyUdpSocket, OwnedReadHalf, OwnedWriteHalf, PendingStream, ReadHalf,
    ReuniteError, RuntimeThread, Sibling, Stack, StackThread, TcpListener, TcpSocket, TcpStream,
    UdpSocket, WriteHalf,
};
pub use airtcp_stack::Counters;
pub use airtcp_stack::host::{Cidr, CidrError, HostConfig, HostError, Listed, Quota};
pub use airtcp_stack::tcp::{
    AccEcnInfo, Chunk, EcnMode, EcnModeError, HackForm, Info, KeepAlive, MarkAware, Offer, State,
    TcpConfig, TcpError, Unreachable,
};

/// Network devices: TUN, and a pair in memory.
pub mod device {
    pub use airtcp_device::{Alarm, Capabilities, Clock, Counters, Device, Memory, Watch, memory};
    #[cfg(feature = "tun")]
    pub use airtcp_device::{DeviceError, Tun, TunFile, TunOptions};
}

/// Loss detection, judges, congestion control and pacing.
pub mod recovery {
    pub use airtcp_recovery::{
        Ack, AckView, Board, Cause, Certainty, Choice, Combination, CombinationError,
        CongestionControl, ControlParams, ControlState, Decision, Delivered, Entry, Finding,
        Findings, Learned, LearnedRtt, Limit, Loss, LossDetection, LossJudge, Notice, NoticeKind,
        PathModel, Phase, Profile, Raised, RandomLosses, RateSample, RecoveryEnd, Registry,
        RegistryError, Repair, RtoForm, RttEstimator, Ruling, Run, Sender, SenderConfig, Start,
        Stats, Supply, TakesOver, Transmission, Transmit, TxState, UndoSign, UnknownProfile, View,
        When, WireNeeds, registry, testkit,
    };
}

/// The stack as a state machine: packets and the time go in, packets and the next deadline come
/// out.
pub mod host {
    pub use airtcp_stack::host::{Host, Share, SocketId};
    pub use airtcp_stack::tcp::{Connection, Readiness, SocketOption, SwitchError};
}

/// Shared types: time, sizes, sequence numbers, packets, events.
pub mod types {
    pub use airtcp_types::{
        ByteCount, Checksum, Crossing, Event, EventKind, ExtSeq, Fate, FlowId, Instant, Node,
        NodeId, Observer, Packet, PortId, RangeSet, Rate, SendRule, SeqNumber, SeqRange,
        SharedBytes, TxNo, rng,
    };
}

/// RRTP: a reliable transport over UDP with optional network parameters.
#[cfg(feature = "rrtp")]
pub mod rrtp {
    pub use airtcp_net::rrtp::{
        DatagramSocket, Inbox, Outbox, OwnedReadHalf, OwnedWriteHalf, RrtpListener, RrtpSocket,
        RrtpStream,
    };
    pub use airtcp_rrtp::{
        Biaz, CallError, Config, ConnectionError, Counters, Endpoint, Event, Info, Limits,
        NetworkKind, NetworkProfile, Phase,
    };
}

/// The link emulator, and a driver that runs it, or any other node, between devices.
#[cfg(feature = "link")]
pub mod link {
    pub use airtcp_link::{
        Arq, Counters, Link, LinkError, LinkSpec, Occupancy, Radio, RadioSpec, Share, SpecError,
        Trace, TraceError, Way, named, parse_pair, radio, spec,
    };
    pub use airtcp_net::{DriveError, Driver, Lateness};
}

/// Networks of hosts and links in virtual time: the same code, faster than time, repeatable from a
/// seed.
#[cfg(feature = "sim")]
pub mod sim {
    pub use airtcp_sim::{
        Aggregate, App, Change, FlowAggregate, FlowDirection, FlowResult, FlowSpec, Interval,
        LinkAggregate, LinkResult, NodeKind, Policy, QueueState, RadioAggregate, RadioResult,
        Radios, Router, RouterCounters, Rrtp, RrtpResult, RunResult, Samples, Scenario, Sender,
        SenderError, SenderState, SimError, Simulation, State, StationAggregate, StationConfig,
        StationMemory, StationResult, Stuck, Summary, Topology, Wire, World, jain, run, run_seeds,
        run_with_states, toml,
    };
}

/// The examples of the READMEs are compiled, and run where they can be.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct Package;
}
