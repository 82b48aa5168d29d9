//! The code of README.md compiles, and is the code below, line by line.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::Response;
use http_body_util::Full;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::Layer as _;
use tower::Service;
use tower::{ServiceBuilder, ServiceExt};
use tower_geo::cosmos_key::CosmosKeyLayer;
use tower_geo::{Account, LocationMode};
use tower_geo::{CircuitBreakerLayer, GeoRedirectLayer, ReadOnlyGateLayer, RetryLayer};
use tower_geo::{FreshConnectionsLayer, HyperClients};
use tower_geo::{Freshness, LastSyncSettings, MonitorSettings, Served};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The block under "Ten lines".
#[rustfmt::skip]
async fn ten_lines<C, RB>(http_client: C, body: Full<Bytes>) -> Result<(), Failure>
where
    C: Service<Request<Full<Bytes>>, Response = Response<RB>> + Clone,
    C::Error: Into<Failure>,
    RB: http_body::Body,
{
    let account = Account::azure_storage("contoso")
        .location_mode(LocationMode::PrimaryThenSecondary)
        .build()?;
    let blob = ServiceBuilder::new()
        .layer(account.blob().layer().clone_bodies())
        .service(http_client); // hyper-util's client, or any tower service of HTTP requests

    let photo = Request::get("https://contoso.blob.core.windows.net/photos/1").body(Full::default())?;
    let photo = blob.clone().oneshot(photo).await?; // from the secondary while the primary is down

    match blob.oneshot(Request::put("https://contoso.blob.core.windows.net/photos/2").body(body)?).await {
        Err(error) if error.is_read_only() => { /* keep it; try again in error.retry_after() */ }
        answer => { answer?; }
    }
    drop(photo);
    Ok(())
}

/// The block under "Which order, and why".
#[rustfmt::skip]
async fn by_hand<C, RB>(http_client: C) -> Result<(), Failure>
where
    C: Service<Request<Full<Bytes>>, Response = Response<RB>> + Clone,
    C::Error: Into<Failure>,
    RB: http_body::Body,
{
    let account = Account::azure_storage("contoso").build()?;
    let blob = account.blob();
    let client = ServiceBuilder::new()
        .layer(ReadOnlyGateLayer::new(blob.clone())) // outermost: a write that cannot succeed costs nothing
        .layer(RetryLayer::new(blob.clone()).clone_bodies()) // drives the operation: one budget, one copy of the request
        .layer(GeoRedirectLayer::new(blob.clone()).below_retry()) // carries out where each send goes
        .layer(CircuitBreakerLayer::new(blob)) // innermost: sees every send, and the region that it really goes to
        .service(http_client);
    let get = Request::get("https://contoso.blob.core.windows.net/a").body(Full::default())?;
    client.oneshot(get).await?;
    Ok(())
}

/// The block under "When the account fails over".
#[rustfmt::skip]
fn after_a_failover() -> Result<(), Failure> {
    let account = Account::azure_storage("contoso").build()?;
    let builder = Client::builder(TokioExecutor::new());
    let connector = HttpConnector::new();
    let clients = HyperClients::new(builder, connector); // hyper-util's, and any closure that returns a client will do
    let blob = ServiceBuilder::new()
        .layer(account.blob().layer().clone_bodies())
        .layer(FreshConnectionsLayer::new(clients.clone()).max_age(Duration::from_secs(600)))
        .service(clients.client::<Full<Bytes>>());
    drop(blob);
    Ok(())
}

