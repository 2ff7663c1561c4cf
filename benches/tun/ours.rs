//! This stack, with its sockets, on one thread.

use std::net::SocketAddr;

use airtcp::device::{Tun, TunFile};
use airtcp::stack::host::{Cidr, HostConfig};
use airtcp::stack::{Stack, TcpStream};
use airtcp_testbed::Namespace;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::peer::{KERNEL_CIDR, SINK, SOURCE, STACK, Subject};

pub(crate) struct Ours {
    namespace: Namespace,
}

impl Ours {
    pub(crate) fn start() -> Self {
        let namespace = Namespace::new().expect("a namespace");
        let file = namespace.run(|| TunFile::open("tun0")).expect("a TUN device");
        let address = KERNEL_CIDR.parse().expect("an address");
        namespace.configure("tun0", &[address], Some(1500)).expect("the kernel's address");
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let tun = Tun::new(file).expect("a TUN device");
                let own = Cidr::new(STACK.into(), 24).expect("a prefix of 24");
                let stack = Stack::new(tun, HostConfig::new([own])).expect("a stack");
                let listen =
                    |port| stack.listen(SocketAddr::from((STACK, port)), 16).expect("a free port");
                let (sink, source) = (listen(SINK), listen(SOURCE));
                ready.send(()).expect("the bench to wait");
                loop {
                    tokio::select! {
                        Ok((stream, _)) = sink.accept() => { tokio::spawn(drain(stream)); }
                        Ok((stream, _)) = source.accept() => { tokio::spawn(fill(stream)); }
                    }
                }
            });
        });
        is_ready.recv().expect("the stack to come up");
        Self { namespace }
    }
}

impl Subject for Ours {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}

async fn drain(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut count = 0;
    loop {
        match stream.read(&mut buffer).await? {
            0 => break,
            len => count += len as u64,
        }
    }
    stream.write_u64(count).await
}

async fn fill(mut stream: TcpStream) -> std::io::Result<()> {
    let chunk = vec![0x5a; 1 << 16];
    loop {
        stream.write_all(&chunk).await?;
    }
}
