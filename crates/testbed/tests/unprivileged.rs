//! A user other than root can have namespaces with TUN devices too.
//!
//! As root, this program creates a world-writable /dev/net/tun in a mount namespace of its own,
//! becomes nobody in a child process, and does there what a user's program does.

use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use airtcp_device::TunFile;
use airtcp_testbed::{Namespace, enter_user_namespace_if_needed, or_skip, requirements};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};
use nix::unistd::geteuid;

const NOBODY: u32 = 65534;
const ROLE: &str = "AIRTCP_TESTBED_ROLE";

fn main() {
    if std::env::var_os(ROLE).is_some() || !geteuid().is_root() {
        return as_a_user();
    }
    if let Err(errno) = make_tun_node_for_all() {
        eprintln!("SKIPPED unprivileged: no mount namespace with a device node ({errno})");
        return;
    }
    let program = std::env::current_exe().expect("a program knows its path");
    let status = Command::new(program).env(ROLE, "user").uid(NOBODY).gid(NOBODY).status();
    match status {
        Ok(status) => exit(status.code().unwrap_or(1)),
        Err(error) => eprintln!("SKIPPED unprivileged: nobody may not run this test ({error})"),
    }
}

fn as_a_user() {
    let Some(()) = or_skip(enter_user_namespace_if_needed()) else { return };
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().expect("requirements are met");
    let _tun = namespace.run(|| TunFile::open("tun0")).expect("root in its own namespace");
    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], Some(1400)).unwrap();
    let interfaces = namespace.interfaces().unwrap();
    assert!(interfaces.iter().any(|found| found.name == "tun0" && found.is_up), "{interfaces:?}");
    println!("unprivileged ... ok");
}

fn make_tun_node_for_all() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    mount(Some("tmpfs"), "/dev/net", Some("tmpfs"), MsFlags::empty(), Some("mode=755"))?;
    umask(Mode::empty());
    mknod("/dev/net/tun", SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(10, 200))
}
