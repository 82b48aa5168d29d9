//! reqwest's client under the stack, with reqwest's builders and responses above it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "support/frames.rs"]
mod frames;
#[path = "support/sas.rs"]
mod sas;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, StatusCode};
use reqwest::{Body, Client, Response};
use sas::account_sas;
use support::{Cloud, Count, account, pattern, settings};
use tower::ServiceBuilder;
use tower_geo::{
    Account, Circuit, CircuitPhase, ErrorKind, RegionRef, RequestOptions, Served, StorageService,
};
use tower_geo_clients::geo_error;
use tower_geo_clients::reqwest::{ExecuteError, GeoClient, ReqwestBodies, ReqwestService};
use tower_geo_testkit::Side;
use tower_geo_testkit::front::FrontState;
use tower_geo_testkit::store::{RegionState, TwoRegionStore};

fn plain() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0)
        .no_proxy()
}

async fn local() -> (TwoRegionStore, Account) {
    let store = TwoRegionStore::builder()
        .path_style("contoso")
        .start()
        .await
        .unwrap();
    store.seed("photos", "cat", "meow");
    let mut account = Account::endpoints();
    for service in [
        StorageService::Blob,
        StorageService::Queue,
        StorageService::Table,
    ] {
        account = account.endpoint_pair(
            service,
            store.endpoint(Side::Primary),
            store.endpoint(Side::Secondary),
        );
    }
    let account = settings(account).build().unwrap();
    (store, account)
}

fn cat(store: &TwoRegionStore) -> String {
    format!("{}/photos/cat", store.endpoint(Side::Primary))
}

fn kind_of<T>(result: Result<T, ExecuteError>) -> Option<ErrorKind> {
    let error = result.err()?;
    geo_error(&error).map(tower_geo::Error::kind)
}

/// G2
#[tokio::test]
async fn refused_write_sends_nothing() {
    let (store, account) = local().await;
    let http = plain().build().unwrap();
    let calls = Count::default();
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().body_policy(ReqwestBodies::default()))
        .service(ReqwestService::new(http.clone()));
    let geo = GeoClient::over(stack);
    account.blob().operator().read_only();
    let error = geo
        .execute(http.put(cat(&store)).body("woof").build().unwrap())
        .await
        .unwrap_err();
    assert!(geo_error(&error).unwrap().is_read_only());
    assert_eq!((calls.calls(), store.requests(Side::Primary)), (1, 0));
}

/// E3: also those who print the whole chain of sources print no signature, whatever went wrong.
#[tokio::test]
async fn no_error_in_the_chain_has_the_query() {
    let (store, account) = local().await;
    let geo = GeoClient::new(plain().build().unwrap(), &account.blob());
    for side in Side::BOTH {
        store.take_down(side).await.unwrap();
    }
    let insecure = plain().https_only(true).build().unwrap();
    let insecure = GeoClient::new(insecure, &account.blob());
    let url = format!("{}?sig=secret", cat(&store));
    for (geo, url) in [
        (&geo, url.as_str()),
        (&insecure, url.as_str()),
        (&geo, "http://127.0.0.1:9/elsewhere?sig=secret"),
        (&geo, "ftp://127.0.0.1/elsewhere?sig=secret"),
        (&geo, "data:,?sig=secret"),
    ] {
        let request = reqwest::Request::new(Method::GET, url.parse().unwrap());
        let error = geo.execute(request).await.unwrap_err();
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            let (shown, debug) = (error.to_string(), format!("{error:?}"));
            assert!(!shown.contains("secret"), "{url}: {shown}");
            assert!(!debug.contains("secret"), "{url}: {debug}");
            cause = error.source();
        }
    }
}

