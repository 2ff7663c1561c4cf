//! The far gateway: dials the destinations.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use airtcp_net::{Stack, TcpListener, TcpStream};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::carried::Totals;
use crate::dial::{dial, prepare};
use crate::header::{Decoded, Request, reply};
use crate::heartbeat::instance;
use crate::remotes::Remotes;
use crate::sources::{Place, Sources};
use crate::{Carried, Destination, Limits, Refusal, Rule, Rules, Side, splice};

/// The time limit for the rest of a request, once its first byte has arrived.
const REQUEST: Duration = Duration::from_secs(10);

/// How long to read from a refused connection, so that a RST does not overtake the reply.
const LINGER: Duration = Duration::from_secs(5);

/// The number of connections that may wait to be accepted.
const BACKLOG: usize = 4096;

/// The settings of a far gateway.
#[derive(Clone, Debug)]
pub struct FarConfig {
    /// The carrier address and port to listen on.
    pub listen: SocketAddr,
    /// Which destinations the gateway dials.
    pub rules: Rules,
    /// The addresses and ports of this machine that near gateways may listen on.
    pub permit_listen: Vec<Rule>,
    /// The time limit for resolving and dialling a destination.
    pub dial: Duration,
    /// The limits on the number of connections.
    pub limits: Limits,
}

impl FarConfig {
    /// The defaults: 10 s for a dial, no port to listen on, and the defaults of [`Rules`] and
    /// [`Limits`].
    pub fn new(listen: SocketAddr) -> Self {
        let (rules, limits) = (Rules::default(), Limits::default());
        Self { listen, rules, permit_listen: Vec::new(), dial: Duration::from_secs(10), limits }
    }
}

/// A far gateway: a handle, cheap to clone.
#[derive(Clone, Debug)]
pub struct Far(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    listener: TcpListener,
    config: FarConfig,
    instance: u64,
    remotes: Remotes,
    sources: Sources,
    totals: Arc<Totals>,
}

/// The status of a far gateway.
#[derive(Clone, Debug, Serialize)]
pub struct FarStatus {
    /// Near gateways that have connections here.
    pub nears: usize,
    /// Connections carried now.
    pub open: usize,
    /// Pending carrier connections, without a destination yet: opened ahead, dialling, or for
    /// heartbeats.
    pub pending: usize,
    /// Connections carried so far.
    pub opened: u64,
    /// Connections refused so far, by [`Refusal::name`].
    pub refused: BTreeMap<&'static str, u64>,
    /// Bytes sent to near gateways.
    pub sent: u64,
    /// Bytes received from near gateways.
    pub received: u64,
}

impl Far {
    /// Creates a far gateway that listens on `stack`.
    ///
    /// # Errors
    /// As [`Stack::listen`].
    pub fn new(stack: Stack, config: FarConfig) -> io::Result<Self> {
        let listener = stack.listen(config.listen, BACKLOG)?;
        let sources = Sources::new(config.limits);
        let remotes = Remotes::new(config.permit_listen.clone());
        let (instance, totals) = (instance(), Arc::default());
        Ok(Self(Arc::new(Inner { listener, config, instance, remotes, sources, totals })))
    }

    /// Serves until the stack ends, or until it drains ([`Stack::drain`]) and all connections have
    /// ended. Dropping the future earlier resets all connections.
    ///
    /// # Errors
    /// Why the stack ended.
    pub async fn run(self) -> io::Result<Infallible> {
        info!(listen = %self.0.config.listen, "the far gateway listens");
        let mut serving = JoinSet::new();
        loop {
            let (stream, near) = tokio::select! {
                accepted = self.0.listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    // The stack accepts no new connections. Those that are carried continue until
                    // they end.
                    Err(error) => {
                        while serving.join_next().await.is_some() {}
                        return Err(error);
                    }
                },
                Some(_) = serving.join_next() => continue,
            };
            match self.0.sources.enter(near.ip()) {
                Some(place) => drop(serving.spawn(self.0.clone().serve(stream, near, place))),
                None => {
                    debug!(%near, "refused: a limit of connections is reached");
                    self.0.totals.refuse(&Refusal::Busy);
                    turn_away(&stream);
                }
            }
        }
    }

    /// The gateway's current status.
    pub fn status(&self) -> FarStatus {
        let Inner { sources, totals, .. } = &*self.0;
        let (nears, connections) = sources.count();
        let open = totals.open();
        FarStatus {
            nears,
            open,
            pending: connections.saturating_sub(open),
            opened: totals.opened.load(Relaxed),
            refused: totals.refused(),
            sent: totals.sent.load(Relaxed),
            received: totals.received.load(Relaxed),
        }
    }
}

/// Replies with [`Refusal::Busy`], before a request was read.
fn turn_away(stream: &TcpStream) {
    // An error means that the connection has ended already.
    let _ = stream.try_write(&reply(Err(&Refusal::Busy)));
}

