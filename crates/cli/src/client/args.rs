//! The command lines of `get`, `put` and `connect`.

use std::path::PathBuf;

use clap::Args;

use super::place::Place;
use super::url::Url;
use crate::attach::AttachArgs;
use crate::value;

/// `airtcp get`.
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
    /// Output file, or - for stdout. Data is written to FILE.part, which replaces FILE when the
    /// transfer is complete
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Resume an interrupted transfer from FILE.part, if it exists
    #[arg(short = 'C', long = "continue")]
    pub(crate) resume: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Source: http://HOST[:PORT]/PATH
    #[arg(value_name = "URL", value_parser = value::parsed::<Url>)]
    pub(crate) url: Url,
}

/// `airtcp put`.
#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
    /// Resume an interrupted upload to URL, if the server has kept its data
    #[arg(short = 'C', long = "continue")]
    pub(crate) resume: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// File to upload
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Destination: http://HOST[:PORT]/PATH
    #[arg(value_name = "URL", value_parser = value::parsed::<Url>)]
    pub(crate) url: Url,
}

/// `airtcp connect`.
#[derive(Args, Debug)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
    /// Print a report as JSON on stderr at exit
    #[arg(long)]
    pub(crate) json: bool,
    /// Peer; write IPv6 addresses in brackets
    #[arg(value_name = "HOST:PORT", value_parser = value::parsed::<Place>)]
    pub(crate) place: Place,
}

impl GetArgs {
    /// Checks the options against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.resume && self.output.as_os_str() == "-" {
            return Err("--continue needs an output file, and -o - is stdout; for example \
                        -o file --continue"
                .to_owned());
        }
        self.attach.check()
    }
}
