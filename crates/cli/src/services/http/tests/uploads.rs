//! Tests of interrupted and resumed uploads.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::super::held::{self, Writers};
use super::super::{CHUNK, Files, serve};
use super::{exchange, get, names, status};
use crate::services::Stop;

/// The field that asks the server to keep an interrupted upload.
const KEEP: &str = "upload-complete: ?1\r\n";

/// Sends a request with these fields and a body that may be cut short.
async fn ask(directory: &Path, line: &str, fields: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut request =
        format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n").into_bytes();
    request.extend(body);
    exchange(directory, &request).await
}

/// Returns the fields of a PATCH that sends the rest of `whole` after `offset` bytes.
fn rest(whole: &[u8], offset: usize) -> String {
    format!(
        "{KEEP}content-type: application/partial-upload\r\nupload-offset: {offset}\r\nupload-length: {}\r\n\
         content-length: {}\r\nrepr-digest: {}\r\n",
        whole.len(),
        whole.len() - offset,
        digest(whole)
    )
}

pub(super) fn digest(data: &[u8]) -> String {
    crate::upload::field(&Sha256::new_with_prefix(data))
}

pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

#[tokio::test]
async fn an_interrupted_upload_is_kept_and_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let data: Vec<u8> = (0..CHUNK * 3 + 17).map(|n| (n % 251) as u8).collect();
    let (first, second) = (CHUNK + 5, 2 * CHUNK);
    std::fs::write(path.join("a"), "old").unwrap();
    let fields = format!("{KEEP}content-length: {}\r\n", data.len());
    let (head, body) = ask(path, "PUT /a", &fields, &data[..first]).await;
    let text = String::from_utf8(body).unwrap();
    assert!(status(&head) == 400 && text.contains("resume with put --continue"), "{head}{text}");
    // Only requests for the upload can see it.
    assert_eq!(get(path, "/a", "").await.1, b"old");
    let page = String::from_utf8(get(path, "/", "").await.1).unwrap();
    assert!(page.contains("\"a\"") && !page.contains("airtcp-put"), "{page}");
    let name = names(&directory).into_iter().find(|name| name != "a").unwrap();
    for line in ["GET", "PUT"].map(|method| format!("{method} /{name}")) {
        assert_eq!(status(&ask(path, &line, "content-length: 0\r\n", b"").await.0), 403, "{line}");
    }
    let (head, body) = ask(path, "HEAD /a?upload", "", b"").await;
    assert_eq!((status(&head), body.len()), (204, 0));
    assert_eq!(field(&head, "upload-offset"), Some(&*first.to_string()));
    assert_eq!(field(&head, "upload-complete"), Some("?0"));
    assert_eq!(field(&head, "repr-digest"), Some(&*digest(&data[..first])));
    assert_eq!(field(&head, "cache-control"), Some("no-store"));

    // The upload is interrupted again, and the new data is kept as well.
    let (head, _) = ask(path, "PATCH /a?upload", &rest(&data, first), &data[first..second]).await;
    assert_eq!(status(&head), 400, "{head}");
    let (head, _) = ask(path, "HEAD /a?x=y&upload", "", b"").await;
    assert_eq!(field(&head, "upload-offset"), Some(&*second.to_string()));
    assert_eq!(get(path, "/a", "").await.1, b"old");
    let (head, _) = ask(path, "PATCH /a?upload", &rest(&data, second), &data[second..]).await;
    assert_eq!((status(&head), field(&head, "upload-complete")), (204, Some("?1")), "{head}");
    assert!(get(path, "/a", "").await.1 == data);
    assert_eq!(names(&directory), ["a"]);

    // An existing file is a complete upload.
    let (head, _) = ask(path, "HEAD /a?upload", "", b"").await;
    assert_eq!(field(&head, "upload-offset"), Some(&*data.len().to_string()));
    assert_eq!(field(&head, "upload-complete"), Some("?1"));
    assert_eq!(field(&head, "repr-digest"), Some(&*digest(&data)));
    for nothing in ["/b", "/", "/no/b", "/no/"] {
        let (head, _) = ask(path, &format!("HEAD {nothing}?upload"), "", b"").await;
        assert_eq!((status(&head), field(&head, "upload-offset")), (204, Some("0")), "{nothing}");
        assert_eq!(field(&head, "repr-digest"), None);
    }
}

