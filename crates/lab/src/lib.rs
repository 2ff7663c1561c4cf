//! Named experiments that repeat what a paper or theory states and compare the results with it.
//!
//! An [`Experiment`] is one file, which states what the experiment does and where that is
//! described, and a line in [`EXPERIMENTS`]. Running an experiment returns a [`Report`]: raw
//! records, a table, pictures with the source's axes, and each [`Claim`] of the source beside the
//! measured figure, with a [`Verdict`]. Nothing is tuned to a source's figures: a claim that does
//! not hold is a result. The experiments called `self/...` are different: they check our own tools,
//! and no result counts while one of their claims does not hold.
//!
//! A [`Study`] is an experiment that a user describes in a file: axes, a scenario, measures, claims
//! and pictures.
//!
//! A [`Sweep`] runs the same axes over many more cells, on one machine or in [`Shard`]s on several.
//!
//! A [`Plan`] sets how experiments run. For the same plan, the reports of simulated experiments are
//! the same byte for byte, on any number of threads.
//!
//! ```
//! use airtcp_lab::{Plan, Verdict};
//!
//! let plan = Plan { is_small: true, ..Plan::default() };
//! for experiment in airtcp_lab::select(&["self/half*"])? {
//!     let report = experiment.run(&plan)?;
//!     assert!(report.findings.claims.iter().all(|claim| claim.verdict == Verdict::Holds));
//!     println!("{}", report.to_text(None));
//! }
//! # Ok::<(), airtcp_lab::LabError>(())
//! ```
#![forbid(unsafe_code)]

mod bottleneck;
mod checks;
mod dcr;
mod draw;
mod error;
mod experiment;
mod feed;
mod findings;
mod glob;
mod grid;
mod hack;
mod le;
mod paper;
mod prelude;
mod progress;
mod real;
mod registry;
mod report;
mod results;
mod rrtp;
mod senders;
mod simulate;
mod study;
mod sweep;
mod table;
mod tcp_ecn;
mod theory;
mod timeline;
mod westwood;

pub use error::LabError;
pub use experiment::{Experiment, Ground, Kind, Plan, Run, RunCounter};
pub use findings::{Claim, Findings, Picture, Verdict};
pub use registry::{EXPERIMENTS, select};
pub use report::{Heading, Report};
pub use results::{Drawing, Results, SUMMARY_FILE, Summary};
pub use senders::LENGTH;
pub use study::Study;
pub use sweep::{Done, Merged, Shard, Sweep};
pub use table::Table;
