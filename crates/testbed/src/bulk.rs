//! A bulk transfer across a dumbbell, for a given time.

use std::io;
use std::time::{Duration, Instant};

use airtcp_link::Way;
use airtcp_types::{ByteCount, Node, Rate};

use crate::dumbbell::Dumbbell;
use crate::stream::{Course, Ended};

/// The parameters of a transfer.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The direction. [`Way::Forth`]: the left host sends.
    pub way: Way,
    /// Whether to use IPv6 instead of IPv4.
    pub is_ipv6: bool,
    /// The congestion control of a kernel sender; `None` for the system's default.
    pub congestion: Option<String>,
    /// The time before the measurement.
    pub warm_up: Duration,
    /// The duration of the measurement.
    pub time: Duration,
}

/// The result of a transfer.
#[derive(Clone, Debug)]
pub struct Bulked {
    /// Bytes that the receiving application read in order and verified during the measurement.
    pub bytes: ByteCount,
    /// The actual duration of the measurement.
    pub time: Duration,
    /// Retransmitted segments, from the start of the transfer to the end of the measurement.
    pub retransmissions: u64,
    /// The sender: `kernel cubic`, or the name of a combination.
    pub sender: String,
}

impl Bulked {
    /// Returns the payload received per time.
    pub fn goodput(&self) -> Rate {
        Rate::from_bytes_over(self.bytes, self.time)
    }
}

impl<N: Node + Send + 'static> Dumbbell<N> {
    /// Sends data for the given time, then aborts the connection.
    ///
    /// Concurrent transfers share the node between the hosts.
    ///
    /// # Errors
    /// The connection cannot be opened or breaks, a byte differs, or the kernel does not know the
    /// congestion control.
    pub async fn bulk(&self, bulk: &Bulk) -> io::Result<Bulked> {
        let Bulk { way, is_ipv6, congestion, warm_up, time } = bulk.clone();
        let mut stream = self.stream(&Course { way, is_ipv6, congestion }).await?;
        stream.wait(warm_up).await?;
        let (before, start) = (stream.arrived(), Instant::now());
        stream.wait(time).await?;
        let (after, time) = (stream.arrived(), start.elapsed());
        let Ended { sender, retransmissions } = stream.end().await?;
        Ok(Bulked { bytes: after - before, time, retransmissions, sender })
    }
}
