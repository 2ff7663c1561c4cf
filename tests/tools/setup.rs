//! The commands in a namespace, and their output.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use airtcp_testbed::Namespace;

pub(crate) fn airtcp(arguments: &[&str]) -> Command {
    // Under nohup, a program ignores SIGHUP.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_airtcp")]);
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running command.
pub(crate) struct Running {
    child: Child,
    notes: std::io::Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(namespace: &Namespace, command: Command) -> Self {
        let mut child = namespace.spawn_child(command).expect("a process in the namespace");
        let notes = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        Self { child, notes }
    }

    /// Starts `airtcp serve` and waits until it is ready.
    pub(crate) fn serve(namespace: &Namespace, arguments: &[&str]) -> Self {
        let mut serve = Self::start(namespace, airtcp(&[&["serve"], arguments].concat()));
        serve.until("ready");
        serve
    }

    /// Reads stderr up to a line with this start, and returns that line.
    pub(crate) fn until(&mut self, begin: &str) -> String {
        let mut said = Vec::new();
        for line in self.notes.by_ref() {
            let line = line.expect("text");
            if line.starts_with(begin) {
                return line;
            }
            said.push(line);
        }
        panic!("it ended without `{begin}`: {said:?}")
    }

    /// Reads the rest of stderr until the command ends.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        self.notes.by_ref().map(|line| line.expect("text")).collect()
    }

    /// Appends the next output on stdout to `text`.
    pub(crate) fn read_some(&mut self, text: &mut String) {
        let mut chunk = [0; 4096];
        let read = self.child.stdout.as_mut().expect("it is piped").read(&mut chunk).expect("text");
        assert!(read > 0, "it ended: {text}");
        text.push_str(std::str::from_utf8(&chunk[..read]).expect("text"));
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        // `kill` is built into every POSIX shell.
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status();
        assert!(sent.expect("a shell").success());
    }

    /// Waits for the end, and returns the exit code and the output on stdout.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.child.stdout.take().expect("it is piped").read_to_string(&mut text).expect("text");
        (self.child.wait().expect("its end").code(), text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
