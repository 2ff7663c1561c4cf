//! Serves the live page of a command whose own work keeps its thread busy.

use std::net::SocketAddr;
use std::sync::Arc;

use airtcp_net::RuntimeThread;
use anyhow::Context;

use super::{Work, listen};

/// Serves the page on a thread of its own until it is dropped.
pub(crate) struct Aside(Option<RuntimeThread>);

impl Aside {
    /// Serves a page that shows `work`.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(crate) fn show(
        address: SocketAddr,
        title: String,
        work: Arc<Work>,
    ) -> anyhow::Result<Self> {
        let thread = RuntimeThread::start("live").context("--live")?;
        let read = move || std::future::ready(Some(work.snapshot()));
        thread.runtime().block_on(listen(address, title, read))?;
        Ok(Self(Some(thread)))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            thread.join();
        }
    }
}
