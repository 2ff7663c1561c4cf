//! `airtcp get`: downloads a file over HTTP.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, RANGE};
use hyper::{Method, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::args::GetArgs;
use super::exchange::{
    MOST_REDIRECTS, SILENCE, broken, exchange, redirect, refusal, request, text,
};
use super::place::Place;
use super::report::{Course, Ends, Report};
use super::session;
use super::sink::{Resume, Sink};
use super::url::Url;
use crate::output;
use crate::progress::Progress;
use crate::services::NETWORK;
use crate::upload::{self, WANT_REPR_DIGEST};

/// Downloads a file, and prints a report.
///
/// # Errors
/// The file cannot be written, the server does not answer, the response is an error, or the
/// transfer is interrupted. The received data is kept.
pub(crate) fn run(args: &GetArgs) -> anyhow::Result<()> {
    let resume = if args.resume { Resume::Any } else { Resume::None };
    to_file(&args.output, &args.url, (resume, "--continue"), args.json, |sink| {
        session::run("get", &args.attach, async |session| {
            let connect = async |place: &Place| session.connect(place).await;
            fetch(connect, args.url.clone(), sink, &Asks::default()).await
        })
    })
}

/// Has `work` download `url` into `file`, and prints a report. `resume` says whether a part may be
/// resumed; if the transfer is interrupted, the error says `how` to resume it.
///
/// # Errors
/// Those of the file and of `work`.
pub(super) fn to_file(
    file: &Path,
    url: &Url,
    (resume, how): (Resume, &str),
    as_json: bool,
    work: impl FnOnce(&mut Sink) -> anyhow::Result<Fetched>,
) -> anyhow::Result<()> {
    let mut sink = Sink::open(file, &url.to_string(), resume)?;
    let before = sink.length();
    let fetched = work(&mut sink);
    let Fetched { url, status, course } = fetched.map_err(|error| match sink.left(how) {
        Some(left) if sink.length() > before => output::with_advice(error, left),
        _ => error,
    })?;
    let length = sink.length();
    let report = Report {
        url: url.to_string(),
        file: file.display().to_string(),
        status: status.as_u16(),
        length,
        sha256: sink.finish()?,
        course,
    };
    report.print(as_json, file.as_os_str() != "-")
}

/// The result of a download.
pub(super) struct Fetched {
    url: Url,
    status: StatusCode,
    course: Course,
}

/// Additional header fields of a request.
#[derive(Default)]
pub(super) struct Asks {
    /// Requests the SHA-256 of the file; responses without it are rejected.
    pub(super) is_verified: bool,
    /// Describes the network to the server.
    pub(super) network: Option<HeaderValue>,
}

/// The effect of a response.
enum Step {
    /// The file is complete; the number is the bytes of this response.
    Done(StatusCode, u64),
    Elsewhere(Url),
    /// The whole file is here, but the server does not send its SHA-256 with that status: request
    /// it again from the start.
    Anew,
}

/// Downloads `url` over connections that `connect` makes.
///
/// # Errors
/// The server does not answer, the response is an error, or the transfer is interrupted.
pub(super) async fn fetch<S>(
    connect: impl AsyncFn(&Place) -> anyhow::Result<S>,
    mut url: Url,
    sink: &mut Sink,
    asks: &Asks,
) -> anyhow::Result<Fetched>
where
    S: AsyncRead + AsyncWrite + Ends + Unpin + Send + 'static,
{
    let mut from = sink.length();
    for _ in 0..=MOST_REDIRECTS {
        let start = Instant::now();
        let stream = connect(url.place()).await?;
        let (step, stream) = ask(stream, &url, sink, from, asks).await?;
        match step {
            Step::Anew => from = 0,
            Step::Elsewhere(other) => url = other,
            Step::Done(status, bytes) => {
                let course = Course::of(&stream, bytes, start)?;
                return Ok(Fetched { url, status, course });
            }
        }
    }
    bail!("more than {MOST_REDIRECTS} redirections, the last one to {url}")
}

async fn ask<S>(
    stream: S,
    url: &Url,
    sink: &mut Sink,
    from: u64,
    asks: &Asks,
) -> anyhow::Result<(Step, S)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut request = request(Method::GET, url, Empty::<Bytes>::new())?;
    if asks.is_verified {
        request.headers_mut().insert(&WANT_REPR_DIGEST, HeaderValue::from_static("sha-256=10"));
    }
    if let Some(network) = &asks.network {
        request.headers_mut().insert(&NETWORK, network.clone());
    }
    if from > 0 {
        let value = HeaderValue::try_from(format!("bytes={from}-"))?;
        request.headers_mut().insert(RANGE, value);
        // RFC 9110 section 13.1.5: the range, if the file is unchanged; otherwise all of the new
        // file.
        let tag = sink.tag().and_then(|tag| HeaderValue::try_from(tag).ok());
        request.headers_mut().extend(tag.map(|tag| (IF_RANGE, tag)));
    }
    exchange(stream, request, Some(SILENCE), async |response| {
        receive(response, url, sink, from, asks.is_verified).await
    })
    .await
}

