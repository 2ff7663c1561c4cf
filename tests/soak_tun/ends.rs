//! The applications of both sides: servers, and clients that open one connection after another.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airtcp_net::Stack;
use airtcp_types::rng::Stream;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::CALLERS;
use crate::application::{Socket, Tally, count, use_stream};
use crate::network::{self, Network};

/// The port of both services.
const PORT: u16 = 5001;
const STRATEGIES: [&str; 7] = [
    "rack/bbr3/spike",
    "rack/cubic",
    "newreno/reno",
    "sack/westwood",
    "fack/reno",
    "le/westwood-plus",
    "rack/reno",
];
/// How long a client waits for a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a client pauses after a failed connection.
const PAUSE: Duration = Duration::from_millis(100);

type Over = watch::Receiver<bool>;

/// Starts the stack's applications. They end when `over` is set and all their connections have
/// ended.
pub(crate) fn ours(network: &Network, seed: u64, over: Over, tally: Arc<Tally>) -> JoinHandle<()> {
    let stack = network.stack.clone();
    tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        for (place, at) in (0..).zip(network::ours(PORT)) {
            let listener = stack.listen(at, 64).expect("a port");
            let accept = async move || listener.accept().await.map(|(stream, _)| stream);
            tasks.spawn(serve(accept, Stream::new(seed, place), over.clone(), tally.clone()));
        }
        for place in 10..10 + CALLERS {
            let stack = stack.clone();
            let connect = async move |draw: &mut Stream| connect(&stack, draw).await;
            tasks.spawn(call(connect, Stream::new(seed, place), over.clone(), tally.clone()));
        }
        join(tasks).await;
    })
}

async fn connect(stack: &Stack, draw: &mut Stream) -> io::Result<airtcp_net::TcpStream> {
    let to = one_of(&network::kernels(PORT), draw);
    let socket = stack.tcp_socket();
    let strategy = one_of(&STRATEGIES, draw);
    socket.set_combination(&strategy.parse().expect("a combination"))?;
    socket.connect(to).await
}

/// Starts the kernel's applications, which end likewise.
pub(crate) fn kernels(
    network: &Network,
    seed: u64,
    over: Over,
    tally: Arc<Tally>,
) -> JoinHandle<()> {
    network.namespace.spawn(async move {
        let mut tasks = JoinSet::new();
        for (place, at) in (100..).zip(["0.0.0.0", "::"]) {
            let at = SocketAddr::new(at.parse().expect("an address"), PORT);
            let listener = kernel_listener(at).expect("a port");
            let accept = async move || listener.accept().await.map(|(stream, _)| stream);
            tasks.spawn(serve(accept, Stream::new(seed, place), over.clone(), tally.clone()));
        }
        for place in 110..110 + CALLERS {
            let draw = Stream::new(seed, place);
            tasks.spawn(call(kernel_connect, draw, over.clone(), tally.clone()));
        }
        join(tasks).await;
    })
}

fn kernel_listener(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = kernel_socket(at)?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(64)
}

async fn kernel_connect(draw: &mut Stream) -> io::Result<TcpStream> {
    let from = one_of(&network::kernels(0), draw);
    let [v4, v6] = network::ours(PORT);
    let socket = kernel_socket(from)?;
    socket.bind(from)?;
    socket.connect(if from.is_ipv4() { v4 } else { v6 }).await
}

fn kernel_socket(like: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if like.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_keepalive(true)?;
    Ok(socket)
}

async fn serve<S: Socket>(
    accept: impl AsyncFn() -> io::Result<S>,
    mut draw: Stream,
    over: Over,
    tally: Arc<Tally>,
) {
    let mut tasks = JoinSet::new();
    let mut stop = over.clone();
    loop {
        let accepted = tokio::select! {
            accepted = accept() => accepted,
            Some(done) = tasks.join_next() => {
                let () = done.expect("a task that ends well");
                continue;
            }
            _ = stop.wait_for(|over| *over) => break,
        };
        // Accepting can fail with the error of a connection that has failed meanwhile.
        let Ok(stream) = accepted else { continue };
        let (draw, over, tally) = (Stream::new(draw.next_u64(), 0), over.clone(), tally.clone());
        tasks.spawn(async move { use_stream(stream, draw, over, &tally).await });
    }
    join(tasks).await;
}

async fn call<S: Socket>(
    connect: impl AsyncFn(&mut Stream) -> io::Result<S>,
    mut draw: Stream,
    over: Over,
    tally: Arc<Tally>,
) {
    while !*over.borrow() {
        match timeout(PATIENCE, connect(&mut draw)).await {
            Ok(Ok(stream)) => {
                count(&tally.opened, 1);
                let uses = Stream::new(draw.next_u64(), 0);
                use_stream(stream, uses, over.clone(), &tally).await;
            }
            Ok(Err(_)) | Err(_) => {
                count(&tally.failed, 1);
                sleep(PAUSE).await;
            }
        }
        sleep(Duration::from_millis(draw.below(20))).await;
    }
}

async fn join(mut tasks: JoinSet<()>) {
    while let Some(done) = tasks.join_next().await {
        done.expect("a task that ends well");
    }
}

fn one_of<T: Copy>(all: &[T], draw: &mut Stream) -> T {
    all[draw.below(all.len() as u64) as usize]
}
