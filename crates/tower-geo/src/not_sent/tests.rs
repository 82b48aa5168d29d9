//! A request that cannot be sent, over the layers, in paused time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use tower::{Layer, ServiceExt};
use tower_geo_policy::breaker::{BreakerSettings, Circuit, CircuitPhase};
use tower_geo_policy::fault::Fault;
use tower_geo_policy::gate::GateStatus;
use tower_geo_policy::operation::RegionRef;
use tower_geo_policy::region::LocationMode;
use tower_geo_policy::retry_settings::RetrySettings;

use super::*;
use crate::test_wire::{Act, RequestBody, Wire, status};
use crate::{
    CircuitBreakerLayer, ClassifyFault, Error, ErrorKind, GeoService, ReadOnlyGateLayer, RetryLayer,
};

const BLOB: &str = "https://contoso.blob.core.windows.net/photos/cat";

/// One failure of any region would show at once.
fn blob() -> GeoService {
    GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .location_mode(LocationMode::PrimaryThenSecondary)
        .breaker(BreakerSettings::new().streak(1))
        .random(|| 0.5)
        .threads(1)
        .build()
        .unwrap()
}

fn request(method: Method) -> Request<RequestBody> {
    Request::builder()
        .method(method)
        .uri(BLOB)
        .header("x-ms-blob-type", "BlockBlob")
        .body(RequestBody::new())
        .unwrap()
}

fn unsigned() -> Act {
    Act::Fail(NotSent::new("the body has no length").into())
}

fn assert_trusted(service: &GeoService) {
    for region in [RegionRef::Primary, RegionRef::Secondary] {
        for circuit in Circuit::BOTH {
            let state = service.circuit(&region, circuit).unwrap();
            assert_eq!((state.phase, state.streak), (CircuitPhase::Closed, 0));
        }
    }
    assert_eq!(service.gate().status, GateStatus::ReadWrite);
}

/// An error of the program before anything has left is no failure of the region: nothing is sent
/// again, nothing is unknown, and the message says what to do.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_no_failure_of_the_region() {
    for method in [Method::PUT, Method::GET, Method::POST] {
        let (service, wire) = (blob(), Wire::new(|_| unsigned()));
        let client = service.layer().layer(wire.clone());
        let calls = 10;
        for _ in 0..calls {
            let error = client.clone().oneshot(request(method.clone())).await;
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(error.was_never_sent());
            assert_eq!(
                error.to_string(),
                format!(
                    "not configured for this (service `blob`, {method} \
                     contoso.blob.core.windows.net): the client could not send it: the body has \
                     no length"
                )
            );
            assert!(std::error::Error::source(&error).is_some_and(<dyn StdError>::is::<NotSent>));
        }
        assert_eq!(wire.seen().len(), calls);
        assert_trusted(&service);
    }
}

/// E3: what the cause says of a URL is shown without its signature.
#[tokio::test(start_paused = true)]
async fn no_signature_is_told_of_what_cannot_be_sent() {
    let wire = Wire::new(|_| {
        Act::Fail(NotSent::new(format!("cannot sign {BLOB}?sv=1&sig=SECRET")).into())
    });
    let client = blob().layer().layer(wire);
    let error = client.oneshot(request(Method::PUT)).await.unwrap_err();
    assert!(error.to_string().contains("cannot sign"), "{error}");
    assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
}

/// The same where there is no breaker below the retry.
#[tokio::test(start_paused = true)]
async fn a_lone_retry_does_not_repeat_what_cannot_be_sent() {
    let (service, wire) = (blob(), Wire::new(|_| unsigned()));
    let client = RetryLayer::new(service.clone()).layer(wire.clone());
    let error = client.oneshot(request(Method::PUT)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert_eq!(wire.seen().len(), 1);
}

/// V1: an earlier send that may have been applied is not forgotten because a later one could not
/// be sent.
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_not_hidden_by_what_cannot_be_sent() {
    let service = GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .random(|| 0.5)
        .build()
        .unwrap();
    let wire = Wire::new(|before| match before {
        0 => Act::Fail(io::Error::from(io::ErrorKind::ConnectionReset).into()),
        _ => unsigned(),
    });
    let client = service.layer().layer(wire.clone());
    let error = client.oneshot(request(Method::PUT)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error}");
    assert_eq!((wire.seen().len(), error.trail().sends().len()), (2, 1));
}

/// H2: a hedge that cannot be sent does not take the first send with it.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_cannot_be_sent_leaves_the_first_send_alone() {
    let service = GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .location_mode(LocationMode::PrimaryThenSecondary)
        .retry(RetrySettings::new().hedge(Duration::from_millis(200)))
        .random(|| 0.5)
        .build()
        .unwrap();
    let wire = Wire::new(|before| match before {
        0 => Act::After(Duration::from_secs(1), status(200)),
        _ => unsigned(),
    });
    let client = service.layer().layer(wire.clone());
    let answer = client.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((answer.status().as_u16(), wire.seen().len()), (200, 2));
    assert_trusted(&service);
}

