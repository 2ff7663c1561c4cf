//! Westwood: what its estimate of the bandwidth is worth.

pub(crate) mod compression;
mod course;
pub(crate) mod loss;
