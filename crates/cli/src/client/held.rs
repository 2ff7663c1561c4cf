//! Asks a server how much of an interrupted upload it holds, and whether that is from this file.

use std::fs::File;
use std::io::{self, Seek};

use airtcp_net::TcpStream;
use anyhow::anyhow;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::{Method, Response, StatusCode};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::exchange::{SILENCE, exchange, redirect, request};
use super::session::Session;
use super::url::Url;
use crate::output;
use crate::upload::{self, UPLOAD_COMPLETE, UPLOAD_OFFSET};

/// The server's response to a query about an upload.
pub(super) enum Answer {
    Holds(Held),
    Elsewhere(Url),
}

/// The state of an upload on the server.
pub(super) struct Held {
    status: StatusCode,
    /// In bytes.
    length: u64,
    /// The upload is complete.
    is_complete: bool,
    /// The SHA-256 of the held bytes, as a value of `Repr-Digest`.
    digest: Option<String>,
}

/// Asks how much of an upload to `url` the server holds (the draft's section "Offset Retrieval").
///
/// # Errors
/// The server does not answer, does not support resumable uploads, or another request is writing
/// this upload.
pub(super) async fn ask(session: &Session, url: &Url) -> anyhow::Result<(Answer, TcpStream)> {
    let asked = url.upload();
    let stream = session.connect(url.place()).await?;
    let request = request(Method::HEAD, &asked, Empty::<Bytes>::new())?;
    exchange(stream, request, Some(SILENCE), async |response| match redirect(&response, &asked)? {
        Some(other) => Ok(Answer::Elsewhere(other.without_upload())),
        None => read(&response, url).map(Answer::Holds),
    })
    .await
}

fn read<B>(response: &Response<B>, url: &Url) -> anyhow::Result<Held> {
    let (status, headers) = (response.status(), response.headers());
    let length = upload::integer(headers, &UPLOAD_OFFSET).filter(|_| status.is_success());
    match length {
        Some(length) => Ok(Held {
            status,
            length,
            is_complete: upload::is_true(headers, &UPLOAD_COMPLETE),
            digest: upload::digest(headers),
        }),
        None if status == StatusCode::LOCKED => Err(anyhow!(
            "{url}: {status}: another request is writing this upload; try again in a moment"
        )),
        // Only these statuses suggest that the server does not support resumable uploads. The
        // advice would not help with others.
        None if status.is_success()
            || matches!(
                status,
                StatusCode::NOT_FOUND
                    | StatusCode::METHOD_NOT_ALLOWED
                    | StatusCode::NOT_IMPLEMENTED
            ) =>
        {
            Err(anyhow!(
                "{url}: the server does not report the state of an upload (it answers {status}, without \
                 Upload-Offset): leave out --continue, and all of the file is sent"
            ))
        }
        None => {
            Err(anyhow!("{url}: asked for the state of an upload, the server answers {status}"))
        }
    }
}

/// The position at which sending starts.
#[derive(Default)]
pub(super) struct Start {
    /// Bytes that the server has already.
    pub(super) at: u64,
    /// The hash of these bytes.
    pub(super) hash: Sha256,
    /// The SHA-256 of the whole file, as a value of `Repr-Digest`, if the upload is resumed.
    pub(super) digest: Option<String>,
    /// The status of the response, if the server has the whole file already.
    pub(super) done: Option<StatusCode>,
}

impl Held {
    /// Returns where to resume: at the start, if the held bytes are not from `file`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(super) async fn start(self, file: &File, url: &Url) -> anyhow::Result<Start> {
        if self.length == 0 && !self.is_complete {
            return Ok(Start::default());
        }
        let file = file.try_clone()?;
        let (length, is_complete) = (self.length, self.is_complete);
        // Hashing takes long, and must not block signals.
        let start = spawn_blocking(move || self.compare(&file)).await??;
        if start.is_none() && !is_complete {
            let held = output::bytes(length);
            output::note(format_args!(
                "note: {url} has {held} of another file: restarting the upload"
            ));
        }
        Ok(start.unwrap_or_default())
    }

    /// Returns `None` if the held bytes are from another file.
    fn compare(&self, mut file: &File) -> io::Result<Option<Start>> {
        let (at, whole) = (self.length, file.metadata()?.len());
        if at > whole || self.is_complete && at < whole {
            return Ok(None);
        }
        file.rewind()?;
        let mut hash = Sha256::new();
        upload::take_in(&mut hash, file, at)?;
        if self.digest.as_ref() != Some(&upload::field(&hash)) {
            return Ok(None);
        }
        let mut all = hash.clone();
        upload::take_in(&mut all, file, whole - at)?;
        let done = self.is_complete.then_some(self.status);
        Ok(Some(Start { at, hash, digest: Some(upload::field(&all)), done }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_statuses_of_servers_without_resumable_uploads_suggest_a_full_upload() {
        for (status, is_hinted) in [
            (200, true),
            (404, true),
            (405, true),
            (501, true),
            (403, false),
            (423, false),
            (500, false),
            (503, false),
        ] {
            let response = Response::builder().status(status).body(()).unwrap();
            let why = read(&response, &"http://a.example/b".parse().unwrap()).err().unwrap();
            let why = why.to_string();
            assert_eq!(why.contains("leave out --continue"), is_hinted, "{why}");
            assert!(why.contains(&status.to_string()), "{why}");
        }
    }

    #[test]
    fn only_a_part_of_the_same_file_is_resumed() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let start = |content: &[u8], is_complete| {
            let (status, length) = (StatusCode::NO_CONTENT, content.len() as u64);
            let digest = Some(upload::field(&Sha256::new_with_prefix(content)));
            Held { status, length, is_complete, digest }.compare(&file).unwrap()
        };
        let whole = upload::field(&Sha256::new_with_prefix(b"0123456789"));
        for (content, is_complete) in
            [(&b"0123"[..], false), (b"0123456789", false), (b"0123456789", true)]
        {
            let start = start(content, is_complete).unwrap();
            assert_eq!((start.at, start.done.is_some()), (content.len() as u64, is_complete));
            assert_eq!(
                upload::field(&start.hash),
                upload::field(&Sha256::new_with_prefix(content))
            );
            assert_eq!(start.digest.as_deref(), Some(&*whole));
        }
        for (content, is_complete) in
            [(&b"0124"[..], false), (b"0123456789a", false), (b"0123", true), (b"012345678x", true)]
        {
            assert!(start(content, is_complete).is_none(), "{content:?}");
        }
        // The server sends no digest.
        let held = Held { status: StatusCode::OK, length: 4, is_complete: false, digest: None };
        assert!(held.compare(&file).unwrap().is_none());
    }
}
