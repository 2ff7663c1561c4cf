//! Ports of the far gateway's machine: `-R`.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use airtcp_testbed::Service;
use airtcp_testbed::dumbbell::Dumbbell;
use tokio::net::TcpStream;

use super::intercept::network;
use super::programs::{AGAIN, has};
use super::{Network, Outcome, echoes, is_possible};

#[test]
fn a_port_of_the_far_machine_leads_to_the_near_one() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let _far = network.start_far(&["--permit-listen", "192.0.2.1:8000-8999"])?;
    let echo = network.near().serve("127.0.0.1:0".parse()?, Service::Echo, None)?;
    let forward = |port: u16| format!("192.0.2.1:{port}:{}", echo.address());
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let ways = ["-R", &forward(8000), "-R", &forward(9000)];
    let mut near = network.launch_near(endpoint, &ways)?;
    near.wait_for("start it with --permit-listen 192.0.2.1:9000")?;
    network.servers.block_on(echoes_at("192.0.2.1:8000"))?;
    near.stop()?;
    let closed = network.servers.block_on(TcpStream::connect("192.0.2.1:9000"));
    assert_eq!(closed.err().ok_or("it listens")?.kind(), ErrorKind::ConnectionRefused);
    let _taken = network.far().serve("192.0.2.1:8001".parse()?, Service::Echo, None)?;
    let mut near = network.launch_near(endpoint, &["-R", &forward(8001)])?;
    near.wait_for("another program or near gateway listens on this port")
}

/// Connects to a port, retries until it is open, and checks the echo.
async fn echoes_at(to: &str) -> io::Result<()> {
    let mut stream = loop {
        match TcpStream::connect(to).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    echoes(&mut stream, 100_000).await
}

#[test]
fn what_a_remote_forward_dials_goes_around_interception() -> Outcome {
    if !has(&["ip"]) {
        return Ok(());
    }
    let network = network()?;
    // Strict filtering would look up the return path without the mark.
    network.near().set_sysctl("net.ipv4.conf.all.rp_filter", "2")?;
    let ports = "192.0.2.1:8000-8001";
    let _far = network.start_far(&["--permit-listen", ports])?;
    // The near machine reaches the servers by its default route. The far gateway may not dial them.
    let beyond = |is_ipv6| {
        let at = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, is_ipv6), 0);
        network.far().serve(at, Service::Echo, None)
    };
    let servers = [beyond(false)?, beyond(true)?];
    let [one, two] = [0, 1].map(|n| format!("192.0.2.1:{}:{}", 8000 + n, servers[n].address()));
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let _near = network.start_near(endpoint, &["--intercept", "-R", &one, "-R", &two])?;
    for port in ["192.0.2.1:8000", "192.0.2.1:8001"] {
        network.servers.block_on(echoes_at(port))?;
    }
    Ok(())
}
