//! A node between two kernels, and the sender and the receiver beyond them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use airtcp_device::{Clock, Device, Tun, TunFile};
use airtcp_net::Driver;
use airtcp_testbed::Namespace;
use airtcp_types::{Node, Packet};
use tokio::runtime::{Builder, Runtime};

use crate::flows::Flows;

const TIME: Duration = Duration::from_millis(700);
/// The number of packets in flight at a time, ACKs not counted.
const WINDOW: u64 = 256;
/// After this time without an arrival, the packets in flight count as lost.
const PATIENCE: Duration = Duration::from_millis(20);

/// How many packets are in flight at a time, and for how long.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Load {
    /// A full window, until this many packets have arrived.
    Packets(u64),
    /// A full window, for a fixed time.
    Full,
    /// One packet at a time, for a fixed time.
    Single,
}

/// The result of one load.
pub(crate) struct Sample {
    /// Packets that left the node per second, in both directions.
    pub(crate) per_second: f64,
    /// Sorted one-way delays towards the mobile in microseconds.
    delays: Vec<f64>,
}

impl Sample {
    /// The delay at this quantile.
    pub(crate) fn late(&self, share: f64) -> f64 {
        let index = (self.delays.len() as f64 * share) as usize;
        self.delays.get(index.min(self.delays.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}

pub(crate) struct Path {
    runtime: Runtime,
    /// The devices beyond the kernels: the fixed hosts' and the mobiles'.
    ends: std::cell::RefCell<[Tun; 2]>,
    _namespaces: [Namespace; 2],
}

impl Path {
    /// Starts the node on its own thread, which lasts as long as the process.
    pub(crate) fn start(node: impl Node + Send + 'static) -> Self {
        let namespaces = [(); 2].map(|()| Namespace::new().expect("a namespace"));
        let files = namespaces.each_ref().map(|namespace| {
            namespace.set_sysctl("net.ipv4.ip_forward", "1").expect("forwarding");
            ["end", "node"].map(|name| {
                let file = namespace.run(move || TunFile::open(name)).expect("a TUN device");
                namespace.configure(name, &[], Some(1500)).expect("a device that is up");
                file
            })
        });
        for (index, [near, far]) in
            [["10.1.0.0/16", "10.2.0.0/16"], ["10.2.0.0/16", "10.1.0.0/16"]].iter().enumerate()
        {
            let route = |name, to: &str| {
                namespaces[index]
                    .add_route(name, to.parse().expect("a network"), None)
                    .expect("a route");
            };
            route("end", near);
            route("node", far);
        }
        let [[fixed, wired], [mobile, wireless]] = files;
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let devices = [wired, wireless].map(|file| Tun::new(file).expect("a device"));
                let mut driver = Driver::new(node, devices, Clock::start()).expect("a timer");
                let _ = driver.run().await;
            });
        });
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let ends = {
            let _entered = runtime.enter();
            [fixed, mobile].map(|file| Tun::new(file).expect("a device"))
        };
        Self { runtime, ends: ends.into(), _namespaces: namespaces }
    }

    /// Runs one load and measures it.
    pub(crate) fn load(&self, flows: &mut Flows, load: Load) -> Sample {
        let window = if load == Load::Single { 1 } else { WINDOW };
        let is_over = |arrived, time| match load {
            Load::Packets(count) => arrived >= count,
            Load::Full | Load::Single => time >= TIME,
        };
        let mut ends = self.ends.borrow_mut();
        let [fixed, mobile] = &mut *ends;
        let (mut inbox, mut outbox, mut acks) = (Vec::new(), VecDeque::new(), VecDeque::new());
        let (mut sent, mut arrived, mut acked) = (0_u64, 0_u64, 0_u64);
        let mut delays = Vec::new();
        // Discard packets that the previous load has left in flight.
        let mut heard = Instant::now();
        while heard.elapsed() < PATIENCE {
            for end in [&mut *fixed, &mut *mobile] {
                if end.try_recv(&mut inbox, 64).expect("a device") > 0 {
                    (heard, inbox) = (Instant::now(), Vec::new());
                }
            }
        }
        let begin = Instant::now();
        let mut heard = begin;
        // The devices need their reactor to run.
        self.runtime.block_on(async {
            while !is_over(arrived, begin.elapsed()) {
                let now = Instant::now();
                if now.duration_since(heard) > PATIENCE {
                    // These packets are lost and count in no rate.
                    (sent, heard) = (arrived, now);
                }
                while sent - arrived < window {
                    let mark = begin.elapsed().as_nanos() as u64;
                    outbox.push_back(Packet::new(flows.data(mark)));
                    sent += 1;
                }
                fixed.try_send(&mut outbox);
                mobile.try_recv(&mut inbox, 64).expect("a device");
                for packet in inbox.drain(..) {
                    let Some((mark, ack)) = flows.arrived(&packet.data) else { continue };
                    if arrived == sent {
                        // Taken for lost too early; it is not counted.
                        continue;
                    }
                    let late = (begin.elapsed().as_nanos() as u64).saturating_sub(mark);
                    delays.push(late as f64 / 1e3);
                    arrived += 1;
                    heard = now;
                    acks.extend(ack.map(Packet::new));
                }
                mobile.try_send(&mut acks);
                fixed.try_recv(&mut inbox, 64).expect("a device");
                acked += inbox.drain(..).count() as u64;
                tokio::task::yield_now().await;
            }
        });
        delays.sort_by(f64::total_cmp);
        Sample { per_second: (arrived + acked) as f64 / begin.elapsed().as_secs_f64(), delays }
    }
}