/// T6: a body that breaks off where it comes from is no failure of the region, and no send that surely
/// did nothing, whatever made it break off.
#[tokio::test]
async fn body_that_fails_by_itself_counts_against_no_region() {
    let (store, account) = local().await;
    let http = plain().build().unwrap();
    let geo = GeoClient::new(http.clone(), &account.blob());
    for cause in [
        std::io::ErrorKind::Other,
        std::io::ErrorKind::ConnectionRefused,
        std::io::ErrorKind::TimedOut,
    ] {
        for _ in 0..4 {
            // Later than the head, which is then on its way.
            let pieces = futures::stream::iter([Ok("wo"), Err(std::io::Error::from(cause))]);
            let pieces = pieces.then(async |piece| {
                tokio::time::sleep(Duration::from_millis(20)).await;
                piece
            });
            let put = http.put(cat(&store)).header("x-ms-blob-type", "BlockBlob");
            let put = put.body(Body::wrap_stream(pieces)).build().unwrap();
            let error = geo.execute(put).await.unwrap_err();
            let ours = geo_error(&error).unwrap();
            assert_eq!(ours.kind(), ErrorKind::UnknownOutcome, "{ours}");
            assert!(!ours.was_never_sent(), "{cause}: {ours}");
        }
    }
    for circuit in Circuit::BOTH {
        let state = account.blob().circuit(&RegionRef::Primary, circuit);
        let state = state.unwrap();
        assert_eq!((state.phase, state.streak), (CircuitPhase::Closed, 0));
    }
    assert_eq!(
        store.content(Side::Primary, "photos", "cat").unwrap(),
        "meow"
    );
}

/// R10: the response says where it came from.
#[tokio::test]
async fn response_has_the_url_and_the_region_that_served() {
    let (store, account) = local().await;
    let http = plain().build().unwrap();
    let geo = GeoClient::new(http.clone(), &account.blob());
    let get = || http.get(cat(&store)).build().unwrap();

    let response = geo.execute(get()).await.unwrap();
    assert_eq!(response.url().as_str(), cat(&store));
    assert!(Served::of(response.extensions()).is_none(), "E2");
    assert_eq!(response.text().await.unwrap(), "meow");

    store.take_down(Side::Primary).await.unwrap();
    let response = geo.execute(get()).await.unwrap();
    assert_eq!(
        response.url().as_str(),
        format!("{}/photos/cat", store.endpoint(Side::Secondary))
    );
    assert!(Served::of(response.extensions()).unwrap().is_from_copy());
    assert_eq!(response.content_length(), Some(4), "the size is kept");
    assert_eq!(response.text().await.unwrap(), "meow");
}

/// R10: options of one request go in as an extension.
#[tokio::test]
async fn request_is_pinned_by_an_extension() {
    let (store, account) = local().await;
    let http = plain().build().unwrap();
    let geo = GeoClient::new(http.clone(), &account.blob());
    let mut request: http::Request<Body> =
        http.get(cat(&store)).build().unwrap().try_into().unwrap();
    let pin = RegionRef::Named("secondary".into());
    request
        .extensions_mut()
        .insert(RequestOptions::new().pin(pin));
    let response: Response = geo.call(request).await.unwrap().map(Body::wrap).into();
    assert_eq!(response.status(), 200);
    assert_eq!(
        (
            store.requests(Side::Primary),
            store.requests(Side::Secondary)
        ),
        (0, 1)
    );
}

/// V1, T6: bytes are sent again; a stream is not, and the error says so.
#[tokio::test]
async fn bytes_are_sent_again_and_streams_are_not() {
    let (store, account) = local().await;
    let http = plain().build().unwrap();
    let geo = GeoClient::new(http.clone(), &account.blob());
    let put = |body: Body| {
        http.put(cat(&store))
            .header("x-ms-blob-type", "BlockBlob")
            .body(body)
            .build()
            .unwrap()
    };
    store
        .set(
            Side::Primary,
            RegionState::Status(StatusCode::SERVICE_UNAVAILABLE),
        )
        .await
        .unwrap();

    assert_eq!(geo.execute(put("woof".into())).await.unwrap().status(), 503);
    assert_eq!(store.requests_by(Side::Primary, &Method::PUT), 3);
    account
        .blob()
        .operator()
        .reset(&RegionRef::Named("primary".into()))
        .unwrap();
    store.clear_arrivals();
    let chunks = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from("woof"))]);
    let result = geo.execute(put(Body::wrap_stream(chunks))).await;
    assert_eq!(kind_of(result), Some(ErrorKind::NotReplayable));
    assert_eq!(store.requests_by(Side::Primary, &Method::PUT), 1);
    assert_eq!(store.writes_at_secondary(), 0);
}

