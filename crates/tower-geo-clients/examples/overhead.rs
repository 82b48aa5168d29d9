//! What each adapter costs per request: the client's transport alone, under the adapter, and under
//! the adapter with all four layers.
//!
//! ```text
//! cargo run --release -p tower-geo-clients --all-features --example overhead
//! ```
//!
//! The transports of `object_store` and of the Azure SDK are in memory, so the figures are the
//! adapters' own. reqwest has only a real one, here on loopback: there the difference counts.
//! Rounds are interleaved, so that a busy machine slows all alike; medians are shown.

#![expect(clippy::print_stdout, reason = "prints its figures")]

use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, HttpClient as SdkClient, StatusCode, Url};
use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::{BodyExt, Full};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
};
use tokio::time::Instant;
use tower_geo::{Account, BoxError, LocationMode};
use tower_geo_clients::azure_core::{SdkBodies, ServiceClient};
use tower_geo_clients::object_store::LayeredConnector;
use tower_geo_clients::reqwest::{GeoClient, ReqwestBodies, ReqwestService};
use tower_geo_testkit::Side;
use tower_geo_testkit::store::TwoRegionStore;
use tower_layer::{Identity, Layer};

const ROUNDS: usize = 41;
const URL: &str = "https://contoso.blob.core.windows.net/photos/cat?comp=metadata";
const SIZE: usize = 4096;

const HEADERS: [(&str, &str); 7] = [
    ("x-ms-date", "Tue, 01 Jul 2025 00:00:00 GMT"),
    ("x-ms-version", "2021-12-02"),
    ("x-ms-blob-type", "BlockBlob"),
    (
        "x-ms-client-request-id",
        "8b6cbf3c-5d0e-4c3b-9a39-0d5f2f5a9b7e",
    ),
    ("content-type", "application/octet-stream"),
    ("user-agent", "overhead/1.0"),
    ("authorization", "Bearer token"),
];

/// Answers at once with as many bytes as it was sent at most.
#[derive(Clone, Debug)]
struct InMemory(Bytes);

#[async_trait]
impl HttpService for InMemory {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        drop(request.into_body().collect().await?);
        Ok(HttpResponse::new(self.0.clone().into()))
    }
}

impl HttpConnector for InMemory {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl SdkClient for InMemory {
    async fn execute_request(
        &self,
        _: &azure_core::http::Request,
    ) -> azure_core::Result<AsyncRawResponse> {
        Ok(AsyncRawResponse::from_bytes(
            StatusCode::Ok,
            Headers::new(),
            self.0.clone(),
        ))
    }
}

/// In memory as a tower service; stands in for reqwest's client.
impl<B> tower_service::Service<http::Request<B>> for InMemory {
    type Response = http::Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<B>) -> Self::Future {
        std::future::ready(Ok(http::Response::new(Full::new(self.0.clone()))))
    }
}

fn headers<R>(start: R, add: impl Fn(R, &'static str, &'static str) -> R) -> R {
    HEADERS
        .into_iter()
        .fold(start, |request, (name, value)| add(request, name, value))
}

/// One request after the other; nanoseconds for each.
async fn time(count: u32, send: &impl AsyncFn() -> Result<(), BoxError>) -> Result<u128, BoxError> {
    let started = Instant::now();
    for _ in 0..count {
        send().await?;
    }
    Ok(started.elapsed().as_nanos() / u128::from(count))
}

/// Times three ways in turn, and prints the medians.
async fn compare(
    name: &str,
    count: u32,
    bare: impl AsyncFn() -> Result<(), BoxError>,
    adapter: impl AsyncFn() -> Result<(), BoxError>,
    layers: impl AsyncFn() -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let mut rounds: [Vec<u128>; 3] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(time(count, &bare).await?);
        rounds[1].push(time(count, &adapter).await?);
        rounds[2].push(time(count, &layers).await?);
    }
    let [bare, adapter, layers] = rounds.map(|mut round| {
        round.sort_unstable();
        round.get(ROUNDS / 2).copied().unwrap_or_default()
    });
    println!("{name:<24}{bare:>12}{adapter:>12}{layers:>16}");
    Ok(())
}

async fn object_store(account: &Account, transport: &InMemory) -> Result<(), BoxError> {
    let options = ClientOptions::new();
    let bare = transport.connect(&options)?;
    let adapter = LayeredConnector::new(transport.clone(), Identity::new()).connect(&options)?;
    let layer = account.blob().layer().clone_bodies();
    let layers = LayeredConnector::new(transport.clone(), layer).connect(&options)?;
    let send = async |client: &HttpClient| -> Result<(), BoxError> {
        let request = headers(http::Request::put(URL), |request, name, value| {
            request.header(name, value)
        });
        let response = client
            .execute(request.body(transport.0.clone().into())?)
            .await?;
        drop(response.into_body().bytes().await?);
        Ok(())
    };
    compare(
        "object_store",
        2000,
        async || send(&bare).await,
        async || send(&adapter).await,
        async || send(&layers).await,
    )
    .await
}

