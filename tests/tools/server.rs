//! A small HTTP server on the kernel's sockets, which also misbehaves on purpose.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use airtcp_testbed::Namespace;

/// The served file, and the requests so far.
#[derive(Default)]
pub(crate) struct Site {
    file: Vec<u8>,
    heads: Mutex<Vec<String>>,
    puts: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Site {
    /// Serves `file` in the namespace at a port of all its addresses:
    ///
    /// - `/file` supports ranges, `/whole` does not; `/moved` redirects to `/file`, `/away` to an
    ///   https URL, `/round` to itself
    /// - `/parts` supports ranges but sends at most a million bytes of each; `/vague` supports
    ///   ranges but does not send the total length
    /// - `/tagged` sends a range only if If-Range names the file's tag, which is `"v2"`;
    ///   `/careless` ignores If-Range; `/torn`, with the same tag, ends in the middle
    /// - `/broken` ends in the middle; `/stuck` stops there without closing
    /// - PUT stores the body at any path except `/full`, which answers 507; `/moved`, which
    ///   redirects; `/shut`, which answers and resets the connection; and `/cut`, which resets it
    ///   in the middle
    pub(crate) fn serve(namespace: &Namespace, port: u16, file: Vec<u8>) -> Arc<Self> {
        let site = Arc::new(Self { file, ..Self::default() });
        let served = site.clone();
        let listener =
            namespace.run(move || TcpListener::bind(SocketAddr::from(([0; 8], port)))).unwrap();
        // The thread ends with the process; the namespace does not have to outlive the test for it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (site, stream) = (served.clone(), stream.unwrap());
                std::thread::spawn(move || site.answer(stream));
            }
        });
        site
    }

    /// The heads of all requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// The body stored by PUT at this path.
    pub(crate) fn kept(&self, target: &str) -> Option<Vec<u8>> {
        self.puts.lock().unwrap().get(target).cloned()
    }

    /// Answers one request. An error means that the client closed the connection.
    fn answer(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
        self.heads.lock().unwrap().push(head.clone());
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let target = target.split('?').next().unwrap_or_default();
        if method == "PUT" {
            self.put(&head, target, reader, stream)
        } else {
            self.get(&head, target, stream)
        }
    }

    fn put(
        &self,
        head: &str,
        target: &str,
        mut reader: BufReader<TcpStream>,
        mut stream: TcpStream,
    ) -> io::Result<()> {
        if target == "/shut" {
            // Closing with unread data resets the connection.
            return stream.write_all(
                b"HTTP/1.1 413 Large\r\nconnection: close\r\ncontent-length: 11\r\n\r\nless of it\n",
            );
        }
        if target == "/cut" {
            return reader.read_exact(&mut vec![0; self.file.len() / 2]);
        }
        let early = match target {
            "/full" => "HTTP/1.1 507 Full\r\ncontent-length: 9\r\n\r\nno room\r\n",
            "/moved" => "HTTP/1.1 307 Moved\r\nlocation: there?upload\r\ncontent-length: 0\r\n\r\n",
            _ => "",
        };
        if !early.is_empty() {
            stream.write_all(early.as_bytes())?;
            stream.shutdown(Shutdown::Write)?;
            // Closing with unread data would reset the connection, and the RST could overtake the
            // answer.
            return io::copy(&mut reader, &mut io::sink()).map(drop);
        }
        let mut body = vec![0; field(head, "content-length").and_then(|n| n.parse().ok()).unwrap()];
        reader.read_exact(&mut body)?;
        self.puts.lock().unwrap().insert(target.to_owned(), body);
        write!(stream, "HTTP/1.1 201 Created\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    }

    fn get(&self, head: &str, target: &str, mut stream: TcpStream) -> io::Result<()> {
        let length = self.file.len();
        let from = field(head, "range").and_then(|range| {
            range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok()
        });
        let is_tagged = ["/tagged", "/careless", "/torn"].contains(&target);
        let tag = if is_tagged { "etag: \"v2\"\r\n" } else { "" };
        let is_meant = target != "/tagged" || field(head, "if-range") == Some("\"v2\"");
        let from = from.filter(|_| is_meant);
        let redirect =
            |to| format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        let whole = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\n{tag}content-length: {length}\r\n\r\n"
        );
        let (head, body, stuck) = match (target, from) {
            ("/moved", _) => (redirect("file"), &[][..], false),
            ("/away", _) => (redirect("https://a.example/file"), &[][..], false),
            ("/round", _) => (redirect("/round"), &[][..], false),
            ("/file", Some(from)) if from >= length => {
                let head = "HTTP/1.1 416 Not There\r\nconnection: close\r\ncontent-length: 0\r\n";
                (format!("{head}content-range: bytes */{length}\r\n\r\n"), &[][..], false)
            }
            ("/file" | "/parts" | "/vague" | "/tagged" | "/careless", Some(from)) => {
                let most = if target == "/parts" { 1_000_000 } else { length };
                let part = &self.file[from..length.min(from + most)];
                let total = if target == "/vague" { "*".to_owned() } else { length.to_string() };
                let head = format!(
                    "HTTP/1.1 206 Part\r\nconnection: close\r\n{tag}content-length: {}\r\ncontent-range: bytes {from}-{}/{total}\r\n\r\n",
                    part.len(),
                    from + part.len() - 1
                );
                (head, part, false)
            }
            ("/file" | "/whole" | "/tagged" | "/careless", _) => (whole, &self.file[..], false),
            ("/broken" | "/torn", _) => (whole, &self.file[..length / 2], false),
            ("/stuck", _) => (whole, &self.file[..length / 2], true),
            _ => {
                let text = "HTTP/1.1 404 Not Found\r\ncontent-length: 15\r\n\r\nthere is none\r\n";
                (text.to_owned(), &[][..], false)
            }
        };
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        if stuck {
            // Wait until the client closes.
            let _ = stream.read(&mut [0]);
        }
        Ok(())
    }
}

/// Forwards one connection at a port of the namespace to `to`, with at most `most` bytes of the
/// client's data. Then both ends stay open, as after a link failure.
pub(crate) fn cut_off(namespace: &Namespace, port: u16, to: SocketAddr, most: u64) {
    let at = SocketAddr::from(([0; 8], port));
    let (listener, mut server) = namespace
        .run(move || Ok::<_, io::Error>((TcpListener::bind(at)?, TcpStream::connect(to)?)))
        .unwrap();
    // The thread ends with the process.
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        // An error means that the client is gone, which the server does not notice.
        let _ = io::copy(&mut (&client).take(most), &mut server);
        loop {
            std::thread::park();
        }
    });
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    fields.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
