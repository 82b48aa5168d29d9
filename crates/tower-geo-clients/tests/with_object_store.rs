//! `object_store` above the stack: over scripted transports, and end to end with Shared Key.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "support/frames.rs"]
mod frames;
mod support;

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::{
    HttpConnector, HttpError, HttpErrorKind, HttpRequest, ReqwestConnector,
};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
    WriteMultipart,
};
use support::{Cloud, Count, KEY, PATIENCE, account, pattern, settings};
use tower::ServiceBuilder;
use tower_geo::{Account, StorageService};
use tower_geo_clients::object_store::{LayeredConnector, ServiceConnector};
use tower_geo_clients::{geo_error, is_final};
use tower_geo_testkit::front::FrontState;
use tower_geo_testkit::strict::{Reply, Script};

const PRIMARY: &str = "contoso.blob.core.windows.net";
const SECONDARY: &str = "contoso-secondary.blob.core.windows.net";

fn retries(max_retries: usize) -> RetryConfig {
    RetryConfig {
        max_retries,
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(10),
            max_backoff: Duration::from_millis(20),
            base: 2.0,
        },
        ..RetryConfig::default()
    }
}

fn store(connector: impl HttpConnector, retry: RetryConfig) -> MicrosoftAzure {
    MicrosoftAzureBuilder::new()
        .with_account(support::ACCOUNT)
        .with_access_key(KEY)
        .with_container_name("photos")
        .with_http_connector(connector)
        .with_retry(retry)
        .build()
        .unwrap()
}

/// The stack over a script, and how often `object_store` called it.
fn scripted(account: &Account, script: &Script, retry: RetryConfig) -> (MicrosoftAzure, Count) {
    let calls = Count::default();
    let layers = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().clone_bodies());
    let inner = ServiceConnector::new(script.service());
    (store(LayeredConnector::new(inner, layers), retry), calls)
}

fn both(reply: impl Fn() -> Reply) -> Script {
    Script::new()
        .any_method(PRIMARY, [reply()])
        .any_method(SECONDARY, [reply()])
}

fn kind_of(error: &object_store::Error) -> Option<HttpErrorKind> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

/// G2, T8: one call, nothing sent, whatever the client's own retries are set to.
#[tokio::test(start_paused = true)]
async fn refused_write_is_one_call_and_our_error_is_in_the_chain() {
    let (account, script) = (account(), both(|| Reply::status(201)));
    account.blob().operator().read_only();
    let (store, calls) = scripted(&account, &script, RetryConfig::default());
    let error = store
        .put(&Path::from("cat"), "meow".into())
        .await
        .unwrap_err();
    assert!(geo_error(&error).unwrap().is_read_only(), "{error}");
    assert!(is_final(&error));
    assert_eq!(kind_of(&error), Some(HttpErrorKind::Unknown));
    assert_eq!((calls.calls(), script.sends().len()), (1, 0));
}

/// R7, T8
#[tokio::test(start_paused = true)]
async fn read_that_no_region_admits_is_one_call() {
    let (account, script) = (account(), both(|| Reply::ok("")));
    for region in ["primary", "secondary"] {
        let region = tower_geo::RegionRef::Named(region.into());
        account.blob().operator().force_open(&region).unwrap();
    }
    let (store, calls) = scripted(&account, &script, RetryConfig::default());
    let error = store.get(&Path::from("cat")).await.unwrap_err();
    assert!(geo_error(&error).unwrap().is_circuit_open(), "{error}");
    assert_eq!((calls.calls(), script.sends().len()), (1, 0));
}

/// T8: what the stack has given up is not repeated above it.
#[tokio::test(start_paused = true)]
async fn operation_that_the_stack_gave_up_is_one_call() {
    for reply in [Reply::reset(), Reply::refused()] {
        let (account, script) = (account(), both(|| reply.clone()));
        let (store, calls) = scripted(&account, &script, RetryConfig::default());
        let error = store.get(&Path::from("cat")).await.unwrap_err();
        assert!(geo_error(&error).is_some(), "{error}");
        assert_eq!((calls.take(), script.sends().len()), (1, 3));
        store
            .put(&Path::from("cat"), "meow".into())
            .await
            .unwrap_err();
        assert_eq!(calls.take(), 1);
    }
}

