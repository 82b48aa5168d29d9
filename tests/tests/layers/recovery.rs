//! When does a region lose its trust, and how does it get it back (B1 to B8, V4, R9)?

use http::{Method, Response};
use http_body_util::BodyExt;
use tower::timeout::TimeoutLayer;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_geo::{
    Circuit, CircuitBreakerLayer, CircuitPhase, GeoRedirectLayer, GeoService, GeoServiceBuilder,
    LocationMode, RateRule, RetryLayer, Served, SlowRule,
};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;

/// A service whose primary has failed three reads with 503.
async fn opened(builder: GeoServiceBuilder, script: &Script) -> GeoService {
    let service = builder.build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
    script.clear_sends();
    service
}

/// B4: 100 reads at once while half open send exactly `probes` to the primary, and none fails.
#[tokio::test(start_paused = true)]
async fn half_open_admits_exactly_its_probes() {
    for (probes, answer) in [
        (1, Reply::ok("primary").after(ms(100))),
        (3, Reply::ok("primary").after(ms(100))),
        (3, Reply::status(503).after(ms(100))),
        (3, Reply::refused().after(ms(100))),
    ] {
        let script = primary_down();
        let service = opened(builder().breaker(breaker().probes(probes)), &script).await;
        script.replace(P, [answer]);
        tokio::time::sleep(secs(30)).await;
        let stack = service.layer().clone_bodies().layer(script.service());
        let reads: Vec<_> = (0..100)
            .map(|_| tokio::spawn(stack.clone().oneshot(get())))
            .collect();
        for read in reads {
            assert_eq!(word(&read.await.unwrap()), "200");
        }
        let at_primary = script.hosts().iter().filter(|host| *host == P).count();
        assert_eq!(at_primary, usize::try_from(probes).unwrap());
    }
}

/// B5: `close_after` good probes close it, and all reads are back (no ramp here).
#[tokio::test(start_paused = true)]
async fn good_probes_close_the_circuit() {
    let script = primary_down();
    let events = Events::default();
    let builder = builder()
        .breaker(breaker().close_after(2))
        .listener(std::sync::Arc::new(events.clone()));
    let service = opened(builder, &script).await;
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(30)).await;
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..4 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    assert_eq!(script.hosts(), [P; 4]);
    assert_eq!(
        events.all(),
        [
            "Reads Open streak",
            "gate read-only breaker",
            "Reads HalfOpen waited",
            "gate trial breaker",
            "Reads Closed probe",
            "gate read-write breaker",
        ],
        "B10: exactly once, in order"
    );
}

/// B5: traffic returns along the ramp: at first only for the chosen share of reads.
#[tokio::test(start_paused = true)]
async fn reads_return_along_the_ramp() {
    for (draw, hosts) in [(0.02, [P, P, P]), (0.1, [S, P, P]), (0.5, [S, S, P])] {
        let script = primary_down();
        let builder = builder()
            .breaker(breaker().ramp(vec![0.05, 0.25]).ramp_step(secs(3)))
            .random(move || draw);
        let service = opened(builder, &script).await;
        script.replace(P, [Reply::ok("primary")]);
        tokio::time::sleep(secs(30)).await;
        let stack = service.layer().clone_bodies().layer(script.service());
        assert_eq!(
            stack.clone().oneshot(get()).await.unwrap().status(),
            200,
            "the probe"
        );
        script.clear_sends();
        for _ in 0..3 {
            assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
            tokio::time::sleep(ms(3100)).await;
        }
        assert_eq!(script.hosts(), hosts, "{draw}");
    }
}

/// B6: a success of an older generation changes nothing.
#[tokio::test(start_paused = true)]
async fn a_late_success_does_not_close() {
    let script = Script::new()
        .any_method(P, [Reply::ok("late").after(secs(10)), Reply::status(503)])
        .any_method(S, [Reply::ok("secondary")]);
    let service = builder()
        .retry(retry().attempt_timeout(None).deadline(None))
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let late = tokio::spawn(stack.clone().oneshot(get()));
    tokio::task::yield_now().await;
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    let body = late
        .await
        .unwrap()
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "late");
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
}

