//! Checks the privileges of this process, and acquires them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use nix::mount::{MsFlags, mount, umount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{getegid, geteuid};

use crate::{Namespace, TestbedError};

const TUN_NODE: &str = "/dev/net/tun";

/// With the value `1`, tests fail instead of being skipped if namespaces or kernel features are not
/// available.
const REQUIRE: &str = "AIRTCP_REQUIRE_NETNS";

// capabilities(7).
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Checks whether namespaces with TUN devices are available, by creating one.
///
/// # Errors
/// [`TestbedError::Unavailable`], with the reason and the remedy.
pub fn requirements() -> Result<(), TestbedError> {
    let namespace = Namespace::new()?;
    namespace.run(open_tun_node).map_err(|error| TestbedError::Unavailable {
        reason: format!(
            "{TUN_NODE} cannot be opened ({error}); type `sudo modprobe tun` if it is missing, \
             `sudo setfacl -m u:$USER:rw {TUN_NODE}` or run as root if it is forbidden"
        ),
    })?;
    Ok(())
}

/// For tests: returns the value, or prints why the test is skipped and returns `None`.
///
/// # Panics
/// For errors other than [`TestbedError::Unavailable`] and [`TestbedError::NoControl`], and for all
/// errors if the environment has `AIRTCP_REQUIRE_NETNS=1`.
///
/// ```no_run
/// let Some(()) = airtcp_testbed::or_skip(airtcp_testbed::requirements()) else { return };
/// ```
#[track_caller]
pub fn or_skip<T>(made: Result<T, TestbedError>) -> Option<T> {
    let required = std::env::var_os(REQUIRE).is_some_and(|value| value == "1");
    skip_unless(required, made)
}

#[track_caller]
fn skip_unless<T>(required: bool, made: Result<T, TestbedError>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(error @ (TestbedError::Unavailable { .. } | TestbedError::NoControl { .. }))
            if !required =>
        {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            let text = format!("SKIPPED {test}: {error} ({REQUIRE}=1 makes this a failure)\n");
            // Not `eprintln!`, whose output the test harness captures.
            let _ = io::stderr().write_all(text.as_bytes());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Makes this process root in a user namespace of its own, unless it already has the privileges for
/// network namespaces.
///
/// Call it at the start of `main`, before any thread or runtime starts. Afterwards the process sees
/// itself as root; files that it creates belong to the original user.
///
/// # Errors
/// [`TestbedError::Unavailable`] if the system forbids user namespaces, or if other threads run.
pub fn enter_user_namespace_if_needed() -> Result<(), TestbedError> {
    if has_capabilities(CAP_NET_ADMIN | CAP_SYS_ADMIN) {
        return Ok(());
    }
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| TestbedError::Unavailable {
        reason: format!(
            "this user may not make a user namespace ({errno}); run as root, or allow it: \
             `sudo sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000` \
             (Ubuntu: `kernel.apparmor_restrict_unprivileged_userns=0`); threads must not run yet"
        ),
    })?;
    // user_namespaces(7): without CAP_SETGID outside, setgroups must be denied before groups can be
    // mapped.
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {uid} 1")),
        ("/proc/self/gid_map", format!("0 {gid} 1")),
    ];
    for (path, value) in maps {
        fs::write(path, value).map_err(TestbedError::refused(format!("writing {path}")))?;
    }
    Ok(())
}

/// Explains why a network namespace was refused.
pub(crate) fn why_no_namespace(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "this process may not make a network namespace ({error}); run as root (in a \
             container: with the capabilities SYS_ADMIN and NET_ADMIN)"
        ),
        // unshare(2) returns ENOSPC if a limit of namespaces(7) is reached.
        io::ErrorKind::StorageFull => format!(
            "there are as many network namespaces as this system allows ({error}); allow more: \
             `sudo sysctl -w user.max_net_namespaces=10000`"
        ),
        _ => format!("a network namespace was refused ({error})"),
    }
}

/// If the TUN node is missing or forbidden, tries to create one for the calling thread, in a mount
/// namespace that ends with the thread. Errors appear when the device is opened.
pub(crate) fn make_tun_node_usable() {
    if open_tun_node().is_ok() {
        return;
    }
    let _ = private_tun_node();
}

fn private_tun_node() -> nix::Result<()> {
    let parent = Path::new("/dev/net");
    unshare(CloneFlags::CLONE_NEWNS)?;
    // From here on, mounts do not propagate to the mount namespace outside.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    if !parent.is_dir() {
        // /dev may be read-only or shared, so the directory cannot be created in it.
        return Err(nix::errno::Errno::ENOENT);
    }
    mount(Some("tmpfs"), parent, Some("tmpfs"), MsFlags::empty(), Some("mode=755"))?;
    let made = mknod(TUN_NODE, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(10, 200));
    if made.is_err() {
        // A user namespace may not create device nodes. The outer node becomes visible again, so
        // that the error message is about that node.
        umount(parent)?;
    }
    made
}

fn open_tun_node() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TUN_NODE)
}

fn has_capabilities(wanted: u64) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|bits| bits & wanted == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable() -> Result<(), TestbedError> {
        Err(TestbedError::Unavailable { reason: "no TUN".to_owned() })
    }

    #[test]
    fn an_unavailable_feature_skips_the_test() {
        assert_eq!(skip_unless(false, unavailable()), None);
        let no_control = TestbedError::NoControl { name: "bbr".to_owned() };
        assert_eq!(skip_unless::<i32>(false, Err(no_control)), None);
        assert_eq!(skip_unless(true, Ok(3)), Some(3));
    }

    #[test]
    #[should_panic(expected = "no TUN")]
    fn a_required_feature_fails_the_test() {
        skip_unless(true, unavailable());
    }

    #[test]
    #[should_panic(expected = "no interface tun0")]
    fn a_mistake_never_skips() {
        let error = TestbedError::NoInterface { name: "tun0".to_owned() };
        skip_unless::<()>(false, Err(error));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let reason = why_no_namespace(io::ErrorKind::PermissionDenied.into());
        assert!(reason.contains("run as root"), "{reason}");
        let reason = why_no_namespace(io::Error::from_raw_os_error(nix::libc::ENOSPC));
        assert!(reason.contains("sysctl -w user.max_net_namespaces="), "{reason}");
    }
}
