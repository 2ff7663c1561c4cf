//! A namespace with a TUN device, this stack behind the device, and an attacker beside the honest
//! peers.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use airtcp_device::{Clock, Tun, TunFile, Watch};
use airtcp_net::Stack;
use airtcp_stack::host::HostConfig;
use airtcp_testbed::{Namespace, RawSender, TestbedError, peer, tun_options};
use airtcp_types::{Crossing, FlowId, Instant, NodeId, Observer, Packet, SeqNumber};
use airtcp_wire::{ip, tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const OURS: [u8; 4] = [10, 78, 0, 2];
/// The packets that the attacker sends before it lets the device's queue drain: a full queue would
/// lose honest packets, too.
const BURST: u32 = 64;
/// The most connections that wait at the listener.
pub(crate) const BACKLOG: usize = 256;

pub(crate) struct Setup {
    pub(crate) namespace: Namespace,
    pub(crate) stack: Stack,
    pub(crate) attacker: RawSender,
    /// The address of the stack's echo service.
    pub(crate) server: SocketAddr,
    pub(crate) numbers: Arc<Mutex<Numbers>>,
}

impl Setup {
    pub(crate) fn new() -> Result<Self, TestbedError> {
        airtcp_testbed::requirements()?;
        let namespace = Namespace::new()?;
        let file =
            namespace.run(|| TunFile::open_with("tun0", tun_options())).expect("a TUN device");
        let kernel = "10.78.0.1/24".parse().expect("an address");
        namespace.configure("tun0", &[kernel], Some(1500))?;
        let attacker = namespace.raw_sender().expect("a raw socket");
        let numbers = Arc::new(Mutex::new(Numbers::default()));
        let device = Tun::new(file).expect("a TUN device in the runtime");
        let config = HostConfig::new(["10.78.0.2/24".parse().expect("an address")]);
        let watch = Watch::new(numbers.clone(), NodeId(0));
        let stack = Stack::watched(device, config, Clock::start(), watch).expect("a stack");
        let server = serve_echo(&stack);
        Ok(Self { namespace, stack, attacker, server, numbers })
    }

    /// Connects from the kernel to the stack's echo service.
    pub(crate) async fn connect(&self) -> TcpStream {
        let server = self.server;
        let connected = self.namespace.spawn(async move { peer::connect(server, None).await });
        connected.await.expect("the kernel's task").expect("a connection to our stack")
    }
}

fn serve_echo(stack: &Stack) -> SocketAddr {
    let listener = stack.listen(SocketAddr::from((OURS, 7)), BACKLOG).expect("a free port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(stream);
                tokio::io::copy(&mut reader, &mut writer).await?;
                writer.shutdown().await
            });
        }
    });
    address
}

/// Sends one KiB and waits until it has come back.
pub(crate) async fn round(stream: &mut TcpStream, seed: u8) {
    try_round(stream, seed).await.expect("the flow goes on");
}

/// Like [`round`], for a flow that may have ended.
pub(crate) async fn try_round(stream: &mut TcpStream, seed: u8) -> io::Result<()> {
    let sent = [seed; 1024];
    stream.write_all(&sent).await?;
    let mut received = [0; 1024];
    stream.read_exact(&mut received).await?;
    assert_eq!(received, sent);
    Ok(())
}

/// Sends packets in bursts, and returns their number.
pub(crate) fn send_all(attacker: &RawSender, packets: impl Iterator<Item = Packet>) -> u32 {
    let mut sent = 0;
    for packet in packets {
        attacker.send(&packet.data).expect("a raw packet leaves");
        sent += 1;
        if sent % BURST == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    sent
}

/// The numbers in the latest packets of the honest flow.
#[derive(Clone, Copy, Default)]
pub(crate) struct Numbers {
    /// The flow from its peer's perspective.
    pub(crate) flow: Option<FlowId>,
    /// The stack's RCV.NXT, and in `snd_nxt` its SND.NXT.
    pub(crate) rcv_nxt: SeqNumber,
    pub(crate) snd_nxt: SeqNumber,
    /// The peer's latest timestamp.
    pub(crate) clock: u32,
}

impl Observer for Numbers {
    fn on_packet(&mut self, _: Instant, _: NodeId, crossing: Crossing, packet: &Packet) {
        let Ok(datagram) = ip::parse(&packet.data) else { return };
        let Ok((src_port, dst_port, segment)) = tcp::parse(datagram.payload) else { return };
        let (src, dst) =
            (SocketAddr::new(datagram.src, src_port), SocketAddr::new(datagram.dst, dst_port));
        let flow = match crossing {
            Crossing::In => FlowId { local: src, remote: dst },
            Crossing::Out => FlowId { local: dst, remote: src },
        };
        match crossing {
            Crossing::In if self.flow.is_none() => self.flow = Some(flow),
            Crossing::Out if self.flow == Some(flow) => {
                self.snd_nxt = segment.seq + segment.len();
                self.rcv_nxt = segment.ack;
                self.clock = segment.options.timestamps.map_or(0, |theirs| theirs.ecr);
            }
            _ => {}
        }
    }
}
