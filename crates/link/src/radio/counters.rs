//! Frame counters of one end of the radio.

use std::time::Duration;

/// Beside [`Counters`](crate::Counters), in frames unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct AirCounters {
    /// Sent, each time counted.
    pub tries: u64,
    /// Tries in which both ends sent at once.
    pub collisions: u64,
    /// Passed to the MAC once more, after it had handed them back.
    pub passed_again: u64,
    /// Arrived again because the link ACK was lost, and not delivered again.
    pub duplicates: u64,
    /// Time on the air, with the gaps within exchanges and the answers.
    #[serde(rename = "air_time_ns", serialize_with = "nanos")]
    pub air_time: Duration,
}

impl std::ops::AddAssign for AirCounters {
    fn add_assign(&mut self, other: Self) {
        self.tries += other.tries;
        self.collisions += other.collisions;
        self.passed_again += other.passed_again;
        self.duplicates += other.duplicates;
        self.air_time += other.air_time;
    }
}

fn nanos<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
