//! `ss`, `--metrics`, `--live`, and the output generated from the command line's definition.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use airtcp_testbed::{Namespace, or_skip, peer, requirements};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setup::{Running, airtcp};

fn output(mut command: Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// The fields explained in docs/connection-state.md.
fn explained() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/connection-state.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split_once("` |")).map(|(cell, _)| cell);
    let mut all = BTreeSet::new();
    for name in cells.flat_map(|cell| cell.split("`, `")) {
        assert!(all.insert(name.to_owned()), "{name} is there twice");
    }
    all
}

#[test]
fn connections_are_listed_and_counted_while_they_last() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("serve.sock").display().to_string();
    let line = "--tun tun0 --address 10.0.0.2/24 --gateway 10.0.0.1 --metrics 127.0.0.1:9464 --live 9470 echo:7 --control";
    let line: Vec<_> = line.split(' ').chain([socket.as_str()]).collect();
    let serve = Running::serve(&namespace, &line);
    let stream = namespace
        .block_on(async {
            let mut stream = peer::connect("10.0.0.2:7".parse().unwrap(), None).await?;
            // Once a byte has come back, both ends are established.
            stream.write_all(b"!").await?;
            stream.read_u8().await?;
            Ok::<_, std::io::Error>(stream)
        })
        .unwrap();
    let local = stream.local_addr().unwrap().to_string();

    let text = output(airtcp(&["ss", "--control", &socket])).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("tun0: serve, pid ") && lines[0].ends_with("connections: 1"),
        "{text}"
    );
    assert!(lines[1].starts_with("State") && lines[1].contains("Recv-Q Send-Q Local"), "{text}");
    let columns: Vec<_> = lines[2].split_whitespace().collect();
    // The echoed byte may not be acknowledged yet.
    assert_eq!(columns[..2], ["ESTAB", "0"], "{text}");
    assert_eq!(columns[3..], ["10.0.0.2:7", &local], "{text}");
    assert!(lines[3].contains(" rack/bbr3/spike wscale:") && lines[3].contains(" held:"), "{text}");

    let json: Value =
        serde_json::from_str(&output(airtcp(&["ss", "--json", "--control", &socket])).unwrap())
            .unwrap();
    let connection = &json[0]["connections"][0];
    assert_eq!((&json[0]["device"], &connection["peer"]), (&"tun0".into(), &local.clone().into()));
    assert_eq!(connection["info"]["combination"], "rack/bbr3/spike");
    let mut fields = BTreeSet::new();
    for object in [&json[0], connection, &connection["info"]] {
        fields.extend(object.as_object().unwrap().keys().cloned());
    }
    // Only these fields are left out when they have no value.
    fields.extend(["soft_error", "queue", "accecn", "path_model"].map(str::to_owned));
    assert_eq!(fields, explained());

    // `--watch` repeats until a signal ends it.
    let mut command = airtcp(&["ss", "--watch", "0.01", "--json", "--control", &socket]);
    command.stdin(Stdio::null());
    let mut watch = Running::start(&namespace, command);
    let mut watched = String::new();
    while watched.lines().count() < 3 {
        watch.read_some(&mut watched);
    }
    watch.signal("INT");
    assert_eq!(watch.end().0, Some(0));

    let metrics = namespace.run(|| {
        let mut scraper = TcpStream::connect("127.0.0.1:9464").unwrap();
        scraper
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        scraper.read_to_string(&mut text).unwrap();
        text
    });
    for line in ["airtcp_TcpPassiveOpens_total 1", "airtcp_connections{state=\"ESTAB\"} 1"] {
        assert!(metrics.lines().any(|one| one == line), "{metrics}");
    }

    let event = namespace.run(|| {
        let mut viewer = TcpStream::connect("127.0.0.1:9470").unwrap();
        viewer.write_all(b"GET /events HTTP/1.1\r\nhost: localhost:9470\r\n\r\n").unwrap();
        let mut lines = BufReader::new(viewer).lines().map(Result::unwrap);
        lines.find_map(|line| Some(line.strip_prefix("data: ")?.to_owned())).unwrap()
    });
    let page: Value = serde_json::from_str(&event).unwrap();
    assert_eq!(
        (&page["title"], &page["table"]["total"]),
        (&"airtcp serve, tun0".into(), &1.into())
    );
    assert_eq!(page["table"]["rows"][0][1], local);

    drop(stream);
    serve.signal("INT");
    assert_eq!(serve.end().0, Some(0));
    assert!(!Path::new(&socket).exists());
    let nobody = output(airtcp(&["ss", "--control", &socket])).unwrap_err();
    assert!(nobody.contains("no command listens on") && nobody.lines().count() == 1, "{nobody}");
}

#[test]
fn help_of_every_command_fits_a_terminal() {
    let basestation = env!("CARGO_BIN_EXE_basestation");
    let names = "serve get put connect ss names demo link sim lab compare plot completions man";
    let names = std::iter::once(Vec::new()).chain(names.split(' ').map(|name| vec![name]));
    let mut helps: Vec<_> =
        names.map(|name| output(airtcp(&[&name[..], &["--help"]].concat())).unwrap()).collect();
    for arguments in [&["--help"][..], &["ctl", "--help"]] {
        let mut command = Command::new(basestation);
        command.args(arguments);
        helps.push(output(command).unwrap());
    }
    for help in helps {
        // A list of combinations is one word.
        let words = |line: &str| line.split_whitespace().count();
        let long = help.lines().find(|line| line.chars().count() > 80 && words(line) > 1);
        assert_eq!(long, None, "{help}");
    }
}

#[test]
fn shells_and_man_get_what_they_read() {
    for (binary, name) in [
        (env!("CARGO_BIN_EXE_airtcp"), "airtcp"),
        (env!("CARGO_BIN_EXE_basestation"), "basestation"),
    ] {
        let run = |arguments: &[&str]| {
            let mut command = Command::new(binary);
            command.args(arguments);
            output(command).unwrap()
        };
        assert!(run(&["completions", "bash"]).contains(&format!("complete -F _{name}")));
        assert!(run(&["completions", "zsh"]).starts_with(&format!("#compdef {name}")));
        assert!(run(&["completions", "fish"]).contains(&format!("complete -c {name} ")));
        assert!(run(&["man"]).contains(&format!(".TH {} 1", name.to_uppercase())));
        let directory = tempfile::tempdir().unwrap();
        run(&["man", "--out", directory.path().to_str().unwrap()]);
        let pages = std::fs::read_dir(directory.path()).unwrap().count();
        assert!(pages > 3, "{pages}");
    }
    // A shell accepts the script.
    let mut bash = Command::new("bash");
    let script = output(airtcp(&["completions", "bash"])).unwrap();
    bash.args(["-n", "-c", &script]);
    if let Ok(status) = bash.status() {
        assert!(status.success());
    }
}