async fn azure_core(account: &Account, transport: &InMemory) -> Result<(), BoxError> {
    let bare: Arc<dyn SdkClient> = Arc::new(transport.clone());
    let adapter = ServiceClient::layered(bare.clone(), &Identity::new());
    let layer = account.blob().layer().body_policy(SdkBodies::default());
    let layers = ServiceClient::layered(bare.clone(), &layer);
    let url: Url = URL.parse()?;
    let send = async |client: &dyn SdkClient| -> Result<(), BoxError> {
        let request = azure_core::http::Request::new(url.clone(), azure_core::http::Method::Put);
        let mut request = headers(request, |mut request, name, value| {
            request.insert_header(name, value);
            request
        });
        request.set_body(transport.0.clone());
        let response = client.execute_request(&request).await?;
        let frames: Vec<Bytes> = response.into_body().try_collect().await?;
        drop(frames);
        Ok(())
    };
    compare(
        "azure_core",
        2000,
        async || send(&*bare).await,
        async || send(&adapter).await,
        async || send(&layers).await,
    )
    .await
}

async fn reqwest_in_memory(account: &Account, transport: &InMemory) -> Result<(), BoxError> {
    let layers = GeoClient::over(
        account
            .blob()
            .layer()
            .body_policy(ReqwestBodies::default())
            .layer(transport.clone()),
    );
    let adapter = GeoClient::over(transport.clone());
    let url: Url = URL.parse()?;
    let request = || {
        let request = reqwest::Request::new(reqwest::Method::PUT, url.clone());
        let mut request = headers(request, |mut request, name, value| {
            request
                .headers_mut()
                .insert(name, http::HeaderValue::from_static(value));
            request
        });
        *request.body_mut() = Some(transport.0.clone().into());
        request
    };
    compare(
        "reqwest, in memory",
        2000,
        async || {
            // What the adapter adds to: the two conversions, which are reqwest's own.
            let request = http::Request::try_from(request())?;
            let response = tower_service::Service::call(&mut transport.clone(), request).await?;
            drop(
                reqwest::Response::from(response.map(reqwest::Body::wrap))
                    .bytes()
                    .await?,
            );
            Ok(())
        },
        async || {
            drop(adapter.execute(request()).await?.bytes().await?);
            Ok(())
        },
        async || {
            drop(layers.execute(request()).await?.bytes().await?);
            Ok(())
        },
    )
    .await
}

async fn reqwest_on_loopback() -> Result<(), BoxError> {
    let store = TwoRegionStore::builder()
        .path_style("contoso")
        .start()
        .await?;
    store.seed("photos", "cat", vec![0; SIZE]);
    let mut account = Account::endpoints();
    for service in tower_geo::StorageService::ALL.into_iter().take(3) {
        let [primary, secondary] = Side::BOTH.map(|side| store.endpoint(side));
        account = account.endpoint_pair(service, primary, secondary);
    }
    let account = account
        .location_mode(LocationMode::PrimaryThenSecondary)
        .build()?;
    // A client of its own for each, so that each has its own connection.
    let client = || reqwest::Client::builder().no_proxy().build();
    let bare = client()?;
    let adapter = GeoClient::over(ReqwestService::new(client()?));
    let layers = GeoClient::new(client()?, &account.blob());
    let url: Url = format!("{}/photos/cat", store.endpoint(Side::Primary)).parse()?;
    let request = || reqwest::Request::new(reqwest::Method::GET, url.clone());
    compare(
        "reqwest, on loopback",
        100,
        async || {
            drop(bare.execute(request()).await?.bytes().await?);
            Ok(())
        },
        async || {
            drop(adapter.execute(request()).await?.bytes().await?);
            Ok(())
        },
        async || {
            drop(layers.execute(request()).await?.bytes().await?);
            Ok(())
        },
    )
    .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // reqwest has no provider of its own here, and wants one even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let account = Account::azure_storage("contoso")
        .location_mode(LocationMode::PrimaryThenSecondary)
        .build()?;
    let transport = InMemory(vec![0; SIZE].into());
    println!("nanoseconds per request, {SIZE} bytes each way\n");
    println!(
        "{:<24}{:>12}{:>12}{:>16}",
        "", "bare", "adapter", "adapter+layers"
    );
    object_store(&account, &transport).await?;
    azure_core(&account, &transport).await?;
    reqwest_in_memory(&account, &transport).await?;
    reqwest_on_loopback().await
}
