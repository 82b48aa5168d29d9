//! What does a dropped call leave behind? Each operation here is dropped after its first poll,
//! after its second, and so on, until it ends by itself.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_geo::body::SettleBody;
use tower_geo::{
    Circuit, CircuitBreakerLayer, Error, GeoRedirectLayer, GeoService, GeoServiceBuilder,
    ReadOnlyGateLayer, RegionRef,
};
use tower_geo_testkit::strict::{PendingTimes, Reply, Script, ScriptBody, ScriptService};

use crate::support::*;

const PERMITS: usize = 2;

type Client = ConcurrencyLimit<PendingTimes<ScriptService>>;
type Stack = BoxCloneSyncService<Request<Body>, Response<SettleBody<ScriptBody>>, Error>;

/// Polls a future so many times, and then drops it; what it gave, if it came to its end.
async fn poll_times<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = times;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A situation, made anew for each drop.
struct Scene {
    service: GeoService,
    script: Script,
    request: Request<Body>,
}

fn all_cloning(service: &GeoService, client: Client) -> Stack {
    BoxCloneSyncService::new(service.layer().clone_bodies().layer(client))
}

fn all_buffering(service: &GeoService, client: Client) -> Stack {
    BoxCloneSyncService::new(service.layer().buffer_bodies(1024).layer(client))
}

fn without_retry(service: &GeoService, client: Client) -> Stack {
    BoxCloneSyncService::new(
        ServiceBuilder::new()
            .layer(ReadOnlyGateLayer::new(service.clone()))
            .layer(GeoRedirectLayer::new(service.clone()).clone_bodies())
            .layer(CircuitBreakerLayer::new(service.clone()))
            .service(client),
    )
}

fn gate_and_breaker(service: &GeoService, client: Client) -> Stack {
    BoxCloneSyncService::new(
        ServiceBuilder::new()
            .layer(ReadOnlyGateLayer::new(service.clone()))
            .layer(CircuitBreakerLayer::new(service.clone()))
            .service(client),
    )
}

/// The tokens that the sends to a region cost, and those of the last of them (T4). All failures
/// of these scenes cost 14 to return from; a first visit costs 1, as a hedge 5.
fn prices(hosts: &[String], host: &str, visit: u32) -> (u32, u32) {
    let mut seen = 0;
    let (mut all, mut last) = (0, 0);
    for (index, at) in hosts.iter().enumerate() {
        if at == host {
            last = match (index, seen) {
                (0, _) => 0,
                (_, 0) => visit,
                _ => 14,
            };
            all += last;
            seen += 1;
        }
    }
    (all, last)
}

/// Drops the operation of a scene at each of its polls, and says how many there were.
async fn drop_at_every_poll(name: &str, make: impl AsyncFn() -> Scene) -> usize {
    let mut most = 0;
    for (arrangement, build) in [
        ("cloning", all_cloning as fn(&GeoService, Client) -> Stack),
        ("buffering", all_buffering),
        ("without retry", without_retry),
        ("gate and breaker", gate_and_breaker),
    ] {
        for polls in 0.. {
            let case = format!("{name}, {arrangement}, dropped after {polls}");
            let Scene {
                service,
                script,
                request,
            } = make().await;
            script.clear_sends();
            let level_before = [RegionRef::Primary, RegionRef::Secondary]
                .map(|region| service.budget(&region).unwrap().0);
            let permits = Arc::new(Semaphore::new(PERMITS));
            let client = ConcurrencyLimit::with_semaphore(
                PendingTimes::new(script.service(), 1),
                Arc::clone(&permits),
            );
            let stack = build(&service, client);
            let operation = async move {
                let response = stack.oneshot(request).await?;
                response.into_body().collect().await
            };
            let ended = poll_times(operation, polls).await.is_some();

            assert_eq!(permits.available_permits(), PERMITS, "{case}: permits");
            for region in [RegionRef::Primary, RegionRef::Secondary] {
                for circuit in [Circuit::Reads, Circuit::Writes] {
                    let state = service.circuit(&region, circuit).unwrap();
                    assert_eq!(state.probes, 0, "{case}: probes of {region:?} {circuit:?}");
                }
            }
            let drained = tokio::time::timeout(ms(1), service.operator().writes_drained()).await;
            assert!(drained.is_ok(), "{case}: writes in flight");
            let hosts = script.hosts();
            for ((region, host), before) in [(PRIMARY, P), (SECONDARY, S)].iter().zip(level_before)
            {
                let visit = if name == "hedge" { 5 } else { 1 };
                let (all, last) = prices(&hosts, host, visit);
                let spent = before.saturating_sub(service.budget(region).unwrap().0);
                assert!(
                    spent <= all && spent >= all.saturating_sub(last),
                    "{case}: {spent} tokens of {region:?} for {hosts:?}"
                );
            }
            if ended {
                most = most.max(polls);
                break;
            }
            assert!(polls < 500, "{case}: it never ends");
        }
    }
    most
}

