//! The official Azure SDK above the stack: over scripted transports, and end to end with a SAS.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "support/frames.rs"]
mod frames;
#[path = "support/sas.rs"]
mod sas;
mod support;

use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::http::{
    Body, ClientOptions, HttpClient, RequestContent, RetryOptions, Transport, Url,
};
use azure_core::stream::{BytesStream, SeekableStream};
use azure_core::time::OffsetDateTime;
use azure_storage_blob::models::{BlobClientDownloadOptions, BlobClientUploadOptions, HttpRange};
use azure_storage_blob::{
    BlobClient, BlobClientOptions, BlobContainerClient, BlobContainerClientOptions,
    BlobServiceClient, BlobServiceClientOptions,
};
use azure_storage_queue::models::QueueMessage;
use azure_storage_queue::{QueueClient, QueueClientOptions};
use bytes::Bytes;
use futures::TryStreamExt;
use http::Method;
use sas::account_sas;
use support::{Cloud, Count, PATIENCE, account, pattern};
use tower::ServiceBuilder;
use tower_geo::{Account, StorageService};
use tower_geo_clients::azure_core::{SdkBodies, SdkBody, ServiceClient, transport};
use tower_geo_clients::{geo_error, is_final};
use tower_geo_testkit::front::FrontState;
use tower_geo_testkit::strict::{Reply, Script};

const PRIMARY: &str = "contoso.blob.core.windows.net";
const SECONDARY: &str = "contoso-secondary.blob.core.windows.net";

fn options(transport: Transport, retry: RetryOptions) -> ClientOptions {
    ClientOptions {
        transport: Some(transport),
        retry,
        ..ClientOptions::default()
    }
}

fn cat(client_options: ClientOptions) -> BlobClient {
    let url = format!("https://{PRIMARY}/photos/cat?sig=secret")
        .parse()
        .unwrap();
    let options = BlobClientOptions {
        client_options,
        ..BlobClientOptions::default()
    };
    BlobClient::new(url, None, Some(options)).unwrap()
}

fn script(reply: impl Fn() -> Reply) -> Script {
    Script::new()
        .any_method(PRIMARY, [reply()])
        .any_method(SECONDARY, [reply()])
}

/// The stack over a script, and how often the SDK called it.
fn scripted(account: &Account, script: &Script, retry: RetryOptions) -> (BlobClient, Count) {
    let calls = Count::default();
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().body_policy(SdkBodies::default()))
        .service(script.service());
    let transport = Transport::new(Arc::new(ServiceClient::new(stack)));
    (cat(options(transport, retry)), calls)
}

fn text(text: &str) -> RequestContent<Bytes, azure_core::http::NoFormat> {
    Bytes::from(text.to_owned()).into()
}

/// G2, T8: one call, nothing sent, although the SDK's retry is on.
#[tokio::test(start_paused = true)]
async fn refused_write_is_one_call_and_our_error_is_in_the_chain() {
    let (account, script) = (account(), script(|| Reply::status(201)));
    account.blob().operator().read_only();
    let (blob, calls) = scripted(&account, &script, RetryOptions::default());
    let error = blob.upload(text("meow"), None).await.unwrap_err();
    assert!(geo_error(&error).unwrap().is_read_only(), "{error}");
    assert_eq!(*error.kind(), ErrorKind::Other);
    assert_eq!((calls.calls(), script.sends().len()), (1, 0));
}

/// T8: what the stack has given up is not tried again above it.
#[tokio::test(start_paused = true)]
async fn operation_that_the_stack_gave_up_is_one_call() {
    for reply in [Reply::reset(), Reply::refused()] {
        let (account, script) = (account(), script(|| reply.clone()));
        let (blob, calls) = scripted(&account, &script, RetryOptions::default());
        let error = blob.get_properties(None).await.unwrap_err();
        assert!(geo_error(&error).is_some(), "{error}");
        assert_eq!((calls.take(), script.sends().len()), (1, 3));
        blob.upload(text("meow"), None).await.unwrap_err();
        assert_eq!(calls.take(), 1);
    }
}

