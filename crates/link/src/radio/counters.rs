//! Frame counters of one end of the radio.

use std::time::Duration;

/// The frame counters that supplement [`Counters`](crate::Counters).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct AirCounters {
    /// Transmissions of frames.
    pub tries: u64,
    /// Tries in which both ends sent at the same time.
    pub collisions: u64,
    /// Frames passed to the MAC again after it had given up.
    pub passed_again: u64,
    /// Frames received again because the link ACK was lost, and not delivered again.
    pub duplicates: u64,
    /// Air time, including the gaps within exchanges, RTS, CTS and link ACKs.
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
