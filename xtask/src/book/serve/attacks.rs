//! Attacks on the server, by clients on this machine, each bounded in time and bytes; after each of
//! them the book is served as before.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::answer::Site;
use super::connections::{self, Limits};
use super::listen;

/// No answer may take longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Short times, and two connections only, so that one that stays shows.
const LIMITS: Limits = Limits {
    connections: 2,
    asking: Duration::from_millis(400),
    answering: Duration::from_millis(400),
};

/// A server of a small book. Its thread ends with the tests.
struct Server {
    folder: TempDir,
    port: u16,
    refreshed: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("book")).unwrap();
        fs::write(folder.path().join("book/index.html"), "home").unwrap();
        fs::write(folder.path().join("book/a.css"), "a {}").unwrap();
        fs::write(folder.path().join("secret.html"), "secret").unwrap();
        let listener = listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let refreshed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&refreshed);
        let site = Site::new(&folder.path().join("book"), port, move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let site = site.unwrap();
        thread::spawn(move || connections::serve(listener, site, LIMITS));
        Self { folder, port, refreshed }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// What comes back for these bytes until the server closes the connection.
    fn said(&self, bytes: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        rest(&mut stream)
    }

    /// What a request gets whose head has these lines besides the right host.
    fn asked(&self, request: &str, headers: &str) -> String {
        let port = self.port;
        self.said(&format!("{request} HTTP/1.1\r\nHost: localhost:{port}\r\n{headers}\r\n"))
    }

    /// The book is still served.
    #[track_caller]
    fn serves(&self) {
        let answer = self.asked("GET /", "");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhome"));
    }

    /// The status of a request, after which the book is still served.
    #[track_caller]
    fn status(&self, request: &str, headers: &str) -> String {
        let answer = self.asked(request, headers);
        assert!(!answer.contains("secret"), "{answer}");
        self.serves();
        status(&answer)
    }
}

/// The number in an answer's first line.
fn status(answer: &str) -> String {
    answer.split(' ').nth(1).unwrap_or("none").to_owned()
}

