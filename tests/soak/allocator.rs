//! An allocator that counts what is not given back.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to implement; this one hands every call on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// Bytes that are in use.
pub(crate) fn live() -> isize {
    LIVE.load(Ordering::Relaxed)
}

/// Asserts that what was in use after each spell does not go on growing. `kept` bytes of it may be
/// memory to be used again.
#[track_caller]
pub(crate) fn assert_no_trend(live: &[isize], kept: isize) {
    // The size of a table comes and goes, and with it the most; what a leak leaves stays in the
    // least, too.
    let (early, late) = live.split_at(live.len() / 2);
    let (early, late) = (early.iter().min().unwrap(), late.iter().min().unwrap());
    assert!(*late <= early * 3 / 2 + kept, "{live:?}");
}

// SAFETY: each call is the system's own, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}