/// T8: what happens if the client's own retries stay on, or are turned on: each send is several.
#[tokio::test]
async fn answers_are_repeated_by_the_client_unless_switched_off() {
    let (store, account) = local().await;
    store
        .set(
            Side::Primary,
            RegionState::Status(StatusCode::SERVICE_UNAVAILABLE),
        )
        .await
        .unwrap();
    store
        .set(
            Side::Secondary,
            RegionState::Status(StatusCode::SERVICE_UNAVAILABLE),
        )
        .await
        .unwrap();
    let policy = || {
        reqwest::retry::for_host("127.0.0.1")
            .no_budget()
            .max_retries_per_request(2)
            .classify_fn(|answer| {
                if answer.status() == Some(StatusCode::SERVICE_UNAVAILABLE) {
                    answer.retryable()
                } else {
                    answer.success()
                }
            })
    };
    for (client, expected) in [(plain(), 3), (plain().retry(policy()), 9)] {
        let http = client.build().unwrap();
        for region in ["primary", "secondary"] {
            account
                .blob()
                .operator()
                .reset(&RegionRef::Named(region.into()))
                .unwrap();
        }
        store.clear_arrivals();
        let geo = GeoClient::new(http.clone(), &account.blob());
        assert_eq!(
            geo.execute(http.get(cat(&store)).build().unwrap())
                .await
                .unwrap()
                .status(),
            503
        );
        assert_eq!(
            store.requests(Side::Primary) + store.requests(Side::Secondary),
            expected
        );
    }
}

/// Frames come one by one, as the transport gives them, and trailers after them; headers as they are.
#[tokio::test(start_paused = true)]
async fn answers_are_streamed_with_their_headers_and_trailers() {
    let (hand, transport) = frames::by_hand();
    let stack = ServiceBuilder::new()
        .layer(
            account()
                .blob()
                .layer()
                .body_policy(ReqwestBodies::default()),
        )
        .service(transport);
    let url = "https://contoso.blob.core.windows.net/photos/cat";
    let request = reqwest::Request::new(Method::GET, url.parse().unwrap());
    let response = GeoClient::over(stack).execute(request).await.unwrap();
    assert_eq!(
        frames::values(response.headers(), "x-ms-meta-of"),
        [b"one", b"two"]
    );
    assert_eq!(
        frames::values(response.headers(), "x-ms-meta-bytes"),
        [b"caf\xe9"]
    );
    let mut body = Body::from(response);
    assert_eq!(frames::now(&mut body), None);
    for data in ["me", "ow"] {
        hand.give(data);
        assert_eq!(frames::now(&mut body).unwrap(), data);
        assert_eq!(frames::now(&mut body), None);
    }
    hand.end();
    assert!(frames::now(&mut body).unwrap().contains("crc64"));
    assert_eq!(frames::now(&mut body).unwrap(), "the end");
}

/// A request that cannot be built is the program's fault, and no region's.
#[tokio::test]
async fn request_that_cannot_be_built_counts_against_no_region() {
    let (store, account) = local().await;
    let http = plain().https_only(true).build().unwrap();
    let geo = GeoClient::new(http.clone(), &account.blob());
    for _ in 0..12 {
        let request = http.get(cat(&store)).build().unwrap();
        let error = geo.execute(request).await.unwrap_err();
        let ours = geo_error(&error).unwrap();
        assert_eq!(ours.kind(), ErrorKind::Config, "{error}");
        assert!(ours.was_never_sent());
    }
    let http = plain().build().unwrap();
    let geo = GeoClient::new(http.clone(), &account.blob());
    let response = geo.execute(http.get(cat(&store)).build().unwrap()).await;
    assert!(
        Served::of(response.unwrap().extensions()).is_none(),
        "from the primary, at once"
    );
    assert_eq!(store.requests(Side::Secondary), 0);
}

/// The time-out of one request, set with reqwest's builder, holds for each send.
#[tokio::test]
async fn time_out_of_the_request_is_kept() {
    let (store, account) = local().await;
    store.set(Side::Primary, RegionState::Freeze).await.unwrap();
    let http = plain().build().unwrap();
    let geo = GeoClient::new(http.clone(), &account.blob());
    let request = http
        .get(cat(&store))
        .timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let started = tokio::time::Instant::now();
    assert_eq!(
        geo.execute(request).await.unwrap().text().await.unwrap(),
        "meow"
    );
    assert!(
        started.elapsed() < support::PATIENCE,
        "cut by reqwest, not by the stack"
    );
}

