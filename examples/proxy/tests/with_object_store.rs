//! A client that people use, pointed at the proxy: nothing of ours is in its process.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::Duration;

use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStoreExt, RetryConfig};
use support::{ACCOUNT, KEY, Setting, before};
use tower_geo::shared_key::SharedKeyService;
use tower_geo_testkit::azurite::{Azurite, AzuriteOptions};
use tower_geo_testkit::front::FrontState;

fn store(setting: &Setting, max_retries: usize) -> MicrosoftAzure {
    MicrosoftAzureBuilder::new()
        .with_account(ACCOUNT)
        .with_access_key(KEY)
        .with_container_name("photos")
        // The one line.
        .with_endpoint(format!("http://{}", setting.proxy))
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_retry(RetryConfig {
            max_retries,
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(1),
                max_backoff: Duration::from_millis(2),
                base: 2.0,
            },
            ..RetryConfig::default()
        })
        .build()
        .unwrap()
}

/// Creates the container, signed by this program, through the proxy.
async fn create_container(setting: &Setting) {
    use tower_layer::Layer;

    let layer = tower_geo::shared_key::SharedKeyLayer::new(ACCOUNT, KEY, setting.kind)
        .and_then(|layer| layer.host(setting.proxy.ip().to_string()))
        .unwrap();
    let client = tower_geo_testkit::client::ClientBuilder::new()
        .build()
        .unwrap();
    let request = http::Request::put(format!("http://{}/photos?restype=container", setting.proxy))
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .unwrap();
    let answer = tower::ServiceExt::oneshot(layer.layer(client), request).await;
    assert_eq!(answer.unwrap().status(), 201);
}

/// R3, R8, T8: what the client signs for the proxy is good at both regions. What happens if its own
/// retries stay on: it repeats the 503 of a refusal, none of which goes further than to the proxy.
#[tokio::test]
async fn object_store_needs_one_line_and_its_retries_reach_no_region() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let azurite = Azurite::start(AzuriteOptions::new().account(ACCOUNT, KEY))
        .await
        .unwrap();
    let setting = before(&azurite, SharedKeyService::Blob).await;
    create_container(&setting).await;
    let (patient, strict) = (store(&setting, 3), store(&setting, 0));
    let cat = Path::from("my cat+dog 100%");
    patient.put(&cat, "meow".into()).await.unwrap();

    setting.primary.set(FrontState::Reset).await.unwrap();
    for _ in 0..3 {
        let got = strict.get(&cat).await.unwrap().bytes().await.unwrap();
        assert_eq!(got, "meow", "from the secondary");
    }
    let sent = setting.primary.requests();
    for (store, tries) in [(&strict, 1), (&patient, 4)] {
        let before = setting.arrived();
        let error = store.put(&cat, "woof".into()).await.unwrap_err();
        assert!(error.to_string().contains("read-only"), "{error}");
        assert_eq!(setting.arrived() - before, tries);
    }
    assert_eq!(setting.primary.requests(), sent, "nothing was sent");
    assert_eq!(setting.secondary.refused(), 0, "R1");
}
