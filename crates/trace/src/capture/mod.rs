//! Captures: writing those of a recorder, and reading any.

mod file;
mod link_layer;
mod pcapng;
mod read;
mod write;

pub(crate) use read::{Direction, Reader, Record};
pub(crate) use write::Writer;

#[cfg(test)]
mod tests;
