//! The simulator: the same bytes for the same seed, and what theory says.

mod determinism;
mod theory;
