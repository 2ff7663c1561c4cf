//! The command lines of `quickserve` and `quickget`.

use std::net::IpAddr;
use std::path::PathBuf;

use airtcp_recovery::Combination;
use airtcp_stack::host::Cidr;
use airtcp_types::{ByteCount, Rate};
use clap::Args;

use super::network::Network;
use crate::attach::{AttachArgs, BufferArgs};
use crate::client::url::{QuickUrl, Scheme};
use crate::value;

/// `airtcp quickserve`.
#[derive(Args, Debug)]
pub(crate) struct QuickServeArgs {
    #[command(flatten)]
    stack: StackArgs,
    /// Network parameters for rrtp://, which override those of clients: cdma-1x (144 kbit/s), evdo
    /// (1 Mbit/s), edge (240 kbit/s), satellite (20 kbit/s), lan (100 Mbit/s), wlan (11 Mbit/s) or
    /// a FILE.toml
    #[arg(long, value_name = "NAME", value_parser = value::parsed::<Network>)]
    pub(super) profile: Option<Network>,
    /// Maximum sending rate per rrtp:// client, as in 20mbit; it overrides the profile of the
    /// client [default: 1gbit; up to 100mbit if the profile of a client requests it]
    #[arg(long, value_name = "RATE", value_parser = value::rate)]
    pub(super) rate_cap: Option<Rate>,
    /// Listening address: rrtp:// or tcp:// with an address of this machine, or airtcp:// with one
    /// of the stack, and a port [default port: 80]; may be repeated
    #[arg(long, value_name = "URL", required = true, value_parser = value::parsed::<QuickUrl>)]
    pub(super) listen: Vec<QuickUrl>,
    /// Maximum number of connections per listener; further ones are refused
    #[arg(long, value_name = "N", default_value = "256", allow_negative_numbers = true, value_parser = value::connections)]
    pub(super) connections: usize,
    /// Print a summary as JSON at exit
    #[arg(long)]
    pub(super) json: bool,
    /// Directory to serve; nothing is written to it
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
}

/// `airtcp quickget`.
#[derive(Args, Debug)]
pub(crate) struct QuickGetArgs {
    #[command(flatten)]
    stack: StackArgs,
    /// Network parameters for rrtp://: cdma-1x (144 kbit/s), evdo (1 Mbit/s), edge (240 kbit/s),
    /// satellite (20 kbit/s), lan (100 Mbit/s), wlan (11 Mbit/s) or a FILE.toml. A quickserve
    /// without --profile uses them, too
    #[arg(long, value_name = "NAME", value_parser = value::parsed::<Network>)]
    pub(super) profile: Option<Network>,
    /// Output file, or - for stdout. An interrupted transfer leaves FILE.part and is resumed from
    /// it
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Source: rrtp://HOST[:PORT]/PATH, tcp://... or airtcp://...
    #[arg(value_name = "URL", value_parser = value::parsed::<QuickUrl>)]
    pub(super) url: QuickUrl,
}

/// The stack of an airtcp:// URL.
#[derive(Args, Debug)]
struct StackArgs {
    /// For airtcp://, the TUN device; it is created if it does not exist, and then removed at exit
    #[arg(long, value_name = "NAME", value_parser = value::tun)]
    tun: Option<String>,
    /// For airtcp://, an address of the stack with its prefix length; repeat for more addresses
    #[arg(long, value_name = "CIDR", value_parser = value::cidr)]
    address: Vec<Cidr>,
    /// For airtcp://, the address of the kernel on a device that this command creates
    #[arg(long, value_name = "IP", value_parser = value::gateway)]
    gateway: Vec<IpAddr>,
    /// For airtcp://, the strategies of the sender: rack/cubic or le/westwood/hack+dcr:timer
    /// [default: rack/bbr3/spike]
    #[arg(long, value_name = "A/B[/C]", value_parser = value::strategies)]
    strategies: Option<Combination>,
    /// For airtcp://, disable segmentation and checksum offload
    #[arg(long)]
    no_offload: bool,
    /// For airtcp://, the maximum size of the send buffer of a connection
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = value::buffer)]
    send_buffer: Option<ByteCount>,
    /// For airtcp://, the maximum size of the receive buffer of a connection
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = value::buffer)]
    receive_buffer: Option<ByteCount>,
}

impl StackArgs {
    fn attach(&self) -> Option<AttachArgs> {
        let tun = self.tun.clone()?;
        let (address, gateway) = (self.address.clone(), self.gateway.clone());
        let attach = AttachArgs::of(tun, address, gateway, self.strategies.clone());
        let (send_buffer, receive_buffer) = (self.send_buffer, self.receive_buffer);
        let buffers = BufferArgs { send_buffer, receive_buffer };
        Some(AttachArgs { no_offload: self.no_offload, buffers, ..attach })
    }

    /// Checks the options against the URLs.
    fn check<'a>(&self, mut urls: impl Iterator<Item = &'a QuickUrl>) -> Result<(), String> {
        const EXAMPLE: &str = "for example --tun tun0 --address 10.0.0.2/24";
        let needs = urls.any(|url| url.0.scheme() == Scheme::Airtcp);
        let has_any = self.tun.is_some()
            || self.strategies.is_some()
            || self.no_offload
            || self.send_buffer.is_some()
            || self.receive_buffer.is_some()
            || !self.address.is_empty()
            || !self.gateway.is_empty();
        match (needs, self.attach()) {
            (true, Some(attach)) if !self.address.is_empty() => attach.check(),
            (true, _) => Err(format!("airtcp:// requires --tun and --address; {EXAMPLE}")),
            (false, _) if has_any => {
                Err("--tun, --address, --gateway, --strategies, --no-offload, \
                                          --send-buffer and --receive-buffer are only for \
                                          airtcp://: remove them, or use an airtcp:// URL, for \
                                          example airtcp://10.0.0.1/file"
                    .to_owned())
            }
            (false, _) => Ok(()),
        }
    }
}

/// Checks that an option of RRTP is used with an `rrtp://` URL: TCP has no network profile and no
/// rate cap.
fn check_rrtp<'a>(
    option: &str,
    is_given: bool,
    mut urls: impl Iterator<Item = &'a QuickUrl>,
) -> Result<(), String> {
    if is_given && urls.all(|url| url.0.scheme() != Scheme::Rrtp) {
        let example = "for example rrtp://10.0.0.1:8000/file";
        return Err(format!("{option} is only for rrtp://; {example}"));
    }
    Ok(())
}

impl QuickServeArgs {
    /// Checks the options against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_rrtp("--profile", self.profile.is_some(), self.listen.iter())?;
        check_rrtp("--rate-cap", self.rate_cap.is_some(), self.listen.iter())?;
        for url in &self.listen {
            if url.0.address().is_none() {
                return Err(format!(
                    "--listen {} names a host: write an IP address of this machine; for example \
                     rrtp://0.0.0.0:8000",
                    url.0
                ));
            }
            if url.0.target() != "/" {
                return Err(format!(
                    "--listen {} has a path, but DIR selects the files: remove the path; for example \
                     rrtp://0.0.0.0:8000",
                    url.0
                ));
            }
        }
        self.stack.check(self.listen.iter())
    }

    pub(super) fn attach(&self) -> Option<AttachArgs> {
        self.stack.attach()
    }
}

impl QuickGetArgs {
    /// Checks the options against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_rrtp("--profile", self.profile.is_some(), std::iter::once(&self.url))?;
        self.stack.check(std::iter::once(&self.url))
    }

    pub(super) fn attach(&self) -> Option<AttachArgs> {
        self.stack.attach()
    }
}
