//! What does each layer do without the others (E4)?

use http::Method;
use tower::{Layer, ServiceExt};
use tower_geo::{
    Circuit, CircuitBreakerLayer, CircuitPhase, ErrorKind, GeoRedirectLayer, LocationMode,
    RequestOptions, RetryLayer, Served,
};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;

/// DESIGN 1: retry alone stays in its request's region. It waits and repeats, and falls over never.
#[tokio::test(start_paused = true)]
async fn retry_alone_stays_home() {
    for request in [get(), put()] {
        let script = Script::new()
            .any_method(
                P,
                [Reply::status(503), Reply::reset(), Reply::ok("primary")],
            )
            .any_method(S, [Reply::ok("secondary")]);
        let stack = RetryLayer::new(service())
            .clone_bodies()
            .layer(script.service());
        let begun = tokio::time::Instant::now();
        assert_eq!(stack.oneshot(request).await.unwrap().status(), 200);
        assert_eq!(begun.elapsed(), secs(3), "1 s and 2 s (T1)");
        assert_eq!(script.hosts(), [P, P, P]);
    }
}

/// DESIGN 1: also when another stack of the service has a redirect, whatever the mode and the pin.
#[tokio::test(start_paused = true)]
async fn retry_without_a_redirect_below_stays_home() {
    for mode in LocationMode::ALL {
        let script = Script::new()
            .any_method(P, [Reply::status(503), Reply::ok("primary")])
            .any_method(S, [Reply::ok("secondary")]);
        let service = builder().location_mode(mode).build().unwrap();
        let _elsewhere = GeoRedirectLayer::new(service.clone()).layer(());
        let stack = RetryLayer::new(service)
            .clone_bodies()
            .layer(script.service());
        let answer = stack.oneshot(get()).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(script.hosts(), [P, P], "{mode}");
        let served = Served::of(answer.extensions()).unwrap();
        assert_eq!(
            served.region_name(),
            "primary",
            "{mode}: it tells where it really went"
        );
    }
}

/// T2: at most one send more than `max_retries`.
#[tokio::test(start_paused = true)]
async fn retry_alone_gives_up_after_max_retries() {
    let script = Script::new().any_method(P, [Reply::status(503)]);
    let service = builder().retry(retry().max_retries(3)).build().unwrap();
    let stack = RetryLayer::new(service)
        .clone_bodies()
        .layer(script.service());
    let answer = stack.oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 503, "the last answer, not an error (R5)");
    assert_eq!(script.sends().len(), 4);
}

/// DESIGN 1: a redirect alone falls over without waits, to each region at most once.
#[tokio::test(start_paused = true)]
async fn a_redirect_alone_falls_over_without_waits() {
    for (mode, hosts) in [
        (LocationMode::PrimaryOnly, &[P][..]),
        (LocationMode::PrimaryThenSecondary, &[P, S]),
        (LocationMode::SecondaryOnly, &[S]),
        (LocationMode::SecondaryThenPrimary, &[S, P]),
    ] {
        let script = Script::new()
            .any_method(P, [Reply::status(503)])
            .any_method(S, [Reply::status(500)]);
        let service = builder().location_mode(mode).build().unwrap();
        let stack = GeoRedirectLayer::new(service)
            .clone_bodies()
            .layer(script.service());
        let begun = tokio::time::Instant::now();
        let answer = stack.clone().oneshot(get()).await.unwrap();
        assert_eq!(script.hosts(), hosts, "{mode}");
        assert_eq!(begun.elapsed(), secs(0));
        let last = if hosts.last() == Some(&P) { 503 } else { 500 };
        assert_eq!(answer.status(), last);
        script.clear_sends();
        assert_eq!(stack.oneshot(append()).await.unwrap().status(), 503);
        assert_eq!(
            script.hosts(),
            [P],
            "{mode}: a write goes once, to the primary"
        );
    }
}

/// E4: a redirect that only follows has nobody to follow without a retry, and says so.
#[tokio::test(start_paused = true)]
async fn a_following_redirect_without_a_retry_is_a_mistake() {
    const ELSEWHERE: &str = "login.test";
    let script = primary_down().any_method(ELSEWHERE, [Reply::ok("token")]);
    let service = service();
    let stack = GeoRedirectLayer::new(service.clone())
        .below_retry()
        .layer(script.service());
    for request in [get(), put()] {
        let error = stack.clone().oneshot(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.was_never_sent());
        assert!(error.to_string().contains("RetryLayer"), "{error}");
    }
    // I8: what is not this service's passes.
    let token = request(Method::GET, ELSEWHERE, "/token");
    assert_eq!(stack.clone().oneshot(token).await.unwrap().status(), 200);
    // A retry that is above but on another task cannot be told from none: not a mistake.
    let _retry = RetryLayer::new(service);
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 503);
    assert_eq!(script.hosts(), [ELSEWHERE, P]);
}

