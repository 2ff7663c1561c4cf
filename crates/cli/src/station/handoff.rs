//! The section `[handoff]` of the settings, and what a status has of it.

use std::net::IpAddr;
use std::time::Duration;

use airtcp_basestation::handoff::{Handoff, HandoffConfig, HandoffCounters};
use airtcp_basestation::home::{ForeignAgent, ForeignCounters, Relay, RelayConfig, RelayCounters};
use airtcp_types::Instant;
use serde::{Deserialize, Serialize};

use super::foreign::report::Visitor;
use super::foreign::settings::{Agent, keys};
use super::home::settings::Peer;
use crate::output::Mistake;
use crate::settings;

const EXAMPLE: &str = "docs/handoff.md has an example";

/// The section `[handoff]`.
#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HandoffSettings {
    addresses: Vec<IpAddr>,
    #[serde(default, deserialize_with = "settings::seconds")]
    lifetime: Option<Duration>,
    #[serde(default)]
    visitors: Option<usize>,
    #[serde(default)]
    home_agent: Vec<Peer>,
    #[serde(default)]
    peer: Vec<Peer>,
    #[serde(default)]
    mobile: Vec<Peer>,
}

/// The validated section.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct HandoffPlan {
    pub(super) relay: RelayConfig,
    pub(super) handoff: HandoffConfig,
}

impl HandoffSettings {
    /// Validates the section, and reads the keys.
    ///
    /// # Errors
    /// A setting is missing, or contradicts another; a key cannot be read.
    pub(super) fn plan(self) -> anyhow::Result<HandoffPlan> {
        let Self { addresses, lifetime, visitors, home_agent, peer, mobile } = self;
        if peer.is_empty() {
            let text = format!("there is no [[handoff.peer]], another station: {EXAMPLE}");
            return Err(Mistake::new(text).into());
        }
        let agent = Agent { addresses, home_agent, mobile, lifetime, visitors };
        let relay = agent.plan("handoff.home-agent", EXAMPLE)?;
        let peers = keys(&peer, EXAMPLE)?;
        // The addresses of all must differ, and have an own address of their version.
        let mut all = relay.clone();
        all.home_agents.extend(peers.iter().cloned());
        Relay::new(all).map_err(|error| Mistake::new(error.to_string()))?;
        let handoff =
            HandoffConfig { peers, mobiles: relay.visitors.max(1_024), ..HandoffConfig::default() };
        Ok(HandoffPlan { relay, handoff })
    }
}

/// What a status has of the handoff.
#[derive(Debug, Default, Serialize)]
pub(super) struct HandoffReport {
    /// The number of registered mobiles.
    pub(super) visitors: usize,
    pub(super) moves: HandoffCounters,
    registrations: RelayCounters,
    tunnels: ForeignCounters,
}

impl HandoffReport {
    pub(super) fn of(agent: &ForeignAgent<Handoff>, now: Instant) -> Self {
        Self {
            visitors: Visitor::all(agent.relay(), now).count(),
            moves: *agent.inner().counters(),
            registrations: agent.relay().counters(),
            tunnels: agent.counters(),
        }
    }
}
