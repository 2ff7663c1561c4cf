//! Path measurements of earlier connections to a peer, for later ones (RFC 9040).
//!
//! Round-trip times and random losses are those that a connection reported last. The rate is that
//! of all connections together and is measured here: a connection knows only its own part, and
//! short connections never learn the rate of the path. A new connection gets the rate divided by
//! the number of connections with data in flight, including itself.
//!
//! Not shared: ssthresh, cwnd and reordering. Linux stores ssthresh but no longer uses it by
//! default (`tcp_no_ssthresh_metrics_save`): a threshold from a bad moment ends slow start too
//! early.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use airtcp_recovery::{Learned, LearnedRtt, RandomLosses};
use airtcp_types::{ByteCount, Instant, Rate};

use crate::tcp::PathNews;

use super::secret::Keyed;

/// The time after which measurements that no connection has confirmed expire.
const LIFETIME: Duration = Duration::from_secs(60);
/// The half-life of the rate, equal to that of the losses that `spike` counts.
const HALF_LIFE: Duration = Duration::from_secs(30);
/// The minimum interval of a rate measurement, which otherwise lasts a round trip: shorter
/// intervals measure bursts of ACKs.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum number of peers; a new one replaces the oldest.
const MOST: usize = 1024;

/// Path measurements by peer.
#[derive(Debug)]
pub(super) struct Paths {
    known: HashMap<IpAddr, Path, Keyed>,
    /// Peers in order of insertion.
    order: VecDeque<IpAddr>,
}

/// The last report of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    delivered: ByteCount,
    /// Whether the connection counts as one with data in flight.
    is_busy: bool,
}

#[derive(Debug)]
struct Path {
    heard_at: Instant,
    rtt: Option<LearnedRtt>,
    /// The time when the smallest round-trip time was measured.
    min_at: Instant,
    losses: Option<RandomLosses>,
    losses_at: Instant,
    /// The highest rate, and the time when it was measured.
    rate: Rate,
    rate_at: Instant,
    /// Bytes delivered since the current interval started.
    delivered: ByteCount,
    since: Instant,
    /// The number of connections with data in flight.
    busy: u32,
}

impl Paths {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self { known: HashMap::with_hasher(keyed), order: VecDeque::new() }
    }

    /// The measurements with which a new connection to `peer` starts; its data in flight counts
    /// already.
    pub(super) fn get(&self, now: Instant, peer: IpAddr) -> Learned {
        match self.known.get(&peer) {
            Some(path) if now.since(path.heard_at) <= LIFETIME => {
                let rate = path.rate(now).bits_per_sec() / (u64::from(path.busy) + 1);
                let rate = Some(Rate::from_bits_per_sec(rate)).filter(|rate| *rate > Rate::ZERO);
                let is_late = now.since(path.losses_at) > LIFETIME;
                Learned { rtt: path.rtt, rate, losses: path.losses.filter(|_| !is_late) }
            }
            _ => Learned::default(),
        }
    }

    /// Records that a connection sends its first data.
    pub(super) fn begin(&mut self, now: Instant, peer: IpAddr, reported: &mut Reported) {
        self.path(now, peer).set_busy(now, reported, true);
    }

    /// Processes the report of a connection; `reported` is its last one.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        peer: IpAddr,
        reported: &mut Reported,
        news: &PathNews,
    ) {
        let arrived = news.delivered - reported.delivered;
        let has_measured = arrived > ByteCount::ZERO || news.learned.rtt.is_some();
        if !has_measured && news.is_busy == reported.is_busy {
            return;
        }
        reported.delivered = news.delivered;
        let path = self.path(now, peer);
        if has_measured {
            path.learn(now, arrived, &news.learned);
        }
        path.set_busy(now, reported, news.is_busy);
    }

    /// Removes a connection that has ended.
    pub(super) fn end(&mut self, peer: IpAddr, reported: &Reported) {
        if let Some(path) = self.known.get_mut(&peer).filter(|_| reported.is_busy) {
            path.busy = path.busy.saturating_sub(1);
        }
    }

    fn path(&mut self, now: Instant, peer: IpAddr) -> &mut Path {
        if self.known.len() >= MOST && !self.known.contains_key(&peer) {
            let oldest = self.order.pop_front();
            oldest.iter().for_each(|oldest| {
                self.known.remove(oldest);
            });
        }
        self.known.entry(peer).or_insert_with(|| {
            self.order.push_back(peer);
            Path::new(now)
        })
    }
}

impl Path {
    const fn new(now: Instant) -> Self {
        Self {
            heard_at: now,
            rtt: None,
            min_at: now,
            losses: None,
            losses_at: now,
            rate: Rate::ZERO,
            rate_at: now,
            delivered: ByteCount::ZERO,
            since: now,
            busy: 0,
        }
    }

    fn learn(&mut self, now: Instant, arrived: ByteCount, news: &Learned) {
        if now.since(self.heard_at) > LIFETIME {
            *self = Self { busy: self.busy, ..Self::new(now) };
        }
        self.heard_at = now;
        if let Some(rtt) = news.rtt {
            self.learn_rtt(now, rtt);
        }
        match news.losses {
            Some(losses) if losses == RandomLosses::NONE => self.losses = None,
            Some(losses) => (self.losses, self.losses_at) = (Some(losses), now),
            None => {}
        }
        self.delivered += arrived;
        let round = self.rtt.map_or(Duration::ZERO, |rtt| rtt.srtt).max(SHORTEST_INTERVAL);
        let interval = now.since(self.since);
        if interval >= round {
            let rate = Rate::from_bytes_over(self.delivered, interval);
            if rate >= self.rate(now) {
                (self.rate, self.rate_at) = (rate, now);
            }
            self.begin_interval(now);
        }
    }

    fn learn_rtt(&mut self, now: Instant, rtt: LearnedRtt) {
        let before = self.rtt.map(|rtt| rtt.min).filter(|_| now.since(self.min_at) <= LIFETIME);
        let min = before.map_or(rtt.min, |before| before.min(rtt.min));
        if min == rtt.min {
            self.min_at = now;
        }
        self.rtt = Some(LearnedRtt { min, ..rtt });
    }

    fn begin_interval(&mut self, now: Instant) {
        (self.since, self.delivered) = (now, ByteCount::ZERO);
    }

    /// The highest rate, halved for every half-life of its age.
    fn rate(&self, now: Instant) -> Rate {
        let half_lives = now.since(self.rate_at).as_nanos() / HALF_LIFE.as_nanos();
        let shift = u32::try_from(half_lives).unwrap_or(u32::MAX);
        Rate::from_bits_per_sec(self.rate.bits_per_sec().checked_shr(shift).unwrap_or(0))
    }

    fn set_busy(&mut self, now: Instant, reported: &mut Reported, is_busy: bool) {
        match (std::mem::replace(&mut reported.is_busy, is_busy), is_busy) {
            (false, true) => {
                if self.busy == 0 {
                    self.begin_interval(now);
                }
                self.busy = self.busy.saturating_add(1);
            }
            (true, false) => self.busy = self.busy.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