/// Receives the response to a request for the bytes from `has`.
async fn receive(
    response: Response<Incoming>,
    url: &Url,
    sink: &mut Sink,
    has: u64,
    is_verified: bool,
) -> anyhow::Result<Step> {
    if let Some(other) = redirect(&response, url)? {
        return Ok(Step::Elsewhere(other));
    }
    let status = response.status();
    let tag = text(response.headers(), &ETAG);
    let digest = upload::digest(response.headers());
    let is_other = sink.tag().is_some_and(|own| tag != Some(own));
    // The total length, if the response is a part.
    let mut whole = None;
    let is_unknown = is_verified && digest.is_none();
    match status {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT if is_unknown => {
            bail!("{url}: the server sends no SHA-256 (Repr-Digest, RFC 9530) to verify the file");
        }
        StatusCode::RANGE_NOT_SATISFIABLE if has > 0 && is_unknown => return Ok(Step::Anew),
        StatusCode::OK => {
            if sink.length() > 0 {
                let why = match is_other {
                    true => "the file on the server has changed",
                    false if has == 0 => "the partial file cannot be verified",
                    false => "the server does not support ranges",
                };
                output::note(format_args!("note: {why}: restarting the transfer"));
                sink.restart()?;
            }
            // RFC 9110 section 13.1.5: If-Range requires a strong tag.
            let strong = tag.filter(|tag| tag.starts_with('"'));
            sink.set_tag(strong).context("recording the transfer")?;
        }
        StatusCode::PARTIAL_CONTENT if has > 0 => {
            if is_other {
                bail!(
                    "{url} sends a part of another file, or does not identify it: remove {}",
                    sink.name()
                );
            }
            let range = text(response.headers(), &CONTENT_RANGE).and_then(Range::read);
            if range.and_then(|range| range.first) != Some(has) {
                bail!("{url} sends another range than the requested one from byte {has}");
            }
            whole = range.and_then(|range| range.length);
            if whole.is_none() {
                bail!("{url} sends a range without the total length: remove {}", sink.name());
            }
        }
        StatusCode::RANGE_NOT_SATISFIABLE if has > 0 => {
            let range = text(response.headers(), &CONTENT_RANGE).and_then(Range::read);
            return match range.and_then(|range| range.length) {
                // All data had arrived before the transfer was interrupted. Few servers send the
                // tag with this status.
                Some(length) if length == has && (tag.is_none() || !is_other) => {
                    verify(digest, url, sink)?;
                    Ok(Step::Done(status, 0))
                }
                Some(length) => Err(anyhow!(
                    "{url} has {length} bytes, and {has} were received before: the file has changed; remove {}",
                    sink.name()
                )),
                None => Err(refusal(response, url).await),
            };
        }
        _ => return Err(refusal(response, url).await),
    }
    fill(response.into_body(), sink, SILENCE).await?;
    // RFC 9110 section 15.3.7: a server may send less than the requested range.
    if let Some(whole) = whole.filter(|whole| *whole != sink.length()) {
        bail!("{url} has {whole} bytes, but sent only the first {}", sink.length());
    }
    verify(digest, url, sink)?;
    Ok(Step::Done(status, sink.length() - if status == StatusCode::OK { 0 } else { has }))
}

