//! `airtcp gateway ctl`: queries and changes a running gateway.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use airtcp_recovery::Combination;
use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::report::Report;
use crate::control::{Asker, Control, NobodyThere, asked};
use crate::ss::{self, Served};
use crate::{output, value};

/// The sockets of the systemd units.
const OF_UNITS: [&str; 2] =
    ["/run/airtcp-gateway-near/ctl.sock", "/run/airtcp-gateway-far/ctl.sock"];

/// `airtcp gateway ctl`.
#[derive(Args, Debug)]
pub(super) struct CtlArgs {
    #[command(subcommand)]
    command: Command,
    /// Control socket of the gateway [default: that of the gateway that runs, the near one of two]
    #[arg(long, value_name = "SOCKET", global = true)]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print whether the other gateway answers, and what was carried
    Status,
    /// List the connections between the gateways, as `ss -tinm` lists the kernel's; `spare` are
    /// those opened ahead
    Ss,
    /// Change a setting of the gateway while it runs
    #[command(subcommand)]
    Set(Setting),
}

#[derive(Subcommand, Debug)]
enum Setting {
    /// Change the strategies for what this gateway sends, also on connections that are open
    Strategies {
        /// For example rack/cubic or le/westwood/dcr:timer
        #[arg(value_name = "A/B[/C]", value_parser = value::strategies)]
        strategies: Combination,
    },
}

/// A request to a gateway's control socket. The first is that of `airtcp ss`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
enum Request {
    Connections,
    Status,
    SetStrategies { strategies: String },
}

/// A gateway that answers on a control socket.
#[derive(Clone, Debug)]
pub(super) struct Controlled {
    pub(super) served: Served,
    pub(super) report: Report,
}

impl Controlled {
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
            Request::Status => Ok(serde_json::to_value(self.report.status())?),
            Request::SetStrategies { strategies } => {
                let combination: Combination = strategies.parse()?;
                self.report.way.check(&combination)?;
                let stacks = self.served.stacks.iter();
                let changed: usize = stacks.map(|stack| stack.set_combination(&combination)).sum();
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
        Command::Status => output::print(&status(&answer)),
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
            let usual = ["gateway-near", "gateway-far"].into_iter().filter_map(ss::default_path);
            usual.chain(OF_UNITS.map(PathBuf::from)).collect()
        }
    };
    for path in &looked {
        match Asker::connect(path) {
            Err(error) if error.is::<NobodyThere>() => {}
            connected => return connected,
        }
    }
    match control {
        Some(path) => {
            Err(anyhow!("no gateway listens on {}: start one with --control", path.display()))
        }
        None => bail!(
            "no gateway of this user is running: run this as the user of the gateway or with sudo, or name its socket with \
             --control"
        ),
    }
}

