//! Records the amount of a stream that has arrived, over time.

use std::io;
use std::time::{Duration, Instant};

use airtcp_types::{ByteCount, Rate};

use crate::Stream;

/// The time between two samples.
const STEP: Duration = Duration::from_millis(20);
/// The amount of a stream that has arrived, every 20 ms.
#[derive(Clone, Debug)]
pub struct Arrivals {
    start: Instant,
    looks: Vec<(Duration, ByteCount)>,
}

impl Arrivals {
    /// The minimum interval for a rate, because an ACK that fills a hole releases much data at
    /// once.
    pub const SPAN: Duration = Duration::from_millis(500);

    /// Starts recording a stream.
    pub fn of(stream: &Stream) -> Self {
        Self { start: Instant::now(), looks: vec![(Duration::ZERO, stream.arrived())] }
    }

    /// Returns the time since the start of the recording.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the samples: time and bytes.
    pub fn looks(&self) -> &[(Duration, ByteCount)] {
        &self.looks
    }

    /// Returns the payload rate between two times.
    pub fn rate(&self, from: Duration, to: Duration) -> Rate {
        let (before, after) = (self.at(from), self.at(to));
        Rate::from_bytes_over(after - before, to.saturating_sub(from))
    }

    /// Returns how long after `from` the stream reaches `rate` over half a second; `None` if it
    /// does not until the end.
    pub fn has_rate_after(&self, from: Duration, rate: Rate) -> Option<Duration> {
        let last = self.looks.last()?.0;
        let begins = self.looks.iter().map(|(at, _)| *at).filter(|at| *at >= from);
        let mut begins =
            std::iter::once(from).chain(begins).take_while(|at| *at + Self::SPAN <= last);
        begins.find(|at| self.rate(*at, *at + Self::SPAN) >= rate).map(|at| at - from)
    }

    /// Returns how long after `from` this number of bytes has arrived; `None` if it has not until
    /// the end.
    pub fn has_bytes_after(&self, from: Duration, bytes: ByteCount) -> Option<Duration> {
        let at = self.looks.iter().find(|(_, arrived)| *arrived >= bytes)?.0;
        Some(at.saturating_sub(from))
    }

    /// Returns the number of bytes that have arrived by this time.
    pub fn at(&self, time: Duration) -> ByteCount {
        let after = self.looks.partition_point(|(at, _)| *at <= time);
        self.looks[..after].last().map_or(ByteCount::ZERO, |(_, bytes)| *bytes)
    }

    fn look(&mut self, stream: &Stream) {
        self.looks.push((self.start.elapsed(), stream.arrived()));
    }
}

impl Stream {
    /// Waits for this time, and records samples.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub async fn follow(&mut self, time: Duration, arrivals: &mut Arrivals) -> io::Result<()> {
        let end = arrivals.now() + time;
        while let Some(left) = end.checked_sub(arrivals.now()).filter(|left| !left.is_zero()) {
            self.wait(left.min(STEP)).await?;
            arrivals.look(self);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Arrivals with these rates in bytes per millisecond, for a second each.
    fn arrivals(rates: &[u64]) -> Arrivals {
        let mut looks = vec![(Duration::ZERO, ByteCount::ZERO)];
        for (second, rate) in (0..).zip(rates) {
            for step in 1..=50 {
                let bytes = looks.last().unwrap().1 + ByteCount(rate * 20);
                looks.push((ms(second * 1_000 + step * 20), bytes));
            }
        }
        Arrivals { start: Instant::now(), looks }
    }

    #[test]
    fn a_rate_is_one_over_half_a_second() {
        let arrivals = arrivals(&[100, 0, 0, 50, 100, 100]);
        let rate = arrivals.rate(ms(0), ms(1_000));
        assert_eq!(rate, Rate::from_bits_per_sec(800_000));
        assert_eq!(arrivals.has_rate_after(ms(0), rate), Some(ms(0)));
        assert_eq!(arrivals.has_rate_after(ms(2_000), rate), Some(ms(2_000)));
        // Nine tenths of it: a tenth of half a second has half the rate.
        let most = Rate::from_bits_per_sec(720_000);
        assert_eq!(arrivals.has_rate_after(ms(2_000), most), Some(ms(1_900)));
        let more = Rate::from_bits_per_sec(900_000);
        assert_eq!(arrivals.has_rate_after(ms(0), more), None);
    }

    #[test]
    fn bytes_arrive_when_they_do() {
        let arrivals = arrivals(&[0, 10]);
        assert_eq!(arrivals.has_bytes_after(ms(500), ByteCount(1_000)), Some(ms(600)));
        assert_eq!(arrivals.has_bytes_after(ms(500), ByteCount(20_000)), None);
        assert_eq!(arrivals.at(ms(1_110)), ByteCount(1_000));
    }
}
