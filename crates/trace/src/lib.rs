//! Records and draws packets and events: captures, event logs, time-sequence graphs, pictures.
//!
//! A [`Recorder`] is an [`Observer`](airtcp_types::Observer) that writes files: a pcapng capture
//! and a qlog-style event log during the run, and at the end a time-sequence graph of each flow.
//! [`plot`] draws such a graph from a trace or from any capture. [`figure`] draws measurements.
//!
//! The capture has one interface per node, so it contains a packet once for each host that sent or
//! received it. tcptrace requires one point of view: `tshark -r packets.pcapng -Y
//! 'frame.interface_name == "client"' -F pcap -w client.pcap`.
//!
//! ```
//! use airtcp_trace::{NodeInfo, NodeKind, Recorder};
//! use airtcp_types::{Crossing, Instant, NodeId, Observer, Packet};
//! use std::time::Duration;
//!
//! let dir = tempfile::tempdir()?;
//! let nodes = [NodeInfo { name: "client".to_owned(), kind: NodeKind::Host }];
//! let mut recorder = Recorder::create(dir.path(), "an example", &nodes, Duration::ZERO)?;
//! recorder.on_packet(Instant::ZERO, NodeId(0), Crossing::Out, &Packet::new(vec![0x45; 40]));
//! let written = recorder.finish()?;
//! assert_eq!(written.files.len(), 2, "there was no flow to draw");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod capture;
mod error;
pub mod figure;
mod node_info;
pub mod plot;
mod recorder;
mod segment;
mod sqlog;
mod svg;

pub use error::TraceError;
pub use node_info::{NodeInfo, NodeKind};
pub use recorder::{Recorder, Written, is_trace};
