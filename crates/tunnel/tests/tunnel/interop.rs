//! A stock WireGuard peer: wireguard-go with the kernel's TCP behind it, in a network namespace.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use airtcp_testbed::{Namespace, Service, or_skip, peer, requirements};
use airtcp_tunnel::{PresharedKey, PrivateKey, Tunnel, TunnelConfig};
use data_encoding::{BASE64, HEXLOWER};
use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;

use crate::kit::NEAR;

const BYTES: u64 = 4 << 20;

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|at| at.join(program)).find(|file| file.is_file())
}

fn hex(key: &str) -> String {
    HEXLOWER.encode(&BASE64.decode(key.as_bytes()).unwrap())
}

/// The configuration protocol of <https://www.wireguard.com/xplatform/>.
fn ask(socket: &Path, request: &str) -> String {
    let mut answer = String::new();
    let mut stream = (0..200)
        .find_map(|_| {
            UnixStream::connect(socket).ok().or_else(|| {
                sleep(Duration::from_millis(25));
                None
            })
        })
        .expect("wireguard-go is up");
    stream.write_all(format!("{request}\n\n").as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn tcp_to_and_from_the_kernel_behind_wireguard_go() {
    let Some(program) = on_path("wireguard-go") else {
        eprintln!("SKIPPED: wireguard-go is not on PATH");
        return;
    };
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let name = format!("wg{}", std::process::id());
    let mut command = Command::new(program);
    command.args(["-f", &name]).env("LOG_LEVEL", "error");
    let mut child = namespace.spawn_child(command).unwrap();

    let (near_key, far_key, shared) =
        (PrivateKey::generate(), PrivateKey::generate(), PresharedKey::generate());
    let control = PathBuf::from(format!("/var/run/wireguard/{name}.sock"));
    let request = format!(
        "set=1\nprivate_key={}\nlisten_port=51820\npublic_key={}\npreshared_key={}\nallowed_ip={NEAR}/32",
        hex(&far_key.to_string()),
        hex(&near_key.public_key().to_string()),
        hex(&shared.to_string()),
    );
    assert!(ask(&control, &request).contains("errno=0"));
    namespace.configure(&name, &["10.77.0.1/24".parse().unwrap()], Some(1420)).unwrap();
    let kernel = namespace.serve("10.77.0.1:7".parse().unwrap(), Service::Echo, None).unwrap();

    let socket = namespace.run(|| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    socket.set_nonblocking(true).unwrap();
    let mut config = TunnelConfig::new(near_key);
    let mut far = crate::kit::peer(far_key.public_key(), crate::kit::FAR, None);
    far.endpoint = Some(SocketAddr::from(([127, 0, 0, 1], 51_820)));
    far.preshared_key = Some(shared);
    config.peers.push(far);
    let tunnel = Tunnel::new(UdpSocket::from_std(socket).unwrap(), config).unwrap();
    let handle = tunnel.handle();
    let near = Stack::new(tunnel, HostConfig::new(["10.77.0.2/24".parse().unwrap()])).unwrap();

    let stream = near.connect(kernel.address()).await.unwrap();
    assert_eq!(peer::echo(stream, 1, BYTES).await.unwrap(), BYTES);

    let address = "10.77.0.2:7".parse().unwrap();
    let listener = near.listen(address, 16).unwrap();
    let calling = namespace
        .spawn(async move { peer::echo(peer::connect(address, None).await?, 2, BYTES).await });
    let (stream, _) = listener.accept().await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    tokio::io::copy(&mut reader, &mut writer).await.unwrap();
    writer.shutdown().await.unwrap();
    assert_eq!(calling.await.unwrap().unwrap(), BYTES);

    let status = handle.peers().remove(0);
    assert!(
        status.last_handshake.is_some() && status.rx_invalid + status.rx_refused == 0,
        "{status:?}"
    );
    assert!(ask(&control, "get=1").contains("last_handshake_time_sec="));
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = std::fs::remove_file(control);
}