/// T8: what happens if the client's own retries stay on: answers multiply, errors do not.
#[tokio::test(start_paused = true)]
async fn answers_are_repeated_by_the_client_unless_switched_off() {
    for (retry, expected) in [
        (retries(0), 1),
        (retries(2), 3),
        (RetryConfig::default(), 11),
    ] {
        let account = Account::azure_storage("contoso")
            .breaker(None)
            .build()
            .unwrap();
        let script = both(|| Reply::status(503));
        let (store, calls) = scripted(&account, &script, retry);
        store.get(&Path::from("cat")).await.unwrap_err();
        assert_eq!(calls.calls(), expected);
        let sends = script.sends().len();
        assert!(
            sends > expected && sends <= expected * 6,
            "{sends} sends of {expected} calls"
        );
    }
}

/// V1: bodies are cheap to clone, so a put is sent again, whole.
#[tokio::test(start_paused = true)]
async fn put_is_sent_again_with_its_whole_body() {
    let script = Script::new().any_method(
        PRIMARY,
        [
            Reply::status(503),
            Reply::reset(),
            Reply::status(201).header("etag", "\"1\""),
        ],
    );
    let (store, calls) = scripted(&account(), &script, retries(0));
    let payload: PutPayload = ["one", "two", "three"]
        .into_iter()
        .map(bytes::Bytes::from)
        .collect();
    store.put(&Path::from("cat"), payload).await.unwrap();
    let sends = script.sends();
    assert_eq!((calls.calls(), sends.len()), (1, 3));
    for send in sends {
        assert_eq!(send.body.as_deref(), Some(&b"onetwothree"[..]));
        assert_eq!(send.headers["content-length"], "11");
    }
}

