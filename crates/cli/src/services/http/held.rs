//! Stores an incomplete upload in a file beside its target, with a name that requests may not use.
//!
//! A request that writes or removes such a file holds a lock on it, which also excludes other
//! processes. Within a process, a later request can end an earlier one, whose client may have
//! vanished without notice.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncSeekExt, AsyncWriteExt, BufWriter};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::{CHUNK, Refusal};
use crate::output;
use crate::upload::UPLOAD_OFFSET;

/// The prefix of the names.
const PREFIX: &str = ".airtcp-put-";

/// The maximum number of incomplete uploads in a directory, the latest ones.
const MOST: usize = 16;

/// The maximum age of an incomplete upload.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The interval between attempts to lock a file.
const STEP: Duration = Duration::from_millis(10);

/// The maximum number of attempts to lock a new file.
const TRIES: u32 = 20;

/// Returns the path of the incomplete upload of the file `name`: a hash, whose length does not
/// depend on that of `name`.
pub(super) fn path(directory: &Path, name: &OsStr) -> PathBuf {
    let sum = output::hex(&Sha256::digest(name.as_encoded_bytes()));
    directory.join(format!("{PREFIX}{sum}"))
}

/// Returns whether a name is that of an incomplete upload, also on file systems that ignore case.
pub(super) fn is_name(name: &[u8]) -> bool {
    name.get(..PREFIX.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(PREFIX.as_bytes()))
}

/// The requests that write incomplete uploads, with the signal that ends each. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Writers {
    all: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>>,
    /// How long to wait for another writer to release a file.
    patience: Duration,
}

impl Writers {
    /// Returns an empty set. A request waits up to `patience` for another request or process to
    /// release a file.
    pub(super) fn new(patience: Duration) -> Self {
        Self { all: Arc::default(), patience }
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<PathBuf, Arc<Notify>>) -> T) -> T {
        work(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Signals the current writer of `path` to stop.
    fn end(&self, path: &Path) {
        self.with(|all| {
            if let Some(writer) = all.get(path) {
                writer.notify_one();
            }
        });
    }

    /// Waits for a file that another writer may hold.
    ///
    /// # Errors
    /// 423 if it is not released in time; those of `work`.
    async fn wait<T>(&self, work: impl Future<Output = io::Result<T>>) -> Result<T, Refusal> {
        Ok(timeout(self.patience, work).await.map_err(|_| locked())??)
    }

    /// Registers a new writer of `path`. If there is one already, signals it to stop with
    /// `is_ending`, and returns `None` otherwise.
    fn enter(&self, path: &Path, is_ending: bool) -> Option<Writer> {
        let ended = Arc::<Notify>::default();
        self.with(|all| match all.get(path) {
            Some(_) if !is_ending => None,
            before => {
                if let Some(before) = before {
                    before.notify_one();
                }
                all.insert(path.to_owned(), ended.clone());
                Some(Writer { all: self.clone(), path: path.to_owned(), ended })
            }
        })
    }
}

/// A registered writer.
#[derive(Debug)]
struct Writer {
    all: Writers,
    path: PathBuf,
    ended: Arc<Notify>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.all.with(|all| {
            // Another writer may have replaced this one.
            if all.get(&self.path).is_some_and(|one| Arc::ptr_eq(one, &self.ended)) {
                all.remove(&self.path);
            }
        });
    }
}

/// Returns the incomplete upload, for reading only, with its metadata. Signals its writer to stop
/// (the draft's section "Concurrency"): a client that asks has given up its earlier request, and
/// the reported state must not become outdated.
///
/// # Errors
/// 423 if another process writes it; those of reading.
pub(super) async fn look(
    writers: &Writers,
    path: &Path,
) -> Result<Option<(File, Metadata)>, Refusal> {
    writers.end(path);
    let Some(file) = writers.wait(lock(path)).await? else { return Ok(None) };
    let metadata = file.metadata()?;
    // Data appended from now on lies behind the reported length.
    file.unlock()?;
    Ok((metadata.len() > 0).then_some((file, metadata)))
}

