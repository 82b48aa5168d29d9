//! What happens to requests while a service is read-only (G1 to G4, G6)?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use http::{Method, Request};
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};
use tower_geo::{
    Account, Circuit, ErrorKind, GateMode, GateStatus, LocationMode, ReadOnlyGateLayer, Served,
};
use tower_geo_testkit::strict::{DropCounter, Reply, Script};

use crate::support::*;

/// Counts how often it is asked whether it is ready.
#[derive(Clone)]
struct Asked<S> {
    inner: S,
    times: Arc<AtomicUsize>,
}

impl<S, R> Service<R> for Asked<S>
where
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.inner.call(request)
    }
}

/// G2: ready at once, refused before the service below is asked, nothing sent, and the body given
/// back to nobody but dropped untouched.
#[tokio::test(start_paused = true)]
async fn a_refused_write_touches_nothing() {
    let script = healthy();
    let service = service();
    let times = Arc::new(AtomicUsize::new(0));
    let client = Asked {
        inner: script.service(),
        times: Arc::clone(&times),
    };
    let mut stack = service.layer().clone_bodies().layer(client);
    service.operator().read_only();
    let bodies = DropCounter::new();
    let write = put().map(|body| bodies.wrap(body));
    let error = stack
        .until_ready()
        .await
        .unwrap()
        .call(write)
        .await
        .unwrap_err();
    assert!(error.is_read_only());
    assert_eq!(error.service_name(), Some("blob"));
    assert!(error.was_never_sent());
    assert_eq!(error.retry_after(), None, "an operator decides");
    assert!(error.to_string().contains("operator"), "{error}");
    assert_eq!((bodies.made(), bodies.alive()), (1, 0), "no copy was made");
    assert_eq!(times.load(Ordering::Relaxed), 0);
    assert!(script.sends().is_empty());
}

/// G3: reads and neutral requests pass, and take readiness inside their call.
#[tokio::test(start_paused = true)]
async fn reads_and_neutral_requests_pass_in_read_only() {
    let script = healthy();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    service.operator().read_only();
    for request in [
        get(),
        request(Method::HEAD, P, "/a/b"),
        request(Method::OPTIONS, P, "/a/b"),
    ] {
        assert_eq!(stack.clone().oneshot(request).await.unwrap().status(), 200);
    }
    assert_eq!(script.hosts(), [P, P, P]);
}

/// G2: turning read-only wakes a caller who waits for the service below, and refuses its write.
#[tokio::test(start_paused = true)]
async fn turning_read_only_wakes_a_waiting_writer() {
    let script = healthy();
    let service = service();
    let permits = Arc::new(Semaphore::new(0));
    let client = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let stack = service.layer().clone_bodies().layer(client);
    let waiting = tokio::spawn(stack.oneshot(put()));
    tokio::time::sleep(secs(1)).await;
    assert!(!waiting.is_finished());
    service.operator().read_only();
    let refused = tokio::time::timeout(ms(1), waiting).await;
    let refused = refused.expect("nobody was woken").unwrap();
    assert!(refused.is_err_and(|error| error.is_read_only()));
}

/// G1, B4: while the circuit of the primary is open; the error says when to come back.
#[tokio::test(start_paused = true)]
async fn an_open_circuit_refuses_writes_and_says_until_when() {
    let script = primary_down();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    assert_eq!(service.gate().status, GateStatus::ReadOnly);
    script.clear_sends();
    tokio::time::sleep(secs(10)).await;
    let error = stack.clone().oneshot(put()).await.unwrap_err();
    assert!(error.is_read_only());
    assert_eq!(error.retry_after(), Some(secs(20)));
    assert!(script.sends().is_empty());
    // R7: reads start at the secondary.
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(script.hosts(), [S]);
}

