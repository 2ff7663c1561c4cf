//! Proportional rate reduction (RFC 9937): how much may be sent while the window is reduced.

use airtcp_types::ByteCount;

/// A reduction in progress, from the bytes in flight to ssthresh.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// RecoverFS: the bytes that may be delivered during the reduction.
    recover_fs: ByteCount,
    /// prr_delivered: the bytes delivered since it started.
    delivered: ByteCount,
    /// prr_out: the bytes sent since it started.
    out: ByteCount,
    /// SndCnt of the last ACK, minus the bytes sent since that ACK.
    quota: ByteCount,
}

/// The inputs of PRR from one ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// DeliveredData: the bytes that the ACK newly delivers.
    pub(super) delivered: ByteCount,
    /// Bytes in flight after the ACK.
    pub(super) pipe: ByteCount,
    /// ssthresh: the window at the end of the reduction.
    pub(super) ssthresh: ByteCount,
    /// SafeACK: whether the ACK advances SND.UNA and indicates no further loss.
    pub(super) safe: bool,
    pub(super) smss: ByteCount,
}

impl Prr {
    /// Starts a reduction (RFC 9937 section 6.1) with `recover_fs` as RecoverFS.
    pub(super) const fn new(recover_fs: ByteCount) -> Self {
        Self {
            recover_fs,
            delivered: ByteCount::ZERO,
            out: ByteCount::ZERO,
            quota: ByteCount::ZERO,
        }
    }

    /// Returns the bytes that may be sent now.
    pub(super) const fn quota(&self) -> ByteCount {
        self.quota
    }

    /// Processes an ACK that starts or continues the reduction (RFC 9937 section 6.2).
    pub(super) fn on_ack(&mut self, ack: &Progress) {
        if ack.delivered == ByteCount::ZERO {
            return;
        }
        self.delivered += ack.delivered;
        let mut quota = if ack.pipe > ack.ssthresh {
            // Proportional Rate Reduction.
            let share = u128::from(self.delivered.0) * u128::from(ack.ssthresh.0);
            let due = share.div_ceil(u128::from(self.recover_fs.0.max(1)));
            let due = ByteCount(u64::try_from(due).unwrap_or(u64::MAX)) - self.out;
            // RFC 9937 section 3: data may be sent while inflight is below cwnd, so a fraction of a
            // segment permits a whole one. prr_out counts it in full.
            ack.smss * due.0.div_ceil(ack.smss.0.max(1))
        } else {
            // PRR-CRB: no more than was delivered. PRR-SSRB on a SafeACK: one segment more.
            let bound = (self.delivered - self.out).max(ack.delivered);
            let extra = if ack.safe { ack.smss } else { ByteCount::ZERO };
            (bound + extra).min(ack.ssthresh - ack.pipe)
        };
        if self.out == ByteCount::ZERO && quota == ByteCount::ZERO {
            // Force a fast retransmit upon entering recovery.
            quota = ack.smss;
        }
        self.quota = quota;
    }

    /// Counts bytes that were sent (RFC 9937 section 6.3).
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

    /// An ACK that delivers one more segment.
    fn progress(pipe: u64, ssthresh: u64, safe: bool) -> Progress {
        Progress {
            delivered: SMSS,
            pipe: segments(pipe),
            ssthresh: segments(ssthresh),
            safe,
            smss: SMSS,
        }
    }

    // Shows: RFC5681-4.3-2, RFC8985-9.3-2, RFC9937-6.2-4
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

    // Shows: RFC9937-6.2-5, RFC9937-6.2-6
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

    // Shows: RFC9937-6.2-7
    #[test]
    fn the_first_segment_is_forced_once_and_an_ack_of_nothing_new_releases_nothing() {
        let mut prr = Prr::new(segments(20));
        // Neither bound allows anything: inflight is ssthresh.
        prr.on_ack(&progress(10, 10, false));
        assert_eq!(prr.quota(), SMSS);
        prr.on_sent(SMSS);
        prr.on_ack(&progress(10, 10, false));
        assert_eq!(prr.quota(), ByteCount::ZERO);
        prr.on_ack(&Progress { delivered: ByteCount::ZERO, ..progress(4, 10, true) });
        assert_eq!(prr.quota(), ByteCount::ZERO);
    }

    // Shows: RFC9937-6.2-4
    #[test]
    fn a_part_of_a_segment_releases_a_whole_one_and_it_counts_in_full() {
        let mut prr = Prr::new(segments(20));
        let mut sent = 0;
        for delivered in 1..=40 {
            // Half segments are delivered: each permits a quarter of a segment.
            prr.on_ack(&Progress { delivered: ByteCount(500), ..progress(15, 10, false) });
            while prr.quota() >= SMSS {
                prr.on_sent(SMSS);
                sent += 1;
            }
            assert_eq!(sent, (delivered * 250_u64).div_ceil(1000), "{delivered}");
        }
    }
}