/// Compares the SHA-256 of the received data with `digest`.
///
/// # Errors
/// They differ; the data is discarded.
fn verify(digest: Option<String>, url: &Url, sink: &mut Sink) -> anyhow::Result<()> {
    if digest.is_some_and(|digest| digest != sink.digest()) {
        sink.discard().with_context(|| sink.name().to_string())?;
        bail!("the SHA-256 of the received data differs from that of {url}: the data is discarded");
    }
    Ok(())
}

/// Writes a response's body to `sink`. The server may be silent for at most `silence`.
async fn fill(mut body: Incoming, sink: &mut Sink, silence: Duration) -> anyhow::Result<()> {
    let before = sink.length();
    let total = body.size_hint().exact().map(|coming| before + coming);
    let progress = Progress::of_bytes(total, before);
    let silent = |_| anyhow!("no data for {} s", silence.as_secs_f64());
    while let Some(frame) = timeout(silence, body.frame()).await.map_err(silent)? {
        if let Ok(data) = frame.map_err(broken)?.into_data() {
            sink.write(&data).context("writing the received data")?;
            progress.advance_by(data.len() as u64);
        }
    }
    Ok(())
}

/// The field Content-Range (RFC 9110 section 14.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    /// The first byte of the part.
    first: Option<u64>,
    /// The length of the whole file.
    length: Option<u64>,
}

impl Range {
    fn read(text: &str) -> Option<Self> {
        let (part, length) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
        let first = part.split_once('-').and_then(|(first, _)| first.trim().parse().ok());
        Some(Self { first, length: length.trim().parse().ok() })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_download_from_a_silent_server_ends_and_keeps_its_part() {
        let directory = tempfile::tempdir().unwrap();
        let url: Url = "http://a/b".parse().unwrap();
        let place = directory.path().join("file");
        let mut sink = Sink::open(&place, &url.to_string(), Resume::None).unwrap();
        let (near, mut far) = tokio::io::duplex(1_000);
        let serving = async {
            assert!(far.read(&mut [0; 1_000]).await.unwrap() > 0);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";
            far.write_all(answer).await.unwrap();
            far
        };
        let request = request(Method::GET, &url, Empty::<Bytes>::new()).unwrap();
        let silence = Duration::from_millis(250);
        let outcome = exchange(near, request, None, async |response| {
            fill(response.into_body(), &mut sink, silence).await
        });
        // Keep the server's end open.
        let (outcome, _far) = tokio::join!(outcome, serving);
        let error = outcome.map(drop).unwrap_err();
        assert_eq!(error.to_string(), "no data for 0.25 s");
        assert_eq!(sink.length(), 5);
    }

    #[tokio::test]
    async fn a_download_from_a_server_that_never_answers_ends() {
        let (near, _far) = tokio::io::duplex(1_000);
        let url: Url = "http://a/b".parse().unwrap();
        let request = request(Method::GET, &url, Empty::<Bytes>::new()).unwrap();
        let silence = Some(Duration::from_millis(250));
        let outcome = exchange(near, request, silence, async |_| Ok(())).await;
        let error = outcome.map(drop).unwrap_err().to_string();
        assert!(error.starts_with("no answer for 0.25 s: "), "{error}");
    }

    #[test]
    fn ranges_of_answers_are_read() {
        let range = |first, length| Some(Range { first, length });
        assert_eq!(Range::read("bytes 5-9/10"), range(Some(5), Some(10)));
        assert_eq!(Range::read("bytes 5-9/*"), range(Some(5), None));
        assert_eq!(Range::read("bytes */10"), range(None, Some(10)));
        assert_eq!(Range::read("lines 5-9/10"), None);
    }
}
