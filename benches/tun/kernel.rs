//! The kernel as what is measured: what can be had where no packet leaves it.

use std::io;
use std::net::SocketAddr;

use airtcp_testbed::peer;

use crate::client::{CONGESTION, STACK};
use crate::services::Service;
use crate::subject::say_ready;

/// Serves until the process is killed: each service on a thread of its own, so that the kernel's
/// echo waits for no bulk but in the kernel.
pub(crate) fn serve() -> io::Result<()> {
    for service in Service::ALL {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let address = SocketAddr::from((STACK, service.port()));
        let listener = runtime.block_on(async { peer::listen(address, Some(CONGESTION)) })?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(service.serve(stream));
                }
            });
        });
    }
    say_ready();
    loop {
        std::thread::park();
    }
}
