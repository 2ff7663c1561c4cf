//! Writes a received file beside its target until it is complete.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use nix::libc::{ELOOP, O_NOFOLLOW};
use sha2::{Digest, Sha256};

use crate::{file, output, upload};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;

/// The most bytes of a tag and of a URL.
const LONGEST_TAG: u64 = 1 << 16;

/// Whether a part that is there is gone on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Resume {
    None,
    /// If it is known to be of this URL.
    Named,
    /// Unless it is known to be of another URL.
    Any,
}

/// A file that is being filled. What has come stays when it is dropped; nothing at all leaves no
/// file.
#[derive(Debug)]
pub(super) struct Sink {
    file: File,
    /// That it has.
    length: u64,
    hash: Sha256,
    /// What the server calls the file that this is a part of (RFC 9110 section 8.8.3).
    tag: Option<String>,
    /// Where it comes from, before any redirection: a tag is of what one URL has.
    url: String,
    /// Where it is and where it belongs; `None` for what is written in place: stdout, a pipe, a
    /// device.
    places: Option<Places>,
}

#[derive(Debug)]
struct Places {
    part: PathBuf,
    /// Where the tag is, and on another line the URL.
    tag: PathBuf,
    whole: PathBuf,
    is_moved: bool,
}

impl Sink {
    /// Opens `FILE.part`, new or to go on with, for what is at `url`, or what `place` is if it is
    /// no file; `-` is stdout.
    ///
    /// # Errors
    /// It cannot be made, is being written by somebody else, or was left by a transfer that broke
    /// off and is not to be gone on with, or was one from elsewhere.
    pub(super) fn open(place: &Path, url: &str, resume: Resume) -> anyhow::Result<Self> {
        if place.as_os_str() == "-" {
            return Ok(Self::direct(io::stdout().as_fd().try_clone_to_owned()?.into(), url));
        }
        let name = place.display();
        let existing = fs::metadata(place).ok();
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            bail!("{name} is a directory: specify a file");
        }
        if existing.as_ref().is_some_and(|there| !there.is_file()) {
            // Nothing may be moved to the place of a device.
            let file = OpenOptions::new().write(true).open(place);
            return Ok(Self::direct(file.with_context(|| name.to_string())?, url));
        }
        // What a link leads to is what is replaced.
        let whole = if existing.is_some() { place.canonicalize()? } else { place.to_owned() };
        let mut part = whole.clone().into_os_string();
        part.push(".part");
        Self::part(part.into(), whole, url, resume)
    }

    fn direct(file: File, url: &str) -> Self {
        let url = url.to_owned();
        Self { file, length: 0, hash: Sha256::new(), tag: None, url, places: None }
    }

    fn part(part: PathBuf, whole: PathBuf, url: &str, resume: Resume) -> anyhow::Result<Self> {
        let name = part.display().to_string();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(O_NOFOLLOW)
            .open(&part)
            .map_err(|error| match error.raw_os_error() {
                Some(ELOOP) => {
                    anyhow!("{name} is a symbolic link, which is not followed: remove it")
                }
                _ => file::not_made(&part, error).context(name.clone()),
            })?;
        if !file.metadata()?.is_file() {
            bail!("{name} exists and is not a regular file: remove it");
        }
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => anyhow!("{name} is being written by another transfer"),
            TryLockError::Error(error) => anyhow!("locking {name}: {error}"),
        })?;
        if let Ok(existing) = fs::metadata(&whole) {
            // As private as what it replaces; who writes has to be able to open it again.
            let mode = existing.permissions().mode() & 0o777 | 0o600;
            file.set_permissions(fs::Permissions::from_mode(mode)).with_context(|| name.clone())?;
        }
        let length = file.metadata()?.len();
        if length > 0 && resume == Resume::None {
            bail!(
                "{name} exists, with {} of an interrupted transfer: resume it with --continue, or remove it",
                output::bytes(length)
            );
        }
        let tag = {
            let mut tag = part.clone().into_os_string();
            tag.push(".etag");
            PathBuf::from(tag)
        };
        // What cannot be read, or is none, is as if it was not there.
        let known = file::read(&tag, LONGEST_TAG).ok();
        let known = known.as_ref().and_then(|known| known.trim_end().split_once('\n'));
        if let Some((_, other)) = known.filter(|(_, other)| length > 0 && *other != url) {
            bail!("{name} belongs to a transfer of {other}: resume that, or remove it");
        }
        if length > 0 && resume == Resume::Named && known.is_none() {
            bail!("{name} exists, and may not belong to {url}: remove it");
        }
        let known = known.map(|(tag, _)| tag.to_owned()).filter(|tag| !tag.is_empty());
        let (hash, url) = (Sha256::new(), url.to_owned());
        let places = Some(Places { part, tag, whole, is_moved: false });
        let mut sink = Self { file, length: 0, hash, tag: known, url, places };
        sink.take_in().with_context(|| format!("reading {name}"))?;
        Ok(sink)
    }

    /// Reads what is there already.
    fn take_in(&mut self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.file.read(&mut chunk)? {
                0 => return Ok(()),
                read => {
                    self.hash.update(&chunk[..read]);
                    self.length += read as u64;
                }
            }
        }
    }

    /// Bytes that it has.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// The name of the part; `-`, where what comes goes to its place directly.
    pub(super) fn name(&self) -> impl Display {
        self.places.as_ref().map_or(Path::new("-"), |places| &places.part).display()
    }

    /// What the server called the file when it began to come.
    pub(super) fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Remembers what the server calls the file that is to come, and where it comes from, also for
    /// another transfer.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn set_tag(&mut self, tag: Option<&str>) -> io::Result<()> {
        self.tag = tag.map(str::to_owned);
        let Some(places) = &self.places else { return Ok(()) };
        let text = format!("{}\n{}\n", tag.unwrap_or_default(), self.url);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).custom_flags(O_NOFOLLOW);
        match options.open(&places.tag).and_then(|mut file| file.write_all(text.as_bytes())) {
            // The name of the part is the longest that there can be: it is done without.
            Err(error) if error.kind() == ErrorKind::InvalidFilename => Ok(()),
            written => written,
        }
    }

    /// Throws away what it has.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.length, self.hash) = (0, Sha256::new());
        Ok(())
    }

    /// Throws away what it has of a file that is no use; what was written in place is there.
    pub(super) fn discard(&mut self) -> io::Result<()> {
        if self.places.is_some() {
            self.restart()?;
        }
        Ok(())
    }

    /// Appends.
    pub(super) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(data)?;
        self.hash.update(data);
        self.length += data.len() as u64;
        Ok(())
    }

    /// The SHA-256 of what it has, as a value of `Repr-Digest`.
    pub(super) fn digest(&self) -> String {
        upload::field(&self.hash)
    }

    /// Puts it in its place, in one step, and gives its SHA-256.
    ///
    /// # Errors
    /// It cannot be written out, or moved; then what has come stays beside its place.
    pub(super) fn finish(mut self) -> anyhow::Result<String> {
        if let Some(places) = &mut self.places {
            if let Ok(existing) = fs::metadata(&places.whole) {
                self.file.set_permissions(existing.permissions())?;
            }
            // The old file is given up only once the new one is on the disk.
            self.file.sync_all().with_context(|| places.part.display().to_string())?;
            remove(&places.tag).with_context(|| places.tag.display().to_string())?;
            fs::rename(&places.part, &places.whole)
                .with_context(|| format!("renaming {}", places.part.display()))?;
            places.is_moved = true;
        }
        Ok(output::hex(&self.hash.finalize_reset()))
    }

    /// What to say to whom the transfer broke off, of what has come, and how to go on.
    pub(super) fn left(&self, how: &str) -> Option<String> {
        let places = self.places.as_ref().filter(|_| self.length > 0)?;
        Some(format!(
            "{} has {} of it: resume with {how}",
            places.part.display(),
            output::bytes(self.length)
        ))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(places) = &self.places
            && !places.is_moved
            && self.length == 0
            && let Err(error) = remove(&places.part).and_then(|()| remove(&places.tag))
        {
            tracing::warn!(%error, part = %places.part.display(), "left behind");
        }
    }
}

