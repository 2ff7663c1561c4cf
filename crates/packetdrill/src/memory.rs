//! Access to the caller's memory through the kernel, so that an invalid pointer causes `EFAULT`
//! instead of a crash.

use std::ffi::c_void;
use std::io::{IoSlice, IoSliceMut};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::getpid;

/// An address in the caller's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address(usize);

/// The size of `struct iovec` in bytes.
const IOVEC: usize = 16;
/// `UIO_MAXIOV`.
const MAX_IOVECS: usize = 1024;
/// The maximum number of bytes per call; Linux has a limit of 2 GiB.
const MAX: usize = 64 << 20;

impl Address {
    pub(crate) const fn is_null(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn at(self, offset: usize) -> Self {
        Self(self.0.wrapping_add(offset))
    }

    /// Copies `len` bytes.
    pub(crate) fn read(self, len: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; len.min(MAX)];
        if !bytes.is_empty() {
            let there = RemoteIoVec { base: self.0, len: bytes.len() };
            let read = process_vm_readv(getpid(), &mut [IoSliceMut::new(&mut bytes)], &[there]);
            complete(read, bytes.len())?;
        }
        Ok(bytes)
    }

    /// Copies the bytes of an array.
    pub(crate) fn array<const N: usize>(self) -> Result<[u8; N], Errno> {
        self.read(N)?.try_into().map_err(|_| Errno::EFAULT)
    }

    pub(crate) fn int(self) -> Result<i32, Errno> {
        self.array().map(i32::from_ne_bytes)
    }

    pub(crate) fn usize(self) -> Result<usize, Errno> {
        self.array().map(usize::from_ne_bytes)
    }

    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.is_empty() {
            return Ok(());
        }
        let there = RemoteIoVec { base: self.0, len: bytes.len() };
        complete(process_vm_writev(getpid(), &[IoSlice::new(bytes)], &[there]), bytes.len())
    }
}

fn complete(result: Result<usize, Errno>, wanted: usize) -> Result<(), Errno> {
    match result {
        Ok(done) if done == wanted => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

impl From<*const c_void> for Address {
    fn from(pointer: *const c_void) -> Self {
        Self(pointer.expose_provenance())
    }
}

impl From<*mut c_void> for Address {
    fn from(pointer: *mut c_void) -> Self {
        Self(pointer.expose_provenance())
    }
}

impl From<usize> for Address {
    fn from(address: usize) -> Self {
        Self(address)
    }
}

/// Pieces of the caller's memory that a call treats as one (`struct iovec[]`).
#[derive(Debug)]
pub(crate) struct Pieces(Vec<(Address, usize)>);

impl Pieces {
    pub(crate) fn one(base: Address, len: usize) -> Self {
        Self(vec![(base, len)])
    }

    pub(crate) fn fetch(table: Address, count: usize) -> Result<Self, Errno> {
        if count > MAX_IOVECS {
            return Err(Errno::EINVAL);
        }
        let piece = |at: usize| {
            let entry = table.at(at * IOVEC);
            Ok((Address(entry.usize()?), entry.at(8).usize()?))
        };
        (0..count).map(piece).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the total length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().fold(0, |sum: usize, (_, len)| sum.saturating_add(*len)).min(MAX)
    }

    /// Returns the rest after the first `n` bytes.
    pub(crate) fn skip(&self, mut n: usize) -> Self {
        let rest = self.0.iter().map(|(base, len)| {
            let skipped = n.min(*len);
            n -= skipped;
            (base.at(skipped), len - skipped)
        });
        Self(rest.collect())
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, Errno> {
        let mut all = Vec::new();
        for (base, len) in &self.0 {
            all.extend(base.read(*len)?);
        }
        Ok(all)
    }

    /// Fills the pieces with `bytes`, as far as these suffice.
    pub(crate) fn write(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        for (base, len) in &self.0 {
            let (now, later) = bytes.split_at(bytes.len().min(*len));
            base.write(now)?;
            bytes = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NULL: Address = Address(0);

    #[test]
    fn a_null_address_is_an_error() {
        assert_eq!(NULL.read(1), Err(Errno::EFAULT));
        assert_eq!(Address::from(8).write(&[1]), Err(Errno::EFAULT));
        assert_eq!(NULL.read(0), Ok(vec![]));
    }

    #[test]
    fn pieces_are_one() {
        let (mut a, mut b) = ([0u8; 3], [0u8; 4]);
        let address = |bytes: &mut [u8]| Address::from(bytes.as_mut_ptr().cast::<c_void>());
        let table = [address(&mut a).0, 3, address(&mut b).0, 4];
        let table = Address::from(table.as_ptr().cast::<c_void>());
        let pieces = Pieces::fetch(table, 2).unwrap();
        pieces.write(b"abcde").unwrap();
        assert_eq!((pieces.len(), pieces.read()), (7, Ok(b"abcde\0\0".to_vec())));
        assert_eq!(pieces.skip(4).read(), Ok(b"e\0\0".to_vec()));
        assert_eq!(Pieces::fetch(table, MAX_IOVECS + 1).unwrap_err(), Errno::EINVAL);
    }
}
