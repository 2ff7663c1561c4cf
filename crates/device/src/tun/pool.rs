//! Read buffers, which also hold the payload of large packets.

use std::sync::Arc;

/// The length of a buffer in bytes: at least that of any IP packet with its header, so that no read
/// truncates, even after a change of the MTU.
pub(super) const LENGTH: usize = 65_536 + super::vnet::LENGTH;

/// The maximum number of buffers kept: 4 MiB in total.
const KEPT: usize = 64;

/// The buffers in order of use, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct Pool(Vec<Arc<Vec<u8>>>);

impl Pool {
    /// Returns a buffer of [`LENGTH`] bytes without other references: the most recently used one,
    /// which is most likely cached.
    pub(super) fn free(&mut self) -> &mut Arc<Vec<u8>> {
        match self.0.iter_mut().rposition(|buffer| Arc::get_mut(buffer).is_some()) {
            Some(at) => self.0[at..].rotate_left(1),
            None => {
                // A reader that reads in order frees the oldest buffer first, so the newest one is
                // dropped.
                self.0.truncate(KEPT - 1);
                self.0.push(Arc::new(vec![0; LENGTH]));
            }
        }
        self.0.last_mut().expect("one was found or made")
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::SharedBytes;

    use super::*;

    #[test]
    fn a_buffer_is_used_again_when_its_parts_are_gone_and_the_last_used_first() {
        let mut pool = Pool::default();
        let mut take = || {
            let buffer = pool.free();
            assert_eq!(Arc::get_mut(buffer).unwrap().len(), LENGTH);
            (Arc::as_ptr(buffer), SharedBytes::new(buffer, 0..1))
        };
        let (first, part) = take();
        drop(part);
        let (same, first_part) = take();
        assert_eq!(same, first);
        let (second, second_part) = take();
        assert_ne!(second, first);
        drop(first_part);
        assert_eq!(take().0, first);
        drop(second_part);
        let (again, _part) = take();
        assert_eq!(again, first, "it was used later than the second");
    }

    #[test]
    fn the_pool_keeps_a_bounded_number_of_buffers_and_lends_more() {
        let mut pool = Pool::default();
        let parts: Vec<_> =
            (0..2 * KEPT).map(|_| SharedBytes::new(pool.free(), 0..LENGTH)).collect();
        assert_eq!(pool.0.len(), KEPT);
        let kept: Vec<_> = pool.0.iter().map(Arc::as_ptr).collect();
        drop(parts);
        for _ in 0..KEPT {
            let buffer = pool.free();
            assert!(kept.contains(&Arc::as_ptr(buffer)));
        }
    }
}
