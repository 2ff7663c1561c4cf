//! Experiments as data: axes whose values fill in a scenario, measures, claims and pictures.
//!
//! A [`Grid`] runs every combination of its axes' values with every seed. The measurements are
//! addressed by the names of axes and measures, never by position. A [`Study`] is such an
//! experiment in a user's file.

mod fields;
mod file;
mod grid;
mod measure;
mod runs;
#[cfg(test)]
mod tests;
mod value;
mod work;

pub use work::Study;

pub(crate) use fields::{Fields, fields};
pub(crate) use grid::{Axis, Grid, Point, Slice, point};
pub(crate) use measure::{Asked, names as measure_names};
pub(crate) use runs::{Recorded, Runs, Sample};
pub(crate) use value::Value;
pub(crate) use work::{Design, Drawn, Where, once};
