//! `basestation foreign-agent`: relays registrations of visiting mobiles, and takes their packets
//! out of tunnels.

pub(super) mod report;
pub(super) mod settings;

use std::path::PathBuf;

use airtcp_basestation::Bridge;
use airtcp_basestation::home::ForeignAgent;
use airtcp_device::{Clock, Tun};
use airtcp_net::Driver;
use clap::Args;

use crate::device::exists;
use crate::output;
use crate::settings::Merge;
use crate::signals::Runner;
use report::Report;
use settings::{Plan, Settings};

/// The capacity of the bridge's queue, in packets: a driver leaves at most one batch of each side
/// there.
const CAPACITY: usize = 512;

/// `basestation foreign-agent`.
#[derive(Args, Debug)]
#[command(after_long_help = "Home agents, mobiles and their keys are in the file: see \
                             docs/foreign-agent.md.")]
pub(super) struct ForeignAgentArgs {
    /// TOML file with [[home-agent]], [[mobile]] and the same keys as the flags; flags override it
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    settings: Settings,
}

/// Runs the foreign agent until it is stopped.
///
/// # Errors
/// A setting is wrong, or a device cannot be opened or was removed.
pub(super) fn run(args: &ForeignAgentArgs) -> anyhow::Result<()> {
    let plan = args.settings.clone().or(crate::settings::read(&args.config)?).plan()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(plan))
}

async fn serve(plan: Plan) -> anyhow::Result<()> {
    let mut runner = Runner::new()?;
    let agent = ForeignAgent::new(Bridge::new(CAPACITY), plan.relay)?;
    let [wired, wireless] = &plan.devices;
    let is_new = plan.devices.iter().any(|name| !exists(name));
    let devices = [Tun::open(wired)?, Tun::open(wireless)?];
    if plan.persist {
        // Only now: an agent that fails to start leaves no device.
        devices.iter().try_for_each(Tun::persist)?;
    }
    let mut driver = Driver::new(agent, devices, Clock::start())?;
    output::note("ready");
    if is_new {
        output::note(format!(
            "{wired} or {wireless} is new: down and without routes; docs/foreign-agent.md, \"Set it up\", has the commands"
        ));
    }
    let report = |driver: &Driver<_, _>| Report::of(driver).print(plan.json);
    let outcome = runner.run(&mut driver, report).await;
    outcome.and(report(&driver))
}
