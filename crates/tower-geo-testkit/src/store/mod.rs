//! A blob account with two regions, over real HTTP on loopback.
//!
//! What the storage emulator cannot show: a secondary that lags behind and refuses writes, and regions
//! that fail in every way a region fails. Signatures are not checked; the emulator does that.
//!
//! | request | answer |
//! |---|---|
//! | `PUT`, `GET`, `HEAD`, `DELETE` `/CONTAINER/BLOB` | as blob storage does: ETags, conditions, ranges, metadata |
//! | `PUT`, `HEAD`, `GET`, `DELETE` `/CONTAINER?restype=container` | create, look up, delete |
//! | `GET /CONTAINER?restype=container&comp=list` | the list, in pages with `maxresults`; a marker belongs to its region |
//! | `GET /?restype=service&comp=stats` | Last Sync Time, from the secondary only |
//! | any write to the secondary | 403 `InsufficientAccountPermissions` |
//! | anything else | 501 `NotImplemented` |
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tower_geo_testkit::{Side, store::{Replication, TwoRegionStore}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let store = TwoRegionStore::start().await?;
//! store.seed("photos", "cat.jpg", "meow");
//! store.set_replication(Replication::After(Duration::from_secs(5)));
//! store.take_down(Side::Primary).await?;
//! // … the stack under test now reads from `store.endpoint(Side::Secondary)` …
//! store.bring_back(Side::Primary).await?;
//! assert_eq!(store.requests(Side::Primary), 0);
//! # Ok(())
//! # }
//! ```

mod answer;
mod body;
mod data;
#[cfg(test)]
mod tests;

pub use self::data::Replication;

use self::{body::StoreBody, data::Data};
use crate::{
    Side,
    line::{Line, LineState, Wire},
    lock,
};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

/// How a region behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RegionState {
    /// It works.
    #[default]
    Up,
    /// Connecting is refused; present connections are reset.
    Refuse,
    /// Connections are accepted, then reset; present ones too.
    Reset,
    /// Connections are accepted and nothing is answered, on present ones neither: a black hole.
    /// What arrives meanwhile is answered when the state ends, if the client still waits.
    Freeze,
    /// Every request is read and answered with this status, without a request id or an error code,
    /// as a load balancer before a dead service would.
    Status(StatusCode),
    /// Every request is answered as by the service, with this status and `x-ms-error-code`.
    Code(StatusCode, &'static str),
    /// It works, and waits this long before each answer. The request has taken effect by then.
    Slow(Duration),
    /// It works, and bodies of answers break off after this many bytes.
    CutBody(usize),
    /// It works, and bodies of answers stop coming after this many bytes.
    StallBody(usize),
}

impl RegionState {
    const fn line(self) -> LineState {
        match self {
            Self::Refuse => LineState::Refuse,
            Self::Reset => LineState::Reset,
            Self::Freeze => LineState::Freeze,
            _ => LineState::Open,
        }
    }
}

/// One request that arrived at a region, whole head read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// The method.
    pub method: Method,
    /// Path and query, as they were sent.
    pub target: String,
    /// The `Host` header, or nothing.
    pub host: String,
    /// What was answered.
    pub status: StatusCode,
}

/// Sets up a [`TwoRegionStore`]; see [`TwoRegionStore::builder`].
#[derive(Default)]
pub struct TwoRegionStoreBuilder {
    account: Option<String>,
    clock: Option<Clock>,
}

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

