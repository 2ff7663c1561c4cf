//! The shared medium of a half-duplex link.

use crate::spec::Way;

/// Who may send the next frame.
///
/// Directions that both have frames take turns, frame by frame: the long-run share of IEEE 802.11's
/// distributed coordination, where a chance to send is a frame whatever its length. Its randomness,
/// its collisions and its retries are not modelled.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    busy: bool,
    last: Way,
}

impl Medium {
    pub(crate) fn new() -> Self {
        // The first turn is the forward direction's.
        Self { busy: false, last: Way::Back }
    }

    /// Which direction may begin a frame, of those that have one: forth, back.
    pub(crate) fn turn(&self, waits: [bool; 2]) -> Option<Way> {
        match waits {
            _ if self.busy => None,
            [true, true] => Some(self.last.other()),
            [true, false] => Some(Way::Forth),
            [false, true] => Some(Way::Back),
            [false, false] => None,
        }
    }

    pub(crate) fn begin(&mut self, way: Way) {
        self.busy = true;
        self.last = way;
    }

    pub(crate) fn end(&mut self) {
        self.busy = false;
    }
}
