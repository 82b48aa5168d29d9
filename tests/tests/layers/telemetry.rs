//! What do people and listeners hear of an operation (E3, T9, B10)?

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::Request;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_geo::{
    CircuitBreakerLayer, Event, EventKind, LogEvents, ReplicationStats, ReplicationStatus,
    RetrySettings, SendKind,
};
use tower_geo_testkit::strict::{Reply, Script, ScriptService};

use crate::support::*;
use crate::watching::Told;

/// Keeps what is told of further sends.
#[derive(Clone, Debug, Default)]
struct Resends(Arc<Mutex<Vec<String>>>);

impl Resends {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl tower_geo::Listener for Resends {
    fn on_event(&self, event: &Event) {
        if let EventKind::Resend(resend) = event.kind {
            self.0.lock().unwrap().push(format!(
                "{} {} {} {} after {} waited {:?}",
                event.service,
                event.region_name(resend.region),
                resend.attempt,
                resend.kind.as_str(),
                resend.after.map_or("nothing", |verdict| verdict.as_str()),
                resend.waited,
            ));
        }
    }
}

/// T9: a listener sees every further send, with its reason and its wait, as it leaves.
#[tokio::test(start_paused = true)]
async fn a_listener_sees_every_further_send() {
    let script = Script::new()
        .any_method(P, [Reply::status(503), Reply::refused(), Reply::ok("late")])
        .any_method(S, [Reply::status(404), Reply::ok("secondary")]);
    let resends = Resends::default();
    let service = builder()
        .listener(Arc::new(resends.clone()))
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let answer = stack.oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(
        resends.all(),
        [
            "blob secondary 2 fall-over after transient waited 0ns",
            "blob primary 3 retry after answered waited 1s",
            "blob primary 4 retry after unreachable waited 2s",
        ]
    );
    assert_eq!(script.sends().len(), 4);
}

/// T9, H1: a hedge is a further send, too; the first has no verdict yet.
#[tokio::test(start_paused = true)]
async fn a_listener_sees_hedges() {
    let script = Script::new()
        .any_method(P, [Reply::ok("").after(secs(5))])
        .any_method(S, [Reply::ok("")]);
    let resends = Resends::default();
    let service = builder()
        .retry(retry().hedge(ms(100)))
        .listener(Arc::new(resends.clone()))
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    stack.oneshot(get()).await.unwrap();
    assert_eq!(
        resends.all(),
        ["blob secondary 2 hedge after nothing waited 0ns"]
    );
}

/// Ready until something was sent, and then never again.
#[derive(Clone)]
struct ReadyOnce(Script);

impl Service<Request<Body>> for ReadyOnce {
    type Response = <ScriptService as Service<Request<Body>>>::Response;
    type Error = <ScriptService as Service<Request<Body>>>::Error;
    type Future = <ScriptService as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.0.sends().is_empty() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.service().call(request)
    }
}

/// T9, T7: what does not leave is not told: the service below is not ready for the next send.
#[tokio::test(start_paused = true)]
async fn what_does_not_leave_is_not_told() {
    let resends = Resends::default();
    let service = builder()
        .listener(Arc::new(resends.clone()))
        .build()
        .unwrap();
    let stack = service
        .layer()
        .clone_bodies()
        .layer(ReadyOnce(primary_down()));
    assert_eq!(word(&stack.oneshot(get()).await), "503");
    assert_eq!(resends.all(), Vec::<String>::new());
}

