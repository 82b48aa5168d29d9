//! Can whoever listens follow what the rules do (B2, B4, B5, B8, R6), and does the trail say the same?

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tower::{Layer, ServiceExt};
use tower_geo::telemetry::Metrics;
use tower_geo::{
    Circuit, CircuitPhase, Ending, Event, EventKind, GeoServiceBuilder, LogEvents, RateRule,
    Served, SlowRule,
};
use tower_geo_policy::events::{Usage, Why};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;
use crate::watching::{Metered, Told};

/// Keeps events as they are.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Event>>>);

impl Heard {
    fn listening(builder: GeoServiceBuilder) -> (Self, tower_geo::GeoService) {
        let heard = Self::default();
        let all = Arc::clone(&heard.0);
        let listener = move |event: &Event| all.lock().unwrap().push(event.clone());
        let service = builder.listener(Arc::new(listener)).build().unwrap();
        (heard, service)
    }

    /// Why the circuit of the primary's reads opened, for how long, and how many suspects there were.
    fn openings(&self) -> Vec<(Why, Option<Duration>, u32)> {
        let all = self.0.lock().unwrap();
        let opening = |event: &Event| match event.kind {
            EventKind::Breaker {
                to: CircuitPhase::Open,
                circuit: Circuit::Reads,
                why,
                until,
                suspects,
                ..
            } => Some((why, until.map(|until| until.since(event.at)), suspects)),
            _ => None,
        };
        all.iter().filter_map(opening).collect()
    }
}

/// B4: the event says until when, so that growth can be followed, its limit, and that it is forgiven.
#[tokio::test(start_paused = true)]
async fn the_growth_of_the_wait_and_its_end_are_told() {
    let settings = breaker().open_for(secs(10)).max_open_for(secs(30));
    let (heard, service) = Heard::listening(builder().breaker(settings));
    let script = primary_down();
    let stack = service.layer().clone_bodies().layer(script.service());
    let read = async || stack.clone().oneshot(get()).await.unwrap();
    for _ in 0..3 {
        read().await;
    }
    for wait in [10, 20, 30] {
        tokio::time::sleep(secs(wait)).await;
        let answer = read().await;
        let trail = Served::of(answer.extensions()).unwrap().trail();
        let probes: Vec<_> = trail.sends().iter().map(|send| send.probe).collect();
        assert_eq!(
            probes,
            [true, false],
            "the trail says which send was the probe"
        );
    }
    script.replace(P, [Reply::ok("")]);
    tokio::time::sleep(secs(30)).await;
    read().await;
    tokio::time::sleep(secs(31)).await;
    script.replace(P, [Reply::status(503)]);
    for _ in 0..3 {
        read().await;
    }
    let waits = [10, 20, 30, 30, 10].map(|wait| Some(secs(wait)));
    let told: Vec<_> = heard.openings().iter().map(|&(_, wait, _)| wait).collect();
    assert_eq!(told, waits, "as long closed as it was open: forgiven");
}

/// B8: the event tells failures from silence, of which no caller has a trail: it has left.
#[tokio::test(start_paused = true)]
async fn suspects_are_told_from_answers() {
    let play = async |replies: Vec<Reply>, patience: [Duration; 3]| {
        let (heard, service) = Heard::listening(builder());
        let script = Script::new()
            .any_method(P, replies)
            .any_method(S, [Reply::ok("")]);
        let stack = service.layer().clone_bodies().layer(script.service());
        for patience in patience {
            let read = stack.clone().oneshot(get());
            let _left = tokio::time::timeout(patience, read).await;
            tokio::time::sleep(secs(1)).await;
        }
        heard.openings()
    };
    let (answer, silence) = (Reply::status(503), Reply::hang());
    let wait = Some(secs(30));
    let all_leave = play(vec![silence.clone()], [secs(2); 3]).await;
    assert_eq!(all_leave, [(Why::Streak, wait, 3)]);
    let one_leaves = play(vec![answer.clone(), silence, answer.clone()], [secs(2); 3]).await;
    assert_eq!(one_leaves, [(Why::Streak, wait, 1)]);
    let nobody_leaves = play(vec![answer], [secs(2); 3]).await;
    assert_eq!(nobody_leaves, [(Why::Streak, wait, 0)]);
    let early = play(vec![Reply::hang()], [ms(900); 3]).await;
    assert_eq!(early, [], "they say nothing");
}

