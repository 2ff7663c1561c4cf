//! `airtcp put`: a file over HTTP, the other way.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Instant;

use anyhow::{Context, bail};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{Method, StatusCode};
use sha2::{Digest, Sha256};

use super::args::PutArgs;
use super::exchange::{MOST_REDIRECTS, exchange, redirect, refusal, request};
use super::report::{Course, Report};
use super::session::{self, Session};
use super::url::Url;
use crate::output;
use crate::progress::Progress;
use crate::services::FileBody;

/// Sends a file, and says how it went.
///
/// # Errors
/// The file cannot be read, nobody answers, the server refuses, or the transfer breaks off.
pub(crate) fn run(args: &PutArgs) -> anyhow::Result<()> {
    let name = args.file.display().to_string();
    // Opening a pipe would wait for a writer.
    let metadata = std::fs::metadata(&args.file).with_context(|| name.clone())?;
    if !metadata.is_file() {
        bail!("{name} is no file, whose length is known before it is sent");
    }
    let file = File::open(&args.file).with_context(|| name.clone())?;
    let report = session::run("put", &args.attach, async |session| {
        send(session, args.url.clone(), &file, &name).await
    })?;
    report.print(args.json, true)
}

/// What an answer came to.
enum Step {
    Done(StatusCode),
    Elsewhere(Url),
}

async fn send(session: &Session, mut url: Url, file: &File, name: &str) -> anyhow::Result<Report> {
    for _ in 0..=MOST_REDIRECTS {
        let start = Instant::now();
        let length = file.metadata()?.len();
        let stream = session.connect(url.place()).await?;
        let sent = Arc::new(Sent::new(length));
        let body =
            Counted { body: FileBody::from_file(file.try_clone()?, 0, length), sent: sent.clone() };
        let request = request(Method::PUT, &url, body)?;
        let (step, stream) = exchange(stream, request, async |response| {
            match (redirect(&response, &url)?, response.status()) {
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
                if bytes < length {
                    bail!("{url} answers {status} after {bytes} of {length} bytes");
                }
                let course = Course::of(&stream, bytes, start)?;
                let (url, file) = (url.to_string(), name.to_owned());
                return Ok(Report { url, file, status: status.as_u16(), length, sha256, course });
            }
        }
    }
    bail!("more than {MOST_REDIRECTS} redirections, the last one to {url}")
}

/// What has been handed over of a file.
struct Sent {
    state: Mutex<(u64, Sha256)>,
    progress: Progress,
}

impl Sent {
    fn new(length: u64) -> Self {
        Self {
            state: Mutex::new((0, Sha256::new())),
            progress: Progress::of_bytes(Some(length), 0),
        }
    }

    fn add(&self, data: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += data.len() as u64;
        state.1.update(data);
        self.progress.advance_by(data.len() as u64);
    }

    fn sum(&self) -> (u64, String) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.0, output::hex(&state.1.clone().finalize()))
    }
}

/// A file's bytes, counted as they are taken.
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