/// What is left to read. Where the server has closed before it had read all, its system says so in
/// place of an end.
fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server did not close: {error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn it_listens_on_this_machine_only() {
    let address = listen(0).unwrap().local_addr().unwrap();
    assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
}

#[test]
fn pages_and_their_files_are_served() {
    let server = Server::start();
    server.serves();
    let style = server.asked("GET /a.css?version=1", "");
    for header in [
        "content-type: text/css; charset=utf-8",
        "content-length: 4",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(style.contains(&format!("\r\n{header}\r\n")), "{header} is not in {style}");
    }
    let head = server.asked("HEAD /", "");
    assert!(head.contains("\r\ncontent-length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(server.status("GET /none.html", ""), "404");
}

#[test]
fn the_book_is_brought_up_to_date_for_pages_only() {
    let server = Server::start();
    for (request, refreshed) in
        [("GET /", 1), ("GET /a.css", 1), ("HEAD /index.html", 2), ("POST /", 2)]
    {
        server.asked(request, "");
        assert_eq!(server.refreshed.load(Ordering::Relaxed), refreshed, "{request}");
    }
}

#[test]
fn a_body_is_refused_however_long_it_says_it_is() {
    let server = Server::start();
    for length in ["1", "4611686018427387904", "9223372036854775808", "18446744073709551613"] {
        let header = format!("Content-Length: {length}\r\n");
        assert_eq!(server.status("GET /", &header), "413", "{length}");
        assert_eq!(server.status("POST /", &header), "405", "{length}");
    }
    for length in ["18446744073709551616", "-1", "one", "1\r\nContent-Length: 2"] {
        let header = format!("Content-Length: {length}\r\n");
        assert_eq!(server.status("GET /", &header), "400", "{length}");
    }
    assert_eq!(server.status("GET /", "Transfer-Encoding: chunked\r\n"), "413");
    assert_eq!(server.status("GET /", "Content-Length: 9\r\nExpect: 100-continue\r\n"), "413");
    assert_eq!(server.status("GET /", "Content-Length: 0\r\n"), "200");
}

/// A request, or a body, that never ends: more clients than there are places wait for nothing, and
/// it is served.
#[test]
fn clients_that_keep_silent_are_sent_away() {
    let server = Server::start();
    let host = format!("Host: localhost:{}\r\n", server.port);
    for words in [
        String::new(),
        "GET / HT".to_owned(),
        format!("GET / HTTP/1.1\r\n{host}"),
        format!("POST / HTTP/1.1\r\n{host}Content-Length: 10\r\n\r\nnine"),
    ] {
        let mut silent: Vec<_> = (0..4).map(|_| server.connect()).collect();
        for stream in &mut silent {
            stream.write_all(words.as_bytes()).unwrap();
        }
        server.serves();
        for stream in &mut silent {
            rest(stream);
        }
    }
}

#[test]
fn a_request_of_one_byte_at_a_time_is_cut_short() {
    let server = Server::start();
    let mut slow = server.connect();
    let start = Instant::now();
    while start.elapsed() < PATIENCE && slow.write_all(b"G").is_ok() {
        thread::sleep(LIMITS.asking / 20);
    }
    assert!(start.elapsed() < PATIENCE, "the server still listens");
    server.serves();
}

/// More than the system's buffers take; the file has no bytes on the disk.
#[test]
fn clients_that_do_not_read_are_sent_away() {
    let server = Server::start();
    let length = 1 << 30;
    fs::File::create(server.folder.path().join("book/big.css")).unwrap().set_len(length).unwrap();
    let request = format!("GET /big.css HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port);
    let mut deaf: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for stream in &mut deaf {
        stream.write_all(request.as_bytes()).unwrap();
    }
    server.serves();
    // What had been sent is in the buffers; the rest never comes.
    for mut stream in deaf {
        let (mut piece, mut taken) = (vec![0; 1 << 20], 0);
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            taken += read as u64;
        }
        assert!(taken < length / 4, "{taken} bytes were waiting");
    }
}

#[test]
#[cfg(unix)]
fn pipes_and_links_are_not_there() {
    let server = Server::start();
    let book = server.folder.path().join("book");
    let made = std::process::Command::new("mkfifo").arg(book.join("pipe.html")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("../secret.html", book.join("link.html")).unwrap();
    std::os::unix::fs::symlink("..", book.join("up")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(book.join("socket.html")).unwrap();
    for path in ["/pipe.html", "/link.html", "/up/secret.html", "/up/", "/socket.html"] {
        assert_eq!(server.status(&format!("GET {path}"), ""), "404", "{path}");
    }
}

/// 300 MB, as one line and as many: the server stops reading, so that it holds none of it.
#[test]
fn a_large_head_is_not_read() {
    let server = Server::start();
    let host = format!("Host: localhost:{}\r\n", server.port);
    let lines = "X-Filler: a\r\n".repeat(5000);
    for (begin, piece) in [
        (format!("GET / HTTP/1.1\r\n{host}X-Filler: "), "a".repeat(1 << 16)),
        (format!("GET / HTTP/1.1\r\n{host}"), lines),
        ("GET /".to_owned(), "a".repeat(1 << 16)),
    ] {
        let mut stream = server.connect();
        let mut taken = stream.write(begin.as_bytes()).unwrap();
        while taken < 300_000_000 {
            match stream.write(piece.as_bytes()) {
                Ok(written) => taken += written,
                Err(_) => break,
            }
        }
        // What the system's buffers take is not the server's.
        assert!(taken < 30_000_000, "{taken} bytes were taken");
        server.serves();
    }
    // Small enough to be read as a whole: it is told.
    assert_eq!(server.status("GET /", &"X-Filler: a\r\n".repeat(100)), "431");
    assert_eq!(server.status("GET /", &format!("X-Filler: {}\r\n", "a".repeat(20_000))), "431");
}

#[test]
fn foreign_hosts_are_not_answered() {
    let server = Server::start();
    let port = server.port;
    for (lines, expected) in [
        (format!("GET / HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"), "421"),
        (format!("GET / HTTP/1.1\r\nHost: localhost.evil.example:{port}\r\n\r\n"), "421"),
        (format!("GET / HTTP/1.1\r\nHost: me@localhost:{port}\r\n\r\n"), "421"),
        (format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", port ^ 1), "421"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "421"),
        (format!("GET http://evil.example/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"), "421"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nHost: evil.example\r\n\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"), "200"),
        (format!("GET / HTTP/1.1\r\nHost: [::1]:{port}\r\n\r\n"), "200"),
        (format!("GET http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"), "200"),
    ] {
        assert_eq!(status(&server.said(&lines)), expected, "{lines}");
    }
    server.serves();
}

#[test]
fn other_methods_are_not_allowed() {
    let server = Server::start();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"] {
        let answer = server.asked(&format!("{method} /"), "");
        assert_eq!(status(&answer), "405", "{method}");
        assert!(answer.contains("\r\nallow: GET, HEAD\r\n"), "{answer}");
    }
    let port = server.port;
    assert_eq!(server.status(&format!("CONNECT localhost:{port}"), ""), "405");
    for nonsense in
        ["", "GET", "\r\n\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}"]
    {
        let mut stream = server.connect();
        stream.write_all(nonsense.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(!rest(&mut stream).contains("home"), "{nonsense:?}");
    }
    server.serves();
}

#[test]
fn no_address_leads_out_of_the_book() {
    let server = Server::start();
    for path in [
        "/../secret.html",
        "/a/../../secret.html",
        "/%2e%2e/secret.html",
        "/%2e%2e%2fsecret.html",
        "/..%2Fsecret.html",
        "/%252e%252e/secret.html",
        "/..%5csecret.html",
        "//secret.html",
        "//etc/passwd",
        "/./index.html",
        "/index.html%00.css",
    ] {
        assert_eq!(server.status(&format!("GET {path}"), ""), "404", "{path}");
    }
    assert_eq!(server.status("GET ../secret.html", ""), "400");
    // It would send the browser to another server.
    fs::create_dir(server.folder.path().join("book/evil.example")).unwrap();
    assert_eq!(server.status("GET //evil.example", ""), "404");
    let answer = server.asked("GET /evil.example", "");
    assert!(answer.contains("\r\nlocation: /evil.example/\r\n"), "{answer}");
}

/// Requests beyond the first on a connection are not answered: each would be a way around the
/// limits.
#[test]
fn a_connection_is_for_one_request() {
    let server = Server::start();
    let request = format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.port);
    assert_eq!(server.said(&request.repeat(50)).matches("HTTP/1.1").count(), 1);
    server.serves();
}
