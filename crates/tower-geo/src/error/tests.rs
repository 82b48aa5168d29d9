//! What an error says, to programs and to people.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request};
use http_body_util::BodyExt;
use tokio::time::{Instant, advance};
use tower::{Layer, ServiceExt};
use tower_geo_policy::gate::GateStatus;
use tower_geo_policy::region::LocationMode;

use super::*;
use crate::test_wire::{Act, RequestBody, Wire};
use crate::{CircuitBreakerLayer, GeoService, ReadOnlyGateLayer};

const ENDPOINT: &str = "https://contoso.blob.core.windows.net";

fn blob() -> GeoService {
    GeoService::azure_storage(ENDPOINT).build().unwrap()
}

fn request(method: Method) -> Request<RequestBody> {
    Request::builder()
        .method(method)
        .uri(format!("{ENDPOINT}/photos/cat"))
        .body(RequestBody::new())
        .unwrap()
}

async fn refused(service: &GeoService) -> Error {
    let client = ReadOnlyGateLayer::new(service.clone()).layer(Wire::new(|_| Act::Hang));
    client.oneshot(request(Method::PUT)).await.unwrap_err()
}

/// G2: why and since when are there for programs; people are not told of nanoseconds.
#[tokio::test(start_paused = true)]
async fn a_refused_write_says_why_and_since_when() {
    let service = blob();
    service.operator().read_only();
    let at_once = refused(&service).await.to_string();
    assert!(at_once.ends_with("operator for less than 1ms"), "{at_once}");
    advance(Duration::from_secs(5)).await;
    let error = refused(&service).await;
    assert_eq!(error.read_only_why(), Some(ReadOnlyWhy::Operator));
    assert_eq!(error.since(), Some(Duration::from_secs(5)));
    assert_eq!(error.retry_after(), None, "an operator decides");
    let other = Error::from_inner("a client that fails".into());
    assert_eq!((other.read_only_why(), other.since()), (None, None));
}

/// G6: the gate is shown with times that people can read.
#[tokio::test(start_paused = true)]
async fn the_gate_is_shown_with_instants() {
    let service = blob();
    let reset = || Act::Fail(io::Error::from(io::ErrorKind::ConnectionReset).into());
    let client = CircuitBreakerLayer::new(service.clone()).layer(Wire::new(move |_| reset()));
    advance(Duration::from_secs(3)).await;
    let shut_at = Instant::now().into_std();
    for _ in 0..10 {
        let read = client.clone().oneshot(request(Method::GET)).await;
        assert!(read.is_err());
    }
    advance(Duration::from_secs(4)).await;
    let gate = service.gate();
    assert_eq!(
        (gate.status, gate.why),
        (GateStatus::ReadOnly, Some(ReadOnlyWhy::Breaker))
    );
    assert_eq!(gate.since, shut_at);
    let until = gate.until.unwrap();
    assert_eq!(
        refused(&service).await.retry_after(),
        Some(until - Instant::now().into_std())
    );
    assert_eq!(service.watch_gate().get(), gate);
}

/// G4: maintenance decides where reads go while it lasts.
#[tokio::test]
async fn maintenance_is_where_reads_go() {
    let service = blob();
    assert_eq!(service.location_mode(), LocationMode::PrimaryOnly);
    service.operator().begin_maintenance().unwrap();
    assert_eq!(service.location_mode(), LocationMode::SecondaryOnly);
    service.operator().end_maintenance();
    assert_eq!(service.location_mode(), LocationMode::PrimaryOnly);
}

/// A body that fails, or hangs.
#[derive(Clone, Copy)]
struct Bad {
    fails: bool,
}

impl http_body::Body for Bad {
    type Data = bytes::Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        if self.fails {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionRefused.into())));
        }
        Poll::Pending
    }
}

/// R9: what ends badly after the head of an answer is not the lack of one, and was sent.
#[tokio::test(start_paused = true)]
async fn a_body_that_ends_badly_names_its_service_and_is_no_missing_answer() {
    for (fails, text) in [
        (true, "the body of an answer broke off (service `blob`)"),
        (
            false,
            "the body of an answer stalled (service `blob`): it gave nothing for too long",
        ),
    ] {
        let wire = tower::service_fn(move |_: Request<RequestBody>| async move {
            Ok::<_, io::Error>(http::Response::new(Bad { fails }))
        });
        let client = CircuitBreakerLayer::new(blob()).layer(wire);
        let answer = client.oneshot(request(Method::GET)).await.unwrap();
        let error = answer.into_body().collect().await.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(error.service_name(), Some("blob"));
        assert!(!error.was_never_sent());
    }
}
