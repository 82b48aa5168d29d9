//! B11, in paused time: a wait costs nothing here.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tower_geo_policy::breaker::{BreakerSettings, CircuitPhase};
use tower_geo_policy::events::{Event, EventKind};
use tower_geo_policy::operation::RegionRef;
use tower_geo_policy::region::LocationMode;

use super::*;
use crate::test_wire::{Act, RequestBody, ResponseBody, Wire, status};

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Blobs whose reads circuit opens with the second failure in a row, and no jitter anywhere.
fn blob() -> GeoService {
    GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .location_mode(LocationMode::PrimaryThenSecondary)
        .breaker(BreakerSettings::new().streak(2))
        .random(|| 0.5)
        .threads(1)
        .build()
        .unwrap()
}

fn ping() -> MonitorSettings {
    MonitorSettings::new("/health/ping").jitter(0.0)
}

fn spawn(service: &GeoService, settings: &MonitorSettings, wire: &Wire) -> BackgroundTask {
    service
        .spawn_monitor::<_, RequestBody, ResponseBody>(settings, wire.clone())
        .unwrap()
}

fn phase(service: &GeoService) -> CircuitPhase {
    let circuit = service.circuit(&RegionRef::Primary, Circuit::Reads);
    circuit.unwrap().phase
}

async fn until(second: u64, start: tokio::time::Instant) {
    // A millisecond later, so that what happens at that second has happened.
    tokio::time::sleep_until(start + seconds(second) + Duration::from_millis(1)).await;
}

/// B11: first after one interval, then at each, against the primary.
#[tokio::test(start_paused = true)]
async fn pings_come_at_the_interval_and_the_first_after_one() {
    let (service, wire) = (blob(), Wire::new(|_| Act::Answer(status(200))));
    let start = tokio::time::Instant::now();
    let monitor = spawn(&service, &ping(), &wire);
    until(21, start).await;
    assert_eq!(wire.seconds(), [5, 10, 15, 20]);
    let first = wire.seen()[0].clone();
    assert_eq!(
        first.uri,
        "https://contoso.blob.core.windows.net/health/ping"
    );
    assert_eq!(first.purpose, "monitor");
    monitor.stop();
    until(60, start).await;
    assert_eq!(wire.seconds().len(), 4, "stopped");
}

/// B11: its failures count like any read's, and its success ends the wait.
#[tokio::test(start_paused = true)]
async fn failures_open_and_a_success_ends_the_wait() {
    let down = Arc::new(AtomicBool::new(true));
    let is_down = Arc::clone(&down);
    let wire = Wire::new(move |_| {
        let code = if is_down.load(Ordering::Relaxed) {
            503
        } else {
            200
        };
        Act::Answer(status(code))
    });
    let (service, start) = (blob(), tokio::time::Instant::now());
    let _monitor = spawn(&service, &ping(), &wire);
    until(5, start).await;
    assert_eq!(phase(&service), CircuitPhase::Closed);
    until(10, start).await;
    assert_eq!(phase(&service), CircuitPhase::Open);
    let circuit = service
        .circuit(&RegionRef::Primary, Circuit::Reads)
        .unwrap();
    assert_eq!(circuit.until, None, "only the monitor ends it");
    until(3_600, start).await;
    assert_eq!(
        service.gate().status,
        tower_geo_policy::gate::GateStatus::ReadOnly
    );
    down.store(false, Ordering::Relaxed);
    until(3_605, start).await;
    assert_eq!(
        service.gate().status,
        tower_geo_policy::gate::GateStatus::Trial
    );
}

/// B11: a time-out is a failure; the next ping does not wait for a slow one.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_given_up_and_at_most_one_ping_is_under_way() {
    let wire = Wire::new(|_| Act::Hang);
    let (service, start) = (blob(), tokio::time::Instant::now());
    let settings = ping().every(seconds(5)).timeout(seconds(12));
    let _monitor = spawn(&service, &settings, &wire);
    until(41, start).await;
    assert_eq!(
        wire.seconds(),
        [5, 20, 35],
        "intervals that passed are left out"
    );
    assert_eq!(wire.most_at_once(), 1);
    assert_eq!(phase(&service), CircuitPhase::Open);
}

