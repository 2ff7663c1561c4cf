//! `basestation ctl`: queries or controls a running base station.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde_json::Value;

use super::report;
use super::request::{Command, Request};
use crate::control::{Asker, NobodyThere};
use crate::output;
use crate::table::table;

/// The socket of the service's unit.
pub(super) const DEFAULT: &str = "/run/airtcp/basestation.sock";

/// `basestation ctl`.
#[derive(Args, Debug)]
pub(super) struct CtlArgs {
    /// Request
    #[arg(value_name = "COMMAND", value_enum)]
    command: Command,
    /// Mobile of leave and join, as `status` names it
    #[arg(value_name = "NAME")]
    mobile: Option<String>,
    /// Control socket of the base station
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT)]
    control: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Sends the request, and prints the response.
///
/// # Errors
/// The base station does not respond, or rejects the request.
pub(super) fn run(args: &CtlArgs) -> anyhow::Result<()> {
    let value = ask(args)?;
    if args.json {
        return output::print_json(&value);
    }
    let text = match args.command {
        Command::Status => report::text(&value),
        Command::Flows => flows(value.as_array().map_or(&[], Vec::as_slice)),
        Command::Freeze | Command::Disconnect | Command::Reconnect => reached(&value, None),
        Command::Leave | Command::Join => reached(&value, args.mobile.as_deref()),
    };
    output::print(&text)
}

fn ask(args: &CtlArgs) -> anyhow::Result<Value> {
    let asker = Asker::connect(&args.control);
    let mut asker = asker.map_err(|error| match error.downcast_ref::<NobodyThere>() {
        Some(nobody) => anyhow!("{}", nobody.explain("base station")),
        None => error,
    })?;
    asker.ask(&Request { command: args.command, mobile: args.mobile.clone() })
}

/// Describes the state of the mobile with a name, or of all, in a line.
fn reached(status: &Value, name: Option<&str>) -> String {
    let mobiles = status["mobiles"].as_array().map_or(&[][..], Vec::as_slice);
    let named = mobiles.iter().find(|mobile| name.is_some() && mobile["name"].as_str() == name);
    let of = named.unwrap_or(&status["station"]);
    let count = |name: &str| of[name].as_u64().unwrap_or(0);
    format!(
        "the mobile {}is {}; flows with a closed window: {}; packets held: {}",
        name.map_or(String::new(), |name| format!("{name} ")),
        of["reach"].as_str().unwrap_or("-"),
        count("frozen"),
        count("held"),
    )
}

/// Formats the flows, a line each.
fn flows(flows: &[Value]) -> String {
    if flows.is_empty() {
        return "no flows".to_owned();
    }
    let header = ["Fixed host", "Mobile", "Under way", "Ranges", "Window", "Frozen"];
    let rows = flows.iter().map(|flow| {
        let end = |name: &str| flow[name].as_str().unwrap_or("-").to_owned();
        let seen = flow["seen"].as_array().map_or(&[][..], Vec::as_slice);
        let number = |value: &Value| value.as_u64().unwrap_or(0) as u32;
        let under_way =
            seen.iter().map(|range| u64::from(number(&range[1]).wrapping_sub(number(&range[0]))));
        let scale = flow["window_scale"].as_u64();
        let window = match (flow["window"].as_u64(), scale) {
            (Some(window), Some(scale)) => output::bytes(window << scale.min(14)),
            // The SYN with the scale passed before the station was started.
            (Some(window), None) => format!("{window} << ?"),
            (None, _) => "-".to_owned(),
        };
        let is_frozen = flow["is_frozen"].as_bool() == Some(true);
        [
            end("fixed"),
            end("mobile"),
            output::bytes(under_way.sum()),
            seen.len().to_string(),
            window,
            if is_frozen { "yes" } else { "" }.to_owned(),
        ]
    });
    table(header, 2, rows).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flow_is_a_line() {
        let flow = json!({
            "fixed": "10.0.0.1:80", "mobile": "10.0.0.2:5000", "seen": [[4_294_967_000_u32, 704], [2_000, 3_000]],
            "window": 512, "window_scale": 7, "is_frozen": true,
        });
        let text = flows(&[flow]);
        let words: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
        let expected = ["10.0.0.1:80", "10.0.0.2:5000", "2.0", "KiB", "2", "64", "KiB", "yes"];
        assert_eq!(words, expected, "{text}");
        assert_eq!(flows(&[]), "no flows");
        let adopted = json!({"window": 252, "window_scale": null});
        assert!(flows(&[adopted]).contains("252 << ?"));
    }

    #[test]
    fn the_state_of_the_mobile_is_one_line() {
        let status = json!({"station": {"reach": "gone", "frozen": 3, "held": 20, "flows": 7}});
        let line = "the mobile is gone; flows with a closed window: 3; packets held: 20";
        assert_eq!(reached(&status, None), line);
        let status = json!({
            "station": {"reach": "there", "frozen": 9, "held": 9},
            "mobiles": [
                {"name": "m1", "reach": "there"},
                {"name": "m2", "reach": "gone", "frozen": 1, "held": 2},
            ],
        });
        let line = "the mobile m2 is gone; flows with a closed window: 1; packets held: 2";
        assert_eq!(reached(&status, Some("m2")), line);
    }
}
