//! The kernel's TCP as the subject: the best possible result, because no packet leaves the kernel.

use std::io;
use std::net::SocketAddr;

use airtcp_testbed::peer;

use crate::client::{CONGESTION, STACK};
use crate::services::Service;
use crate::subject::say_ready;

/// Serves until the process is killed. Each service has its own thread, so that the echo waits for
/// bulk only inside the kernel.
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
