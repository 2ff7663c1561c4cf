//! `airtcp gateway ctl`: queries and changes a running gateway.

mod status;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use airtcp_net::Stack;
use airtcp_recovery::Combination;
use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::control::{Asker, Control, NobodyThere, asked};
use crate::output::Mistake;
use crate::ss::{self, Served};
use crate::{example, output, value};

/// The sockets of the systemd units.
const OF_UNITS: [&str; 3] = [
    "/run/airtcp-gateway-near/ctl.sock",
    "/run/airtcp-gateway-far/ctl.sock",
    "/run/airtcp-gateway-split/ctl.sock",
];

/// `airtcp gateway ctl`.
#[derive(Args, Debug)]
pub(super) struct CtlArgs {
    #[command(subcommand)]
    command: Command,
    /// Control socket of the gateway [default: that of the gateway that runs; of several, the near,
    /// far or split one, in this order]
    #[arg(long, value_name = "SOCKET", global = true)]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print what was carried, and with two gateways whether the other one answers
    Status,
    /// List the connections of the gateway, as `ss -tinm` lists the kernel's. Those of near and far
    /// are the ones between them; `spare` are opened ahead
    Ss,
    /// Change a setting of the gateway while it runs
    #[command(subcommand)]
    Set(Setting),
}

#[derive(Subcommand, Debug)]
enum Setting {
    /// Change the strategies for what this gateway sends over the link, also on connections that
    /// are open
    Strategies {
        /// For example rack/cubic or le/westwood/dcr:timer
        #[arg(value_name = "A/B[/C]", value_parser = strategies)]
        strategies: Combination,
    },
}

/// Parses the value of `set strategies`.
fn strategies(text: &str) -> Result<Combination, String> {
    value::parsed(text).map_err(|error| format!("{error}; for example: {}", example::CTL_SET))
}

/// A request to a gateway's control socket. The first is that of `airtcp ss`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
enum Request {
    Connections,
    Status,
    SetStrategies { strategies: String },
}

/// A gateway whose status can be queried.
pub(super) trait Reported: Clone + Send + 'static {
    /// The current status.
    ///
    /// # Errors
    /// None in practice: only those of JSON encoding.
    fn status(&self) -> serde_json::Result<Value>;

    /// The stack that sends over the link.
    fn link(&self) -> &Stack;

    /// The local addresses of the connections that were opened ahead.
    fn spare(&self) -> Vec<SocketAddr> {
        Vec::new()
    }

    /// Rejects strategies that do not work over the link.
    ///
    /// # Errors
    /// The strategies need something that the link does not deliver.
    fn check(&self, strategies: &Combination) -> Result<(), Mistake>;
}

/// A gateway that answers on a control socket.
#[derive(Clone, Debug)]
pub(super) struct Controlled<R> {
    pub(super) served: Served,
    pub(super) report: R,
}

impl<R: Reported> Controlled<R> {
    /// Listens at `path`; without one, at the default path of `ctl` and `airtcp ss` if it is free.
    ///
    /// # Errors
    /// The socket at `path` cannot be created.
    pub(super) fn listen(self, path: Option<&Path>) -> anyhow::Result<()> {
        match path {
            Some(path) => self.listen_at(path),
            None => {
                ss::by_default(&self.served.device, |path| self.clone().listen_at(path));
                Ok(())
            }
        }
    }

    fn listen_at(self, path: &Path) -> anyhow::Result<()> {
        let mut control = Control::open(path, Request::Status)?;
        tokio::spawn(async move {
            loop {
                let ask = asked(Some(&mut control)).await;
                let answer = self.answer(&ask.request);
                ask.answer(answer);
            }
        });
        Ok(())
    }

