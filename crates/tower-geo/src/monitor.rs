//! Is the primary back? A task that asks it with a real read (B11).

use std::fmt;
use std::time::Duration;

use http::{Method, Request, Response, Uri};
use http_body::Body;
use tower_geo_policy::breaker::{Circuit, CircuitPhase};
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::intent::Intent;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::verdict::Verdict;
use tower_service::Service;

use crate::background::{self, BackgroundTask, Exchange, NoAnswer, Pace, Rhythm};
use crate::circuit_breaker::Pending;
use crate::error::{BoxError, Error};
use crate::fresh_connections::Probe;
use crate::redact::Redacted;
use crate::runtime::{self, State};
use crate::service_handle::GeoService;

/// What is read of the body of an answer: a ping should be small.
const BODY: usize = 64 * 1024;

/// How a monitor asks. See [`GeoService::spawn_monitor`].
///
/// | setting | default | |
/// |---|---|---|
/// | `method` | GET | or HEAD |
/// | `path` | | path and query of a small object, as a request would name it (path style: with the account) |
/// | `every` | 5 s | how often |
/// | `timeout` | 2 s | for one answer, its body included |
/// | `jitter` | 0.1 | the share of `every` over which pings are spread |
#[derive(Clone, PartialEq)]
#[must_use]
pub struct MonitorSettings {
    method: Method,
    path: String,
    rhythm: Rhythm,
}

impl fmt::Debug for MonitorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorSettings")
            .field("method", &self.method)
            .field("path", &Redacted(&self.path))
            .field("every", &self.rhythm.every)
            .field("timeout", &self.rhythm.timeout)
            .field("jitter", &self.rhythm.jitter)
            .finish()
    }
}

impl MonitorSettings {
    /// Reads this path and query.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            rhythm: Rhythm::new(Duration::from_secs(5), Duration::from_secs(2)),
        }
    }

    /// GET, or HEAD.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// How often to ask.
    pub const fn every(mut self, every: Duration) -> Self {
        self.rhythm.every = every;
        self
    }

    /// After so long without an answer a ping is given up, and has failed.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.rhythm.timeout = timeout;
        self
    }

    /// The share of the interval over which pings are spread, so that the clients of a service do
    /// not ask together: 0 to 1.
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.rhythm.jitter = jitter;
        self
    }

    /// What is asked, if it is a read that the writer answers.
    fn check(&self, service: &GeoService) -> Result<Ping, ConfigError> {
        if service.state_ref().extra().has_account() {
            return Err(ConfigError::new(
                "monitor",
                "is for services whose regions stay: which region of an account would be asked?",
            ));
        }
        if self.method != Method::GET && self.method != Method::HEAD {
            return Err(ConfigError::new("method", "must be GET or HEAD"));
        }
        let regions = service.regions();
        let writer = regions.writer();
        let refusal = |message: &str| ConfigError::new("path", message.to_owned());
        let region = regions
            .get(writer)
            .ok_or_else(|| refusal("has no region to ask"))?;
        let uri = Uri::builder()
            .scheme(region.endpoint().scheme())
            .authority(region.endpoint().authority())
            .path_and_query(self.path.as_str())
            .build()
            .ok()
            .filter(|_| self.path.starts_with('/'))
            .ok_or_else(|| refusal("must be a path, and a query if need be, that begins with /"))?;
        if regions.region_of(&uri) != Some(writer) {
            return Err(refusal(
                "must begin with the account, as all paths of this service do",
            ));
        }
        let provider = service.state_ref().provider();
        let ruling = provider.intent(&self.method, &uri, &http::HeaderMap::new());
        if !ruling.intent.is_read() || ruling.intent.is_for_copy() {
            return Err(refusal("must be a read that the primary answers"));
        }
        Ok(Ping {
            method: self.method.clone(),
            uri,
            intent: ruling.intent,
            writer,
            timeout: self.rhythm.timeout,
        })
    }
}

#[derive(Debug)]
struct Ping {
    method: Method,
    uri: Uri,
    intent: Intent,
    writer: RegionId,
    timeout: Duration,
}