/// Production host names, TLS, a SAS; streams both ways.
#[tokio::test]
async fn outage_end_to_end() {
    let cloud = Cloud::start(StorageService::Blob).await;
    let http = plain()
        .tls_backend_preconfigured(cloud.ca.client_config().unwrap())
        .resolve(&cloud.host(), cloud.primary.addr())
        .resolve(&cloud.secondary_host(), cloud.secondary.addr())
        .build()
        .unwrap();
    let account = account();
    let geo = GeoClient::new(http.clone(), &account.blob());
    let url = |path: &str, query: &str| format!("{}/{path}?{query}{}", cloud.url(), account_sas());
    let put = |path: &str, query: &str, body: Body| {
        let request = http
            .put(url(path, query))
            .header("x-ms-blob-type", "BlockBlob");
        request.body(body).build().unwrap()
    };
    let get = |path: &str, query: &str| http.get(url(path, query)).build().unwrap();
    let created = async |request| assert_eq!(geo.execute(request).await.unwrap().status(), 201);
    created(put("photos", "restype=container&", "".into())).await;
    created(put("photos/my%20cat", "", "meow".into())).await;

    // A stream up, of a size that the user tells.
    let (content, sent) = (pattern(3 << 20), Arc::new(AtomicBool::new(false)));
    let (chunks, done) = (content.clone(), sent.clone());
    let stream = futures::stream::iter(0..3).map(move |at| {
        done.store(at == 2, Ordering::Relaxed);
        Ok::<_, std::io::Error>(chunks.slice(at << 20..(at + 1) << 20))
    });
    let mut request = put("photos/big", "", Body::wrap_stream(stream));
    request
        .headers_mut()
        .insert("content-length", (3 << 20).into());
    created(request).await;
    assert!(sent.load(Ordering::Relaxed));

    for outage in [FrontState::Reset, FrontState::Freeze] {
        cloud.primary_is(outage).await;
        let response = geo.execute(get("photos/my%20cat", "")).await.unwrap();
        assert_eq!(response.text().await.unwrap(), "meow", "{outage:?}");
        let mut range = get("photos/my%20cat", "");
        range
            .headers_mut()
            .insert("range", "bytes=1-2".parse().unwrap());
        let response = geo.execute(range).await.unwrap();
        assert_eq!(
            (
                response.status().as_u16(),
                response.text().await.unwrap().as_str()
            ),
            (206, "eo")
        );
        let head = http.head(url("photos/big", "")).build().unwrap();
        assert_eq!(
            geo.execute(head).await.unwrap().headers()["content-length"],
            "3145728"
        );
        let (arrived, started) = (cloud.arrived(), tokio::time::Instant::now());
        let result = geo.execute(put("photos/my%20cat", "", "woof".into())).await;
        assert_eq!(kind_of(result), Some(ErrorKind::ReadOnly), "{outage:?}");
        assert_eq!(cloud.arrived(), arrived, "nothing was sent");
        assert!(started.elapsed() < support::PATIENCE / 2);
        let list = geo
            .execute(get("photos", "restype=container&comp=list&"))
            .await
            .unwrap();
        assert!(list.text().await.unwrap().contains("my cat"));
        // A stream down.
        let mut chunks = geo
            .execute(get("photos/big", ""))
            .await
            .unwrap()
            .bytes_stream();
        let mut got = Vec::new();
        while let Some(chunk) = chunks.next().await {
            got.extend_from_slice(&chunk.unwrap());
        }
        assert!(got == content, "all bytes, in order");

        cloud.primary_is(FrontState::Forward).await;
        let back = async {
            while geo
                .execute(put("photos/my%20cat", "", "meow".into()))
                .await
                .is_err()
                || account.blob().gate().status != tower_geo::GateStatus::ReadWrite
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), back)
            .await
            .unwrap();
    }
    assert_eq!(cloud.secondary.refused(), 0, "R1");
}
