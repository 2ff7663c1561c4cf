//! `basestation home-agent`: sends the packets of mobiles that are away to where they are.

mod report;
mod settings;
mod store;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airtcp_basestation::HomeAgent;
use airtcp_basestation::home::Snapshot;
use airtcp_device::{Clock, Tun};
use airtcp_net::Driver;
use airtcp_types::{Event, Instant, Node, Packet, PortId};
use airtcp_wire::mobility::timestamp;
use anyhow::anyhow;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::device::exists;
use crate::link::caught;
use crate::output;
use report::Report;
use settings::{Plan, Settings};

/// How often the agent's time is set by the system's clock.
const CLOCK: Duration = Duration::from_secs(10);

/// `basestation home-agent`.
#[derive(Args, Debug)]
#[command(after_long_help = "Mobiles, stations and their keys are in the file: see \
                             docs/home-agent.md. The stations of this version do not register \
                             mobiles yet.")]
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
    // Before `ready`, so that a process that waits for it can then send signals.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut report = signal(SignalKind::user_defined1())?;
    let clock = Clock::start();
    let mut agent = HomeAgent::new(plan.agent, clock.now(), time())?;
    let state = store::read(&plan.state)?;
    agent.restore(clock.now(), &state);
    // Now, so that a file that cannot be written is noticed before a mobile registers.
    store::write(&plan.state, &state)?;
    let is_new = !exists(&plan.tun);
    let tun = Tun::open(&plan.tun)?;
    if plan.persist {
        tun.persist()?;
    }
    let (changes, latest) = watch::channel(None);
    let (written, mut stored) = mpsc::channel(1);
    let mut driver = Driver::new(Keeper { agent, changes }, [tun], clock)?;
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
    let outcome = loop {
        tokio::select! {
            Err(gone) = driver.run() => break Err(anyhow!("{gone}; restart to create it again")),
            () = caught(&mut interrupt) => break Ok(()),
            () = caught(&mut terminate) => break Ok(()),
            () = caught(&mut report) => {
                if let Err(error) = Report::of(&driver).print(plan.json) {
                    break Err(error);
                }
            }
            Some(number) = stored.recv() => {
                let now = clock.now();
                driver.node_mut().agent.stored(now, number);
            }
            _ = tick.tick() => {
                let now = clock.now();
                driver.node_mut().agent.set_time(now, time());
            }
        }
    };
    writer.abort();
    outcome.and(Report::of(&driver).print(plan.json))
}

/// The system's time as a timestamp.
fn time() -> u64 {
    timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A home agent whose changes go to the task that stores them.
#[derive(Debug)]
struct Keeper {
    agent: HomeAgent,
    changes: watch::Sender<Option<(u64, Snapshot)>>,
}

impl Node for Keeper {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        self.agent.handle_packet(now, port, packet);
        if let Some(change) = self.agent.poll_store() {
            self.changes.send_replace(Some(change));
        }
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