/// B10: a listener may ask the service what it likes while a send leaves.
#[tokio::test(start_paused = true)]
async fn a_listener_may_ask_the_service_while_a_send_leaves() {
    let service = Arc::new(Mutex::new(None::<tower_geo::GeoService>));
    let (asked, heard) = (Arc::clone(&service), Arc::new(Mutex::new(Vec::new())));
    let notes = Arc::clone(&heard);
    let listener = move |event: &Event| {
        if let EventKind::Resend(resend) = event.kind {
            let asked = asked.lock().unwrap();
            let level = asked
                .as_ref()
                .and_then(|service| service.budget(&SECONDARY));
            notes.lock().unwrap().push((resend.kind, level));
        }
    };
    let built = builder().listener(Arc::new(listener)).build().unwrap();
    *service.lock().unwrap() = Some(built.clone());
    let script = primary_down();
    let stack = built.layer().clone_bodies().layer(script.service());
    stack.oneshot(get()).await.unwrap();
    assert_eq!(
        *heard.lock().unwrap(),
        [(SendKind::FallOver, Some((499, 500)))],
        "T4: it is paid when it leaves"
    );
}

/// E2, E3: a healthy operation tells nothing, at any level, nor do those that pass.
#[tokio::test(start_paused = true)]
async fn a_healthy_operation_tells_nothing() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let events = Events::default();
    let service = builder()
        .listener(Arc::new(events.clone()))
        .build()
        .unwrap();
    let script = healthy().any_method("login.example.test", [Reply::ok("token")]);
    let stack = service.layer().clone_bodies().layer(script.service());
    for request in [
        get(),
        put(),
        append(),
        request(http::Method::GET, "login.example.test", "/token"),
    ] {
        assert_eq!(stack.clone().oneshot(request).await.unwrap().status(), 200);
    }
    assert_eq!(told.lines(), Vec::<String>::new());
    assert_eq!(events.all(), Vec::<String>::new());
}

/// E3: service, region, attempt, verdict and wait of each send of a read that falls over and
/// returns; what the client says in between stands in the span of its send.
#[tokio::test(start_paused = true)]
async fn sends_are_told_with_region_attempt_verdict_and_wait() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let script = Script::new()
        .any_method(P, [Reply::reset(), Reply::ok("late")])
        .any_method(S, [Reply::status(404)]);
    let client = script.service();
    let client = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            tracing::info!(target: "client", "on the wire");
            client.oneshot(request).await
        }
    });
    let stack = service().layer().clone_bodies().layer(client);
    stack.oneshot(get()).await.unwrap();
    let second = "send service=blob region=secondary attempt=2 kind=fall-over wait=0ns";
    let third = "send service=blob region=primary attempt=3 kind=retry wait=1s";
    assert_eq!(
        told.lines(),
        [
            "INFO on the wire".to_owned(),
            "DEBUG a send has ended service=blob region=primary attempt=1 kind=first ending=reset \
             verdict=ambiguous wait=0ns"
                .to_owned(),
            format!("SPAN {second}"),
            "DEBUG a further send leaves service=blob region=secondary attempt=2 kind=fall-over \
             after=ambiguous wait=0ns"
                .to_owned(),
            format!("[{second}] INFO on the wire"),
            "DEBUG a send has ended service=blob region=secondary attempt=2 kind=fall-over \
             ending=404 verdict=answered wait=0ns"
                .to_owned(),
            "TRACE waiting for the next send service=blob attempt=3 wait=1s".to_owned(),
            format!("SPAN {third}"),
            "DEBUG a further send leaves service=blob region=primary attempt=3 kind=retry \
             after=answered wait=1s"
                .to_owned(),
            format!("[{third}] INFO on the wire"),
            "DEBUG a send has ended service=blob region=primary attempt=3 kind=retry ending=200 \
             verdict=answered wait=1s"
                .to_owned(),
            "DEBUG an answer is handed over service=blob region=primary attempts=3".to_owned(),
        ]
    );
}

