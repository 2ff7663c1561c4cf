//! Tests of the simulator: determinism, and agreement with theory.

mod bbr3;
mod determinism;
mod spike;
mod theory;
