//! Keeps measurements of the paths to peers for later connections (RFC 9040).
//!
//! Round-trip times and random losses are those of the connection that reported them last. The rate
//! is that of all connections together, measured here: a connection knows only its own part, and
//! short ones never learn what the path carries. A new connection gets the rate divided by the
//! number of those that have data in flight.
//!
//! Not shared: ssthresh and cwnd. Linux keeps ssthresh and no longer uses it by default
//! (`tcp_no_ssthresh_metrics_save`): a threshold of a bad moment stops slow start too early.
//! Reordering is not shared either.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use airtcp_recovery::{Learned, LearnedRtt, RandomLosses};
use airtcp_types::{ByteCount, Instant, Rate};

use crate::tcp::PathNews;

use super::secret::Keyed;

/// What no connection has confirmed for this time is forgotten.
const LIFETIME: Duration = Duration::from_secs(60);
/// The rate counts half after this time, as the losses that `spike` has counted do.
const HALF_LIFE: Duration = Duration::from_secs(30);
/// The rate is measured over a round trip, and this at least: shorter intervals measure bursts of
/// ACKs.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);
/// Peers whose path is known; a new one takes the place of the oldest.
const MOST: usize = 1024;

/// Paths by peer.
#[derive(Debug)]
pub(super) struct Paths {
    known: HashMap<IpAddr, Path, Keyed>,
    /// In the order in which they came.
    order: VecDeque<IpAddr>,
}

/// What a connection has reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    delivered: ByteCount,
    /// It counts as one that has data in flight.
    is_busy: bool,
}

#[derive(Debug)]
struct Path {
    heard_at: Instant,
    rtt: Option<LearnedRtt>,
    /// When the smallest round-trip time was measured.
    min_at: Instant,
    losses: Option<RandomLosses>,
    losses_at: Instant,
    /// The largest rate, and when it was measured.
    rate: Rate,
    rate_at: Instant,
    /// What was delivered since the present interval began.
    delivered: ByteCount,
    since: Instant,
    /// Connections with data in flight.
    busy: u32,
}

impl Paths {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self { known: HashMap::with_hasher(keyed), order: VecDeque::new() }
    }

    /// What a connection to `peer` may start with, if it is to be one more with data in flight.
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

    /// A connection that has reported `reported` sends its first data.
    pub(super) fn begin(&mut self, now: Instant, peer: IpAddr, reported: &mut Reported) {
        self.path(now, peer).set_busy(now, reported, true);
    }

    /// Takes the news of a connection that has reported `reported` before.
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

    /// A connection that has reported `reported` is gone.
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

    /// The largest rate, with the weight of its age.
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
