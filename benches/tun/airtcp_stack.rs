//! This stack with its sockets, on a runtime of one thread, with the settings that everybody gets; or several of them that
//! are one host.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Barrier};

use airtcp::device::{Clock, Tun, TunFile, TunOptions};
use airtcp::stack::host::{Cidr, HostConfig};
use airtcp::stack::{Chunk, Sibling, Stack, TcpListener, TcpStream};
use tokio::io::AsyncWriteExt;

use crate::client::{PREFIX, STACK};
use crate::services::Service;
use crate::subject::{BACKLOG, DEVICE, say_ready};

/// Serves until the process is killed.
pub(crate) fn serve(offload: bool, queues: u16) -> io::Result<()> {
    let options = TunOptions { offload, multi_queue: queues > 1 };
    let open = || TunFile::open_with(DEVICE, options).map_err(io::Error::other);
    if queues == 1 {
        return run(open()?, Stack::new, say_ready);
    }
    let ready = Arc::new(Barrier::new(queues.into()));
    let mut threads = Vec::new();
    for sibling in Sibling::family(queues, Clock::start())? {
        let (file, ready) = (open()?, ready.clone());
        threads.push(std::thread::spawn(move || {
            let start = |tun, config| Stack::sibling(tun, config, sibling, None);
            run(file, start, || {
                if ready.wait().is_leader() {
                    say_ready();
                }
            })
        }));
    }
    threads.into_iter().try_for_each(|thread| {
        thread.join().map_err(|_| io::Error::other("a queue's thread has panicked"))?
    })
}

/// One stack, on the calling thread.
fn run(
    file: TunFile,
    start: impl FnOnce(Tun, HostConfig) -> io::Result<Stack>,
    say_ready: impl FnOnce(),
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let tun = Tun::new(file).map_err(io::Error::other)?;
        let own = Cidr::new(STACK.into(), PREFIX).map_err(io::Error::other)?;
        let stack = start(tun, HostConfig::new([own]))?;
        for service in Service::ALL {
            let listener = stack.listen(SocketAddr::from((STACK, service.port())), BACKLOG)?;
            tokio::spawn(accept(listener, service));
        }
        say_ready();
        Err(stack.closed().await)
    })
}

/// A sink that copies nothing.
async fn count(mut stream: TcpStream) -> io::Result<()> {
    let (mut chunk, mut count) = (Chunk::default(), 0);
    loop {
        match stream.read_chunk(&mut chunk).await? {
            0 => break,
            length => count += length as u64,
        }
    }
    stream.write_u64(count).await?;
    stream.shutdown().await
}

async fn accept(listener: TcpListener, service: Service) {
    while let Ok((stream, _)) = listener.accept().await {
        match service {
            Service::Sink => tokio::spawn(count(stream)),
            _ => tokio::spawn(service.serve(stream)),
        };
    }
}
