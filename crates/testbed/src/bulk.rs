//! A bulk transfer across a dumbbell, for a time.

use std::io;
use std::time::{Duration, Instant};

use airtcp_link::Way;
use airtcp_types::{ByteCount, Node, Rate};

use crate::dumbbell::Dumbbell;
use crate::stream::{Course, Ended};

/// A transfer to be made.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// [`Way::Forth`]: the left host sends.
    pub way: Way,
    /// Over IPv6, and not IPv4.
    pub is_ipv6: bool,
    /// The congestion control of a sender that is the kernel; the system's if none is named.
    pub congestion: Option<String>,
    /// What passes before bytes count.
    pub warm_up: Duration,
    /// For how long they count.
    pub time: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Bulked {
    /// Bytes that the receiving application read in the time that counts: in order, and compared.
    pub bytes: ByteCount,
    /// The time that counts, as the clock had it.
    pub time: Duration,
    /// Segments sent again, from the first to the end of the time.
    pub retransmissions: u64,
    /// What sent: `kernel cubic`, or a combination's name.
    pub sender: String,
}

impl Bulked {
    /// Payload per time.
    pub fn goodput(&self) -> Rate {
        Rate::from_bytes_over(self.bytes, self.time)
    }
}

impl<N: Node + Send + 'static> Dumbbell<N> {
    /// Sends as much as the time allows, then breaks the connection off.
    ///
    /// Several at once share what is between the hosts.
    ///
    /// # Errors
    /// The connection does not open or breaks; a byte differs; the kernel does not know the
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
