//! A discrete-event world in virtual time, in which the stack and the link emulator run.
#![forbid(unsafe_code)]
