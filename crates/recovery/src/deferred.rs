//! Deferred rulings.

use std::collections::{BTreeMap, BTreeSet};

use airtcp_types::{ByteCount, Instant, TxNo};

use crate::detection::Finding;

/// The findings that judges have deferred, at most one per transmission.
///
/// All operations take logarithmic time, because many findings can wait behind many holes and every
/// ACK looks them up. Boxed because most senders never have any.
#[derive(Debug, Default)]
pub(crate) struct Deferred(Option<Box<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    findings: BTreeMap<TxNo, (Instant, Finding)>,
    due: BTreeSet<(Instant, TxNo)>,
    /// The congestion window when the first finding was deferred, or when SND.UNA last advanced.
    window: ByteCount,
}

impl Waiting {
    fn remove(&mut self, tx: TxNo) {
        if let Some((at, _)) = self.findings.remove(&tx) {
            self.due.remove(&(at, tx));
        }
    }
}

impl Deferred {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|waiting| waiting.findings.is_empty())
    }

    pub(crate) fn contains(&self, tx: TxNo) -> bool {
        self.0.as_ref().is_some_and(|waiting| waiting.findings.contains_key(&tx))
    }

    /// Returns the upper bound of cwnd while findings are deferred; `None` if there are none.
    pub(crate) fn window(&self) -> Option<ByteCount> {
        let waiting = self.0.as_ref().filter(|waiting| !waiting.findings.is_empty())?;
        Some(waiting.window)
    }

    /// Returns the time at which the first finding is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.0.as_ref()?.due.first().map(|(at, _)| *at)
    }

    /// Defers a finding until `at`; it replaces an earlier one of the same transmission. If no
    /// other finding is deferred, `window` becomes the bound of cwnd.
    pub(crate) fn add(&mut self, at: Instant, finding: Finding, window: ByteCount) {
        let waiting = self.0.get_or_insert_default();
        if waiting.findings.is_empty() {
            waiting.window = window;
        }
        waiting.remove(finding.tx);
        waiting.findings.insert(finding.tx, (at, finding));
        waiting.due.insert((at, finding.tx));
    }

    /// Replaces the bound of cwnd by the current window.
    pub(crate) fn renew(&mut self, window: ByteCount) {
        if let Some(waiting) = &mut self.0 {
            waiting.window = window;
        }
    }

    pub(crate) fn remove(&mut self, tx: TxNo) {
        if let Some(waiting) = &mut self.0 {
            waiting.remove(tx);
        }
    }

    pub(crate) fn remove_below(&mut self, tx: TxNo) {
        let Some(waiting) = &mut self.0 else { return };
        while let Some((&first, _)) =
            waiting.findings.first_key_value().filter(|(first, _)| **first < tx)
        {
            waiting.remove(first);
        }
    }

    /// Removes and returns the findings that are due, in the order sent.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Finding> {
        let mut due = Vec::new();
        let Some(waiting) = &mut self.0 else { return due };
        while let Some(&(at, tx)) = waiting.due.first().filter(|(at, _)| *at <= now) {
            waiting.due.remove(&(at, tx));
            due.extend(waiting.findings.remove(&tx).map(|(_, finding)| finding));
        }
        due.sort_by_key(|finding| finding.tx);
        due
    }

    /// Removes and returns all findings, in the order sent.
    pub(crate) fn take(&mut self) -> Vec<Finding> {
        let waiting = self.0.take().into_iter();
        waiting.flat_map(|waiting| waiting.findings.into_values().map(|(_, f)| f)).collect()
    }

    /// Frees memory that is not in use.
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detection::Certainty;

    fn finding(tx: u64) -> Finding {
        Finding { tx: TxNo(tx), certainty: Certainty::Lost, immediate: false }
    }

    fn numbers(findings: &[Finding]) -> Vec<u64> {
        findings.iter().map(|finding| finding.tx.0).collect()
    }

    fn three() -> Deferred {
        let mut deferred = Deferred::default();
        for (at, tx) in [(30, 1), (10, 7), (20, 4)] {
            deferred.add(Instant::from_millis(at), finding(tx), ByteCount(at));
        }
        deferred
    }

    #[test]
    fn expired_entries_are_returned_once_in_the_order_of_sending() {
        let mut deferred = three();
        assert_eq!(deferred.next_at(), Some(Instant::from_millis(10)));
        assert_eq!(numbers(&deferred.take_due(Instant::from_millis(20))), [4, 7]);
        assert_eq!(numbers(&deferred.take_due(Instant::from_millis(29))), []);
        assert_eq!(deferred.next_at(), Some(Instant::from_millis(30)));
        assert_eq!(numbers(&deferred.take()), [1]);
        assert!(deferred.is_empty() && deferred.next_at().is_none());
        deferred.add(Instant::from_millis(30), finding(1), ByteCount(30));
        deferred.shrink();
        assert_eq!(numbers(&deferred.take_due(Instant::from_millis(30))), [1]);
        deferred.shrink();
        assert!(deferred.0.is_none());
    }

    #[test]
    fn a_later_ruling_on_the_same_transmission_takes_the_place_of_the_first() {
        let mut deferred = three();
        deferred.add(Instant::from_millis(40), finding(7), ByteCount(40));
        assert_eq!(deferred.next_at(), Some(Instant::from_millis(20)));
        deferred.remove(TxNo(7));
        assert_eq!(numbers(&deferred.take_due(Instant::from_millis(99))), [1, 4]);
    }

    #[test]
    fn removed_entries_do_not_expire() {
        let mut deferred = three();
        deferred.remove_below(TxNo(7));
        assert!(!deferred.contains(TxNo(4)) && deferred.contains(TxNo(7)));
        assert_eq!(deferred.next_at(), Some(Instant::from_millis(10)));
    }

    #[test]
    fn the_window_is_that_of_the_first_until_it_is_renewed_or_nothing_waits() {
        let mut deferred = three();
        assert_eq!(deferred.window(), Some(ByteCount(30)));
        deferred.renew(ByteCount(50));
        assert_eq!(deferred.window(), Some(ByteCount(50)));
        deferred.take();
        assert_eq!(deferred.window(), None);
        deferred.add(Instant::from_millis(60), finding(9), ByteCount(60));
        assert_eq!(deferred.window(), Some(ByteCount(60)));
    }
}
