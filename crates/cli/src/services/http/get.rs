//! GET and HEAD: a file, a range of it, a directory's index or its listing.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue, IF_RANGE,
    LOCATION, RANGE,
};
use hyper::{Request, Response, StatusCode};
use sha2::{Digest, Sha256};

use super::body::Body;
use super::{Files, Refusal, listing, path, range, text_response};
use crate::upload::{self, REPR_DIGEST, WANT_REPR_DIGEST};

/// Answers with the file or directory `below` the served one.
///
/// # Errors
/// It does not exist, may not be read, or is neither a file nor a directory.
pub(super) async fn answer<B>(
    files: &Files,
    below: &Path,
    request: &Request<B>,
) -> Result<Response<Body>, Refusal> {
    let mut found = files.find(below).await?;
    let mut metadata = tokio::fs::metadata(&found).await?;
    if metadata.is_dir() {
        // The relative links of a listing are right only for a path that ends with a slash.
        let target = request.uri().path();
        if !target.ends_with('/') {
            return redirect(below);
        }
        match files.find(&below.join("index.html")).await {
            Ok(index) => {
                metadata = tokio::fs::metadata(&index).await?;
                found = index;
            }
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                let text = listing::page(&found, below).await?;
                let digest = upload::field(&Sha256::new_with_prefix(&text));
                let mut response = text_response(StatusCode::OK, "text/html; charset=utf-8", text);
                let digest = HeaderValue::try_from(digest).ok();
                response.headers_mut().extend(digest.map(|digest| (REPR_DIGEST.clone(), digest)));
                return Ok(response);
            }
            Err(refusal) => return Err(refusal),
        }
    }
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "not a file"));
    }
    let file = tokio::fs::File::open(&found).await?;
    let metadata = file.metadata().await?;
    let (length, tag) = (metadata.len(), tag(&metadata));
    let header = request.headers().get(RANGE).and_then(|value| value.to_str().ok());
    // If-Range must name this file (RFC 9110 section 13.1.5); a date never matches here.
    let header =
        header.filter(|_| request.headers().get(IF_RANGE).is_none_or(|meant| *meant == *tag));
    let part = header.map_or(Ok(None), |header| range::part(header, length));
    let file = file.into_std().await;
    let mut digest = None;
    if request.headers().contains_key(&WANT_REPR_DIGEST) {
        digest = Some(files.digests.of(file.try_clone()?, &metadata).await?);
    }
    let part = match part {
        Ok(part) => part,
        // A client that has the whole file already compares the digest.
        Err(refusal) => {
            let refusal = refusal.with(&CONTENT_RANGE, format!("bytes */{length}"));
            let refusal = refusal.with(&ETAG, tag);
            return Err(match digest {
                Some(digest) => refusal.with(&REPR_DIGEST, digest),
                None => refusal,
            });
        }
    };
    let (start, count) = part.unwrap_or((0, length));
    let mut response = Response::new(Body::from_file(file, start, count));
    if part.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let last = start + count - 1;
        let value = HeaderValue::try_from(format!("bytes {start}-{last}/{length}"));
        response.headers_mut().extend(value.ok().map(|value| (CONTENT_RANGE, value)));
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(count));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(&found)));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.extend(HeaderValue::try_from(tag).ok().map(|tag| (ETAG, tag)));
    let digest = digest.and_then(|digest| HeaderValue::try_from(digest).ok());
    headers.extend(digest.map(|digest| (REPR_DIGEST.clone(), digest)));
    Ok(response)
}

/// Returns a strong validator (RFC 9110 section 8.8.1), within the limits of the file system: two
/// writes in place with the same length, within a tick of the kernel's clock, give the same tag. A
/// PUT creates a new file.
pub(super) fn tag(file: &Metadata) -> String {
    let (inode, length) = (file.ino(), file.len());
    format!("\"{inode:x}-{length:x}-{:x}.{:x}\"", file.ctime(), file.ctime_nsec())
}

fn redirect(below: &Path) -> Result<Response<Body>, Refusal> {
    let mut target = String::new();
    for part in below {
        target.push('/');
        target.push_str(&path::encode(part.as_encoded_bytes()));
    }
    target.push('/');
    let value = HeaderValue::try_from(target)
        .map_err(|_| Refusal::new(StatusCode::NOT_FOUND, "no such directory"))?;
    let mut response = Refusal::new(StatusCode::MOVED_PERMANENTLY, "a directory ends with a slash")
        .into_response();
    response.headers_mut().insert(LOCATION, value);
    Ok(response)
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" | "md" | "toml" | "rs" | "log" => "text/plain; charset=utf-8",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}
