//! airtcp's stack as a shared library that [packetdrill](https://github.com/google/packetdrill)
//! tests.
//!
//! `packetdrill --so_filename=libairtcp_packetdrill.so` loads the library, gets a table of calls
//! from [`packetdrill_interface_init`](abi::packetdrill_interface_init), and runs a script with
//! them. The inputs are system calls and packets; the outputs are packets with their time of
//! transmission. Everything happens in virtual time, which advances only while packetdrill waits: a
//! script of two minutes takes almost no real time.
//!
//! ```text
//! abi.rs         the table, as C has it
//! calls.rs       each call: its arguments are fetched, and its result or errno given
//! memory.rs      reads and writes the caller's memory, and trusts nothing in it
//! target.rs      one script's stack: calls that wait, and the clock while they wait
//! world.rs       the host, the clock, and the packets that have left
//! socket.rs      descriptors; transfer.rs, poll.rs, options.rs what is done with them
//! flags.rs       what `--so_flags` chooses; sysctls.rs, what the namespace's /proc does
//! tcp_info.rs    a connection in the form of Linux's `struct tcp_info`
//! preload.rs     `getsockopt` and `close`, for what packetdrill asks of libc (feature `preload`)
//! ```
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "C calls it, and gives it memory to write its table to")]
pub mod abi;
mod address;
mod calls;
mod descriptor;
mod errors;
mod flags;
mod memory;
mod options;
mod poll;
#[cfg(all(feature = "preload", not(test)))]
#[expect(unsafe_code, reason = "it takes the place of functions of libc")]
mod preload;
mod socket;
mod sysctls;
mod target;
mod tcp_info;
mod transfer;
mod world;
