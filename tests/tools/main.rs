//! The tools as a user types them, against the kernel in a namespace.
//!
//! Without namespaces or TUN devices the tests are skipped with the reason; with
//! `AIRTCP_REQUIRE_NETNS=1` they fail instead.

mod device;
mod look;
mod queues;
mod quick;
mod server;
mod setup;
mod transfer;
mod upload;

use std::net::SocketAddr;

use airtcp_testbed::{Namespace, or_skip, peer, requirements};
use setup::Running;

#[test]
fn serve_with_a_gateway_sets_up_the_device_that_it_makes() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let line = "--tun tun0 --address 10.0.0.2/24 --address fd00::2/128 --gateway 10.0.0.9 \
                --gateway fd01::9 echo:7 --control";
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("serve.sock").display().to_string();
    let line: Vec<_> = line.split_whitespace().chain([socket.as_str()]).collect();
    let serve = Running::serve(&namespace, &line);
    for (server, client) in [("10.0.0.2:7", "10.0.0.9"), ("[fd00::2]:7", "fd01::9")] {
        let server: SocketAddr = server.parse().unwrap();
        let (echoed, from) = namespace
            .block_on(async move {
                let stream = peer::connect(server, None).await?;
                let from = stream.local_addr()?.ip().to_string();
                Ok::<_, std::io::Error>((peer::echo(stream, 1, 10_000).await?, from))
            })
            .unwrap();
        assert_eq!((echoed, from.as_str()), (10_000, client));
    }
    serve.signal("INT");
    assert_eq!(serve.end().0, Some(0));
}
