//! Tests with requests as bytes, answered over a pipe in memory.

mod digests;
mod uploads;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};

use super::super::Stop;
use super::{CHUNK, Files, serve};

/// Sends `request`, and returns head and body of all that comes back.
async fn exchange(directory: &Path, request: &[u8]) -> (String, Vec<u8>) {
    let files = Files::new(directory).unwrap();
    let (client, mut server) = duplex(10_000);
    let (_sender, stop) = Stop::new();
    // The client checks how a broken request ends.
    let serving = tokio::spawn(async move {
        let _ = serve(&files, &mut server, stop).await;
    });
    let (mut reader, mut writer) = split(client);
    let request = request.to_owned();
    let writing = tokio::spawn(async move {
        let _ = writer.write_all(&request).await;
        let _ = writer.shutdown().await;
    });
    let mut answer = Vec::new();
    reader.read_to_end(&mut answer).await.unwrap();
    writing.await.unwrap();
    serving.await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(answer[..end].to_owned()).unwrap();
    (head, answer.split_off(end))
}

async fn get(directory: &Path, target: &str, more: &str) -> (String, Vec<u8>) {
    let request = format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{more}\r\n");
    exchange(directory, request.as_bytes()).await
}

async fn put(directory: &Path, target: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut request = format!(
        "PUT {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend(body);
    exchange(directory, &request).await
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line")
}

fn names(directory: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(directory.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_file_of_many_chunks_goes_both_ways() {
    let directory = tempfile::tempdir().unwrap();
    let data: Vec<u8> = (0..CHUNK * 3 + 17).map(|n| (n % 251) as u8).collect();
    let (head, _) = put(directory.path(), "/big.bin", &data).await;
    assert_eq!(status(&head), 201, "{head}");
    let (head, body) = get(directory.path(), "/big.bin", "").await;
    assert_eq!(status(&head), 200);
    assert!(head.contains(&format!("content-length: {}\r\n", data.len())), "{head}");
    assert!(body == data);
    assert_eq!(names(&directory), ["big.bin"]);
}

#[tokio::test]
async fn a_part_and_the_head_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "0123456789").unwrap();
    let (head, body) = get(directory.path(), "/a.txt", "range: bytes=2-4\r\n").await;
    assert_eq!((status(&head), body.as_slice()), (206, b"234".as_slice()));
    assert!(head.contains("content-range: bytes 2-4/10\r\n"), "{head}");
    let (head, _) = get(directory.path(), "/a.txt", "range: bytes=10-\r\n").await;
    assert!(head.contains("content-range: bytes */10\r\n"), "{head}");
    let request = b"HEAD /a.txt HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let (head, body) = exchange(directory.path(), request).await;
    assert_eq!((status(&head), body.len()), (200, 0));
    assert!(head.contains("content-length: 10\r\n"), "{head}");
}

#[tokio::test]
async fn if_range_applies_only_to_the_tagged_file() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(status(&put(directory.path(), "/a", b"0123456789").await.0), 201);
    let tag = |head: &str| {
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag");
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{head}");
        tag.to_owned()
    };
    let first = tag(&get(directory.path(), "/a", "").await.0);
    let range = |tag: &str| format!("range: bytes=4-\r\nif-range: {tag}\r\n");
    let (head, body) = get(directory.path(), "/a", &range(&first)).await;
    assert_eq!((status(&head), body.as_slice()), (206, b"456789".as_slice()));
    assert_eq!(tag(&head), first);
    // A file of the same length, but a different one.
    assert_eq!(status(&put(directory.path(), "/a", b"abcdefghij").await.0), 204);
    for meant in [&first, "Sun, 22 Nov 2026 00:00:00 GMT", "nonsense"] {
        let (head, body) = get(directory.path(), "/a", &range(meant)).await;
        assert_eq!((status(&head), body.as_slice()), (200, b"abcdefghij".as_slice()), "{meant}");
        assert_ne!(tag(&head), first);
    }
}

#[tokio::test]
async fn several_requests_share_a_connection() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "one").unwrap();
    std::fs::write(directory.path().join("empty"), "").unwrap();
    let request = "GET /empty HTTP/1.1\r\nhost: a\r\n\r\nGET /a HTTP/1.1\r\nhost: a\r\n\r\n";
    let (head, rest) = exchange(directory.path(), request.as_bytes()).await;
    assert_eq!(status(&head), 200);
    let rest = String::from_utf8(rest).unwrap();
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n") && rest.ends_with("\r\n\r\none"), "{rest}");
}

