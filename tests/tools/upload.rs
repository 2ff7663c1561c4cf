//! Interrupted uploads, and `put --continue`.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::server;
use crate::setup::{Running, airtcp};
use crate::transfer::{LENGTH, World, data, sha256, text};

/// The stack's own server in a client's namespace, behind the kernel as a router.
struct Server {
    serve: Running,
    directory: TempDir,
}

const AT: &str = "10.1.0.2:80";

impl Server {
    fn start(world: &World) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let http = format!("http:80:{}", directory.path().display());
        let socket = world.directory.path().join("serve.sock").display().to_string();
        let line = "--tun tun1 --address 10.1.0.2/24 --gateway 10.1.0.1 --offload --control";
        let line: Vec<_> = line.split(' ').chain([socket.as_str(), &http]).collect();
        let serve = Running::serve(&world.namespace, &line);
        world.namespace.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
        fs::write(world.directory.path().join("file"), data()).unwrap();
        Self { serve, directory }
    }

    /// The path of a partial upload.
    fn held(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.directory.path()).unwrap().map(|one| one.unwrap());
        let entry = entries
            .find(|entry| text(entry.file_name().as_encoded_bytes()).starts_with(".airtcp-put-"));
        entry.map(|entry| entry.path())
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.path().join(name)).unwrap()
    }

    fn end(self) {
        self.serve.signal("INT");
        assert_eq!(self.serve.end().0, Some(0));
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// An interrupted upload is resumed, although the server has not noticed that the client is gone.
/// The link fails in the middle, and the client is ended by SIGKILL or by SIGINT.
#[test]
fn a_killed_put_resumes() {
    let Some(world) = World::new() else { return };
    let server = Server::start(&world);
    let to: SocketAddr = AT.parse().unwrap();
    for (port, signal, more) in [(8080, "KILL", &[][..]), (8081, "INT", &["--no-offload"])] {
        server::cut_off(&world.namespace, port, to, LENGTH as u64 / 2);
        let url = format!("http://10.0.0.1:{port}/{signal}");
        let begin = ["put", "--tun", "tun0", "--address", "10.0.0.2/24", "file", &url];
        let mut command = airtcp(&[&begin, more].concat());
        command.current_dir(&world.directory);
        let mut running = Running::start(&world.namespace, command);
        while server.held().is_none_or(|held| length(&held) < LENGTH as u64 / 4) {
            assert!(running.is_running(), "it ended");
            thread::sleep(Duration::from_millis(10));
        }
        running.signal(signal);
        let mut code = None;
        if signal == "INT" {
            let line = running.until("error: ");
            assert!(line.contains("interrupted; use --continue to resume"), "{line}");
            code = Some(130);
        }
        assert_eq!(running.end(), (code, String::new()));
        let held = length(&server.held().unwrap());
        assert!(!server.directory.path().join(signal).exists());

        let url = format!("http://{AT}/{signal}");
        let report = world.report("put", &[&["--continue", "file", &url], more].concat());
        assert_eq!((&report["status"], &report["length"]), (&201.into(), &LENGTH.into()));
        assert!(report["bytes"].as_u64() <= Some(LENGTH as u64 - held), "{held} {report}");
        assert!(report["bytes"].as_u64() > Some(LENGTH as u64 / 2), "{report}");
        assert_eq!(report["sha256"], sha256(&data()));
        assert!(server.read(signal) == data());
        assert!(server.held().is_none());
    }
    // The upload is complete, so nothing is sent.
    let url = format!("http://{AT}/INT");
    let report = world.report("put", &["-C", "file", &url]);
    assert_eq!((&report["status"], &report["bytes"]), (&204.into(), &0.into()));
    assert_eq!((&report["sha256"], &report["length"]), (&sha256(&data()).into(), &LENGTH.into()));
    // The server has another file of that name, or none.
    fs::write(server.directory.path().join("INT"), "old").unwrap();
    for (name, status) in [("INT", 204), ("new", 201)] {
        let report = world.report("put", &["-C", "file", &format!("http://{AT}/{name}")]);
        assert_eq!((&report["status"], &report["bytes"]), (&status.into(), &LENGTH.into()));
        assert!(server.read(name) == data());
    }
    server.end();
}

#[test]
fn an_upload_of_another_file_is_not_resumed() {
    let Some(world) = World::new() else { return };
    let server = Server::start(&world);
    fs::write(server.directory.path().join("new"), "old").unwrap();
    world
        .namespace
        .run(|| {
            let mut stream = TcpStream::connect(AT)?;
            stream.write_all(
                b"PUT /new HTTP/1.1\r\nhost: a\r\nupload-complete: ?1\r\n\
                  content-length: 100\r\n\r\nnonsense",
            )?;
            stream.shutdown(Shutdown::Write)?;
            stream.read_to_end(&mut Vec::new())
        })
        .unwrap();
    assert_eq!(fs::read(server.held().unwrap()).unwrap(), b"nonsense");
    assert_eq!(server.read("new"), b"old");
    let output = world.client("put", &["-C", "--json", "file", &format!("http://{AT}/new")]);
    let notes = text(&output.stderr);
    assert!(output.status.success(), "{notes}");
    assert!(notes.contains("/new has 8 B of another file: restarting the upload"), "{notes}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["bytes"], LENGTH);
    assert!(server.read("new") == data() && server.held().is_none());
    server.end();
}

#[test]
fn a_put_names_a_server_without_resumable_uploads_and_says_how_to_resume() {
    let Some(world) = World::new() else { return };
    fs::write(world.directory.path().join("file"), data()).unwrap();
    for (name, asked, status) in
        [("a", "a", "404"), ("file", "file", "200"), ("moved", "file", "200")]
    {
        let line = world.refused("put", &["-C", "file", &format!("http://10.0.0.1/{name}")]);
        let expected = format!(
            "http://10.0.0.1/{asked}: the server does not report the state of an upload (it answers {status}"
        );
        assert!(line.contains(&expected) && line.contains("leave out --continue"), "{line}");
    }
    let line = world.refused("put", &["file", "http://10.0.0.1/cut"]);
    assert!(
        line.contains("was interrupted") && line.contains("; use --continue to resume, if"),
        "{line}"
    );
    let line = world.refused("put", &["file", "http://10.0.0.1/full"]);
    assert!(!line.contains("--continue"), "{line}");
}