#[tokio::test]
async fn an_upload_with_a_wrong_digest_is_removed_and_the_old_file_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("a"), "old").unwrap();
    let fields = format!("{KEEP}content-length: 10\r\n");
    ask(path, "PUT /a", &fields, b"01234").await;
    let (head, body) = ask(path, "PATCH /a?upload", &rest(b"abcdefghij", 5), b"fghij").await;
    let text = String::from_utf8(body).unwrap();
    assert_eq!((status(&head), field(&head, "upload-complete")), (422, Some("?1")), "{head}");
    assert!(text.contains("is removed") && text.contains("send all of it again"), "{text}");
    assert_eq!(names(&directory), ["a"]);
    assert_eq!(get(path, "/a", "").await.1, b"old");
    // A new PUT replaces the held upload; one without the field leaves nothing.
    ask(path, "PUT /a", &fields, b"01234").await;
    ask(path, "PUT /a", &fields, b"ab").await;
    let (head, _) = ask(path, "HEAD /a?upload", "", b"").await;
    assert_eq!(field(&head, "repr-digest"), Some(&*digest(b"ab")));
    ask(path, "PUT /a", "content-length: 10\r\n", b"01234").await;
    assert_eq!(names(&directory), ["a"]);
    ask(path, "PUT /a", &fields, b"").await;
    assert_eq!(names(&directory), ["a"]);
}

#[tokio::test]
async fn a_mismatched_upload_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let whole = b"0123456789";
    ask(path, "PUT /a", &format!("{KEEP}content-length: 10\r\n"), b"01234").await;
    let held = names(&directory);
    let good = rest(whole, 5);
    let without = |name: &str| {
        good.split_inclusive('\n').filter(|line| !line.starts_with(name)).collect::<String>()
    };
    for (fields, expected) in [
        (rest(whole, 4), 409),
        (rest(whole, 6), 409),
        (good.replace("upload-offset: 5", "upload-offset: 999999999999999"), 400),
        (without("upload-length").replace("offset: 5", "offset: 999999999999999"), 409),
        (good.replace("upload-offset: 5", "upload-offset: -5"), 400),
        (good.replace("upload-offset: 5", "upload-offset: 18446744073709551615"), 400),
        (good.replace("upload-offset: 5", "upload-offset: 5\r\nupload-offset: 5"), 400),
        (good.replace("upload-length: 10", "upload-length: 11"), 400),
        (good.replace("upload-complete: ?1", "upload-complete: ?0"), 400),
        (without("upload-offset"), 400),
        (without("upload-complete"), 400),
        (without("repr-digest"), 400),
        (without("content-type"), 415),
        (format!("{good}content-type: application/partial-upload\r\n"), 415),
        (format!("{good}upload-length: 10\r\n"), 400),
        (good.replace("upload-length: 10", "upload-length: ten"), 400),
        (format!("{good}upload-complete: ?1\r\n"), 400),
        (format!("{good}repr-digest: {}\r\n", digest(b"another")), 400),
    ] {
        let (head, body) = ask(path, "PATCH /a?upload", &fields, b"56789").await;
        assert_eq!(status(&head), expected, "{fields}{head}{}", String::from_utf8_lossy(&body));
        let offset = (expected == 409).then_some("5");
        assert_eq!(field(&head, "upload-offset"), offset, "{fields}{head}");
        assert_eq!(names(&directory), held);
        assert_eq!(std::fs::read(path.join(&held[0])).unwrap(), b"01234");
    }
    let (head, _) = ask(path, "PATCH /b?upload", &good, b"56789").await;
    assert_eq!((status(&head), field(&head, "upload-offset")), (409, Some("0")));
    let (head, _) = ask(path, "PATCH /a", &good, b"56789").await;
    assert_eq!((status(&head), field(&head, "allow")), (405, Some("GET, HEAD, PUT")));
    let (head, _) = ask(path, "PUT /a?upload", &good, b"56789").await;
    assert_eq!((status(&head), field(&head, "allow")), (405, Some("GET, HEAD, PATCH")));
    let (head, _) = ask(path, "PATCH /a?upload", &good, b"56789").await;
    assert_eq!(status(&head), 201);
    assert_eq!(get(path, "/a", "").await.1, whole);
}

