//! What is read and written, and what became of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tower::ServiceExt as _;
use tower_geo::{BoxError, Error, ErrorKind, RegionRef, RequestOptions, Served};

use crate::client::Blobs;

/// Blobs that are there in both regions before the story begins, and are read over and over.
const SEEDS: u64 = 16;
/// Of so many operations one is a write.
const WRITE_EVERY: u64 = 4;
/// How long the container and the seeds may take to be visible in both regions.
const SETTLE: Duration = Duration::from_secs(10);

/// One operation and its end.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    /// When it began, from the start of the story.
    pub(crate) at: Duration,
    /// How long it took.
    pub(crate) took: Duration,
    /// How many requests left for the wire, as the stack tells.
    pub(crate) sends: usize,
    /// What it was, and what became of it.
    pub(crate) end: End,
}

/// What became of an operation.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// A read that was answered with the right content.
    Read { from_secondary: bool },
    /// A read that was not; and why.
    ReadFailed { why: String },
    /// A write.
    Write { number: u64, end: WriteEnd },
}

/// What the caller of a write was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// It is stored.
    Stored,
    /// The service is read-only, nothing was sent.
    Refused,
    /// It was tried, and surely nothing arrived.
    NotSent,
    /// It was sent, and its fate is unknown.
    Unknown,
    /// Something that the stack has no business to say here.
    Unexpected { why: String },
}

/// All operations that have ended.
#[derive(Debug)]
pub(crate) struct Journal {
    began: Instant,
    ops: Mutex<Vec<Op>>,
}

impl Journal {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            ops: Mutex::default(),
        }
    }

    /// When the story began.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Every operation so far, in the order of their ends.
    pub(crate) fn ops(&self) -> MutexGuard<'_, Vec<Op>> {
        self.ops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, at: Instant, sends: usize, end: End) {
        let op = Op {
            at: at - self.began,
            took: at.elapsed(),
            sends,
            end,
        };
        self.ops().push(op);
    }
}

/// The application: a client and the container that it works in.
#[derive(Clone)]
pub(crate) struct Application {
    client: Blobs,
    container: String,
}

impl Application {
    pub(crate) fn new(client: Blobs, base_url: &str) -> Self {
        Self {
            client,
            container: format!("{base_url}/outage"),
        }
    }

