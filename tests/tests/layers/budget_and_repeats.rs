//! When is a send repeated, at what price, and who may say no (T1 to T5, T8, T9)?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request};
use tower::{Layer, ServiceExt};
use tower_geo::{Advice, Advised, ErrorKind, LocationMode, Planned, RegionId, Served, Trail};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;

fn both_down() -> Script {
    Script::new()
        .any_method(P, [Reply::status(503)])
        .any_method(S, [Reply::status(503)])
}

/// When the sends left, in milliseconds after the first, and where they went.
fn times(script: &Script) -> Vec<(u128, String)> {
    let sends = script.sends();
    let first = sends[0].at;
    sends
        .iter()
        .map(|send| {
            let host = if send.authority == P { "P" } else { "S" };
            (send.at.duration_since(first).as_millis(), host.to_owned())
        })
        .collect()
}

/// T1, T2, R3: returns wait 1, 2, 4 s, counted from each region's own last answer; no more sends
/// than 1 + `max_retries`.
#[tokio::test(start_paused = true)]
async fn returns_wait_and_are_counted() {
    let script = both_down();
    let stack = service().layer().clone_bodies().layer(script.service());
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 503);
    let expected = [
        (0, "P"),
        (0, "S"),
        (1000, "P"),
        (1000, "S"),
        (3000, "P"),
        (3000, "S"),
    ];
    assert_eq!(
        times(&script),
        expected.map(|(at, host)| (at, host.to_owned()))
    );
}

/// T4: a first visit costs 1, a return 14 (5 after throttling), a success gives back its own.
#[tokio::test(start_paused = true)]
async fn the_region_that_is_sent_to_pays() {
    let level = |service: &tower_geo::GeoService| {
        [PRIMARY, SECONDARY].map(|region| service.budget(&region).unwrap().0)
    };
    for (replies, spent) in [
        (both_down(), [28, 29]),
        (
            Script::new()
                .any_method(P, [Reply::status(429)])
                .any_method(S, [Reply::status(429)]),
            [10, 11],
        ),
        (primary_down(), [0, 0]),
        (
            Script::new()
                .any_method(P, [Reply::status(503), Reply::ok("")])
                .any_method(S, [Reply::status(503)]),
            [0, 1],
        ),
    ] {
        let service = service();
        let stack = service.layer().clone_bodies().layer(replies.service());
        stack.oneshot(get()).await.unwrap();
        assert_eq!(level(&service), [500 - spent[0], 500 - spent[1]]);
    }
}

/// T4: when no region can be paid, what there is is handed over.
#[tokio::test(start_paused = true)]
async fn an_empty_bucket_ends_an_operation_with_its_answer() {
    let script = both_down();
    let service = builder()
        .breaker(None)
        .retry(retry().budget(20))
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    stack.clone().oneshot(get()).await.unwrap();
    assert_eq!(script.sends().len(), 4, "1, 1, 14 and 14 tokens");
    script.clear_sends();
    let answer = stack.oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(times(&script), [(0, "P".to_owned()), (0, "S".to_owned())]);
}

/// T3: the deadline ends an operation at once when the wait before the next send would pass it.
#[tokio::test(start_paused = true)]
async fn no_wait_passes_the_deadline() {
    let script = both_down();
    let service = builder().retry(retry().deadline(secs(2))).build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let begun = tokio::time::Instant::now();
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 503);
    assert_eq!(begun.elapsed(), secs(1), "the next would have been at 3 s");
    assert_eq!(script.sends().len(), 4);
}

/// T3: a send has its share of the deadline; the error is *deadline* only if it cut the only send.
#[tokio::test(start_paused = true)]
async fn a_hung_region_gets_its_share_of_the_deadline() {
    let hung = || {
        Script::new()
            .any_method(P, [Reply::hang()])
            .any_method(S, [Reply::hang()])
    };
    let settings = || retry().attempt_timeout(None).deadline(secs(20));
    let script = hung();
    let service = builder().retry(settings()).build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let begun = tokio::time::Instant::now();
    let error = stack.oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(begun.elapsed(), secs(20));
    assert_eq!(
        times(&script),
        [(0, "P".to_owned()), (10_000, "S".to_owned())]
    );

    let script = hung();
    let service = builder()
        .retry(settings())
        .location_mode(LocationMode::PrimaryOnly)
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let error = stack.clone().oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert!(error.is_timeout());
    let error = stack.oneshot(put()).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::UnknownOutcome,
        "a write that was sent"
    );
}

