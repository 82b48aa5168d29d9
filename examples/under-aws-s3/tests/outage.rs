//! The AWS SDK above the stack: over scripted transports, and end to end against a server that checks
//! signatures.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../crates/tower-geo-clients/tests/support/mod.rs"]
mod support;

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{Config, Credentials, Region, SharedHttpClient};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::put_object::{PutObjectError, PutObjectOutput};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use support::{Count, PATIENCE, pattern, retry};
use tower::ServiceBuilder;
use tower_geo::{
    BreakerSettings, CircuitBreakerLayer, GateStatus, GeoService, LocationMode, ReadOnlyGateLayer,
    RegionRef, RetryLayer,
};
use tower_geo_clients::geo_error;
use tower_geo_testkit::client::{ClientBuilder, TestClient};
use tower_geo_testkit::front::{Front, FrontState};
use tower_geo_testkit::strict::{Reply, Script};
use under_aws_s3::server::{ACCESS_KEY, SECRET_KEY, Server};
use under_aws_s3::{SdkBodies, SdkBody, over};

const HOST: &str = "s3.eu-central-1.amazonaws.com";
const BUCKET: &str = "photos";

fn client(http: SharedHttpClient, retry: RetryConfig, endpoint: &str) -> Client {
    let config = Config::builder()
        .http_client(http)
        .retry_config(retry.with_initial_backoff(Duration::from_millis(1)))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test"));
    Client::from_conf(config.build())
}

fn service(breaker: Option<BreakerSettings>, endpoint: &str) -> GeoService {
    GeoService::static_copies("photos")
        .region("frankfurt", endpoint)
        .retry(retry())
        .breaker(breaker)
        .build()
        .unwrap()
}

fn breaker() -> BreakerSettings {
    let wait = Duration::from_secs(2);
    BreakerSettings::new()
        .streak(2)
        .rate(None)
        .open_for(wait)
        .max_open_for(wait)
}

/// The layers over a script, and how often the SDK called them.
fn scripted(service: &GeoService, script: &Script, retry: RetryConfig) -> (Client, Count) {
    let calls = Count::default();
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(ReadOnlyGateLayer::new(service.clone()))
        .layer(RetryLayer::new(service.clone()).body_policy(SdkBodies::default()))
        .layer(CircuitBreakerLayer::new(service.clone()))
        .service(script.service());
    (
        client(over(stack), retry, &format!("https://{HOST}")),
        calls,
    )
}

async fn put(
    client: &Client,
    body: impl Into<Bytes>,
) -> Result<PutObjectOutput, SdkError<PutObjectError, HttpResponse>> {
    let put = client.put_object().bucket(BUCKET).key("my cat");
    put.body(ByteStream::from(body.into())).send().await
}

async fn get(client: &Client, key: &str, range: Option<&str>) -> Bytes {
    let get = client.get_object().bucket(BUCKET).key(key);
    let got = get.set_range(range.map(str::to_owned)).send().await;
    got.unwrap().body.collect().await.unwrap().into_bytes()
}

/// G2, T8: one call, nothing sent, although the SDK's retry is on.
#[tokio::test(start_paused = true)]
async fn refused_write_is_one_call_and_our_error_is_in_the_chain() {
    let photos = service(Some(breaker()), &format!("https://{HOST}"));
    let script = Script::new().any_method(HOST, [Reply::status(200)]);
    photos.operator().read_only();
    let (client, calls) = scripted(&photos, &script, RetryConfig::standard());
    let error = put(&client, "meow").await.unwrap_err();
    assert!(geo_error(&error).unwrap().is_read_only(), "{error}");
    assert_eq!((calls.calls(), script.sends().len()), (1, 0));
}

/// R7, T8
#[tokio::test(start_paused = true)]
async fn read_that_the_region_does_not_admit_is_one_call() {
    let photos = service(Some(breaker()), &format!("https://{HOST}"));
    let script = Script::new().any_method(HOST, [Reply::ok("meow")]);
    let region = RegionRef::Named("frankfurt".into());
    photos.operator().force_open(&region).unwrap();
    let (client, calls) = scripted(&photos, &script, RetryConfig::standard());
    let error = client.get_object().bucket(BUCKET).key("cat").send().await;
    let error = error.unwrap_err();
    assert!(geo_error(&error).unwrap().is_circuit_open(), "{error}");
    assert_eq!((calls.calls(), script.sends().len()), (1, 0));
}

/// T8: what happens if the SDK's own retry stays on: answers multiply, errors do not.
#[tokio::test(start_paused = true)]
async fn only_answers_are_tried_again_by_the_sdk_unless_switched_off() {
    for (reply, retry, expected) in [
        (Reply::reset(), RetryConfig::standard(), 1),
        (Reply::refused(), RetryConfig::standard(), 1),
        (Reply::status(503), RetryConfig::disabled(), 1),
        (Reply::status(503), RetryConfig::standard(), 3),
    ] {
        let photos = service(None, &format!("https://{HOST}"));
        let script = Script::new().any_method(HOST, [reply]);
        let (client, calls) = scripted(&photos, &script, retry);
        client
            .head_object()
            .bucket(BUCKET)
            .key("cat")
            .send()
            .await
            .unwrap_err();
        assert_eq!(calls.calls(), expected);
        assert_eq!(
            script.sends().len(),
            expected * 3,
            "each is sent by the stack"
        );
    }
}

