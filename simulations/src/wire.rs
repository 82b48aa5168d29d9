//! The way from a client to the regions: a tower service at the bottom of its stack.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{Empty, Full};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use crate::log::{Log, Send};
use crate::outage::TOLD_WAIT;
use crate::region::{Region, Reply, Side};

/// Objects whose path contains this are new.
pub(crate) const NEW: &str = "/new/";

/// What all clients share: the clock, the two regions, the notes.
#[derive(Debug)]
pub(crate) struct World {
    start: Instant,
    regions: [Mutex<Region>; 2],
    log: Mutex<Log>,
}

impl World {
    pub(crate) fn new(primary: Region, secondary: Region) -> Self {
        Self {
            start: Instant::now(),
            regions: [Mutex::new(primary), Mutex::new(secondary)],
            log: Mutex::default(),
        }
    }

    /// Since the start of the run.
    pub(crate) fn now(&self) -> Duration {
        Instant::now() - self.start
    }

    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.start + at
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    fn region(&self, side: Side) -> MutexGuard<'_, Region> {
        let [primary, secondary] = &self.regions;
        lock(match side {
            Side::Primary => primary,
            Side::Secondary => secondary,
        })
    }
}

/// Nothing here can leave a value half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One client's way to the regions.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    client: u32,
    world: Arc<World>,
}

impl Wire {
    pub(crate) const fn new(client: u32, world: Arc<World>) -> Self {
        Self { client, world }
    }
}

impl Service<Request<Full<Bytes>>> for Wire {
    type Response = Response<Empty<Bytes>>;
    type Error = io::Error;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Answering {
        let uri = request.uri();
        let side = if uri.host() == Some(Side::Secondary.host()) {
            Side::Secondary
        } else {
            Side::Primary
        };
        let at = self.world.now();
        let wants_new = uri.path().starts_with(NEW);
        let fate = self.world.region(side).arrive(at, wants_new);
        self.world.log().sends.push(Send {
            at,
            client: self.client,
            side,
            failed: fate.is_none_or(|(_, reply)| reply.is_failure()),
        });
        Answering {
            wait: fate.map(|(done, _)| sleep_until(self.world.instant(done))),
            reply: fate.map_or(Reply::Reset, |(_, reply)| reply),
        }
    }
}

pin_project! {
    /// An answer on its way.
    #[derive(Debug)]
    pub(crate) struct Answering {
        // None: it never comes, so nobody is woken for it either.
        #[pin]
        wait: Option<Sleep>,
        reply: Reply,
    }
}

impl Future for Answering {
    type Output = io::Result<Response<Empty<Bytes>>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(wait) = this.wait.as_pin_mut() else {
            return Poll::Pending;
        };
        ready!(wait.poll(cx));
        Poll::Ready(spell_out(*this.reply))
    }
}

fn spell_out(reply: Reply) -> io::Result<Response<Empty<Bytes>>> {
    let mut response = Response::new(Empty::new());
    let mut say = |status, code: Option<&'static str>| {
        *response.status_mut() = status;
        if let Some(code) = code {
            let code = HeaderValue::from_static(code);
            response.headers_mut().insert("x-ms-error-code", code);
        }
    };
    match reply {
        Reply::Done => say(StatusCode::OK, None),
        Reply::NotFound => say(StatusCode::NOT_FOUND, Some("BlobNotFound")),
        Reply::Failed => say(StatusCode::SERVICE_UNAVAILABLE, None),
        Reply::Busy => {
            say(StatusCode::SERVICE_UNAVAILABLE, Some("ServerBusy"));
            let wait = HeaderValue::from(TOLD_WAIT.as_secs());
            response.headers_mut().insert("retry-after", wait);
        }
        Reply::Refused => return Err(io::ErrorKind::ConnectionRefused.into()),
        Reply::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
    }
    Ok(response)
}
