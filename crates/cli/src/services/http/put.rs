//! PUT, and PATCH that resumes it: a file is written beside its target and moved there when it is
//! complete.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::body::Body;
use super::held::{self, Held};
use super::{Files, Refusal, digests, text_response};
use crate::output;
use crate::upload::{
    self, PARTIAL_UPLOAD, REPR_DIGEST, UPLOAD_COMPLETE, UPLOAD_LENGTH, UPLOAD_OFFSET,
};

/// Stores a body at `below`. A reader sees the old file or the new one, never a part. A body that
/// is interrupted or silent for five minutes does not change the file; the received data is kept if
/// the client sends `Upload-Complete: ?1` (the draft's section "Upgrading To Resumable Uploads").
///
/// # Errors
/// The fields say that this is not the whole file; the directory does not exist, or the target is
/// one; the body is interrupted or silent; the disk is full; a later request writes the same file.
pub(super) async fn answer(
    files: &Files,
    below: &Path,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let headers = request.headers();
    let is_kept = headers.contains_key(&UPLOAD_COMPLETE);
    if is_kept && !upload::is_true(headers, &UPLOAD_COMPLETE) {
        return Err(bad("a PUT must contain the whole file: Upload-Complete must be ?1 or absent"));
    }
    let whole = length(&request, 0)?;
    let place = Place::of(files, below).await?;
    let held = Held::begin(&files.writers, place.held.clone(), is_kept).await?;
    let held = fill(files, held, request.into_body()).await?;
    if whole.is_some_and(|whole| whole != held.length()) {
        held.discard().await;
        return Err(bad("Upload-Length differs from the length of the upload, which is removed"));
    }
    held.finish(place.file).await?;
    Ok(done(place.is_new))
}

/// Returns the length of the whole file that a request gives, if any, in bytes.
///
/// # Errors
/// 400 if it is not a number, or given twice; or if it differs from `offset` plus the length of the
/// content, where that is known.
fn length(request: &Request<Incoming>, offset: u64) -> Result<Option<u64>, Refusal> {
    let headers = request.headers();
    if !headers.contains_key(&UPLOAD_LENGTH) {
        return Ok(None);
    }
    let whole = upload::integer(headers, &UPLOAD_LENGTH)
        .ok_or_else(|| bad("Upload-Length must give the length of the whole file, once"))?;
    let coming = request.body().size_hint().exact();
    if coming.is_some_and(|coming| offset.checked_add(coming) != Some(whole)) {
        return Err(bad("Upload-Length differs from the stored and the new bytes together"));
    }
    Ok(Some(whole))
}

fn bad(text: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, text)
}

