//! The emulator behind two fronts, and the proxy before them.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::map_request;
use geo_proxy::router;
use tokio::net::TcpListener;
use tower_geo::shared_key::SharedKeyService;
use tower_geo::{Account, BreakerSettings, GeoService, LocationMode, RetrySettings};
use tower_geo_testkit::azurite::Azurite;
use tower_geo_testkit::client::{ClientBuilder, Names};
use tower_geo_testkit::front::{Front, Refuses};
use tower_geo_testkit::tls::TestCa;

pub(crate) const ACCOUNT: &str = "contoso";
pub(crate) const KEY: &str = "c2VjcmV0IG9mIGNvbnRvc28=";

/// One service of the emulator behind its two fronts, and the proxy before them.
pub(crate) struct Setting {
    pub(crate) proxy: SocketAddr,
    pub(crate) kind: SharedKeyService,
    pub(crate) service: GeoService,
    pub(crate) primary: Front,
    pub(crate) secondary: Front,
    arrived: Arc<AtomicUsize>,
}

impl Setting {
    /// Requests that came to the proxy.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::Relaxed)
    }
}

pub(crate) fn settings(builder: tower_geo::AccountBuilder) -> Account {
    let retry = RetrySettings::new()
        .max_retries(2)
        .delay(Duration::from_millis(10))
        .attempt_timeout(Duration::from_millis(700));
    let wait = Duration::from_secs(2);
    let breaker = BreakerSettings::new()
        .streak(3)
        .rate(None)
        .open_for(wait)
        .max_open_for(wait);
    builder
        .location_mode(LocationMode::PrimaryThenSecondary)
        .retry(retry)
        .breaker(breaker.ramp([1.0]))
        .build()
        .unwrap()
}

pub(crate) async fn serve(app: axum::Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    addr
}

pub(crate) async fn before(azurite: &Azurite, kind: SharedKeyService) -> Setting {
    let account = settings(Account::azure_storage(ACCOUNT));
    let (service, upstream, refuses) = match kind {
        SharedKeyService::Queue => (account.queue(), azurite.queue_addr(), Refuses::QueueWrites),
        SharedKeyService::Table => (account.table(), azurite.table_addr(), Refuses::Writes),
        _ => (account.blob(), azurite.blob_addr(), Refuses::Writes),
    };
    let (ca, names) = (TestCa::new().unwrap(), Names::new());
    let front = |suffix, refuses| {
        let host = format!("{ACCOUNT}{suffix}.{}.core.windows.net", service.name());
        let front = Front::builder(upstream).tls(&ca, [host.clone()]).unwrap();
        let front = front.refuse_writes(refuses).start().unwrap();
        names.point(&host, front.addr());
        front
    };
    let (primary, secondary) = (front("", Refuses::Nothing), front("-secondary", refuses));
    let client = ClientBuilder::new()
        .names(names)
        .trust(&ca)
        .unwrap()
        .build()
        .unwrap();
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = arrived.clone();
    let app = router(&service, 1 << 20, client);
    let app = app.layer(map_request(move |request: Request| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(request)
    }));
    let proxy = serve(app).await;
    Setting {
        proxy,
        kind,
        service,
        primary,
        secondary,
        arrived,
    }
}
