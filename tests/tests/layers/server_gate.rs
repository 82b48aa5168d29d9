//! What does the gate do in front of a server's own routes (G2, G6)?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use tower::{Layer, Service, ServiceExt};
use tower_geo::{GateStatus, GeoService, ReadOnlyGateLayer};
use tower_geo_testkit::strict::Reply;

use crate::support::*;

fn routes(service: &GeoService, handled: &Arc<AtomicUsize>) -> Router {
    let handled = Arc::clone(handled);
    let handler = move || {
        handled.fetch_add(1, Ordering::Relaxed);
        async { "handled" }
    };
    Router::new()
        .route(
            "/photos/{id}",
            get(handler.clone()).put(handler.clone()).delete(handler),
        )
        .layer(ReadOnlyGateLayer::new(service.clone()).on_server())
}

async fn ask(routes: &Router, method: Method) -> http::Response<axum::body::Body> {
    let request = Request::builder()
        .method(method)
        .uri("/photos/cat")
        .body(axum::body::Body::empty())
        .unwrap();
    routes.clone().oneshot(request).await.unwrap()
}

async fn text(response: http::Response<axum::body::Body>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// G2: a write is answered 503 with `Retry-After` and a problem body (RFC 9457), its handler is
/// not called; reads pass.
#[tokio::test(start_paused = true)]
async fn a_server_answers_writes_with_503_and_serves_reads() {
    let service = service();
    let handled = Arc::new(AtomicUsize::new(0));
    let routes = routes(&service, &handled);
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        assert_eq!(ask(&routes, method).await.status(), 200);
    }
    service.operator().read_only();
    for method in [Method::PUT, Method::DELETE] {
        let refused = ask(&routes, method).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            refused.headers()["content-type"],
            "application/problem+json"
        );
        assert_eq!(refused.headers()["retry-after"], "30");
        let problem = text(refused).await;
        assert!(
            problem.starts_with('{') && problem.ends_with('}'),
            "{problem}"
        );
        for part in [
            r#""status":503"#,
            r#""title":"#,
            r#""type":"#,
            "blob",
            "operator",
        ] {
            assert!(problem.contains(part), "{problem}");
        }
    }
    assert_eq!(handled.load(Ordering::Relaxed), 3);
    let read = ask(&routes, Method::GET).await;
    assert_eq!(read.status(), 200);
    assert_eq!(text(read).await, "handled");
    service.operator().read_write();
    assert_eq!(ask(&routes, Method::PUT).await.status(), 200);
}

/// G2: `Retry-After` is the time to the next trial, in whole seconds, rounded up.
#[tokio::test(start_paused = true)]
async fn a_server_says_when_to_come_back() {
    let service = service();
    let script = primary_down();
    let client = service.layer().clone_bodies().layer(script.service());
    let handled = Arc::new(AtomicUsize::new(0));
    let routes = routes(&service, &handled);
    for _ in 0..3 {
        client.clone().oneshot(crate::support::get()).await.unwrap();
    }
    tokio::time::sleep(ms(1500)).await;
    let refused = ask(&routes, Method::PUT).await;
    assert_eq!(refused.headers()["retry-after"], "29");
    assert!(text(refused).await.contains("breaker"));
}

/// B4, G2: the gate of a server leaves the trial to the client in its handler: it lets a write in
/// and keeps no slot.
#[tokio::test(start_paused = true)]
async fn a_servers_gate_leaves_the_trial_to_the_client_below() {
    let service = service();
    let script = primary_down();
    let client = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        client.clone().oneshot(crate::support::get()).await.unwrap();
    }
    tokio::time::sleep(secs(30)).await;
    script.replace(P, [Reply::ok("primary")]);
    script.clear_sends();
    let handler = move || {
        let client = client.clone();
        async move {
            match client.oneshot(put()).await {
                Ok(answer) => answer.status(),
                Err(_) => StatusCode::BAD_GATEWAY,
            }
        }
    };
    let routes = Router::new()
        .route("/photos/{id}", axum::routing::put(handler))
        .layer(ReadOnlyGateLayer::new(service.clone()).on_server());
    assert_eq!(ask(&routes, Method::PUT).await.status(), 200);
    assert_eq!(script.hosts(), [P]);
    assert_eq!(service.gate().status, GateStatus::ReadWrite);
}

/// G2: on a server, too, a refused write asks nobody below whether they are ready.
#[tokio::test(start_paused = true)]
async fn a_servers_gate_is_ready_while_read_only() {
    let service = service();
    let never = tower::service_fn(|_: Request<Body>| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(Body::default()))
    });
    let limit = tower::limit::ConcurrencyLimit::new(never, 0);
    let mut gate = ReadOnlyGateLayer::new(service.clone())
        .on_server()
        .layer(limit);
    service.operator().read_only();
    let ready = tokio::time::timeout(secs(1), gate.until_ready()).await;
    let refused = ready.expect("ready").unwrap().call(put()).await.unwrap();
    assert_eq!(refused.status(), 503);
}
