//! Asks the secondary how far it is, in the background (F1).

use std::fmt;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use tower_geo_policy::azure_storage::{
    AccountEndpoint, STATS_LIMIT, STATS_QUERY, StorageService, parse_stats,
};
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::freshness::ReplicationStats;
use tower_geo_policy::region::Endpoint;
use tower_service::Service;

use super::service_clock;
use crate::background::{self, BackgroundTask, Exchange, NoAnswer, Pace, Rhythm};
use crate::error::BoxError;
use crate::redact::Redacted;
use crate::runtime;
use crate::service_handle::GeoService;

/// How the Last Sync Time is asked for. See [`GeoService::spawn_last_sync`].
///
/// | setting | default | |
/// |---|---|---|
/// | `every` | 30 s | how often |
/// | `timeout` | 10 s | for one answer |
/// | `jitter` | 0.1 | the share of `every` over which polls are spread |
/// | `endpoint` | the secondary's; for dfs and web that of its blobs | who is asked |
#[derive(Clone, PartialEq)]
#[must_use]
pub struct LastSyncSettings {
    rhythm: Rhythm,
    endpoint: Option<String>,
}

impl fmt::Debug for LastSyncSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastSyncSettings")
            .field("every", &self.rhythm.every)
            .field("timeout", &self.rhythm.timeout)
            .field("jitter", &self.rhythm.jitter)
            .field("endpoint", &Redacted(&self.endpoint))
            .finish()
    }
}

impl Default for LastSyncSettings {
    fn default() -> Self {
        Self::new()
    }
}

impl LastSyncSettings {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            rhythm: Rhythm::new(Duration::from_secs(30), Duration::from_secs(10)),
            endpoint: None,
        }
    }

    /// How often to ask. The time itself moves every few minutes.
    pub const fn every(mut self, every: Duration) -> Self {
        self.rhythm.every = every;
        self
    }

    /// After so long without an answer a poll is given up.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.rhythm.timeout = timeout;
        self
    }

    /// The share of the interval over which polls are spread, so that the clients of a service do
    /// not ask together: 0 to 1.
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.rhythm.jitter = jitter;
        self
    }

    /// The secondary's endpoint that tells it, where it does not follow from the service's own: the
    /// blob endpoint of a `dfs` or `web` service under a name of your own.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }
}

impl GeoService {
    /// Asks the secondary for its Last Sync Time, at once and then at an interval (F1). Feature
    /// `last-sync`.
    ///
    /// From then on answers of the secondary say how old they may be
    /// ([`Served::freshness`](crate::Served::freshness)), and
    /// [`max_staleness`](crate::GeoServiceBuilder::max_staleness) has something to go by. Never in
    /// the path of a request: what was heard last is what holds. A poll that fails leaves value
    /// and age, and does not count for the circuits.
    ///
    /// `client` has to sign its requests; it may be the bare client or a stack of ours above it.
    ///
    /// ```
    /// # async fn run<C>(account: tower_geo::Account, signing_client: C) -> Result<(), tower_geo::ConfigError>
    /// # where
    /// #     C: tower_service::Service<http::Request<String>, Response = http::Response<String>>
    /// #         + Clone + Send + Sync + 'static,
    /// #     C::Future: Send,
    /// #     C::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    /// # {
    /// use tower_geo::LastSyncSettings;
    ///
    /// let polls = account.blob().spawn_last_sync(&LastSyncSettings::new(), signing_client)?;
    /// let behind = account.blob().last_sync().behind;
    /// # drop(polls);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When a setting is senseless, the service is none of Azure Storage, is `file`, or has no
    /// secondary, or there is no tokio runtime.
    pub fn spawn_last_sync<C, B, RB>(
        &self,
        settings: &LastSyncSettings,
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
        let uri = stats_uri(self, settings.endpoint.as_deref())?;
        let timeout = settings.rhythm.timeout;
        BackgroundTask::spawn("last_sync", run(self.clone(), uri, timeout, pace, client))
    }
}

async fn run<C, B, RB>(service: GeoService, uri: Uri, timeout: Duration, mut pace: Pace, client: C)
where
    C: Service<Request<B>, Response = Response<RB>> + Clone,
    C::Error: Into<BoxError>,
    B: Default,
    RB: Body,
{
    let random = &service.state_ref().extra().random;
    loop {
        let poll = Poll::of(&service, "last-sync", &uri, timeout, &client).await;
        if poll.stats.is_none() {
            service.note_failed_poll();
            let status = poll
                .answer
                .as_ref()
                .map(|exchange| exchange.head.status.as_u16());
            tracing::debug!(
                service = service.name(),
                answer = ?status,
                "the secondary did not tell its Last Sync Time"
            );
        }
        let due = pace.next(runtime::now(), || random());
        tokio::time::sleep_until(due.into()).await;
    }
}

/// One question, and what came of it.
pub(crate) struct Poll {
    /// What the secondary says; it is recorded already.
    pub(crate) stats: Option<ReplicationStats>,
    pub(crate) answer: Result<Exchange, NoAnswer>,
}

impl Poll {
    pub(crate) async fn of<C, B, RB>(
        service: &GeoService,
        purpose: &'static str,
        uri: &Uri,
        timeout: Duration,
        client: &C,
    ) -> Self
    where
        C: Service<Request<B>, Response = Response<RB>> + Clone,
        C::Error: Into<BoxError>,
        B: Default,
        RB: Body,
    {
        let state = service.state_ref();
        let request = background::request::<B>(state, purpose, &Method::GET, uri);
        let answer = background::exchange(client, request, STATS_LIMIT, timeout, || ()).await;
        let stats = answer.as_ref().ok().and_then(|exchange| {
            let whole = exchange.head.status == StatusCode::OK && !exchange.broken;
            whole.then(|| parse_stats(&exchange.body).ok()).flatten()
        });
        if let (Some(stats), Ok(exchange)) = (stats, &answer) {
            service.record_last_sync(stats, service_clock(state, &exchange.head.headers));
        }
        Self { stats, answer }
    }
}

/// Whom to ask.
pub(crate) fn stats_uri(service: &GeoService, given: Option<&str>) -> Result<Uri, ConfigError> {
    let refusal = |message: String| ConfigError::new("last_sync", message);
    let kind = service.state_ref().extra().storage.ok_or_else(|| {
        refusal("only Azure Storage is asked for it; tell it with `record_last_sync`".to_owned())
    })?;
    if !kind.has_readable_secondary() {
        return Err(refusal(format!("{kind} has no secondary that tells it")));
    }
    let regions = service.regions();
    let secondary = regions
        .copies()
        .next()
        .and_then(|copy| regions.get(copy))
        .ok_or_else(|| service.no_copy_error())?;
    let endpoint =
        match (given, kind) {
            (Some(url), _) => Endpoint::parse(url).map_err(|error| error.of_setting("endpoint"))?,
            (None, StorageService::Dfs | StorageService::Web) => {
                let url = secondary.endpoint().to_string();
                let account = AccountEndpoint::parse(&url).ok();
                account.and_then(|account| account.blob_sibling()).ok_or_else(|| {
                refusal(format!(
                    "{kind} takes it from the secondary's blob endpoint, which does not follow \
                     from this name; give it with `endpoint`"
                ))
            })?
            }
            (None, _) => secondary.endpoint().clone(),
        };
    format!("{endpoint}/?{STATS_QUERY}")
        .parse()
        .map_err(|_| refusal("the endpoint is no URL".to_owned()))
}

#[cfg(test)]
mod tests;
