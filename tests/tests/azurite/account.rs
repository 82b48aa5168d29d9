//! A storage account as production has it: two regions, three services, real host names, TLS. The
//! storage emulator stands behind six fronts, which break and count.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use sha2::Sha256;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceBuilder, ServiceExt as _};
use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
use tower_geo::signing::SigningServiceError;
use tower_geo::{
    Account, AccountBuilder, BoxError, BreakerSettings, Error, GateStatus, GeoService,
    LocationMode, OpenJitter, RequestOptions, RetrySettings, Served, StorageService,
};
use tower_geo_testkit::Side;
use tower_geo_testkit::azurite::{ACCOUNT, Azurite, AzuriteOptions, KEY};
use tower_geo_testkit::client::{ClientBuilder, Names, TestClient};
use tower_geo_testkit::front::{Front, FrontState, Refuses};
use tower_geo_testkit::tls::TestCa;

/// Failures in a row that open a circuit in these tests.
pub(crate) const STREAK: u32 = 3;

/// How long an open circuit waits before it is tried again. Long enough to look at it meanwhile.
const OPEN_FOR: Duration = Duration::from_secs(1);

/// How long anything may take that is waited for. Never waited out unless the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The three services that the emulator has, in the order of [`TestAccount`]'s fronts.
pub(crate) const SERVICES: [StorageService; 3] = [
    StorageService::Blob,
    StorageService::Queue,
    StorageService::Table,
];

/// The settings that make outages short, on any account.
pub(crate) fn quick(account: AccountBuilder) -> Result<Account, tower_geo::ConfigError> {
    account
        .location_mode(LocationMode::PrimaryThenSecondary)
        .breaker(
            BreakerSettings::new()
                .streak(STREAK)
                .rate(None)
                .open_for(OPEN_FOR)
                .max_open_for(OPEN_FOR)
                .jitter(OpenJitter::None)
                .probe_deadline(Duration::from_secs(5))
                .ramp([]),
        )
        .retry(
            RetrySettings::new()
                // Longer than a busy machine needs for a healthy answer.
                .attempt_timeout(Duration::from_secs(3))
                .delay(Duration::from_millis(50))
                .deadline(Duration::from_secs(30)),
        )
        .build()
}

/// An account under its production host names.
pub(crate) struct TestAccount {
    pub(crate) account: Account,
    names: Names,
    ca: TestCa,
    /// Of each service: primary, secondary.
    fronts: Vec<[Front; 2]>,
    _azurite: Azurite,
}

impl TestAccount {
    /// Starts everything. Needs `scripts/setup`, and says so.
    pub(crate) async fn start() -> Self {
        let azurite = Azurite::start(AzuriteOptions::new()).await.unwrap();
        let (ca, names) = (TestCa::new().unwrap(), Names::new());
        let mut fronts = Vec::new();
        for service in SERVICES {
            let (upstream, refuses) = match service {
                StorageService::Queue => (azurite.queue_addr(), Refuses::QueueWrites),
                StorageService::Table => (azurite.table_addr(), Refuses::Writes),
                _ => (azurite.blob_addr(), Refuses::Writes),
            };
            let front = |side, refuses| {
                let host = host(service, side);
                let front = Front::builder(upstream).tls(&ca, [host.as_str()]).unwrap();
                let front = front.refuse_writes(refuses).start().unwrap();
                names.point(&host, front.addr());
                front
            };
            fronts.push([
                front(Side::Primary, Refuses::Nothing),
                front(Side::Secondary, refuses),
            ]);
        }
        Self {
            account: quick(Account::azure_storage(ACCOUNT)).unwrap(),
            names,
            ca,
            fronts,
            _azurite: azurite,
        }
    }

    /// The front of one service in one region.
    pub(crate) fn front(&self, service: StorageService, side: Side) -> &Front {
        let index = SERVICES.iter().position(|known| *known == service).unwrap();
        let [primary, secondary] = &self.fronts[index];
        match side {
            Side::Primary => primary,
            Side::Secondary => secondary,
        }
    }

    /// Breaks or mends one service in one region.
    pub(crate) async fn set(&self, service: StorageService, side: Side, state: FrontState) {
        self.front(service, side).set(state).await.unwrap();
    }

    /// How many connections the two regions of a service accepted, and how many requests they read.
    pub(crate) fn traffic(&self, service: StorageService) -> [u64; 4] {
        let [primary, secondary] = Side::BOTH.map(|side| self.front(service, side));
        [
            primary.connections(),
            primary.requests(),
            secondary.connections(),
            secondary.requests(),
        ]
    }

    /// A client of one service.
    pub(crate) fn client(&self, service: StorageService, credentials: Credentials) -> Client {
        let builder = ClientBuilder::new().names(self.names.clone());
        let http = builder.trust(&self.ca).unwrap().build().unwrap();
        let geo = self.account.service(service).unwrap();
        Client::new(
            http,
            geo,
            &url(service, Side::Primary),
            service,
            credentials,
        )
    }
}

/// The production host name of a service in a region.
pub(crate) fn host(service: StorageService, side: Side) -> String {
    let suffix = match side {
        Side::Primary => "",
        Side::Secondary => "-secondary",
    };
    format!("{ACCOUNT}{suffix}.{service}.core.windows.net")
}

/// The production URL of a service in a region.
pub(crate) fn url(service: StorageService, side: Side) -> String {
    format!("https://{}", host(service, side))
}

/// How requests are allowed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A signer above the stack: one signature per operation, valid in both regions.
    KeyAbove,
    /// A signer below the stack: each send is signed anew.
    KeyBelow,
    /// An account's shared access signature in the query.
    Sas,
}

