//! Requests with and without the SHA-256 of a file.

use std::fs;
use std::time::Duration;

use super::super::Files;
use super::status;
use super::uploads::{digest, field, one};

async fn ask(files: &Files, name: &str) -> String {
    let fields = "host: a\r\nconnection: close\r\nwant-repr-digest: sha-256=10";
    one(files, &format!("HEAD /{name} HTTP/1.1\r\n{fields}\r\n\r\n")).await
}

#[tokio::test]
async fn a_file_is_read_once_for_it_until_it_is_another_one() {
    let directory = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(directory.path().join("a"), text).unwrap();
    write("one");
    let files = Files::read_only(directory.path()).unwrap();
    let first = ask(&files, "a").await;
    assert_eq!(field(&first, "repr-digest"), Some(digest(b"one").as_str()), "{first}");
    // No turn to read is free, and no room to wait for one.
    let reading = files.digests.turn.clone().acquire_owned().await.unwrap();
    let most = u32::try_from(files.digests.asking.available_permits()).unwrap();
    let waiting = files.digests.asking.clone().acquire_many_owned(most).await.unwrap();
    let again = ask(&files, "a").await;
    assert_eq!(field(&again, "repr-digest"), field(&first, "repr-digest"), "{again}");
    write("other");
    drop((reading, waiting));
    let other = ask(&files, "a").await;
    assert_eq!(field(&other, "repr-digest"), Some(digest(b"other").as_str()), "{other}");
}

#[tokio::test]
async fn waiting_for_a_digest_is_limited_and_shares_its_result() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), "one").unwrap();
    let files = Files::read_only(directory.path()).unwrap();
    let reading = files.digests.turn.clone().acquire_owned().await.unwrap();
    let most = files.digests.asking.available_permits();
    let waiting: Vec<_> = (0..most)
        .map(|_| {
            let files = files.clone();
            tokio::spawn(async move { ask(&files, "a").await })
        })
        .collect();
    while files.digests.asking.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let answer = ask(&files, "a").await;
    assert_eq!((status(&answer), field(&answer, "retry-after")), (503, Some("1")), "{answer}");
    drop(reading);
    for answer in waiting {
        let answer = answer.await.unwrap();
        assert_eq!(field(&answer, "repr-digest"), Some(digest(b"one").as_str()), "{answer}");
    }
}

#[tokio::test]
async fn waiting_for_a_digest_times_out() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), "one").unwrap();
    let mut files = Files::read_only(directory.path()).unwrap();
    files.digests.patience = Duration::from_millis(50);
    let most = files.digests.asking.available_permits();
    let _reading = files.digests.turn.clone().acquire_owned().await.unwrap();
    let answer = ask(&files, "a").await;
    assert_eq!((status(&answer), field(&answer, "retry-after")), (503, Some("1")), "{answer}");
    assert_eq!(files.digests.asking.available_permits(), most);
}
