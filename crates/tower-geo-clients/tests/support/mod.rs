//! An account in two regions: the emulator under production host names, TLS, behind two fronts.
//! The secondary's refuses writes, as a real one does.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http_body::Body;
use tower_geo::{
    Account, AccountBuilder, BackoffMode, BreakerSettings, Jitter, LocationMode, RetrySettings,
    StorageService,
};
use tower_geo_testkit::azurite::{Azurite, AzuriteOptions};
use tower_geo_testkit::client::{ClientBuilder, Names, TestClient};
use tower_geo_testkit::front::{Front, FrontState, Refuses};
use tower_geo_testkit::tls::TestCa;
use tower_layer::Layer;
use tower_service::Service;

/// The account of the tests.
pub(crate) const ACCOUNT: &str = "contoso";
/// Its key.
pub(crate) const KEY: &str = "c2VjcmV0IG9mIGNvbnRvc28=";

/// How long a frozen region is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_millis(700);

/// One service of the account.
pub(crate) struct Cloud {
    pub(crate) azurite: Azurite,
    pub(crate) ca: TestCa,
    pub(crate) names: Names,
    pub(crate) primary: Front,
    pub(crate) secondary: Front,
    pub(crate) service: StorageService,
}

impl Cloud {
    pub(crate) async fn start(service: StorageService) -> Self {
        Self::with(AzuriteOptions::new(), TestCa::new().unwrap(), service, true).await
    }

    /// The emulator ends TLS itself and takes bearer tokens. The fronts see bytes: no requests are
    /// counted, no writes refused.
    pub(crate) async fn with_tokens(service: StorageService) -> Self {
        let ca = TestCa::new().unwrap();
        let names = ["", "-secondary"].map(|suffix| host(service, suffix));
        let options = AzuriteOptions::new().tokens(&ca, names).unwrap();
        Self::with(options, ca, service, false).await
    }

    async fn with(options: AzuriteOptions, ca: TestCa, service: StorageService, tls: bool) -> Self {
        let azurite = Azurite::start(options.account(ACCOUNT, KEY)).await.unwrap();
        let (addr, refuses) = match service {
            StorageService::Queue => (azurite.queue_addr(), Refuses::QueueWrites),
            StorageService::Table => (azurite.table_addr(), Refuses::Writes),
            _ => (azurite.blob_addr(), Refuses::Writes),
        };
        let names = Names::new();
        let front = |host: String, refuses| {
            let mut builder = Front::builder(addr);
            if tls {
                builder = builder
                    .tls(&ca, [host.clone()])
                    .unwrap()
                    .refuse_writes(refuses);
            }
            let front = builder.start().unwrap();
            names.point(&host, front.addr());
            front
        };
        let primary = front(host(service, ""), Refuses::Nothing);
        let secondary = front(host(service, "-secondary"), refuses);
        Self {
            azurite,
            ca,
            names,
            primary,
            secondary,
            service,
        }
    }

    /// The base URL of the primary.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.host())
    }

    pub(crate) fn host(&self) -> String {
        host(self.service, "")
    }

    pub(crate) fn secondary_host(&self) -> String {
        host(self.service, "-secondary")
    }

    /// hyper's client: every send opens its own connection, so nothing is sent in secret.
    pub(crate) fn hyper<B>(&self) -> TestClient<B>
    where
        B: Body + Send,
        B::Data: Send,
    {
        ClientBuilder::new()
            .names(self.names.clone())
            .trust(&self.ca)
            .unwrap()
            .build()
            .unwrap()
    }

    pub(crate) async fn primary_is(&self, state: FrontState) {
        self.primary.set(state).await.unwrap();
    }

    /// Requests that arrived: at the primary, at the secondary.
    pub(crate) fn arrived(&self) -> (u64, u64) {
        (self.primary.requests(), self.secondary.requests())
    }
}

fn host(service: StorageService, suffix: &str) -> String {
    format!("{ACCOUNT}{suffix}.{service}.core.windows.net")
}

/// Falls over to the secondary, opens after three failures, tries again quickly.
pub(crate) fn account() -> Account {
    settings(Account::azure_storage(ACCOUNT)).build().unwrap()
}

pub(crate) fn retry() -> RetrySettings {
    RetrySettings::new()
        .max_retries(2)
        .mode(BackoffMode::Fixed)
        .jitter(Jitter::None)
        .delay(Duration::from_millis(10))
        .attempt_timeout(PATIENCE)
}

pub(crate) fn settings(builder: AccountBuilder) -> AccountBuilder {
    builder
        .location_mode(LocationMode::PrimaryThenSecondary)
        .retry(retry())
        .breaker(
            BreakerSettings::new()
                .streak(3)
                .rate(None)
                .open_for(Duration::from_secs(2))
                .max_open_for(Duration::from_secs(2))
                .ramp([1.0]),
        )
}

/// Counts the calls of what is below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn calls(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// What was called since the last time.
    pub(crate) fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl<S> Layer<S> for Count {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            count: self.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    inner: S,
    count: Count,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.count.0.fetch_add(1, Ordering::Relaxed);
        self.inner.call(request)
    }
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(length: usize) -> bytes::Bytes {
    (0..length)
        .map(|at| u8::try_from((at / 251 + at) % 251).unwrap())
        .collect::<Vec<u8>>()
        .into()
}
