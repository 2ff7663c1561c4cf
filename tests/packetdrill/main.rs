//! The shared library that packetdrill loads: called through its table as packetdrill calls it.

mod abi;
mod harness;
mod packets;