/// V1: bytes are kept, so a put is sent again, whole.
#[tokio::test(start_paused = true)]
async fn put_is_sent_again_with_its_whole_body() {
    let photos = service(Some(breaker().streak(5)), &format!("https://{HOST}"));
    let created = Reply::status(200).header("etag", "\"1\"");
    let script = Script::new().any_method(HOST, [Reply::status(503), Reply::reset(), created]);
    let (client, calls) = scripted(&photos, &script, RetryConfig::disabled());
    put(&client, "meow").await.unwrap();
    let sends = script.sends();
    assert_eq!((calls.calls(), sends.len()), (1, 3));
    for send in &sends {
        let body = send.body.as_deref().unwrap();
        assert_eq!(body, sends[0].body.as_deref().unwrap(), "whole each time");
        assert!(String::from_utf8_lossy(body).contains("meow"));
    }
}

fn hyper() -> TestClient<SdkBody> {
    ClientBuilder::new().build().unwrap()
}

/// A region that can be lost, and its endpoint.
fn region(server: &Server) -> (Front, String) {
    let front = Front::builder(server.addr()).start().unwrap();
    let endpoint = format!("http://{}", front.addr());
    (front, endpoint)
}

/// R1, G1, B4: put, get, range, list, parts; loss and return of the region.
#[tokio::test]
async fn outage_end_to_end() {
    let server = Server::start().await.unwrap();
    let (region, endpoint) = region(&server);
    let photos = service(Some(breaker()), &endpoint);
    let calls = Count::default();
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(ReadOnlyGateLayer::new(photos.clone()))
        .layer(RetryLayer::new(photos.clone()).body_policy(SdkBodies::default()))
        .layer(CircuitBreakerLayer::new(photos.clone()))
        .service(hyper());
    let client = client(over(stack), RetryConfig::standard(), &endpoint);
    client.create_bucket().bucket(BUCKET).send().await.unwrap();
    put(&client, "meow").await.unwrap();
    let content = pattern(11 << 20);
    upload_in_parts(&client, &content).await;

    for outage in [FrontState::Reset, FrontState::Freeze] {
        assert_eq!(get(&client, "my cat", None).await, "meow");
        assert_eq!(get(&client, "my cat", Some("bytes=1-2")).await, "eo");
        assert!(
            get(&client, "big", None).await == content,
            "all bytes, in order"
        );
        let list = client
            .list_objects_v2()
            .bucket(BUCKET)
            .send()
            .await
            .unwrap();
        assert_eq!(list.key_count(), Some(2));

        region.set(outage).await.unwrap();
        // Noticed by reads, which have nowhere else to go.
        for _ in 0..2 {
            let head = client.head_object().bucket(BUCKET).key("big").send().await;
            assert!(geo_error(&head.unwrap_err()).is_some(), "{outage:?}");
        }
        calls.take();
        let (started, before) = (tokio::time::Instant::now(), region.connections());
        let error = put(&client, "woof").await.unwrap_err();
        assert!(
            geo_error(&error).is_some_and(tower_geo::Error::is_read_only),
            "{outage:?}: {error:?}"
        );
        assert_eq!(calls.take(), 1);
        assert_eq!(region.connections(), before, "nothing was sent");
        assert!(started.elapsed() < PATIENCE / 2);
        let read = client
            .get_object()
            .bucket(BUCKET)
            .key("big")
            .send()
            .await
            .unwrap_err();
        assert!(
            geo_error(&read).is_some_and(tower_geo::Error::is_circuit_open),
            "{read:?}"
        );
        assert_eq!(calls.take(), 1);

        region.set(FrontState::Forward).await.unwrap();
        let back = async {
            while put(&client, "meow").await.is_err()
                || photos.gate().status != GateStatus::ReadWrite
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), back)
            .await
            .unwrap();
    }
}

async fn upload_in_parts(client: &Client, content: &Bytes) {
    let upload = client
        .create_multipart_upload()
        .bucket(BUCKET)
        .key("big")
        .send();
    let upload = upload.await.unwrap().upload_id.unwrap();
    let mut parts = CompletedMultipartUpload::builder();
    for (number, part) in (1..).zip(content.chunks(5 << 20)) {
        let sent = client
            .upload_part()
            .bucket(BUCKET)
            .key("big")
            .upload_id(&upload)
            .part_number(number)
            .body(content.slice_ref(part).into())
            .send()
            .await
            .unwrap();
        let part = CompletedPart::builder()
            .part_number(number)
            .set_e_tag(sent.e_tag);
        parts = parts.parts(part.build());
    }
    let done = client.complete_multipart_upload().bucket(BUCKET).key("big");
    let done = done.upload_id(upload).multipart_upload(parts.build());
    done.send().await.unwrap();
}

/// The signature covers the host. Why this crate has no redirect.
#[tokio::test]
async fn request_that_is_redirected_below_the_signer_is_refused() {
    let server = Server::start().await.unwrap();
    let ((_one, here), (_other, there)) = (region(&server), region(&server));
    let copies = |mode| {
        let service = GeoService::static_copies("photos")
            .region("frankfurt", here.as_str())
            .region("dublin", there.as_str())
            .location_mode(mode)
            .build()
            .unwrap();
        let layer = service.layer().body_policy(SdkBodies::default());
        let stack = ServiceBuilder::new().layer(layer).service(hyper());
        client(over(stack), RetryConfig::disabled(), &here)
    };
    let at_home = copies(LocationMode::PrimaryOnly);
    at_home.create_bucket().bucket(BUCKET).send().await.unwrap();
    put(&at_home, "meow").await.unwrap();
    assert_eq!(get(&at_home, "my cat", None).await, "meow");

    let away = copies(LocationMode::SecondaryOnly);
    let error = away.get_object().bucket(BUCKET).key("my cat").send().await;
    assert_eq!(error.unwrap_err().code(), Some("SignatureDoesNotMatch"));
}
