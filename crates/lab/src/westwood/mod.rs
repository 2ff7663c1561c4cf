//! Westwood: the accuracy of its bandwidth estimate.

pub(crate) mod compression;
mod course;
pub(crate) mod loss;
mod pinned;
