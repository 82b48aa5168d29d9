//! R12: connections do not outlive a failover. Which client is a send made with?

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::Request;
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_geo::{
    Circuit, CircuitBreakerLayer, CircuitPhase, FreshConnectionsLayer, GeoService, LocationMode,
    MonitorSettings, Probe,
};
use tower_geo_testkit::Side;
use tower_geo_testkit::client::{ClientBuilder, Names, TestClient};
use tower_geo_testkit::store::{RegionState, TwoRegionStore};
use tower_geo_testkit::strict::{PanicsUnready, PendingTimes, Reply, Script, ScriptService};

use crate::support::*;

/// Makes clients and notes which of them made each send: the first has the number 0.
#[derive(Clone)]
struct Clients {
    script: Script,
    made: Arc<AtomicUsize>,
    sends: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Clients {
    fn new(script: &Script) -> Self {
        Self {
            script: script.clone(),
            made: Arc::default(),
            sends: Arc::default(),
        }
    }

    fn make(&self) -> Client {
        Client {
            number: self.made.fetch_add(1, Ordering::Relaxed),
            inner: self.script.service(),
            sends: Arc::clone(&self.sends),
        }
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Which client sent where since the last time.
    fn sends(&self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.sends.lock().unwrap())
    }

    fn layer(&self) -> FreshConnectionsLayer<impl Fn() -> Client + Clone + use<>> {
        let clients = self.clone();
        FreshConnectionsLayer::new(move || clients.make())
    }
}

#[derive(Clone)]
struct Client {
    number: usize,
    inner: ScriptService,
    sends: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Service<Request<Body>> for Client {
    type Response = <ScriptService as Service<Request<Body>>>::Response;
    type Error = <ScriptService as Service<Request<Body>>>::Error;
    type Future = <ScriptService as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.inner, cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let host = request.uri().host().unwrap_or_default().to_owned();
        self.sends.lock().unwrap().push((self.number, host));
        self.inner.call(request)
    }
}

/// What `n` sends of one client to one host look like.
fn sends(n: usize, client: usize, host: &str) -> Vec<(usize, String)> {
    vec![(client, host.to_owned()); n]
}

/// R12: a probe has a client of its own, and when it was answered everybody has.
#[tokio::test(start_paused = true)]
async fn a_probe_has_a_client_of_its_own_and_its_success_gives_it_to_all() {
    let script = primary_down();
    let clients = Clients::new(&script);
    let service = service();
    let stack = ServiceBuilder::new()
        .layer(service.layer().clone_bodies())
        .layer(clients.layer())
        .service(clients.make());
    // Kept by somebody who makes calls, and never cloned after this.
    let mut kept = stack.clone();
    for _ in 0..3 {
        stack.clone().oneshot(get()).await.unwrap();
    }
    assert!(clients.sends().iter().all(|(client, _)| *client == 0));
    assert_eq!(clients.made(), 1, "nobody has probed");

    tokio::time::sleep(secs(30)).await;
    stack.clone().oneshot(get()).await.unwrap();
    assert_eq!(
        clients.sends(),
        [(1, P.to_owned()), (0, S.to_owned())],
        "the probe failed: the client of the others is still good for the secondary"
    );
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(60)).await;
    stack.clone().oneshot(get()).await.unwrap();
    assert_eq!(clients.sends(), sends(1, 2, P));
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Closed
    );

    stack.clone().oneshot(get()).await.unwrap();
    kept.until_ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(
        clients.sends(),
        sends(2, 2, P),
        "of clones and of the one kept"
    );
    assert_eq!(clients.made(), 3, "one for each probe");
}

/// R12, B4: a trial write that the gate has let in is a probe, too.
#[tokio::test(start_paused = true)]
async fn a_trial_write_has_a_client_of_its_own() {
    let script = Script::new().any_method(P, [Reply::refused()]);
    let clients = Clients::new(&script);
    let stack = ServiceBuilder::new()
        .layer(service().layer().clone_bodies())
        .layer(clients.layer())
        .service(clients.make());
    for _ in 0..3 {
        let _ = stack.clone().oneshot(append()).await;
    }
    script.replace(P, [Reply::ok("")]);
    clients.sends();
    tokio::time::sleep(secs(30)).await;
    assert_eq!(word(&stack.clone().oneshot(append()).await), "200");
    assert_eq!(word(&stack.oneshot(append()).await), "200");
    assert_eq!(clients.sends(), sends(2, 1, P));
}