/// An upload that is being written.
#[derive(Debug)]
pub(super) struct Held {
    // Fields are dropped in this order. The lock belongs to the file and must be released last: the
    // next owner of the lock must find no writer, and no file that was to be removed.
    entry: Entry,
    writer: Writer,
    file: BufWriter<tokio::fs::File>,
    /// In bytes, including buffered data.
    length: u64,
}

/// The path of a locked file.
#[derive(Debug)]
struct Entry {
    path: PathBuf,
    /// Device and inode of the file.
    id: (u64, u64),
    /// The treatment of the file when this is dropped.
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Removed,
    Kept,
    /// It no longer has this path.
    Moved,
}

impl Held {
    /// Starts a new upload, which replaces the previous one and its writer.
    ///
    /// # Errors
    /// 423 if another process writes it; 409 if another request starts meanwhile; those of creating
    /// a file.
    pub(super) async fn begin(
        writers: &Writers,
        path: PathBuf,
        is_kept: bool,
    ) -> Result<Self, Refusal> {
        let writer = writers.enter(&path, true).ok_or_else(locked)?;
        let fate = if is_kept { Fate::Kept } else { Fate::Removed };
        let (entry, file) = loop {
            let old = tokio::select! {
                old = writers.wait(lock(&path)) => old?,
                () = writer.ended.notified() => return Err(ended()),
            };
            let place = path.clone();
            let made = spawn_blocking(move || make(old, place, fate)).await;
            match made.map_err(io::Error::other)? {
                Err(error) if is_others(&error) => sleep(STEP).await,
                made => break made?,
            }
        };
        let file = BufWriter::with_capacity(CHUNK, file.into());
        Ok(Self { entry, writer, file, length: 0 })
    }

    /// Resumes an upload.
    ///
    /// # Errors
    /// 423 if another request writes it; 409 if its length is not `offset`; those of opening it.
    pub(super) async fn resume(
        writers: &Writers,
        path: PathBuf,
        offset: u64,
    ) -> Result<Self, Refusal> {
        let writer = writers.enter(&path, false).ok_or_else(locked)?;
        let file = writers.wait(lock(&path)).await?;
        let length = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|file| file.len()))?;
        match file {
            Some(file) if length == offset => {
                let entry = Entry { path, id: id(&file.metadata()?), fate: Fate::Kept };
                let mut file = tokio::fs::File::from(file);
                file.seek(io::SeekFrom::End(0)).await?;
                let file = BufWriter::with_capacity(CHUNK, file);
                Ok(Self { entry, writer, file, length })
            }
            _ => {
                let text = format!("the upload has {length} bytes, not {offset}");
                Err(Refusal::new(StatusCode::CONFLICT, text).with(&UPLOAD_OFFSET, length))
            }
        }
    }

    /// Waits until another request replaces this one.
    pub(super) async fn ended(&self) -> Refusal {
        self.writer.ended.notified().await;
        ended()
    }

    /// Returns the number of bytes written so far.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Appends data.
    ///
    /// # Errors
    /// Those of writing. If the disk is full, the upload will be removed, which frees its space.
    pub(super) async fn write(&mut self, data: &[u8]) -> Result<(), Refusal> {
        let written = self.file.write_all(data).await;
        self.length += data.len() as u64;
        self.written(written)
    }

    fn written(&mut self, written: io::Result<()>) -> Result<(), Refusal> {
        written.map_err(Refusal::from).inspect_err(|refusal| {
            if refusal.status == StatusCode::INSUFFICIENT_STORAGE {
                self.entry.fate = Fate::Removed;
            }
        })
    }

    /// Ends the upload before it is complete. Returns the number of bytes that are kept.
    pub(super) async fn break_off(mut self) -> u64 {
        let flushed = self.file.flush().await;
        let _ = self.written(flushed);
        if self.length == 0 {
            self.entry.fate = Fate::Removed;
        }
        let kept = if self.entry.fate == Fate::Kept { self.length } else { 0 };
        let directory = self.entry.path.parent().map(Path::to_owned);
        self.close().await;
        // Sweep even if nothing is kept: otherwise a full disk would keep its old uploads.
        if let Some(directory) = directory
            && let Ok(Err(error)) = spawn_blocking(move || sweep(&directory)).await
        {
            tracing::warn!(%error, "looking for old uploads");
        }
        kept
    }

    /// Flushes buffered data, and returns the file for reading, with its length.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) async fn whole(&mut self) -> Result<(File, u64), Refusal> {
        let flushed = self.file.flush().await;
        self.written(flushed)?;
        Ok((self.file.get_ref().try_clone().await?.into_std().await, self.length))
    }

    /// Removes the upload.
    pub(super) async fn discard(mut self) {
        self.entry.fate = Fate::Removed;
        self.close().await;
    }

    /// Drops the upload on a blocking thread: removing and closing a large file takes time.
    async fn close(self) {
        // Dropping does not panic, so that there is no error.
        let _ = spawn_blocking(move || drop(self)).await;
    }

    /// Moves the file to its final path in one step.
    ///
    /// # Errors
    /// Those of writing; those of moving, after which the upload is removed.
    pub(super) async fn finish(mut self, place: PathBuf) -> Result<(), Refusal> {
        let flushed = self.file.flush().await;
        self.written(flushed)?;
        let moved = spawn_blocking(move || {
            // The closure owns and drops all fields.
            let mut held = self;
            held.entry.rename(&place)
        });
        Ok(moved.await.map_err(io::Error::other)??)
    }
}