/// Opens the circuits of the primary by failures like this, and waits until they can be tried.
async fn due(builder: GeoServiceBuilder, failure: Reply) -> (GeoService, Script) {
    let service = builder.build().unwrap();
    let script = Script::new()
        .any_method(P, [failure])
        .any_method(S, [Reply::ok("secondary")]);
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        assert_eq!(stack.clone().oneshot(get()).await.unwrap().status(), 200);
    }
    tokio::time::sleep(secs(30)).await;
    (service, script)
}

/// B7, V4, DESIGN 5: the healthy path, with a body that stops coming.
#[tokio::test(start_paused = true)]
async fn a_dropped_healthy_operation_leaves_nothing() {
    for request in [get, put, append] {
        let polls = drop_at_every_poll("healthy", async || Scene {
            service: service(),
            script: Script::new()
                .any_method(P, [Reply::ok("primary").after(ms(1)).stall_body_after(3)]),
            request: request(),
        })
        .await;
        assert!(polls > 3, "{polls}");
    }
}

/// T4, T7: falling over, readiness included.
#[tokio::test(start_paused = true)]
async fn a_dropped_failover_leaves_nothing() {
    drop_at_every_poll("falling over", async || Scene {
        service: service(),
        script: Script::new()
            .any_method(P, [Reply::status(503).after(ms(1))])
            .any_method(S, [Reply::ok("secondary").after(ms(1)).stall_body_after(2)]),
        request: get(),
    })
    .await;
}

/// T1, T4, T7: waits and returns, of a write and of a read.
#[tokio::test(start_paused = true)]
async fn a_dropped_retry_leaves_nothing() {
    for request in [get, put] {
        let polls = drop_at_every_poll("retrying", async || Scene {
            service: service(),
            script: Script::new()
                .any_method(
                    P,
                    [
                        Reply::status(503).after(ms(1)),
                        Reply::reset().after(ms(1)),
                        Reply::hang(),
                        Reply::ok("primary").after(ms(1)),
                    ],
                )
                .any_method(S, [Reply::status(500).after(ms(1))]),
            request: request(),
        })
        .await;
        assert!(polls > 8, "{polls}");
    }
}

/// B7: a dropped probe returns its slot, once, wherever it was dropped: good, failing or hung.
#[tokio::test(start_paused = true)]
async fn a_dropped_probe_returns_its_slot() {
    for probed in [
        Reply::ok("primary").after(ms(1)).stall_body_after(2),
        Reply::status(503).after(ms(1)),
        Reply::status(403).after(ms(1)),
        Reply::refused().after(ms(1)),
        Reply::hang(),
    ] {
        drop_at_every_poll("probe", async || {
            let (service, script) = due(builder(), Reply::status(503)).await;
            script.replace(P, [probed.clone()]);
            Scene {
                service,
                script,
                request: get(),
            }
        })
        .await;
    }
}

/// B7: so does a dropped trial write, also one that holds a slot of each circuit.
#[tokio::test(start_paused = true)]
async fn a_dropped_trial_write_returns_its_slots() {
    for probed in [
        Reply::ok("").after(ms(1)),
        Reply::ok("primary").after(ms(1)).stall_body_after(2),
        Reply::status(503).after(ms(1)),
        Reply::hang(),
    ] {
        for request in [put, append] {
            drop_at_every_poll("trial write", async || {
                let (service, script) = due(builder(), Reply::refused()).await;
                script.replace(P, [probed.clone()]);
                Scene {
                    service,
                    script,
                    request: request(),
                }
            })
            .await;
        }
    }
}

