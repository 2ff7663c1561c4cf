//! WireGuard keys in files: a line of base64, as `wg genkey` and `wg pubkey` write it.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use airtcp_tunnel::{PresharedKey, PrivateKey};
use anyhow::{Context, anyhow};
use clap::Args;

use crate::{file, output};

/// The largest key file (bytes).
const LONGEST: u64 = 4096;

/// `airtcp gateway keygen`.
#[derive(Args, Debug)]
pub(crate) struct KeygenArgs {
    /// Write the private key to this new file, which only its owner can read, and print the public
    /// key. Without it, the private key is printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// `airtcp gateway pubkey`.
#[derive(Args, Debug)]
pub(crate) struct PubkeyArgs {
    /// File with the private key [default: stdin]
    #[arg(value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Creates a private key.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn keygen(args: &KeygenArgs) -> anyhow::Result<()> {
    let key = PrivateKey::generate();
    let Some(path) = &args.out else { return output::print(&key.to_string()) };
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{key}")
    };
    write()
        .map_err(|error| file::not_made(path, error))
        .with_context(|| format!("--out {}", path.display()))?;
    output::print(&key.public_key().to_string())
}

/// Prints the public key of a private key.
///
/// # Errors
/// The key cannot be read, or is invalid.
pub(super) fn pubkey(args: &PubkeyArgs) -> anyhow::Result<()> {
    let key = match &args.key {
        Some(path) => private(path)?,
        None => parse::<PrivateKey>(&file::text(io::stdin(), LONGEST)?, "stdin")?,
    };
    output::print(&key.public_key().to_string())
}

/// Reads a private key from a file.
///
/// # Errors
/// The file cannot be read, or is not a key.
pub(super) fn private(path: &Path) -> anyhow::Result<PrivateKey> {
    read(path, "make one with `airtcp gateway keygen --out FILE`")
}

/// Reads a preshared key from a file.
///
/// # Errors
/// The file cannot be read, or is not a key.
pub(super) fn preshared(path: &Path) -> anyhow::Result<PresharedKey> {
    read(path, "make one with `airtcp gateway keygen --out FILE`, and give both ends the same")
}

/// Reads a key from a file; `advice` says how to create one.
///
/// # Errors
/// The file cannot be read, or is not a key.
pub(crate) fn read<K: FromStr<Err: Display>>(path: &Path, advice: &str) -> anyhow::Result<K> {
    let name = path.display().to_string();
    let text = file::read(path, LONGEST).map_err(|error| match path.exists() {
        true => anyhow!("reading {name}: {error:#}"),
        false => anyhow!("{name} does not exist: {advice}"),
    })?;
    let others = fs::metadata(path).map_or(0, |about| about.permissions().mode() & 0o007);
    // The mode of a pipe, such as a shell's <(...), does not matter.
    if others != 0 && path.is_file() {
        output::note(format_args!("warning: all users can read {name}; type: chmod 600 {name}"));
    }
    parse(&text, &name)
}

fn parse<K: FromStr<Err: Display>>(text: &str, name: &str) -> anyhow::Result<K> {
    text.trim().parse().map_err(|error| anyhow!("{name}: {error}"))
}
