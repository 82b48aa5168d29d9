//! A table in two regions. Replication is done by hand, a transaction at a time.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{DATE, ETAG};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tower::Service;

pub(crate) const PRIMARY: &str = "https://contoso.table.core.windows.net";
const SECONDARY_HOST: &str = "contoso-secondary.table.core.windows.net";

/// 1 June 2026, 10:00:00 GMT.
pub(crate) fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_780_308_000)
}

/// An entity: its value, and its `Timestamp` in seconds from the start.
#[derive(Clone, Debug)]
struct Entity {
    value: Bytes,
    at: i64,
}

#[derive(Debug, Default)]
struct Regions {
    primary: HashMap<String, Entity>,
    secondary: HashMap<String, Entity>,
    now: i64,
    last_sync: i64,
}

/// Both regions, as a client sees them.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Mutex<Regions>>);

impl World {
    /// The time is so many seconds after the start from now on.
    pub(crate) fn set_now(&self, seconds: i64) {
        self.regions().now = seconds;
    }

    /// The secondary gets an entity as it is in the primary now.
    pub(crate) fn replicate(&self, path: &str) {
        let mut regions = self.regions();
        if let Some(entity) = regions.primary.get(path).cloned() {
            regions.secondary.insert(path.to_owned(), entity);
        }
    }

    /// All that was written before this second is in the secondary.
    pub(crate) fn set_last_sync(&self, seconds: i64) {
        self.regions().last_sync = seconds;
    }

    fn regions(&self) -> MutexGuard<'_, Regions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, method: &Method, uri: &http::Uri, body: Bytes) -> Response<Full<Bytes>> {
        let mut regions = self.regions();
        let now = regions.now;
        let of_copy = uri.host() == Some(SECONDARY_HOST);
        let mut response = Response::new(Full::default());
        if of_copy
            && uri
                .query()
                .is_some_and(|query| query.contains("comp=stats"))
        {
            *response.body_mut() = Full::from(format!(
                "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
                 <Status>live</Status><LastSyncTime>{}</LastSyncTime>\
                 </GeoReplication></StorageServiceStats>",
                httpdate::fmt_http_date(time(regions.last_sync))
            ));
        } else if method == Method::PUT && !of_copy {
            *response.status_mut() = StatusCode::NO_CONTENT;
            let entity = Entity {
                value: body,
                at: now,
            };
            regions.primary.insert(uri.path().to_owned(), entity);
        } else {
            let region = if of_copy {
                &regions.secondary
            } else {
                &regions.primary
            };
            match region.get(uri.path()) {
                None => *response.status_mut() = StatusCode::NOT_FOUND,
                Some(entity) => {
                    // The ETag of an entity is its `Timestamp`.
                    let etag = format!("W/\"datetime'{}'\"", timestamp(entity.at));
                    if let Ok(etag) = HeaderValue::from_str(&etag) {
                        response.headers_mut().insert(ETAG, etag);
                    }
                    *response.body_mut() = Full::from(entity.value.clone());
                }
            }
        }
        if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(time(now))) {
            response.headers_mut().insert(DATE, date);
        }
        response
    }
}

/// So many seconds after the start, or before it.
pub(crate) fn time(seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        start() - by
    } else {
        start() + by
    }
}

/// `2026-06-01T10:00:00.0000000Z`, encoded as in an ETag; never more than an hour from the start.
fn timestamp(seconds: i64) -> String {
    let (hour, second) = if seconds < 0 {
        (9, 3600 + seconds)
    } else {
        (10, seconds)
    };
    let (minute, second) = (second / 60, second % 60);
    format!("2026-06-01T{hour:02}%3A{minute:02}%3A{second:02}.0000000Z")
}

impl Service<Request<Full<Bytes>>> for World {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let world = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(world.answer(&head.method, &head.uri, body))
        })
    }
}
