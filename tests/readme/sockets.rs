//! Probes sockets for the features in docs/capabilities.md.

use std::io::ErrorKind;
use std::time::Duration;

use airtcp_device::memory;
use airtcp_net::Stack;
use airtcp_stack::HostConfig;

pub(crate) fn take_every_destination() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (left, right) = memory::pair(1500, 16);
        let gateway = Stack::new(left, HostConfig::new([])).unwrap();
        let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse().unwrap()])).unwrap();
        let listener = gateway.listen_any(1).unwrap();
        let datagrams = gateway.udp_bind_any();
        let to = "192.0.2.7:80".parse().unwrap();
        let accepting = async { listener.next().await?.accept().await?.local_addr() };
        let (_stream, local) = tokio::try_join!(client.connect(to), accepting).unwrap();
        local == to && datagrams.is_ok()
    })
}

pub(crate) fn have_tokios_calls() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (left, right) = memory::pair(1500, 16);
        let stack = |device, address: &str| {
            Stack::new(device, HostConfig::new([address.parse().unwrap()])).unwrap()
        };
        let (server, client) = (stack(left, "10.0.0.1/24"), stack(right, "10.0.0.2/24"));
        let socket = server.tcp_socket();
        socket.bind("10.0.0.1:80".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let one = client.connect(listener.local_addr().unwrap()).await.unwrap();
        let (other, _) = listener.accept().await.unwrap();
        let empty = other.try_read(&mut [0; 4]).unwrap_err();
        one.try_write(b"look").unwrap();
        other.readable().await.unwrap();
        let mut seen = [0; 4];
        let (peeked, read) = (other.peek(&mut seen).await.unwrap(), other.try_read(&mut seen));
        drop((one, other));
        server.drain(Duration::from_secs(3600)).await;
        empty.kind() == ErrorKind::WouldBlock && peeked == 4 && read.unwrap() == 4
    })
}