#[tokio::test]
async fn a_partial_put_replaces_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("a"), "old").unwrap();
    let chunked = b"5\r\n01234\r\n0\r\n\r\n";
    for fields in [
        "upload-complete: ?0\r\n",
        "upload-complete: 1\r\n",
        "upload-complete:\r\n",
        "upload-complete: ?1\r\nupload-complete: ?1\r\n",
        "upload-complete: ?1\r\nupload-length: 4\r\n",
        "upload-length: 6\r\n",
        "upload-length: five\r\n",
        "upload-length: 5\r\nupload-length: 5\r\n",
    ] {
        for (body, coding) in
            [(&b"01234"[..], "content-length: 5\r\n"), (chunked, "transfer-encoding: chunked\r\n")]
        {
            let (head, _) = ask(path, "PUT /a", &format!("{fields}{coding}"), body).await;
            assert_eq!(status(&head), 400, "{fields}{head}");
            assert_eq!(names(&directory), ["a"]);
            assert_eq!(get(path, "/a", "").await.1, b"old", "{fields}{coding}");
        }
    }
    let fields = format!("{KEEP}upload-length: 5\r\ntransfer-encoding: chunked\r\n");
    assert_eq!(status(&ask(path, "PUT /a", &fields, chunked).await.0), 204);
    assert_eq!(get(path, "/a", "").await.1, b"01234");
}

#[tokio::test]
async fn an_invalid_file_name_is_refused_before_the_body() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("PUT /{}", "n".repeat(256));
    let fields = format!("{KEEP}content-length: 10\r\n");
    let (head, body) = ask(directory.path(), &line, &fields, b"01234").await;
    let text = String::from_utf8(body).unwrap();
    assert!(status(&head) == 404 && text.contains("name too long"), "{head}{text}");
    assert!(names(&directory).is_empty());
}

/// A request with an unfinished body. Its end returns the response.
struct Open {
    client: DuplexStream,
    serving: JoinHandle<()>,
}

impl Open {
    /// Sends a head and a part of the body, and waits until `held` has more than `length` bytes.
    async fn start(files: &Files, request: &str, body: &[u8], held: &Path, length: u64) -> Self {
        let (mut client, mut server) = duplex(10_000);
        let files = files.clone();
        let serving = tokio::spawn(async move {
            let (_sender, stop) = Stop::new();
            let _ = serve(&files, &mut server, stop).await;
        });
        client.write_all(request.as_bytes()).await.unwrap();
        client.write_all(body).await.unwrap();
        while std::fs::metadata(held).map_or(0, |held| held.len()) <= length {
            tokio::task::yield_now().await;
        }
        Self { client, serving }
    }

    async fn end(mut self, body: &[u8]) -> String {
        let _ = self.client.write_all(body).await;
        let _ = self.client.shutdown().await;
        let mut answer = String::new();
        let _ = self.client.read_to_string(&mut answer).await;
        self.serving.await.unwrap();
        answer
    }
}

pub(super) async fn one(files: &Files, request: &str) -> String {
    Open::start(files, request, b"", Path::new("/"), 0).await.end(b"").await
}

