//! Serves the book to this machine, and builds it again when a source has changed.
//!
//! Every user of this machine can connect, and every page that is open in its browser can make the
//! browser send requests. So the server answers for this machine's own names only, with files of
//! the built book only, and within limits. It holds all files of the book in memory, by their
//! addresses: an address that is no key gets nothing, whatever it spells, and no link or pipe is
//! opened after the build. hyper reads the requests; services such as tower-http's `ServeDir`
//! follow links, and axum does not bound the time of a connection. The tests are in `attacks`.

#[cfg(test)]
mod attacks;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::net::{self, Ipv4Addr};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use lesson::output::{eprintln, println};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::time::sleep;
use walkdir::WalkDir;

/// The folders and files that a built book depends on, besides this program.
const SOURCES: [&str; 9] = [
    "book.toml",
    "chapters",
    "crates",
    "emulator/simt",
    "kernels",
    "notebooks",
    "src",
    "tests",
    "xtask/theme",
];

/// The most header lines of a request. A browser sends some twenty.
const HEADERS: usize = 64;

/// The most bytes of a request's head that the server holds.
const HEAD: usize = 16 * 1024;

/// The headers of every answer: the browser stores nothing, so that it sees each change; no page of
/// another site may embed the answer; and the content is of the type that is given.
const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// The files of the built book by their addresses, such as `/index.html`: media type and bytes.
type Files = BTreeMap<String, (&'static str, Bytes)>;

type Answer = Response<Full<Bytes>>;

/// Brings the book up to date; returns its files if they have changed.
type Refresh = dyn FnMut() -> Option<Files> + Send;

/// Serves the book of the workspace at `root` on 127.0.0.1 until the program is ended.
///
/// When a page is requested and a source is newer than the last build, the book is built first: to
/// see a change, reload the page. If a build fails, the terminal shows the error and the server
/// goes on with the old pages.
pub fn serve(root: &Path, port: u16, open: bool) -> Result<()> {
    let output = root.join("target/book");
    let mut built = rebuild(root);
    ensure!(output.join("index.html").is_file(), "there is no book to serve");
    let files = read(&output)?;
    let listener = listen(port)?;
    let port = listener.local_addr().context("the server has no address")?.port();
    let address = format!("http://127.0.0.1:{port}/");
    println!("serving the book at {address} (end with Ctrl-C)");
    if open {
        opener::open(&address).context("no browser could be opened")?;
    }
    let root = root.to_owned();
    let refresh = move || {
        if newest_source(&root) <= built {
            return None;
        }
        built = rebuild(&root);
        read(&output).map_err(|error| eprintln!("error: {error:#}")).ok()
    };
    run(listener, Site::new(port, files, refresh), LIMITS)
}

/// Listens at this machine's own address, which no other machine reaches.
fn listen(port: u16) -> Result<net::TcpListener> {
    net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} cannot be served"))
}

/// Builds the book and prints the outcome; returns the time at which the sources were read.
fn rebuild(root: &Path) -> SystemTime {
    let start = SystemTime::now();
    match super::build(root) {
        Ok(book) => println!("built {} pages", book.pages.len()),
        Err(error) => eprintln!("error: {error:#}"),
    }
    start
}

/// The time of the last change to a source.
fn newest_source(root: &Path) -> SystemTime {
    let entries = SOURCES.iter().flat_map(|source| WalkDir::new(root.join(source)));
    entries
        .filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok())
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Reads the regular files in `folder` whose names need no escape in an address. Links are not
/// followed, and hidden files are left out.
fn read(folder: &Path) -> Result<Files> {
    let is_plain = |name: &str| {
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
        !name.starts_with('.') && name.bytes().all(is_plain)
    };
    let entries = WalkDir::new(folder).into_iter().filter_entry(|entry| {
        entry.depth() == 0 || entry.file_name().to_str().is_some_and(is_plain)
    });
    let mut files = Files::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("{} cannot be read", folder.display()))?;
        if entry.file_type().is_file()
            && let Some(bytes) = read_regular(entry.path())?
        {
            let path = entry.path().strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
            files.insert(format!("/{path}"), (media_type(&path), bytes.into()));
        }
    }
    Ok(files)
}

/// The content of a file; `None` if a link or a pipe has taken its place.
fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOFOLLOW,
    );
    let Ok(mut file) = options.open(path) else { return Ok(None) };
    let mut bytes = Vec::new();
    let is_regular = file.metadata()?.is_file();
    if is_regular {
        file.read_to_end(&mut bytes)?;
    }
    Ok(is_regular.then_some(bytes))
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "wasm" => "application/wasm",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// The book as the server has it.
struct Site {
    port: u16,
    files: RwLock<Arc<Files>>,
    refresh: Arc<Mutex<Refresh>>,
}

