//! Prints results, notes and errors.

use std::error::Error;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use clap::builder::styling::{Style, Styles};
use serde::Serialize;

use crate::global;

/// The first port that every user may bind, unless the system has another
/// net.ipv4.ip_unprivileged_port_start.
const FIRST_UNPRIVILEGED: u16 = 1024;

/// Writes a line to stdout. If the reader has closed the pipe, that is not an error.
///
/// # Errors
/// Those of writing.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing to stdout"),
    }
}

/// Writes a line to stderr, unless `--quiet` is set.
pub(crate) fn note(text: impl Display) {
    if !global::is_quiet() {
        print_stderr(text);
    }
}

/// Writes a line of a result to stderr; errors are ignored.
pub(crate) fn print_stderr(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes `error: ` and the text to stderr.
pub(crate) fn error(what: impl Display) {
    let has_colors = global::has_colors(&io::stderr());
    let style = if has_colors { *Styles::styled().get_error() } else { Style::new() };
    print_stderr(format_args!("{style}error:{style:#} {what}"));
}

/// Writes `value` as JSON to stdout.
///
/// # Errors
/// Those of writing; `value` cannot be represented in JSON.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Writes counters to stdout: `report` as a line of JSON if `json` is set, otherwise the text.
///
/// # Errors
/// Those of writing and of `text`; `report` cannot be represented in JSON.
pub(crate) fn print_counters(
    report: &impl Serialize,
    json: bool,
    text: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    print(&if json { serde_json::to_string(report)? } else { text()? })
}

/// Writes a result to stdout, as JSON if `json` is set and otherwise as text.
///
/// # Errors
/// As [`print_json`].
pub(crate) fn print_result(result: &(impl Serialize + Display), json: bool) -> anyhow::Result<()> {
    if json { print_json(result) } else { print(&result.to_string()) }
}

/// Joins the text to one line, and replaces control characters, which a peer could use to control
/// the terminal.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    without_numbers(&line).replace(char::is_control, "\u{FFFD}")
}

/// Removes the numbers of system errors, as in ` (os error 2)`, which follow their names.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut line = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        line.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    line
}

/// Formats an error and its causes as one line. A cause that the text already contains is not
/// repeated.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = one_line(&cause.to_string());
        if line.contains(&text) {
            continue;
        }
        line.push_str(if line.is_empty() { "" } else { ": " });
        line.push_str(&text);
    }
    let advice = error.chain().find_map(advice).filter(|advice| !line.contains(advice));
    line.push_str(advice.unwrap_or_default());
    line
}

/// Adds advice to an error's line.
pub(crate) fn with_advice(error: anyhow::Error, advice: impl Display) -> anyhow::Error {
    let line = format!("{}; {advice}", explain(&error));
    error.context(line)
}

/// Adds advice to an error's line if its cause is a file or directory that does not exist.
pub(crate) fn if_missing(error: anyhow::Error, advice: impl Display) -> anyhow::Error {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    match causes.any(|cause| cause.kind() == ErrorKind::NotFound) {
        true => with_advice(error, advice),
        false => error,
    }
}

/// Adds to the error of binding a port, if that needs a privilege, how to get it.
pub(crate) fn if_privileged(error: anyhow::Error, port: u16) -> anyhow::Error {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let is_denied = causes.any(|cause| cause.kind() == ErrorKind::PermissionDenied);
    if !is_denied || !(1..FIRST_UNPRIVILEGED).contains(&port) {
        return error;
    }
    let program = std::env::current_exe();
    let program = program.map_or_else(|_| "airtcp".to_owned(), |path| path.display().to_string());
    with_advice(
        error,
        format_args!(
            "port {port} needs a privilege, as all ports below {FIRST_UNPRIVILEGED}: choose another port, or type sudo \
             setcap cap_net_bind_service=+ep {program}"
        ),
    )
}

