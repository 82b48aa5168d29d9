//! OpenDAL above the stack: over scripted transports, and end to end with Shared Key.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../crates/tower-geo-clients/tests/support/mod.rs"]
mod support;

use std::time::Duration;

use opendal::layers::RetryLayer;
use opendal::services::Azblob;
use opendal::{Buffer, HttpTransport, HttpTransporter, Operator};
use support::{Cloud, Count, KEY, PATIENCE, account, pattern};
use tower::ServiceBuilder;
use tower_geo::{Account, GateStatus, StorageService};
use tower_geo_clients::geo_error;
use tower_geo_testkit::front::FrontState;
use tower_geo_testkit::strict::{Reply, Script};
use under_opendal::{BufferBody, GeoTransport};

const PRIMARY: &str = "contoso.blob.core.windows.net";
const SECONDARY: &str = "contoso-secondary.blob.core.windows.net";

fn photos(transport: impl HttpTransport) -> Operator {
    let azblob = Azblob::default()
        .endpoint(&format!("https://{PRIMARY}"))
        .account_name(support::ACCOUNT)
        .account_key(KEY)
        .container("photos");
    let operator = Operator::new(azblob).unwrap();
    let context = operator
        .base_context()
        .with_http_transport(HttpTransporter::new(transport));
    operator.with_context(context)
}

/// OpenDAL's own retries, as eager as they come.
fn eager() -> RetryLayer {
    RetryLayer::new()
        .with_max_times(3)
        .with_min_delay(Duration::from_millis(1))
}

/// The stack over a script, and how often OpenDAL called it.
fn scripted(account: &Account, script: &Script) -> (Operator, Count) {
    let calls = Count::default();
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().clone_bodies())
        .service(script.service());
    (photos(GeoTransport::new(stack)), calls)
}

fn both(reply: impl Fn() -> Reply) -> Script {
    Script::new()
        .any_method(PRIMARY, [reply()])
        .any_method(SECONDARY, [reply()])
}

/// G2, T8: one call, nothing sent, whatever OpenDAL's own retries are set to.
#[tokio::test(start_paused = true)]
async fn refused_write_is_one_call_and_our_error_is_in_the_chain() {
    let (account, script) = (account(), both(|| Reply::status(201)));
    account.blob().operator().read_only();
    let (photos, calls) = scripted(&account, &script);
    let error = photos
        .layer(eager())
        .write("cat", "meow")
        .await
        .unwrap_err();
    assert!(geo_error(&error).unwrap().is_read_only(), "{error}");
    assert!(!error.is_temporary());
    assert_eq!((calls.calls(), script.sends().len()), (1, 0));
}

/// T8: what the stack has given up is not repeated above it; answers are, by a `RetryLayer`.
#[tokio::test(start_paused = true)]
async fn only_answers_are_repeated_by_a_retry_layer() {
    for (reply, retry, expected) in [
        (Reply::reset(), true, 1),
        (Reply::status(503), false, 1),
        (Reply::status(503), true, 4),
    ] {
        let account = Account::azure_storage("contoso")
            .breaker(None)
            .build()
            .unwrap();
        let script = both(|| reply.clone());
        let (photos, calls) = scripted(&account, &script);
        let photos = if retry { photos.layer(eager()) } else { photos };
        photos.stat("cat").await.unwrap_err();
        assert_eq!(calls.calls(), expected, "{retry}");
    }
}

/// V1, T8: a write is sent again whole, by the stack.
#[tokio::test(start_paused = true)]
async fn put_is_sent_again_with_its_whole_body() {
    let created = Reply::status(201).header("etag", "\"1\"");
    let script = Script::new().any_method(PRIMARY, [Reply::status(503), Reply::reset(), created]);
    let (photos, calls) = scripted(&account(), &script);
    let pieces: Buffer = ["one", "two", "three"]
        .map(bytes::Bytes::from)
        .into_iter()
        .collect();
    photos.write("cat", pieces).await.unwrap();
    let sends = script.sends();
    assert_eq!((calls.calls(), sends.len()), (1, 3));
    for send in sends {
        assert_eq!(send.body.as_deref(), Some(&b"onetwothree"[..]));
        assert_eq!(send.headers["content-length"], "11");
    }
}

async fn create_container(cloud: &Cloud) {
    use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
    use tower_layer::Layer;

    let layer = SharedKeyLayer::new(support::ACCOUNT, KEY, SharedKeyService::Blob).unwrap();
    let request = http::Request::put(format!("{}/photos?restype=container", cloud.url()))
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let answer = tower::ServiceExt::oneshot(layer.layer(cloud.hyper()), request);
    assert_eq!(answer.await.unwrap().status(), 201);
}

/// R1, R3, G1, B4: production host names, TLS, Shared Key; blocks, ranges and lists.
#[tokio::test]
async fn outage_end_to_end() {
    let cloud = Cloud::start(StorageService::Blob).await;
    create_container(&cloud).await;
    let (account, calls) = (account(), Count::default());
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().clone_bodies())
        .service(cloud.hyper::<BufferBody>());
    let photos = photos(GeoTransport::new(stack));
    let cat = "my cat+dog 100%";
    photos.write(cat, "meow").await.unwrap();
    // Uploaded in blocks.
    let content = pattern(5 << 20);
    let blocks = photos.write_with("big", content.clone()).chunk(1 << 20);
    blocks.await.unwrap();
    assert_eq!(cloud.arrived().1, 0, "R1: writes go to the primary");

    for outage in [FrontState::Reset, FrontState::Freeze] {
        cloud.primary_is(outage).await;
        let got = photos.read(cat).await.unwrap();
        assert_eq!(got.to_vec(), b"meow", "{outage:?}");
        let got = photos.read_with(cat).range(1..3).await.unwrap();
        assert_eq!(got.to_vec(), b"eo");
        let size = photos.stat("big").await.unwrap().content_length();
        assert_eq!(size, 5 << 20);
        // By now the circuit is open, and writes are refused at once.
        calls.take();
        let started = tokio::time::Instant::now();
        let error = photos.write(cat, "woof").await.unwrap_err();
        assert!(
            geo_error(&error).is_some_and(tower_geo::Error::is_read_only),
            "{outage:?}: {error}"
        );
        assert_eq!(calls.take(), 1);
        assert!(started.elapsed() < PATIENCE / 2);
        assert_eq!(photos.list("").await.unwrap().len(), 2);
        // Downloaded in parts.
        let parts = photos.read_with("big").chunk(1 << 20).concurrent(3);
        assert!(
            parts.await.unwrap().to_bytes() == content,
            "all parts, in order"
        );

        cloud.primary_is(FrontState::Forward).await;
        let back = async {
            while photos.write(cat, "meow").await.is_err()
                || account.blob().gate().status != GateStatus::ReadWrite
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let back = tokio::time::timeout(Duration::from_secs(20), back);
        back.await.unwrap();
    }
    assert_eq!(cloud.secondary.refused(), 0, "R1");
}