impl TwoRegionStoreBuilder {
    /// Path-style URLs: `http://127.0.0.1:PORT/ACCOUNT` and `…/ACCOUNT-secondary`. Without it the
    /// account is in the host name, and any host name will do.
    #[must_use]
    pub fn path_style(mut self, account: impl Into<String>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// The wall clock of `Last-Modified`, `Date` and Last Sync Time; default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Starts both regions.
    ///
    /// # Errors
    ///
    /// When loopback has no free port.
    pub async fn start(self) -> io::Result<TwoRegionStore> {
        let account = self.account;
        let data = Arc::new(Mutex::new(Data::new(
            self.clock.unwrap_or_else(|| Arc::new(system_clock)),
        )));
        let region = |side| Region::open(side, account.clone(), data.clone());
        Ok(TwoRegionStore {
            regions: [region(Side::Primary)?, region(Side::Secondary)?],
            account: account.clone(),
            data: data.clone(),
        })
    }
}

impl fmt::Debug for TwoRegionStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwoRegionStoreBuilder")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// A running blob account with two regions; see the [module documentation](self). Dropped, it ends.
#[derive(Debug)]
pub struct TwoRegionStore {
    regions: [Region; 2],
    account: Option<String>,
    data: Arc<Mutex<Data>>,
}

impl TwoRegionStore {
    /// Both regions up, host style, immediate replication, no containers.
    ///
    /// # Errors
    ///
    /// When loopback has no free port.
    pub async fn start() -> io::Result<Self> {
        Self::builder().start().await
    }

    /// For other settings.
    #[must_use]
    pub fn builder() -> TwoRegionStoreBuilder {
        TwoRegionStoreBuilder::default()
    }

    /// Where a region listens.
    #[must_use]
    pub fn addr(&self, side: Side) -> SocketAddr {
        self.region(side).line.addr()
    }

    /// The base URL of a region, without a slash at its end.
    #[must_use]
    pub fn endpoint(&self, side: Side) -> String {
        let addr = self.addr(side);
        self.account.as_ref().map_or_else(
            || format!("http://{addr}"),
            |account| format!("http://{addr}/{account}{}", side.suffix()),
        )
    }

    /// Changes how a region behaves; it holds for every request that arrives after this returns.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on again.
    pub async fn set(&self, side: Side, state: RegionState) -> io::Result<()> {
        let region = self.region(side);
        lock(&region.shared).state = state;
        region.line.set(state.line()).await
    }

    /// [`RegionState::Refuse`].
    ///
    /// # Errors
    ///
    /// Not in practice.
    pub async fn take_down(&self, side: Side) -> io::Result<()> {
        self.set(side, RegionState::Refuse).await
    }

    /// [`RegionState::Up`], at the same port as before.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on again.
    pub async fn bring_back(&self, side: Side) -> io::Result<()> {
        self.set(side, RegionState::Up).await
    }

    /// When writes reach the secondary, those that are pending included.
    pub fn set_replication(&self, replication: Replication) {
        lock(&self.data).set_replication(replication);
    }

    /// Replicates the oldest `writes` pending writes now.
    pub fn replicate_next(&self, writes: usize) {
        lock(&self.data).replicate_next(writes);
    }

    /// Replicates the pending writes of one blob now, before older ones of others: replication keeps
    /// the order of each blob only.
    pub fn replicate_blob(&self, container: &str, blob: &str) {
        lock(&self.data).replicate_blob(container, blob);
    }

    /// How many writes have not reached the secondary.
    #[must_use]
    pub fn pending(&self) -> usize {
        lock(&self.data).pending()
    }

    /// The time before which every write has reached the secondary.
    #[must_use]
    pub fn last_sync_time(&self) -> SystemTime {
        lock(&self.data).last_sync_time()
    }

    /// Whether the account has read access to its secondary (default: yes). Without it the secondary
    /// answers every request with 403 `InsufficientAccountPermissions` (R6).
    pub fn set_secondary_readable(&self, readable: bool) {
        lock(&self.data).secondary_readable = readable;
    }

    /// Makes a container in both regions, without a request.
    pub fn create_container(&self, container: &str) {
        lock(&self.data).seed_container(container);
    }

    /// Puts a blob, and its container, into both regions, without a request.
    pub fn seed(&self, container: &str, blob: &str, content: impl Into<Bytes>) {
        lock(&self.data).seed(container, blob, content.into());
    }