/// R12: an answer that is a failure, or none, gives the client of a probe to nobody.
#[tokio::test(start_paused = true)]
async fn the_client_of_a_probe_that_fails_is_dropped() {
    for answer in [
        Reply::status(500),
        Reply::status(503),
        Reply::status(429),
        Reply::status(408),
        Reply::refused(),
        Reply::hang(),
    ] {
        let script = primary_down();
        let clients = Clients::new(&script);
        let service = service();
        let stack =
            CircuitBreakerLayer::new(service.clone()).layer(clients.layer().layer(clients.make()));
        for _ in 0..3 {
            let _ = stack.clone().oneshot(get()).await;
        }
        script.replace(P, [answer]);
        tokio::time::sleep(secs(30)).await;
        clients.sends();
        let _ = stack.clone().oneshot(get()).await;
        assert_eq!(clients.sends(), sends(1, 1, P));
        service.operator().force_closed(&PRIMARY).unwrap();
        let _ = tokio::time::timeout(secs(1), stack.oneshot(get())).await;
        assert_eq!(clients.sends(), sends(1, 0, P));
    }
}

/// T7: a client that was just made is asked for readiness before it is called, and waited for.
#[tokio::test(start_paused = true)]
async fn a_new_client_is_waited_for_until_it_is_ready() {
    let script = Script::new().any_method(P, [Reply::status(503)]);
    let service = service();
    let make = {
        let script = script.clone();
        move || PanicsUnready::new(PendingTimes::new(script.service(), 2))
    };
    let inner = FreshConnectionsLayer::new(make.clone()).layer(make());
    let stack = CircuitBreakerLayer::new(service.clone()).layer(inner);
    for _ in 0..3 {
        let _ = stack.clone().oneshot(get()).await;
    }
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(30)).await;
    assert_eq!(word(&stack.oneshot(get()).await), "200");
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Closed
    );
}

/// B7: a probe gives back the permit that its handle had taken of the client in use.
#[tokio::test(start_paused = true)]
async fn a_probe_keeps_no_permit_of_the_client_that_it_does_not_use() {
    let script = primary_down();
    let permits = Arc::new(Semaphore::new(1));
    let service = service();
    let limited = ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    let make = {
        let script = script.clone();
        move || ConcurrencyLimit::with_semaphore(script.service(), Arc::new(Semaphore::new(1)))
    };
    let mut stack =
        CircuitBreakerLayer::new(service).layer(FreshConnectionsLayer::new(make).layer(limited));
    for _ in 0..3 {
        let _ = stack.until_ready().await.unwrap().call(get()).await;
    }
    script.replace(P, [Reply::hang()]);
    tokio::time::sleep(secs(30)).await;
    let probe = stack.until_ready().await.unwrap().call(get());
    assert_eq!(permits.available_permits(), 1);
    drop(probe);
    assert_eq!(permits.available_permits(), 1);
}

/// R12, B11: while a circuit is open the monitor asks over new connections, which replace nothing
/// by themselves; while all is well it asks as everybody does.
#[tokio::test(start_paused = true)]
async fn a_monitor_asks_over_new_connections_while_the_circuit_is_open() {
    let script = healthy();
    let clients = Clients::new(&script);
    let service = service();
    let stack = ServiceBuilder::new()
        .layer(service.layer().clone_bodies())
        .layer(clients.layer())
        .service(clients.make());
    let ping = MonitorSettings::new("/health/ping").jitter(0.0);
    let _monitor = service.spawn_monitor(&ping, stack.clone()).unwrap();
    tokio::time::sleep(secs(11)).await;
    assert_eq!(clients.sends(), sends(2, 0, P));

    script.replace(P, [Reply::status(503)]);
    tokio::time::sleep(secs(15)).await;
    assert_eq!(clients.sends(), sends(3, 0, P));
    tokio::time::sleep(secs(10)).await;
    assert_eq!(clients.sends(), [(1, P.to_owned()), (2, P.to_owned())]);
    script.replace(P, [Reply::ok("primary")]);
    tokio::time::sleep(secs(5)).await;
    assert_eq!(clients.sends(), sends(1, 3, P));

    stack.clone().oneshot(get()).await.unwrap();
    stack.clone().oneshot(get()).await.unwrap();
    assert_eq!(
        clients.sends(),
        sends(2, 4, P),
        "the probe, and who follows it"
    );
}