/// T8: what happens if the SDK's own retry stays on: answers multiply. Every repeat of an operation
/// keeps its id, by which the stack knows it.
#[tokio::test(start_paused = true)]
async fn answers_are_tried_again_by_the_sdk_unless_switched_off() {
    for (retry, expected) in [(RetryOptions::none(), 1), (RetryOptions::default(), 9)] {
        let account = Account::azure_storage("contoso")
            .breaker(None)
            .build()
            .unwrap();
        let script = script(|| Reply::status(503));
        let (blob, calls) = scripted(&account, &script, retry);
        blob.get_properties(None).await.unwrap_err();
        assert_eq!(calls.calls(), expected);
        let sends = script.sends();
        assert!(
            sends.len() > expected && sends.len() <= expected * 6,
            "{} sends",
            sends.len()
        );
        let id = &sends[0].headers["x-ms-client-request-id"];
        assert!(
            sends
                .iter()
                .all(|send| send.headers["x-ms-client-request-id"] == id)
        );
    }
}

/// V1: bytes are kept, so a put is sent again, whole.
#[tokio::test(start_paused = true)]
async fn put_is_sent_again_with_its_whole_body() {
    let created = Reply::status(201).header("etag", "\"1\"");
    let script = Script::new().any_method(PRIMARY, [Reply::status(503), Reply::reset(), created]);
    let (blob, calls) = scripted(&account(), &script, RetryOptions::none());
    blob.upload(text("meow"), None).await.unwrap();
    let sends = script.sends();
    assert_eq!((calls.calls(), sends.len()), (1, 3));
    assert!(
        sends
            .iter()
            .all(|send| send.body.as_deref() == Some(b"meow"))
    );
}

/// T6: a stream is sent once by the stack. The SDK, which can rewind it, sends it again.
#[tokio::test(start_paused = true)]
async fn stream_is_left_to_the_sdk_to_send_again() {
    let created = Reply::status(201).header("etag", "\"1\"");
    for (retry, expected) in [(RetryOptions::none(), 1), (RetryOptions::default(), 2)] {
        let script = Script::new().any_method(PRIMARY, [Reply::status(503), created.clone()]);
        let (blob, calls) = scripted(&account(), &script, retry);
        let content = pattern(300_000);
        let stream: Box<dyn SeekableStream> = Box::new(BytesStream::new(content.clone()));
        let result = blob.upload(Body::from(stream).into(), None).await;
        let sends = script.sends();
        assert_eq!((calls.calls(), sends.len()), (expected, expected));
        assert!(
            sends
                .iter()
                .all(|send| send.body.as_ref() == Some(&content)),
            "whole each time"
        );
        match result {
            Ok(_) => assert_eq!(expected, 2),
            Err(error) => {
                assert!(!is_final(&error), "the sdk may rewind it");
                let kind = geo_error(&error).unwrap().kind();
                assert_eq!(
                    (expected, kind),
                    (1, tower_geo::ErrorKind::NotReplayable),
                    "{error}"
                );
            }
        }
    }
}

/// I5: the client is built on the primary's host, and its statistics come from the secondary.
#[tokio::test(start_paused = true)]
async fn statistics_are_asked_of_the_secondary() {
    let script = script(|| Reply::ok("<StorageServiceStats/>"));
    let stack = account().blob().layer().body_policy(SdkBodies::default());
    let client = ServiceClient::new(tower_layer::Layer::layer(&stack, script.service()));
    let client_options = options(Transport::new(Arc::new(client)), RetryOptions::none());
    let options = BlobServiceClientOptions {
        client_options,
        ..BlobServiceClientOptions::default()
    };
    let url = format!("https://{PRIMARY}/").parse().unwrap();
    let service = BlobServiceClient::new(url, None, Some(options)).unwrap();
    service.get_statistics(None).await.unwrap();
    assert_eq!(script.hosts(), [SECONDARY]);
}