/// What an application has: a client, and where it sends.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) geo: GeoService,
    base: String,
    query: Option<String>,
    call: Arc<Call>,
}

type Pending = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send>>;
type Call = dyn Fn(Request<Full<Bytes>>) -> Pending + Send + Sync;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) served: Option<Served>,
}

impl Answer {
    /// Whether the secondary gave it.
    pub(crate) fn is_from_copy(&self) -> bool {
        self.served.as_ref().is_some_and(Served::is_from_copy)
    }

    /// How many requests left for it.
    pub(crate) fn sends(&self) -> usize {
        let sends = |served: &Served| served.trail().sends().len().max(1);
        self.served.as_ref().map_or(1, sends)
    }
}

impl Client {
    pub(crate) fn new(
        http: TestClient<Full<Bytes>>,
        geo: GeoService,
        base: &str,
        service: StorageService,
        credentials: Credentials,
    ) -> Self {
        let kind = match service {
            StorageService::Queue => SharedKeyService::Queue,
            StorageService::Table => SharedKeyService::Table,
            _ => SharedKeyService::Blob,
        };
        let signer = SharedKeyLayer::new(ACCOUNT, KEY, kind).unwrap();
        let stack = geo.layer().clone_bodies();
        let call: Arc<Call> = match credentials {
            Credentials::KeyAbove => {
                let service = ServiceBuilder::new().layer(signer).layer(stack);
                let unsigned = |error: SigningServiceError| {
                    let ours = error.into_inner().unwrap().downcast::<Error>();
                    *ours.unwrap()
                };
                calls(service.service(http).map_err(unsigned))
            }
            Credentials::KeyBelow => {
                let service = ServiceBuilder::new().layer(stack).layer(signer);
                calls(service.service(http))
            }
            Credentials::Sas => calls(ServiceBuilder::new().layer(stack).service(http)),
        };
        Self {
            geo,
            base: base.to_owned(),
            query: (credentials == Credentials::Sas).then(account_sas),
            call,
        }
    }

    /// Sends a request; `target` is path and query.
    pub(crate) async fn try_send(&self, request: &Ask<'_>) -> Result<Answer, Error> {
        let mut target = format!("{}{}", self.base, request.target);
        if let Some(query) = &self.query {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(query);
        }
        let mut built = Request::builder()
            .method(request.method.clone())
            .uri(target);
        for (name, value) in request.headers {
            built = built.header(*name, *value);
        }
        if let Some(options) = &request.options {
            built = built.extension(options.clone());
        }
        let body = Full::from(request.body.to_owned());
        (self.call)(built.body(body).unwrap()).await
    }

    /// Sends a request that must be answered with this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16, request: Ask<'_>) -> impl Future<Output = Answer> {
        let caller = std::panic::Location::caller();
        async move {
            let answer = match self.try_send(&request).await {
                Ok(answer) => answer,
                Err(error) => panic!("{caller}: {request:?}: {error} ({error:?})"),
            };
            assert_eq!(answer.status, status, "{caller}: {request:?}: {answer:?}");
            answer
        }
    }
}

/// A request, but for the host and the credentials.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) target: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
    pub(crate) options: Option<RequestOptions>,
}

fn calls<S, B>(service: S) -> Arc<Call>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Error>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Error: Into<BoxError>> + Send + 'static,
    B::Data: Send,
{
    Arc::new(move |request| {
        let service = service.clone();
        Box::pin(async move {
            let (head, body) = service.oneshot(request).await?.into_parts();
            let body = body.collect().await.map_err(Into::into).unwrap();
            Ok(Answer {
                status: head.status,
                headers: head.headers,
                body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
                served: Served::of(&head.extensions).cloned(),
            })
        })
    })
}

/// Everything on blob, queue and table, for ever, as the service documents it for its version
/// 2019-12-12.
fn account_sas() -> String {
    let (permissions, services, types) = ("rwdlacup", "bqt", "sco");
    let (expiry, version) = ("2099-01-01T00:00:00Z", "2019-12-12");
    let (start, address, protocol) = ("", "", "");
    let text = format!(
        "{ACCOUNT}\n{permissions}\n{services}\n{types}\n{start}\n{expiry}\n{address}\n{protocol}\n{version}\n"
    );
    let key = STANDARD.decode(KEY).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(text.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let signature = signature
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    let expiry = expiry.replace(':', "%3A");
    format!("sv={version}&ss={services}&srt={types}&sp={permissions}&se={expiry}&sig={signature}")
}

/// Tries until it is so. Polled, since the clocks of sockets cannot be paused.
#[track_caller]
pub(crate) fn eventually<F, Fut>(what: &str, mut is_so: F) -> impl Future<Output = ()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let caller = std::panic::Location::caller();
    async move {
        let give_up = Instant::now() + PATIENCE;
        while !is_so().await {
            assert!(Instant::now() < give_up, "{caller}: in vain: {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Runs `look` until it ran while the gate was shut all the time, so that no write was let
/// through as a trial meanwhile. On a machine that does not stall, that is the first time.
pub(crate) async fn while_read_only<T, Fut: Future<Output = T>>(
    geo: &GeoService,
    mut look: impl FnMut() -> Fut,
) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let before = geo.gate();
        let seen = look().await;
        let after = geo.gate();
        if before.status == GateStatus::ReadOnly && before == after {
            return seen;
        }
        assert!(Instant::now() < give_up, "the gate never stays shut");
        sleep(Duration::from_millis(20)).await;
    }
}
