//! Events for the application, and the readiness that it waits for.

use crate::error::ConnectionError;

/// New events for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct News {
    pub(crate) connected: bool,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The connection has ended, with its error if it did not end gracefully.
    pub(crate) closed: Option<Option<ConnectionError>>,
}

/// Events that were not taken yet, and the readiness that the application waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    news: News,
    write_refused: bool,
    readable_reported: bool,
}

impl Notices {
    pub(super) const fn on_connected(&mut self) {
        self.news.connected = true;
    }

    pub(super) const fn on_closed(&mut self, error: Option<ConnectionError>) {
        self.news.closed = Some(error);
    }

    /// Records that a write was not accepted completely: the application waits for room.
    pub(super) const fn on_write_refused(&mut self) {
        self.write_refused = true;
    }

    /// Records that a read found nothing: the application waits for data.
    pub(super) const fn on_nothing_to_read(&mut self) {
        self.readable_reported = false;
    }

    pub(super) fn take(&mut self, is_readable: bool, is_writable: impl FnOnce() -> bool) -> News {
        if !self.readable_reported && is_readable {
            (self.readable_reported, self.news.readable) = (true, true);
        }
        if self.write_refused && is_writable() {
            (self.write_refused, self.news.writable) = (false, true);
        }
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_is_notified_once_per_wait() {
        let mut notices = Notices::default();
        let readable = News { readable: true, ..News::default() };
        let writable = News { writable: true, ..News::default() };
        assert_eq!(notices.take(true, || true), readable, "it has not been refused any room");
        assert_eq!(notices.take(true, || true), News::default());
        notices.on_nothing_to_read();
        assert_eq!(notices.take(false, || true), News::default());
        assert_eq!(notices.take(true, || true), readable);
        notices.on_write_refused();
        assert_eq!(notices.take(true, || false), News::default());
        assert_eq!(notices.take(true, || true), writable);
        assert_eq!(notices.take(true, || true), News::default());
        notices.on_connected();
        notices.on_closed(None);
        let both = News { connected: true, closed: Some(None), ..News::default() };
        assert_eq!(notices.take(true, || true), both);
    }
}
