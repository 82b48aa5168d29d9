//! When is a second region asked beside the first, and what does it cost (H1 to H4)?

use std::sync::Arc;

use http::Method;
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, ServiceExt};
use tower_geo::{
    Advice, Advised, Circuit, CircuitPhase, GeoRedirectLayer, GeoService, GeoServiceBuilder,
    LocationMode, Planned, RegionId, RetryLayer, SendKind, Served, Trail,
};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;

fn hedged() -> GeoServiceBuilder {
    builder().retry(retry().hedge(ms(100)))
}

fn slow(primary: Reply, secondary: Reply) -> Script {
    Script::new()
        .any_method(P, [primary])
        .any_method(S, [secondary])
}

/// H1, H2: the second region is asked after `hedge`, and the first final answer wins.
#[tokio::test(start_paused = true)]
async fn a_slow_read_asks_a_second_region() {
    for (primary, secondary, region, after) in [
        (
            Reply::ok("").after(secs(5)),
            Reply::ok("").after(ms(20)),
            "secondary",
            120,
        ),
        (
            Reply::ok("").after(ms(110)),
            Reply::ok("").after(ms(20)),
            "primary",
            110,
        ),
        (
            Reply::ok("").after(ms(300)),
            Reply::status(503),
            "primary",
            300,
        ),
        (
            Reply::ok("").after(ms(300)),
            Reply::refused(),
            "primary",
            300,
        ),
        (
            Reply::ok("").after(ms(300)),
            Reply::status(404),
            "primary",
            300,
        ),
        (
            Reply::status(503).after(ms(150)),
            Reply::ok("").after(ms(300)),
            "secondary",
            400,
        ),
        (
            Reply::refused().after(ms(150)),
            Reply::ok("").after(ms(300)),
            "secondary",
            400,
        ),
    ] {
        let script = slow(primary, secondary);
        let service = hedged().build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        let begun = tokio::time::Instant::now();
        let answer = stack.oneshot(get()).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(begun.elapsed(), ms(after));
        let sends = script.sends();
        assert_eq!(script.hosts(), [P, S], "one more, never a third");
        assert_eq!(sends[1].at - sends[0].at, ms(100));
        let served = Served::of(answer.extensions()).unwrap();
        assert_eq!(served.region_name(), region, "E1, R10");
        let kinds: Vec<_> = served
            .trail()
            .sends()
            .iter()
            .map(|send| send.kind)
            .collect();
        assert_eq!(kinds.len(), 2);
        assert!(kinds.contains(&SendKind::First) && kinds.contains(&SendKind::Hedge));
    }
}

/// H1: reads only, and only where another region may be asked.
#[tokio::test(start_paused = true)]
async fn nothing_else_is_hedged() {
    for (mode, request) in [
        (LocationMode::PrimaryThenSecondary, put()),
        (
            LocationMode::PrimaryThenSecondary,
            request(Method::POST, P, "/c/b?comp=query"),
        ),
        (
            LocationMode::PrimaryThenSecondary,
            request(Method::OPTIONS, P, "/c/b"),
        ),
        (LocationMode::PrimaryOnly, get()),
    ] {
        let script = slow(Reply::ok("").after(secs(2)), Reply::ok(""));
        let service = hedged().build().unwrap();
        // To begin with such a mode is refused; an operator may still come to it.
        service.operator().set_location_mode(mode).unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        let answer = stack.oneshot(request).await.unwrap();
        assert_eq!(script.hosts(), [P]);
        assert!(Served::of(answer.extensions()).is_none());
    }
}

/// H1: when both have failed the operation goes on as without a hedge.
#[tokio::test(start_paused = true)]
async fn two_failures_go_on_as_without_a_hedge() {
    let script = Script::new()
        .any_method(P, [Reply::status(503).after(ms(200)), Reply::ok("primary")])
        .any_method(S, [Reply::status(503).after(ms(300))]);
    let service = hedged().build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let begun = tokio::time::Instant::now();
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(script.hosts(), [P, S, P]);
    assert_eq!(
        begun.elapsed(),
        ms(1200),
        "1 s after the primary's own answer (T1)"
    );
}

/// H3: no hedge to a region whose circuit is open, or whose bucket is under half.
#[tokio::test(start_paused = true)]
async fn no_hedge_to_a_region_that_is_in_trouble() {
    let script = slow(Reply::ok("").after(secs(1)), Reply::ok(""));
    let service = hedged().build().unwrap();
    service.operator().force_open(&SECONDARY).unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    stack.oneshot(get()).await.unwrap();
    assert_eq!(script.hosts(), [P]);

    let script = slow(Reply::ok("").after(secs(1)), Reply::ok("").after(secs(2)));
    let service = builder()
        .retry(retry().hedge(ms(100)).budget(20))
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..5 {
        stack.clone().oneshot(get()).await.unwrap();
    }
    let hedges = script.hosts().iter().filter(|host| *host == S).count();
    assert_eq!(hedges, 3, "T4: at 20, 15 and 10 tokens");
}

