//! WireGuard as a device for the stack.
#![forbid(unsafe_code)]
