//! Reports the activity of a gateway in the path: status, summary at exit, metrics.

use std::fmt;

use airtcp_gateway::split::{Split, SplitStatus};
use airtcp_net::Stack;
use airtcp_recovery::Combination;
use airtcp_stack::Counters;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use serde::Serialize;
use serde_json::Value;

use crate::gateway::ctl::Reported;
use crate::gateway::report::{Carried, put_carried};
use crate::gateway::settings;
use crate::output::{self, Mistake};
use crate::serve::put_stacks;

/// The source of a report, read on demand.
#[derive(Clone, Debug)]
pub(super) struct SplitReport {
    pub(super) split: Split,
    /// The local side's stack, and the link's.
    pub(super) stacks: [Stack; 2],
}

/// The status of a gateway in the path.
#[derive(Debug, Serialize)]
struct Status {
    split: SplitStatus,
    counters: Sides,
}

/// The counters of the stacks, with the names of `nstat`.
#[derive(Debug, Serialize)]
struct Sides {
    local: Counters,
    link: Counters,
}

impl SplitReport {
    fn full_status(&self) -> Status {
        let [local, link] = &self.stacks;
        Status {
            split: self.split.status(),
            counters: Sides { local: local.counters(), link: link.counters() },
        }
    }

    /// Prints the summary at exit: JSON on stdout, or a line for people on stderr.
    ///
    /// # Errors
    /// Writing failed.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return output::print_json(&self.full_status());
        }
        carried(self.split.status()).note();
        Ok(())
    }
}

fn carried(status: SplitStatus) -> Carried {
    let SplitStatus { open, opened, refused, sent, received } = status;
    Carried { open: open as usize, opened, sent, received, refused }
}

impl Reported for SplitReport {
    fn status(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self.full_status())
    }

    fn link(&self) -> &Stack {
        &self.stacks[1]
    }

    fn check(&self, strategies: &Combination) -> Result<(), Mistake> {
        settings::check_strategies(strategies)
    }
}

impl Collector for SplitReport {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        put_stacks(&mut encoder, &self.stacks)?;
        put_carried(&mut encoder, &carried(self.split.status()))
    }
}
