//! The native module of the Python package `airtcp`: runs commands and reads traces. The functions
//! for users are in `python/airtcp`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use airtcp_cli::{Call, CallError};
use airtcp_trace::TraceError;
use airtcp_trace::plot::{self, Kind, Mark};
use airtcp_types::Instant;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;

/// The interval at which a running call looks for signals and reports its progress.
const TICK: Duration = Duration::from_millis(100);

/// Runs commands of airtcp, and reads traces.
#[pymodule]
mod _airtcp {
    #[pymodule_export]
    use super::{call, marks};
}

/// Runs a command with the arguments of its command line, and returns its standard output and its
/// notes.
///
/// `input` is the name and the text of the file `-`. `progress` is called with the number of
/// finished runs and of all runs. The interpreter's lock is released. A signal handler that raises
/// an exception, such as that of Ctrl-C, ends the command.
#[pyfunction]
#[pyo3(signature = (arguments, input=None, progress=None))]
fn call(
    py: Python<'_>,
    arguments: Vec<OsString>,
    input: Option<(String, String)>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let (call, has_ended, caller) = (Call::new(input), AtomicBool::new(false), thread::current());
    let report = || {
        let (done, runs) = call.progress();
        // Until the number of runs is known, there is nothing to report.
        if let Some(progress) = progress.as_ref().filter(|_| runs > 0) {
            progress.call1((done, runs))?;
        }
        PyResult::Ok(())
    };
    let output = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = call.run(arguments);
            has_ended.store(true, Ordering::Release);
            caller.unpark();
            result
        });
        // Python handles signals only on its main thread, so that this one waits and another works.
        let mut going = Ok(());
        while !(has_ended.load(Ordering::Acquire) || worker.is_finished()) {
            py.detach(|| thread::park_timeout(TICK));
            if going.is_ok() {
                going = py.check_signals().and_then(|()| report());
                if going.is_err() {
                    call.cancel();
                }
            }
        }
        let result = worker.join();
        going?;
        // A panic becomes an exception of Python.
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(exception)
    })?;
    report()?;
    Ok((output, call.notes()))
}

/// Converts an error: `OSError` if the operating system reported it, otherwise `ValueError`.
fn exception(error: CallError) -> PyErr {
    match error.kind() {
        Some(kind) => io::Error::new(kind, error.to_string()).into(),
        None => PyValueError::new_err(error.to_string()),
    }
}

/// Returns the marks of the time-sequence graph of a flow of a trace, as a JSON array in the order
/// of time. Flows are numbered from one. The interpreter's lock is released.
#[pyfunction]
fn marks(py: Python<'_>, path: PathBuf, flow: usize) -> PyResult<String> {
    py.detach(|| rows(&path, flow)).map_err(|error| match error {
        TraceError::File { .. } => PyOSError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    })
}

fn rows(path: &Path, flow: usize) -> Result<String, TraceError> {
    let mut rows = Vec::new();
    plot::read(path)?.marks(&[flow], |_, at, mark| rows.push(Row::new(at, mark)))?;
    Ok(serde_json::to_string(&rows).expect("rows are numbers and names"))
}

/// A mark. Sequence numbers are relative to the initial one; ranges exclude `to`.
#[derive(Serialize, Default)]
struct Row {
    /// In seconds since the start of the trace.
    time: f64,
    mark: &'static str,
    from: Option<u64>,
    to: Option<u64>,
    /// In bytes or seconds.
    value: Option<f64>,
    /// The smoothed round-trip time in seconds.
    srtt: Option<f64>,
}

impl Row {
    fn new(at: Instant, mark: &Mark) -> Self {
        let range =
            |mark, from, to| Self { mark, from: Some(from), to: Some(to), ..Self::default() };
        let single = |mark, seq| Self { mark, from: Some(seq), ..Self::default() };
        let bytes = |mark, bytes: u64| Self { mark, value: Some(bytes as f64), ..Self::default() };
        let seconds = |mark, time: Duration| Self {
            mark,
            value: Some(time.as_secs_f64()),
            ..Self::default()
        };
        let row = match *mark {
            Mark::Data { from, to, kind: Kind::New, .. } => range("data", from, to),
            Mark::Data { from, to, kind: Kind::Retransmitted, .. } => {
                range("retransmission", from, to)
            }
            Mark::Data { from, to, kind: Kind::OutOfOrder, .. } => range("out-of-order", from, to),
            Mark::Syn { seq, again: false } => single("syn", seq),
            Mark::Syn { seq, again: true } => single("syn-retransmission", seq),
            Mark::Fin { seq, again: false } => single("fin", seq),
            Mark::Fin { seq, again: true } => single("fin-retransmission", seq),
            Mark::Reset { seq } => single("rst", seq),
            Mark::Ack { from, to, .. } => range("ack", from, to),
            Mark::Edge { from, to, .. } => range("window-edge", from, to),
            Mark::ZeroWindow { seq } => single("zero-window", seq),
            Mark::Sack { from, to, .. } => range("sack", from, to),
            Mark::Dropped { from, to } => range("dropped", from, to),
            Mark::Outstanding(count) => bytes("outstanding", count),
            Mark::RoundTrip(time) => seconds("rtt-of-packets", time),
            Mark::Cwnd(count) => bytes("cwnd", count),
            Mark::Ssthresh(count) => bytes("ssthresh", count),
            Mark::Pipe(count) => bytes("pipe", count),
            Mark::Rtt { sample, srtt } => {
                Self { srtt: Some(srtt.as_secs_f64()), ..seconds("rtt", sample) }
            }
            Mark::Timeout => Self { mark: "timeout", ..Self::default() },
            Mark::Isn(number) => single("isn", number.into()),
        };
        Self { time: at.as_secs_f64(), ..row }
    }
}
