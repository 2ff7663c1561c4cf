//! Proportional rate reduction (RFC 9937): how much may leave while the window falls.

use airtcp_types::ByteCount;

/// One reduction on its way from what was in flight to the window that the control has set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// RecoverFS: what was in flight when it began.
    recover_fs: ByteCount,
    /// prr_delivered: what has arrived since.
    delivered: ByteCount,
    /// prr_out: what has left since.
    out: ByteCount,
    /// What may still leave on what is known now.
    quota: ByteCount,
}

/// One ACK, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// DeliveredData: what it newly told to have arrived.
    pub(super) delivered: ByteCount,
    /// What is in flight after it.
    pub(super) pipe: ByteCount,
    /// Where the window is to be in the end.
    pub(super) ssthresh: ByteCount,
    /// SafeACK: it advances SND.UNA and tells of no further loss.
    pub(super) safe: bool,
    /// Something lost waits to be sent again: it was more than a mark, and the repair was not put off.
    pub(super) waits: bool,
    pub(super) smss: ByteCount,
}

impl Prr {
    /// `in_flight` is what was sent and neither acknowledged nor SACKed before the ACK that began the
    /// reduction.
    pub(super) const fn new(in_flight: ByteCount) -> Self {
        Self {
            recover_fs: in_flight,
            delivered: ByteCount::ZERO,
            out: ByteCount::ZERO,
            quota: ByteCount::ZERO,
        }
    }

    pub(super) const fn quota(&self) -> ByteCount {
        self.quota
    }

    /// RFC 9937 section 6: SndCnt for each ACK of the episode.
    pub(super) fn on_ack(&mut self, ack: &Progress) {
        if ack.delivered == ByteCount::ZERO {
            return;
        }
        self.delivered += ack.delivered;
        let mut quota = if ack.pipe > ack.ssthresh {
            // In proportion, so that at the end of the round trip as much has left as may.
            let share = u128::from(self.delivered.0) * u128::from(ack.ssthresh.0);
            let due = share.div_ceil(u128::from(self.recover_fs.0.max(1)));
            ByteCount(u64::try_from(due).unwrap_or(u64::MAX)) - self.out
        } else {
            // PRR-CRB: no more than arrived. PRR-SSRB where things go well: a segment more per ACK,
            // back to where the window is.
            let bound = (self.delivered - self.out).max(ack.delivered);
            let extra = if ack.safe { ack.smss } else { ByteCount::ZERO };
            (bound + extra).min(ack.ssthresh - ack.pipe)
        };
        if self.out == ByteCount::ZERO {
            // The first repair leaves in any case. Without one, as Linux for a mark: a segment for the first one that arrived,
            // not for less.
            quota = quota.max(if ack.waits { ack.smss } else { ack.delivered.min(ack.smss) });
        }
        self.quota = quota;
    }

    pub(super) fn on_sent(&mut self, bytes: ByteCount) {
        self.out += bytes;
        self.quota -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: ByteCount = ByteCount(1000);

    fn segments(count: u64) -> ByteCount {
        SMSS * count
    }

    /// An ACK that tells of one segment more.
    fn progress(pipe: u64, ssthresh: u64, safe: bool) -> Progress {
        Progress {
            delivered: SMSS,
            pipe: segments(pipe),
            ssthresh: segments(ssthresh),
            safe,
            waits: true,
            smss: SMSS,
        }
    }

    // Shows: RFC5681-4.3-2, RFC8985-9.3-2
    #[test]
    fn a_halving_sends_one_segment_for_two_that_arrive() {
        let mut prr = Prr::new(segments(20));
        let (mut pipe, mut sent) = (20, 0);
        for _ in 0..20 {
            pipe -= 1;
            prr.on_ack(&progress(pipe, 10, false));
            while prr.quota() >= SMSS {
                prr.on_sent(SMSS);
                (pipe, sent) = (pipe + 1, sent + 1);
            }
        }
        assert_eq!((pipe, sent), (10, 10));
    }

    #[test]
    fn below_the_target_no_more_leaves_than_arrives_unless_all_goes_well() {
        let mut prr = Prr::new(segments(20));
        prr.on_ack(&progress(4, 10, false));
        assert_eq!(prr.quota(), SMSS);
        prr.on_sent(SMSS);
        prr.on_ack(&progress(4, 10, true));
        assert_eq!(prr.quota(), segments(2));
        // Never above the target.
        prr.on_ack(&progress(9, 10, true));
        assert_eq!(prr.quota(), SMSS);
        prr.on_ack(&progress(10, 10, true));
        assert_eq!(prr.quota(), ByteCount::ZERO);
    }

    #[test]
    fn the_first_repair_leaves_in_any_case_and_what_tells_nothing_lets_nothing_out() {
        let mut prr = Prr::new(segments(20));
        prr.on_ack(&progress(19, 1, false));
        assert_eq!(prr.quota(), SMSS);
        prr.on_sent(SMSS);
        prr.on_ack(&Progress { delivered: ByteCount::ZERO, ..progress(19, 10, true) });
        assert_eq!(prr.quota(), ByteCount::ZERO);
    }

    #[test]
    fn without_a_repair_no_more_leaves_than_arrived_until_something_is_lost() {
        let mut prr = Prr::new(segments(10));
        let little = Progress { delivered: ByteCount(300), ..progress(9, 5, true) };
        prr.on_ack(&Progress { waits: false, ..little });
        assert_eq!(prr.quota(), ByteCount(300));
        prr.on_ack(&little);
        assert_eq!(prr.quota(), SMSS);
    }
}