/// Removes a file, if it is there; by a name that is too long, none is.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => {
            Ok(())
        }
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const URL: &str = "http://a.example/b";

    /// Of "0123456789".
    const DIGITS: &str = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";

    #[test]
    fn the_file_that_was_there_stays_until_the_new_one_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let (place, part) = (directory.path().join("a"), directory.path().join("a.part"));
        fs::write(&place, "old").unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).unwrap();
        let mut sink = Sink::open(&place, URL, Resume::None).unwrap();
        sink.write(b"01234").unwrap();
        assert_eq!(fs::metadata(&part).unwrap().permissions().mode() & 0o777, 0o600);
        let other = Sink::open(&place, URL, Resume::Any).unwrap_err().to_string();
        assert!(other.contains("another transfer"), "{other}");
        assert!(
            sink.left("--continue")
                .unwrap()
                .contains("a.part has 5 B of it: resume with --continue")
        );
        drop(sink);
        assert_eq!(
            (fs::read(&place).unwrap(), fs::read(&part).unwrap()),
            (b"old".into(), b"01234".into())
        );

        let refused = Sink::open(&place, URL, Resume::None).unwrap_err().to_string();
        assert!(refused.contains("resume it with --continue, or remove it"), "{refused}");
        let mut sink = Sink::open(&place, URL, Resume::Any).unwrap();
        assert_eq!(sink.length(), 5);
        sink.write(b"56789").unwrap();
        assert_eq!(sink.finish().unwrap(), DIGITS);
        assert_eq!(fs::read(&place).unwrap(), b"0123456789");
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!part.exists());
    }

    #[test]
    fn a_new_beginning_forgets_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a.part"), "something else").unwrap();
        let mut sink = Sink::open(&directory.path().join("a"), URL, Resume::Any).unwrap();
        sink.restart().unwrap();
        sink.write(b"0123456789").unwrap();
        assert_eq!(sink.finish().unwrap(), DIGITS);
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"0123456789");
    }

    #[test]
    fn only_a_part_that_is_known_is_gone_on_with_unasked_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (place, part) = (directory.path().join("a"), directory.path().join("a.part"));
        fs::write(&part, "01234").unwrap();
        let refused = Sink::open(&place, URL, Resume::Named).unwrap_err().to_string();
        assert!(refused.contains("may not belong to http://a.example/b: remove"));
        fs::write(directory.path().join("a.part.etag"), format!("\n{URL}\n")).unwrap();
        let mut sink = Sink::open(&place, URL, Resume::Named).unwrap();
        assert_eq!((sink.tag(), sink.length()), (None, 5));
        sink.discard().unwrap();
        drop(sink);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        let other = directory.path().join("other");
        fs::write(&other, "kept").unwrap();
        for name in ["a.part", "a.part.etag"] {
            let link = directory.path().join(name);
            symlink(&other, &link).unwrap();
            let opened = Sink::open(&place, URL, Resume::None);
            let refused = opened
                .map_err(|error| error.to_string())
                .and_then(|mut sink| sink.set_tag(None).map_err(|error| error.to_string()));
            assert!(refused.unwrap_err().contains("link"));
            let _ = fs::remove_file(&link);
            assert_eq!(fs::read(&other).unwrap(), b"kept");
        }
    }

    #[test]
    fn nothing_that_came_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        drop(Sink::open(&directory.path().join("a"), URL, Resume::None).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let error = Sink::open(directory.path(), URL, Resume::None).unwrap_err().to_string();
        assert!(error.contains("is a directory"), "{error}");
    }

    #[test]
    fn what_a_part_is_of_is_known_as_long_as_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a");
        let mut sink = Sink::open(&place, URL, Resume::None).unwrap();
        sink.set_tag(Some("\"v1\"")).unwrap();
        drop(sink);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut sink = Sink::open(&place, URL, Resume::None).unwrap();
        sink.set_tag(Some("\"v1\"")).unwrap();
        sink.write(b"01234").unwrap();
        drop(sink);
        let sink = Sink::open(&place, URL, Resume::Any).unwrap();
        assert_eq!((sink.tag(), sink.length()), (Some("\"v1\""), 5));
        drop(sink);
        let other = Sink::open(&place, "http://a.example/c", Resume::Any).unwrap_err().to_string();
        assert!(
            other.contains("a.part belongs to a transfer of http://a.example/b: resume"),
            "{other}"
        );
        let mut sink = Sink::open(&place, URL, Resume::Any).unwrap();
        assert_eq!((sink.tag(), sink.length()), (Some("\"v1\""), 5));
        sink.set_tag(None).unwrap();
        drop(sink);
        let mut sink = Sink::open(&place, URL, Resume::Any).unwrap();
        assert_eq!(sink.tag(), None);
        sink.set_tag(Some("\"v2\"")).unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_name_that_leaves_no_room_for_that_of_a_tag_does_without() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("n".repeat(250));
        for digits in [b"01234", b"56789"] {
            let mut sink = Sink::open(&place, URL, Resume::Any).unwrap();
            sink.set_tag(Some("\"v1\"")).unwrap();
            sink.write(digits).unwrap();
            drop(sink);
        }
        let mut sink = Sink::open(&place, URL, Resume::Any).unwrap();
        assert_eq!((sink.tag(), sink.length()), (None, 10));
        sink.set_tag(None).unwrap();
        assert_eq!(sink.finish().unwrap(), DIGITS);
        assert_eq!(fs::read(&place).unwrap(), b"0123456789");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let mut sink = Sink::open(&place, URL, Resume::None).unwrap();
        sink.set_tag(Some("\"v1\"")).unwrap();
        drop(sink);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_and_a_device_is_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let (link, target) = (directory.path().join("link"), directory.path().join("target"));
        fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        let mut sink = Sink::open(&link, URL, Resume::None).unwrap();
        sink.write(b"0123456789").unwrap();
        sink.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"0123456789");

        let null = directory.path().join("null");
        symlink("/dev/null", &null).unwrap();
        let mut sink = Sink::open(&null, URL, Resume::None).unwrap();
        sink.write(b"0123456789").unwrap();
        assert_eq!(sink.finish().unwrap(), DIGITS);
        assert!(!directory.path().join("null.part").exists());
    }
}
