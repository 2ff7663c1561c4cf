//! `basestation --wired TUN --wireless TUN`: the bridge between two TUN devices.

use std::process::ExitCode;

fn main() -> ExitCode {
    airtcp_cli::basestation()
}
