//! Shows the page of `airtcp serve --live` in Chromium while 104 flows are read: it follows the
//! flows, lists 100 of them, and shows when it is paused and when the server is gone. Needs root,
//! for a TUN device.
//!
//! `AIRTCP` is the program to test. With `AIRTCP_SCREENSHOTS=DIR`, screenshots are saved in that
//! directory.

mod chrome;

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chrome::{driver, log, narrow, open, requests, run, screenshot};
use fantoccini::Client;
use serde_json::Value;

const FLOWS: usize = 104;

/// A running `serve` with its own device.
struct Serve {
    child: Child,
    page: String,
}

impl Serve {
    fn start() -> Self {
        let airtcp = std::env::var("AIRTCP").expect("AIRTCP is the program to test");
        let line = "serve --tun airtcp-live --address 198.18.77.2/24 --gateway 198.18.77.1 --live 0 source:19";
        let mut command = Command::new(airtcp);
        command.args(line.split(' ')).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let notes = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut serve = Self { child, page: String::new() };
        let mut said = Vec::new();
        for note in notes.map_while(Result::ok) {
            if let Some(page) = note.strip_prefix("live page: ") {
                page.clone_into(&mut serve.page);
            }
            if note == "ready" {
                assert!(!serve.page.is_empty(), "{said:?}");
                return serve;
            }
            said.push(note);
        }
        panic!("serve ended: {said:?}");
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads from every flow repeatedly until it is dropped.
struct Reading {
    end: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Reading {
    fn start() -> Self {
        let server = SocketAddr::from(([198, 18, 77, 2], 19));
        let flow = |_| {
            let flow = TcpStream::connect(server).unwrap();
            flow.set_nonblocking(true).unwrap();
            flow
        };
        let mut flows: Vec<_> = (0..FLOWS).map(flow).collect();
        let end = Arc::new(AtomicBool::new(false));
        let ended = end.clone();
        let read = move || {
            let mut buffer = vec![0; 8192];
            while !ended.load(Ordering::Relaxed) {
                for flow in &mut flows {
                    // There may be no data, or the server may have ended.
                    let _ = flow.read(&mut buffer);
                }
                thread::sleep(Duration::from_millis(10));
            }
        };
        Self { end, thread: Some(thread::spawn(read)) }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Waits until the script's result satisfies the condition.
async fn until(client: &Client, script: &str, is: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..200 {
        last = run(client, script).await;
        if is(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{script}: {last}");
}

const STATE: &str =
    "return document.body.dataset.state + ': ' + document.getElementById('state').textContent";
const ROWS: &str = "return document.querySelectorAll('#rows tr').length";
const LINE: &str =
    "return document.querySelector('[data-title=Throughput] path').getAttribute('d')";
const SENT: &str = "return [...document.querySelectorAll('#figures div')]
    .find((one) => one.firstChild.textContent === 'Sent').lastChild.textContent";

#[tokio::test]
async fn the_page_follows_the_flows_and_says_when_it_does_not() {
    let mut serve = Serve::start();
    let reading = Reading::start();
    let (_driver, address) = driver();
    let client = open(&address).await;
    client.set_window_size(1280, 1400).await.unwrap();
    client.goto(&serve.page).await.unwrap();

    until(&client, STATE, |state| state == "live: Live").await;
    assert_eq!(client.title().await.unwrap(), "airtcp serve, airtcp-live");
    until(&client, ROWS, |rows| *rows == 100).await;
    let count = run(&client, "return document.getElementById('many-count').textContent").await;
    assert_eq!(count, "100 of 104");
    let states = "return [...document.querySelectorAll('#rows tr')].map((row) => row.children[2].textContent)";
    assert_eq!(run(&client, states).await, Value::from(vec!["ESTAB"; 100]));
    // The counter and the chart are updated repeatedly.
    let sent = run(&client, SENT).await;
    until(&client, SENT, |now| *now != sent).await;
    let line = until(&client, LINE, |line| {
        line.as_str().is_some_and(|line| line.matches('L').count() > 8)
    })
    .await;
    until(&client, LINE, |now| *now != line).await;
    let hover = "const svg = document.querySelector('[data-title=Throughput] svg');
         const box = svg.getBoundingClientRect();
         svg.dispatchEvent(new PointerEvent('pointermove', { clientX: box.right - 10, clientY: box.top + 50 }));
         return svg.parentElement.querySelector('output').textContent;";
    let shown = run(&client, hover).await;
    let shown = shown.as_str().unwrap();
    assert!(shown.contains("s ago: received ") && shown.ends_with(" Mbit/s"), "{shown}");
    screenshot(&client, "live-1280.png").await;

    run(&client, "document.getElementById('pause').click()").await;
    assert_eq!(run(&client, STATE).await, "paused: Paused");
    run(&client, "document.getElementById('pause').click()").await;
    until(&client, STATE, |state| state == "live: Live").await;

    narrow(&client).await;
    client.goto(&serve.page).await.unwrap();
    until(&client, ROWS, |rows| *rows == 100).await;
    let width = run(&client, "return document.documentElement.scrollWidth").await;
    assert!(width.as_u64().unwrap() <= 400, "{width}");
    until(&client, LINE, |line| line.as_str().is_some_and(|line| line.matches('L').count() > 8))
        .await;
    screenshot(&client, "live-400.png").await;

    assert_eq!(log(&client, "browser").await, Vec::<Value>::new(), "the console is empty");
    let requests = requests(&client).await;
    let is_own = |url: &&String| {
        let path = url.strip_prefix(&serve.page);
        path.is_some_and(|path| ["", "events"].contains(&path)) || url.starts_with("data:")
    };
    assert!(!requests.is_empty() && requests.iter().all(|url| is_own(&url)), "{requests:?}");

    serve.stop();
    drop(reading);
    until(&client, STATE, |state| state == "disconnected: Disconnected: trying again").await;
    client.close().await.unwrap();
}
