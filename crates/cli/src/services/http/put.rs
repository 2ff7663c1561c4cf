//! PUT: a file, written beside its place and moved there when it is complete.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::body::Body;
use super::{CHUNK, Files, Refusal, text_response};

/// Puts `body` at `below`. A reader sees the old file or the new one, never a part; a body that
/// breaks off, or is silent for five minutes, changes nothing.
///
/// # Errors
/// No directory to put it in, a directory in its place, a body that breaks off or falls silent, a full disk.
pub(super) async fn answer(
    files: &Files,
    below: &Path,
    mut body: Incoming,
) -> Result<Response<Body>, Refusal> {
    let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else {
        return Err(Refusal::new(StatusCode::CONFLICT, "a file needs a name; PUT /name"));
    };
    let directory = files.find(parent).await.map_err(|refusal| match refusal.status {
        StatusCode::NOT_FOUND => {
            Refusal::new(StatusCode::CONFLICT, "there is no directory to put it in")
        }
        _ => refusal,
    })?;
    let place = directory.join(name);
    let existing = tokio::fs::symlink_metadata(&place).await.ok();
    if existing.as_ref().is_some_and(std::fs::Metadata::is_dir) {
        return Err(Refusal::new(StatusCode::CONFLICT, "there is a directory of that name"));
    }

    let temporary = spawn_blocking(move || {
        // What the umask leaves of it, as for a file that is made in place.
        tempfile::Builder::new()
            .prefix(".airtcp-put-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
    });
    let temporary = temporary.await.map_err(io::Error::other)??;
    let file = tokio::fs::File::from_std(temporary.as_file().try_clone()?);
    let mut writer = BufWriter::with_capacity(CHUNK, file);
    loop {
        let frame = timeout(files.patience, body.frame()).await.map_err(|_| {
            let text = format!("the body was silent for {} s", files.patience.as_secs());
            Refusal::new(StatusCode::REQUEST_TIMEOUT, text)
        })?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            Refusal::new(StatusCode::BAD_REQUEST, format!("the body broke off: {error}"))
        })?;
        if let Some(data) = frame.data_ref() {
            writer.write_all(data).await?;
        }
    }
    writer.flush().await?;
    let moved = spawn_blocking(move || temporary.persist(place).map(drop));
    moved.await.map_err(io::Error::other)?.map_err(|error| error.error)?;

    Ok(match existing {
        Some(_) => {
            let mut response = Response::new(Body::from(String::new()));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        None => {
            text_response(StatusCode::CREATED, "text/plain; charset=utf-8", "created\n".to_owned())
        }
    })
}
