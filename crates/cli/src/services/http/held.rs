//! Stores an incomplete upload in a file beside its target, by a name that no request may have.
//!
//! Whoever writes one, or removes it, has it locked, also from other processes. In this one a later
//! request can end an earlier one, whose client may long be gone without a word.

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

/// What their names begin with.
const PREFIX: &str = ".airtcp-put-";

/// The most that are kept in a directory, those that broke off last.
const MOST: usize = 16;

/// How long they are kept.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long it is until the next try to have what another has.
const STEP: Duration = Duration::from_millis(10);

/// How often it is tried to have what was just made.
const TRIES: u32 = 20;

/// Where what has come of the file `name` is: a name of one length, whatever the file's is.
pub(super) fn path(directory: &Path, name: &OsStr) -> PathBuf {
    let sum = output::hex(&Sha256::digest(name.as_encoded_bytes()));
    directory.join(format!("{PREFIX}{sum}"))
}

/// Whether a name is of what is no file yet; also where letters of both cases are the same.
pub(super) fn is_name(name: &[u8]) -> bool {
    name.get(..PREFIX.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(PREFIX.as_bytes()))
}

/// The requests that write one, and what ends each. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Writers {
    all: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>>,
    /// How long another has to let go.
    patience: Duration,
}

impl Writers {
    /// None so far. Another one, or another process, has as long as `patience` to let go of what is
    /// to be written.
    pub(super) fn new(patience: Duration) -> Self {
        Self { all: Arc::default(), patience }
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<PathBuf, Arc<Notify>>) -> T) -> T {
        work(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has whoever writes it come to an end.
    fn end(&self, path: &Path) {
        self.with(|all| {
            if let Some(writer) = all.get(path) {
                writer.notify_one();
            }
        });
    }

    /// Waits for what another may have in its hands.
    ///
    /// # Errors
    /// 423, where it does not let go; those of `work`.
    async fn wait<T>(&self, work: impl Future<Output = io::Result<T>>) -> Result<T, Refusal> {
        Ok(timeout(self.patience, work).await.map_err(|_| locked())??)
    }

    /// Has the next one write it, and the one before come to an end; `None` if that is to go on.
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

/// One that writes.
#[derive(Debug)]
struct Writer {
    all: Writers,
    path: PathBuf,
    ended: Arc<Notify>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.all.with(|all| {
            // Another may have come in its place.
            if all.get(&self.path).is_some_and(|one| Arc::ptr_eq(one, &self.ended)) {
                all.remove(&self.path);
            }
        });
    }
}

/// What is held there, to be read only, and how it is now. Ends who writes it (the draft's section
/// "Concurrency"): who asks has given that up, and what is told is not to be outdated.
///
/// # Errors
/// 423, where another process writes it; those of reading.
pub(super) async fn look(
    writers: &Writers,
    path: &Path,
) -> Result<Option<(File, Metadata)>, Refusal> {
    writers.end(path);
    let Some(file) = writers.wait(lock(path)).await? else { return Ok(None) };
    let metadata = file.metadata()?;
    // What is appended from now on is behind what is told.
    file.unlock()?;
    Ok((metadata.len() > 0).then_some((file, metadata)))
}

/// An upload that is being written.
#[derive(Debug)]
pub(super) struct Held {
    // These are gone before the lock is, which the file has: who has the lock finds nobody, and
    // what was to be removed is.
    entry: Entry,
    writer: Writer,
    file: BufWriter<tokio::fs::File>,
    /// With what is not written out yet, in bytes.
    length: u64,
}

/// The name of a file that is locked.
#[derive(Debug)]
struct Entry {
    path: PathBuf,
    /// Which file that is.
    id: (u64, u64),
    /// What becomes of it when this is dropped.
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Removed,
    Kept,
    /// It is not there any more.
    Moved,
}

impl Held {
    /// A new one, in place of what was held there and of who writes that.
    ///
    /// # Errors
    /// 423, where another process writes it; 409, where another request is begun meanwhile; those
    /// of making a file.
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

    /// Goes on with what is held there.
    ///
    /// # Errors
    /// 423, where another request writes it; 409, where something else than `offset` bytes is held;
    /// those of opening it.
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

    /// Waits until another request is to take its place.
    pub(super) async fn ended(&self) -> Refusal {
        self.writer.ended.notified().await;
        ended()
    }

    /// Bytes that it has.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Appends.
    ///
    /// # Errors
    /// Those of writing. On a full disk nothing is kept, or it would stay full.
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

    /// Ends it before it is complete. Gives how many bytes are kept.
    pub(super) async fn break_off(mut self) -> u64 {
        let flushed = self.file.flush().await;
        let _ = self.written(flushed);
        if self.length == 0 {
            self.entry.fate = Fate::Removed;
        }
        let kept = if self.entry.fate == Fate::Kept { self.length } else { 0 };
        let directory = self.entry.path.parent().map(Path::to_owned);
        self.close().await;
        // Also where nothing is kept: on a full disk what is old would stay.
        if let Some(directory) = directory
            && let Ok(Err(error)) = spawn_blocking(move || sweep(&directory)).await
        {
            tracing::warn!(%error, "looking for old uploads");
        }
        kept
    }

    /// Writes out what is not yet, and gives all of it to be read.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) async fn whole(&mut self) -> Result<(File, u64), Refusal> {
        let flushed = self.file.flush().await;
        self.written(flushed)?;
        Ok((self.file.get_ref().try_clone().await?.into_std().await, self.length))
    }

    /// Forgets it.
    pub(super) async fn discard(mut self) {
        self.entry.fate = Fate::Removed;
        self.close().await;
    }

    /// To remove a large file, and to close it then, takes its time.
    async fn close(self) {
        // No error: dropping does not panic.
        let _ = spawn_blocking(move || drop(self)).await;
    }

    /// Moves it to its place, in one step.
    ///
    /// # Errors
    /// Those of writing; those of moving, and then it is removed.
    pub(super) async fn finish(mut self, place: PathBuf) -> Result<(), Refusal> {
        let flushed = self.file.flush().await;
        self.written(flushed)?;
        let moved = spawn_blocking(move || {
            // All of it is dropped here.
            let mut held = self;
            held.entry.rename(&place)
        });
        Ok(moved.await.map_err(io::Error::other)??)
    }
}