impl GeoService {
    /// Asks the primary with a real read at an interval, first after one interval (B11).
    ///
    /// Use it where outages should be noticed before a caller meets one, and where no caller
    /// should be the one who finds out whether the primary is back. What the monitor finds counts
    /// like any read's. While a circuit of the primary is open only the monitor asks, and its
    /// success ends the wait: the next operation finds the circuit half open. When the monitor
    /// ends, waits for it end with it.
    ///
    /// `client` has to sign its requests; it may be the bare client or a stack of ours above it.
    /// At most one ping is under way. A client that panics is cloned anew for the next one. In
    /// maintenance the monitor rests (G4). While a circuit is open its pings carry
    /// [`Probe`]: a client with [`FreshConnectionsLayer`](crate::FreshConnectionsLayer)
    /// makes them over new connections.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn run<C>(blob: tower_geo::GeoService, signing_client: C) -> Result<(), tower_geo::ConfigError>
    /// # where
    /// #     C: tower_service::Service<http::Request<String>, Response = http::Response<String>>
    /// #         + Clone + Send + Sync + 'static,
    /// #     C::Future: Send,
    /// #     C::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    /// # {
    /// use tower_geo::MonitorSettings;
    ///
    /// let ping = MonitorSettings::new("/health/ping").every(Duration::from_secs(10));
    /// let monitor = blob.spawn_monitor(&ping, signing_client)?;
    /// // … for as long as `monitor` lives
    /// monitor.stop();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When a setting is senseless, what is asked is no read of the primary, the service is an
    /// account of Cosmos DB, or there is no tokio runtime.
    pub fn spawn_monitor<C, B, RB>(
        &self,
        settings: &MonitorSettings,
        client: C,
    ) -> Result<BackgroundTask, ConfigError>
    where
        C: Service<Request<B>, Response = Response<RB>> + Clone + Send + Sync + 'static,
        C::Future: Send,
        C::Error: Into<BoxError>,
        B: Default + Send + 'static,
        RB: Body + Send + 'static,
        RB::Data: Send,
    {
        let pace = settings.rhythm.begin(runtime::now())?;
        let ping = settings.check(self)?;
        let watching = Watching::begin(self.clone());
        BackgroundTask::spawn("monitor", run(watching, ping, pace, client))
    }
}

/// As long as it lives, open circuits of the writers wait for the monitor.
struct Watching(GeoService);

impl Watching {
    fn begin(service: GeoService) -> Self {
        let state = service.state_ref();
        state.monitor_started(state.tick(runtime::now()));
        Self(service)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let state = self.0.state_ref();
        state.monitor_stopped(state.tick(runtime::now()));
    }
}

async fn run<C, B, RB>(watching: Watching, ping: Ping, mut pace: Pace, client: C)
where
    C: Service<Request<B>, Response = Response<RB>> + Clone,
    C::Error: Into<BoxError>,
    B: Default,
    RB: Body,
{
    let state = watching.0.state_ref();
    loop {
        let random = &state.extra().random;
        let due = pace.next(runtime::now(), || random());
        tokio::time::sleep_until(due.into()).await;
        if !state.in_maintenance() {
            ask(state, &ping, &client).await;
        }
    }
}

async fn ask<C, B, RB>(state: &State, ping: &Ping, client: &C)
where
    C: Service<Request<B>, Response = Response<RB>> + Clone,
    C::Error: Into<BoxError>,
    B: Default,
    RB: Body,
{
    let sent_at = state.tick(runtime::now());
    let sent = state.send_started(ping.writer, Circuit::Reads, sent_at);
    let mut pending = Pending::new(state.clone(), sent);
    let mut request = background::request::<B>(state, "monitor", &ping.method, &ping.uri);
    if is_open(state, ping.writer, sent_at) {
        // It ends the wait of the circuit, so it must not ask an old connection (R12).
        request.extensions_mut().insert(Probe::OF_MONITOR);
    }
    let result = background::exchange(client, request, BODY, ping.timeout).await;
    let now = state.tick(runtime::now());
    if state.in_maintenance() {
        // G4: what the primary says now is not for us.
        return pending.not_sent(now);
    }
    let Some(verdict) = verdict_on(state, ping.intent, result) else {
        return pending.not_sent(now);
    };
    pending.settle_at(verdict, now);
    if matches!(
        verdict,
        Verdict::Answered | Verdict::Refused { alive: true }
    ) {
        state.monitor_succeeded(ping.writer, now);
    }
}

/// Whether a circuit of the region waits for somebody to find it well again.
fn is_open(state: &State, region: RegionId, now: Tick) -> bool {
    !state.is_calm()
        && Circuit::BOTH.into_iter().any(|circuit| {
            let found = state.circuit(region, circuit, now);
            found.is_some_and(|found| found.phase != CircuitPhase::Closed)
        })
}

/// What the end of a ping means; `None` when nothing has left, or the client is to blame.
fn verdict_on(
    state: &State,
    intent: Intent,
    result: Result<Exchange, NoAnswer>,
) -> Option<Verdict> {
    let verdict = match result {
        Ok(exchange) => {
            let (status, headers) = (exchange.head.status, &exchange.head.headers);
            match state.provider().verdict(intent, status, headers) {
                // R9: a body that breaks off.
                Verdict::Answered if exchange.broken => Some(Verdict::Ambiguous),
                verdict => Some(verdict),
            }
        }
        Err(NoAnswer::TimedOut) => Some(Verdict::Ambiguous),
        Err(NoAnswer::Failed(error)) => Error::of_client(state, error)
            .fault(&*state.extra().faults)
            .map(tower_geo_policy::fault::Fault::verdict),
        Err(NoAnswer::Panicked) => {
            tracing::warn!(service = state.name(), "the client of the monitor panicked");
            None
        }
    };
    tracing::trace!(
        service = state.name(),
        ?verdict,
        "the monitor has asked the primary"
    );
    verdict
}

#[cfg(test)]
mod tests;
