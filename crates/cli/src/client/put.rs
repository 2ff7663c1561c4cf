//! `airtcp put`: uploads a file over HTTP.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Instant;

use anyhow::{Context, bail};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use sha2::{Digest, Sha256};

use super::args::PutArgs;
use super::exchange::{MOST_REDIRECTS, exchange, redirect, refusal, request};
use super::held::{self, Answer, Start};
use super::report::{Course, Report};
use super::session::{self, Session};
use super::url::Url;
use crate::output;
use crate::progress::Progress;
use crate::services::FileBody;
use crate::upload::{PARTIAL_UPLOAD, REPR_DIGEST, UPLOAD_COMPLETE, UPLOAD_LENGTH, UPLOAD_OFFSET};

/// Uploads a file, and prints a report.
///
/// # Errors
/// The file cannot be read, the server does not answer or refuses, or the transfer is interrupted.
pub(crate) fn run(args: &PutArgs) -> anyhow::Result<()> {
    let name = args.file.display().to_string();
    // Opening a pipe would wait for a writer.
    let metadata = std::fs::metadata(&args.file).with_context(|| name.clone())?;
    if !metadata.is_file() {
        bail!("{name} is not a regular file: specify a file of known length");
    }
    let file = File::open(&args.file).with_context(|| name.clone())?;
    let source =
        Source { file, name, is_sending: Arc::default(), is_answered: AtomicBool::new(false) };
    let sent = session::run("put", &args.attach, async |session| {
        send(session, args.url.clone(), &source, args.resume).await
    });
    let report = sent.map_err(|error| match source.is_cut() {
        true => output::with_advice(
            error,
            "use --continue to resume, if the server keeps partial uploads",
        ),
        false => error,
    })?;
    report.print(args.json, true)
}

/// The file to upload.
struct Source {
    file: File,
    name: String,
    /// The last request has sent some of the file.
    is_sending: Arc<AtomicBool>,
    /// The last request was answered.
    is_answered: AtomicBool,
}

impl Source {
    /// Returns whether the last request was interrupted after it had sent data, without an answer;
    /// the server may have kept that data.
    fn is_cut(&self) -> bool {
        self.is_sending.load(Relaxed) && !self.is_answered.load(Relaxed)
    }

    fn report(
        &self,
        url: &Url,
        status: StatusCode,
        length: u64,
        sha256: String,
        course: Course,
    ) -> Report {
        let (url, file) = (url.to_string(), self.name.clone());
        Report { url, file, status: status.as_u16(), length, sha256, course }
    }
}

/// The effect of a response.
enum Step {
    Done(StatusCode),
    Elsewhere(Url),
}

async fn send(
    session: &Session,
    mut url: Url,
    source: &Source,
    is_resumed: bool,
) -> anyhow::Result<Report> {
    for _ in 0..=MOST_REDIRECTS {
        let begun = Instant::now();
        let mut start = Start::default();
        if is_resumed {
            let (answer, stream) = held::ask(session, &url).await?;
            match answer {
                Answer::Elsewhere(other) => {
                    url = other;
                    continue;
                }
                Answer::Holds(held) => start = held.start(&source.file, &url).await?,
            }
            if let Some(status) = start.done {
                let sha256 = output::hex(&start.hash.finalize());
                let course = Course::of(&stream, 0, begun)?;
                return Ok(source.report(&url, status, start.at, sha256, course));
            }
        }
        let begun = Instant::now();
        let length = source.file.metadata()?.len();
        let left = length - start.at.min(length);
        let stream = session.connect(url.place()).await?;
        source.is_sending.store(false, Relaxed);
        source.is_answered.store(false, Relaxed);
        let sent = Arc::new(Sent::new(&start, length, source.is_sending.clone()));
        let file = source.file.try_clone()?;
        let body = Counted { body: FileBody::from_file(file, start.at, left), sent: sent.clone() };
        let request = head(&url, &start, length, body)?;
        let (step, stream) = exchange(stream, request, None, async |response| {
            source.is_answered.store(true, Relaxed);
            match (redirect(&response, &url)?, response.status()) {
                // Only the URL of a resumed upload has the query that is removed here.
                (Some(other), _) if start.digest.is_some() => {
                    Ok(Step::Elsewhere(other.without_upload()))
                }
                (Some(other), _) => Ok(Step::Elsewhere(other)),
                (None, status) if status.is_success() => Ok(Step::Done(status)),
                _ => Err(refusal(response, &url).await),
            }
        })
        .await?;
        match step {
            Step::Elsewhere(other) => url = other,
            Step::Done(status) => {
                let (bytes, sha256) = sent.sum();
                if bytes < left {
                    bail!("{url} answers {status} after {bytes} of {left} bytes");
                }
                let course = Course::of(&stream, bytes, begun)?;
                return Ok(source.report(&url, status, length, sha256, course));
            }
        }
    }
    bail!("more than {MOST_REDIRECTS} redirections, the last one to {url}")
}

/// Returns a request that sends a file from `start`: a PUT, or a PATCH that appends to an upload
/// (the draft's sections "Upgrading To Resumable Uploads" and "Upload Append").
fn head(url: &Url, start: &Start, length: u64, body: Counted) -> anyhow::Result<Request<Counted>> {
    let mut request = match &start.digest {
        None => request(Method::PUT, url, body)?,
        Some(digest) => {
            let mut request = request(Method::PATCH, &url.upload(), body)?;
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(PARTIAL_UPLOAD));
            headers.insert(&UPLOAD_OFFSET, HeaderValue::from(start.at));
            headers.insert(&REPR_DIGEST, HeaderValue::try_from(digest)?);
            request
        }
    };
    request.headers_mut().insert(&UPLOAD_COMPLETE, HeaderValue::from_static("?1"));
    request.headers_mut().insert(&UPLOAD_LENGTH, HeaderValue::from(length));
    Ok(request)
}

/// The bytes of the file that were passed to the connection.
struct Sent {
    /// The number of bytes sent by this request, and the hash of the file up to there.
    state: Mutex<(u64, Sha256)>,
    is_sending: Arc<AtomicBool>,
    progress: Progress,
}

impl Sent {
    fn new(start: &Start, length: u64, is_sending: Arc<AtomicBool>) -> Self {
        Self {
            state: Mutex::new((0, start.hash.clone())),
            is_sending,
            progress: Progress::of_bytes(Some(length), start.at),
        }
    }

    fn add(&self, data: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += data.len() as u64;
        state.1.update(data);
        self.is_sending.store(true, Relaxed);
        self.progress.advance_by(data.len() as u64);
    }

    fn sum(&self) -> (u64, String) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.0, output::hex(&state.1.clone().finalize()))
    }
}

/// The body of a request: the bytes of a file, counted as they are sent.
struct Counted {
    body: FileBody,
    sent: Arc<Sent>,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.sent.add(data);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