/// E4: a breaker alone counts, refuses, and recovers; each region and kind by itself.
#[tokio::test(start_paused = true)]
async fn a_breaker_alone_opens_and_closes() {
    let script = Script::new()
        .any_method(P, [Reply::status(503)])
        .any_method(S, [Reply::ok("secondary")]);
    let service = service();
    let stack = CircuitBreakerLayer::new(service.clone()).layer(script.service());
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 503);
    }
    let error = stack.clone().oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert_eq!(error.retry_after(), Some(secs(30)));
    assert_eq!(
        stack.clone().oneshot(append()).await.unwrap().status(),
        503,
        "B1: writes"
    );
    let at_copy = request(Method::GET, S, "/photos/cat");
    assert_eq!(stack.clone().oneshot(at_copy).await.unwrap().status(), 200);
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(30)).await;
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Closed
    );
}

/// R1: a breaker alone lets no write through to a region that takes none.
#[tokio::test(start_paused = true)]
async fn a_breaker_alone_refuses_a_write_that_names_a_copy() {
    let script = healthy();
    let stack = CircuitBreakerLayer::new(service()).layer(script.service());
    let error = stack
        .oneshot(request(Method::PUT, S, "/photos/cat"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(script.sends().is_empty());
}

/// R1, R10: naming a copy is a pin; pinning the write elsewhere does not lift it, since there may be
/// nobody below to redirect it.
#[tokio::test(start_paused = true)]
async fn retry_alone_refuses_a_write_that_names_a_copy() {
    let script = healthy();
    for options in [RequestOptions::new(), RequestOptions::new().pin(PRIMARY)] {
        let stack = RetryLayer::new(service())
            .clone_bodies()
            .layer(script.service());
        let mut write = request(Method::PUT, S, "/photos/cat");
        write.extensions_mut().insert(options);
        let error = stack.oneshot(write).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }
    assert!(script.sends().is_empty());
}

/// R10: without a redirect nothing can take a pinned request to its region; that is said, and no
/// other region answers in its place.
#[tokio::test(start_paused = true)]
async fn retry_alone_refuses_a_pin_to_elsewhere() {
    let script = healthy();
    let stack = RetryLayer::new(service())
        .clone_bodies()
        .layer(script.service());
    let mut read = get();
    read.extensions_mut()
        .insert(RequestOptions::new().pin(SECONDARY));
    let error = stack.oneshot(read).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("GeoRedirectLayer"), "{error}");
    assert!(script.sends().is_empty());
}

/// R10: where that is found out only when a breaker below refuses the region that the request
/// names, the operation ends there; it used to go round in circles.
#[tokio::test]
async fn a_pin_that_nobody_carries_out_ends_at_the_open_circuit() {
    let script = Script::new()
        .any_method(P, [Reply::status(503)])
        .any_method(S, [Reply::ok("secondary")]);
    let service = service();
    let _elsewhere = GeoRedirectLayer::new(service.clone()).layer(());
    let breaker = CircuitBreakerLayer::new(service.clone()).layer(script.service());
    let stack = RetryLayer::new(service.clone())
        .clone_bodies()
        .layer(breaker);
    service.operator().force_open(&PRIMARY).unwrap();
    let mut read = get();
    read.extensions_mut()
        .insert(RequestOptions::new().pin(SECONDARY));
    let error = stack.oneshot(read).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert!(script.sends().is_empty());
}

/// I3: a query of a blob is a read that is not redirected.
#[tokio::test(start_paused = true)]
async fn a_blob_query_is_not_redirected() {
    for mode in LocationMode::ALL {
        let script = primary_down();
        let service = builder().location_mode(mode).build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        let query = request(Method::POST, P, "/photos/cat?comp=query");
        assert_eq!(stack.oneshot(query).await.unwrap().status(), 503);
        assert_eq!(script.hosts(), [P; 6], "{mode}: it is retried, as a read");
    }
}

/// R2: the mode can be given for one request, and changed at run time.
#[tokio::test(start_paused = true)]
async fn the_mode_can_be_given_and_changed() {
    let script = healthy();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    let mut secondary_only = get();
    secondary_only
        .extensions_mut()
        .insert(RequestOptions::new().location_mode(LocationMode::SecondaryOnly));
    stack.clone().oneshot(secondary_only).await.unwrap();
    stack.clone().oneshot(get()).await.unwrap();
    service
        .operator()
        .set_location_mode(LocationMode::SecondaryThenPrimary)
        .unwrap();
    stack.clone().oneshot(get()).await.unwrap();
    stack.oneshot(put()).await.unwrap();
    assert_eq!(script.hosts(), [S, P, S, P]);
}
