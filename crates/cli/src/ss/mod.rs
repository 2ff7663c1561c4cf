//! `airtcp ss`: lists the connections of running stacks, in the format of `ss -tinm`.

mod served;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use serde_json::Value;

use crate::control::{Asker, NobodyThere};
use crate::signals::Signals;
use crate::{output, value};

pub(crate) use served::{Request, Served, by_default};

/// The directory of the sockets of root's servers and gateways; those of other users are below
/// `$XDG_RUNTIME_DIR`.
const DIRECTORY: &str = "/run/airtcp-serve";

/// The directories of the sockets of the gateways' units.
const OF_UNITS: [&str; 3] =
    ["/run/airtcp-gateway-near", "/run/airtcp-gateway-far", "/run/airtcp-gateway-split"];

/// Clears a terminal and moves the cursor to its start.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// `airtcp ss`.
#[derive(Args, Debug)]
pub(crate) struct SsArgs {
    /// Control socket of a command [default: those of all `airtcp serve` and `airtcp gateway` of
    /// this user]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Repeat at this interval [default: 1] until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          allow_negative_numbers = true, value_parser = value::seconds)]
    watch: Option<Duration>,
    /// Print JSON, one line at a time
    #[arg(long)]
    json: bool,
}

/// Queries the commands, and prints their responses.
///
/// # Errors
/// No command is running, or one does not respond.
pub(crate) fn run(args: &SsArgs) -> anyhow::Result<()> {
    let Some(pause) = args.watch else { return show(args) };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut signals = Signals::new()?;
        loop {
            show(args)?;
            tokio::select! {
                _ = signals.wait() => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    })
}

fn show(args: &SsArgs) -> anyhow::Result<()> {
    let mut answers = Vec::new();
    match &args.control {
        Some(path) => {
            let answer = ask(path);
            answers.push(answer.map_err(|error| match error.downcast_ref::<NobodyThere>() {
                Some(nobody) => anyhow!("{}", nobody.explain("command")),
                None => error,
            })?);
        }
        None => {
            let mut left = None;
            for path in directories().iter().flat_map(|directory| sockets(directory)) {
                match ask(&path).map_err(anyhow::Error::downcast::<NobodyThere>) {
                    Ok(answer) => answers.push(answer),
                    Err(Ok(nobody)) => left = Some(nobody).filter(NobodyThere::is_left).or(left),
                    Err(Err(error)) => return Err(error),
                }
            }
            if let Some(nobody) = left.filter(|_| answers.is_empty()) {
                bail!("{}", nobody.explain("command"));
            }
            if answers.is_empty() {
                bail!(
                    "no `airtcp serve` or `airtcp gateway` of this user is running: start one, run this as its user or with sudo, \
                     or name the control socket of another command, for example --control get.sock"
                );
            }
        }
    }
    let clear = if args.watch.is_some() && stdout().is_terminal() { CLEAR } else { "" };
    print(answers, args.json, clear)
}

/// Prints the responses of stacks, as JSON or as text after `clear`.
///
/// # Errors
/// Those of writing.
pub(crate) fn print(mut answers: Vec<Value>, json: bool, clear: &str) -> anyhow::Result<()> {
    if json {
        answers.iter_mut().for_each(without_tokens);
        return output::print(&serde_json::to_string(&answers)?);
    }
    let shown: Vec<String> = answers.iter().map(text).collect();
    output::print(&format!("{clear}{}", shown.join("\n").trim_end()))
}

fn ask(path: &Path) -> anyhow::Result<Value> {
    Asker::connect(path)?.ask(&Request::Connections)
}

/// Removes the tokens, which repeat the content of `info`.
fn without_tokens(answer: &mut Value) {
    for connection in answer["connections"].as_array_mut().into_iter().flatten() {
        if let Some(connection) = connection.as_object_mut() {
            connection.remove("tokens");
        }
    }
}