/// Formats a status for people.
fn status(status: &Value) -> String {
    let near = &status["near"];
    let end = if near.is_null() { &status["far"] } else { near };
    let count = |name: &str| end[name].as_u64().unwrap_or(0);
    let mut lines = Vec::new();
    if !near.is_null() {
        let far = near["far"].as_str().unwrap_or("-");
        let state = match (near["connected"] == true, near["reason"].as_str()) {
            (true, _) => "answers",
            (false, Some(reason)) => reason,
            (false, None) => "is not heard yet",
        };
        let since = near["since"].as_f64().unwrap_or(0.0) / 1e3;
        let rtt = near["rtt"].as_f64().filter(|_| near["connected"] == true);
        let rtt = rtt.map_or(String::new(), |rtt| format!("; round trip {rtt:.1} ms"));
        lines.push(format!("the far gateway at {far} {state} (for {since:.0} s){rtt}"));
    }
    lines.push(format!(
        "connections: {} open, {} carried; {} sent, {} received",
        count("open"),
        count("opened"),
        output::bytes(count("sent")),
        output::bytes(count("received")),
    ));
    let refused: Vec<String> = end["refused"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(reason, count)| format!("{} {count}", reason.replace('_', " ")))
        .collect();
    if !refused.is_empty() {
        lines.push(format!("refused: {}", refused.join(", ")));
    }
    let datagrams = &status["datagrams"];
    let count = |name: &str| datagrams[name].as_u64().unwrap_or(0);
    if count("sent") + count("received") > 0 {
        lines.push(format!(
            "datagrams: {} sent, {} received; lost by the link {}, recovered {}; repairs sent {}",
            count("sent"),
            count("received"),
            count("lost"),
            count("recovered"),
            count("repairs_sent"),
        ));
    }
    for peer in status["peers"].as_array().into_iter().flatten() {
        let ago = |what: &str| {
            let age = peer[format!("seconds_since_{what}")].as_f64();
            age.map_or(format!("no {what} yet"), |age| format!("last {what} {age:.0} s ago"))
        };
        let state = match peer["key"].as_str() {
            Some(key) => {
                let at = peer["endpoint"].as_str().unwrap_or("an unknown address");
                format!("{key} at {at}: {}", ago("handshake"))
            }
            None => format!("{}: {}", peer["addresses"][0].as_str().unwrap_or("-"), ago("packet")),
        };
        lines.push(format!(
            "peer {state}; {} sent, {} received",
            output::bytes(peer["sent_bytes"].as_u64().unwrap_or(0)),
            output::bytes(peer["received_bytes"].as_u64().unwrap_or(0)),
        ));
    }
    if let Some(refused) = status["refused_packets"].as_u64().filter(|refused| *refused > 0) {
        lines.push(format!("packets of others, which were dropped: {refused}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_the_other_end_answers_and_what_was_carried() {
        let near = json!({
            "near": {
                "far": "10.77.0.1:7077", "connected": true, "since": 61_000.5, "rtt": 20.5, "open": 2, "opened": 9, "sent": 2048, "received": 0,
                "refused": {"host_unreachable": 1, "refused": 3},
            },
            "datagrams": {"sent": 7, "received": 6, "lost": 3, "recovered": 2, "repairs_sent": 4},
            "peers": [{
                "key": "KEY=", "endpoint": "192.0.2.1:51820", "seconds_since_handshake": 12.4,
                "sent_bytes": 4096, "received_bytes": 1,
            }],
        });
        let expected = "\
the far gateway at 10.77.0.1:7077 answers (for 61 s); round trip 20.5 ms
connections: 2 open, 9 carried; 2 KiB sent, 0 B received
refused: host unreachable 1, refused 3
datagrams: 7 sent, 6 received; lost by the link 3, recovered 2; repairs sent 4
peer KEY= at 192.0.2.1:51820: last handshake 12 s ago; 4 KiB sent, 1 B received";
        assert_eq!(status(&near), expected);
        let near = json!({"near": {
            "far": "10.77.0.1:7077", "connected": false, "reason": "does not answer", "since": 4_000, "rtt": 20.5,
        }});
        let text = status(&near);
        let first = "the far gateway at 10.77.0.1:7077 does not answer (for 4 s)";
        assert_eq!(text.lines().next(), Some(first));
        let far = json!({
            "far": {"open": 0, "opened": 0, "sent": 0, "received": 0, "refused": {}},
            "peers": [{"key": "KEY=", "endpoint": null, "sent_bytes": 0, "received_bytes": 0}],
        });
        let expected = "\
connections: 0 open, 0 carried; 0 B sent, 0 B received
peer KEY= at an unknown address: no handshake yet; 0 B sent, 0 B received";
        assert_eq!(status(&far), expected);
        let far = json!({
            "far": {"open": 0, "opened": 0, "sent": 0, "received": 0, "refused": {}},
            "peers": [
                {"key": null, "addresses": ["10.77.0.2"], "seconds_since_packet": 1.2, "sent_bytes": 9, "received_bytes": 0},
                {"key": null, "addresses": ["10.77.0.3"], "sent_bytes": 0, "received_bytes": 0},
            ],
            "refused_packets": 7,
        });
        let expected = "\
connections: 0 open, 0 carried; 0 B sent, 0 B received
peer 10.77.0.2: last packet 1 s ago; 9 B sent, 0 B received
peer 10.77.0.3: no packet yet; 0 B sent, 0 B received
packets of others, which were dropped: 7";
        assert_eq!(status(&far), expected);
    }

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