/// G1: with the manual gate an open circuit refuses writes as *breaker open*, not as *read-only*.
#[tokio::test(start_paused = true)]
async fn a_manual_gate_is_not_moved_by_circuits() {
    let script = healthy();
    let service = builder().gate(GateMode::Manual).build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    service.operator().force_open(&PRIMARY).unwrap();
    assert_eq!(service.gate().status, GateStatus::ReadWrite);
    let error = stack.oneshot(put()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert!(script.sends().is_empty());
}

/// G1: *read-write* withdraws the operator's own say, nothing else.
#[tokio::test(start_paused = true)]
async fn read_write_withdraws_only_its_own_say() {
    let script = healthy();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    let operator = service.operator();
    operator.read_only();
    operator.force_open(&PRIMARY).unwrap();
    operator.read_write();
    assert_eq!(service.gate().status, GateStatus::ReadOnly);
    assert!(
        stack
            .clone()
            .oneshot(put())
            .await
            .is_err_and(|error| error.is_read_only())
    );
    operator.automatic(&PRIMARY).unwrap();
    assert_eq!(service.gate().status, GateStatus::ReadWrite);
    operator.begin_maintenance().unwrap();
    operator.read_write();
    assert!(
        stack
            .clone()
            .oneshot(put())
            .await
            .is_err_and(|error| error.is_read_only())
    );
    operator.end_maintenance();
    assert_eq!(stack.oneshot(put()).await.unwrap().status(), 200);
}

/// G3: each service has its own flag, and there is one over all services of an account.
#[tokio::test(start_paused = true)]
async fn an_account_has_a_flag_over_all_its_services() {
    let account = Account::azure_storage("contoso").build().unwrap();
    let status =
        || [account.blob(), account.queue(), account.table()].map(|service| service.gate().status);
    let (read_write, read_only) = (GateStatus::ReadWrite, GateStatus::ReadOnly);
    account.queue().operator().read_only();
    assert_eq!(status(), [read_write, read_only, read_write]);
    account.set_read_only(true);
    assert_eq!(status(), [read_only; 3]);
    account.blob().operator().read_write();
    assert_eq!(
        status(),
        [read_only; 3],
        "the account's say is not a service's to withdraw"
    );
    account.set_read_only(false);
    assert_eq!(status(), [read_write, read_only, read_write]);
    account.queue().operator().read_write();
    assert_eq!(status(), [read_write; 3]);
}

/// B12: services are apart unless they share; then all behave as open, with the reason *group*.
#[tokio::test(start_paused = true)]
async fn services_that_share_are_read_only_together() {
    let apart = Account::azure_storage("contoso").build().unwrap();
    apart.blob().operator().force_open(&PRIMARY).unwrap();
    assert_eq!(apart.queue().gate().status, GateStatus::ReadWrite);

    let script = Script::new()
        .any_method(P, [Reply::status(503)])
        .any_method("contoso.queue.core.windows.net", [Reply::ok("queue")]);
    let shared = Account::azure_storage("contoso")
        .retry(retry().max_retries(0))
        .breaker(breaker())
        .share_state()
        .build()
        .unwrap();
    let blob = shared.blob().layer().clone_bodies().layer(script.service());
    let queue = shared
        .queue()
        .layer()
        .clone_bodies()
        .layer(script.service());
    for _ in 0..3 {
        assert_eq!(blob.clone().oneshot(get()).await.unwrap().status(), 503);
    }
    let write = || request(Method::DELETE, "contoso.queue.core.windows.net", "/orders");
    let error = queue.clone().oneshot(write()).await.unwrap_err();
    assert!(error.is_read_only());
    assert!(error.to_string().contains("group"), "{error}");
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(30)).await;
    assert_eq!(
        blob.oneshot(get()).await.unwrap().status(),
        200,
        "the probe"
    );
    assert_eq!(queue.oneshot(write()).await.unwrap().status(), 200);
}

/// G4: in maintenance writes are refused, reads go to the secondary only, and writes that are
/// under way can be waited for.
#[tokio::test(start_paused = true)]
async fn maintenance_drains_writes_and_reads_the_secondary() {
    let script = Script::new()
        .on(P, Method::PUT, [Reply::ok("").after(secs(3))])
        .any_method(P, [Reply::ok("primary")])
        .any_method(S, [Reply::ok("secondary")]);
    let service = service();
    let operator = service.operator();
    let stack = service.layer().clone_bodies().layer(script.service());
    let write = tokio::spawn(stack.clone().oneshot(put()));
    tokio::time::sleep(ms(1)).await;
    operator.begin_maintenance().unwrap();
    let drained = tokio::spawn({
        let operator = operator.clone();
        async move { operator.writes_drained().await }
    });
    script.clear_sends();
    let error = stack.clone().oneshot(put()).await.unwrap_err();
    assert!(
        error.is_read_only() && error.to_string().contains("maintenance"),
        "{error}"
    );
    let answer = stack.clone().oneshot(get()).await.unwrap();
    assert!(Served::of(answer.extensions()).unwrap().is_from_copy());
    assert_eq!(script.hosts(), [S]);
    assert!(!drained.is_finished());
    assert_eq!(write.await.unwrap().unwrap().status(), 200);
    tokio::time::timeout(ms(20), drained)
        .await
        .expect("drained")
        .unwrap();
    operator.end_maintenance();
    assert_eq!(stack.oneshot(put()).await.unwrap().status(), 200);
}