/// E3, B10: transitions are logged with the name of the region and the reason; losses are warnings.
#[tokio::test(start_paused = true)]
async fn transitions_are_logged() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let service = builder()
        .breaker(breaker().close_after(1))
        .listener(Arc::new(LogEvents::new()))
        .build()
        .unwrap();
    let script = primary_down();
    script.replace(
        S,
        [Reply::status(403).header("x-ms-error-code", "InsufficientAccountPermissions")],
    );
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..3 {
        let _answer = stack.clone().oneshot(get()).await;
    }
    assert_eq!(word(&stack.clone().oneshot(put()).await), "read-only");
    script.replace(P, [Reply::ok("")]);
    tokio::time::sleep(secs(30)).await;
    stack.oneshot(get()).await.unwrap();
    // Some are told while a send is under way, in its span.
    let lines: Vec<_> = told
        .lines()
        .into_iter()
        .map(|line| {
            line.split_once("] ")
                .map_or_else(|| line.clone(), |(_, line)| line.to_owned())
        })
        .filter(|line| line.starts_with("WARN") || line.starts_with("INFO"))
        .collect();
    assert_eq!(
        lines,
        [
            "WARN a copy is used differently service=blob region=secondary to=set-aside",
            "WARN a circuit has changed its state service=blob region=primary circuit=reads \
             from=closed to=open why=streak wait=Some(30s) suspects=0",
            "WARN the read-only gate has changed its state service=blob to=read-only why=breaker",
            "INFO a circuit has changed its state service=blob region=primary circuit=reads \
             from=open to=half-open why=waited",
            "INFO the read-only gate has changed its state service=blob to=trial why=breaker",
            "INFO a circuit has changed its state service=blob region=primary circuit=reads \
             from=half-open to=closed why=probe",
            "INFO the read-only gate has changed its state service=blob to=read-write why=breaker",
        ]
    );
    assert_eq!(
        told.with("a write was refused"),
        ["DEBUG a write was refused: read-only service=blob why=breaker retry_after=Some(30s)"]
    );
}

/// E3: a breaker that stands alone says why it sends nothing.
#[tokio::test(start_paused = true)]
async fn a_refused_send_is_told() {
    let told = Told::default();
    let service = service();
    let script = primary_down();
    let stack = CircuitBreakerLayer::new(service).layer(script.service());
    for _ in 0..3 {
        stack.clone().oneshot(get()).await.unwrap();
    }
    let _guard = tracing::subscriber::set_default(told.clone());
    assert_eq!(word(&stack.oneshot(get()).await), "breaker-open");
    assert_eq!(
        told.lines(),
        [
            "DEBUG a send was refused: the circuit is open service=blob region=primary \
             circuit=reads retry_after=Some(30s)"
        ]
    );
}

/// E3, F3: answers of a copy that is too old are told; that nobody asks for its age, once, aloud.
#[tokio::test(start_paused = true)]
async fn a_copy_that_is_too_old_is_told() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let service = builder()
        .breaker(None)
        .retry(retry().max_retries(1))
        .max_staleness(secs(60))
        .build()
        .unwrap();
    let script = primary_down();
    let stack = service.layer().clone_bodies().layer(script.service());
    for _ in 0..2 {
        assert_eq!(word(&stack.clone().oneshot(get()).await), "stale");
    }
    assert_eq!(told.with("WARN").len(), 1);
    assert_eq!(told.with("too far behind").len(), 2);
    let ended = told.with("without an answer");
    assert!(
        ended.iter().all(|line| line.contains("error=stale")),
        "{ended:?}"
    );
    let stats = ReplicationStats::new(ReplicationStatus::Live, Some(noon() - secs(40)));
    service.record_last_sync(stats, noon());
    assert_eq!(word(&stack.oneshot(get()).await), "200");
    assert_eq!(
        told.with("an answer is handed over"),
        [
            "DEBUG an answer is handed over service=blob region=secondary attempts=2 \
             freshness=unknown"
        ]
    );
}

/// E3: settings that are legal and hardly meant are told when the service is built.
#[test]
fn a_setting_that_is_hardly_meant_is_told() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    builder()
        .retry(RetrySettings::new().max_retries(0))
        .build()
        .unwrap();
    assert_eq!(told.with("max_retries").len(), 1);
    builder().build().unwrap();
    assert_eq!(told.lines().len(), 1);
}
