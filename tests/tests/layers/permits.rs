//! Who holds a permit of a limit below, and for how long?

use std::sync::Arc;

use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};
use tower_geo::{CircuitBreakerLayer, ReadOnlyGateLayer, RetrySettings};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;

/// T7: an operation that waits before its next send holds no permit meanwhile.
#[tokio::test(start_paused = true)]
async fn a_waiting_operation_holds_no_permit() {
    let script = Script::new().any_method(P, [Reply::status(503), Reply::ok("primary")]);
    let permits = Arc::new(Semaphore::new(1));
    let client = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let stack = service().layer().clone_bodies().layer(client);
    let operation = tokio::spawn(stack.oneshot(put()));
    tokio::time::sleep(ms(500)).await;
    assert_eq!(script.sends().len(), 1, "it waits for 1 s");
    assert_eq!(permits.available_permits(), 1);
    assert_eq!(operation.await.unwrap().unwrap().status(), 200);
    assert_eq!(permits.available_permits(), 1);
}

/// T1, T7: nor one that has to wait before its first send.
#[tokio::test(start_paused = true)]
async fn an_operation_that_waits_out_a_rest_holds_no_permit() {
    let script = Script::new().any_method(
        P,
        [
            Reply::status(503).header("retry-after", "5"),
            Reply::ok("primary"),
        ],
    );
    let service = builder()
        .retry(RetrySettings::new().max_retries(0))
        .build()
        .unwrap();
    let permits = Arc::new(Semaphore::new(1));
    let client = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let stack = service.layer().clone_bodies().layer(client);
    assert_eq!(stack.clone().oneshot(put()).await.unwrap().status(), 503);
    let waits = tokio::spawn(stack.oneshot(put()));
    tokio::time::sleep(secs(1)).await;
    assert_eq!(script.sends().len(), 1, "the primary rests");
    assert_eq!(permits.available_permits(), 1);
    assert_eq!(waits.await.unwrap().unwrap().status(), 200);
}

/// G2, DESIGN 7: a call uses readiness up, also one that is refused: a service that is kept must
/// not keep a permit from others.
#[tokio::test(start_paused = true)]
async fn a_refused_call_gives_its_permit_back() {
    let script = healthy();
    let permits = Arc::new(Semaphore::new(1));
    let client = || ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    each_layer!(service(), client(), |name, stack| {
        let _ = stack.until_ready().await.unwrap();
        assert_eq!(permits.available_permits(), 0, "{name}");
        let mut relative = get();
        *relative.uri_mut() = "/photos/cat".parse().unwrap();
        let refused = stack.call(relative).await;
        // Gate and breaker alone let it pass, to a client that does not know it.
        assert!(refused.is_err(), "{name}");
        assert_eq!(permits.available_permits(), 1, "{name}");
    });
}

/// G2: a write that is refused after the service below was found ready gives its permit back.
#[tokio::test(start_paused = true)]
async fn a_write_that_the_gate_refuses_gives_its_permit_back() {
    let script = healthy();
    let service = service();
    let permits = Arc::new(Semaphore::new(1));
    let client = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let mut gate = ReadOnlyGateLayer::new(service.clone()).layer(client);
    let _ = gate.until_ready().await.unwrap();
    service.operator().read_only();
    assert!(
        gate.call(put())
            .await
            .is_err_and(|error| error.is_read_only())
    );
    assert_eq!(permits.available_permits(), 1);
}

/// B4: an open circuit refuses without keeping the permit.
#[tokio::test(start_paused = true)]
async fn a_send_that_the_breaker_refuses_gives_its_permit_back() {
    let script = healthy();
    let service = service();
    service.operator().force_open(&PRIMARY).unwrap();
    let permits = Arc::new(Semaphore::new(1));
    let client = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let mut breaker = CircuitBreakerLayer::new(service).layer(client);
    let refused = breaker.until_ready().await.unwrap().call(get()).await;
    assert!(refused.is_err_and(|error| error.is_circuit_open()));
    assert_eq!(permits.available_permits(), 1);
}

/// G2: a read that takes its readiness inside the call does not queue behind the service that it
/// came from.
#[tokio::test(start_paused = true)]
async fn a_read_in_read_only_keeps_its_place_in_the_queue() {
    let script = healthy();
    let service = service();
    let permits = Arc::new(Semaphore::new(1));
    let client = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let mut gate = ReadOnlyGateLayer::new(service.clone()).layer(client);
    let taken = permits.acquire().await.unwrap();
    let readiness = tokio::time::timeout(secs(1), gate.until_ready()).await;
    assert!(readiness.is_err(), "no permit is left");
    service.operator().read_only();
    let read = gate.until_ready().await.unwrap().call(get());
    drop(taken);
    let answer = tokio::time::timeout(secs(1), read).await;
    assert_eq!(
        answer.expect("the permit went to nobody").unwrap().status(),
        200
    );
}

/// G2: a caller that was waiting and is refused leaves the queue.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_while_it_waits_leaves_the_queue() {
    let script = healthy();
    let service = service();
    let permits = Arc::new(Semaphore::new(1));
    let client = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let mut gate = ReadOnlyGateLayer::new(service.clone()).layer(client);
    let taken = permits.acquire().await.unwrap();
    assert!(
        tokio::time::timeout(secs(1), gate.until_ready())
            .await
            .is_err()
    );
    service.operator().read_only();
    let refused = gate.until_ready().await.unwrap().call(put()).await;
    assert!(refused.is_err_and(|error| error.is_read_only()));
    drop(taken);
    let other = tokio::time::timeout(secs(1), gate.clone().oneshot(get())).await;
    assert_eq!(
        other.expect("the permit went to nobody").unwrap().status(),
        200
    );
}
