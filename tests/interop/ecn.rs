//! ECN with the kernel's TCP over a marking queue: every setting of this stack with every setting
//! that the kernel accepts.
//!
//! Linux 6.18 contains AccECN's code, but rejects the values 3 to 5 of `tcp_ecn` that turn it on,
//! so no kernel speaks AccECN here. The test asserts that both ends agree on the best form that
//! both support.

use std::io;
use std::net::SocketAddr;

use airtcp_link::{Link, LinkSpec, Way};
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::{EcnMode, Info};
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{or_skip, peer, requirements};
use tokio::io::AsyncWriteExt;

use crate::MIB;

const BYTES: u64 = 4 * MIB;
const SEED: u64 = 9;
/// A link that marks whenever more than 20 packets wait, and has room for a whole window.
const LINK: &str = "rate 50mbit delay 5ms mark 20 limit 4000";

/// Whether a kernel with this `tcp_ecn` grants ECN to the stack's SYN.
fn granted_to_us(ours: EcnMode, theirs: u8) -> bool {
    let asks = matches!(ours, EcnMode::Active | EcnMode::Accurate | EcnMode::ActiveAccurate);
    asks && theirs != 0
}

/// Whether the kernel asks for ECN and the stack grants it.
fn granted_by_us(ours: EcnMode, theirs: u8) -> bool {
    theirs == 1 && ours != EcnMode::Off
}

fn dumbbell(ours: EcnMode, theirs: u8) -> Dumbbell {
    let spec = |seed| -> LinkSpec { format!("{LINK} seed {seed}").parse().expect("a link") };
    let link = Link::new(&spec(1), &spec(2)).expect("a link");
    let mut config = HostConfig::new([]);
    config.tcp.ecn = ours;
    let plan = Plan::new(Host::Stack(Box::new(config)), link, Host::Kernel);
    let dumbbell = Dumbbell::build(plan).expect("a dumbbell");
    let kernel = dumbbell.right().namespace();
    kernel.set_sysctl("net.ipv4.tcp_ecn", &theirs.to_string()).expect("a setting that it takes");
    dumbbell
}

/// The stack connects and sends.
async fn send(dumbbell: &Dumbbell) -> io::Result<Info> {
    let at = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), 0);
    let kernel = dumbbell.right().namespace();
    let listener = kernel.run(move || peer::listen(at, Some("cubic")))?;
    let to = listener.local_addr()?;
    let receiving = kernel.spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let bytes = peer::receive(&mut stream, SEED).await?;
        stream.write_u64(bytes).await?;
        stream.shutdown().await
    });
    let stack = dumbbell.left().stack().expect("the left host is ours").clone();
    let sending = dumbbell.left().namespace().spawn(async move {
        let mut stream = stack.connect(to).await?;
        assert_eq!(peer::upload(&mut stream, SEED, BYTES).await?, BYTES);
        stream.info()
    });
    let (received, sent) = tokio::join!(receiving, sending);
    received.expect("the kernel's task")?;
    sent.expect("our task")
}

/// The kernel connects and sends.
async fn receive(dumbbell: &Dumbbell) -> io::Result<Info> {
    let at = SocketAddr::new(Dumbbell::address(Dumbbell::LEFT, false), 0);
    let ours = dumbbell.left();
    let listener = ours.stack().expect("the left host is ours").listen(at, 1)?;
    let to = listener.local_addr()?;
    let receiving = ours.namespace().spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let bytes = peer::receive(&mut stream, SEED).await?;
        stream.write_u64(bytes).await?;
        let info = stream.info()?;
        stream.shutdown().await?;
        Ok::<_, io::Error>(info)
    });
    let sending = dumbbell.right().namespace().spawn(async move {
        let mut stream = peer::connect(to, Some("cubic")).await?;
        assert_eq!(peer::upload(&mut stream, SEED, BYTES).await?, BYTES);
        Ok::<_, io::Error>(())
    });
    let (received, sent) = tokio::join!(receiving, sending);
    sent.expect("the kernel's task")?;
    received.expect("our task")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_setting_meets_each_of_the_kernels_and_marks_take_the_place_of_losses() {
    if or_skip(requirements()).is_none() {
        return;
    }
    for ours in EcnMode::ALL {
        for theirs in [0, 1, 2] {
            for we_send in [true, false] {
                let dumbbell = dumbbell(ours, theirs);
                let (info, granted, way) = match we_send {
                    true => (send(&dumbbell).await, granted_to_us(ours, theirs), Way::Forth),
                    false => (receive(&dumbbell).await, granted_by_us(ours, theirs), Way::Back),
                };
                let info = info.expect("a transfer");
                let case = format!("{ours}, tcp_ecn {theirs}, we send: {we_send}");
                assert_eq!((info.ecn, info.accecn), (granted, None), "{case}");
                let counters = dumbbell.counters(way);
                assert_eq!(counters.marked > 0, granted, "{case}: {counters:?}");
                if we_send && granted {
                    assert_eq!(info.bytes_retrans.0, 0, "{case}");
                }
                dumbbell.stop().expect("a link that ran to the end");
            }
        }
    }
}
