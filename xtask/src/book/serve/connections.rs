//! The connections: how many there are at once, how long each may last, and how much may be sent.

use std::convert::Infallible;
use std::net;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;

use super::answer::{self, Site};

/// Lines of a request's head. A browser sends some twenty.
const HEADERS: usize = 64;

/// Bytes of a request's head, of which the server holds no more.
const HEAD: usize = 16 * 1024;

/// What a client may take of the server.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once; the next ones wait.
    pub connections: usize,
    /// From the connection's begin to the end of the request.
    pub asking: Duration,
    /// From then, or from the end of a build that is due, until the client has taken the answer.
    pub answering: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            asking: Duration::from_secs(10),
            answering: Duration::from_secs(30),
        }
    }
}

/// Answers what is asked at `listener` for as long as the program runs.
pub(super) fn serve(listener: net::TcpListener, site: Site, limits: Limits) -> Result<()> {
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
            // The process has too many open files, say, or the client is gone already.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// One connection, which is for one request: so its parts have their times, and none can be idle.
async fn hold(stream: TcpStream, site: &Arc<Site>, limits: Limits) {
    let answered = Notify::new();
    let service = service_fn(async |request| {
        let response = answer::answer(site, &request).await;
        answered.notify_one();
        Ok::<_, Infallible>(response)
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
    // A client that goes away or does wrong is no concern of ours.
    tokio::select! {
        _ = connection => {}
        () = overdue => {}
    }
}
