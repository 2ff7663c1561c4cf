//! Stacks on the queues of one device: shared state, and forwarding of packets that reached the wrong queue.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::Clock;
use airtcp_stack::host::{Astray, Share};
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::sync::{mpsc, watch};

/// Packets that may wait for one stack. They are few in honest traffic, and may pin a buffer of the device each.
const ROOM: usize = 256;

/// The position of a stack among siblings with the same addresses, each on its own queue of one device.
///
/// They share a clock and a secret, and nothing that a packet needs on its way. A packet that is nobody's at the stack
/// that it reached is handed on to the next one, and so round, until one knows it; the last one answers for all. At most
/// 256 wait for each stack; what comes on top is dropped and counted (`IpExtHandOverDrops`).
///
/// The device spreads packets by their flow, so every stack should listen where one does. A connection that a stack opens
/// itself works: what answers its SYN may come by a sibling, and so may what comes after a silence of seconds, for which the
/// kernel remembers where a flow was.
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

/// How many of a family have not come to their end; dropping it is the end of one.
#[derive(Debug)]
struct Going(Arc<watch::Sender<u16>>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.send_modify(|going| *going -= 1);
    }
}

/// Without the secret.
impl fmt::Debug for Sibling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sibling").field("share", &self.share).finish_non_exhaustive()
    }
}

impl Sibling {
    /// Positions for `count` stacks, in the order in which packets are forwarded.
    ///
    /// # Errors
    /// The operating system has no randomness to give.
    pub fn family(count: u16, clock: Clock) -> io::Result<Vec<Self>> {
        let mut secret = [0; 16];
        SysRng.try_fill_bytes(&mut secret).map_err(io::Error::other)?;
        let going = Arc::new(watch::Sender::new(count));
        let (mut senders, inboxes): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel(ROOM)).unzip();
        // The one after the last is the first.
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

    /// Takes at most `most` packets that were handed on to this one.
    pub(super) fn try_recv(&mut self, into: &mut Vec<Astray>, most: usize) {
        while into.len() < most
            && let Ok(astray) = self.inbox.try_recv()
        {
            into.push(astray);
        }
    }

    /// The next packet that is handed on to this one.
    pub(super) async fn recv(&mut self) -> Astray {
        match self.inbox.recv().await {
            Some(astray) => astray,
            // All that could hand one on have ended.
            None => std::future::pending().await,
        }
    }

    /// Hands packets on; gives how many could not be.
    pub(super) fn send(&self, packets: impl Iterator<Item = Astray>) -> u64 {
        packets.filter_map(|astray| self.next.try_send(astray).err()).count() as u64
    }

    /// Comes to its end, and waits for that of the others, at most twice for `patience`: they may have as long to finish
    /// what they do before they close. What is handed on meanwhile goes past it.
    ///
    /// A queue that is closed has its flows go to the others, which know nothing of them: while one has connections that
    /// are coming to their end, none is.
    pub(super) async fn leave(self, patience: Duration) {
        let Self { going, mut inbox, next, .. } = self;
        let mut others = going.0.subscribe();
        drop(going);
        let relay = async {
            while let Some(astray) = inbox.recv().await {
                // Who has no room for it, or has ended, has it lost: its sender sends it again.
                astray.passed().map(|astray| next.try_send(astray));
            }
            // All that could hand one on have ended.
            std::future::pending().await
        };
        let ended = async {
            // An error would say the same.
            let _ = others.wait_for(|going| *going == 0).await;
        };
        let first = async {
            tokio::select! {
                () = relay => {}
                () = ended => {}
            }
        };
        // In time or not: what follows is the same.
        let _ = tokio::time::timeout(patience * 2, first).await;
    }
}