/// B5: the ramp's share can be looked up, and its end is told, once; the log has it, too.
#[tokio::test(start_paused = true)]
async fn the_ramp_and_its_end_are_told() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let settings = breaker().ramp([0.05, 0.25]).ramp_step(secs(3));
    let builder = builder()
        .breaker(settings)
        .listener(Arc::new(LogEvents::new()));
    let (heard, service) = Heard::listening(builder);
    let metered = Metered::new();
    let _metrics = Metrics::new(&metered.meter(), &service);
    let share = || {
        let shares = metered.of("tower_geo.circuit.share");
        let reads = shares
            .iter()
            .find(|(keys, _)| keys == "circuit=reads,region=primary");
        (reads.unwrap().1 * 100.0).round()
    };
    let script = primary_down();
    let stack = service.layer().clone_bodies().layer(script.service());
    let read = async || stack.clone().oneshot(get()).await.unwrap();
    let mut seen = vec![share()];
    for _ in 0..3 {
        read().await;
    }
    seen.push(share());
    script.replace(P, [Reply::ok("")]);
    for seconds in [30, 4, 4] {
        tokio::time::sleep(secs(seconds)).await;
        read().await;
        read().await;
        seen.push(share());
    }
    assert_eq!(seen, [100.0, 0.0, 5.0, 25.0, 100.0]);
    let kinds: Vec<_> = heard
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|event| event.kind)
        .collect();
    let over = |kind: &&EventKind| matches!(kind, EventKind::RampOver { .. });
    assert_eq!(kinds.iter().filter(over).count(), 1, "{kinds:?}");
    assert!(over(&kinds.last().unwrap()), "after all else");
    assert_eq!(
        told.with("ramp"),
        ["INFO all reads are let back: the ramp is over service=blob region=primary circuit=reads"]
    );
}

/// B2: that calls were slow is a reason of its own; how slow each was is known to its caller.
#[tokio::test(start_paused = true)]
async fn slow_calls_are_told_as_such() {
    let slow = SlowRule::new(secs(1), RateRule::new(0.5, secs(60), 3));
    let (heard, service) = Heard::listening(builder().breaker(breaker().slow(slow)));
    let script = Script::new()
        .any_method(P, [Reply::ok("").after(ms(1200))])
        .any_method(S, [Reply::ok("")]);
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        stack.clone().oneshot(get()).await.unwrap();
    }
    assert_eq!(heard.openings(), [(Why::Slow, Some(secs(30)), 0)]);
}

/// R6: that a secondary cannot be read is told once, and that it is tried again; the trail has the
/// refusal.
#[tokio::test(start_paused = true)]
async fn a_secondary_that_is_set_aside_is_told_once() {
    let mode = tower_geo::LocationMode::SecondaryThenPrimary;
    let (heard, service) = Heard::listening(builder().location_mode(mode));
    let refusal = Reply::status(403).header("x-ms-error-code", "InsufficientAccountPermissions");
    let script = Script::new()
        .any_method(P, [Reply::ok("primary")])
        .any_method(S, [refusal]);
    let stack = service.layer().clone_bodies().layer(script.service());
    let read = async || stack.clone().oneshot(get()).await.unwrap();
    let first = read().await;
    let trail = Served::of(first.extensions()).unwrap().trail();
    let endings: Vec<_> = trail.sends().iter().map(|send| send.ending).collect();
    let answer = |code| Ending::Answer(http::StatusCode::from_u16(code).unwrap());
    assert_eq!(endings, [answer(403), answer(200)]);
    for _ in 0..5 {
        read().await;
    }
    script.replace(S, [Reply::ok("secondary")]);
    tokio::time::sleep(secs(301)).await;
    read().await;
    let usage = |event: &Event| match event.kind {
        EventKind::Secondary { to, .. } => Some(to),
        _ => None,
    };
    let heard = heard.0.lock().unwrap();
    let told: Vec<_> = heard.iter().filter_map(usage).collect();
    assert_eq!(told, [Usage::SetAside, Usage::InUse]);
}