/// The bytes of the user are those that the transport gets, and the other way round.
#[tokio::test(start_paused = true)]
async fn bodies_are_moved_and_never_copied() {
    use http_body_util::BodyExt;

    let (up, down) = (pattern(1000), pattern(2000));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (answer, noted) = (down.clone(), seen.clone());
    let service = tower::service_fn(move |request: http::Request<SdkBody>| {
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
            Ok::<_, azure_core::Error>(http::Response::new(http_body_util::Full::new(answer)))
        }
    });
    // Both ways: the SDK over a service over the SDK's transport over a service.
    let inner: Arc<dyn HttpClient> = Arc::new(ServiceClient::new(service));
    let client = ServiceClient::layered(
        inner,
        &account().blob().layer().body_policy(SdkBodies::default()),
    );
    let url: Url = format!("https://{PRIMARY}/photos/cat").parse().unwrap();
    let mut request = azure_core::http::Request::new(url, azure_core::http::Method::Put);
    request.set_body(up.clone());
    let response = client.execute_request(&request).await.unwrap();
    let frames: Vec<Bytes> = response.into_body().try_collect().await.unwrap();
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].as_ptr(), down.as_ptr());
    assert_eq!(*seen.lock().unwrap(), [(Some(1000), up.as_ptr() as usize)]);
}

/// Frames come one by one, as the transport gives them. Of headers the SDK keeps one value each, as
/// text; trailers it has no use for.
#[tokio::test(start_paused = true)]
async fn answers_are_streamed() {
    use futures::{FutureExt, StreamExt};

    let (hand, transport) = frames::by_hand();
    let inner: Arc<dyn HttpClient> = Arc::new(ServiceClient::new(transport));
    let layer = account().blob().layer().body_policy(SdkBodies::default());
    let client = ServiceClient::layered(inner, &layer);
    let url: Url = format!("https://{PRIMARY}/photos/cat").parse().unwrap();
    let request = azure_core::http::Request::new(url, azure_core::http::Method::Get);
    let response = client.execute_request(&request).await.unwrap();
    assert_eq!(response.headers().get_str(&"etag".into()).unwrap(), "\"1\"");
    let mut body = response.into_body();
    assert!(body.next().now_or_never().is_none());
    for data in ["me", "ow"] {
        hand.give(data);
        let got = body.next().now_or_never().flatten().unwrap().unwrap();
        assert_eq!(got, data);
        assert!(body.next().now_or_never().is_none());
    }
    hand.end();
    assert!(body.next().now_or_never().unwrap().is_none());
}

/// A request that cannot be built is the program's fault, and no region's.
#[tokio::test]
async fn request_that_cannot_be_built_counts_against_no_region() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let service = tower_geo::GeoService::azure_storage("http://127.0.0.1:9/contoso")
        .storage_service(StorageService::Blob)
        .secondary("http://127.0.0.1:9/contoso-secondary")
        .location_mode(tower_geo::LocationMode::PrimaryThenSecondary)
        .build()
        .unwrap();
    let http = reqwest::Client::builder().https_only(true).build().unwrap();
    let transport = transport(&service, Arc::new(http));
    let url = "http://127.0.0.1:9/contoso/photos/cat?sig=secret".parse();
    let cat = BlobClient::new(url.unwrap(), None, Some(blob_options(transport))).unwrap();
    for _ in 0..12 {
        let error = cat.get_properties(None).await.unwrap_err();
        let ours = geo_error(&error).unwrap();
        assert_eq!(ours.kind(), tower_geo::ErrorKind::Config, "{error}");
        assert!(ours.was_never_sent());
        assert!(!ours.to_string().contains("secret"), "{ours}");
    }
    assert_eq!(service.gate().status, tower_geo::GateStatus::ReadWrite);
}

fn reqwest(cloud: &Cloud) -> Arc<dyn HttpClient> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(cloud.ca.client_config().unwrap())
        .resolve(&cloud.host(), cloud.primary.addr())
        .resolve(&cloud.secondary_host(), cloud.secondary.addr())
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .no_proxy()
        .build()
        .unwrap();
    Arc::new(client)
}

fn blob_options(transport: Transport) -> BlobClientOptions {
    BlobClientOptions {
        client_options: options(transport, RetryOptions::none()),
        ..BlobClientOptions::default()
    }
}