/// I8: the same client fetches tokens; they are not the stack's business.
#[tokio::test(start_paused = true)]
async fn requests_for_tokens_pass_untouched() {
    let script = both(|| {
        Reply::ok("meow")
            .header("content-length", "4")
            .header("etag", "\"1\"")
            .header("last-modified", "Tue, 01 Jul 2025 00:00:00 GMT")
    })
    .any_method(
        "login.example.test",
        [Reply::ok(r#"{"access_token":"abc","expires_in":3600}"#)],
    );
    let calls = Count::default();
    let account = account();
    account.blob().operator().read_only();
    let layers = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().clone_bodies());
    let store = MicrosoftAzureBuilder::new()
        .with_account("contoso")
        .with_container_name("photos")
        .with_client_secret_authorization("client", "secret", "tenant")
        .with_config(
            object_store::azure::AzureConfigKey::AuthorityHost,
            "https://login.example.test",
        )
        .with_http_connector(LayeredConnector::new(
            ServiceConnector::new(script.service()),
            layers,
        ))
        .with_retry(retries(0))
        .build()
        .unwrap();
    let got = store
        .get(&Path::from("cat"))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(got, "meow");
    assert_eq!(script.hosts(), ["login.example.test", PRIMARY]);
    assert_eq!(script.sends()[1].headers["authorization"], "Bearer abc");
}

/// R9: a body that breaks off is resumed by the client, through the stack.
#[tokio::test(start_paused = true)]
async fn body_that_breaks_off_is_resumed_where_it_broke() {
    let whole = |body: Reply| {
        body.header("etag", "\"1\"")
            .header("last-modified", "Tue, 01 Jul 2025 00:00:00 GMT")
    };
    let script = Script::new().any_method(
        PRIMARY,
        [
            whole(
                Reply::ok("0123456789")
                    .header("content-length", "10")
                    .cut_body_after(4),
            ),
            whole(
                Reply::status(206)
                    .body("456789")
                    .header("content-range", "bytes 4-9/10")
                    .header("content-length", "6"),
            ),
        ],
    );
    let (store, calls) = scripted(&account(), &script, retries(1));
    let got = store
        .get(&Path::from("cat"))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(got, "0123456789");
    assert_eq!(calls.calls(), 2);
    assert_eq!(script.sends()[1].headers["range"], "bytes=4-9");
}

/// The bytes of the user are those that the transport gets, and the other way round.
#[tokio::test(start_paused = true)]
async fn bodies_are_moved_and_never_copied() {
    use http_body_util::BodyExt;
    use std::sync::Mutex;

    let (up, down) = (pattern(1000), pattern(2000));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (answer, noted) = (down.clone(), seen.clone());
    let transport = tower::service_fn(move |request: HttpRequest| {
        let (answer, noted) = (answer.clone(), noted.clone());
        async move {
            let exact = http_body::Body::size_hint(request.body()).exact();
            let frame = request
                .into_body()
                .frame()
                .await
                .unwrap()?
                .into_data()
                .unwrap();
            noted.lock().unwrap().push((exact, frame.as_ptr() as usize));
            Ok::<_, HttpError>(
                http::Response::builder()
                    .header("etag", "\"1\"")
                    .body(http_body_util::Full::new(answer))
                    .unwrap(),
            )
        }
    });
    let stack = ServiceBuilder::new()
        .layer(account().blob().layer().clone_bodies())
        .service(transport);
    let client = ServiceConnector::new(stack)
        .connect(&ClientOptions::new())
        .unwrap();
    let request = http::Request::put(format!("https://{PRIMARY}/photos/cat"))
        .body(up.clone().into())
        .unwrap();
    let response = client.execute(request).await.unwrap();
    assert_eq!(
        http_body::Body::size_hint(response.body()).exact(),
        Some(2000),
        "the size is kept"
    );
    let frame = response
        .into_body()
        .frame()
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap();
    assert_eq!(frame.as_ptr(), down.as_ptr());
    assert_eq!(*seen.lock().unwrap(), [(Some(1000), up.as_ptr() as usize)]);
}

/// Frames come one by one, as the transport gives them, and trailers after them; headers as they are.
#[tokio::test(start_paused = true)]
async fn answers_are_streamed_with_their_headers_and_trailers() {
    let (hand, transport) = frames::by_hand();
    let stack = ServiceBuilder::new()
        .layer(account().blob().layer().clone_bodies())
        .service(transport);
    let inner = ServiceConnector::new(stack);
    // Both ways: a layered connector over one that is a service.
    let connector = LayeredConnector::new(inner, tower_layer::Identity::new());
    let client = connector.connect(&ClientOptions::new()).unwrap();
    let request = http::Request::get(format!("https://{PRIMARY}/photos/cat"));
    let request = request.body(Vec::new().into()).unwrap();
    let (head, mut body) = client.execute(request).await.unwrap().into_parts();
    assert_eq!(
        frames::values(&head.headers, "x-ms-meta-of"),
        [b"one", b"two"]
    );
    assert_eq!(
        frames::values(&head.headers, "x-ms-meta-bytes"),
        [b"caf\xe9"]
    );
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

/// A request that cannot be built is the program's fault, and no region's: here `http`, which has
/// to be allowed.
#[tokio::test]
async fn request_that_cannot_be_built_counts_against_no_region() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let service = tower_geo::GeoService::azure_storage("http://127.0.0.1:9/contoso")
        .storage_service(StorageService::Blob)
        .secondary("http://127.0.0.1:9/contoso-secondary")
        .location_mode(tower_geo::LocationMode::PrimaryThenSecondary)
        .build()
        .unwrap();
    let layers = service.layer().clone_bodies();
    let store = MicrosoftAzureBuilder::new()
        .with_account(support::ACCOUNT)
        .with_access_key(KEY)
        .with_container_name("photos")
        .with_endpoint("http://127.0.0.1:9/contoso".into())
        .with_http_connector(LayeredConnector::new(ReqwestConnector::default(), layers))
        .build()
        .unwrap();
    for _ in 0..12 {
        let error = store.head(&Path::from("cat")).await.unwrap_err();
        let ours = geo_error(&error).unwrap();
        assert_eq!(ours.kind(), tower_geo::ErrorKind::Config, "{error}");
        assert!(ours.was_never_sent());
    }
    assert_eq!(service.gate().status, tower_geo::GateStatus::ReadWrite);
}

async fn end_to_end(cloud: &Cloud, store: MicrosoftAzure, calls: &Count, account: &Account) {
    let (cat, big) = (Path::from("my cat+dog 100%"), Path::from("big"));
    store.put(&cat, "meow".into()).await.unwrap();
    // Uploaded in parts.
    let content = pattern(12 << 20);
    let mut upload =
        WriteMultipart::new_with_chunk_size(store.put_multipart(&big).await.unwrap(), 5 << 20);
    upload.write(&content);
    upload.finish().await.unwrap();
    assert_eq!(cloud.arrived().1, 0, "R1: writes go to the primary");

    for outage in [FrontState::Reset, FrontState::Freeze, FrontState::Refuse] {
        cloud.primary_is(outage).await;
        // R3: reads go to the secondary.
        assert_eq!(
            store.get(&cat).await.unwrap().bytes().await.unwrap(),
            "meow",
            "{outage:?}"
        );
        assert_eq!(store.get_range(&cat, 1..3).await.unwrap(), "eo");
        // Parts that are far apart are downloaded one by one.
        let parts = store.get_ranges(&big, &[0..9, (11 << 20)..(12 << 20)]);
        let parts = parts.await.unwrap();
        assert!(parts[0] == content[..9] && parts[1] == content[11 << 20..]);
        assert_eq!(store.head(&big).await.unwrap().size, 12 << 20);
        // G1: by now the circuit is open, and writes are refused at once.
        calls.take();
        let arrived = cloud.arrived();
        let started = tokio::time::Instant::now();
        let error = store.put(&cat, "woof".into()).await.unwrap_err();
        assert!(
            geo_error(&error).is_some_and(tower_geo::Error::is_read_only),
            "{outage:?}: {error}"
        );
        assert_eq!(calls.take(), 1);
        assert_eq!(cloud.arrived(), arrived, "nothing was sent");
        assert!(started.elapsed() < PATIENCE / 2);
        let list: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!(list.len(), 2);
        let got = store.get(&big).await.unwrap().bytes().await.unwrap();
        assert!(got == content, "all bytes, in order");

        // B4: once it is back, an operation that may try it does.
        cloud.primary_is(FrontState::Forward).await;
        recover(account, async || {
            store.put(&cat, "meow".into()).await.is_ok()
        })
        .await;
        store.get(&cat).await.unwrap();
    }
    assert_eq!(cloud.secondary.refused(), 0, "R1");
}

/// Tries until a write is taken and the circuit is closed.
async fn recover(account: &Account, write: impl AsyncFn() -> bool) {
    let back = async {
        while !write().await || account.blob().gate().status != tower_geo::GateStatus::ReadWrite {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), back)
        .await
        .unwrap();
}

fn create_container(cloud: &Cloud) -> impl Future<Output = ()> {
    use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
    use tower_layer::Layer;
    let layer = SharedKeyLayer::new(support::ACCOUNT, KEY, SharedKeyService::Blob).unwrap();
    let client = layer.layer(cloud.hyper());
    let request = http::Request::put(format!("{}/photos?restype=container", cloud.url()))
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    async move {
        let answer = tower::ServiceExt::oneshot(client, request).await.unwrap();
        assert_eq!(answer.status(), 201);
    }
}

/// Production host names, TLS, Shared Key, hyper as the transport.
#[tokio::test]
async fn outage_over_a_tower_service() {
    let cloud = Cloud::start(StorageService::Blob).await;
    create_container(&cloud).await;
    let (account, calls) = (account(), Count::default());
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().clone_bodies())
        .service(cloud.hyper());
    let store = store(ServiceConnector::new(stack), retries(1));
    end_to_end(&cloud, store, &calls, &account).await;
}