/// B11: a client that panics does not end the monitor, and is not the primary's failure.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_client_ends_nothing_and_counts_for_nothing() {
    let wire = Wire::new(|before| match before {
        0..5 => Act::Panic,
        _ => Act::Answer(status(200)),
    });
    let (service, start) = (blob(), tokio::time::Instant::now());
    let monitor = spawn(&service, &ping(), &wire);
    until(31, start).await;
    assert_eq!(wire.seconds().len(), 6);
    assert!(!monitor.is_finished());
    assert_eq!(phase(&service), CircuitPhase::Closed);
}

/// What a client of a test may do before it has a request, or once it has one.
#[derive(Clone, Copy)]
enum Odd {
    /// It has no room for a request, say because the application's own downloads take it all.
    NeverReady,
    /// Its worker has ended.
    Broken,
    /// It never answers, and panics when what it has is dropped.
    PanicsWhenDropped,
}

#[derive(Clone)]
struct OddClient(Odd, Arc<AtomicUsize>);

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a client that panics when it is dropped");
    }
}

impl Service<Request<RequestBody>> for OddClient {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.0 {
            Odd::NeverReady => Poll::Pending,
            Odd::Broken => Poll::Ready(Err("the worker is gone".into())),
            Odd::PanicsWhenDropped => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        self.1.fetch_add(1, Ordering::Relaxed);
        let panics = PanicsWhenDropped;
        Box::pin(async move {
            let _panics = panics;
            std::future::pending().await
        })
    }
}

fn spawn_odd(service: &GeoService, odd: Odd) -> (BackgroundTask, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let client = OddClient(odd, Arc::clone(&calls));
    (service.spawn_monitor(&ping(), client).unwrap(), calls)
}

/// B11, T7: as with any read, a client that is not ready is not the primary's failure: nothing was
/// sent.
#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_ready_counts_for_nothing() {
    for odd in [Odd::NeverReady, Odd::Broken] {
        let (service, start) = (blob(), tokio::time::Instant::now());
        let (monitor, calls) = spawn_odd(&service, odd);
        until(61, start).await;
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        assert!(!monitor.is_finished());
        assert_eq!(phase(&service), CircuitPhase::Closed);
    }
}

/// B8: nor is it silence of the primary while a caller's read fails.
#[tokio::test(start_paused = true)]
async fn a_ping_that_waits_for_its_client_is_no_suspect() {
    let (service, start) = (blob(), tokio::time::Instant::now());
    let (_monitor, _) = spawn_odd(&service, Odd::NeverReady);
    until(6, start).await;
    tokio::time::sleep_until(start + Duration::from_millis(6_500)).await;
    let state = service.state_ref();
    let sent = state.send_started(RegionId::new(0), Circuit::Reads, state.tick(runtime::now()));
    Pending::new(state.clone(), sent).settle(Verdict::Ambiguous);
    assert_eq!(phase(&service), CircuitPhase::Closed, "one failure of two");
}

/// B11: a panic while a ping that was given up is dropped ends nothing, and the ping was sent.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_drop_does_not_end_the_monitor() {
    let (service, start) = (blob(), tokio::time::Instant::now());
    let (monitor, calls) = spawn_odd(&service, Odd::PanicsWhenDropped);
    until(18, start).await;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert!(!monitor.is_finished());
    assert_eq!(phase(&service), CircuitPhase::Open);
}

/// B11: an error of the client counts as its fault says.
#[tokio::test(start_paused = true)]
async fn an_error_of_the_client_is_a_failure() {
    let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let wire = Wire::new(move |_| Act::Fail(Box::new(refused())));
    let (service, start) = (blob(), tokio::time::Instant::now());
    let _monitor = spawn(&service, &ping(), &wire);
    until(10, start).await;
    for circuit in Circuit::BOTH {
        let state = service.circuit(&RegionRef::Primary, circuit).unwrap();
        assert_eq!(
            state.phase,
            CircuitPhase::Open,
            "unreachable is so for both"
        );
    }
}

/// B11: when the monitor is dropped, so is what waits for it.
#[tokio::test(start_paused = true)]
async fn an_open_circuit_does_not_wait_for_a_monitor_that_has_gone() {
    let wire = Wire::new(|_| Act::Answer(status(503)));
    let (service, start) = (blob(), tokio::time::Instant::now());
    let monitor = spawn(&service, &ping(), &wire);
    until(11, start).await;
    assert_eq!(
        service.gate().status,
        tower_geo_policy::gate::GateStatus::ReadOnly
    );
    drop(monitor);
    until(12, start).await;
    assert_eq!(
        service.gate().status,
        tower_geo_policy::gate::GateStatus::Trial
    );
}

