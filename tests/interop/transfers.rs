//! Transfers to and from the kernel's TCP, with each of its congestion controls, over both versions
//! of IP, and over a clean link and one that loses, duplicates and reorders packets in both
//! directions: 24 transfers of 64 MiB, with every byte compared.
//!
//! The duration of each is printed (`--nocapture --test-threads=1`) but not asserted.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use airtcp_link::{Link, LinkSpec, Way};
use airtcp_stack::HostConfig;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Namespace, TestbedError, or_skip, peer, requirements};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::MIB;

const BYTES: u64 = 64 * MIB;
const SEED: u64 = 5;
const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];
const CLEAN: &str = "";
/// The impairments of each direction, which also affect ACKs and handshakes.
const BAD: &str = "loss 2% duplicate 1% delayed 5% 1ms 200us";

/// One of the 24 transfers.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    /// The congestion control of the kernel's sockets.
    control: &'static str,
    /// Whether the kernel sends, or the stack.
    from_kernel: bool,
    is_ipv6: bool,
    /// The impairments in both directions.
    link: &'static str,
}

impl Transfer {
    async fn run(self) {
        let spec = |seed| -> LinkSpec {
            format!("{} seed {seed}", self.link).trim().parse().expect("a link")
        };
        let link = Link::new(&spec(1), &spec(2)).expect("a link");
        let ours = Host::Stack(Box::new(HostConfig::new([])));
        let dumbbell = Dumbbell::build(Plan::new(ours, link, Host::Kernel)).expect("a dumbbell");
        let begin = Instant::now();
        let again = if self.from_kernel {
            self.receive(&dumbbell).await
        } else {
            self.send(&dumbbell).await
        };
        let seconds = begin.elapsed().as_secs_f64();
        let harm = [Way::Forth, Way::Back].map(|way| dumbbell.counters(way));
        dumbbell.stop().expect("a link that ran to the end");
        println!(
            "{:5} {} IPv{} {:9}: {seconds:.2} s, {:.0} Mbit/s, {again} sent again, {} packets lost",
            self.control,
            if self.from_kernel { "kernel to us" } else { "us to kernel" },
            if self.is_ipv6 { 6 } else { 4 },
            if self.link == CLEAN { "clean" } else { "bad" },
            BYTES as f64 * 8e-6 / seconds,
            harm[0].channel_lost + harm[1].channel_lost,
        );
        for harm in harm {
            let done = [harm.channel_lost, harm.duplicated, harm.reordered].map(|count| count > 0);
            assert_eq!(done, [self.link != CLEAN; 3], "{self:?}: {harm:?}");
        }
    }

    /// Sends from the stack, and returns the number of retransmitted segments.
    async fn send(self, dumbbell: &Dumbbell) -> u64 {
        let at = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, self.is_ipv6), 0);
        let kernel = dumbbell.right().namespace();
        let listener = kernel.run(move || peer::listen(at, Some(self.control))).expect("a port");
        let to = listener.local_addr().expect("its address");
        let receiving = kernel.spawn(async move {
            let (stream, _) = listener.accept().await?;
            assert_eq!(peer::congestion(&stream)?, self.control);
            compare(stream).await
        });
        let stack = dumbbell.left().stack().expect("the left host is ours").clone();
        let sending = dumbbell.left().namespace().spawn(async move {
            let mut stream = stack.connect(to).await?;
            assert_eq!(peer::upload(&mut stream, SEED, BYTES).await?, BYTES);
            Ok::<_, io::Error>(stream.info()?.retrans)
        });
        let (received, sent) = tokio::join!(receiving, sending);
        received.expect("the kernel's task").expect("what was sent");
        sent.expect("our task").expect("our connection")
    }

    /// Sends from the kernel, and returns the number of segments it retransmitted.
    async fn receive(self, dumbbell: &Dumbbell) -> u64 {
        let at = SocketAddr::new(Dumbbell::address(Dumbbell::LEFT, self.is_ipv6), 0);
        let ours = dumbbell.left();
        let listener = ours.stack().expect("the left host is ours").listen(at, 1).expect("a port");
        let to = listener.local_addr().expect("its address");
        let receiving =
            ours.namespace().spawn(async move { compare(listener.accept().await?.0).await });
        let kernel = dumbbell.right().namespace();
        let sending = kernel.spawn(async move {
            let mut stream = peer::connect(to, Some(self.control)).await?;
            assert_eq!(peer::congestion(&stream)?, self.control);
            assert_eq!(peer::upload(&mut stream, SEED, BYTES).await?, BYTES);
            Ok::<_, io::Error>(())
        });
        let (received, sent) = tokio::join!(receiving, sending);
        received.expect("our task").expect("what was sent");
        sent.expect("the kernel's task").expect("the kernel's connection");
        kernel.retransmissions().expect("the kernel's counter")
    }
}

/// Reads to the end, compares, and answers with the number of bytes.
async fn compare(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let bytes = peer::receive(&mut stream, SEED).await?;
    stream.write_u64(bytes).await?;
    stream.shutdown().await
}

/// Checks that the kernel has a congestion control, which loads its module.
fn require(control: &str) -> Result<(), TestbedError> {
    let name = control.to_owned();
    let namespace = Namespace::new()?;
    let asked = namespace.run(move || peer::listen(([127, 0, 0, 1], 0).into(), Some(&name)));
    match asked {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(TestbedError::NoControl { name: control.to_owned() })
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs all transfers over one link.
async fn all(link: &'static str) {
    if or_skip(requirements()).is_none() {
        return;
    }
    for control in CONTROLS {
        if or_skip(require(control)).is_none() {
            continue;
        }
        for (from_kernel, is_ipv6) in [(false, false), (false, true), (true, false), (true, true)] {
            Transfer { control, from_kernel, is_ipv6, link }.run().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_transfers_over_a_clean_link_arrive() {
    all(CLEAN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_transfers_over_a_bad_link_arrive() {
    all(BAD).await;
}