impl Entry {
    /// Returns whether the path still leads to this file; a user may have removed it.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|there| id(&there) == self.id)
    }

    fn rename(&mut self, place: &Path) -> io::Result<()> {
        if !self.is_there() {
            let text = "the partial upload was removed meanwhile";
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        let renamed = fs::rename(&self.path, place);
        // A move that fails now would also fail later, so that resuming would be of no use.
        self.fate = if renamed.is_ok() { Fate::Moved } else { Fate::Removed };
        renamed
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.fate == Fate::Removed
            && self.is_there()
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "left behind");
        }
    }
}

fn ended() -> Refusal {
    Refusal::new(StatusCode::CONFLICT, "another request replaced this one")
}

fn locked() -> Refusal {
    Refusal::new(
        StatusCode::LOCKED,
        "another request is writing this upload; try again in a moment",
    )
}

/// Returns whether an error says that another writer holds the file.
fn is_others(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::AlreadyExists)
}

/// Locks the incomplete upload once no other writer holds it; `None` if there is none.
async fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let path = path.to_owned();
        match spawn_blocking(move || try_lock(&path)).await.map_err(io::Error::other)? {
            Ok(file) => return Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if is_others(&error) => sleep(STEP).await,
            Err(error) => return Err(error),
        }
    }
}

/// Opens and locks the file once.
///
/// # Errors
/// `WouldBlock` if another writer holds it.
fn try_lock(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait, and a link leads elsewhere; neither is an upload.
    let there = fs::symlink_metadata(path)?;
    if !there.is_file() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "not an upload"));
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    own(&file, path)?;
    Ok(file)
}

/// Locks the file opened at `path`. Only the owner of the lock on the file at `path` may move or
/// remove it.
///
/// # Errors
/// `WouldBlock` if another writer holds the lock, or has moved or removed the file meanwhile.
fn own(file: &File, path: &Path) -> io::Result<()> {
    file.try_lock()?;
    match fs::symlink_metadata(path) {
        Ok(there) if id(&there) == id(&file.metadata()?) => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Err(TryLockError::WouldBlock.into()),
    }
}

/// Creates a new empty file, locked, in place of the locked file `old`.
///
/// # Errors
/// One for which [`is_others`] is true; those of creating a file.
fn make(old: Option<File>, path: PathBuf, fate: Fate) -> io::Result<(Entry, File)> {
    if old.is_some() {
        fs::remove_file(&path)?;
    }
    // The path must not exist, so that no other user can prepare a link or a file of their own.
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    let mut entry = Entry { path, id: id(&file.metadata()?), fate: Fate::Kept };
    // `look` holds the lock for a moment. Giving up because of it would leave an empty file.
    let mut tries = 0;
    while let Err(error) = own(&file, &entry.path) {
        tries += 1;
        if !is_others(&error) || tries == TRIES || !entry.is_there() {
            return Err(error);
        }
        std::thread::sleep(STEP);
    }
    entry.fate = fate;
    Ok((entry, file))
}