/// G4: in maintenance the monitor rests, and what comes back then is not looked at.
#[tokio::test(start_paused = true)]
async fn in_maintenance_the_monitor_rests() {
    let wire = Wire::new(|_| Act::After(seconds(1), status(503)));
    let (service, start) = (blob(), tokio::time::Instant::now());
    let _monitor = spawn(&service, &ping(), &wire);
    tokio::time::sleep_until(start + Duration::from_millis(5_500)).await;
    service.operator().begin_maintenance().unwrap();
    until(21, start).await;
    assert_eq!(wire.seconds(), [5]);
    service.operator().end_maintenance();
    until(26, start).await;
    assert_eq!(wire.seconds(), [5, 25]);
    let circuit = service
        .circuit(&RegionRef::Primary, Circuit::Reads)
        .unwrap();
    assert_eq!(circuit.streak, 1, "the answer of second 6 was not counted");
}

/// F7: a stack of ours above the client neither counts a ping twice nor redirects or repeats it.
#[tokio::test(start_paused = true)]
async fn a_stack_of_ours_lets_a_ping_pass() {
    let wire = Wire::new(|_| Act::Answer(status(503)));
    let events = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&events);
    let service = GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .location_mode(LocationMode::PrimaryThenSecondary)
        .breaker(BreakerSettings::new().streak(3))
        .listener(Arc::new(move |event: &Event| {
            opened.fetch_or(
                matches!(event.kind, EventKind::Breaker { .. }),
                Ordering::Relaxed,
            );
        }))
        .threads(1)
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    let stack = tower_layer::Layer::layer(&service.layer().clone_bodies(), wire.clone());
    let _monitor = service
        .spawn_monitor::<_, RequestBody, _>(&ping(), stack)
        .unwrap();
    until(14, start).await;
    assert_eq!(
        wire.seconds(),
        [5, 10],
        "one send each, none to the secondary"
    );
    assert!(!events.load(Ordering::Relaxed));
    until(60, start).await;
    assert!(events.load(Ordering::Relaxed));
    assert_eq!(wire.seconds().len(), 12, "also while the circuit is open");
}

/// Jitter is drawn from the service's own chance.
#[tokio::test(start_paused = true)]
async fn jitter_moves_pings_off_the_grid() {
    let wire = Wire::new(|_| Act::Answer(status(200)));
    let service = GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .random(|| 1.0)
        .threads(1)
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    let settings = ping().every(seconds(10)).jitter(0.4);
    let _monitor = spawn(&service, &settings, &wire);
    until(33, start).await;
    assert_eq!(wire.seconds(), [12, 22, 32]);
}

/// What is asked must be a read of the primary.
#[tokio::test(start_paused = true)]
async fn senseless_settings_are_errors() {
    let (service, wire) = (blob(), Wire::new(|_| Act::Hang));
    let queue = GeoService::azure_storage("https://contoso.queue.core.windows.net")
        .build()
        .unwrap();
    let emulator = GeoService::azure_storage("http://127.0.0.1:10000/devstoreaccount1")
        .storage_service(tower_geo_policy::azure_storage::StorageService::Blob)
        .build()
        .unwrap();
    let good = || MonitorSettings::new("/c/b");
    for (service, settings, setting) in [
        (&service, good().every(Duration::ZERO), "every"),
        (&service, good().timeout(Duration::ZERO), "timeout"),
        (&service, good().jitter(2.0), "jitter"),
        (&service, good().method(Method::PUT), "method"),
        (&service, MonitorSettings::new("c/b"), "path"),
        (&service, MonitorSettings::new("/ c"), "path"),
        (
            &service,
            MonitorSettings::new("/?restype=service&comp=stats"),
            "path",
        ),
        (&queue, MonitorSettings::new("/orders/messages"), "path"),
        (&emulator, good(), "path"),
    ] {
        let refused =
            service.spawn_monitor::<_, RequestBody, ResponseBody>(&settings, wire.clone());
        assert_eq!(refused.unwrap_err().setting(), setting, "{settings:?}");
    }
    let whole = MonitorSettings::new("/devstoreaccount1/c/b");
    drop(spawn(&emulator, &whole, &wire));
    // A monitor that did not come to be is not waited for.
    let state = service.state_ref();
    let failing = Wire::new(|_| Act::Answer(status(503)));
    drop(failing);
    assert!(state.is_calm());
}
