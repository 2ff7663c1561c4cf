//! The near end of the datagram service.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airtcp_net::{Stack, UdpSocket};
use serde::Serialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, coop};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::channel::{Channel, Datagram, DatagramCounters};
use super::frame::MAX_DATAGRAM;
use super::link::Link;
use super::{ANY_V4, ANY_V6, OVERHEAD, REDUNDANCY, instance};
use crate::{Destination, HostAddress};

/// The settings of the datagram service at a near gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NearDatagramsConfig {
    /// The time without a datagram after which an association ends (RFC 4787 REQ-5).
    pub idle: Duration,
    /// The most associations of one source address.
    pub associations_per_source: usize,
    /// The most associations.
    pub associations: usize,
    /// The most bytes that may wait to be received by an association.
    pub association_queue: usize,
    /// The most bytes that may wait to be received by all associations.
    pub queue: usize,
    /// The most repair data, in percent of the data sent. If the path loses datagrams, repair
    /// frames follow them: as many as the loss requires, up to this limit plus 64 kbit/s. 0
    /// disables repairs.
    pub redundancy: u8,
}

impl Default for NearDatagramsConfig {
    /// Idle time of 300 s; 1024 associations of one source and 4096 in all; queues of 512 KiB for
    /// one association and 32 MiB in all.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(300),
            associations_per_source: 1024,
            associations: 4096,
            association_queue: 512 << 10,
            queue: 32 << 20,
            redundancy: REDUNDANCY,
        }
    }
}

/// The status of the datagram service at a near gateway.
#[derive(Clone, Debug, Serialize)]
pub struct NearDatagramsStatus {
    /// Associations now.
    pub associations: usize,
    /// Associations refused because of a limit.
    pub refused: u64,
    /// Datagrams dropped because the program did not receive them in time.
    pub dropped: u64,
    /// The counters of the traffic over the carrier.
    #[serde(flatten)]
    pub counters: DatagramCounters,
}

/// Carries datagrams to a far gateway: a handle, cheap to clone. The service ends with its last
/// handle and association.
#[derive(Clone, Debug)]
pub struct NearDatagrams(Arc<Running>);

#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct Shared {
    config: NearDatagramsConfig,
    socket: Arc<UdpSocket>,
    link: Link,
    table: Mutex<Table>,
    /// A permit for each byte that may wait.
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Table {
    inboxes: HashMap<u32, Arc<Inbox>>,
    by_source: HashMap<IpAddr, usize>,
    last: u32,
    refused: u64,
    dropped: u64,
    /// Why the stack ended.
    ended: Option<ErrorKind>,
}

#[derive(Debug)]
struct Inbox {
    waiting: Mutex<Waiting>,
    /// Notified when a datagram has arrived, or the stack has ended.
    changed: Notify,
}

#[derive(Debug)]
struct Waiting {
    answers: VecDeque<(SocketAddr, Answer, OwnedSemaphorePermit)>,
    bytes: usize,
    last: Instant,
    ended: Option<ErrorKind>,
}

impl NearDatagrams {
    /// Starts to carry datagrams to the far gateway at `far`, in a task on the current tokio
    /// runtime.
    ///
    /// # Errors
    /// As [`Stack::udp_bind`].
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    pub fn start(stack: &Stack, far: SocketAddr, config: NearDatagramsConfig) -> io::Result<Self> {
        let socket = Arc::new(stack.udp_bind(if far.is_ipv4() { ANY_V4 } else { ANY_V6 })?);
        let instance = instance()?;
        let channel = |longest| Channel::new(longest, config.redundancy, instance);
        let shared = Arc::new(Shared {
            config,
            link: Link::new(socket.clone(), far, channel),
            socket,
            table: Mutex::default(),
            room: Arc::new(Semaphore::new(config.queue.min(Semaphore::MAX_PERMITS))),
        });
        let task = tokio::spawn(run(shared.clone())).abort_handle();
        Ok(Self(Arc::new(Running { shared, task })))
    }