/// A classifier of one's own may know more errors of that kind.
#[tokio::test(start_paused = true)]
async fn a_classifier_may_say_what_could_not_be_sent() {
    #[derive(Debug)]
    struct Strict;

    impl ClassifyFault for Strict {
        fn classify(&self, _: &(dyn StdError + 'static)) -> Fault {
            Fault::Reset
        }

        fn was_not_sent(&self, error: &(dyn StdError + 'static)) -> bool {
            error.to_string() == "builder error"
        }
    }

    let service = GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .classify_faults(Arc::new(Strict))
        .build()
        .unwrap();
    let client = service
        .layer()
        .layer(Wire::new(|_| Act::Fail("builder error".into())));
    let error = client.oneshot(request(Method::PUT)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}

/// A body that does not know how long it is.
#[cfg(feature = "shared-key")]
struct NoLength;

#[cfg(feature = "shared-key")]
impl http_body::Body for NoLength {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        std::task::Poll::Ready(None)
    }
}

/// A signing error is one of the program, however deep it lies.
#[cfg(feature = "shared-key")]
#[tokio::test(start_paused = true)]
async fn a_body_that_cannot_be_signed_opens_no_circuit() {
    use crate::shared_key::{SharedKeyLayer, SharedKeyService};

    let service = blob();
    let wire = tower::service_fn(|_: Request<_>| async {
        Err::<http::Response<crate::test_wire::ResponseBody>, _>(io::Error::other("it was sent"))
    });
    let signer = SharedKeyLayer::new("contoso", "c2VjcmV0", SharedKeyService::Blob).unwrap();
    let client = service
        .layer()
        .buffer_bodies(1024)
        .layer(signer.layer(wire));
    let write = request(Method::PUT).map(|_| NoLength);
    let error = client.oneshot(write).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.was_never_sent());
    assert!(error.to_string().contains("content-length"), "{error}");
    assert_trusted(&service);
}

/// So is a wall clock that stands before 1970.
#[cfg(feature = "cosmos-key")]
#[tokio::test(start_paused = true)]
async fn a_date_that_cannot_be_signed_opens_no_circuit() {
    use crate::cosmos_key::CosmosKeyLayer;
    use std::time::{Duration, UNIX_EPOCH};

    let service = blob();
    let wire = tower::service_fn(|_: Request<_>| async {
        Err::<http::Response<crate::test_wire::ResponseBody>, _>(io::Error::other("it was sent"))
    });
    let signer = CosmosKeyLayer::new("https://contoso.blob.core.windows.net", "c2VjcmV0")
        .unwrap()
        .wall_clock(|| UNIX_EPOCH - Duration::from_secs(1));
    let client = service.layer().layer(signer.layer(wire));
    let error = client.oneshot(request(Method::GET)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.was_never_sent());
    assert_trusted(&service);
}

/// A connection that was refused has carried nothing, also below a layer that is alone or passes
/// a neutral request.
#[tokio::test(start_paused = true)]
async fn a_refused_connection_was_never_sent_to_lone_layers_and_neutral_requests() {
    let refused =
        || Wire::new(|_| Act::Fail(io::Error::from(io::ErrorKind::ConnectionRefused).into()));
    let error = CircuitBreakerLayer::new(blob())
        .layer(refused())
        .oneshot(request(Method::GET))
        .await
        .unwrap_err();
    assert!(error.was_never_sent(), "breaker: {error:?}");
    let error = ReadOnlyGateLayer::new(blob())
        .layer(refused())
        .oneshot(request(Method::GET))
        .await
        .unwrap_err();
    assert!(error.was_never_sent(), "gate: {error:?}");
    let error = blob()
        .layer()
        .layer(refused())
        .oneshot(request(Method::OPTIONS))
        .await
        .unwrap_err();
    assert!(error.was_never_sent(), "neutral: {error:?}");
    let error = Error::from_inner(io::Error::from(io::ErrorKind::ConnectionReset).into());
    assert!(!error.was_never_sent());
}

/// An https endpoint over a client without TLS is a mistake of the program, not two lost regions.
#[cfg(feature = "hyper-util")]
#[tokio::test(start_paused = true)]
async fn a_client_that_speaks_no_tls_is_no_outage() {
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;

    let service = blob();
    let plain = Client::builder(TokioExecutor::new()).build_http::<RequestBody>();
    let client = service.layer().layer(plain);
    let error = client.oneshot(request(Method::GET)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(error.was_never_sent() && error.trail().sends().is_empty());
    assert!(
        error.to_string().ends_with("a client that speaks TLS"),
        "{error}"
    );
    assert_trusted(&service);
}
