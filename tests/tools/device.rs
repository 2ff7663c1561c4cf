//! Commands on a machine with other networks, and on devices that they did not create.

use std::process::Command;

use airtcp_device::TunFile;
use airtcp_testbed::{Namespace, or_skip, requirements};

use crate::setup::{Running, airtcp};

/// Runs a command that must not start, and returns its error line.
fn refused(namespace: &Namespace, line: &str) -> String {
    let command = airtcp(&line.split(' ').collect::<Vec<_>>());
    let output = namespace.spawn_child(command).unwrap().wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{text}");
    text
}

/// Every interface and its addresses.
fn look(namespace: &Namespace) -> String {
    format!("{:?}", namespace.interfaces().unwrap())
}

#[test]
fn a_new_device_takes_no_network_and_no_address_that_is_there() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let _lan = namespace.run(|| TunFile::open("lan0")).unwrap();
    namespace.configure("lan0", &["192.168.1.10/24".parse().unwrap()], None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("serve.sock").display().to_string();
    let line = "--tun tun0 --address 10.0.0.2/24 --gateway 10.0.0.1 echo:7 --control";
    let line: Vec<_> = line.split(' ').chain([socket.as_str()]).collect();
    let serve = Running::serve(&namespace, &line);
    let before = look(&namespace);

    // The first address of a network is usually a router's.
    let lan = refused(&namespace, "connect --tun tun1 --address 192.168.1.201/24 192.168.1.10:7");
    assert!(lan.contains("192.168.1.0/24 is in use on lan0: choose another network"), "{lan}");
    let second = refused(&namespace, "connect --tun tun1 --address 10.0.0.3/24 10.0.0.2:7");
    assert!(second.contains("10.0.0.0/24 is in use on tun0"), "{second}");
    assert!(second.contains("such as 10.0.1.2/24"), "{second}");
    let own = refused(&namespace, "serve --tun tun1 --address 192.168.1.10/32 echo:7");
    assert!(own.contains("192.168.1.10 is the kernel's address on lan0"), "{own}");
    assert_eq!(look(&namespace), before);

    // SIGHUP, as when a terminal closes.
    serve.signal("HUP");
    assert_eq!(serve.end().0, Some(0));
}

#[test]
fn serve_says_what_a_device_that_was_there_lacks() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let mut command = Command::new("ip");
    command.args(["tuntap", "add", "dev", "tun0", "mode", "tun"]);
    assert!(namespace.spawn_child(command).unwrap().wait().unwrap().success());
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("serve.sock").display().to_string();
    let start = |address| {
        let line = format!(
            "serve --tun tun0 --address {address} --gateway 10.0.0.1 echo:7 --control {socket}"
        );
        Running::start(&namespace, airtcp(&line.split(' ').collect::<Vec<_>>()))
    };

    let mut serve = start("10.0.0.2/24");
    serve.until("note: --gateway has no effect on tun0, which existed already");
    let todo = "type: ip addr add 10.0.0.1/24 dev tun0 && ip link set tun0 up";
    serve.until(&format!("note: tun0 existed already and is down; {todo}"));
    serve.until("ready");
    drop(serve);

    namespace.set_up("tun0", true).unwrap();
    let mut serve = start("10.0.0.2/24");
    serve.until(&format!("note: tun0 existed already and has no address; {todo}"));
    serve.until("ready");
    drop(serve);

    namespace.add_address("tun0", "10.0.0.1/24".parse().unwrap()).unwrap();
    let own = refused(&namespace, "serve --tun tun0 --address 10.0.0.1/24 echo:7");
    assert!(own.contains("10.0.0.1 is the kernel's address on tun0"), "{own}");
    assert!(own.contains("such as 10.0.0.2/24"), "{own}");
}
