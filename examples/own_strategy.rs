//! A congestion control of your own: the window grows by a segment per round trip and shrinks by a
//! quarter on a loss.
use airtcp::recovery::{registry::*, *};
use airtcp::{HostConfig, Stack, TcpConfig, types::ByteCount};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[derive(Debug)]
struct Steady {
    smss: ByteCount,
    cwnd: ByteCount,
}

impl CongestionControl for Steady {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        if ack.round_start && ack.cwnd_limited {
            self.cwnd += self.smss;
        }
    }
    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { .. } => self.cwnd = self.cwnd.scale(0.75).max(self.smss * 2),
            NoticeKind::Timeout { .. } => self.cwnd = self.smss,
            _ => {}
        }
    }
    fn window(&self) -> ByteCount {
        self.cwnd
    }
    fn state(&self) -> ControlState {
        ControlState { ssthresh: None, mode: "steady" }
    }
}

static STEADY: Entry<dyn CongestionControl> = Entry {
    name: "steady",
    summary: "a segment more per round trip, a quarter less on a loss",
    source: "this example",
    make: |_, params| Ok(Box::new(Steady { smss: params.smss, cwnd: params.initial_window })),
    ..Entry::BLANK
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (left, right) = airtcp::device::memory::pair(1500, 256);
    let server = Stack::new(left, HostConfig::new(["10.0.0.1/24".parse()?]))?;
    let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
    let (address, mut tcp) = ("10.0.0.1:7".parse()?, TcpConfig::default());
    tcp.sender.combination = tcp.sender.combination.with_control(Choice::new(&STEADY, None)?);
    let listener = server.listen(address, 1)?;
    let mut stream = client.connect_with(address, tcp).await?;
    let (mut accepted, _) = listener.accept().await?;
    let mut received = vec![0; 1 << 20];
    tokio::try_join!(stream.write_all(&[7; 1 << 20]), accepted.read_exact(&mut received))?;
    println!("{} bytes by {}", received.len(), stream.info()?.combination);
    Ok(())
}
