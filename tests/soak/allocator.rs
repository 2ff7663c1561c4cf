//! An allocator that counts the bytes in use.

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

/// The bytes in use.
pub(crate) fn live() -> isize {
    LIVE.load(Ordering::Relaxed)
}

/// Asserts that the bytes in use after each spell do not keep growing. `kept` bytes may be memory
/// kept for reuse.
#[track_caller]
pub(crate) fn assert_no_trend(live: &[isize], kept: isize) {
    // The size of a table varies, and with it the maximum; a leak also raises the minimum.
    let (early, late) = live.split_at(live.len() / 2);
    let (early, late) = (early.iter().min().unwrap(), late.iter().min().unwrap());
    assert!(*late <= early * 3 / 2 + kept, "{live:?}");
}

// SAFETY: each call forwards its arguments to the system's allocator.
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