/// T1: a told wait rests the region for the whole service: other reads start elsewhere.
#[tokio::test(start_paused = true)]
async fn a_told_wait_rests_the_region() {
    let script = Script::new()
        .any_method(
            P,
            [
                Reply::status(503).header("retry-after", "8"),
                Reply::ok("primary"),
            ],
        )
        .any_method(S, [Reply::ok("secondary")]);
    let stack = service().layer().clone_bodies().layer(script.service());
    stack.clone().oneshot(get()).await.unwrap();
    script.clear_sends();
    stack.clone().oneshot(get()).await.unwrap();
    assert_eq!(script.hosts(), [S]);
    let begun = tokio::time::Instant::now();
    assert_eq!(stack.clone().oneshot(put()).await.unwrap().status(), 200);
    assert_eq!(begun.elapsed(), secs(8), "a write has nowhere else to go");
    stack.oneshot(get()).await.unwrap();
    assert_eq!(script.hosts(), [S, P, P]);
}

/// T5: the same signed bytes are not sent again more than 5 minutes after their date, or after
/// the first send where there is none.
#[tokio::test(start_paused = true)]
async fn old_signatures_are_not_sent_again() {
    let signed = |ago: u64| {
        let mut request = put();
        let date = noon() - secs(ago);
        let date = httpdate(date);
        request
            .headers_mut()
            .insert("x-ms-date", date.parse().unwrap());
        request
    };
    let slow = || {
        retry()
            .deadline(None)
            .max_delay(secs(600))
            .delay(secs(200))
            .max_retries(9)
    };
    for (request, sends) in [
        // Waits of 200 s, 400 s, …
        (signed(0), 2),
        (signed(90), 2),
        (signed(101), 1),
        (signed(400), 1),
        (put(), 2),
    ] {
        let script = Script::new().any_method(P, [Reply::status(503)]);
        let service = builder().retry(slow()).build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        let begun = tokio::time::Instant::now();
        assert_eq!(stack.oneshot(request).await.unwrap().status(), 503);
        assert_eq!(script.sends().len(), sends);
        assert!(
            begun.elapsed() <= secs(200),
            "it does not wait for what it will not do"
        );
    }
}

/// An HTTP date of 1 June 2025, in the morning.
fn httpdate(at: std::time::SystemTime) -> String {
    let ago = noon().duration_since(at).unwrap().as_secs();
    let second = 12 * 3600 - ago;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("Sun, 01 Jun 2025 {hour:02}:{minute:02}:{second:02} GMT")
}

/// Counts warnings on this thread.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

fn with_id(mut request: Request<Body>, id: &str) -> Request<Body> {
    request
        .headers_mut()
        .insert("x-ms-client-request-id", id.parse().unwrap());
    request
}

/// T8: a request whose id is that of an operation that failed within the last minute pays 14, is
/// sent all the same, and warns once.
#[tokio::test(start_paused = true)]
async fn a_repeat_from_above_pays_and_warns_once() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let script = Script::new().any_method(P, [Reply::status(503)]);
    let service = builder()
        .breaker(None)
        .retry(retry().max_retries(1))
        .location_mode(LocationMode::PrimaryOnly)
        .build()
        .unwrap();
    let level = || service.budget(&PRIMARY).unwrap().0;
    let stack = service.layer().clone_bodies().layer(script.service());
    stack.clone().oneshot(with_id(get(), "a")).await.unwrap();
    assert_eq!((level(), warnings.0.load(Ordering::Relaxed)), (486, 0));
    script.replace(P, [Reply::ok("primary")]);
    script.clear_sends();
    let other = stack.clone().oneshot(with_id(get(), "b")).await.unwrap();
    assert!(Served::of(other.extensions()).is_none());
    assert_eq!(level(), 487, "another operation: its success gives 1 back");
    for repeat in 1..=3_u32 {
        stack.clone().oneshot(with_id(get(), "a")).await.unwrap();
        assert_eq!(
            level(),
            487 - 13 * repeat,
            "14 for the repeat, 1 for the success"
        );
    }
    assert_eq!(script.sends().len(), 4);
    assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
    tokio::time::sleep(secs(61)).await;
    let before = level();
    stack.oneshot(with_id(get(), "a")).await.unwrap();
    assert_eq!(level(), before + 1, "forgotten after a minute");
}

/// T8: also when the operation could not be repeated here, so that no copy of it was kept.
#[tokio::test(start_paused = true)]
async fn an_operation_without_a_copy_is_remembered_too() {
    for max_retries in [0, 5] {
        let script = Script::new().any_method(P, [Reply::reset()]);
        let service = builder()
            .breaker(None)
            .retry(retry().max_retries(max_retries))
            .build()
            .unwrap();
        // Without cloning, this body can be sent once.
        let stack = service.layer().layer(script.service());
        for _ in 0..2 {
            let error = stack
                .clone()
                .oneshot(with_id(append(), "a"))
                .await
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownOutcome);
        }
        assert_eq!(service.budget(&PRIMARY).unwrap().0, 486, "{max_retries}");
    }
}

