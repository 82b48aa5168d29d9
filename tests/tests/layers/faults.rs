//! The whole stack over a [`FaultLayer`]: what an application sees when faults are switched on.

use http::{Method, StatusCode};
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_geo::fault::{Answer, FaultKind, FaultLayer, Rule};
use tower_geo::{Circuit, CircuitPhase, ErrorKind, Served};

use crate::support::{P, PRIMARY, S, append, get, healthy, phase, put, secs, service, word};

/// R3, G1: reads move while the primary is lost and come back after; writes are refused.
#[tokio::test(start_paused = true)]
async fn reads_move_while_faults_are_on_and_come_back() {
    let script = healthy();
    let faults = FaultLayer::builder()
        .rule(
            Rule::host(P)
                .until(secs(20))
                .answer(Answer::fault(FaultKind::Connect)),
        )
        .build()
        .unwrap();
    let switch = faults.switch();
    let service = service();
    let stack = ServiceBuilder::new()
        .layer(service.layer().clone_bodies())
        .layer(faults)
        .service(script.service());

    let before = stack.clone().oneshot(get()).await.unwrap();
    assert!(
        Served::of(before.extensions()).is_none(),
        "nothing happens yet"
    );

    switch.enable();
    for _ in 0..3 {
        let read = stack.clone().oneshot(get()).await.unwrap();
        assert_eq!(read.status(), StatusCode::OK);
        assert!(Served::of(read.extensions()).is_some_and(Served::is_from_copy));
    }
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
    let write = stack.clone().oneshot(put()).await;
    assert_eq!(word(&write), "read-only");

    tokio::time::advance(secs(31)).await;
    let read = stack.clone().oneshot(get()).await.unwrap();
    assert!(!Served::of(read.extensions()).is_some_and(Served::is_from_copy));
    assert!(stack.clone().oneshot(put()).await.is_ok());
    switch.disable();
    let report = switch.report();
    assert_eq!(report.unmatched().count(), 0, "{report}");
    let to_copy = script.hosts().iter().filter(|host| *host == S).count();
    assert_eq!(to_copy, 3);
}

/// V1: a write whose answer was lost was sent once, and its outcome is unknown.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_the_outcome_of_a_write_unknown() {
    let script = healthy();
    let faults = FaultLayer::builder()
        .rule(Rule::host("*").method(Method::PUT).answer(Answer::lost()))
        .build()
        .unwrap();
    faults.switch().enable();
    let stack = service()
        .layer()
        .clone_bodies()
        .layer(faults.layer(script.service()));
    let error = stack.oneshot(append()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome);
    assert_eq!(
        script.sends().len(),
        1,
        "the write has really arrived, once"
    );
}

/// V3, R3: an answer that is changed on its way counts as what it says.
#[tokio::test(start_paused = true)]
async fn a_changed_status_moves_a_read() {
    let script = healthy();
    let rule = Rule::host(P)
        .rate(1.0)
        .answer_times(1, Answer::real().status(StatusCode::BAD_GATEWAY));
    let faults = FaultLayer::builder().rule(rule).build().unwrap();
    faults.switch().enable();
    let stack = service()
        .layer()
        .clone_bodies()
        .layer(faults.layer(script.service()));
    let read = stack.oneshot(get()).await.unwrap();
    assert!(Served::of(read.extensions()).is_some_and(Served::is_from_copy));
    assert_eq!(script.hosts(), [P, S]);
}
