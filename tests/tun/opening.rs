//! Opening a device, and the errors when that fails.

use airtcp_device::{DeviceError, Tun, TunFile, TunOptions};

use crate::open;

/// Asserts that the error's text contains each of these.
#[track_caller]
fn says(error: &DeviceError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "\"{part}\" is not in: {text}");
    }
}

#[test]
fn a_device_in_use_is_busy() {
    let Some((namespace, _file)) = open("tun0") else { return };
    let error = namespace.run(|| TunFile::open("tun0")).unwrap_err();
    assert!(matches!(error, DeviceError::Busy { .. }), "{error}");
    says(&error, &["tun0", "in use", "another name"]);
}

#[test]
fn a_name_of_something_else_is_taken() {
    let Some((namespace, _file)) = open("tun0") else { return };
    let error = namespace.run(|| TunFile::open("lo")).unwrap_err();
    assert!(matches!(error, DeviceError::Taken { .. }), "{error}");
    says(&error, &["lo is not a TUN device", "choose another name"]);
    assert!(!error.to_string().contains("del"), "{error}");
}

#[test]
fn a_device_of_several_queues_is_opened_as_one_and_no_other_is() {
    let Some((namespace, _file)) = open("tun0") else { return };
    let several = TunOptions { multi_queue: true, ..TunOptions::default() };
    let error = namespace.run(move || TunFile::open_with("tun0", several)).unwrap_err();
    assert!(matches!(error, DeviceError::SingleQueue { .. }), "{error}");
    says(&error, &["tun0", "single queue", "without", "another name"]);

    let queues = move || TunFile::open_with("tun1", several).unwrap();
    let _queues = [namespace.run(queues), namespace.run(queues)];
    let error = namespace.run(|| TunFile::open("tun1")).unwrap_err();
    assert!(matches!(error, DeviceError::MultiQueue { .. }), "{error}");
    says(&error, &["tun1", "with multi_queue", "another name"]);

    let error = namespace.run(move || TunFile::open_with("lo", several)).unwrap_err();
    assert!(matches!(error, DeviceError::Taken { .. }), "{error}");
}

#[tokio::test]
async fn opening_leaves_the_interface_as_it_is() {
    let Some((namespace, file)) = open("tun0") else { return };
    let interface = || {
        let interfaces = namespace.interfaces().unwrap();
        let one = interfaces.into_iter().find(|interface| interface.name == "tun0").unwrap();
        (one.is_up, one.addresses)
    };
    file.set_mtu(1400).unwrap();
    Tun::new(file).unwrap().persist().unwrap();
    for offload in [true, false] {
        let options = TunOptions { offload, ..TunOptions::default() };
        let again = namespace.run(move || TunFile::open_with("tun0", options)).unwrap();
        assert_eq!((interface(), again.mtu().unwrap()), ((false, Vec::new()), 1400));
    }
}

#[test]
fn opening_outside_a_runtime_is_an_error() {
    let Some((_namespace, file)) = open("tun0") else { return };
    let error = Tun::new(file).unwrap_err();
    assert!(matches!(error, DeviceError::NoRuntime { .. }), "{error}");
    says(&error, &["tun0", "tokio runtime"]);
}
