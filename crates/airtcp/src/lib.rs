//! A TCP/IP stack in user space for Linux, on TUN devices, with interchangeable loss detection and
//! congestion control.
//!
//! # Start here
//!
//! A [`Stack`] runs a host on a [`Device`](device::Device): a TUN device shared with the Linux
//! kernel (`Tun`, with the feature `tun`, on by default), or one end of a pair of devices in
//! memory. It creates TCP and UDP sockets that have tokio's methods. Addresses are IP addresses:
//! there is no DNS.
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
//! [`StackThread`] runs a stack, and the tasks that use its sockets, on a thread of its own. This
//! is the fastest way to run a stack:
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
//! Stacks and links wait on kernel timers and read [`std::time::Instant`], so `tokio::time::pause`
//! has no effect on them. To test a program on a bad network, put a `link::Link` between two
//! stacks, as `tests/lossy_link.rs` in the repository does.
//!
//! # Modules
//!
//! - the root: sockets, and the configuration of hosts and connections;
//! - [`device`]: TUN devices, and a pair of devices in memory;
//! - [`recovery`]: the sender's strategies, selected by name, and the traits for your own;
//! - [`host`]: the stack as a state machine, without sockets, tasks or a clock;
//! - [`types`]: time, sizes, sequence numbers, packets, events;
//! - `rrtp` (feature `rrtp`): sockets for RRTP, a rate-based transport over UDP;
//! - `link` (feature `link`): the link emulator, and a driver that runs it between two devices;
//! - `sim` (feature `sim`): simulated networks of hosts and links.
//!
//! Strategies are selected by name:
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

/// Network devices: TUN devices, and a pair of devices in memory.
pub mod device {
    pub use airtcp_device::{Alarm, Capabilities, Clock, Counters, Device, Memory, Watch, memory};
    #[cfg(feature = "tun")]
    pub use airtcp_device::{DeviceError, Tun, TunFile, TunOptions};
}

/// The sender's strategies: loss detection, judges and congestion control; the sender itself.
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

/// The stack as a state machine: its inputs are packets and the current time, its outputs packets
/// and the next deadline.
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

/// RRTP: a rate-based reliable transport over UDP that accepts network parameters from the
/// application.
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

/// The link emulator, and a driver that runs a link or any other node between devices.
#[cfg(feature = "link")]
pub mod link {
    pub use airtcp_link::{
        Arq, Counters, Link, LinkError, LinkSpec, Occupancy, Radio, RadioSpec, Share, SpecError,
        Trace, TraceError, Way, named, parse_pair, radio, spec,
    };
    pub use airtcp_net::{DriveError, Driver, Lateness};
}

/// Simulated networks of hosts and links in virtual time. They run the same protocol code; a seed
/// makes a run repeatable.
#[cfg(feature = "sim")]
pub mod sim {
    pub use airtcp_sim::{
        Aggregate, App, Cancel, Change, FlowAggregate, FlowDirection, FlowResult, FlowSpec,
        Interval, LinkAggregate, LinkResult, NodeKind, Policy, QueueState, RadioAggregate,
        RadioResult, Radios, Router, RouterCounters, Rrtp, RrtpResult, RunResult, Samples,
        Scenario, Sender, SenderError, SenderState, SimError, Simulation, State, StationAggregate,
        StationConfig, StationMemory, StationResult, Stuck, Summary, Topology, Wire, World, jain,
        run, run_seeds, run_seeds_with_cancel, run_with_states, toml,
    };
}

/// Compiles the examples of the READMEs, and runs those that can run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct Package;
}
