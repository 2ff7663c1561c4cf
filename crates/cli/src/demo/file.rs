//! The sample file of the demo, and the received file. Both are nameless, so that nothing remains.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;

use airtcp_types::ByteCount;
use airtcp_types::rng::Stream;
use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::output;

/// The seed of the file's content, the same for every run.
const SEED: u64 = 2;

const CHUNK: usize = 1 << 20;

/// A file of pseudo-random bytes.
#[derive(Debug)]
pub(super) struct Sample {
    file: File,
    size: ByteCount,
    sha256: String,
}

impl Sample {
    /// Creates a sample of `size` bytes in the directory for temporary files.
    ///
    /// # Errors
    /// It cannot be written there.
    pub(super) fn make(size: ByteCount) -> anyhow::Result<Self> {
        let mut file = nameless()?;
        let mut random = Stream::new(SEED, 0);
        let mut hash = Sha256::new();
        let mut chunk = vec![0; CHUNK];
        let mut left = size.as_usize();
        while left > 0 {
            let length = left.min(CHUNK);
            for word in chunk[..length].chunks_mut(8) {
                word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]);
            }
            file.write_all(&chunk[..length]).context("writing the file to be sent")?;
            hash.update(&chunk[..length]);
            left -= length;
        }
        Ok(Self { file, size, sha256: output::hex(&hash.finalize()) })
    }

    /// Returns the size.
    pub(super) const fn size(&self) -> ByteCount {
        self.size
    }

    /// Returns the SHA-256 in hexadecimal digits.
    pub(super) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns a reader from the start, with a position of its own.
    ///
    /// # Errors
    /// The process has no free descriptors.
    pub(super) fn reader(&self) -> io::Result<Reader> {
        Ok(Reader { file: self.file.try_clone()?, position: 0 })
    }
}

/// Reads a [`Sample`].
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    position: u64,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}

/// Creates a file without a name.
///
/// # Errors
/// The directory for temporary files does not exist or is full.
pub(super) fn nameless() -> anyhow::Result<File> {
    tempfile::tempfile().with_context(|| {
        format!(
            "creating a file in {} (set TMPDIR to use another directory, for example TMPDIR=/var/tmp)",
            std::env::temp_dir().display()
        )
    })
}

/// Returns the length and the SHA-256 of `file`, in hexadecimal digits.
///
/// # Errors
/// It cannot be read.
pub(super) fn digest(mut file: File) -> anyhow::Result<(u64, String)> {
    file.rewind()?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut length = 0;
    loop {
        match file.read(&mut chunk).context("reading the received file")? {
            0 => return Ok((length, output::hex(&hash.finalize()))),
            read => {
                hash.update(&chunk[..read]);
                length += read as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_reads_back_with_its_digest() {
        let sample = Sample::make(ByteCount(CHUNK as u64 + 13)).unwrap();
        let mut copy = nameless().unwrap();
        for _ in 0..2 {
            copy.rewind().unwrap();
            assert_eq!(
                io::copy(&mut sample.reader().unwrap(), &mut copy).unwrap(),
                sample.size().0
            );
        }
        let (length, sha256) = digest(copy.try_clone().unwrap()).unwrap();
        assert_eq!((length, sha256.as_str()), (sample.size().0, sample.sha256()));
        copy.write_all_at(b"?", 17).unwrap();
        assert_ne!(digest(copy).unwrap().1, sample.sha256());
    }

    #[test]
    fn a_digest_is_what_sha256sum_prints() {
        assert_eq!(
            digest(nameless().unwrap()).unwrap().1,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