/// Returns advice about an error of the operating system whose text has none.
fn advice(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    let error = cause.downcast_ref::<io::Error>()?;
    error.raw_os_error()?;
    match error.kind() {
        ErrorKind::AddrInUse => {
            Some("; another program uses this port: choose another port, or stop that program")
        }
        ErrorKind::AddrNotAvailable => {
            Some("; this machine does not have that address: `ip addr` lists its addresses")
        }
        ErrorKind::AlreadyExists => Some("; choose another name, or remove it"),
        ErrorKind::ConnectionRefused => {
            Some("; no program listens there: check the address and the port, or start the server")
        }
        ErrorKind::IsADirectory => Some("; specify a file"),
        ErrorKind::NotADirectory => Some("; specify a directory"),
        ErrorKind::StorageFull => Some("; free some space, or choose another file system"),
        _ => None,
    }
}

/// A mistake on the command line, or in a file of settings, a scenario or an experiment: the exit
/// code is 2.
#[derive(Debug)]
pub(crate) struct Mistake(String);

impl Mistake {
    /// Creates a mistake with the line to print.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Mistake {}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats a number of bytes for people: `64 MiB`, `1.5 MiB`, `12 B`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = "B";
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if value.fract() == 0.0 { format!("{value} {unit}") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_unit_that_fits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes(3 << 19), "1.5 MiB");
    }

    #[test]
    fn an_error_stays_in_its_line_and_says_nothing_twice() {
        let error = anyhow::anyhow!("no device").context("tun0:\n  no device").context("serving");
        assert_eq!(explain(&error), "serving: tun0: no device");
        let error = anyhow::anyhow!("404:\t\u{1b}[2J\u{9b}1mgone");
        assert_eq!(explain(&error), "404: \u{FFFD}[2J\u{FFFD}1mgone");
        let error = anyhow::Error::from(io::Error::from_raw_os_error(2)).context("reading a.toml");
        assert_eq!(explain(&error), "reading a.toml: No such file or directory");
        assert_eq!(without_numbers("a: gone (os error 2): b (os error 13)"), "a: gone: b");
    }

    #[test]
    fn advice_is_part_of_the_line_and_hides_no_cause() {
        let error = anyhow::Error::from(Mistake::new("no flow 3".to_owned())).context("a.pcap");
        let advised = with_advice(error, "--list shows all");
        assert_eq!(explain(&advised), "a.pcap: no flow 3; --list shows all");
        assert!(advised.is::<Mistake>());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = std::net::TcpListener::bind(listener.local_addr().unwrap()).unwrap_err();
        let line = explain(&with_advice(taken.into(), "try again"));
        assert_eq!(line.matches("choose another port").count(), 1, "{line}");
    }

    #[test]
    fn a_missing_file_comes_with_advice() {
        let of = |code| anyhow::Error::from(io::Error::from_raw_os_error(code)).context("a.toml");
        let missing = if_missing(of(2), "give a file");
        assert_eq!(explain(&missing), "a.toml: No such file or directory; give a file");
        assert_eq!(explain(&if_missing(of(13), "give a file")), "a.toml: Permission denied");
    }

    #[test]
    fn a_port_that_needs_a_privilege_comes_with_how_to_get_it() {
        let of = |code, port| {
            let error = anyhow::Error::from(io::Error::from_raw_os_error(code));
            explain(&if_privileged(error.context(format!("--live 127.0.0.1:{port}")), port))
        };
        let denied = of(13, 80);
        let expected = "--live 127.0.0.1:80: Permission denied; port 80 needs a privilege, as all ports below 1024: \
                        choose another port, or type sudo setcap cap_net_bind_service=+ep /";
        assert!(denied.starts_with(expected), "{denied}");
        assert_eq!(of(13, 8080), "--live 127.0.0.1:8080: Permission denied");
        assert!(!of(98, 80).contains("setcap"));
    }

    #[test]
    fn an_address_that_cannot_be_bound_comes_with_what_to_do() {
        let bound = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let bind = |address| std::net::UdpSocket::bind(address).unwrap_err();
        let taken = anyhow::Error::from(bind(bound.local_addr().unwrap())).context("listening");
        assert!(explain(&taken).ends_with("choose another port, or stop that program"));
        // An address for documentation (RFC 5737).
        let foreign = anyhow::Error::from(bind("192.0.2.1:0".parse().unwrap()));
        assert!(explain(&foreign).ends_with("`ip addr` lists its addresses"));
        // An error of this stack, which has advice in its text.
        let own = io::Error::new(ErrorKind::AddrInUse, "port 80 has a listener");
        assert_eq!(explain(&own.into()), "port 80 has a listener");
    }
}
