//! Asks a server how much of an interrupted upload it holds, and whether it is of this file.

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

/// What a server has to say of an upload.
pub(super) enum Answer {
    Holds(Held),
    Elsewhere(Url),
}

/// What is there of it.
pub(super) struct Held {
    status: StatusCode,
    /// Bytes.
    length: u64,
    /// It is the file itself.
    is_complete: bool,
    /// The SHA-256 of that, as a value of `Repr-Digest`.
    digest: Option<String>,
}

/// Asks what is held of an upload to `url` (the draft's section "Offset Retrieval").
///
/// # Errors
/// Nobody answers; the server does not know of uploads that break off, or has another at this one.
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
        // Such are the answers of those that know nothing of uploads; to others it would be of no
        // use.
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

/// Where sending begins.
#[derive(Default)]
pub(super) struct Start {
    /// Bytes that the server has.
    pub(super) at: u64,
    /// Of those.
    pub(super) hash: Sha256,
    /// The SHA-256 of the whole, as a value of `Repr-Digest`, if something is gone on with.
    pub(super) digest: Option<String>,
    /// The server has all of it already, and answered so.
    pub(super) done: Option<StatusCode>,
}

impl Held {
    /// Where to go on; at the beginning, if what is held is not of `file`.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) async fn start(self, file: &File, url: &Url) -> anyhow::Result<Start> {
        if self.length == 0 && !self.is_complete {
            return Ok(Start::default());
        }
        let file = file.try_clone()?;
        let (length, is_complete) = (self.length, self.is_complete);
        // It takes its time, and a signal is to end it.
        let start = spawn_blocking(move || self.compare(&file)).await??;
        if start.is_none() && !is_complete {
            let held = output::bytes(length);
            output::note(format_args!(
                "note: {url} has {held} of another file: restarting the upload"
            ));
        }
        Ok(start.unwrap_or_default())
    }

    /// `None`, if it is of another file.
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
    fn only_to_a_server_that_knows_nothing_of_uploads_all_is_to_be_sent() {
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
    fn only_what_is_of_the_same_file_is_gone_on_with() {
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
        // Nobody says what it is.
        let held = Held { status: StatusCode::OK, length: 4, is_complete: false, digest: None };
        assert!(held.compare(&file).unwrap().is_none());
    }
}