impl Inner {
    async fn serve(self: Arc<Self>, stream: TcpStream, near: SocketAddr, mut place: Place) {
        // This only fails if the stack has ended.
        let _ = stream.set_nodelay(true);
        let resets = place.resets();
        let since = resets.count();
        let mut carried = Carried::new(stream, self.totals.clone(), resets, since);
        let request = match read_request(&carried).await {
            Ok(Some(request)) => request,
            // A spare connection that the near gateway closed.
            Ok(None) => return,
            Err(error) => {
                debug!(%near, %error, "a request was not read");
                if error.kind() == ErrorKind::InvalidData {
                    let refusal = Refusal::NoGateway(error.to_string());
                    self.totals.refuse(&refusal);
                    refuse(&mut carried, &refusal).await;
                }
                return;
            }
        };
        match request {
            Request::Control(instance) => {
                if self.sources.on_hello(near.ip(), instance) {
                    warn!(near = %near.ip(), "the near gateway was restarted: its old connections are reset");
                }
                carried.renew();
                let Err(error) = self.answer_heartbeats(&mut carried).await;
                debug!(%near, %error, "a control connection ended");
            }
            Request::Connect(to) => self.connect(carried, &to, &mut place).await,
            Request::Listen(at) => self.listen(carried, near.ip(), at).await,
            Request::Accept(at) => self.accept(carried, near.ip(), at, &mut place).await,
        }
    }

    async fn answer_heartbeats(&self, carried: &mut Carried) -> io::Result<Infallible> {
        let mut hello = reply(Ok(())).to_vec();
        hello.extend(self.instance.to_be_bytes());
        carried.write_all(&hello).await?;
        loop {
            let number = carried.read_u64().await?;
            carried.write_u64(number).await?;
        }
    }

    async fn connect(&self, mut carried: Carried, to: &Destination, place: &mut Place) {
        let dialling = tokio::time::timeout(self.config.dial, dial(to, &self.config.rules, None));
        let dialled = tokio::select! {
            dialled = dialling => dialled.unwrap_or(Err(Refusal::TimedOut)),
            // The near gateway has given up.
            _ = carried.ready(Interest::ERROR) => return,
        };
        match dialled {
            Ok(server) => {
                place.establish();
                carried.count();
                if carried.write_all(&reply(Ok(()))).await.is_ok() {
                    let spliced = splice(carried, server).await;
                    debug!(%to, ?spliced, "ended");
                }
            }
            Err(refusal) => {
                debug!(%to, %refusal, "refused");
                self.totals.refuse(&refusal);
                refuse(&mut carried, &refusal).await;
            }
        }
    }

    /// Keeps a port open for as long as the connection is open.
    async fn listen(&self, mut carried: Carried, near: IpAddr, at: SocketAddr) {
        match self.remotes.listen(near, at) {
            Ok(port) => {
                info!(%near, %at, "listening");
                if carried.write_all(&reply(Ok(()))).await.is_ok() {
                    tokio::select! {
                        // The near gateway sends nothing here; readable means that it closed the
                        // connection.
                        _ = carried.ready(Interest::READABLE) => {}
                        () = port.taken_over() => {}
                    }
                }
            }
            // The near gateway reports the refusal to its user, and asks again.
            Err(refusal) => {
                debug!(%near, %at, %refusal, "not listening");
                refuse(&mut carried, &refusal).await;
            }
        }
    }

    /// Carries the next connection to a port that is open.
    async fn accept(&self, mut carried: Carried, near: IpAddr, at: SocketAddr, place: &mut Place) {
        let Some(port) = self.remotes.get(near, at) else {
            return refuse(&mut carried, &Refusal::NotAllowed).await;
        };
        let program = tokio::select! {
            biased;
            // The near gateway has given up.
            _ = carried.ready(Interest::ERROR) => return,
            // The near gateway has given up, and its reset did not arrive.
            () = port.taken_over() => return,
            program = port.accept() => program,
        };
        drop(port);
        prepare(&program);
        place.establish();
        carried.count();
        if carried.write_all(&reply(Ok(()))).await.is_ok() {
            let spliced = splice(carried, program).await;
            debug!(%at, ?spliced, "ended");
        }
    }
}

async fn refuse(carried: &mut Carried, refusal: &Refusal) {
    let answered = async {
        carried.write_all(&reply(Err(refusal))).await?;
        carried.shutdown().await?;
        // Unread data would turn the close into a RST, which may overtake the reply.
        let mut sink = [0; 1024];
        while carried.read(&mut sink).await? > 0 {}
        io::Result::Ok(())
    };
    // The connection ends even if this timed out.
    let _ = tokio::time::timeout(LINGER, answered).await;
}

/// Reads exactly one request; `None` if the connection ends before the request's first byte.
async fn read_request(carried: &Carried) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    // A spare connection may be idle without a limit.
    carried.ready(Interest::READABLE).await?;
    let reading = async {
        loop {
            let wanted = match Request::decode(&bytes) {
                Ok(Decoded::Request(request, _)) => return Ok(Some(request)),
                Ok(Decoded::Short(wanted)) => wanted,
                Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
            };
            let have = bytes.len();
            bytes.resize(wanted, 0);
            let read = match carried.try_read(&mut bytes[have..]) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    carried.ready(Interest::READABLE).await?;
                    0
                }
                read => read?,
            };
            bytes.truncate(have + read);
        }
    };
    tokio::time::timeout(REQUEST, reading).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_of_a_connection_is_small() {
        fn size<A, F>(_: impl Fn(A) -> F) -> usize {
            size_of::<F>()
        }
        type Accepted = (Arc<Inner>, TcpStream, SocketAddr, Place);
        let task = size(|(far, stream, near, place): Accepted| far.serve(stream, near, place));
        assert!(task <= 4096, "{task} bytes");
    }
}
