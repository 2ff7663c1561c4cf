//! Captures: the one that a recorder writes, and those that others wrote.

mod file;
mod link_layer;
mod pcapng;
mod read;
mod write;

pub(crate) use read::{Direction, Reader, Record};
pub(crate) use write::Writer;

#[cfg(test)]
mod tests;
