//! What is left of a gateway that has stopped or was killed, and what of other programs.

use super::*;

#[test]
fn nothing_is_left_and_nothing_else_was_touched() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let (namespace, _uplink) = machine();
    // Rules and routes of other programs, one at the same priority.
    ip(&namespace, "rule add priority 27700 to 10.9.0.0/16 lookup 77");
    ip(&namespace, "rule add priority 5000 to 10.9.0.0/16 lookup 77 protocol 177");
    ip(&namespace, "route add 10.9.0.0/16 dev up0 table 77 protocol 177");
    let before = state(&namespace);
    let tun = device(&namespace);
    add(&namespace, &everything_but(&["10.9.0.0/16"])).unwrap();
    assert!(state(&namespace).contains("lookup 51877"));
    namespace.block_on(remove()).unwrap();
    drop(tun);
    assert_eq!(state(&namespace), before);
    namespace.block_on(remove()).unwrap();
    assert_eq!(state(&namespace), before);
}

#[test]
fn after_a_kill_nothing_goes_around_and_the_next_start_leaves_only_its_own() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let fresh = {
        let (namespace, _uplink) = machine();
        let _tun = device(&namespace);
        add(&namespace, &everything_but(&[])).unwrap();
        state(&namespace)
    };
    let (namespace, _uplink) = machine();
    let before = state(&namespace);
    let tun = device(&namespace);
    let named = networks(&["0.0.0.0/0", "10.0.0.0/8", "::/0"]);
    let excluded = networks(&["10.1.0.0/16", "2001:db8:5::/48"]);
    add(&namespace, &Routes::new("air0", &named, &excluded, &[], Ipv6::On).unwrap()).unwrap();
    drop(tun);
    for to in ["1.1.1.1", "2001:db8:1::1"] {
        assert!(way(&namespace, to).contains("No route to host"), "{}", way(&namespace, to));
    }
    assert_eq!(way(&namespace, "1.1.1.1 mark 51877"), "up0");
    let tun = device(&namespace);
    add(&namespace, &everything_but(&[])).unwrap();
    assert_eq!(state(&namespace), fresh);
    namespace.block_on(remove()).unwrap();
    drop(tun);
    assert_eq!(state(&namespace), before);
}

#[test]
fn another_gateway_and_the_table_of_another_program_are_left_alone() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let (namespace, _uplink) = machine();
    let _tun = device(&namespace);
    add(&namespace, &everything_but(&[])).unwrap();
    let before = state(&namespace);
    let error = add(&namespace, &everything_but(&["10.0.0.0/8"])).unwrap_err().to_string();
    assert!(error.contains("stop it, or start this one without --intercept"), "{error}");
    assert_eq!(state(&namespace), before);

    let (namespace, _uplink) = machine();
    let _tun = device(&namespace);
    ip(&namespace, "route add 10.0.0.0/8 dev up0 table 51877");
    let before = state(&namespace);
    let error = add(&namespace, &everything_but(&[])).unwrap_err().to_string();
    assert!(error.contains("another program, such as to 10.0.0.0/8"), "{error}");
    assert_eq!(state(&namespace), before);
}

#[test]
fn what_the_kernel_refuses_is_said_in_the_words_of_ip_and_taken_back() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let (namespace, _uplink) = machine();
    let before = state(&namespace);
    // The device exists but is down: IPv4 routes are refused.
    let _tun = namespace.run(|| TunFile::open("air0")).unwrap();
    let error = add(&namespace, &everything_but(&[])).unwrap_err().to_string();
    assert!(error.contains("`ip -4 route add 0.0.0.0/0 dev air0"), "{error}");
    assert_eq!(state(&namespace), format!("{before}\nair0 false []"));
}