/// B6: nor does a late failure open a circuit that has closed meanwhile.
#[tokio::test(start_paused = true)]
async fn a_late_failure_does_not_count() {
    let script = Script::new()
        .any_method(P, [Reply::reset().after(secs(40)), Reply::status(503)])
        .any_method(S, [Reply::ok("secondary")]);
    let service = builder()
        .retry(retry().attempt_timeout(None).deadline(None))
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let late = tokio::spawn(stack.clone().oneshot(get()));
    tokio::task::yield_now().await;
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(30)).await;
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Closed
    );
    assert_eq!(late.await.unwrap().unwrap().status(), 200);
    assert_eq!(service.circuit(&PRIMARY, Circuit::Reads).unwrap().streak, 0);
}

/// B4, G1: a client that only writes opens the circuit, is refused, tries once, and recovers.
#[tokio::test(start_paused = true)]
async fn a_client_that_only_writes_recovers() {
    for (failure, kinds) in [
        (Reply::status(503), "503"),
        (Reply::refused(), "transport"),
        (Reply::reset(), "unknown-outcome"),
    ] {
        let script = Script::new().any_method(P, [failure]);
        let service = builder().retry(retry().max_retries(0)).build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        for _ in 0..3 {
            assert_eq!(word(&stack.clone().oneshot(append()).await), kinds);
        }
        assert_eq!(word(&stack.clone().oneshot(append()).await), "read-only");
        tokio::time::sleep(secs(30)).await;
        assert_eq!(
            word(&stack.clone().oneshot(append()).await),
            kinds,
            "the trial fails"
        );
        assert_eq!(word(&stack.clone().oneshot(append()).await), "read-only");
        script.replace(P, [Reply::status(201)]);
        tokio::time::sleep(secs(59)).await;
        assert_eq!(
            word(&stack.clone().oneshot(append()).await),
            "read-only",
            "twice as long"
        );
        tokio::time::sleep(secs(1)).await;
        assert_eq!(word(&stack.clone().oneshot(append()).await), "201");
        for circuit in [Circuit::Reads, Circuit::Writes] {
            assert_eq!(phase(&service, &PRIMARY, circuit), CircuitPhase::Closed);
        }
        assert_eq!(word(&stack.clone().oneshot(append()).await), "201");
    }
}

/// B1: a successful write proves reads, too; a successful read proves reads only.
#[tokio::test(start_paused = true)]
async fn a_write_proves_reads_but_a_read_does_not_prove_writes() {
    let script = Script::new()
        .any_method(P, [Reply::refused()])
        .any_method(S, [Reply::ok("secondary")]);
    let service = opened(builder(), &script).await;
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Writes),
        CircuitPhase::Open
    );
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(30)).await;
    let stack = service.layer().clone_bodies().layer(script.service());
    assert_eq!(word(&stack.clone().oneshot(get()).await), "200");
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Closed
    );
    assert_ne!(
        phase(&service, &PRIMARY, Circuit::Writes),
        CircuitPhase::Closed
    );
    assert_eq!(word(&stack.clone().oneshot(put()).await), "200");
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Writes),
        CircuitPhase::Closed
    );
}

/// B2: an operation gives a circuit one failure, however often it is sent again.
#[tokio::test(start_paused = true)]
async fn an_operation_gives_one_failure() {
    let script = Script::new()
        .any_method(
            P,
            [
                Reply::status(503),
                Reply::reset(),
                Reply::status(500),
                Reply::refused(),
            ],
        )
        .any_method(S, [Reply::status(503)]);
    for request in [get(), put()] {
        let service = service();
        let stack = service.layer().clone_bodies().layer(script.service());
        let circuit = if request.method() == Method::GET {
            Circuit::Reads
        } else {
            Circuit::Writes
        };
        script.clear_sends();
        let _ = stack.oneshot(request).await;
        assert!(script.sends().len() > 4, "{:?}", script.hosts());
        assert_eq!(service.circuit(&PRIMARY, circuit).unwrap().streak, 1);
    }
}

/// B8: callers that leave after 2 s do not hide a primary that is frozen. One at a time it opens
/// with the tenth; ten at once, when the first leaves.
#[tokio::test(start_paused = true)]
async fn impatient_callers_do_not_hide_a_frozen_primary() {
    let frozen = || {
        Script::new()
            .any_method(P, [Reply::hang()])
            .any_method(S, [Reply::ok("secondary")])
    };
    let script = frozen();
    let service = builder().breaker(breaker().streak(10)).build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    for call in 0..10 {
        assert_eq!(
            phase(&service, &PRIMARY, Circuit::Reads),
            CircuitPhase::Closed,
            "{call}"
        );
        let left = tokio::time::timeout(secs(2), stack.clone().oneshot(get())).await;
        assert!(left.is_err());
    }
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
    assert_eq!(
        word(&stack.oneshot(get()).await),
        "200",
        "the secondary, at once"
    );

    let script = frozen();
    let service = builder().breaker(breaker().streak(10)).build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let calls: Vec<_> = (0..10)
        .map(|_| tokio::spawn(tokio::time::timeout(secs(2), stack.clone().oneshot(get()))))
        .collect();
    for call in calls {
        assert!(call.await.unwrap().is_err());
    }
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
}

