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

/// Size of a read, in bytes.
const CHUNK: usize = 1 << 20;

/// The maximum size of the file with the tag and the URL, in bytes.
const LONGEST_TAG: u64 = 1 << 16;

/// Which existing part may be resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Resume {
    None,
    /// One that is recorded as a part of this URL.
    Named,
    /// Any, except one that is recorded as a part of another URL.
    Any,
}

/// A file that is being received. If the transfer is interrupted, the received data remains in the
/// part; an empty part is removed.
#[derive(Debug)]
pub(super) struct Sink {
    file: File,
    /// Bytes written so far.
    length: u64,
    hash: Sha256,
    /// The entity tag of the file (RFC 9110 section 8.8.3).
    tag: Option<String>,
    /// The URL before any redirection, to which the tag belongs.
    url: String,
    /// The paths of the files; `None` for stdout, a pipe or a device, which are written directly.
    places: Option<Places>,
}

#[derive(Debug)]
struct Places {
    part: PathBuf,
    /// The file with the tag in the first line and the URL in the second.
    tag: PathBuf,
    whole: PathBuf,
    is_moved: bool,
}

impl Sink {
    /// Opens `FILE.part`, new or to be resumed, for a download of `url`. A pipe or a device at
    /// `place` is opened itself; `-` is stdout.
    ///
    /// # Errors
    /// The file cannot be opened, another process is writing it, or a part exists that `resume`
    /// excludes.
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
            // A rename would replace the device.
            let file = OpenOptions::new().write(true).open(place);
            return Ok(Self::direct(file.with_context(|| name.to_string())?, url));
        }
        // The target of a symbolic link is replaced, not the link.
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
            // The part is as private as the file that it replaces, but stays writable for its
            // owner, so that a resumed transfer can open it again.
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
        // A file that cannot be read or parsed counts as absent.
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

    /// Hashes the existing data.
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

    /// Returns the number of bytes written so far.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the path of the part, or `-` if data is written directly.
    pub(super) fn name(&self) -> impl Display {
        self.places.as_ref().map_or(Path::new("-"), |places| &places.part).display()
    }

    /// Returns the entity tag recorded at the start of the transfer.
    pub(super) fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Records the entity tag and the URL, also on disk for a later resumption.
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
            // `.etag` makes the name too long: the tag is not recorded on disk.
            Err(error) if error.kind() == ErrorKind::InvalidFilename => Ok(()),
            written => written,
        }
    }

    /// Discards all data.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.length, self.hash) = (0, Sha256::new());
        Ok(())
    }

    /// Discards all data of a part; data that was written directly cannot be discarded.
    pub(super) fn discard(&mut self) -> io::Result<()> {
        if self.places.is_some() {
            self.restart()?;
        }
        Ok(())
    }

    /// Appends data.
    pub(super) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(data)?;
        self.hash.update(data);
        self.length += data.len() as u64;
        Ok(())
    }

    /// Returns the SHA-256 of the data, as a value of `Repr-Digest`.
    pub(super) fn digest(&self) -> String {
        upload::field(&self.hash)
    }

    /// Moves the part to its final path in one step, and returns the SHA-256.
    ///
    /// # Errors
    /// The data cannot be flushed to disk, or the file not moved; the part remains.
    pub(super) fn finish(mut self) -> anyhow::Result<String> {
        if let Some(places) = &mut self.places {
            if let Ok(existing) = fs::metadata(&places.whole) {
                self.file.set_permissions(existing.permissions())?;
            }
            // Replace the old file only after the new one is on disk.
            self.file.sync_all().with_context(|| places.part.display().to_string())?;
            remove(&places.tag).with_context(|| places.tag.display().to_string())?;
            fs::rename(&places.part, &places.whole)
                .with_context(|| format!("renaming {}", places.part.display()))?;
            places.is_moved = true;
        }
        Ok(output::hex(&self.hash.finalize_reset()))
    }

    /// Returns the text that says how much of an interrupted transfer exists and `how` to resume
    /// it.
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

/// Removes a file if it exists; one whose name is too long cannot exist.
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

    /// SHA-256 of "0123456789".
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
    fn a_restart_discards_the_part() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a.part"), "something else").unwrap();
        let mut sink = Sink::open(&directory.path().join("a"), URL, Resume::Any).unwrap();
        sink.restart().unwrap();
        sink.write(b"0123456789").unwrap();
        assert_eq!(sink.finish().unwrap(), DIGITS);
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"0123456789");
    }

    #[test]
    fn only_a_tagged_part_is_resumed_by_default_and_symlinks_are_not_followed() {
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
    fn an_empty_download_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        drop(Sink::open(&directory.path().join("a"), URL, Resume::None).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let error = Sink::open(directory.path(), URL, Resume::None).unwrap_err().to_string();
        assert!(error.contains("is a directory"), "{error}");
    }

    #[test]
    fn the_tag_of_a_part_exists_as_long_as_the_part() {
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
    fn a_long_file_name_has_a_part_without_a_tag() {
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
