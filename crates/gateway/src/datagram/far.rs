//! The far end of the datagram service.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airtcp_net::{Stack, UdpSocket};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, interval};
use tracing::debug;

use super::channel::{Channel, Datagram, DatagramCounters};
use super::frame::{Answer, Data, Flow, Frame};
use super::link::Link;
use super::outside::{Common, Dropped, Filtering, Outgoing, Outside};
use super::{OVERHEAD, REDUNDANCY, instance};
use crate::Rules;

/// The most datagrams that may wait in an association to be sent.
const QUEUE: usize = 256;
/// The most names that are resolved at a time.
const RESOLVING: usize = 32;
/// The most near gateways at one address. Excess ones are leftovers of a gateway that was
/// restarted: the oldest is dropped.
const PER_ADDRESS: usize = 4;
/// The interval between checks for peers that have gone.
const SWEEP: Duration = Duration::from_secs(10);

/// The settings of the datagram service at a far gateway.
#[derive(Clone, Debug)]
pub struct FarDatagramsConfig {
    /// Which destinations may be sent to.
    pub rules: Rules,
    /// From whom an association receives datagrams.
    pub filtering: Filtering,
    /// The time without a datagram after which an association ends (RFC 4787 REQ-5).
    pub idle: Duration,
    /// The most near gateways.
    pub peers: usize,
    /// The most associations of one near gateway. Each has up to two sockets.
    pub associations_per_peer: usize,
    /// The most associations of all near gateways.
    pub associations: usize,
    /// The most bytes of one near gateway that may wait to be sent to destinations.
    pub peer_queue: usize,
    /// The most bytes of all near gateways that may wait to be sent to destinations.
    pub queue: usize,
    /// The most repair data, in percent; as
    /// [`NearDatagramsConfig::redundancy`](super::NearDatagramsConfig::redundancy).
    pub redundancy: u8,
    /// The most bytes of frames and repairs kept to recover lost frames, for all near gateways.
    /// When the limit is reached, fewer frames are recovered.
    pub repair_memory: usize,
}

impl Default for FarDatagramsConfig {
    /// [`Rules::default`], endpoint-independent filtering, idle time of 300 s; 256 peers, 4096
    /// associations of one peer and 16,384 in all; queues of 8 MiB for one peer and 64 MiB for all;
    /// 64 MiB for repairs.
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            filtering: Filtering::default(),
            idle: Duration::from_secs(300),
            peers: 256,
            associations_per_peer: 4096,
            associations: 16_384,
            peer_queue: 8 << 20,
            queue: 64 << 20,
            redundancy: REDUNDANCY,
            repair_memory: 64 << 20,
        }
    }
}

/// The status of the datagram service at a far gateway.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FarDatagramsStatus {
    /// Near gateways now.
    pub peers: usize,
    /// Associations now.
    pub associations: usize,
    /// Datagrams dropped because the limit on peers or associations is reached.
    pub refused: u64,
    /// Datagrams dropped because too much data waited to be sent.
    pub dropped: u64,
    /// Datagrams dropped because the rules do not allow their destination.
    pub not_allowed: u64,
    /// Datagrams dropped because the name of their destination has no address.
    pub unresolved: u64,
    /// Datagrams that the kernel refused to send.
    pub unsendable: u64,
    /// Datagrams dropped because filtering excludes their source.
    pub filtered: u64,
    /// The counters of the traffic over the carrier.
    #[serde(flatten)]
    pub counters: DatagramCounters,
}

/// Sends datagrams of near gateways to their destinations, and returns the answers.
#[derive(Debug)]
pub struct FarDatagrams {
    config: FarDatagramsConfig,
    common: Arc<Common>,
    socket: Arc<UdpSocket>,
    instance: u32,
    room: Arc<Semaphore>,
    repair_room: Arc<Semaphore>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    peers: HashMap<SocketAddr, Peer>,
    associations: usize,
    refused: u64,
    dropped: u64,
    /// The counters of peers that have gone.
    past: DatagramCounters,
}

#[derive(Debug)]
struct Peer {
    link: Arc<Link>,
    driver: AbortHandle,
    associations: HashMap<u32, mpsc::Sender<Outgoing>>,
    room: Arc<Semaphore>,
    heard: Instant,
}

/// The result of a task: `None` for the driver of a peer, else the peer and association that ended.
type Ended = Option<(SocketAddr, u32)>;