    fn answer(&self, request: &Request) -> anyhow::Result<Value> {
        match request {
            Request::Connections => {
                let mut answer = self.served.answer()?;
                mark(&mut answer, &self.report.spare());
                Ok(answer)
            }
            Request::Status => Ok(self.report.status()?),
            Request::SetStrategies { strategies } => {
                let combination: Combination = strategies.parse()?;
                self.report.check(&combination)?;
                let changed = self.report.link().set_combination(&combination);
                tracing::info!(%combination, changed, "strategies");
                Ok(json!({"strategies": combination.to_string(), "changed": changed}))
            }
        }
    }
}

/// Marks each connection that was opened ahead and carries nothing yet as `spare`.
fn mark(answer: &mut Value, spare: &[SocketAddr]) {
    let spare: BTreeSet<String> = spare.iter().map(ToString::to_string).collect();
    for connection in answer["connections"].as_array_mut().into_iter().flatten() {
        let is_spare = connection["local"].as_str().is_some_and(|local| spare.contains(local));
        connection["spare"] = is_spare.into();
        if is_spare && let Some(tokens) = connection["tokens"].as_str() {
            connection["tokens"] = format!("spare {tokens}").into();
        }
    }
}

/// Sends the request, and prints the answer.
///
/// # Errors
/// No gateway answers, or the gateway refuses.
pub(super) fn run(args: &CtlArgs) -> anyhow::Result<()> {
    let mut asker = connect(args.control.as_deref())?;
    let request = match &args.command {
        Command::Status => Request::Status,
        Command::Ss => Request::Connections,
        Command::Set(Setting::Strategies { strategies }) => {
            Request::SetStrategies { strategies: strategies.to_string() }
        }
    };
    let answer = asker.ask(&request)?;
    match args.command {
        Command::Ss => ss::print(vec![answer], args.json, ""),
        _ if args.json => output::print_json(&answer),
        Command::Status => output::print(&status::text(&answer)),
        Command::Set(_) => output::print(&format!(
            "{} from now on; open connections that have changed: {}",
            answer["strategies"].as_str().unwrap_or("-"),
            answer["changed"]
        )),
    }
}

fn connect(control: Option<&Path>) -> anyhow::Result<Asker> {
    let looked: Vec<PathBuf> = match control {
        Some(path) => vec![path.to_owned()],
        None => {
            let usual = ["gateway-near", "gateway-far", "gateway-split"];
            let usual = usual.into_iter().filter_map(ss::default_path);
            usual.chain(OF_UNITS.map(PathBuf::from)).collect()
        }
    };
    let mut nobody = None;
    for path in &looked {
        match Asker::connect(path).map_err(anyhow::Error::downcast::<NobodyThere>) {
            Ok(asker) => return Ok(asker),
            Err(Ok(there)) if there.is_left() || control.is_some() => {
                nobody = nobody.or(Some(there));
            }
            Err(Ok(_)) => {}
            Err(Err(error)) => return Err(error),
        }
    }
    match nobody {
        Some(nobody) => Err(anyhow!("{}", nobody.explain("gateway"))),
        None => bail!(
            "no gateway of this user is running: run this as the user of the gateway or with sudo, or name its socket with \
             --control"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_were_opened_ahead_are_marked() {
        let mut answer = json!({"connections": [
            {"local": "10.77.0.2:40000", "tokens": "cubic cwnd:10"},
            {"local": "10.77.0.2:40001", "tokens": "cubic cwnd:10"},
        ]});
        mark(&mut answer, &["10.77.0.2:40001".parse().unwrap()]);
        let expected = json!({"connections": [
            {"local": "10.77.0.2:40000", "tokens": "cubic cwnd:10", "spare": false},
            {"local": "10.77.0.2:40001", "tokens": "spare cubic cwnd:10", "spare": true},
        ]});
        assert_eq!(answer, expected);
    }

    #[test]
    fn what_airtcp_ss_asks_is_understood() {
        let asked = serde_json::to_string(&ss::Request::Connections).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&asked).unwrap(), Request::Connections);
    }
}
