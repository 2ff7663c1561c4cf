//! Counters of the kernel's TCP in a namespace, for both versions of IP.

use std::io;
use std::process::Command;

use crate::Namespace;

/// Returns the number of segments that the kernel has retransmitted in the namespace of this
/// thread.
pub(crate) fn retransmissions() -> io::Result<u64> {
    value(Table::Snmp, "RetransSegs")
}

#[derive(Clone, Copy)]
enum Table {
    Snmp,
    TcpExt,
}

fn value(table: Table, name: &str) -> io::Result<u64> {
    let (file, protocol) = match table {
        Table::Snmp => ("snmp", "Tcp:"),
        Table::TcpExt => ("netstat", "TcpExt:"),
    };
    let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))?;
    find(&text, protocol, name).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("/proc/net/{file} has no {name}"))
    })
}

impl Namespace {
    /// Returns the number of segments that the kernel's TCP has retransmitted in this namespace.
    ///
    /// # Errors
    /// The kernel's counter cannot be read.
    pub fn retransmissions(&self) -> io::Result<u64> {
        self.run(retransmissions)
    }

    /// Returns a counter of the kernel's TCP in this namespace by its `nstat` name without
    /// `TcpExt`, such as `TCPLossProbes`.
    ///
    /// # Errors
    /// The kernel has no counter with this name.
    pub fn tcp_counter(&self, name: &'static str) -> io::Result<u64> {
        self.run(move || value(Table::TcpExt, name))
    }

    /// Returns the output of iproute2's `ss -tino` for the TCP connections of this namespace.
    ///
    /// # Errors
    /// `ss` is not installed or fails.
    pub fn ss(&self) -> io::Result<String> {
        let ask = || Command::new("ss").args(["-tinoH", "state", "established"]).output();
        // On another thread, because the namespace's thread serves the sockets.
        let asked = self.spawn_thread(ask)?.join();
        let output = asked.map_err(|_| io::Error::other("the thread panicked"))??;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(io::Error::other(format!("ss: {text}")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns how often a retransmission timer of the kernel's TCP expired in this namespace,
    /// including repetitions. The kernel does not count time-outs while the peer's window is
    /// closed.
    ///
    /// # Errors
    /// The kernel's counter cannot be read.
    pub fn timeouts(&self) -> io::Result<u64> {
        self.tcp_counter("TCPTimeouts")
    }
}

/// Finds a value in a table of /proc/net, which has a line of names and a line of values.
fn find(table: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter(|line| line.starts_with(protocol));
    let column = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_name() {
        let table = "Ip: RetransSegs\nIp: 9\nTcp: InSegs RetransSegs\nTcp: 1 2\n";
        assert_eq!(find(table, "Tcp:", "RetransSegs"), Some(2));
        assert_eq!(find(table, "Tcp:", "OutSegs"), None);
        assert_eq!(find(table, "Udp:", "InSegs"), None);
    }
}