/// T1: waiting out a rest before the first send.
#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_a_rest_leaves_nothing() {
    drop_at_every_poll("rest", async || {
        let service = builder().retry(retry().max_retries(1)).build().unwrap();
        let script = Script::new()
            .any_method(P, [Reply::status(429).header("retry-after", "9")])
            .any_method(S, [Reply::status(429).header("retry-after", "9")]);
        let stack = service.layer().clone_bodies().layer(script.service());
        assert_eq!(stack.oneshot(get()).await.unwrap().status(), 429);
        script.replace(P, [Reply::ok("primary").after(ms(1))]);
        Scene {
            service,
            script,
            request: put(),
        }
    })
    .await;
}

/// H2, T4: a hedged read, whichever of its sends is under way, or still waits to be ready.
#[tokio::test(start_paused = true)]
async fn a_dropped_hedge_leaves_nothing() {
    for secondary in [
        Reply::ok("secondary").after(ms(1)),
        Reply::status(503),
        Reply::hang(),
    ] {
        drop_at_every_poll("hedge", async || Scene {
            service: builder().retry(retry().hedge(ms(5))).build().unwrap(),
            script: Script::new()
                .any_method(P, [Reply::ok("primary").after(ms(20))])
                .any_method(S, [secondary.clone()]),
            request: get(),
        })
        .await;
    }
}

/// G2: a read that takes its readiness inside the call of the gate.
#[tokio::test(start_paused = true)]
async fn a_dropped_read_in_read_only_leaves_nothing() {
    drop_at_every_poll("read-only", async || {
        let service = service();
        service.operator().read_only();
        Scene {
            service,
            script: healthy(),
            request: get(),
        }
    })
    .await;
}

/// B7: after a probe was dropped before `suspect_after`, the next read probes: nothing was decided.
#[tokio::test(start_paused = true)]
async fn after_a_dropped_probe_the_next_read_probes() {
    let (service, script) = due(builder(), Reply::status(503)).await;
    script.replace(P, [Reply::ok("primary").after(ms(900))]);
    script.clear_sends();
    let stack = service.layer().clone_bodies().layer(script.service());
    let left = tokio::time::timeout(ms(500), stack.clone().oneshot(get())).await;
    assert!(left.is_err());
    let probes = tokio::join!(stack.clone().oneshot(get()), stack.clone().oneshot(get()));
    assert_eq!(word(&probes.0), "200");
    assert_eq!(word(&probes.1), "200");
    assert_eq!(script.hosts(), [P, P, S], "one slot, and it was free");
}

/// B7, B8: a probe that is dropped after `suspect_after` has failed.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_late_has_failed() {
    let (service, script) = due(builder(), Reply::status(503)).await;
    script.replace(P, [Reply::hang()]);
    script.clear_sends();
    let stack = service.layer().clone_bodies().layer(script.service());
    let left = tokio::time::timeout(ms(1500), stack.clone().oneshot(get())).await;
    assert!(left.is_err());
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(script.hosts(), [P, S], "it is open again");
}

/// B7: a probe that panics gives its slot back, and the next operation on this thread is none the
/// wiser.
#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_returns_its_slot() {
    let (service, script) = due(builder(), Reply::status(503)).await;
    let broken = tower::service_fn(|_: Request<Body>| async {
        tokio::time::sleep(ms(1)).await;
        if true {
            panic!("the client has a fault");
        }
        Ok::<_, std::io::Error>(Response::new(ScriptBody::new("")))
    });
    for request in [get(), put()] {
        let stack = service.layer().clone_bodies().layer(broken);
        assert!(
            tokio::spawn(stack.oneshot(request))
                .await
                .is_err_and(|error| error.is_panic())
        );
        for circuit in [Circuit::Reads, Circuit::Writes] {
            assert_eq!(service.circuit(&PRIMARY, circuit).unwrap().probes, 0);
        }
    }
    script.replace(P, [Reply::ok("primary")]);
    script.clear_sends();
    let stack = service.layer().clone_bodies().layer(script.service());
    assert_eq!(stack.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(script.hosts(), [P]);
}
