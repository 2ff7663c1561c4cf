//! This stack with its sockets, on a runtime of one thread, with the settings that everybody gets.

use std::io;
use std::net::SocketAddr;

use airtcp::device::{DeviceError, Tun, TunFile, TunOptions};
use airtcp::stack::host::{Cidr, HostConfig};
use airtcp::stack::{Stack, TcpListener};

use crate::client::{PREFIX, STACK};
use crate::services::Service;
use crate::subject::{BACKLOG, DEVICE, say_ready};

fn open(offload: bool) -> Result<TunFile, DeviceError> {
    TunFile::open_with(DEVICE, TunOptions { offload, ..TunOptions::default() })
}

/// Serves until the process is killed.
pub(crate) fn serve(offload: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let tun = open(offload).and_then(Tun::new).map_err(io::Error::other)?;
        let own = Cidr::new(STACK.into(), PREFIX).map_err(io::Error::other)?;
        let stack = Stack::new(tun, HostConfig::new([own]))?;
        for service in Service::ALL {
            let listener = stack.listen(SocketAddr::from((STACK, service.port())), BACKLOG)?;
            tokio::spawn(accept(listener, service));
        }
        say_ready();
        Err(stack.closed().await)
    })
}

async fn accept(listener: TcpListener, service: Service) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(service.serve(stream));
    }
}
