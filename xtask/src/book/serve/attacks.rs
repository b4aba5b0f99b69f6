//! Attacks on the server by clients on this machine, each bounded in time and bytes.
//!
//! The server runs in a thread of the test, with short times and two places for connections, so
//! that a connection that stays shows. The requests are texts, since an HTTP client would refuse to
//! send most of them: bodies without end, heads of 300 MB, addresses that lead out of the book,
//! foreign hosts, and clients that neither write nor read. After each attack the book is served as
//! before.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Limits, Site, listen, read, run};

/// The most time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

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
        Self::of(|_| ())
    }

    /// A server of the book to which `add` adds something, given its folder.
    fn of(add: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let book = folder.path().join("book");
        fs::create_dir_all(book.join("a")).unwrap();
        fs::write(book.join("index.html"), "home").unwrap();
        fs::write(book.join("a.css"), "a {}").unwrap();
        fs::write(book.join("a/b-1_2.html"), "page").unwrap();
        fs::write(folder.path().join("secret.html"), "secret").unwrap();
        add(&book);
        let listener = listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let refreshed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&refreshed);
        let site = Site::new(port, read(&book).unwrap(), move || {
            counter.fetch_add(1, Ordering::Relaxed);
            None
        });
        thread::spawn(move || run(listener, site, LIMITS));
        Self { folder, port, refreshed }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends these bytes; returns the answer, up to the end of the connection.
    fn sends(&self, bytes: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        rest(&mut stream)
    }

    /// The answer to a request with these header lines besides the right host.
    fn answer(&self, request: &str, headers: &str) -> String {
        let port = self.port;
        self.sends(&format!("{request} HTTP/1.1\r\nHost: localhost:{port}\r\n{headers}\r\n"))
    }

    /// Checks that the book is still served.
    #[track_caller]
    fn serves(&self) {
        let answer = self.answer("GET /", "");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhome"));
    }

    /// The status of a request. Checks that the book is served after it.
    #[track_caller]
    fn status(&self, request: &str, headers: &str) -> String {
        let answer = self.answer(request, headers);
        assert!(!answer.contains("secret"), "{answer}");
        self.serves();
        status(&answer)
    }
}

/// The number in an answer's first line.
fn status(answer: &str) -> String {
    answer.split(' ').nth(1).unwrap_or("none").to_owned()
}

