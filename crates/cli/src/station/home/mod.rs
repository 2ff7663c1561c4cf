//! `basestation home-agent`: sends the packets of mobiles that are away to where they are.

mod report;
pub(super) mod settings;
mod store;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airtcp_basestation::HomeAgent;
use airtcp_basestation::home::Snapshot;
use airtcp_device::{Clock, Tun};
use airtcp_net::Driver;
use airtcp_types::{Event, Instant, Node, Packet, PortId};
use airtcp_wire::mobility::timestamp;
use clap::Args;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::device::exists;
use crate::output;
use crate::settings::Merge;
use crate::signals::Runner;
use report::Report;
use settings::{Plan, Settings};

/// How often the agent's time is set by the system's clock.
const CLOCK: Duration = Duration::from_secs(10);

/// `basestation home-agent`.
#[derive(Args, Debug)]
#[command(after_long_help = "Mobiles, stations and their keys are in the file: see \
                             docs/home-agent.md.")]
pub(super) struct HomeAgentArgs {
    /// TOML file with [[mobile]], [[station]] and the same keys as the flags; flags override it
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    settings: Settings,
}

/// Runs the home agent until it is stopped.
///
/// # Errors
/// A setting or the stored state is wrong, or the device cannot be opened or was removed.
pub(super) fn run(args: &HomeAgentArgs) -> anyhow::Result<()> {
    let plan = args.settings.clone().or(crate::settings::read(&args.config)?).plan()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(plan))
}

async fn serve(plan: Plan) -> anyhow::Result<()> {
    let mut runner = Runner::new()?;
    let clock = Clock::start();
    let mut agent = HomeAgent::new(plan.agent, clock.now(), time())?;
    let is_new = !exists(&plan.tun);
    // Before the state: only one process has the device, and a second one must not replace
    // registrations of the first.
    let tun = Tun::open(&plan.tun)?;
    let state = store::read(&plan.state)?;
    agent.restore(clock.now(), &state);
    // Now, so that a file that cannot be written is noticed before a mobile registers.
    store::write(&plan.state, &state)?;
    if plan.persist {
        tun.persist()?;
    }
    let (changes, latest) = watch::channel(None);
    let (written, mut stored) = mpsc::channel(1);
    let keeper = Keeper { agent, changes, is_writing: false };
    let mut driver = Driver::new(keeper, [tun], clock)?;
    let writer = tokio::spawn(store::keep(plan.state, latest, written));
    let mut tick = tokio::time::interval(CLOCK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    output::note("ready");
    if is_new {
        let tun = &plan.tun;
        output::note(format!(
            "{tun} is new: down and without routes; docs/home-agent.md, \"Set it up\", has the commands"
        ));
    }
    let report = |driver: &Driver<_, _>| Report::of(driver).print(plan.json);
    let outcome = loop {
        tokio::select! {
            ended = runner.run(&mut driver, report) => break ended,
            Some(number) = stored.recv() => {
                let now = clock.now();
                driver.node_mut().stored(now, number);
            }
            _ = tick.tick() => {
                let now = clock.now();
                driver.node_mut().agent.set_time(now, time());
            }
        }
    };
    writer.abort();
    outcome.and(report(&driver))
}

/// The system's time as a timestamp.
fn time() -> u64 {
    timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A home agent whose changes go to the task that stores them, one after the other: a snapshot has
/// all mobiles, and requests may come faster than the disk writes.
#[derive(Debug)]
struct Keeper {
    agent: HomeAgent,
    changes: watch::Sender<Option<(u64, Snapshot)>>,
    is_writing: bool,
}

impl Keeper {
    /// Passes what changed to the task, unless it is writing.
    fn store(&mut self) {
        if !self.is_writing
            && let Some(change) = self.agent.poll_store()
        {
            self.changes.send_replace(Some(change));
            self.is_writing = true;
        }
    }

    /// Takes the report of the task that it has written the change with this number.
    fn stored(&mut self, now: Instant, number: u64) {
        self.agent.stored(now, number);
        self.is_writing = false;
        self.store();
    }
}

impl Node for Keeper {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        self.agent.handle_packet(now, port, packet);
        self.store();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.agent.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agent.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.agent.poll_event()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use airtcp_basestation::HomeConfig;
    use airtcp_basestation::home::{Algorithm, HomeMobile, Key};
    use airtcp_types::FlowId;
    use airtcp_wire::mobility::{Ends, Message, PORT, Request};
    use airtcp_wire::udp;

    use super::*;

    /// The request of a mobile with this identification, which is also the agent's time.
    fn request(home: IpAddr, home_agent: IpAddr, identification: u64, key: &Key) -> Packet {
        let care_of = [198, 51, 100, 77].into();
        let request = Request { flags: 0, lifetime: 60, home, home_agent, care_of, identification };
        let mut message = Message::Request(request).emit();
        key.sign(&mut message, Ends::MobileHome);
        let flow = FlowId { local: (care_of, 5_000).into(), remote: (home_agent, PORT).into() };
        udp::emit(&flow, 64, &message)
    }

    #[test]
    fn changes_wait_while_one_is_written_and_are_then_written_together() {
        let (home, home_agent): (IpAddr, IpAddr) = ([192, 0, 2, 7].into(), [192, 0, 2, 1].into());
        let key = Key::new(300, Algorithm::HmacSha256, vec![1; 16]).unwrap();
        let config = HomeConfig {
            addresses: vec![home_agent],
            mobiles: vec![HomeMobile { name: "van".to_owned(), address: home, key: key.clone() }],
            stations: Vec::new(),
            lifetime: Duration::from_secs(60),
            mtu: 1_500,
        };
        let agent = HomeAgent::new(config, Instant::ZERO, 1 << 32).unwrap();
        let (changes, mut latest) = watch::channel(None);
        let mut keeper = Keeper { agent, changes, is_writing: false };
        let mut written = || match latest.has_changed().unwrap() {
            true => latest.borrow_and_update().clone().map(|(number, _): (u64, Snapshot)| number),
            false => None,
        };
        for identification in 1..=3 {
            let packet = request(home, home_agent, 1 << 32 | identification, &key);
            keeper.handle_packet(Instant::ZERO, PortId(0), packet);
        }
        assert_eq!((written(), written()), (Some(1), None));
        keeper.stored(Instant::ZERO, 1);
        assert_eq!((written(), written()), (Some(3), None));
        assert!(keeper.poll_transmit(Instant::ZERO).is_none(), "the first request was replaced");
        keeper.stored(Instant::ZERO, 3);
        assert_eq!(written(), None);
        assert!(keeper.poll_transmit(Instant::ZERO).is_some());
    }
}