impl Site {
    /// These files, at `port`. `refresh` is called before each answer to a page, and may take its
    /// time.
    fn new(
        port: u16,
        files: Files,
        refresh: impl FnMut() -> Option<Files> + Send + 'static,
    ) -> Self {
        Self { port, files: RwLock::new(Arc::new(files)), refresh: Arc::new(Mutex::new(refresh)) }
    }

    /// True for this machine's own names. A foreign name that leads here is a web site's way to
    /// read the book with the reader's browser.
    fn is_meant(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port == self.port.to_string() => name,
            None if self.port == 80 => host,
            _ => return false,
        };
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Brings the files up to date, for one request at a time. A request that is given up waits no
    /// longer; its build goes on.
    async fn refresh(self: &Arc<Self>) {
        let mut turn = Arc::clone(&self.refresh).lock_owned().await;
        let site = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            if let Some(files) = turn() {
                *site.files.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(files);
            }
        });
        // A build that panics has printed why, and the files stay.
        let _ = done.await;
    }

    /// Answers a request, without reading its body.
    async fn answer(self: &Arc<Self>, request: &Request<Incoming>) -> Answer {
        let mut hosts = request.headers().get_all(HOST).iter().map(HeaderValue::to_str);
        let authority = request.uri().authority();
        let (Some(Ok(host)), None) = (hosts.next(), hosts.next()) else {
            return refusal(StatusCode::BAD_REQUEST, "A request names one host.");
        };
        if !self.is_meant(host) || authority.is_some_and(|named| !self.is_meant(named.as_str())) {
            let why = "The book is served to this machine only.";
            return refusal(StatusCode::MISDIRECTED_REQUEST, why);
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut answer = refusal(StatusCode::METHOD_NOT_ALLOWED, "The book is read only.");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if !request.body().is_end_stream() {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "A request for a page has no body.");
        }
        let path = request.uri().path();
        if !path.contains('.') || path.ends_with(".html") {
            self.refresh().await;
        }
        let files = Arc::clone(&self.files.read().unwrap_or_else(PoisonError::into_inner));
        let index = if path.ends_with('/') { "index.html" } else { "" };
        if let Some((kind, bytes)) = files.get(&format!("{path}{index}")) {
            return response(StatusCode::OK, kind, bytes.clone());
        }
        let below = format!("{path}/");
        let next = files.range(below.clone()..).next();
        let is_folder = next.is_some_and(|(address, _)| address.starts_with(&below));
        let location = HeaderValue::from_str(&below).ok().filter(|_| is_folder);
        let Some(location) = location else {
            return refusal(StatusCode::NOT_FOUND, "There is no such page.");
        };
        let mut answer = refusal(StatusCode::PERMANENT_REDIRECT, "A folder ends with /.");
        answer.headers_mut().insert(LOCATION, location);
        answer
    }
}

fn refusal(status: StatusCode, why: &'static str) -> Answer {
    response(status, "text/plain; charset=utf-8", Bytes::from_static(why.as_bytes()))
}

fn response(status: StatusCode, kind: &'static str, content: Bytes) -> Answer {
    let mut response = Response::new(Full::new(content));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().extend(ALWAYS);
    response
}

/// The bounds on what clients may take of the server.
#[derive(Clone, Copy)]
struct Limits {
    /// The most connections at once; further ones wait.
    connections: usize,
    /// The most time from the start of a connection to the end of its request.
    asking: Duration,
    /// The most time from then, or from the end of a build, until the client has taken the answer.
    answering: Duration,
}

const LIMITS: Limits =
    Limits { connections: 64, asking: Duration::from_secs(10), answering: Duration::from_secs(30) };

/// Answers the requests at `listener` for as long as the program runs.
fn run(listener: net::TcpListener, site: Site, limits: Limits) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("the server cannot be started")?.block_on(accept(listener, site, limits))
}

async fn accept(listener: net::TcpListener, site: Site, limits: Limits) -> Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let site = Arc::new(site);
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let place = Arc::clone(&places).acquire_owned().await?;
        match listener.accept().await {
            Ok((stream, _)) => {
                let site = Arc::clone(&site);
                tokio::spawn(async move {
                    hold(stream, &site, limits).await;
                    drop(place);
                });
            }
            // The process may have too many open files, or the client is gone already.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Holds one connection, for one request: so each part of it has a time limit, and none is idle.
async fn hold(stream: TcpStream, site: &Arc<Site>, limits: Limits) {
    let answered = Notify::new();
    let service = service_fn(async |request| {
        let answer = site.answer(&request).await;
        answered.notify_one();
        Ok::<_, Infallible>(answer)
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_headers(HEADERS)
        .max_buf_size(HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.asking)
        .serve_connection(TokioIo::new(stream), service);
    let overdue = async {
        answered.notified().await;
        sleep(limits.answering).await;
    };
    // The error of a client that goes away or breaks the protocol is of no use here.
    tokio::select! {
        _ = connection => {}
        () = overdue => {}
    }
}
