//! The book of `cargo book --serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::Fixture;

/// The program, which ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The answer of the server at `host`.
fn page(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).expect("a server");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_page_that_was_changed_is_built_again() {
    let book = Fixture::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["book", "--serve", "--port", "0"]).current_dir(book.root());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut server = Server(child.expect("the program starts"));
    let printed = BufReader::new(server.0.stdout.take().expect("a pipe"));
    let mut addresses = printed
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| Some(line.split_once("http://")?.1.split_once('/')?.0.to_owned()));
    let host = addresses.next().expect("an address");

    let path = "/01-sample/index.html";
    let old = page(&host, path);
    assert!(old.starts_with("HTTP/1.1 200 OK") && !old.contains("A new sentence"), "{old}");
    book.append("A new sentence.");
    assert!(page(&host, path).contains("A new sentence."));
    // The terminal shows the fault of a page, and the server goes on.
    book.append("{{#value nonsense}}");
    assert!(page(&host, path).starts_with("HTTP/1.1 200 OK"));
    assert!(!book.path("target/book.new").exists() && !book.path("target/book.old").exists());
}
