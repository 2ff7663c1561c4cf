//! Tests of the shared library for packetdrill: called through its function table, and with
//! packetdrill's scripts if packetdrill is installed (`docs/packetdrill.md`).

mod abi;
mod harness;
mod packets;
mod scripts;
