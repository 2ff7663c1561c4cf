//! A bar on stderr for runs that take their time.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nobody wants to see a bar come and go.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows how many runs are done, on a terminal and after a second. It is gone when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    end: Option<Sender<()>>,
    showing: Option<JoinHandle<()>>,
}

impl Progress {
    /// Of so many runs.
    pub(crate) fn start(runs: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::hidden());
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} {bar:40} {pos}/{len} runs, {elapsed}")
        {
            bar.set_style(style);
        }
        let (end, ended) = channel();
        let later = bar.clone();
        let showing = std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // It draws nothing where stderr is no terminal.
                later.set_draw_target(ProgressDrawTarget::stderr());
                later.enable_steady_tick(Duration::from_millis(100));
            }
        });
        Self { bar, end: Some(end), showing: Some(showing) }
    }

    /// One more is done.
    pub(crate) fn advance(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(showing) = self.showing.take() {
            let _ = showing.join();
        }
        self.bar.finish_and_clear();
    }
}
