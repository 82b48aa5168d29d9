//! How old is it? F2, F3, F5, as a caller meets them.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use http::{Method, Request, Response};
use tower::ServiceExt;
use tower_geo::{
    BreakerSettings, Error, ErrorKind, Freshness, GeoService, GeoServiceBuilder, LocationMode,
    ReplicationStats, ReplicationStatus, RequestOptions, Served,
};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::{
    Body, P, S, builder, get, healthy, noon, primary_down, put, request, retry, secs, word,
};

/// The secondary says now that it has all that was written `before` noon, and that it is noon.
fn hears(service: &GeoService, before: u64) {
    let stats = ReplicationStats::new(ReplicationStatus::Live, Some(noon() - secs(before)));
    service.record_last_sync(stats, noon());
}

fn date(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

type Answer = Result<Response<()>, Error>;

async fn call(service: &GeoService, script: &Script, request: Request<Body>) -> Answer {
    let stack = service.layer().clone_bodies();
    let stack = tower::Layer::layer(&stack, script.service());
    let answer = stack.oneshot(request).await?;
    Ok(answer.map(drop))
}

fn freshness(answer: &Answer) -> Option<Freshness> {
    let answer = answer.as_ref().unwrap();
    Served::of(answer.extensions()).and_then(Served::freshness)
}

fn limited(mode: LocationMode) -> GeoService {
    builder()
        .location_mode(mode)
        .max_staleness(secs(300))
        .retry(retry().max_retries(1))
        .build()
        .unwrap()
}

/// F2: the time of the object against the Last Sync Time of the moment; of the primary nothing is
/// said, and nothing is put into the extensions of a healthy answer (E2).
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_secondary_says_how_old_it_may_be() {
    let service = builder()
        .location_mode(LocationMode::SecondaryOnly)
        .build()
        .unwrap();
    let at = |time| Reply::ok("x").header("last-modified", &date(time));
    let script = Script::new().any_method(P, [Reply::ok("x")]).any_method(
        S,
        [
            at(noon() - secs(61)),
            at(noon() - secs(61)),
            at(noon() - secs(60)),
            Reply::ok("x"),
        ],
    );
    let unknown = call(&service, &script, get()).await;
    assert_eq!(freshness(&unknown), Some(Freshness::Unknown));
    hears(&service, 60);
    for wanted in [
        Freshness::Consistent,
        Freshness::PossiblyInconsistent,
        Freshness::Unknown,
    ] {
        let answer = call(&service, &script, get()).await;
        assert_eq!(freshness(&answer), Some(wanted));
        let answer = answer.unwrap();
        let served = Served::of(answer.extensions()).unwrap();
        assert_eq!(served.last_sync(), Some(noon() - secs(60)));
        let list = [Some(noon() - secs(61)), Some(noon())];
        assert_eq!(
            served.freshness_of(list),
            Some(Freshness::PossiblyInconsistent)
        );
    }
    service
        .operator()
        .set_location_mode(LocationMode::PrimaryOnly)
        .unwrap();
    let answer = call(&service, &script, get()).await.unwrap();
    assert!(answer.extensions().is_empty());
}

/// F2 and R4: a 404 of the secondary has no time.
#[tokio::test(start_paused = true)]
async fn a_404_of_the_secondary_is_of_unknown_age() {
    let service = builder()
        .location_mode(LocationMode::SecondaryOnly)
        .build()
        .unwrap();
    hears(&service, 60);
    let modified = date(noon() - secs(100));
    let missing = Reply::status(404).header("last-modified", &modified);
    let answer = call(&service, &Script::new().any_method(S, [missing]), get()).await;
    assert_eq!(word(&answer), "404");
    assert_eq!(freshness(&answer), Some(Freshness::Unknown));
}

/// F3: the error is *stale*, with the primary's failure as its source, and both in the trail.
#[tokio::test(start_paused = true)]
async fn a_stale_error_has_the_primarys_failure_as_its_source() {
    let service = limited(LocationMode::PrimaryThenSecondary);
    hears(&service, 301);
    let script = primary_down();
    let error = call(&service, &script, get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    assert!(error.is_stale() && !error.was_never_sent());
    assert_eq!(error.source().unwrap().to_string(), "primary answered 503");
    assert_eq!(error.trail().sends().len(), 2);
    assert_eq!(script.hosts(), [P, S]);
    let text = error.to_string();
    assert!(
        text.starts_with("the secondary is too old for this read"),
        "{text}"
    );
    assert!(
        text.contains("primary: 503") && text.contains("secondary: 200"),
        "{text}"
    );

    let script = Script::new()
        .any_method(P, [Reply::hang()])
        .any_method(S, [Reply::ok("old")]);
    let error = call(&service, &script, get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    let source = error.source().unwrap().to_string();
    assert!(source.contains("did not answer in time"), "{source}");

    let script = Script::new()
        .any_method(P, [Reply::refused()])
        .any_method(S, [Reply::ok("old")]);
    let error = call(&service, &script, get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    assert!(
        crate::support::io_kind(&error).is_some(),
        "the client's own error"
    );
}

/// F3: while the primary's circuit is open, the source says so, and when to come back.
#[tokio::test(start_paused = true)]
async fn a_stale_error_says_when_the_primary_may_be_asked_again() {
    let service = builder()
        .max_staleness(secs(300))
        .breaker(BreakerSettings::new().streak(1))
        .build()
        .unwrap();
    let script = primary_down();
    hears(&service, 0);
    assert_eq!(
        word(&call(&service, &script, get()).await),
        "200",
        "opens the circuit"
    );
    tokio::time::sleep(secs(1)).await;
    hears(&service, 400);
    let error = call(&service, &script, get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    let back = error.retry_after().unwrap();
    assert!(back > secs(20) && back <= secs(30), "{back:?}");
    let source = error.source().unwrap().downcast_ref::<Error>().unwrap();
    assert!(source.is_circuit_open());
}

/// F3: a request may take less, or anything.
#[tokio::test(start_paused = true)]
async fn a_request_has_its_own_limit() {
    let service = limited(LocationMode::SecondaryOnly);
    hears(&service, 200);
    let script = healthy();
    let asks = |limit: Option<Duration>| {
        let mut get = get();
        get.extensions_mut()
            .insert(RequestOptions::new().max_staleness(limit));
        get
    };
    assert_eq!(word(&call(&service, &script, get()).await), "200");
    assert_eq!(
        word(&call(&service, &script, asks(Some(secs(199)))).await),
        "stale"
    );
    tokio::time::sleep(secs(101)).await;
    assert_eq!(word(&call(&service, &script, get()).await), "stale");
    assert_eq!(word(&call(&service, &script, asks(None)).await), "200");
}

fn floored(mode: LocationMode) -> GeoServiceBuilder {
    builder().location_mode(mode).read_your_writes(true)
}

/// What the primary says to a write at a time of its own.
fn acknowledges(at: SystemTime) -> Script {
    let stored = Reply::status(201).header("date", &date(at));
    Script::new()
        .on(P, Method::PUT, [stored])
        .on(P, Method::GET, [Reply::ok("primary")])
        .on(S, Method::GET, [Reply::ok("secondary")])
}

/// F5: until the Last Sync Time has passed the write, only the primary is read; other keys are read
/// as ever.
#[tokio::test(start_paused = true)]
async fn a_read_sees_the_write_before_it() {
    let service = floored(LocationMode::SecondaryThenPrimary).build().unwrap();
    let script = acknowledges(noon());
    hears(&service, 5);
    assert_eq!(word(&call(&service, &script, put()).await), "201");
    script.clear_sends();
    for (before, wanted) in [(5, P), (0, P)] {
        hears(&service, before);
        call(&service, &script, get()).await.unwrap();
        let other = request(Method::GET, P, "/photos/dog");
        call(&service, &script, other).await.unwrap();
        assert_eq!(script.hosts(), [wanted, S]);
        script.clear_sends();
    }
    let stats = ReplicationStats::new(ReplicationStatus::Live, Some(noon() + secs(1)));
    service.record_last_sync(stats, noon() + secs(1));
    call(&service, &script, get()).await.unwrap();
    assert_eq!(script.hosts(), [S]);
}

/// F5: a write that was not acknowledged raises nothing.
#[tokio::test(start_paused = true)]
async fn a_write_that_failed_keeps_nobody_from_the_secondary() {
    let service = floored(LocationMode::SecondaryThenPrimary)
        .retry(retry().max_retries(0))
        .build()
        .unwrap();
    let script = primary_down();
    assert_eq!(word(&call(&service, &script, put()).await), "503");
    script.clear_sends();
    call(&service, &script, get()).await.unwrap();
    assert_eq!(script.hosts(), [S]);
}

/// F5: in *secondary only* there is nobody else, so nothing is sent.
#[tokio::test(start_paused = true)]
async fn a_read_that_may_only_go_to_a_copy_that_lacks_the_write_is_stale() {
    let service = floored(LocationMode::SecondaryOnly).build().unwrap();
    let script = acknowledges(noon());
    call(&service, &script, put()).await.unwrap();
    script.clear_sends();
    let error = call(&service, &script, get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    assert!(error.was_never_sent() && error.source().is_none());
    assert!(script.hosts().is_empty());
}

/// F5: a write holds for the reads of what it has changed, also where they name it otherwise.
#[tokio::test(start_paused = true)]
async fn a_write_under_another_path_is_seen() {
    for (host, write, target, read, other) in [
        (
            "contoso.queue.core.windows.net",
            Method::DELETE,
            "/jobs/messages/7?popreceipt=1",
            "/jobs/messages?peekonly=true",
            Some("/mail/messages?peekonly=true"),
        ),
        (
            "contoso.queue.core.windows.net",
            Method::DELETE,
            "/jobs",
            "/jobs/messages?peekonly=true",
            None,
        ),
        (
            "contoso.table.core.windows.net",
            Method::DELETE,
            "/Tables('people')",
            "/people(PartitionKey='a',RowKey='b')",
            None,
        ),
        (
            P,
            Method::PUT,
            "/$root/logo.png",
            "/logo.png",
            Some("/c/logo.png"),
        ),
    ] {
        let service = GeoService::azure_storage(format!("https://{host}"))
            .location_mode(LocationMode::SecondaryThenPrimary)
            .read_your_writes(true)
            .retry(retry())
            .build()
            .unwrap();
        let secondary = host.replace("contoso", "contoso-secondary");
        let script = Script::new()
            .any_method(host, [Reply::status(204).header("date", &date(noon()))])
            .any_method(&secondary, [Reply::ok("secondary")]);
        hears(&service, 0);
        let to = |method, target| request(method, host, target);
        call(&service, &script, to(write, target)).await.unwrap();
        script.clear_sends();
        call(&service, &script, to(Method::GET, read))
            .await
            .unwrap();
        assert_eq!(script.hosts(), [host], "{target}");
        script.clear_sends();
        if let Some(other) = other {
            call(&service, &script, to(Method::GET, other))
                .await
                .unwrap();
            assert_eq!(script.hosts(), [secondary.as_str()], "{other}");
        }
    }
}

/// F5: a batch may have written anything.
#[tokio::test(start_paused = true)]
async fn a_batch_keeps_every_read_from_the_secondary() {
    let service = floored(LocationMode::SecondaryThenPrimary).build().unwrap();
    let done = Reply::status(202).header("date", &date(noon()));
    let script = acknowledges(noon()).on(P, Method::POST, [done]);
    let batch = request(Method::POST, P, "/?comp=batch");
    assert_eq!(word(&call(&service, &script, batch).await), "202");
    script.clear_sends();
    call(&service, &script, get()).await.unwrap();
    assert_eq!(script.hosts(), [P]);
}

/// F5 and B4: not even a dead primary makes it a read of the secondary.
#[tokio::test(start_paused = true)]
async fn a_dead_primary_does_not_lower_the_floor() {
    let service = floored(LocationMode::PrimaryThenSecondary)
        .retry(retry().max_retries(2))
        .build()
        .unwrap();
    let script = acknowledges(noon());
    call(&service, &script, put()).await.unwrap();
    script.replace(P, [Reply::status(503)]);
    script.clear_sends();
    assert_eq!(word(&call(&service, &script, get()).await), "503");
    assert_eq!(script.hosts(), [P, P, P]);
}

/// Settings are checked when the service is built.
#[test]
fn a_limit_of_nothing_is_refused() {
    let error = builder().max_staleness(Duration::ZERO).build().unwrap_err();
    assert_eq!(error.setting(), "max_staleness");
}
