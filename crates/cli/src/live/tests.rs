use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};

use airtcp_device::memory;
use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, duplex};
use tokio::net::TcpStream;

use super::serve::VIEWERS;
use super::*;

/// Serves the page of a stack without connections.
async fn page() -> SocketAddr {
    let (device, _) = memory::pair(1500, 64);
    let stack = Stack::new(device, HostConfig::new(["10.0.0.1/24".parse().unwrap()])).unwrap();
    let read = move || ready(Some(of_stacks(std::slice::from_ref(&stack))));
    listen(([127, 0, 0, 1], 0).into(), "a title", read).await.unwrap()
}

async fn send(address: SocketAddr, head: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    BufReader::new(stream)
}

/// Returns the whole response.
async fn ask(address: SocketAddr, head: &str) -> String {
    let mut answer = String::new();
    send(address, head).await.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Opens the event stream, and returns it with the status line.
async fn look(address: SocketAddr) -> (BufReader<TcpStream>, String) {
    let mut viewer = send(address, "GET /events HTTP/1.1\r\nhost: localhost").await;
    let mut status = String::new();
    viewer.read_line(&mut status).await.unwrap();
    (viewer, status)
}

/// Returns the next snapshot.
async fn next(viewer: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        assert!(viewer.read_line(&mut line).await.unwrap() > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn an_address_is_a_port_of_this_machine_or_names_an_interface() {
    let read = |text| address(text).unwrap().to_string();
    assert_eq!(read("8080"), "127.0.0.1:8080");
    assert_eq!(read("192.0.2.1:80"), "192.0.2.1:80");
    assert_eq!(read("[::1]:80"), "[::1]:80");
    for text in ["", "65536", "+80", "-1", "localhost:80", "127.0.0.1", ":80"] {
        let error = address(text).unwrap_err();
        assert!(error.contains("PORT or ADDRESS:PORT; for example --live 8080"), "{text}: {error}");
    }
    for text in ["0.0.0.0:80", "[::]:80", "[::ffff:0.0.0.0]:80"] {
        let error = address(text).unwrap_err();
        assert!(error.contains("no login") && error.contains("--live 127.0.0.1:80"), "{error}");
    }
}

#[tokio::test]
async fn a_request_by_another_name_is_refused_and_no_other_origin_may_read() {
    let address = page().await;
    for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "192.0.2.1:80", "[::1]:80"] {
        let answer = ask(address, &format!("GET / HTTP/1.1\r\nhost: {host}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{host}: {answer}");
        assert!(answer.contains("\r\ncontent-security-policy: default-src 'none'"), "{answer}");
        assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
    }
    for head in [
        "GET / HTTP/1.1\r\nhost: attacker.example",
        "GET /events HTTP/1.1\r\nhost: attacker.example:80",
        "GET /events HTTP/1.1\r\nhost: 127.0.0.1.attacker.example",
        "GET /events HTTP/1.1\r\nhost: ",
        "GET / HTTP/1.0",
    ] {
        let answer = ask(address, head).await;
        assert!(answer.contains(" 403 Forbidden\r\n") && answer.contains("IP address"), "{answer}");
    }
    let of_host = |line: &str| format!("{line} HTTP/1.1\r\nhost: localhost");
    let answer = ask(address, &of_host("GET /favicon.ico")).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    for line in ["POST /", "PUT /events", "OPTIONS /events", "HEAD /"] {
        let answer = ask(address, &of_host(line)).await;
        let is_refused = answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET\r\n");
        assert!(is_refused, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_see_a_connection_and_its_rates() {
    let (left, right) = memory::pair(1500, 64);
    let stack = |device, address: &str| {
        Stack::new(device, HostConfig::new([address.parse().unwrap()])).unwrap()
    };
    let (server, client) = (stack(left, "10.0.0.1/24"), stack(right, "10.0.0.2/24"));
    let listener = server.listen("10.0.0.1:7".parse().unwrap(), 16).unwrap();
    let mut stream = client.connect("10.0.0.1:7".parse().unwrap()).await.unwrap();
    let (mut accepted, peer) = listener.accept().await.unwrap();
    let reads = Arc::new(AtomicUsize::new(0));
    let (counted, shown) = (reads.clone(), server.clone());
    let read = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        ready(Some(of_stacks(std::slice::from_ref(&shown))))
    };
    let address = listen(([127, 0, 0, 1], 0).into(), "a title", read).await.unwrap();
    ask(address, "GET / HTTP/1.1\r\nhost: localhost").await;
    assert_eq!(reads.load(Ordering::Relaxed), 0, "nobody looks");

    let (mut viewer, status) = look(address).await;
    assert_eq!(status, "HTTP/1.1 200 OK\r\n");
    let first = next(&mut viewer).await;
    assert_eq!(first["title"], "a title");
    let charts = first["charts"].as_array().unwrap();
    let chart = |title: &str| {
        let place = charts.iter().position(|chart| chart["title"] == title);
        place.unwrap_or_else(|| panic!("{title}: {first}"))
    };
    let connections = &charts[chart("Connections")];
    assert_eq!(connections["kind"], "gauge");
    assert_eq!(connections["series"][1], serde_json::json!(["established", 1.0]));
    assert_eq!(first["figures"][0], serde_json::json!(["Connections", "ESTAB 1"]));
    let (columns, row) = (&first["table"]["columns"], &first["table"]["rows"][0]);
    assert_eq!(first["table"]["total"], 1);
    let cell = |name: &str| {
        let place = columns.as_array().unwrap().iter().position(|column| column == name);
        &row[place.unwrap()]
    };
    assert_eq!(cell("local"), "10.0.0.1:7");
    assert_eq!(cell("peer"), &Value::from(peer.to_string()));
    assert_eq!(cell("state"), "ESTAB");
    assert_eq!(cell("strategies"), "rack/bbr3/spike");
    assert_eq!(cell("waits for"), "application");
    assert!(cell("cwnd (kB)").as_f64().unwrap() > 10.0, "{row}");

    // Mbit received by the device.
    let received = |snapshot: &Value| {
        let chart = &snapshot["charts"][chart("Throughput")];
        assert_eq!((&chart["unit"], &chart["kind"]), (&"Mbit/s".into(), &"counter".into()));
        assert_eq!(chart["series"][0][0], "received");
        chart["series"][0][1].as_f64().unwrap()
    };
    let before = received(&first);
    stream.write_all(&[0; 100_000]).await.unwrap();
    accepted.read_exact(&mut [0; 100_000]).await.unwrap();
    // An earlier snapshot may still arrive.
    while received(&next(&mut viewer).await) < before + 0.8 {}
}

#[tokio::test]
async fn there_are_sixteen_viewers_at_most_and_one_that_goes_makes_room() {
    let address = page().await;
    let mut viewers = Vec::new();
    for _ in 0..VIEWERS {
        let (mut viewer, status) = look(address).await;
        assert_eq!(status, "HTTP/1.1 200 OK\r\n");
        next(&mut viewer).await;
        viewers.push(viewer);
    }
    let refused = ask(address, "GET /events HTTP/1.1\r\nhost: localhost").await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("close one"), "{refused}");
    let page = ask(address, "GET / HTTP/1.1\r\nhost: localhost").await;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"));
    viewers.pop();
    while look(address).await.1 != "HTTP/1.1 200 OK\r\n" {}
}

#[tokio::test]
async fn streams_end_with_what_they_show() {
    let left = AtomicUsize::new(2);
    let read = move || {
        let is_there = left.fetch_sub(1, Ordering::Relaxed) > 0;
        ready(is_there.then(Snapshot::default))
    };
    let address = listen(([127, 0, 0, 1], 0).into(), "a", read).await.unwrap();
    let answer = ask(address, "GET /events HTTP/1.1\r\nhost: localhost").await;
    assert_eq!(answer.matches("data: {").count(), 2, "{answer}");
    assert!(answer.ends_with("\r\n0\r\n\r\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_for_nothing_or_does_not_read_is_dropped() {
    let (snapshots, seen) = watch::channel(Bytes::new());
    let site = Site::new(seen, Arc::default());
    let (_silent, server) = duplex(1024);
    site.serve(server).await;

    let (mut viewer, server) = duplex(1024);
    viewer.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let snapshot = Bytes::from(vec![b'a'; 10_000]);
    let send = async {
        loop {
            tokio::time::sleep(PERIOD).await;
            snapshots.send_replace(snapshot.clone());
        }
    };
    let start = Instant::now();
    tokio::select! {
        () = site.serve(server) => {}
        () = send => {}
    }
    assert!(start.elapsed() >= Duration::from_secs(10));
    // The unsent data is bounded, however much was sent.
    let mut read = Vec::new();
    viewer.read_to_end(&mut read).await.unwrap();
    assert_eq!(read.len(), 1024);
}
