//! What is read and written, and what became of it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tower::ServiceExt as _;
use tower_geo::{BoxError, Error, ErrorKind};

use crate::account::{DOCUMENTS, Region, SERVED_BY};
use crate::client::Documents;

/// Documents that are there from the start, and are read over and over.
pub(crate) const SEEDS: u64 = 16;
/// Of so many operations one is a write.
const WRITE_EVERY: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "reads",
            Self::Write => "writes",
        })
    }
}

/// One operation and its end.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// When it began, from the start of the story.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
    pub(crate) end: End,
}

/// What its caller was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// What was asked for, by this region.
    Done(Region),
    /// It was sent, and its fate is unknown.
    Unknown,
    /// Anything else.
    Failed { why: String },
}

impl Op {
    pub(crate) fn ended(&self) -> Duration {
        self.at + self.took
    }
}

/// All operations that have ended, and somebody who is told of each.
#[derive(Debug)]
pub(crate) struct Journal {
    began: Instant,
    ops: Mutex<Vec<Op>>,
    tell: UnboundedSender<Op>,
}

impl Journal {
    pub(crate) fn begin(tell: UnboundedSender<Op>) -> Self {
        Self {
            began: Instant::now(),
            ops: Mutex::default(),
            tell,
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

    fn note(&self, op: Op) {
        // Nobody listens any more when the story is over.
        let _ = self.tell.send(op.clone());
        self.ops().push(op);
    }
}

/// The document that is read, or written, by an operation.
pub(crate) fn id_of(kind: Kind, number: u64) -> String {
    match kind {
        Kind::Read => format!("seed-{:02}", number % SEEDS),
        Kind::Write => format!("written-{number:06}"),
    }
}

/// Reads and writes at a steady rate, whatever becomes of it, for `duration`; returns how many
/// operations were begun, when all of them have ended.
pub(crate) async fn run(
    client: Documents,
    endpoint: String,
    rate: u32,
    duration: Duration,
    journal: Arc<Journal>,
) -> u64 {
    let endpoint: Arc<str> = endpoint.into();
    let mut ticks = interval(Duration::from_secs(1) / rate);
    // A machine that stalls makes up for nothing: a burst is not what is shown here.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut under_way = JoinSet::new();
    let mut begun = 0;
    while journal.began().elapsed() < duration {
        ticks.tick().await;
        let (client, endpoint) = (client.clone(), Arc::clone(&endpoint));
        let (journal, number) = (Arc::clone(&journal), begun);
        under_way.spawn(async move {
            let kind = if number % WRITE_EVERY == 0 {
                Kind::Write
            } else {
                Kind::Read
            };
            let begun = Instant::now();
            let end = operation(client, &endpoint, kind, number).await;
            journal.note(Op {
                number,
                kind,
                at: begun - journal.began(),
                took: begun.elapsed(),
                end: end.unwrap_or_else(|error| told(&error)),
            });
        });
        begun += 1;
        while under_way.try_join_next().is_some() {}
    }
    while under_way.join_next().await.is_some() {}
    begun
}

/// An application always names the account; where a request goes is for the layers to say.
async fn operation(
    client: Documents,
    endpoint: &str,
    kind: Kind,
    number: u64,
) -> Result<End, BoxError> {
    let id = id_of(kind, number);
    let (method, url, body, wanted) = match kind {
        Kind::Read => (
            Method::GET,
            format!("{endpoint}{DOCUMENTS}/{id}"),
            Bytes::new(),
            StatusCode::OK,
        ),
        Kind::Write => (
            Method::POST,
            format!("{endpoint}{DOCUMENTS}"),
            json!({"id": id}).to_string().into(),
            StatusCode::CREATED,
        ),
    };
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    let answer = client.oneshot(request).await?;
    let status = answer.status();
    let region = answer.headers().get(SERVED_BY);
    let region = region.and_then(|name| Region::by_name(name.to_str().ok()?));
    answer.into_body().collect().await?;
    Ok(match region {
        Some(region) if status == wanted => End::Done(region),
        Some(region) => End::Failed {
            why: format!("{region} answered {status}"),
        },
        None => End::Failed {
            why: format!("answered {status}"),
        },
    })
}

/// What the caller of a failed operation was told.
fn told(error: &BoxError) -> End {
    let kind = error.downcast_ref::<Error>().map(Error::kind);
    if kind == Some(ErrorKind::UnknownOutcome) {
        return End::Unknown;
    }
    End::Failed {
        why: error.to_string(),
    }
}