    /// Makes the container and the blobs that are read, and waits until both regions have them.
    ///
    /// # Errors
    ///
    /// When a region does not do what it should before anything was taken away.
    pub(crate) async fn prepare(&self) -> Result<(), BoxError> {
        let url = format!("{}?restype=container", self.container);
        let create = request(Method::PUT, &url, Bytes::new())?;
        let answer = self.client.clone().oneshot(create).await?;
        if answer.status() != StatusCode::CREATED {
            return Err(format!("cannot make a container: {}", answer.status()).into());
        }
        for seed in 0..SEEDS {
            match self.put(&self.seed_url(seed), content(seed)).await {
                Ok((StatusCode::CREATED, _)) => {}
                Ok((status, _)) => return Err(format!("cannot put a blob: {status}").into()),
                Err(error) => return Err(error),
            }
        }
        let last = self.seed_url(SEEDS - 1);
        let give_up = Instant::now() + SETTLE;
        while self.get(&last, Some(RegionRef::Secondary)).await?.0 != StatusCode::OK {
            if Instant::now() > give_up {
                return Err("the secondary does not get what is written to the primary".into());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Reads and writes at a steady rate, whatever becomes of it, for `duration`; returns how many
    /// operations were begun, when all of them have ended.
    pub(crate) async fn run(self, rate: u32, duration: Duration, journal: Arc<Journal>) -> u64 {
        let mut ticks = interval(Duration::from_secs(1) / rate);
        // A machine that stalls makes up for nothing: a burst is not what is shown here.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut under_way = JoinSet::new();
        let mut begun = 0;
        while journal.began().elapsed() < duration {
            ticks.tick().await;
            let (application, journal, number) = (self.clone(), Arc::clone(&journal), begun);
            under_way.spawn(async move {
                if number % WRITE_EVERY == 0 {
                    application.write(number, &journal).await;
                } else {
                    application.read(number % SEEDS, &journal).await;
                }
            });
            begun += 1;
            while under_way.try_join_next().is_some() {}
        }
        while under_way.join_next().await.is_some() {}
        begun
    }

    async fn read(&self, seed: u64, journal: &Journal) {
        let at = Instant::now();
        let url = self.seed_url(seed);
        let mut sends = 0;
        let mut end = End::ReadFailed {
            why: "its body broke off twice".to_owned(),
        };
        // An answer whose body breaks off has been handed over already, so reading again is up to
        // the application: once.
        for _ in 0..2 {
            match self.try_read(&url, &content(seed), &mut sends).await {
                Ok(from_secondary) => end = End::Read { from_secondary },
                Err(ReadError::Broken) => continue,
                Err(ReadError::Failed(why)) => end = End::ReadFailed { why },
            }
            break;
        }
        journal.note(at, sends, end);
    }

    async fn try_read(
        &self,
        url: &str,
        wanted: &Bytes,
        sends: &mut usize,
    ) -> Result<bool, ReadError> {
        let get = request(Method::GET, url, Bytes::new())
            .map_err(|error| ReadError::Failed(error.to_string()))?;
        let answer = match self.client.clone().oneshot(get).await {
            Ok(answer) => answer,
            Err(error) => {
                *sends += error.trail().sends().len();
                return Err(ReadError::Failed(error.to_string()));
            }
        };
        let served = Served::of(answer.extensions());
        *sends += sends_of(served);
        let from_secondary = served.is_some_and(Served::is_from_copy);
        let status = answer.status();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|_| ReadError::Broken)?.to_bytes();
        if status != StatusCode::OK {
            return Err(ReadError::Failed(format!("answered with {status}")));
        }
        if body != *wanted {
            return Err(ReadError::Failed("answered with wrong content".to_owned()));
        }
        Ok(from_secondary)
    }

    async fn write(&self, number: u64, journal: &Journal) {
        let at = Instant::now();
        let (sends, end) = match self.put(&self.written_url(number), content(number)).await {
            Ok((StatusCode::CREATED, sends)) => (sends, WriteEnd::Stored),
            Ok((status, sends)) => {
                let why = format!("answered with {status}");
                (sends, WriteEnd::Unexpected { why })
            }
            Err(error) => told(&error),
        };
        journal.note(at, sends, End::Write { number, end });
    }

    /// What the primary holds of a write, asked of it alone.
    ///
    /// # Errors
    ///
    /// When it cannot be read: then there is no saying.
    pub(crate) async fn stored(&self, number: u64) -> Result<Stored, BoxError> {
        let url = self.written_url(number);
        let (status, body) = self.get(&url, Some(RegionRef::Primary)).await?;
        match status {
            StatusCode::OK if body == content(number) => Ok(Stored::Right),
            StatusCode::OK => Ok(Stored::Wrong),
            StatusCode::NOT_FOUND => Ok(Stored::Absent),
            status => Err(format!("reading back was answered with {status}").into()),
        }
    }

    async fn put(&self, url: &str, body: Bytes) -> Result<(StatusCode, usize), BoxError> {
        let mut put = request(Method::PUT, url, body)?;
        put.headers_mut().insert(
            "x-ms-blob-type",
            http::HeaderValue::from_static("BlockBlob"),
        );
        let answer = self.client.clone().oneshot(put).await?;
        Ok((answer.status(), sends_of(Served::of(answer.extensions()))))
    }

    async fn get(
        &self,
        url: &str,
        pin: Option<RegionRef>,
    ) -> Result<(StatusCode, Bytes), BoxError> {
        let mut get = request(Method::GET, url, Bytes::new())?;
        if let Some(region) = pin {
            get.extensions_mut()
                .insert(RequestOptions::new().pin(region));
        }
        let answer = self.client.clone().oneshot(get).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    fn seed_url(&self, seed: u64) -> String {
        format!("{}/seed-{seed:02}", self.container)
    }

    fn written_url(&self, number: u64) -> String {
        format!("{}/written-{number:06}", self.container)
    }
}

/// What the primary holds of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// What was written.
    Right,
    /// Something else.
    Wrong,
    /// Nothing.
    Absent,
}

enum ReadError {
    /// The body broke off.
    Broken,
    Failed(String),
}

/// How many sends a write took, and what its caller was told.
fn told(error: &BoxError) -> (usize, WriteEnd) {
    let Some(error) = error.downcast_ref::<Error>() else {
        let why = error.to_string();
        return (0, WriteEnd::Unexpected { why });
    };
    let end = match error.kind() {
        ErrorKind::ReadOnly => WriteEnd::Refused,
        ErrorKind::UnknownOutcome => WriteEnd::Unknown,
        _ if error.was_never_sent() => WriteEnd::NotSent,
        _ => WriteEnd::Unexpected {
            why: error.to_string(),
        },
    };
    (error.trail().sends().len(), end)
}

/// An answer without a trail took one send.
fn sends_of(served: Option<&Served>) -> usize {
    served.map_or(1, |served| served.trail().sends().len().max(1))
}

fn content(number: u64) -> Bytes {
    format!("content of blob {number}\n").repeat(8).into()
}

fn request(method: Method, url: &str, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
    Request::builder()
        .method(method)
        .uri(url)
        .body(Full::new(body))
}
