//! Debug log messages, for tests.

use std::io::{Result, Write};
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing::subscriber::with_default;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Runs `work` and returns the lines that it logged on this thread.
pub(crate) fn logged(work: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    with_default(subscriber, work);
    let text = lines.0.lock().unwrap();
    String::from_utf8_lossy(&text).lines().map(String::from).collect()
}