    /// What a region holds for a blob, without a request.
    #[must_use]
    pub fn content(&self, side: Side, container: &str, blob: &str) -> Option<Bytes> {
        lock(&self.data).content(side, container, blob)
    }

    /// How many requests arrived at a region.
    #[must_use]
    pub fn requests(&self, side: Side) -> usize {
        lock(&self.region(side).shared).arrivals.len()
    }

    /// How many requests with this method arrived at a region.
    #[must_use]
    pub fn requests_by(&self, side: Side, method: &Method) -> usize {
        let shared = lock(&self.region(side).shared);
        let by = |arrival: &&Arrival| arrival.method == *method;
        shared.arrivals.iter().filter(by).count()
    }

    /// Every request that arrived at a region, in order.
    #[must_use]
    pub fn arrivals(&self, side: Side) -> Vec<Arrival> {
        lock(&self.region(side).shared).arrivals.clone()
    }

    /// How many writes arrived at the secondary. Whatever the stack does, it must be 0 (R1).
    #[must_use]
    pub fn writes_at_secondary(&self) -> usize {
        let shared = lock(&self.region(Side::Secondary).shared);
        let writes = |arrival: &&Arrival| !answer::is_read(&arrival.method);
        shared.arrivals.iter().filter(writes).count()
    }

    /// How many connections a region accepted, those that it reset or froze included.
    #[must_use]
    pub fn connections(&self, side: Side) -> u64 {
        self.region(side).line.connections()
    }

    /// Forgets all requests that arrived so far.
    pub fn clear_arrivals(&self) {
        for region in &self.regions {
            lock(&region.shared).arrivals.clear();
        }
    }

    const fn region(&self, side: Side) -> &Region {
        let [primary, secondary] = &self.regions;
        match side {
            Side::Primary => primary,
            Side::Secondary => secondary,
        }
    }
}

#[derive(Debug)]
struct Region {
    line: Line,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: RegionState,
    arrivals: Vec<Arrival>,
}

impl Region {
    fn open(side: Side, account: Option<String>, data: Arc<Mutex<Data>>) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let prefix = account.map(|account| format!("/{account}{}", side.suffix()));
        let handler = Arc::new(Handler {
            side,
            prefix,
            data,
            shared: shared.clone(),
        });
        let line = Line::open(move |wire| serve(wire, handler.clone()))?;
        Ok(Self { line, shared })
    }
}

async fn serve(wire: Wire, handler: Arc<Handler>) {
    let service = service_fn(move |request| {
        let handler = handler.clone();
        async move { handler.handle(request).await }
    });
    // How a connection ends is the client's to see; the server has nobody to tell.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(wire), service)
        .await;
}

struct Handler {
    side: Side,
    prefix: Option<String>,
    data: Arc<Mutex<Data>>,
    shared: Arc<Mutex<Shared>>,
}

impl Handler {
    async fn handle(&self, request: Request<Incoming>) -> hyper::Result<Response<StoreBody>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let state = lock(&self.shared).state;
        let response = {
            let mut data = lock(&self.data);
            match state {
                RegionState::Status(status) => answer::bare(status, &data),
                RegionState::Code(status, code) => answer::failure(status, code, &mut data),
                _ => answer::answer(self.side, self.prefix.as_deref(), &head, body, &mut data),
            }
        };
        lock(&self.shared).arrivals.push(Arrival {
            method: head.method,
            target: head.uri.to_string(),
            host: answer::text(&head.headers, "host").to_owned(),
            status: response.status(),
        });
        match state {
            RegionState::Slow(wait) => {
                tokio::time::sleep(wait).await;
                Ok(response)
            }
            RegionState::CutBody(after) => Ok(response.map(|body| body.cut_after(after))),
            RegionState::StallBody(after) => Ok(response.map(|body| body.stall_after(after))),
            _ => Ok(response),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server's own wall clock; a test that needs other dates passes a clock"
)]
fn system_clock() -> SystemTime {
    SystemTime::now()
}
