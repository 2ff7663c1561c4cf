//! Computes the SHA-256 of files on request: one file at a time, with a cache and a limited number
//! of waiting requests.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::RETRY_AFTER;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{Refusal, get};
use crate::upload;

/// The maximum number of waiting requests: a request costs a client little.
const MOST_ASKING: usize = 64;

/// How long a request waits: a client that has vanished cannot be distinguished from one that has
/// only closed its direction.
const PATIENCE: Duration = Duration::from_secs(240);

/// The number of cached digests, the most recently computed ones.
const MOST_KEPT: usize = 256;

/// Computes and caches digests of files. Clones share the cache and the turns.
#[derive(Clone, Debug)]
pub(super) struct Digests {
    /// Permits reading a file.
    pub(super) turn: Arc<Semaphore>,
    /// Permits waiting for a turn.
    pub(super) asking: Arc<Semaphore>,
    /// How long a request waits for its turn.
    pub(super) patience: Duration,
    kept: Arc<Kept>,
}

/// Pairs of tag and digest of files.
#[derive(Debug, Default)]
struct Kept(Mutex<VecDeque<(String, String)>>);

impl Default for Digests {
    fn default() -> Self {
        let [turn, asking] = [1, MOST_ASKING].map(|count| Arc::new(Semaphore::new(count)));
        Self { turn, asking, patience: PATIENCE, kept: Arc::default() }
    }
}

impl Digests {
    /// Returns the digest of a file with this `metadata`, as a value of `Repr-Digest`.
    ///
    /// # Errors
    /// 503 if too many requests wait, or this one has waited too long; those of reading.
    pub(super) async fn of(&self, file: File, metadata: &Metadata) -> Result<String, Refusal> {
        let (tag, length) = (get::tag(metadata), metadata.len());
        if let Some(digest) = self.kept.find(&tag) {
            return Ok(digest);
        }
        let _room = self.asking.try_acquire().map_err(|_| crowded())?;
        let turn = timeout(self.patience, self.turn.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| crowded())?.map_err(io::Error::other)?;
        // The previous request may have been for the same file.
        if let Some(digest) = self.kept.find(&tag) {
            return Ok(digest);
        }
        let kept = self.kept.clone();
        let reading = spawn_blocking(move || {
            let _turn = turn;
            let digest = read(&file, length)?;
            // Cache it even if the request has ended, for the client's next attempt.
            if get::tag(&file.metadata()?) == tag {
                kept.add(tag, digest.clone());
            }
            Ok::<_, io::Error>(digest)
        });
        Ok(reading.await.map_err(io::Error::other)??)
    }
}

fn crowded() -> Refusal {
    let text = "too many requests for checksums; try again in a moment";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text).with(&RETRY_AFTER, 1)
}

impl Kept {
    fn with<T>(&self, work: impl FnOnce(&mut VecDeque<(String, String)>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn find(&self, tag: &str) -> Option<String> {
        self.with(|all| all.iter().find(|(of, _)| of == tag).map(|(_, digest)| digest.clone()))
    }

    fn add(&self, tag: String, digest: String) {
        self.with(|all| {
            all.truncate(MOST_KEPT - 1);
            all.push_front((tag, digest));
        });
    }
}

/// Returns the SHA-256 of the first `length` bytes of a file, as a value of `Repr-Digest`.
///
/// # Errors
/// Those of reading.
pub(super) fn read(mut file: &File, length: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    file.rewind()?;
    upload::take_in(&mut hash, file, length)?;
    Ok(upload::field(&hash))
}