impl Entry {
    /// Whether the name is still of that file: somebody may have removed it by hand.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|there| id(&there) == self.id)
    }

    fn rename(&mut self, place: &Path) -> io::Result<()> {
        if !self.is_there() {
            let text = "the partial upload was removed meanwhile";
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        let renamed = fs::rename(&self.path, place);
        // What cannot be moved now cannot be another time: to go on with it would be of no use.
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

/// Whether an error says that another has it at the moment.
fn is_others(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::AlreadyExists)
}

/// What is held there, locked, once nobody else has it; `None` if there is nothing.
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

/// # Errors
/// `WouldBlock`, where somebody else has it.
fn try_lock(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait, and a link leads elsewhere: none of them is ours.
    let there = fs::symlink_metadata(path)?;
    if !there.is_file() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "not an upload"));
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    own(&file, path)?;
    Ok(file)
}

/// Locks what was opened at `path`. Only who has the lock of what is there may move or remove it.
///
/// # Errors
/// `WouldBlock`, where somebody else has it, or has moved it to its place or removed it meanwhile.
fn own(file: &File, path: &Path) -> io::Result<()> {
    file.try_lock()?;
    match fs::symlink_metadata(path) {
        Ok(there) if id(&there) == id(&file.metadata()?) => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Err(TryLockError::WouldBlock.into()),
    }
}

/// A new and empty one, locked, in place of an old one that is.
///
/// # Errors
/// One that [`is_others`]; those of making a file.
fn make(old: Option<File>, path: PathBuf, fate: Fate) -> io::Result<(Entry, File)> {
    if old.is_some() {
        fs::remove_file(&path)?;
    }
    // It must not be there: nobody can lay a link for it, or a file of their own.
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    let mut entry = Entry { path, id: id(&file.metadata()?), fate: Fate::Kept };
    // Who only looks has it for a moment: to go away for that would leave it there, empty.
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

/// Which file it is, for as long as it is open.
fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Removes those that are too old or too many. Those that are being written are left, and do not
/// count.
fn sweep(directory: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_name(entry.file_name().as_encoded_bytes()) {
            // One that is gone meanwhile is no fault.
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
        // An empty one is of a request that ended when it had just made it.
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
        // The kernel is asked in the background, and one more write hears of it.
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
    async fn who_locks_what_is_no_longer_there_does_not_touch_what_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), OsStr::new("a"));
        let (place, writers) =
            (directory.path().join("a"), Writers::new(super::super::LOCK_TIMEOUT));
        // Another was faster between the opening and the lock.
        let mine = File::create_new(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let error = own(&mine, &path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        fs::write(&path, "another's").unwrap();
        let error = own(&mine, &path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
        // What was taken away by hand, and is another's by now, is neither moved nor removed.
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
        // What cannot be moved is of no use to anybody.
        let held = Held::begin(&writers, path.clone(), true).await.unwrap();
        fs::create_dir(&place).unwrap();
        assert_eq!(held.finish(place).await.unwrap_err().status, StatusCode::CONFLICT);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_old_is_removed_on_a_full_disk_too() {
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