async fn end_to_end(cloud: &Cloud, transport: Transport, calls: &Count, account: &Account) {
    let url = |path: &str| -> Url {
        format!("{}/{path}?{}", cloud.url(), account_sas())
            .parse()
            .unwrap()
    };
    let blob = |name: &str| {
        BlobClient::new(
            url(&format!("photos/{name}")),
            None,
            Some(blob_options(transport.clone())),
        )
        .unwrap()
    };
    let container = BlobContainerClient::new(
        url("photos"),
        None,
        Some(BlobContainerClientOptions {
            client_options: options(transport.clone(), RetryOptions::none()),
            ..BlobContainerClientOptions::default()
        }),
    )
    .unwrap();
    container.create(None).await.unwrap();
    let (cat, big) = (blob("my%20cat"), blob("big"));
    cat.upload(text("meow"), None).await.unwrap();
    let content = pattern(5 << 20);
    let parts = BlobClientUploadOptions {
        partition_size: NonZero::new(1 << 20),
        ..Default::default()
    };
    big.upload(content.clone().into(), Some(parts))
        .await
        .unwrap();
    let stream: Box<dyn SeekableStream> = Box::new(BytesStream::new(content.clone()));
    blob("streamed")
        .upload(Body::from(stream).into(), None)
        .await
        .unwrap();
    assert_eq!(cloud.arrived().1, 0, "R1: writes go to the primary");

    for outage in [FrontState::Reset, FrontState::Freeze] {
        cloud.primary_is(outage).await;
        let got = cat
            .download(None)
            .await
            .unwrap()
            .body
            .collect()
            .await
            .unwrap();
        assert_eq!(got, "meow", "{outage:?}");
        let range = BlobClientDownloadOptions {
            range: Some(HttpRange::new(1, 2)),
            ..Default::default()
        };
        let got = cat
            .download(Some(range))
            .await
            .unwrap()
            .body
            .collect()
            .await
            .unwrap();
        assert_eq!(got, "eo");
        let properties = big.get_properties(None).await.unwrap();
        assert_eq!(
            properties
                .headers()
                .get_as::<u64, _>(&"content-length".into())
                .unwrap(),
            5 << 20
        );
        // G1: by now the circuit is open, and writes are refused at once.
        calls.take();
        let (arrived, started) = (cloud.arrived(), tokio::time::Instant::now());
        let error = cat.upload(text("woof"), None).await.unwrap_err();
        assert!(
            geo_error(&error).is_some_and(tower_geo::Error::is_read_only),
            "{outage:?}: {error}"
        );
        assert_eq!(calls.take(), 1);
        assert_eq!(cloud.arrived(), arrived, "nothing was sent");
        assert!(started.elapsed() < PATIENCE / 2);
        let parts = BlobClientDownloadOptions {
            partition_size: NonZero::new(1 << 20),
            ..Default::default()
        };
        let got = big
            .download(Some(parts))
            .await
            .unwrap()
            .body
            .collect()
            .await
            .unwrap();
        assert!(got == content, "all parts, in order");
        let list: Vec<_> = container
            .list_blobs(None)
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        assert_eq!(list.len(), 3);

        cloud.primary_is(FrontState::Forward).await;
        let back = async {
            while cat.upload(text("meow"), None).await.is_err()
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

/// Production host names, TLS, a SAS, the transport that the SDK itself uses.
#[tokio::test]
async fn outage_over_the_transport_of_the_sdk() {
    let cloud = Cloud::start(StorageService::Blob).await;
    let (account, calls) = (account(), Count::default());
    let layers = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().body_policy(SdkBodies::default()));
    let client = ServiceClient::layered(reqwest(&cloud), &layers);
    end_to_end(&cloud, Transport::new(Arc::new(client)), &calls, &account).await;
}

/// The same with hyper as the transport.
#[tokio::test]
async fn outage_over_a_tower_service() {
    let cloud = Cloud::start(StorageService::Blob).await;
    let (account, calls) = (account(), Count::default());
    let stack = ServiceBuilder::new()
        .layer(calls.clone())
        .layer(account.blob().layer().body_policy(SdkBodies::default()))
        .service(cloud.hyper::<SdkBody>());
    let client = ServiceClient::new(stack);
    end_to_end(&cloud, Transport::new(Arc::new(client)), &calls, &account).await;
}

/// I2, R1: receiving takes messages away, so it is a write; peeking is a read.
#[tokio::test]
async fn messages_are_peeked_at_the_secondary_and_received_only_from_the_primary() {
    let cloud = Cloud::start(StorageService::Queue).await;
    let account = account();
    let client_options = options(
        transport(&account.queue(), reqwest(&cloud)),
        RetryOptions::none(),
    );
    let url = format!("{}/work?{}", cloud.url(), account_sas())
        .parse()
        .unwrap();
    let queue = QueueClient::new(
        url,
        None,
        Some(QueueClientOptions {
            client_options,
            ..Default::default()
        }),
    )
    .unwrap();
    queue.create(None).await.unwrap();
    let message = QueueMessage {
        message_text: Some("meow".into()),
    };
    queue
        .send_message(message.try_into().unwrap(), None)
        .await
        .unwrap();

    cloud.primary_is(FrontState::Reset).await;
    let peeked = queue.peek_messages(None).await.unwrap().into_body();
    assert!(String::from_utf8_lossy(&peeked).contains("meow"));
    let reads = cloud.secondary.requests_by(&Method::GET);
    let error = queue.receive_messages(None).await.unwrap_err();
    assert!(geo_error(&error).is_some(), "{error}");
    assert_eq!(
        cloud.secondary.requests_by(&Method::GET),
        reads,
        "receiving went to the primary only"
    );
    assert_eq!(cloud.secondary.refused(), 0);

    cloud.primary_is(FrontState::Forward).await;
    let back = async {
        loop {
            if let Ok(received) = queue.receive_messages(None).await {
                break received.into_body();
            }
            tokio::time::sleep(PATIENCE / 4).await;
        }
    };
    let received = tokio::time::timeout(Duration::from_secs(20), back)
        .await
        .unwrap();
    assert!(
        String::from_utf8_lossy(&received).contains("meow"),
        "nobody has taken it"
    );
}

/// A token that is good until the end of the century, of which the emulator checks the claims.
#[derive(Debug)]
struct Token;

const EXPIRY: i64 = 4_102_444_800;

#[async_trait::async_trait]
impl TokenCredential for Token {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        use base64::Engine as _;
        assert_eq!(scopes, ["https://storage.azure.com/.default"]);
        let claims = format!(
            r#"{{"aud":"https://storage.azure.com","iss":"https://sts.windows.net/1/","iat":1,"nbf":1,"exp":{EXPIRY}}}"#
        );
        let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
        let token = format!(
            "{}.{}.{}",
            encode(r#"{"alg":"HS256","typ":"JWT"}"#),
            encode(&claims),
            encode("0")
        );
        Ok(AccessToken::new(
            token,
            OffsetDateTime::from_unix_timestamp(EXPIRY).unwrap(),
        ))
    }
}

/// A token goes with a read to the secondary: it does not cover the host. Production host names; the
/// emulator itself ends TLS, since it takes no tokens without.
#[tokio::test]
async fn token_is_good_at_both_regions() {
    let cloud = Cloud::with_tokens(StorageService::Blob).await;
    let account = account();
    let transport = transport(&account.blob(), reqwest(&cloud));
    let container = BlobContainerClient::new(
        format!("{}/photos", cloud.url()).parse().unwrap(),
        Some(Arc::new(Token)),
        Some(BlobContainerClientOptions {
            client_options: options(transport.clone(), RetryOptions::none()),
            ..BlobContainerClientOptions::default()
        }),
    );
    container.unwrap().create(None).await.unwrap();
    let url = format!("{}/photos/cat", cloud.url()).parse().unwrap();
    let cat = BlobClient::new(url, Some(Arc::new(Token)), Some(blob_options(transport))).unwrap();
    cat.upload(text("meow"), None).await.unwrap();
    assert_eq!(cloud.secondary.connections(), 0);

    cloud.primary_is(FrontState::Reset).await;
    let got = cat.download(None).await.unwrap();
    assert_eq!(got.body.collect().await.unwrap(), "meow");
    assert_eq!(cloud.secondary.connections(), 1);
}
