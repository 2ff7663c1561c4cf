//! The simulator: the same bytes for the same seed, and what theory says.

mod bbr3;
mod determinism;
mod spike;
mod theory;
