//! The shared library that packetdrill loads: called through its table as packetdrill calls it,
//! and, where there is a packetdrill, by scripts (`docs/packetdrill.md`).

mod abi;
mod harness;
mod packets;
mod scripts;