/// Gives the same advice each time, and counts.
#[derive(Debug)]
struct Always(Advised, AtomicUsize);

impl Advice for Always {
    fn advise(&self, trail: &Trail, planned: &Planned) -> Advised {
        assert_eq!(
            trail.sends().len(),
            self.1.fetch_add(1, Ordering::Relaxed) + 1
        );
        assert!(planned.region.index() < 2);
        self.0
    }
}

async fn advised(advice: Advised, request: Request<Body>) -> (String, Script, usize) {
    let script = both_down();
    let always = Arc::new(Always(advice, AtomicUsize::new(0)));
    let service = builder()
        .breaker(None)
        .retry(retry().deadline(secs(30)))
        .advice(always.clone())
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let answer = stack.oneshot(request).await;
    (word(&answer), script, always.1.load(Ordering::Relaxed))
}

/// T9: advice is asked before every further send, once, with the trail and the plan.
#[tokio::test(start_paused = true)]
async fn advice_is_asked_before_every_further_send() {
    let (word, script, asked) = advised(Advised::Proceed, get()).await;
    assert_eq!((word.as_str(), script.sends().len(), asked), ("503", 6, 5));
}

/// T9: it may stop.
#[tokio::test(start_paused = true)]
async fn advice_may_stop() {
    let (word, script, asked) = advised(Advised::Stop, get()).await;
    assert_eq!((word.as_str(), script.sends().len(), asked), ("503", 1, 1));
}

/// T9, T2, T3: it may change the wait, but neither past the deadline nor more often than allowed.
#[tokio::test(start_paused = true)]
async fn advice_may_change_the_wait_within_bounds() {
    let (_, script, _) = advised(Advised::After(ms(0)), get()).await;
    assert_eq!(script.sends().len(), 6, "T2");
    assert_eq!(times(&script)[5].0, 0);
    let (_, script, _) = advised(Advised::After(secs(10)), get()).await;
    let at: Vec<_> = times(&script).into_iter().map(|(at, _)| at).collect();
    assert_eq!(at, [0, 10_000, 20_000], "T3: 30 s would be the deadline");
}

/// T9, R1: it may choose another admissible region, but none for a write.
#[tokio::test(start_paused = true)]
async fn advice_may_choose_a_region_but_not_for_writes() {
    let secondary = RegionId::new(1);
    let (_, script, _) = advised(Advised::To(secondary), get()).await;
    assert_eq!(script.hosts()[1..], [S; 5]);
    let (_, script, _) = advised(Advised::To(RegionId::FIRST), get()).await;
    assert_eq!(script.hosts()[..5], [P; 5]);
    assert_eq!(times(&script)[1].0, 1000, "a return waits");
    assert_eq!(
        script.hosts()[5..],
        [S],
        "a fifth return would pass the deadline: no effect"
    );
    let (_, script, _) = advised(Advised::To(secondary), put()).await;
    assert_eq!(script.hosts(), [P; 5]);
    let (_, script, _) = advised(Advised::To(RegionId::new(9)), get()).await;
    assert_eq!(
        script.sends().len(),
        6,
        "there is no such region: no effect"
    );
}

/// V1: a write that may have been applied is sent again only if that is harmless.
#[tokio::test(start_paused = true)]
async fn only_harmless_writes_are_sent_again_after_a_lost_answer() {
    let harmless = {
        let mut request = append();
        request
            .headers_mut()
            .insert("if-none-match", "*".parse().unwrap());
        request
    };
    let marked = {
        let mut request = append();
        request
            .extensions_mut()
            .insert(tower_geo::RequestOptions::new().replayable());
        request
    };
    for (request, sends, end) in [
        (append(), 1, "unknown-outcome"),
        (
            request(Method::POST, P, "/photos/cat"),
            1,
            "unknown-outcome",
        ),
        (put(), 6, "unknown-outcome"),
        (harmless, 6, "unknown-outcome"),
        (marked, 6, "unknown-outcome"),
        (get(), 6, "transport"),
    ] {
        let script = Script::new()
            .any_method(P, [Reply::reset()])
            .any_method(S, [Reply::reset()]);
        let service = builder().breaker(None).build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        assert_eq!(word(&stack.oneshot(request).await), end);
        assert_eq!(script.sends().len(), sends);
    }
    for failure in [Reply::refused(), Reply::status(429)] {
        let script = Script::new().any_method(P, [failure, Reply::status(201)]);
        let stack = service().layer().clone_bodies().layer(script.service());
        assert_eq!(
            word(&stack.oneshot(append()).await),
            "201",
            "surely not applied"
        );
    }
}
