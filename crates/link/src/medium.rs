//! The air that both directions of a half-duplex link share.

use crate::spec::Way;

/// Who may send the next frame.
///
/// Directions that both have frames take turns, frame by frame: the long-run share of IEEE 802.11's
/// distributed coordination, where a chance to send is a frame whatever its length. Its randomness, its
/// collisions and its retries are not modelled.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    shared: bool,
    on_air: [bool; 2],
    last: Way,
}

impl Medium {
    pub(crate) fn new(shared: bool) -> Self {
        // The first turn is the forward direction's.
        Self { shared, on_air: [false; 2], last: Way::Back }
    }

    /// Whether `way` may begin a frame; `other_waits` says whether the other direction has one too.
    pub(crate) fn may_send(&self, way: Way, other_waits: bool) -> bool {
        if self.shared {
            self.on_air == [false; 2] && (self.last != way || !other_waits)
        } else {
            !self.on_air[way as usize]
        }
    }

    pub(crate) fn begin(&mut self, way: Way) {
        self.on_air[way as usize] = true;
        self.last = way;
    }

    pub(crate) fn end(&mut self, way: Way) {
        self.on_air[way as usize] = false;
    }
}
