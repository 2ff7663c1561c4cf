//! Experiments by name: what a paper or theory says, done again, and held against it.
//!
//! An [`Experiment`] is one file that says what it does and where that is described, and a line in
//! [`EXPERIMENTS`]. Running it gives a [`Report`]: raw records, a table, pictures with the source's
//! axes, and each [`Claim`] of the source beside the measured figure, with a [`Verdict`]. Nothing
//! is tuned to a source's figure: a claim that does not hold is a result. That does not go for the
//! experiments called `self/...`, which check our own tools: where one of theirs does not hold, no
//! result counts.
//!
//! A [`Study`] is an experiment that a user describes in a file: axes, a scenario, measures, claims
//! and pictures.
//!
//! A [`Sweep`] runs the same axes over many more cells, on one machine or in [`Shard`]s on several.
//!
//! A [`Plan`] flows in, reports flow out; simulated ones are the same bytes for the same plan, on
//! any number of threads.
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