/// H4: a hedge that wins while the first region has given no answer is a failure of the first.
#[tokio::test(start_paused = true)]
async fn a_region_that_is_outrun_in_silence_has_failed() {
    let script = slow(Reply::hang(), Reply::ok(""));
    let service = hedged().build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        stack.clone().oneshot(get()).await.unwrap();
    }
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
}

/// H3, T4: a hedge for which the client is never ready costs nothing, is not told, and takes no
/// region away from the operation.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_never_left_leaves_no_trace() {
    let limited = |script: &Script| {
        ConcurrencyLimit::with_semaphore(script.service(), Arc::new(Semaphore::new(1)))
    };
    let script = slow(Reply::ok("").after(secs(2)), Reply::ok(""));
    let service = hedged().build().unwrap();
    let stack = service.layer().clone_bodies().layer(limited(&script));
    let answer = stack.oneshot(get()).await.unwrap();
    assert!(Served::of(answer.extensions()).is_none());
    assert_eq!(script.hosts(), [P]);
    assert_eq!(service.budget(&SECONDARY), Some((500, 500)));

    let script = slow(Reply::status(503).after(secs(2)), Reply::ok(""));
    let service = hedged().build().unwrap();
    let stack = service.layer().clone_bodies().layer(limited(&script));
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(script.hosts(), [P, S]);
}

/// Says the same to every hedge, and lets all else go ahead.
#[derive(Debug)]
struct OfHedges(Advised);

impl Advice for OfHedges {
    fn advise(&self, trail: &Trail, planned: &Planned) -> Advised {
        if planned.kind != SendKind::Hedge {
            return Advised::Proceed;
        }
        assert!(trail.sends().is_empty() && planned.after.is_zero());
        self.0
    }
}

/// T9: a hedge is a further send, so the user is asked; the first send goes on, whatever is said.
#[tokio::test(start_paused = true)]
async fn advice_is_asked_before_a_hedge() {
    let third = "third.example";
    for (advised, hosts) in [
        (Advised::Proceed, vec![P, S]),
        (Advised::Stop, vec![P]),
        (Advised::After(ms(1)), vec![P]),
        (Advised::To(RegionId::new(2)), vec![P, third]),
        // What is asked already, or does not exist, takes no hedge: as planned.
        (Advised::To(RegionId::new(0)), vec![P, S]),
        (Advised::To(RegionId::new(9)), vec![P, S]),
    ] {
        let script = Script::new()
            .any_method(P, [Reply::ok("").after(secs(1))])
            .any_method(S, [Reply::ok("").after(secs(2))])
            .any_method(third, [Reply::ok("").after(secs(2))]);
        let service = GeoService::static_copies("shop")
            .region("one", format!("https://{P}"))
            .region("two", format!("https://{S}"))
            .region("three", format!("https://{third}"))
            .location_mode(LocationMode::PrimaryThenSecondary)
            .retry(retry().hedge(ms(100)))
            .advice(Arc::new(OfHedges(advised)))
            .build()
            .unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
        assert_eq!(script.hosts(), hosts, "{advised:?}");
    }
}

/// H3: nor does one whose body cannot be sent twice.
#[tokio::test(start_paused = true)]
async fn a_read_whose_body_is_sent_once_is_not_hedged() {
    let script = slow(Reply::ok("").after(secs(2)), Reply::ok(""));
    let service = hedged().build().unwrap();
    let stack = service.layer().layer(script.service());
    let mut read = get();
    *read.body_mut() = Body::from("a query");
    let answer = stack.oneshot(read).await.unwrap();
    assert!(Served::of(answer.extensions()).is_none());
    assert_eq!(script.hosts(), [P]);
    assert_eq!(service.budget(&SECONDARY), Some((500, 500)));
}

/// R10: where no redirect below carries a hedge out, its answer is told as the region's that gave it.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_stays_home_is_told_so() {
    let script = Script::new()
        .any_method(P, [Reply::ok("").after(secs(2)), Reply::ok("")])
        .any_method(S, [Reply::ok("")]);
    let service = hedged().build().unwrap();
    let _elsewhere = GeoRedirectLayer::new(service.clone()).layer(());
    let stack = RetryLayer::new(service)
        .clone_bodies()
        .layer(script.service());
    let answer = stack.oneshot(get()).await.unwrap();
    assert_eq!(script.hosts(), [P, P]);
    assert_eq!(
        Served::of(answer.extensions()).unwrap().region_name(),
        "primary"
    );
}
