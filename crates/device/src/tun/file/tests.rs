use super::*;

/// Checks that the error's message contains each of `parts`.
#[track_caller]
fn says(error: &DeviceError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "\"{part}\" is not in: {text}");
    }
}

#[test]
fn a_name_that_cannot_be_is_refused_before_the_kernel_sees_it() {
    for name in ["", ".", "..", "sixteen-bytes-xx", "a b", "a/b", "a:b", "tun%d", "a\0b", "a\x0bb"]
    {
        let error = TunFile::open(name).unwrap_err();
        assert!(matches!(error, DeviceError::Name { .. }), "{error}");
        says(&error, &[name, "1 to 15 bytes", "tun0"]);
    }
    assert!(check_name("fifteen-bytes-x").is_ok());
}

#[test]
fn errors_of_the_kernel_are_explained_with_a_command() {
    let explained =
        |errno: Errno, node: &str| explain("tun7", errno.into(), Path::new(node), false);
    let missing = explained(Errno::ENOENT, NODE);
    says(&missing, &["/dev/net/tun", "sudo modprobe tun", "mknod", "c 10 200"]);
    assert!(matches!(explained(Errno::ENODEV, NODE), DeviceError::NoDriver { .. }));
    // The node can be opened, so the kernel refused the interface.
    let forbidden = explained(Errno::EPERM, "/dev/null");
    let program = std::env::current_exe().unwrap();
    let setcap = format!("sudo setcap cap_net_admin+ep {}", program.display());
    says(&forbidden, &["sudo ip tuntap add dev tun7 mode tun user $USER", &setcap, "built again"]);
    let foreign = explain("tun7", Errno::EPERM.into(), Path::new("/dev/null"), true);
    says(&foreign, &["tun7 belongs to another user", "CAP_NET_ADMIN", "choose another name"]);
    // The node cannot be opened.
    let forbidden = explained(Errno::EACCES, "/dev/null/tun");
    assert!(matches!(forbidden, DeviceError::NodeForbidden { .. }), "{forbidden}");
    says(&forbidden, &["sudo setfacl -m u:$USER:rw /dev/net/tun", "sudo ip tuntap add", &setcap]);
    says(&explained(Errno::ENOMEM, NODE), &["tun7", "could not be opened"]);
}