/// G4: reads that may only go to the primary are refused as *breaker open*.
#[tokio::test(start_paused = true)]
async fn reads_of_the_primary_are_refused_in_maintenance() {
    let script = healthy();
    let service = builder()
        .location_mode(LocationMode::PrimaryOnly)
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    service.operator().begin_maintenance().unwrap();
    for request in [request(Method::POST, P, "/c/b?comp=query")] {
        let error = stack.clone().oneshot(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    }
    assert!(script.sends().is_empty());
}

/// G4: its reads are *secondary only*, whatever the mode of the service.
#[tokio::test(start_paused = true)]
async fn maintenance_overrides_the_mode_of_reads() {
    for mode in [
        LocationMode::PrimaryOnly,
        LocationMode::PrimaryThenSecondary,
        LocationMode::SecondaryOnly,
        LocationMode::SecondaryThenPrimary,
    ] {
        let script = healthy();
        let service = builder().location_mode(mode).build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        service.operator().begin_maintenance().unwrap();
        let answer = stack.oneshot(get()).await;
        assert_eq!(word(&answer), "200", "{mode}");
        assert_eq!(script.hosts(), [S], "{mode}");
    }
}

/// G4: a write that waits for a retry ends with what it has.
#[tokio::test(start_paused = true)]
async fn a_write_that_waits_ends_when_maintenance_begins() {
    let script = primary_down();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    let write = tokio::spawn(stack.oneshot(put()));
    tokio::time::sleep(ms(500)).await;
    service.operator().begin_maintenance().unwrap();
    assert_eq!(write.await.unwrap().unwrap().status(), 503);
    assert_eq!(script.sends().len(), 1);
}

/// G4: without a secondary, asking for maintenance is an error of configuration.
#[tokio::test(start_paused = true)]
async fn maintenance_needs_a_secondary() {
    let service = builder()
        .location_mode(LocationMode::PrimaryOnly)
        .no_secondary()
        .build()
        .unwrap();
    assert!(service.operator().begin_maintenance().is_err());
    assert_eq!(service.gate().status, GateStatus::ReadWrite);
}

/// G6: the gate can be watched; the end of a wait turns *read-only* into *trial* although nobody
/// calls.
#[tokio::test(start_paused = true)]
async fn the_gate_can_be_watched() {
    let script = primary_down();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    let mut gate = service.watch_gate();
    let watching = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.last() != Some(&GateStatus::ReadWrite) {
            seen.push(gate.changed().await.status);
        }
        seen
    });
    tokio::task::yield_now().await;
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(31)).await;
    assert_eq!(
        stack.oneshot(put()).await.unwrap().status(),
        200,
        "the trial"
    );
    let seen = tokio::time::timeout(secs(1), watching)
        .await
        .expect("told")
        .unwrap();
    assert_eq!(
        seen,
        [
            GateStatus::ReadOnly,
            GateStatus::Trial,
            GateStatus::ReadWrite
        ]
    );
}

/// B4: while a trial write is out, other writes are refused as *read-only*, not further in.
#[tokio::test(start_paused = true)]
async fn one_write_is_tried_and_the_others_are_refused() {
    let script = primary_down();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    script.clear_sends();
    script.replace(P, [Reply::ok("primary").after(secs(1))]);
    tokio::time::sleep(secs(30)).await;
    let writes: Vec<_> = (0..10)
        .map(|_| tokio::spawn(stack.clone().oneshot(put())))
        .collect();
    let mut words = Vec::new();
    for write in writes {
        words.push(word(&write.await.unwrap()));
    }
    words.sort();
    let mut expected = vec!["200".to_owned()];
    expected.resize(10, "read-only".to_owned());
    assert_eq!(words, expected);
    assert_eq!(script.hosts(), [P]);
    assert_eq!(service.gate().status, GateStatus::ReadWrite);
}

