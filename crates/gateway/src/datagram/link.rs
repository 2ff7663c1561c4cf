//! A channel on a UDP socket of the stack.

use std::convert::Infallible;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airtcp_net::UdpSocket;
use airtcp_stack::host::HostError;
use airtcp_types::Instant;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::sleep;
use tracing::debug;

use super::channel::{Channel, Datagram};

/// The most frames that a link sends in a turn while several wait for room in the stack: half of
/// those that a carrier stack takes at a time.
const TURN: usize = 16;

/// A channel to a peer. At the far gateway, several links share one socket.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
    started: tokio::time::Instant,
    state: Mutex<State>,
    /// Notified when the alarm must be set again.
    wake: Notify,
    /// Notified when frames have begun to wait.
    backlog: Notify,
}

#[derive(Debug)]
struct State {
    channel: Channel,
    /// Whether frames wait for room in the stack. Then the link sends only in its turn.
    blocked: bool,
    /// When the timers run without a notification.
    alarm: Instant,
}

impl Link {
    /// Creates a link; `channel` creates the channel for the longest frame that the stack sends to
    /// `peer`.
    pub(crate) fn new(
        socket: Arc<UdpSocket>,
        peer: SocketAddr,
        channel: impl FnOnce(usize) -> Channel,
    ) -> Self {
        let channel = channel(longest(&socket, peer));
        Self {
            socket,
            peer,
            started: tokio::time::Instant::now(),
            state: Mutex::new(State { channel, blocked: false, alarm: Instant::MAX }),
            wake: Notify::new(),
            backlog: Notify::new(),
        }
    }

    pub(crate) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Handles a frame that has arrived. Returns the datagrams that it completes, and the
    /// association that it closes.
    pub(crate) fn on_frame(&self, frame: &[u8]) -> (Vec<Datagram>, Option<u32>) {
        self.with(|channel, now| {
            let closed = channel.handle_frame(now, frame);
            (std::iter::from_fn(|| channel.poll_datagram()).collect(), closed)
        })
    }

    /// Runs `act`, and sends the frames that it leaves in the channel.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Channel, Instant) -> R) -> R {
        let mut state = self.lock();
        let now = self.now();
        let result = act(&mut state.channel, now);
        self.flush(&mut state, now);
        if state.channel.poll_timeout().is_some_and(|at| at < state.alarm) {
            self.wake.notify_one();
        }
        result
    }

    /// Sends the frames of the channel, unless others wait already.
    fn flush(&self, state: &mut State, now: Instant) {
        if !state.blocked {
            self.transmit(state, now);
            if state.blocked {
                self.backlog.notify_one();
            }
        }
    }

    /// Sends up to [`TURN`] frames; returns their number. If more are left, the link is blocked.
    fn transmit(&self, state: &mut State, now: Instant) -> usize {
        state.blocked = false;
        let mut sent = 0;
        while let Some(frame) = state.channel.poll_transmit(now) {
            if sent == TURN {
                state.channel.untransmit(frame);
                state.blocked = true;
                break;
            }
            match self.socket.try_send_to(&frame, self.peer) {
                Ok(_) => sent += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    state.channel.untransmit(frame);
                    state.blocked = true;
                    break;
                }
                Err(error) => debug!(peer = %self.peer, %error, "frame dropped"),
            }
        }
        sent
    }

    /// Runs the channel's timers, and sends frames that had to wait.
    ///
    /// # Errors
    /// The stack has ended.
    pub(crate) async fn drive(&self) -> io::Result<Infallible> {
        // Separate loops, so that a timer does not cost the link its place among those that wait.
        tokio::select! {
            ended = self.send_in_turn() => ended,
            never = self.run_timers() => match never {},
        }
    }

    /// Sends frames that had to wait. Links that share a socket take turns.
    async fn send_in_turn(&self) -> io::Result<Infallible> {
        loop {
            self.backlog.notified().await;
            loop {
                self.socket.writable().await?;
                let (sent, blocked) = {
                    let mut state = self.lock();
                    (self.transmit(&mut state, self.now()), state.blocked)
                };
                if !blocked {
                    break;
                }
                if sent > 0 {
                    // The stack wakes links in the order in which they began to wait, and all of
                    // them at once. The others, which find no room now, wait again before this one.
                    yield_now().await;
                }
            }
        }
    }

    async fn run_timers(&self) -> Infallible {
        loop {
            let woken = self.wake.notified();
            let wait = {
                let mut state = self.lock();
                let now = self.now();
                state.channel.handle_timeout(now);
                self.flush(&mut state, now);
                let at = state.channel.poll_timeout();
                state.alarm = at.unwrap_or(Instant::MAX);
                at.map(|at| at.since(now))
            };
            let alarm = async {
                match wait {
                    Some(wait) => sleep(wait).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = woken => {}
                () = alarm => {}
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the longest datagram that the stack sends to `peer`, from the error for a datagram that
/// is too long.
fn longest(socket: &UdpSocket, peer: SocketAddr) -> usize {
    let too_long = vec![0; usize::from(u16::MAX) + 1];
    let error = socket.try_send_to(&too_long, peer).err();
    let error = error.as_ref().and_then(io::Error::get_ref).and_then(|error| error.downcast_ref());
    match error {
        Some(HostError::MessageSize { max, .. }) => *max,
        // The stack has ended or has no route to the peer: nothing will be sent.
        _ => 0,
    }
}