impl FarDatagrams {
    /// Binds the carrier address `listen`.
    ///
    /// # Errors
    /// As [`Stack::udp_bind`].
    pub fn new(stack: &Stack, listen: SocketAddr, config: FarDatagramsConfig) -> io::Result<Self> {
        let common = Common {
            rules: config.rules.clone(),
            filtering: config.filtering,
            idle: config.idle,
            resolver: Semaphore::new(RESOLVING),
            dropped: Dropped::default(),
        };
        let room = |bytes: usize| Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Ok(Self {
            common: Arc::new(common),
            socket: Arc::new(stack.udp_bind(listen)?),
            instance: instance()?,
            room: room(config.queue),
            repair_room: room(config.repair_memory),
            table: Mutex::default(),
            config,
        })
    }

    /// Serves until the stack ends, or the future is dropped.
    ///
    /// # Errors
    /// Why the stack ended.
    pub async fn run(&self) -> io::Result<Infallible> {
        let mut tasks = JoinSet::<Ended>::new();
        let mut sweep = interval(SWEEP);
        let mut buf = vec![0; usize::from(u16::MAX)];
        let ended = loop {
            tokio::select! {
                received = self.socket.recv_from(&mut buf) => match received {
                    Ok((len, from)) => self.on_frame(&mut tasks, from, &buf[..len]),
                    Err(error) => break error,
                },
                Some(ended) = tasks.join_next() => {
                    if let Ok(Some((peer, association))) = ended {
                        self.on_end(peer, association);
                    }
                }
                _ = sweep.tick() => self.sweep(),
            }
        };
        let mut table = self.table();
        let gone: Vec<_> = table.peers.keys().copied().collect();
        gone.into_iter().for_each(|peer| table.remove(peer));
        Err(ended)
    }

