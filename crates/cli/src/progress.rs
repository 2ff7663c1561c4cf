//! Shows progress on stderr: a bar on a terminal, otherwise a line at growing intervals.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{global, output};

/// Shorter tasks show no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// The interval before the first line. It doubles after each line, up to the longest.
const FIRST_LINE: Duration = Duration::from_secs(20);
const RAREST_LINE: Duration = Duration::from_secs(320);

/// Shows progress until it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    end: Option<Sender<()>>,
    showing: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows the progress of `runs` runs.
    pub(crate) fn start(runs: u64) -> Self {
        Self::show(Some(runs), 0, "{spinner} {bar:40} {pos}/{len} runs, {elapsed}", line)
    }

    /// Shows the progress of a transfer of `total` bytes, if that is known, which starts at
    /// `before`.
    pub(crate) fn of_bytes(total: Option<u64>, before: u64) -> Self {
        let template = match total {
            Some(_) => "{spinner} {bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} to go",
            None => "{spinner} {bytes}, {bytes_per_sec}",
        };
        Self::show(total, before, template, line_of_bytes)
    }

    fn show(total: Option<u64>, before: u64, template: &str, line: Line) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_position(before);
        bar.reset_eta();
        let (end, ended) = channel();
        let later = bar.clone();
        let show = move || {
            if std::io::stderr().is_terminal() {
                draw(&later, &ended);
            } else {
                print_lines(&later, &ended, line);
            }
        };
        let showing = (!global::is_quiet()).then(|| std::thread::spawn(show));
        Self { bar, end: Some(end), showing }
    }

    /// Adds `count` to the progress.
    pub(crate) fn advance_by(&self, count: u64) {
        self.bar.inc(count);
    }
}

fn draw(bar: &ProgressBar, ended: &Receiver<()>) {
    if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_millis(100));
    }
}

fn print_lines(bar: &ProgressBar, ended: &Receiver<()>, line: Line) {
    let mut pause = FIRST_LINE;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        output::note(line(bar.position(), bar.length().unwrap_or_default(), bar.elapsed()));
        pause = (pause * 2).min(RAREST_LINE);
    }
}

/// Formats a line from the amount done, the total (0 if unknown) and the elapsed time.
type Line = fn(u64, u64, Duration) -> String;

fn line_of_bytes(done: u64, total: u64, elapsed: Duration) -> String {
    let (done, elapsed) = (output::bytes(done), elapsed.as_secs());
    match total {
        0 => format!("{done} after {elapsed} s"),
        total => format!("{done} of {} after {elapsed} s", output::bytes(total)),
    }
}

fn line(done: u64, runs: u64, elapsed: Duration) -> String {
    let left = match done {
        0 => String::new(),
        done => {
            let each = elapsed.as_secs_f64() / done as f64;
            format!(", about {:.0} s to go", each * runs.saturating_sub(done) as f64)
        }
    };
    format!("{done} of {runs} runs after {} s{left}", elapsed.as_secs())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_progress_and_the_remaining_time() {
        let seconds = Duration::from_secs;
        assert_eq!(line(0, 240, seconds(20)), "0 of 240 runs after 20 s");
        assert_eq!(line(40, 240, seconds(60)), "40 of 240 runs after 60 s, about 300 s to go");
        assert_eq!(line_of_bytes(1 << 20, 4 << 20, seconds(20)), "1 MiB of 4 MiB after 20 s");
        assert_eq!(line_of_bytes(1 << 20, 0, seconds(20)), "1 MiB after 20 s");
    }
}
