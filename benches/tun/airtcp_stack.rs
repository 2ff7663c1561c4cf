//! This stack with a sink that `airtcp serve` does not have: it copies the data into its own
//! buffer.

use std::io;
use std::net::SocketAddr;

use airtcp::{Cidr, HostConfig, Stack};
use airtcp_device::{Tun, TunFile, TunOptions};

use crate::client::{PREFIX, STACK};
use crate::services::Service;
use crate::subject::{BACKLOG, DEVICE, say_ready};

/// Serves until the process is killed.
pub(crate) fn serve(offload: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let options = TunOptions { offload, ..TunOptions::default() };
        let file = TunFile::open_with(DEVICE, options).map_err(io::Error::other)?;
        let own = Cidr::new(STACK.into(), PREFIX).map_err(io::Error::other)?;
        let tun = Tun::new(file).map_err(io::Error::other)?;
        let stack = Stack::new(tun, HostConfig::new([own]))?;
        for service in [Service::Reader, Service::Echo] {
            let listener = stack.listen(SocketAddr::from((STACK, service.port())), BACKLOG)?;
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(service.serve(stream));
                }
            });
        }
        say_ready();
        Err(stack.closed().await)
    })
}
