//! The SHA-256 of files, for those who ask: each is read once, one at a time, and not all wait for
//! it.

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

/// The most requests that wait for one: to ask costs a client little.
const MOST_ASKING: usize = 64;

/// How long they do: a client that is gone does not show while it may only have ended its
/// direction.
const PATIENCE: Duration = Duration::from_secs(240);

/// So many are kept, those that were read last.
const MOST_KEPT: usize = 256;

/// Clones share what is kept, and the turns.
#[derive(Clone, Debug)]
pub(super) struct Digests {
    /// To read a file.
    pub(super) turn: Arc<Semaphore>,
    /// To wait for that.
    pub(super) asking: Arc<Semaphore>,
    /// How long one waits for its turn.
    pub(super) patience: Duration,
    kept: Arc<Kept>,
}

/// By the tags of the files.
#[derive(Debug, Default)]
struct Kept(Mutex<VecDeque<(String, String)>>);

impl Default for Digests {
    fn default() -> Self {
        let [turn, asking] = [1, MOST_ASKING].map(|count| Arc::new(Semaphore::new(count)));
        Self { turn, asking, patience: PATIENCE, kept: Arc::default() }
    }
}

impl Digests {
    /// That of a file as it was when `metadata` was, as a value of `Repr-Digest`.
    ///
    /// # Errors
    /// 503 where too many wait, or one has waited for too long; those of reading.
    pub(super) async fn of(&self, file: File, metadata: &Metadata) -> Result<String, Refusal> {
        let (tag, length) = (get::tag(metadata), metadata.len());
        if let Some(digest) = self.kept.find(&tag) {
            return Ok(digest);
        }
        let _room = self.asking.try_acquire().map_err(|_| crowded())?;
        let turn = timeout(self.patience, self.turn.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| crowded())?.map_err(io::Error::other)?;
        // Whoever was before may have asked for the same.
        if let Some(digest) = self.kept.find(&tag) {
            return Ok(digest);
        }
        let kept = self.kept.clone();
        let reading = spawn_blocking(move || {
            let _turn = turn;
            let digest = read(&file, length)?;
            // Also where nobody waits for it any more: whoever asks again has it then.
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

/// The SHA-256 of the first `length` bytes of a file, as a value of `Repr-Digest`.
///
/// # Errors
/// Those of reading.
pub(super) fn read(mut file: &File, length: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    file.rewind()?;
    upload::take_in(&mut hash, file, length)?;
    Ok(upload::field(&hash))
}
