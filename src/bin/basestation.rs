//! `basestation`: a base station, or a bridge, between two TUN devices.

use std::process::ExitCode;

fn main() -> ExitCode {
    airtcp_cli::basestation()
}