/// Returns device and inode, which identify the file while it is open.
fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Removes uploads that are too old or too many. Uploads that are being written are skipped and not
/// counted.
fn sweep(directory: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_name(entry.file_name().as_encoded_bytes()) {
            // The file may have been removed meanwhile.
            all.extend(
                entry.metadata().and_then(|one| one.modified()).map(|at| (at, entry.path())),
            );
        }
    }
    all.sort_unstable_by(|one, other| other.cmp(one));
    let mut kept = 0;
    for (at, path) in &all {
        let Ok(locked) = try_lock(path) else { continue };
        let is_old = at.elapsed().is_ok_and(|age| age > LONGEST);
        // An empty file is left by a request that ended right after it had created the file.
        if is_old || locked.metadata()?.len() == 0 || kept >= MOST {
            fs::remove_file(path)?;
        } else {
            kept += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn on_a_full_disk_nothing_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), OsStr::new("a"));
        let writers = Writers::new(super::super::LOCK_TIMEOUT);
        let mut held = Held::begin(&writers, path.clone(), true).await.unwrap();
        held.write(b"kept").await.unwrap();
        assert_eq!(held.break_off().await, 4);
        let mut held = Held::resume(&writers, path.clone(), 4).await.unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        held.file = BufWriter::with_capacity(CHUNK, full.into());
        held.write(b"in memory").await.unwrap();
        // The kernel writes in the background; the next write reports the error.
        let data = vec![0; CHUNK];
        let refusal = loop {
            if let Err(refusal) = held.write(&data).await {
                break refusal;
            }
        };
        assert_eq!(refusal.status, StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(held.break_off().await, 0);
        assert!(!path.exists());
        assert!(writers.with(|all| all.is_empty()));
    }

    #[tokio::test]
    async fn a_writer_that_locked_a_removed_file_leaves_the_new_one_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), OsStr::new("a"));
        let (place, writers) =
            (directory.path().join("a"), Writers::new(super::super::LOCK_TIMEOUT));
        // Another writer has removed the file after it was opened and before it was locked.
        let mine = File::create_new(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let error = own(&mine, &path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        fs::write(&path, "another's").unwrap();
        let error = own(&mine, &path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
        // A file that was removed by hand and replaced by another writer's is neither moved nor
        // removed.
        for is_finished in [true, false] {
            let mut held = Held::begin(&writers, path.clone(), true).await.unwrap();
            held.write(b"mine").await.unwrap();
            fs::remove_file(&path).unwrap();
            fs::write(&path, "another's").unwrap();
            if is_finished {
                let refusal = held.finish(place.clone()).await.unwrap_err();
                assert_eq!(refusal.status, StatusCode::CONFLICT);
            } else {
                held.discard().await;
            }
            assert_eq!(fs::read(&path).unwrap(), b"another's");
            assert!(!place.exists());
        }
        // An upload that cannot be moved is removed.
        let held = Held::begin(&writers, path.clone(), true).await.unwrap();
        fs::create_dir(&place).unwrap();
        assert_eq!(held.finish(place).await.unwrap_err().status, StatusCode::CONFLICT);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn old_uploads_are_removed_on_a_full_disk() {
        let directory = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| path(directory.path(), OsStr::new(name)));
        let file = File::create_new(&old).unwrap();
        file.set_modified(std::time::SystemTime::now() - 2 * LONGEST).unwrap();
        drop(file);
        let writers = Writers::new(super::super::LOCK_TIMEOUT);
        let mut held = Held::begin(&writers, new.clone(), true).await.unwrap();
        held.written(Err(ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(held.break_off().await, 0);
        assert!(!old.exists() && !new.exists());
    }
}
