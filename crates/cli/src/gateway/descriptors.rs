//! Raises the limit of open files and sockets for a gateway.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::output;

/// The number of descriptors that a gateway uses in addition to its connections.
const OTHERS: u64 = 64;

/// Raises the limit to the most that the process may have; prints a note if that is too low for
/// this number of connections, which `flag` allows.
pub(super) fn raise(connections: u32, flag: &str) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let is_raised = soft >= hard || setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    let limit = if is_raised { hard } else { soft };
    if limit < u64::from(connections) + OTHERS {
        output::note(format_args!(
            "note: this process may open {limit} files, fewer than the {connections} connections of {flag}: raise the hard \
             limit, for example with LimitNOFILE=65536 in its unit, or by `ulimit -n 65536` as root"
        ));
    }
}