/// B8: a call that is dropped earlier than `suspect_after` counts as nothing.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_early_counts_as_nothing() {
    let script = Script::new().any_method(P, [Reply::hang()]);
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..20 {
        let left = tokio::time::timeout(ms(900), stack.clone().oneshot(get())).await;
        assert!(left.is_err());
    }
    let circuit = service.circuit(&PRIMARY, Circuit::Reads).unwrap();
    assert_eq!((circuit.phase, circuit.streak), (CircuitPhase::Closed, 0));
}

/// B7: a probe that hangs is given up at `probe_deadline`, and its read falls over at that moment.
#[tokio::test(start_paused = true)]
async fn a_hung_probe_falls_over_at_its_deadline() {
    let script = primary_down();
    let service = opened(
        builder().breaker(breaker().probe_deadline(secs(2))),
        &script,
    )
    .await;
    script.replace(P, [Reply::hang()]);
    tokio::time::sleep(secs(30)).await;
    let stack = service.layer().clone_bodies().layer(script.service());
    let begun = tokio::time::Instant::now();
    let answer = stack.clone().oneshot(get()).await.unwrap();
    assert_eq!(begun.elapsed(), secs(2));
    let served = Served::of(answer.extensions()).unwrap();
    assert!(served.is_from_copy());
    assert!(served.trail().sends()[0].probe);
    assert_eq!(script.hosts(), [P, S]);
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
}

/// V4: a 2xx whose body breaks off is a failure, although its head was good.
#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_a_failure() {
    let script = Script::new()
        .any_method(P, [Reply::ok("primary").cut_body_after(3)])
        .any_method(S, [Reply::ok("secondary")]);
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    for streak in 1..=3 {
        let answer = stack.clone().oneshot(get()).await.unwrap();
        let error = answer.into_body().collect().await.unwrap_err();
        assert_eq!(io_kind(&error), Some(std::io::ErrorKind::UnexpectedEof));
        if streak < 3 {
            assert_eq!(
                service.circuit(&PRIMARY, Circuit::Reads).unwrap().streak,
                streak
            );
        }
    }
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
}

/// V4: a body that is dropped after the head lets the head's verdict count.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_is_a_success() {
    let script = Script::new()
        .any_method(
            P,
            [
                Reply::status(503),
                Reply::status(503),
                Reply::ok("primary").stall_body_after(3),
                Reply::status(503),
            ],
        )
        .any_method(S, [Reply::ok("secondary")]);
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    let streak = || service.circuit(&PRIMARY, Circuit::Reads).unwrap().streak;
    for _ in 0..2 {
        stack.clone().oneshot(get()).await.unwrap();
    }
    assert_eq!(streak(), 2);
    let answer = stack.clone().oneshot(get()).await.unwrap();
    assert_eq!(streak(), 2, "not settled yet");
    drop(answer);
    assert_eq!(streak(), 0);
}

/// R9: a body that gives nothing for `body_idle` has failed; one that trickles has not.
#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_has_failed() {
    let script = Script::new().any_method(P, [Reply::ok("primary").stall_body_after(3)]);
    let service = builder().retry(retry().body_idle(secs(7))).build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let answer = stack.oneshot(get()).await.unwrap();
    let begun = tokio::time::Instant::now();
    let error = answer.into_body().collect().await.unwrap_err();
    assert_eq!(begun.elapsed(), secs(7));
    assert!(error.is_timeout(), "{error}");
    assert_eq!(service.circuit(&PRIMARY, Circuit::Reads).unwrap().streak, 1);
}

/// V4: a success is a success of the whole answer: what follows the head of a probe counts too.
#[tokio::test(start_paused = true)]
async fn a_probe_whose_body_breaks_off_does_not_leave_the_primary_trusted() {
    let script = primary_down();
    let service = opened(builder(), &script).await;
    script.replace(P, [Reply::ok("primary").cut_body_after(3)]);
    tokio::time::sleep(secs(30)).await;
    let stack = service.layer().clone_bodies().layer(script.service());
    let answer: Response<_> = stack.oneshot(get()).await.unwrap();
    assert!(answer.into_body().collect().await.is_err());
    let circuit = service.circuit(&PRIMARY, Circuit::Reads).unwrap();
    assert!(
        circuit.phase != CircuitPhase::Closed || circuit.streak == 1,
        "{circuit:?}"
    );
}