#[tokio::test]
async fn a_directory_is_its_index_or_its_listing() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sub dir")).unwrap();
    std::fs::write(directory.path().join("<b>.txt"), "x").unwrap();
    let (head, body) = get(directory.path(), "/", "").await;
    let page = String::from_utf8(body).unwrap();
    assert_eq!(status(&head), 200);
    assert!(page.contains("<a href=\"sub%20dir/\">sub dir/</a>"), "{page}");
    assert!(page.contains("<a href=\"%3Cb%3E.txt\">&lt;b&gt;.txt</a> (1 B)"), "{page}");
    let (head, _) = get(directory.path(), "/sub%20dir", "").await;
    assert_eq!(status(&head), 301);
    assert!(head.contains("location: /sub%20dir/\r\n"), "{head}");
    std::fs::write(directory.path().join("index.html"), "welcome").unwrap();
    assert_eq!(get(directory.path(), "/", "").await.1, b"welcome");
}

#[tokio::test]
async fn nothing_outside_is_read_or_written() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("link")).unwrap();
    for target in ["/../secret", "/%2e%2e/secret", "/..%2Fsecret"] {
        assert_eq!(status(&get(directory.path(), target, "").await.0), 400, "{target}");
        assert_eq!(status(&put(directory.path(), target, b"x").await.0), 400, "{target}");
    }
    assert_eq!(status(&get(directory.path(), "/link/secret", "").await.0), 403);
    assert_eq!(status(&put(directory.path(), "/link/new", b"x").await.0), 403);
    assert_eq!(names(&outside), ["secret"]);
}

#[tokio::test]
async fn failures_have_their_status() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("a"), "old").unwrap();
    assert_eq!(status(&get(directory.path(), "/no", "").await.0), 404);
    assert_eq!(status(&get(directory.path(), "/a/b", "").await.0), 404);
    assert_eq!(status(&put(directory.path(), "/sub", b"x").await.0), 409);
    assert_eq!(status(&put(directory.path(), "/", b"x").await.0), 409);
    assert_eq!(status(&put(directory.path(), "/no/b", b"x").await.0), 409);
    assert_eq!(status(&put(directory.path(), "/a", b"new").await.0), 204);
    assert_eq!(get(directory.path(), "/a", "").await.1, b"new");
    let request = b"DELETE /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let (head, _) = exchange(directory.path(), request).await;
    assert_eq!(status(&head), 405);
    assert!(head.contains("allow: GET, HEAD, PUT\r\n"), "{head}");
}

#[tokio::test]
async fn an_interrupted_body_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "old").unwrap();
    let request = b"PUT /a HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nonly this";
    let (head, _) = exchange(directory.path(), request).await;
    assert_eq!(status(&head), 400);
    assert_eq!(names(&directory), ["a"]);
    assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"old");
}

#[tokio::test]
async fn a_stalled_body_changes_nothing() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("old"), "old").unwrap();
    let files = Files::new(directory.path()).unwrap();
    let files = Files { patience: Duration::from_millis(50), ..files };
    let (mut client, mut server) = duplex(10_000);
    let (_sender, stop) = Stop::new();
    let serving = tokio::spawn(async move { serve(&files, &mut server, stop).await });
    let head = "PUT /old HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nnew";
    client.write_all(head.as_bytes()).await.unwrap();
    // The client sends no more, and does not close.
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    drop(client);
    let _ = serving.await.unwrap();
    assert_eq!(names(&directory), ["old"]);
    assert_eq!(std::fs::read(directory.path().join("old")).unwrap(), b"old");
}

#[tokio::test]
async fn a_refused_body_is_read_so_that_the_response_arrives() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files::new(directory.path()).unwrap();
    let (client, mut server) = duplex(10_000);
    let (_sender, stop) = Stop::new();
    let serving = tokio::spawn(async move {
        let _ = serve(&files, &mut server, stop).await;
    });
    let (mut reader, mut writer) = split(client);
    let length = 10 * CHUNK;
    let head = format!("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
    writer.write_all(head.as_bytes()).await.unwrap();
    // Sends the whole body before it reads the response. On a closed connection, this would fail.
    writer.write_all(&vec![0; length]).await.unwrap();
    writer.shutdown().await.unwrap();
    let mut answer = String::new();
    reader.read_to_string(&mut answer).await.unwrap();
    assert_eq!(status(&answer), 409, "{answer}");
    serving.await.unwrap();
}

#[tokio::test]
async fn a_part_is_not_put_in_place_of_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "old").unwrap();
    let request = b"PUT /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 1\r\n\
                    content-range: bytes 3-3/4\r\n\r\nx";
    let (head, _) = exchange(directory.path(), request).await;
    assert_eq!(status(&head), 400, "{head}");
    assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"old");
}

#[tokio::test]
async fn a_stop_ends_an_idle_connection() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files::new(directory.path()).unwrap();
    let (mut client, mut server) = duplex(1000);
    let (sender, stop) = Stop::new();
    let serving = tokio::spawn(async move { serve(&files, &mut server, stop).await });
    sender.send(true).unwrap();
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    serving.await.unwrap().unwrap();
}