/// The bytes up to the end of the connection, or up to its reset: the system sends one in place of
/// an end if the server closes before it has read everything.
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
    let style = server.answer("GET /a.css?version=1", "");
    for header in [
        "content-type: text/css; charset=utf-8",
        "content-length: 4",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(style.contains(&format!("\r\n{header}\r\n")), "{header} is not in {style}");
    }
    let head = server.answer("HEAD /", "");
    assert!(head.contains("\r\ncontent-length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(server.answer("GET /a/b-1_2.html", "").ends_with("\r\n\r\npage"));
    assert!(server.answer("GET /a", "").contains("\r\nlocation: /a/\r\n"));
    for none in ["/none.html", "/a/", "/b"] {
        assert_eq!(server.status(&format!("GET {none}"), ""), "404");
    }
}

#[test]
fn the_book_is_brought_up_to_date_for_pages_only() {
    let server = Server::start();
    for (request, refreshed) in
        [("GET /", 1), ("GET /a.css", 1), ("HEAD /index.html", 2), ("POST /", 2)]
    {
        server.answer(request, "");
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

/// A request, or a body, that never ends: from more clients than the server has places for.
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

/// The file is longer than the buffers of the system.
#[test]
fn clients_that_do_not_read_are_sent_away() {
    let length = 1 << 26;
    let server = Server::of(|book| {
        fs::File::create(book.join("big.css")).unwrap().set_len(length).unwrap();
    });
    let request = format!("GET /big.css HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port);
    let mut deaf: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for stream in &mut deaf {
        stream.write_all(request.as_bytes()).unwrap();
    }
    server.serves();
    // The bytes that have been sent are in the buffers; the rest never comes.
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
    use std::os::unix::{fs::symlink, net::UnixListener};
    let server = Server::of(|book| {
        let made = std::process::Command::new("mkfifo").arg(book.join("pipe.html")).status();
        assert!(made.unwrap().success());
        for (target, link) in [
            ("../secret.html", "link.html"),
            ("index.html", "other.html"),
            ("..", "up"),
            ("a", "same"),
        ] {
            symlink(target, book.join(link)).unwrap();
        }
        drop(UnixListener::bind(book.join("socket.html")).unwrap());
    });
    for path in "/pipe.html /link.html /other.html /up /up/ /up/secret.html /same/b-1_2.html \
                 /socket.html"
        .split(' ')
    {
        assert_eq!(server.status(&format!("GET {path}"), ""), "404", "{path}");
    }
    // A link or a pipe that takes a file's place while the files are read.
    for name in ["link.html", "other.html", "pipe.html"] {
        let read = super::read_regular(&server.folder.path().join("book").join(name));
        assert_eq!(read.unwrap(), None, "{name}");
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
        // Some bytes are in the buffers of the system, not in the server's.
        assert!(taken < 30_000_000, "{taken} bytes were taken");
        server.serves();
    }
    // Heads that are read to their end get an answer.
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
        assert_eq!(status(&server.sends(&lines)), expected, "{lines}");
    }
    server.serves();
}

#[test]
fn other_methods_are_not_allowed() {
    let server = Server::start();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"] {
        let answer = server.answer(&format!("{method} /"), "");
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
    let server = Server::of(|book| {
        fs::create_dir(book.join("evil.example")).unwrap();
        fs::write(book.join("evil.example/index.html"), "").unwrap();
        fs::write(book.join(".hidden.html"), "").unwrap();
    });
    let whole = server.folder.path().join("secret.html");
    let paths = "/. /.. /../secret.html /a/../../secret.html /a/../index.html \
        /%2e%2e/secret.html /%2e%2e%2fsecret.html /..%2Fsecret.html /%252e%252e/secret.html \
        /..%5csecret.html //secret.html //etc/passwd /./index.html /a//b-1_2.html /a/./b-1_2.html \
        /index.html/ /index.html/index.html /index.html%00.css /index.html::$DATA /C:/secret.html \
        /.hidden.html";
    // The last one would send the browser to another server.
    let others =
        [&*format!("/{}", whole.display()), &whole.display().to_string(), "//evil.example"];
    for path in paths.split(' ').chain(others) {
        assert_eq!(server.status(&format!("GET {path}"), ""), "404", "{path}");
    }
    for path in ["*", "//", "../secret.html", "/..\\secret.html", "/index.html\0"] {
        let status = server.status(&format!("GET {path}"), "");
        assert!(["400", "404"].contains(&&*status), "{path}: {status}");
    }
    let answer = server.answer("GET /evil.example", "");
    assert!(answer.contains("\r\nlocation: /evil.example/\r\n"), "{answer}");
}

/// Only the first request of a connection is answered: further ones would evade the limits.
#[test]
fn a_connection_is_for_one_request() {
    let server = Server::start();
    let request = format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.port);
    assert_eq!(server.sends(&request.repeat(50)).matches("HTTP/1.1").count(), 1);
    server.serves();
}

fn site(port: u16) -> Site {
    Site::new(port, super::Files::new(), || None)
}

#[test]
fn only_this_machines_names_with_the_port_are_meant() {
    let site = site(8000);
    for host in ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"] {
        assert!(site.is_meant(host), "{host}");
    }
    let others = ":8000 localhost localhost:80 localhost:08000 localhost:8000:8000 localhost.:8000 \
        me@localhost:8000 evil.example:8000 127.0.0.1.evil.example:8000 127.0.0.2:8000 \
        0.0.0.0:8000 ::1:8000";
    for host in others.split(' ').chain([""]) {
        assert!(!site.is_meant(host), "{host}");
    }
}

#[test]
fn the_webs_own_port_is_left_out() {
    assert!(site(80).is_meant("localhost") && site(80).is_meant("localhost:80"));
}