/// B4: a failed trial write ends at once. The slot of reads that it held is failed only by
/// *unreachable*, else it is free for the next.
#[tokio::test(start_paused = true)]
async fn a_failed_trial_write_ends_at_once() {
    let script = primary_down();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    tokio::time::sleep(secs(30)).await;
    script.clear_sends();
    let begun = tokio::time::Instant::now();
    assert_eq!(stack.clone().oneshot(put()).await.unwrap().status(), 503);
    assert_eq!(begun.elapsed(), ms(0));
    assert_eq!(script.hosts(), [P]);
    assert_eq!(service.gate().status, GateStatus::Trial);
    script.replace(P, [Reply::refused()]);
    let error = stack.clone().oneshot(put()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.was_never_sent());
    assert_eq!(service.gate().status, GateStatus::ReadOnly);
}

/// G2: the gate alone over a foreign client lets a trial through and learns nothing of it.
#[tokio::test(start_paused = true)]
async fn the_gate_alone_obeys_an_operator() {
    let script = healthy();
    let service = service();
    let mut gate = ReadOnlyGateLayer::new(service.clone()).layer(script.service());
    assert_eq!(
        gate.until_ready()
            .await
            .unwrap()
            .call(put())
            .await
            .unwrap()
            .status(),
        200
    );
    service.operator().read_only();
    assert!(gate.until_ready().await.unwrap().call(put()).await.is_err());
    let foreign = Request::put("https://login.example/token")
        .body(Body::default())
        .unwrap();
    script.replace("login.example", [Reply::ok("token")]);
    let answer = gate.until_ready().await.unwrap().call(foreign).await;
    assert_eq!(answer.unwrap().status(), 200, "I8: not this service's");
    service.operator().read_write();
    assert_eq!(
        gate.until_ready()
            .await
            .unwrap()
            .call(put())
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(
        service.circuit(&PRIMARY, Circuit::Writes).unwrap().streak,
        0
    );
}

/// B4: of several writes at once a harmless one (V1) is the trial, whoever came first: its fate cannot
/// become unknown. Where there is none, the others are not kept.
#[tokio::test(start_paused = true)]
async fn of_writes_at_once_a_harmless_one_is_the_trial() {
    for (writes, trial) in [
        (vec![append(), append(), put(), append()], "/photos/cat"),
        (vec![append(), append()], "/photos/log?comp=appendblock"),
    ] {
        let script = Script::new().any_method(P, [Reply::refused()]);
        let service = service();
        let stack = service.layer().clone_bodies().layer(script.service());
        for _ in 0..3 {
            let _ = stack.clone().oneshot(append()).await;
        }
        script.replace(P, [Reply::ok("").after(ms(20))]);
        script.clear_sends();
        tokio::time::sleep(secs(30)).await;
        let calls: Vec<_> = writes
            .iter()
            .map(|write| tokio::spawn(stack.clone().oneshot(write.clone())))
            .collect();
        let mut words = Vec::new();
        for call in calls {
            words.push(word(&call.await.unwrap()));
        }
        let sent: Vec<_> = script
            .sends()
            .iter()
            .map(|sent| sent.target.clone())
            .collect();
        assert_eq!(sent, [trial], "one trial, and the rest are refused");
        let refused = words.iter().filter(|word| *word == "read-only").count();
        assert_eq!(refused, writes.len() - 1, "{words:?}");
    }
}

/// B4, T7: a write that lets others go first gives up neither its place nor a slot when it is dropped.
#[tokio::test(start_paused = true)]
async fn a_write_that_steps_aside_can_be_dropped() {
    let script = Script::new().any_method(P, [Reply::refused()]);
    let service = service();
    let mut stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        let _ = stack.until_ready().await.unwrap().call(append()).await;
    }
    script.replace(P, [Reply::ok("")]);
    tokio::time::sleep(secs(30)).await;
    let mut aside = Box::pin(stack.until_ready().await.unwrap().call(append()));
    let first = aside.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_pending(), "others go first");
    drop(aside);
    assert_eq!(service.gate().status, GateStatus::Trial);
    assert_eq!(word(&stack.oneshot(append()).await), "200");
}