#[tokio::test]
async fn concurrent_requests_for_one_upload_are_refused_but_one() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files::new(directory.path()).unwrap();
    let held = held::path(directory.path(), OsStr::new("a"));
    let whole: Vec<u8> = (0..CHUNK * 6).map(|n| (n % 251) as u8).collect();
    let other = vec![b'x'; whole.len()];
    let put =
        format!("PUT /a HTTP/1.1\r\nhost: a\r\n{KEEP}content-length: {}\r\n\r\n", whole.len());
    let ask = "HEAD /a?upload HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    // The query ends the earlier request, whose client has vanished without notice.
    let silent = Open::start(&files, &put, &whole[..CHUNK * 2], &held, 0).await;
    let answer = one(&files, ask).await;
    let offset: usize = field(&answer, "upload-offset").unwrap().parse().unwrap();
    assert!((CHUNK..=CHUNK * 2).contains(&offset), "{answer}");
    assert_eq!(field(&answer, "repr-digest"), Some(&*digest(&whole[..offset])));
    let refused = silent.end(&other[CHUNK * 2..]).await;
    assert!(status(&refused) == 409 && refused.contains("another request replaced"), "{refused}");
    // Both clients know the offset. The first PATCH is served, and the second one is refused at
    // once.
    let patch = format!(
        "PATCH /a?upload HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{}\r\n",
        rest(&whole, offset)
    );
    let (more, end) = whole[offset..].split_at(CHUNK * 2);
    let first = Open::start(&files, &patch, more, &held, offset as u64).await;
    let second = one(&files, &patch).await;
    assert_eq!(status(&second), 423, "{second}");
    assert_eq!(status(&first.end(end).await), 201);
    assert!(std::fs::read(directory.path().join("a")).unwrap() == whole);
    // Of two new uploads, the later one is kept.
    let mut earlier = Open::start(&files, &put, &other[..CHUNK * 2], &held, 0).await;
    let (begin, end) = whole.split_at(CHUNK * 2);
    let later = Open::start(&files, &put, begin, &held, 0).await;
    let mut answer = [0; 12];
    earlier.client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 409");
    assert_eq!(status(&later.end(end).await), 204);
    assert!(std::fs::read(directory.path().join("a")).unwrap() == whole);
    assert_eq!(names(&directory), ["a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_simultaneous_uploads_one_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files::new(directory.path()).unwrap();
    let put = "PUT /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbody";
    for _ in 0..50 {
        let all: Vec<_> = (0..4)
            .map(|_| {
                let files = files.clone();
                tokio::spawn(async move { one(&files, put).await })
            })
            .collect();
        let mut taken = 0;
        for answer in all {
            let answer = answer.await.unwrap();
            match status(&answer) {
                201 | 204 => taken += 1,
                _ => assert!(
                    answer.contains("409 Conflict") && answer.contains("another request"),
                    "{answer}"
                ),
            }
        }
        assert!(taken > 0);
        assert_eq!(names(&directory), ["a"]);
    }
}

#[tokio::test]
async fn uploads_do_not_wait_for_digest_requests_which_are_limited() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    ask(path, "PUT /a", &format!("{KEEP}content-length: 10\r\n"), b"01234").await;
    let files = Files::new(path).unwrap();
    let _reading = files.digests.turn.clone().acquire_owned().await.unwrap();
    let most = u32::try_from(files.digests.asking.available_permits()).unwrap();
    let _waiting = files.digests.asking.clone().acquire_many_owned(most).await.unwrap();
    let asked = "HEAD /a?upload HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = one(&files, asked).await;
    assert_eq!((status(&answer), field(&answer, "retry-after")), (503, Some("1")), "{answer}");
    // A query that needs no checksum is answered.
    assert_eq!(status(&one(&files, &asked.replace("/a", "/b")).await), 204);
    let fields = rest(b"0123456789", 5);
    let request =
        format!("PATCH /a?upload HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n56789");
    assert_eq!(status(&one(&files, &request).await), 201);
}