/// R12: with a limit of age the client is replaced then, whoever keeps a handle, and only once.
#[tokio::test(start_paused = true)]
async fn no_client_is_used_beyond_its_age() {
    let clients = Clients::new(&healthy());
    let service = service();
    let layer = clients.layer().max_age(secs(60));
    let stack = ServiceBuilder::new()
        .layer(service.layer().clone_bodies())
        .layer(layer)
        .service(clients.make());
    let mut kept = stack.clone();
    for (seconds, client) in [(59, 0), (1, 1), (59, 1), (1, 2), (3_600, 3)] {
        tokio::time::sleep(secs(seconds)).await;
        stack.clone().oneshot(get()).await.unwrap();
        kept.until_ready().await.unwrap().call(get()).await.unwrap();
        assert_eq!(clients.sends(), sends(2, client, P));
    }
    assert_eq!(clients.made(), 4);
}

/// E2: a request that is no probe carries nothing of it; a probe says what it is.
#[tokio::test(start_paused = true)]
async fn only_probes_are_marked() {
    let script = primary_down();
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let note = Arc::clone(&seen);
    let client = script.service();
    let client = tower::util::MapRequest::new(client, move |request: Request<Body>| {
        let is_probe = Probe::of(request.extensions()).is_some();
        note.lock().unwrap().push(is_probe);
        request
    });
    let stack = service().layer().clone_bodies().layer(client);
    for _ in 0..3 {
        stack.clone().oneshot(get()).await.unwrap();
    }
    tokio::time::sleep(secs(30)).await;
    seen.lock().unwrap().clear();
    stack.clone().oneshot(get()).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(
        seen,
        [true, false],
        "the probe, and the send to the secondary"
    );
}

/// R12, over real HTTP: the name of the primary moves while a kept connection still leads to the
/// machine that it has left, which answers 503. Without new connections the probe asks that one.
#[tokio::test]
async fn a_probe_meets_the_server_to_which_the_name_has_moved() {
    let old = TwoRegionStore::start().await.unwrap();
    let new = TwoRegionStore::start().await.unwrap();
    for (store, text) in [(&old, "old"), (&new, "new")] {
        store.seed("photos", "cat", text);
    }
    for has_fresh_connections in [false, true] {
        old.set(Side::Primary, RegionState::Up).await.unwrap();
        let names = Names::new();
        names.point(P, old.addr(Side::Primary));
        let make = {
            let names = names.clone();
            move || -> TestClient<Body> {
                let builder = ClientBuilder::new().names(names.clone());
                builder.keep_alive(secs(600)).build().unwrap()
            }
        };
        // The wait ends with the next call: nothing sleeps here.
        let service = GeoService::azure_storage(format!("http://{P}"))
            .location_mode(LocationMode::PrimaryOnly)
            .retry(retry().max_retries(0))
            .breaker(breaker().open_for_calls(1))
            .build()
            .unwrap();
        let circuits = CircuitBreakerLayer::new(service.clone());
        let mut stack = if has_fresh_connections {
            let fresh = FreshConnectionsLayer::new(make.clone());
            circuits.layer(tower::util::Either::Left(fresh.layer(make())))
        } else {
            circuits.layer(tower::util::Either::Right(make()))
        };
        let url = format!("http://{P}/photos/cat");
        let mut read = async || {
            let request = Request::get(&url).body(Body::default()).unwrap();
            let answer = stack.until_ready().await.unwrap().call(request).await?;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await?.to_bytes();
            Ok::<_, tower_geo::Error>((status, body))
        };
        assert_eq!(read().await.unwrap(), (200, "old".into()));
        let gone = RegionState::Status(http::StatusCode::SERVICE_UNAVAILABLE);
        old.set(Side::Primary, gone).await.unwrap();
        names.point(P, new.addr(Side::Primary));
        for _ in 0..3 {
            assert_eq!(read().await.unwrap().0, 503, "over the kept connection");
        }
        assert!(read().await.is_err(), "refused, and so the wait is over");
        let probe = read().await.unwrap();
        let reads = phase(&service, &PRIMARY, Circuit::Reads);
        if has_fresh_connections {
            assert_eq!(probe, (200, "new".into()));
            assert_eq!(reads, CircuitPhase::Closed);
            let connections = new.connections(Side::Primary);
            for _ in 0..5 {
                assert_eq!(
                    read().await.unwrap(),
                    (200, "new".into()),
                    "all others, too"
                );
            }
            assert_eq!(new.connections(Side::Primary), connections, "which is kept");
        } else {
            assert_eq!(probe.0, 503);
            assert_eq!(reads, CircuitPhase::Open);
        }
    }
}
