//! Stacks on the queues of one device: shared state, and forwarding of packets that arrive on the
//! wrong queue.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::Clock;
use airtcp_stack::host::{Astray, Share};
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::sync::{mpsc, watch};

/// The maximum number of packets that wait for one stack. Normal traffic has few such packets, and
/// each may hold a buffer of the device.
const ROOM: usize = 256;

/// The position of a stack among siblings with the same addresses, each on its own queue of one
/// device.
///
/// Siblings share a clock and a secret, but no state on the path of a packet. A stack forwards a
/// packet of a flow that it does not know to the next stack, at most once round the siblings; the
/// last one answers it. At most 256 packets wait for each stack; further ones are dropped and
/// counted (`IpExtHandOverDrops`).
///
/// The kernel distributes flows over the queues, so all siblings must have the same listeners. A
/// stack can also open connections: the SYN-ACK, or a packet after an idle time, may reach a
/// sibling, which passes it on.
///
/// ```
/// use airtcp_device::{Clock, Tun, TunFile, TunOptions};
/// use airtcp_net::{Sibling, Stack};
/// use airtcp_stack::HostConfig;
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = TunOptions { multi_queue: true, ..TunOptions::default() };
/// for sibling in Sibling::family(2, Clock::start())? {
///     let file = TunFile::open_with("tun0", options)?;
///     std::thread::spawn(move || {
///         let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
///         runtime.block_on(async {
///             let tun = Tun::new(file).map_err(std::io::Error::other)?;
///             let config = HostConfig::new(["10.0.0.2/24".parse().map_err(std::io::Error::other)?]);
///             let stack = Stack::sibling(tun, config, sibling, None)?;
///             let listener = stack.listen("10.0.0.2:7".parse().map_err(std::io::Error::other)?, 128)?;
///             while let Ok((stream, _)) = listener.accept().await {
///                 // Serve it.
/// #               drop(stream);
///             }
///             std::io::Result::Ok(())
///         })
///     });
/// }
/// # Ok(())
/// # }
/// ```
pub struct Sibling {
    share: Share,
    secret: [u8; 16],
    clock: Clock,
    inbox: mpsc::Receiver<Astray>,
    next: mpsc::Sender<Astray>,
    going: Going,
}

/// The number of siblings that still run; dropping this value subtracts one.
#[derive(Debug)]
struct Going(Arc<watch::Sender<u16>>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.send_modify(|going| *going -= 1);
    }
}

// The secret is not printed.
impl fmt::Debug for Sibling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sibling").field("share", &self.share).finish_non_exhaustive()
    }
}

impl Sibling {
    /// Creates the positions of `count` stacks, in the order in which packets are forwarded.
    ///
    /// # Errors
    /// The operating system's source of random numbers fails.
    pub fn family(count: u16, clock: Clock) -> io::Result<Vec<Self>> {
        let mut secret = [0; 16];
        SysRng.try_fill_bytes(&mut secret).map_err(io::Error::other)?;
        let going = Arc::new(watch::Sender::new(count));
        let (mut senders, inboxes): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel(ROOM)).unzip();
        // The last stack passes packets to the first.
        senders.rotate_left(usize::from(count > 0));
        let ends = (0..count).zip(senders.into_iter().zip(inboxes));
        let place = |(index, (next, inbox))| {
            let (share, going) = (Share { index, of: count }, Going(going.clone()));
            Self { share, secret, clock, inbox, next, going }
        };
        Ok(ends.map(place).collect())
    }

    pub(super) const fn share(&self) -> Share {
        self.share
    }

    pub(super) const fn secret(&self) -> [u8; 16] {
        self.secret
    }

    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Takes packets forwarded by the previous stack, until `into` holds `most`.
    pub(super) fn try_recv(&mut self, into: &mut Vec<Astray>, most: usize) {
        while into.len() < most
            && let Ok(astray) = self.inbox.try_recv()
        {
            into.push(astray);
        }
    }

    /// Waits for the next packet that the previous stack forwards.
    pub(super) async fn recv(&mut self) -> Astray {
        match self.inbox.recv().await {
            Some(astray) => astray,
            // All stacks that could forward a packet have ended.
            None => std::future::pending().await,
        }
    }

    /// Forwards packets to the next stack; returns the number of dropped packets.
    pub(super) fn send(&self, packets: impl Iterator<Item = Astray>) -> u64 {
        packets.filter_map(|astray| self.next.try_send(astray).err()).count() as u64
    }

    /// Signs off and waits for the siblings, for at most twice `patience`, because a sibling may
    /// need that long to close its connections. Meanwhile this stack relays packets that others
    /// forward.
    ///
    /// The queue stays open while it waits: the kernel moves the flows of a closed queue to the
    /// other queues, whose stacks do not know them.
    pub(super) async fn leave(self, patience: Duration) {
        let Self { going, mut inbox, next, .. } = self;
        let mut others = going.0.subscribe();
        drop(going);
        let relay = async {
            while let Some(astray) = inbox.recv().await {
                // If the next stack is full or has ended, the packet is lost; its sender
                // retransmits it.
                astray.passed().map(|astray| next.try_send(astray));
            }
            // All stacks that could forward a packet have ended.
            std::future::pending().await
        };
        let ended = async {
            // An error means that all siblings have ended.
            let _ = others.wait_for(|going| *going == 0).await;
        };
        let first = async {
            tokio::select! {
                () = relay => {}
                () = ended => {}
            }
        };
        // After a time-out the caller continues in the same way.
        let _ = tokio::time::timeout(patience * 2, first).await;
    }
}
