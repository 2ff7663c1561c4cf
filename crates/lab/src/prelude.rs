//! The imports that most experiments use.

pub(crate) use std::time::Duration;

pub(crate) use airtcp_recovery::Profile;
pub(crate) use airtcp_sim::{App, FlowSpec, Interval, Scenario, Topology, Wire};
pub(crate) use airtcp_trace::figure::{Figure, Style};
pub(crate) use airtcp_types::ByteCount;

pub(crate) use crate::study::{Axis, Fields, Grid, Point, Runs, Sample, Slice, fields};
pub(crate) use crate::theory::{self, Bound};
pub(crate) use crate::{
    Experiment, Findings, Ground, LabError, Run, Verdict, draw, feed, simulate,
};