/// The block under "Cosmos DB".
#[rustfmt::skip]
async fn cosmos<C, RB>(http_client: C, key: &str) -> Result<(), Failure>
where
    C: Service<Request<Full<Bytes>>, Response = Response<RB>> + Clone + Send + Sync + 'static,
    C::Future: Send,
    C::Error: Into<Failure>,
    RB: http_body::Body + Send + 'static,
    RB::Data: Send,
{
    let docs = Account::cosmos("https://contoso.documents.azure.com")
        .preferred(["West US", "East US"])
        .build()?;
    let signed = CosmosKeyLayer::new("https://contoso.documents.azure.com", key)?.layer(http_client); // next to the client
    let reader = docs.spawn_account_reader(signed.clone())?; // reads the account document, for as long as `reader` lives
    let client = docs.layer().clone_bodies().layer(signed); // requests name the account's host; each goes to its region
    let get = Request::get("https://contoso.documents.azure.com/dbs/shop/colls/orders/docs/1").body(Full::default())?;
    let answer = client.oneshot(get).await?;
    assert_eq!(Served::of(answer.extensions()).map(Served::region_name), Some("West US"));
    drop(reader);
    Ok(())
}

/// The block under "How old is it?".
#[rustfmt::skip]
async fn how_old<C, RB>(signing_client: C) -> Result<(), Failure>
where
    C: Service<Request<Full<Bytes>>, Response = Response<RB>> + Clone + Send + Sync + 'static,
    C::Future: Send,
    C::Error: Into<Failure>,
    RB: http_body::Body + Send + 'static,
    RB::Data: Send,
{
    let blob = Account::azure_storage("contoso").build()?.blob();
    let get = Request::get("https://contoso-secondary.blob.core.windows.net/a").body(Full::default())?;
    let answer = blob.layer().clone_bodies().layer(signing_client.clone()).oneshot(get).await?;
    let polls = blob.spawn_last_sync(&LastSyncSettings::new(), signing_client.clone())?; // for as long as `polls` lives
    let pings = blob.spawn_monitor(&MonitorSettings::new("/health/ping"), signing_client.clone())?;
    if !blob.verify(&signing_client).await?.is_readable() {
        // read access to the secondary is not turned on: better to know before the outage does
    }
    if let Some(served) = Served::of(answer.extensions()) {
        let (how_old, last_sync) = (served.freshness(), served.last_sync());
        assert_eq!((how_old, last_sync), (Some(Freshness::Unknown), None));
    }
    drop((polls, pings));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_code_of_the_readme_works() {
    let client = tower::service_fn(|request: Request<Full<Bytes>>| async move {
        let host = request.uri().host().unwrap_or_default();
        assert!(host.ends_with(".blob.core.windows.net"), "{host}");
        Ok::<_, std::io::Error>(Response::new(Full::<Bytes>::default()))
    });
    ten_lines(client, Full::new(Bytes::from_static(b"photo")))
        .await
        .unwrap();
    by_hand(client).await.unwrap();
    how_old(client).await.unwrap();
    after_a_failover().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_code_for_cosmos_works() {
    let region = |name: &str, label: &str| {
        let host = format!("https://contoso-{label}.documents.azure.com:443/");
        format!(r#"{{"name":"{name}","databaseAccountEndpoint":"{host}"}}"#)
    };
    let (east, west) = (region("East US", "eastus"), region("West US", "westus"));
    let document =
        format!(r#"{{"readableLocations":[{east},{west}],"writableLocations":[{east}]}}"#);
    let client = tower::service_fn(move |request: Request<Full<Bytes>>| {
        assert!(request.headers().contains_key("authorization"));
        let body = match request.uri().path() {
            "/" => document.clone(),
            _ => String::new(),
        };
        std::future::ready(Ok::<_, std::io::Error>(Response::new(Full::<Bytes>::from(
            body,
        ))))
    });
    cosmos(client, "c2VjcmV0").await.unwrap();
}

#[test]
fn the_code_of_the_readme_is_the_code_that_is_compiled() {
    let lines = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect()
    };
    let compiled = lines(include_str!("readme.rs"));
    let readme = include_str!("../../README.md");
    let blocks: Vec<&str> = readme
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        for line in lines(block) {
            assert!(compiled.contains(&line), "not compiled: {line}");
        }
    }
}