/// The layered connector over reqwest's, with the user's `ClientOptions`; path-style endpoints.
#[tokio::test]
async fn outage_over_the_connector_of_reqwest_with_the_users_options() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cloud = Cloud::start(StorageService::Blob).await;
    create_container(&cloud).await;
    let plain = |refuses| {
        let front = tower_geo_testkit::front::Front::builder(cloud.azurite.blob_addr());
        front.refuse_writes(refuses).start().unwrap()
    };
    use tower_geo_testkit::front::Refuses;
    let (primary, secondary) = (plain(Refuses::Nothing), plain(Refuses::Writes));
    let endpoint =
        |front: &tower_geo_testkit::front::Front, name| format!("http://{}/{name}", front.addr());
    let mut account = Account::endpoints();
    for service in [
        StorageService::Blob,
        StorageService::Queue,
        StorageService::Table,
    ] {
        account = account.endpoint_pair(
            service,
            endpoint(&primary, "contoso"),
            endpoint(&secondary, "contoso-secondary"),
        );
    }
    // Only the client's own time-out ends a send to a frozen region.
    let account = settings(account)
        .retry(support::retry().attempt_timeout(None))
        .build()
        .unwrap();
    let calls = Count::default();
    let layers = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().clone_bodies());
    let store = MicrosoftAzureBuilder::new()
        .with_account(support::ACCOUNT)
        .with_access_key(KEY)
        .with_container_name("photos")
        .with_endpoint(endpoint(&primary, "contoso"))
        .with_client_options(
            ClientOptions::new()
                .with_allow_http(true)
                .with_timeout(PATIENCE),
        )
        .with_http_connector(LayeredConnector::new(ReqwestConnector::default(), layers))
        .with_retry(retries(1))
        .build()
        .unwrap();
    let cloud = Cloud {
        primary,
        secondary,
        ..cloud
    };
    end_to_end(&cloud, store, &calls, &account).await;
}
