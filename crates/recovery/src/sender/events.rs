//! Events for traces.

use std::collections::VecDeque;

use airtcp_types::EventKind;

use crate::transmission::Delivered;

/// The events that were not yet taken; `None` if events are off.
#[derive(Debug)]
#[expect(clippy::box_collection, reason = "most senders have none, and are to be small")]
pub(super) struct Events(Option<Box<VecDeque<EventKind>>>);

impl Events {
    pub(super) fn new(are_on: bool) -> Self {
        Self(are_on.then(Box::default))
    }

    pub(super) const fn are_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn add(&mut self, event: impl FnOnce() -> EventKind) {
        if let Some(events) = &mut self.0 {
            events.push_back(event());
        }
    }

    /// Adds one event for each run of consecutive transmission numbers.
    pub(super) fn acknowledged(&mut self, newly: &[Delivered]) {
        let Some(events) = &mut self.0 else { return };
        for delivered in newly {
            let first = delivered.first();
            match events.back_mut() {
                Some(EventKind::Acknowledged { last, .. }) if last.0 + 1 == first.0 => {
                    *last = delivered.tx;
                }
                _ => events.push_back(EventKind::Acknowledged { first, last: delivered.tx }),
            }
        }
    }

    pub(super) fn next(&mut self) -> Option<EventKind> {
        self.0.as_mut()?.pop_front()
    }
}
