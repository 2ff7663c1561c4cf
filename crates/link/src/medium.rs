//! The shared medium of a half-duplex link.

use crate::spec::Way;

/// The arbiter of the medium.
///
/// Directions that both have frames take turns, frame by frame. This is the long-run share of IEEE
/// 802.11's distributed coordination function, in which a transmission opportunity is one frame of
/// any length. Random backoff, collisions and retransmissions are not modelled.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    busy: bool,
    last: Way,
}

impl Medium {
    pub(crate) fn new() -> Self {
        // The forward direction has the first turn.
        Self { busy: false, last: Way::Back }
    }

    /// Returns the direction that may start a frame. `waits` says which directions have one: forth,
    /// back.
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