/// Answers with the state of the upload of `below`: its length and SHA-256. An existing file is a
/// complete upload.
///
/// # Errors
/// Another process writes it; too many requests wait for digests (503); those of reading.
pub(super) async fn offset(files: &Files, below: &Path) -> Result<Response<Body>, Refusal> {
    // Where no file can be put, there is no upload. A PUT reports the reason.
    let mut found = None;
    if let Ok(place) = Place::of(files, below).await {
        found = held::look(&files.writers, &place.held)
            .await?
            .map(|(file, metadata)| (file, metadata, "?0"));
    }
    if found.is_none() {
        found = finished(files, below).await.map(|(file, metadata)| (file, metadata, "?1"));
    }
    let mut response = Response::new(Body::from(String::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let (length, is_complete) = found.as_ref().map_or((0, "?0"), |found| (found.1.len(), found.2));
    headers.insert(&UPLOAD_OFFSET, HeaderValue::from(length));
    headers.insert(&UPLOAD_COMPLETE, HeaderValue::from_static(is_complete));
    if let Some((file, metadata, _)) = found {
        let digest = HeaderValue::try_from(files.digests.of(file, &metadata).await?);
        headers.extend(digest.ok().map(|digest| (REPR_DIGEST.clone(), digest)));
    }
    Ok(response)
}

async fn finished(files: &Files, below: &Path) -> Option<(File, Metadata)> {
    let found = files.find(below).await.ok()?;
    // Opening a pipe would wait for a writer.
    tokio::fs::metadata(&found).await.ok().filter(Metadata::is_file)?;
    let file = tokio::fs::File::open(&found).await.ok()?;
    let metadata = file.metadata().await.ok()?;
    Some((file.into_std().await, metadata))
}

/// Appends the rest of an upload.
///
/// # Errors
/// Those of [`answer`]; 409 if the length differs from the client's offset; 422 if the complete
/// upload does not have the client's SHA-256, after which it is removed.
pub(super) async fn append(
    files: &Files,
    below: &Path,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let headers = request.headers();
    let kinds = headers.get_all(CONTENT_TYPE).iter().map(HeaderValue::as_bytes);
    if !kinds.eq([PARTIAL_UPLOAD.as_bytes()]) {
        let text = format!("Content-Type must be {PARTIAL_UPLOAD}");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let offset = upload::integer(headers, &UPLOAD_OFFSET)
        .ok_or_else(|| bad("Upload-Offset must give the number of stored bytes"))?;
    // The draft allows several requests for the rest, and none of them needs a digest. The client
    // of this project sends one request with a digest, and nothing else is supported.
    if !upload::is_true(headers, &UPLOAD_COMPLETE) {
        return Err(bad("the request must contain all of the rest, with Upload-Complete: ?1"));
    }
    let expected = upload::digest(headers).ok_or_else(|| {
        bad("Repr-Digest must give the SHA-256 of the whole file: sha-256=:BASE64:")
    })?;
    // If the length of the body is unknown, the digest is the only check.
    length(&request, offset)?;
    let place = Place::of(files, below).await?;
    let held = Held::resume(&files.writers, place.held.clone(), offset).await?;
    let mut held = fill(files, held, request.into_body()).await?;
    let (file, length) = held.whole().await?;
    if digest(&files.appended, file, length).await? != expected {
        held.discard().await;
        let text = "the upload does not match its SHA-256 and is removed; the former file is unchanged: send all \
                    of it again";
        return Err(
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text).with(&UPLOAD_COMPLETE, "?1")
        );
    }
    held.finish(place.file).await?;
    let mut response = done(place.is_new);
    response.headers_mut().insert(&UPLOAD_COMPLETE, HeaderValue::from_static("?1"));
    Ok(response)
}

/// The paths of a file that is put.
struct Place {
    file: PathBuf,
    /// The incomplete upload.
    held: PathBuf,
    is_new: bool,
}

impl Place {
    async fn of(files: &Files, below: &Path) -> Result<Self, Refusal> {
        let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else {
            return Err(Refusal::new(StatusCode::CONFLICT, "a file needs a name; PUT /name"));
        };
        let directory = files.find(parent).await.map_err(|refusal| match refusal.status {
            StatusCode::NOT_FOUND => {
                Refusal::new(StatusCode::CONFLICT, "the directory does not exist")
            }
            _ => refusal,
        })?;
        let file = directory.join(name);
        let is_new = match tokio::fs::symlink_metadata(&file).await {
            Ok(existing) if existing.is_dir() => {
                return Err(Refusal::new(StatusCode::CONFLICT, "a directory has this name"));
            }
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            // For example a name that is too long: report it before the whole body has arrived.
            Err(error) => return Err(error.into()),
        };
        Ok(Self { file, held: held::path(&directory, name), is_new })
    }
}

/// Writes a whole body.
async fn fill(files: &Files, mut held: Held, body: Incoming) -> Result<Held, Refusal> {
    let Err(mut refusal) = pour(files, &mut held, body).await else { return Ok(held) };
    let kept = held.break_off().await;
    match refusal.status {
        // The other request now has the upload, so that this response does not report its state.
        StatusCode::CONFLICT => {}
        StatusCode::INSUFFICIENT_STORAGE => refusal.text += "; the partial upload is removed",
        _ if kept > 0 => {
            let kept = output::bytes(kept);
            refusal.text += &format!("; {kept} are kept: resume with put --continue");
        }
        _ => {}
    }
    Err(refusal)
}

async fn pour(files: &Files, held: &mut Held, mut body: Incoming) -> Result<(), Refusal> {
    loop {
        let frame = tokio::select! {
            refusal = held.ended() => return Err(refusal),
            frame = timeout(files.patience, body.frame()) => frame,
        };
        let frame = frame.map_err(|_| {
            let text = format!("no data in the body for {} s", files.patience.as_secs());
            Refusal::new(StatusCode::REQUEST_TIMEOUT, text)
        })?;
        let Some(frame) = frame else { return Ok(()) };
        let frame = frame.map_err(|error| {
            Refusal::new(StatusCode::BAD_REQUEST, format!("the body was interrupted: {error}"))
        })?;
        if let Some(data) = frame.data_ref() {
            held.write(data).await?;
        }
    }
}

/// Returns the SHA-256 of a complete upload; one at a time is read.
async fn digest(turns: &Arc<Semaphore>, file: File, length: u64) -> Result<String, Refusal> {
    let turn = turns.clone().acquire_owned().await.map_err(io::Error::other)?;
    let reading = spawn_blocking(move || {
        let _turn = turn;
        digests::read(&file, length)
    });
    Ok(reading.await.map_err(io::Error::other)??)
}

fn done(is_new: bool) -> Response<Body> {
    if is_new {
        return text_response(
            StatusCode::CREATED,
            "text/plain; charset=utf-8",
            "created\n".to_owned(),
        );
    }
    let mut response = Response::new(Body::from(String::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