/// B2: rates and slow calls open a circuit as well.
#[tokio::test(start_paused = true)]
async fn rates_and_slow_calls_open_a_circuit() {
    let rate = RateRule::new(0.5, secs(60), 4);
    for (settings, replies) in [
        (
            breaker().streak(None).rate(rate),
            [
                Reply::ok(""),
                Reply::status(503),
                Reply::ok(""),
                Reply::status(503),
            ],
        ),
        (
            breaker().slow(SlowRule::new(secs(2), rate)),
            [
                Reply::ok(""),
                Reply::ok(""),
                Reply::ok("").after(secs(2)),
                Reply::ok("").after(secs(3)),
            ],
        ),
    ] {
        let script = Script::new()
            .any_method(P, replies)
            .any_method(S, [Reply::ok("secondary")]);
        let service = builder().breaker(settings).build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        for _ in 0..4 {
            assert_eq!(
                phase(&service, &PRIMARY, Circuit::Reads),
                CircuitPhase::Closed
            );
            assert_eq!(word(&stack.clone().oneshot(get()).await), "200");
        }
        assert_eq!(
            phase(&service, &PRIMARY, Circuit::Reads),
            CircuitPhase::Open
        );
    }
}

/// B4: `open_for_calls` operations end the wait, refused ones included, if they come sooner.
#[tokio::test(start_paused = true)]
async fn enough_operations_end_the_wait() {
    let script = primary_down();
    let service = opened(builder().breaker(breaker().open_for_calls(5)), &script).await;
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..5 {
        assert_eq!(word(&stack.clone().oneshot(get()).await), "200");
    }
    assert_eq!(script.hosts(), [S; 5]);
    script.replace(P, [Reply::ok("primary")]);
    assert_eq!(word(&stack.clone().oneshot(get()).await), "200");
    assert_eq!(script.hosts()[5..], [P]);
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Closed
    );
}

/// B4: the same where all are refused: reads by the driver, writes by the gate, and either by a
/// breaker that stands alone.
#[tokio::test(start_paused = true)]
async fn refused_operations_end_the_wait_as_well() {
    let down = || Script::new().any_method(P, [Reply::status(503)]);
    let build = || {
        builder()
            .location_mode(LocationMode::PrimaryOnly)
            .retry(retry().max_retries(0))
            .breaker(breaker().open_for_calls(4))
            .build()
            .unwrap()
    };
    for request in [get, append] {
        let (script, service) = (down(), build());
        let stack = service.layer().clone_bodies().layer(script.service());
        let mut words = Vec::new();
        for _ in 0..8 {
            words.push(word(&stack.clone().oneshot(request()).await));
        }
        let refused = if request().method() == Method::GET {
            "breaker-open"
        } else {
            "read-only"
        };
        assert_eq!(
            words,
            [
                "503", "503", "503", refused, refused, refused, refused, "503"
            ]
        );

        let (script, service) = (down(), build());
        let stack = CircuitBreakerLayer::new(service.clone()).layer(script.service());
        let mut words = Vec::new();
        for _ in 0..8 {
            words.push(word(&stack.clone().oneshot(request()).await));
        }
        let refused = "breaker-open";
        assert_eq!(
            words,
            [
                "503", "503", "503", refused, refused, refused, refused, "503"
            ]
        );
    }
}

/// E4, B8: a time-out of a foreign layer between ours and the breaker is a failure of the region
/// that it cut, however short it is: the operation goes on as after one.
#[tokio::test(start_paused = true)]
async fn a_foreign_time_out_above_the_breaker_teaches_it() {
    let script = Script::new()
        .any_method(P, [Reply::hang()])
        .any_method(S, [Reply::ok("secondary")]);
    let service = service();
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(service.clone()).clone_bodies())
        .layer(GeoRedirectLayer::new(service.clone()).below_retry())
        .layer(TimeoutLayer::new(ms(500)))
        .layer(CircuitBreakerLayer::new(service.clone()))
        .service(script.service());
    for _ in 0..3 {
        assert_eq!(word(&stack.clone().oneshot(get()).await), "200");
    }
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Open
    );
}
