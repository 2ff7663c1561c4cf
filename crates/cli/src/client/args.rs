//! What `get`, `put` and `connect` take.

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
    /// Where it goes; - is stdout. A file that is there is replaced once all has come; until then it is FILE.part
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Go on with the FILE.part of a transfer that broke off, if there is one
    #[arg(short = 'C', long = "continue")]
    pub(crate) resume: bool,
    /// The report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// What to get: http://HOST[:PORT]/PATH
    #[arg(value_name = "URL", value_parser = value::parsed::<Url>)]
    pub(crate) url: Url,
}

/// `airtcp put`.
#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
    /// Go on with a transfer to URL that broke off, if the server holds what came of it
    #[arg(short = 'C', long = "continue")]
    pub(crate) resume: bool,
    /// The report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// What to send
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where it goes: http://HOST[:PORT]/PATH
    #[arg(value_name = "URL", value_parser = value::parsed::<Url>)]
    pub(crate) url: Url,
}

/// `airtcp connect`.
#[derive(Args, Debug)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
    /// At the end, a report as JSON on stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Whom to call; an IPv6 address stands in brackets
    #[arg(value_name = "HOST:PORT", value_parser = value::parsed::<Place>)]
    pub(crate) place: Place,
}

impl GetArgs {
    /// What no value shows alone.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.resume && self.output.as_os_str() == "-" {
            return Err("--continue needs a file to go on with, and -o - is stdout; for example \
                        -o file --continue"
                .to_owned());
        }
        self.attach.check()
    }
}