    /// The current status.
    pub fn status(&self) -> FarDatagramsStatus {
        let table = self.table();
        let mut counters = table.past;
        for peer in table.peers.values() {
            counters += peer.link.with(|channel, _| channel.counters());
        }
        let dropped = &self.common.dropped;
        FarDatagramsStatus {
            peers: table.peers.len(),
            associations: table.associations,
            refused: table.refused,
            dropped: table.dropped,
            not_allowed: dropped.not_allowed.load(Ordering::Relaxed),
            unresolved: dropped.unresolved.load(Ordering::Relaxed),
            unsendable: dropped.unsendable.load(Ordering::Relaxed),
            filtered: dropped.filtered.load(Ordering::Relaxed),
            counters,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_frame(&self, tasks: &mut JoinSet<Ended>, from: SocketAddr, frame: &[u8]) {
        let mut table = self.table();
        // A restarted near gateway may have the port of its predecessor: answers for the
        // predecessor must not reach its programs.
        let is_restarted =
            |peer: &Peer, instance| peer.link.with(|channel, _| channel.is_restarted(instance));
        if let (Some(peer), Some(instance)) = (table.peers.get(&from), sender(frame))
            && is_restarted(peer, instance)
        {
            debug!(%from, "the near gateway was restarted");
            table.remove(from);
        }
        if !table.peers.contains_key(&from) && !self.admit(&mut table, tasks, from, frame) {
            return;
        }
        let Table { peers, associations, refused, dropped, .. } = &mut *table;
        let Some(peer) = peers.get_mut(&from) else { return };
        peer.heard = Instant::now();
        let (datagrams, closed) = peer.link.on_frame(frame);
        if let Some(closed) = closed
            && peer.associations.remove(&closed).is_some()
        {
            *associations -= 1;
        }
        // This end has no program that a refusal could be reported to.
        let datagrams = datagrams.into_iter().filter(|datagram| !datagram.is_refusal);
        for Datagram { association: id, remote: to, data, .. } in datagrams {
            let known = peer.associations.get(&id).filter(|sender| !sender.is_closed()).cloned();
            let sender = match known {
                Some(sender) => sender,
                None => {
                    if peer.associations.remove(&id).is_some() {
                        *associations -= 1;
                    }
                    let of_peer = peer.associations.len();
                    if of_peer >= self.config.associations_per_peer
                        || *associations >= self.config.associations
                    {
                        *refused += 1;
                        peer.link.with(|channel, _| channel.close(id, false));
                        continue;
                    }
                    let (sender, receiver) = mpsc::channel(QUEUE);
                    let outside = Outside::new(self.common.clone(), peer.link.clone(), id);
                    tasks.spawn(async move {
                        outside.run(receiver).await;
                        Some((from, id))
                    });
                    peer.associations.insert(id, sender.clone());
                    *associations += 1;
                    sender
                }
            };
            let permits = u32::try_from(data.len() + OVERHEAD).unwrap_or(u32::MAX);
            let of_peer = peer.room.clone().try_acquire_many_owned(permits);
            let of_all = self.room.clone().try_acquire_many_owned(permits);
            let sent = match (of_peer, of_all) {
                (Ok(of_peer), Ok(of_all)) => {
                    sender.try_send(Outgoing { to, data, _permits: [of_peer, of_all] }).is_ok()
                }
                _ => false,
            };
            *dropped += u64::from(!sent);
        }
    }

    /// Handles a frame from an unknown peer. A frame that opens a flow adds the peer; other data
    /// frames are answered `unknown`, so that the peer opens its flows again. Returns whether the
    /// peer was added.
    fn admit(
        &self,
        table: &mut Table,
        tasks: &mut JoinSet<Ended>,
        from: SocketAddr,
        frame: &[u8],
    ) -> bool {
        match Frame::parse(frame) {
            Ok(Frame::Data(Data { flow: Flow::Open(..), .. })) => {}
            Ok(Frame::Data(Data { flow: Flow::Mine(flow), .. })) => {
                let answer = Answer { known: false, flow, instance: self.instance, echo: 0 };
                // If the stack has no room, the next datagram is answered.
                let _ = self.socket.try_send_to(&Frame::Answer(answer).to_bytes(), from);
                return false;
            }
            Ok(_) => return false,
            Err(error) => {
                debug!(%from, %error, "frame dropped");
                table.past.malformed += 1;
                return false;
            }
        }
        let same = |peer: &&SocketAddr| peer.ip() == from.ip();
        if table.peers.keys().filter(same).count() >= PER_ADDRESS {
            table.remove_oldest(from.ip());
        }
        if table.peers.len() >= self.config.peers {
            table.refused += 1;
            return false;
        }
        let channel = |longest| {
            let channel = Channel::new(longest, self.config.redundancy, self.instance);
            channel.share(self.repair_room.clone())
        };
        let link = Arc::new(Link::new(self.socket.clone(), from, channel));
        let driven = link.clone();
        let driver = tasks.spawn(async move {
            let Err(error) = driven.drive().await;
            debug!(%error, "datagrams to a peer end");
            None
        });
        let room = Arc::new(Semaphore::new(self.config.peer_queue.min(Semaphore::MAX_PERMITS)));
        let peer = Peer { link, driver, associations: HashMap::new(), room, heard: Instant::now() };
        table.peers.insert(from, peer);
        true
    }

    fn on_end(&self, peer: SocketAddr, association: u32) {
        let mut table = self.table();
        let Table { peers, associations, .. } = &mut *table;
        let Some(peer) = peers.get_mut(&peer) else { return };
        // A new association may have the same number by now.
        if peer.associations.get(&association).is_some_and(mpsc::Sender::is_closed) {
            peer.associations.remove(&association);
            *associations -= 1;
        }
    }

    /// Removes the peers that have no association and were idle for too long.
    fn sweep(&self) {
        let mut table = self.table();
        let gone: Vec<_> = table
            .peers
            .iter()
            .filter(|(_, peer)| peer.associations.is_empty())
            .filter(|(_, peer)| peer.heard.elapsed() >= self.config.idle)
            .map(|(address, _)| *address)
            .collect();
        gone.into_iter().for_each(|peer| table.remove(peer));
    }
}

/// Returns the sender's instance, for frames that contain it.
fn sender(frame: &[u8]) -> Option<u32> {
    match Frame::parse(frame) {
        Ok(Frame::Data(Data { flow: Flow::Open(_, open), .. })) => Some(open.instance),
        Ok(Frame::Answer(answer)) => Some(answer.instance),
        _ => None,
    }
}

impl Table {
    /// Removes a peer; its associations end because their senders are dropped.
    fn remove(&mut self, peer: SocketAddr) {
        let Some(peer) = self.peers.remove(&peer) else { return };
        peer.driver.abort();
        self.associations -= peer.associations.len();
        self.past += peer.link.with(|channel, _| channel.counters());
    }

    fn remove_oldest(&mut self, ip: IpAddr) {
        let same = self.peers.iter().filter(|(address, _)| address.ip() == ip);
        if let Some(oldest) = same.min_by_key(|(_, peer)| peer.heard).map(|(address, _)| *address) {
            self.remove(oldest);
        }
    }
}
