//! What a request gets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hyper::body::{Body, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Mutex;

use super::content::Content;
use super::files::{self, Found};

/// Nothing is kept by the browser, which is to see every change; no other site's page may embed
/// what is answered; what is sent is what it is said to be.
const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// What is served.
pub(super) struct Site {
    folder: PathBuf,
    port: u16,
    refresh: Arc<dyn Fn() + Send + Sync>,
    refreshing: Arc<Mutex<()>>,
}

impl Site {
    /// The files in `folder`, at `port`. Before a page is answered, `refresh` is called, which may
    /// take its time.
    pub(super) fn new(
        folder: &Path,
        port: u16,
        refresh: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        // The whole path: the folder itself may lie behind a link, and on Windows this form knows
        // no devices.
        let folder = folder
            .canonicalize()
            .with_context(|| format!("there is no folder {}", folder.display()))?;
        Ok(Self { folder, port, refresh: Arc::new(refresh), refreshing: Arc::default() })
    }

    /// Whether a request is for this machine by one of its own names. A foreign name that leads
    /// here is some web site's way to read the book with the reader's browser.
    fn is_meant(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port == self.port.to_string() => name,
            None if self.port == 80 => host,
            _ => return false,
        };
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Brings the pages up to date, one request at a time; a request that is given up waits no
    /// longer.
    async fn refresh(&self) {
        let turn = Arc::clone(&self.refreshing).lock_owned().await;
        let refresh = Arc::clone(&self.refresh);
        let done = tokio::task::spawn_blocking(move || {
            refresh();
            drop(turn);
        });
        // Should the build panic, it has said so, and the pages stay.
        let _ = done.await;
    }
}

/// The answer to a request; its body is not read.
pub(super) async fn answer(site: &Site, request: &Request<Incoming>) -> Response<Content> {
    let mut hosts = request.headers().get_all(HOST).iter().map(HeaderValue::to_str);
    let host = (hosts.next(), hosts.next());
    let authority = request.uri().authority();
    let (Some(Ok(host)), None) = host else {
        return refusal(StatusCode::BAD_REQUEST, "A request names one host.");
    };
    if !site.is_meant(host) || authority.is_some_and(|named| !site.is_meant(named.as_str())) {
        return refusal(
            StatusCode::MISDIRECTED_REQUEST,
            "The book is served to this machine only.",
        );
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "The book is read only.");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    if !request.body().is_end_stream() {
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, "A request for a page has no body.");
    }
    let path = request.uri().path();
    if !path.contains('.') || path.ends_with(".html") {
        site.refresh().await;
    }
    match files::find(&site.folder, path) {
        Some(Found::File(file)) => response(StatusCode::OK, file.kind, Content::of(file)),
        Some(Found::Folder(address)) => {
            let mut response = refusal(StatusCode::PERMANENT_REDIRECT, "A folder ends with /.");
            if let Ok(address) = HeaderValue::from_str(&address) {
                response.headers_mut().insert(LOCATION, address);
            }
            response
        }
        None => refusal(StatusCode::NOT_FOUND, "There is no such page."),
    }
}

fn refusal(status: StatusCode, why: &'static str) -> Response<Content> {
    response(status, "text/plain; charset=utf-8", Content::text(why))
}

fn response(status: StatusCode, kind: &'static str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().extend(ALWAYS);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(port: u16) -> Site {
        Site::new(Path::new("."), port, || {}).unwrap()
    }

    #[test]
    fn only_this_machines_names_with_the_port_are_meant() {
        let site = site(8000);
        for host in ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"] {
            assert!(site.is_meant(host), "{host}");
        }
        for host in [
            "",
            ":8000",
            "localhost",
            "localhost:80",
            "localhost:08000",
            "localhost:8000:8000",
            "localhost.:8000",
            "me@localhost:8000",
            "evil.example:8000",
            "127.0.0.1.evil.example:8000",
            "127.0.0.2:8000",
            "0.0.0.0:8000",
            "::1:8000",
        ] {
            assert!(!site.is_meant(host), "{host}");
        }
    }

    #[test]
    fn the_webs_own_port_is_left_out() {
        assert!(site(80).is_meant("localhost") && site(80).is_meant("localhost:80"));
    }
}