#[tokio::test]
async fn an_upload_locked_by_another_process_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    ask(path, "PUT /a", &format!("{KEEP}content-length: 10\r\n"), b"01234").await;
    let name = names(&directory).remove(0);
    let other = std::fs::File::open(path.join(&name)).unwrap();
    other.lock().unwrap();
    let files = Files::new(path).unwrap();
    let files = Files { writers: Writers::new(Duration::from_millis(50)), ..files };
    for line in ["HEAD /a?upload", "PUT /a", "PATCH /a?upload"] {
        let fields = rest(b"0123456789", 5).replace("upload-length: 10\r\n", "");
        let request =
            format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n56789");
        let answer = one(&files, &request).await;
        assert_eq!(status(&answer), 423, "{line}: {answer}");
        assert_eq!(std::fs::read(path.join(&name)).unwrap(), b"01234");
    }
}

#[tokio::test]
async fn a_symlink_in_place_of_a_held_upload_is_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "01234").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let held = held::path(path, OsStr::new("a"));
    std::os::unix::fs::symlink(&secret, &held).unwrap();
    for (line, body) in [("HEAD /a?upload", ""), ("PATCH /a?upload", "56789"), ("PUT /a", "56789")]
    {
        let fields = rest(b"0123456789", 5).replace("upload-length: 10\r\n", "");
        let (head, _) = ask(path, line, &fields, body.as_bytes()).await;
        assert_eq!(status(&head), 403, "{line}: {head}");
        assert_eq!(field(&head, "upload-offset"), None);
    }
    assert_eq!(std::fs::read(&secret).unwrap(), b"01234");
    // The longest possible file name works.
    let name = "n".repeat(255);
    ask(path, &format!("PUT /{name}"), &format!("{KEEP}content-length: 10\r\n"), b"01234").await;
    let (head, _) = ask(path, &format!("HEAD /{name}?upload"), "", b"").await;
    assert_eq!(field(&head, "upload-offset"), Some("5"));
}

#[tokio::test]
async fn held_uploads_are_limited_in_number_and_age() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let fields = format!("{KEEP}content-length: 10\r\n");
    let held = |n: usize| held::path(path, OsStr::new(&n.to_string()));
    let date = |n: usize, age: Duration| {
        let file = std::fs::File::options().write(true).open(held(n)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    };
    for n in 0..20 {
        ask(path, &format!("PUT /{n}"), &fields, b"01234").await;
        date(n, Duration::from_secs(3600 * (20 - n as u64)));
    }
    let left: Vec<_> = (0..20).filter(|&n| held(n).exists()).collect();
    assert_eq!(left, (4..20).collect::<Vec<_>>());
    // An upload that is being written is kept, whatever its age.
    let writing = std::fs::File::open(held(10)).unwrap();
    writing.lock().unwrap();
    for n in 5..15 {
        date(n, Duration::from_secs(8 * 24 * 3600));
    }
    ask(path, "PUT /20", &fields, b"01234").await;
    let left: Vec<_> = (0..21).filter(|&n| held(n).exists()).collect();
    assert_eq!(left, [4, 10, 15, 16, 17, 18, 19, 20]);
}

#[tokio::test]
async fn uploads_in_progress_do_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let held = |n: usize| held::path(directory.path(), OsStr::new(&n.to_string()));
    for n in 0..15 {
        std::fs::write(held(n), "01234").unwrap();
        let file = std::fs::File::options().write(true).open(held(n)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600 * (20 - n as u64))).unwrap();
    }
    let writing: Vec<_> = (20..23).map(|n| std::fs::File::create_new(held(n)).unwrap()).collect();
    for file in &writing {
        file.lock().unwrap();
    }
    let fields = format!("{KEEP}content-length: 10\r\n");
    for (n, first) in [(15, 0), (16, 1)] {
        ask(directory.path(), &format!("PUT /{n}"), &fields, b"01234").await;
        let left: Vec<_> = (0..20).filter(|&n| held(n).exists()).collect();
        assert_eq!(left, (first..=n).collect::<Vec<_>>());
    }
    assert!((20..23).all(|n| held(n).exists()));
}