    /// Opens an association for the datagrams of a program at `source`: a socket at the far
    /// gateway.
    ///
    /// # Errors
    /// `QuotaExceeded`: a limit on associations, for this source or in all, is reached;
    /// `NotConnected` or `NetworkDown` once the stack has ended.
    pub fn associate(&self, source: SocketAddr) -> io::Result<Association> {
        let shared = &self.0.shared;
        let mut table = shared.table();
        if let Some(kind) = table.ended {
            return Err(kind.into());
        }
        let of_source = table.by_source.get(&source.ip()).copied().unwrap_or(0);
        let per_source = of_source >= shared.config.associations_per_source;
        if per_source || table.inboxes.len() >= shared.config.associations {
            table.refused += 1;
            let whose = if per_source { format!("{} has", source.ip()) } else { "all have".into() };
            let why = format!(
                "{whose} as many UDP associations as may be: close some, or raise the limit"
            );
            return Err(io::Error::new(ErrorKind::QuotaExceeded, why));
        }
        let id = loop {
            table.last = table.last.wrapping_add(1);
            if !table.inboxes.contains_key(&table.last) {
                break table.last;
            }
        };
        let inbox = Arc::new(Inbox {
            waiting: Mutex::new(Waiting {
                answers: VecDeque::new(),
                bytes: 0,
                last: Instant::now(),
                ended: None,
            }),
            changed: Notify::new(),
        });
        table.inboxes.insert(id, inbox.clone());
        *table.by_source.entry(source.ip()).or_default() += 1;
        drop(table);
        shared.link.with(|channel, _| channel.set_source(id, source.ip()));
        Ok(Association { near: self.clone(), id, source: source.ip(), inbox })
    }

    /// The current status.
    pub fn status(&self) -> NearDatagramsStatus {
        let counters = self.0.shared.link.with(|channel, _| channel.counters());
        let table = self.0.shared.table();
        let Table { refused, dropped, .. } = *table;
        NearDatagramsStatus { associations: table.inboxes.len(), refused, dropped, counters }
    }
}

/// The answer of an address to an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A datagram.
    Datagram(Vec<u8>),
    /// The address has refused a datagram: no program listens on the port (Port Unreachable).
    Refused,
}

impl Answer {
    fn cost(&self) -> usize {
        OVERHEAD + if let Self::Datagram(data) = self { data.len() } else { 0 }
    }
}

/// The datagrams of one program's socket. Dropping it closes the socket at the far gateway.
///
/// All its destinations see one address and port (RFC 4787 section 4.1).
#[derive(Debug)]
pub struct Association {
    near: NearDatagrams,
    id: u32,
    source: IpAddr,
    inbox: Arc<Inbox>,
}