/// Formats a stack and its connections, in two lines each.
fn text(answer: &Value) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let mut all: Vec<_> = answer["connections"].as_array().into_iter().flatten().collect();
    // Connections in TIME-WAIT come last, since a server may have thousands of them.
    all.sort_by_key(|connection| connection["state"] == "TIME-WAIT");
    let total = count(&answer["connections_total"]);
    let mut text = format!(
        "{}: {}, pid {}, {} held, connections: {total}",
        word(&answer["device"]),
        word(&answer["command"]),
        word(&answer["pid"]),
        output::bytes(count(&answer["held"])),
    );
    let left_out = total.saturating_sub(all.len() as u64);
    if left_out > 0 {
        let _ = write!(text, " ({left_out} not shown)");
    }
    text.push('\n');
    let header = ["State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port"];
    let mut rows = vec![(header.map(str::to_owned), String::new())];
    for connection in &all {
        let info = &connection["info"];
        let columns = [
            word(&connection["state"]),
            count(&info["recv_q"]).to_string(),
            count(&info["send_q"]).to_string(),
            word(&connection["local"]),
            word(&connection["peer"]),
        ];
        let mut tokens =
            format!("{} held:{}", word(&connection["tokens"]), count(&connection["held"]));
        if let Some(queue) = connection["queue"].as_u64() {
            let _ = write!(tokens, " queue:{queue}");
        }
        rows.push((columns, tokens));
    }
    if all.is_empty() {
        return text;
    }
    let width = |column: usize| {
        rows.iter().map(|(columns, _)| columns[column].len()).max().unwrap_or_default()
    };
    let widths = [0, 1, 2, 3].map(width);
    for (columns, tokens) in &rows {
        for (cell, width) in columns.iter().zip(widths) {
            let _ = write!(text, "{cell:<width$} ");
        }
        text.push_str(&columns[4]);
        text.push('\n');
        if !tokens.is_empty() {
            let _ = writeln!(text, "\t {}", tokens.trim_start());
        }
    }
    text
}

/// Returns the default path of a command's socket, which is different for root and other users.
pub(crate) fn default_path(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let directory = if is_root { DIRECTORY.into() } else { runtime_directory()? };
    Some(directory.join(format!("{name}.sock")))
}

fn runtime_directory() -> Option<PathBuf> {
    let directory = std::env::var_os("XDG_RUNTIME_DIR").filter(|name| !name.is_empty())?;
    Some(PathBuf::from(directory).join("airtcp-serve"))
}

fn directories() -> BTreeSet<PathBuf> {
    let fixed = [DIRECTORY].into_iter().chain(OF_UNITS).map(PathBuf::from);
    fixed.chain(runtime_directory()).collect()
}

/// Returns the sockets in a directory, sorted by name.
fn sockets(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> Value {
        json!({
            "command": "serve", "device": "tun0", "pid": 7, "held": 2048, "connections_total": 3,
            "connections": [
                {"local": "10.0.0.2:80", "peer": "10.0.0.1:4", "state": "TIME-WAIT", "held": 0,
                 "info": null, "tokens": ""},
                {"local": "10.0.0.2:80", "peer": "10.0.0.1:40000", "state": "ESTAB", "held": 1500, "queue": 1,
                 "info": {"recv_q": 0, "send_q": 1448}, "tokens": "ts sack cwnd:10"},
            ],
        })
    }

    #[test]
    fn a_connection_is_two_lines_as_those_of_ss() {
        let expected = "\
tun0: serve, pid 7, 2 KiB held, connections: 3 (1 not shown)
State     Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB     0      1448   10.0.0.2:80        10.0.0.1:40000
\t ts sack cwnd:10 held:1500 queue:1
TIME-WAIT 0      0      10.0.0.2:80        10.0.0.1:4
\t held:0
";
        assert_eq!(text(&answer()), expected);
    }

    #[test]
    fn the_sockets_of_the_units_are_found() {
        for directory in OF_UNITS {
            let unit = directory.strip_prefix("/run/").unwrap();
            let path = format!("{}/../../contrib/{unit}.service", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!(" --control {directory}/ctl.sock ")), "{unit}");
            assert!(directories().contains(Path::new(directory)));
        }
    }

    #[test]
    fn json_says_everything_once() {
        let mut answer = answer();
        without_tokens(&mut answer);
        assert!(answer["connections"][1].get("tokens").is_none());
        assert_eq!(answer["connections"][1]["info"]["send_q"], 1448);
    }
}