impl Association {
    /// Sends a datagram to `to`; the far gateway resolves a name. Does not wait: like a router, it
    /// drops datagrams that do not fit into the queue.
    ///
    /// # Errors
    /// `InvalidInput`: `data` is longer than 65,507 bytes, or `to` is not a destination;
    /// `NotConnected` or `NetworkDown` once the stack has ended.
    pub async fn send_to(&self, data: &[u8], to: &Destination) -> io::Result<usize> {
        let is_sound = match &to.host {
            HostAddress::Ip(_) => true,
            HostAddress::Name(name) => crate::destination::is_name(name),
        };
        if !is_sound || to.port == 0 {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("no host at {to}")));
        }
        self.send(data, to)?;
        Ok(data.len())
    }

    /// Sends an ICMP echo request to `to`: the sequence number (2 bytes) and data.
    /// [`recv`](Self::recv) returns the reply, with port 0.
    ///
    /// # Errors
    /// `InvalidInput`: `data` is longer than 65,507 bytes; `NotConnected` or `NetworkDown` once the
    /// stack has ended.
    pub fn ping(&self, data: &[u8], to: IpAddr) -> io::Result<()> {
        self.send(data, &Destination { host: HostAddress::Ip(to), port: 0 })
    }

    fn send(&self, data: &[u8], to: &Destination) -> io::Result<()> {
        if data.len() > MAX_DATAGRAM {
            let why =
                format!("a datagram or ping has at most {MAX_DATAGRAM} bytes, not {}", data.len());
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        {
            let mut waiting = self.inbox.waiting();
            waiting.ended.map_or(Ok(()), |kind| Err(io::Error::from(kind)))?;
            waiting.last = Instant::now();
        }
        self.near.0.shared.link.with(|channel, now| channel.send(now, self.id, to, data));
        Ok(())
    }

    /// Waits for a datagram; returns its data and its source address.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// `TimedOut`: nothing was sent or received for [`NearDatagramsConfig::idle`]; `NotConnected`
    /// or `NetworkDown`: the stack has ended.
    pub async fn recv(&self) -> io::Result<(Vec<u8>, SocketAddr)> {
        loop {
            if let (Answer::Datagram(data), from) = self.answer().await? {
                return Ok((data, from));
            }
        }
    }

    /// Waits for a datagram or a refusal; returns it and its source address. Refusals are
    /// best-effort: many hosts and firewalls send none, and the kernels on the way limit their
    /// rate.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn answer(&self) -> io::Result<(Answer, SocketAddr)> {
        coop::consume_budget().await;
        loop {
            // Registered before the check, so that a datagram in between is not missed.
            let changed = self.inbox.changed.notified();
            let idle_at = {
                let mut waiting = self.inbox.waiting();
                if let Some((from, answer, _)) = waiting.answers.pop_front() {
                    waiting.bytes -= answer.cost();
                    return Ok((answer, from));
                }
                if let Some(kind) = waiting.ended {
                    return Err(kind.into());
                }
                waiting.last + self.near.0.shared.config.idle
            };
            if idle_at <= Instant::now() {
                return Err(ErrorKind::TimedOut.into());
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(idle_at) => {}
            }
        }
    }

    /// As [`recv`](Self::recv), into `buf`; returns the datagram's length in bytes. Truncates a
    /// datagram that does not fit.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (data, from) = self.recv().await?;
        let len = data.len().min(buf.len());
        buf[..len].copy_from_slice(&data[..len]);
        Ok((len, from))
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        let shared = &self.near.0.shared;
        let mut table = shared.table();
        table.inboxes.remove(&self.id);
        if let Some(count) = table.by_source.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                table.by_source.remove(&self.source);
            }
        }
        drop(table);
        shared.link.with(|channel, _| channel.close(self.id, true));
    }
}

async fn run(shared: Arc<Shared>) {
    let ended = tokio::select! {
        ended = receive(&shared) => ended,
        ended = shared.link.drive() => ended,
    };
    let Err(error) = ended;
    debug!(%error, "datagrams end");
    let mut table = shared.table();
    table.ended = Some(error.kind());
    for inbox in table.inboxes.values() {
        inbox.waiting().ended = Some(error.kind());
        inbox.changed.notify_waiters();
    }
}

async fn receive(shared: &Shared) -> io::Result<Infallible> {
    let mut buf = vec![0; usize::from(u16::MAX)];
    loop {
        let (len, from) = shared.socket.recv_from(&mut buf).await?;
        if from == shared.link.peer() {
            let (datagrams, _) = shared.link.on_frame(&buf[..len]);
            datagrams.into_iter().for_each(|datagram| shared.deliver(datagram));
        }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a datagram into the queue of its association. Drops it if there is no room.
    fn deliver(&self, datagram: Datagram) {
        let Datagram { association, remote, data, is_refusal } = datagram;
        // A far gateway sends addresses only.
        let HostAddress::Ip(ip) = remote.host else { return };
        let mut table = self.table();
        let Some(inbox) = table.inboxes.get(&association).cloned() else {
            drop(table);
            // The close was lost, or has not arrived yet.
            return self.link.with(|channel, _| channel.close(association, true));
        };
        let mut waiting = inbox.waiting();
        let answer = if is_refusal { Answer::Refused } else { Answer::Datagram(data) };
        let cost = answer.cost();
        let permits = u32::try_from(cost).unwrap_or(u32::MAX);
        let permit = self.room.clone().try_acquire_many_owned(permits).ok();
        let fits = waiting.bytes + cost <= self.config.association_queue;
        let Some(permit) = permit.filter(|_| fits) else {
            table.dropped += 1;
            return;
        };
        // RFC 4787 REQ-12: an ICMP error does not end an association. It does not extend it either.
        if !is_refusal {
            waiting.last = Instant::now();
        }
        waiting.bytes += cost;
        waiting.answers.push_back((SocketAddr::new(ip, remote.port), answer, permit));
        inbox.changed.notify_waiters();
    }
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
