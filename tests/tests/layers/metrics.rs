//! What do the metrics say of an operation and of a service (E3)?

use http::Method;
use http_body_util::BodyExt;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_geo::telemetry::Metrics;
use tower_geo::{
    GeoService, GeoServiceBuilder, ReadOnlyGateLayer, ReplicationStats, ReplicationStatus,
    ResumeLayer,
};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;
use crate::watching::Metered;

type Answer = http::Response<Vec<u8>>;

/// Calls a service whose operations and sends are recorded, and waits for each answer.
async fn run(
    metered: &Metered,
    service: &GeoService,
    script: &Script,
    requests: impl IntoIterator<Item = http::Request<Body>>,
) -> Vec<Result<Answer, tower_geo::Error>> {
    let metrics = Metrics::new(&metered.meter(), service);
    let mut stack = ServiceBuilder::new()
        .layer(metrics.operations())
        .layer(service.layer().clone_bodies())
        .layer(metrics.sends())
        .service(script.service());
    let mut answers = Vec::new();
    for request in requests {
        let answer = stack.until_ready().await.unwrap().call(request).await;
        answers.push(answer.map(|answer| answer.map(|_| Vec::new())));
    }
    answers
}

fn built(builder: GeoServiceBuilder) -> GeoService {
    builder.build().unwrap()
}

fn points(all: &[(&str, f64)]) -> Vec<(String, f64)> {
    all.iter()
        .map(|&(keys, value)| (keys.to_owned(), value))
        .collect()
}

/// E3: one record for each send, with the host that it went to, its status or its fault.
#[tokio::test(start_paused = true)]
async fn every_send_is_recorded_with_its_host() {
    let metered = Metered::new();
    let script = Script::new()
        .any_method(P, [Reply::status(503), Reply::refused(), Reply::hang()])
        .any_method(S, [Reply::ok("secondary")]);
    let service = built(builder().breaker(None));
    run(&metered, &service, &script, [get(), get(), get()]).await;
    let p = "http.request.method=GET";
    assert_eq!(
        metered.of("http.client.request.duration"),
        points(&[
            (
                &format!(
                    "error.type=503,{p},http.response.status_code=503,server.address={P},\
                     server.port=443,region=primary"
                ),
                1.0
            ),
            (
                &format!(
                    "error.type=connect,{p},server.address={P},server.port=443,region=primary"
                ),
                1.0
            ),
            (
                &format!(
                    "error.type=timeout,{p},server.address={P},server.port=443,region=primary"
                ),
                1.0
            ),
            (
                &format!(
                    "{p},http.response.status_code=200,server.address={S},server.port=443,\
                     region=secondary"
                ),
                3.0
            ),
        ])
    );
    let all = metered.points();
    let (_, timeout) = all
        .iter()
        .find(|(key, _)| key.starts_with("http.") && key.contains("timeout"))
        .unwrap();
    assert_eq!(*timeout, (1, 10.0), "in seconds: `attempt_timeout`");
}

/// E3: sums over counts are the amplification; refused operations count as 0 sends.
#[tokio::test(start_paused = true)]
async fn sends_per_operation_are_the_amplification() {
    let metered = Metered::new();
    let script = Script::new()
        .on(P, Method::GET, [Reply::ok(""), Reply::status(503)])
        .any_method(P, [Reply::status(503), Reply::ok("")])
        .any_method(S, [Reply::ok("secondary")]);
    let service = built(builder());
    run(&metered, &service, &script, [get(), get(), put()]).await;
    service.operator().read_only();
    let refused = run(&metered, &service, &script, [put()]).await;
    assert_eq!(word(&refused[0]), "read-only");
    let sends = "tower_geo.operation.sends";
    let all = metered.points();
    let of =
        |intent: &str| all[&format!("{sends}{{tower_geo.intent={intent},tower_geo.service=blob}}")];
    assert_eq!(of("read"), (2, 3.0), "1 and 2");
    assert_eq!(of("write"), (2, 2.0), "2 and 0");
    assert_eq!(
        metered.of("tower_geo.resends"),
        points(&[
            ("region=primary,send.kind=retry", 1.0),
            ("region=secondary,send.kind=fall-over", 1.0)
        ])
    );
    assert_eq!(
        metered.of("tower_geo.writes.refused"),
        points(&[("gate.reason=operator", 1.0)])
    );
    assert_eq!(
        metered.of("tower_geo.operation.duration"),
        points(&[
            ("error.type=read-only,intent=write", 1.0),
            (
                "http.response.status_code=200,intent=read,region=primary",
                1.0
            ),
            (
                "http.response.status_code=200,intent=read,region=secondary",
                1.0
            ),
            (
                "http.response.status_code=200,intent=write,region=primary",
                1.0
            ),
        ])
    );
}

/// E3, H2: hedges that win, that lose and that fail.
#[tokio::test(start_paused = true)]
async fn hedges_are_won_lost_or_failed() {
    let metered = Metered::new();
    let script = Script::new()
        .any_method(
            P,
            [
                Reply::ok("").after(secs(5)),
                Reply::ok("").after(ms(110)),
                Reply::ok("").after(ms(300)),
            ],
        )
        .any_method(
            S,
            [
                Reply::ok("").after(ms(20)),
                Reply::ok("").after(ms(20)),
                Reply::status(503),
            ],
        );
    let service = built(builder().breaker(None).retry(retry().hedge(ms(100))));
    run(&metered, &service, &script, [get(), get(), get()]).await;
    assert_eq!(
        metered.of("tower_geo.hedges"),
        points(&[
            ("hedge.outcome=failed", 1.0),
            ("hedge.outcome=lost", 1.0),
            ("hedge.outcome=won", 1.0)
        ])
    );
    let cancelled: f64 = metered
        .of("http.client.request.duration")
        .iter()
        .filter(|(keys, _)| keys.contains("error.type=cancelled"))
        .map(|(_, count)| count)
        .sum();
    assert!((cancelled - 2.0).abs() < 0.1, "both losers were dropped");
}

/// E3, F2: answers of the copy, how certain they are, and how far it was behind.
#[tokio::test(start_paused = true)]
async fn what_the_copy_served_is_counted() {
    let metered = Metered::new();
    let script = Script::new()
        .any_method(P, [Reply::status(503)])
        .any_method(
            S,
            [
                Reply::ok(""),
                Reply::ok("").header("last-modified", "Sun, 01 Jun 2025 11:00:00 GMT"),
            ],
        );
    let service = built(builder().breaker(None));
    run(&metered, &service, &script, [get()]).await;
    assert!(metered.of("tower_geo.copy.staleness").is_empty(), "unknown");
    assert!(metered.of("tower_geo.replication.lag").is_empty());
    let stats = ReplicationStats::new(ReplicationStatus::Live, Some(noon() - secs(40)));
    service.record_last_sync(stats, noon());
    tokio::time::sleep(secs(2)).await;
    run(&metered, &service, &script, [get()]).await;
    assert_eq!(
        metered.of("tower_geo.copy.answers"),
        points(&[
            ("freshness=consistent,region=secondary", 1.0),
            ("freshness=unknown,region=secondary", 1.0)
        ])
    );
    let all = metered.points();
    let staleness = "tower_geo.copy.staleness{tower_geo.region=secondary,tower_geo.service=blob}";
    assert_eq!(all[staleness], (1, 42.0));
    assert_eq!(
        metered.of("tower_geo.replication.lag"),
        points(&[("", 42.0)])
    );
}

/// E3: circuits, gate and budget are gauges: 1 for the state that holds.
#[tokio::test(start_paused = true)]
async fn states_are_gauges() {
    let metered = Metered::new();
    let script = primary_down();
    let service = built(builder());
    let holding = |name: &str| {
        let mut holding = metered.of(name);
        holding.retain(|(_, value)| *value > 0.5);
        let keys = holding.into_iter().map(|(keys, _)| keys);
        keys.collect::<Vec<_>>()
    };
    run(&metered, &service, &script, []).await;
    assert_eq!(metered.of("tower_geo.circuit.state").len(), 12);
    assert_eq!(metered.of("tower_geo.gate.state").len(), 3);
    assert_eq!(holding("tower_geo.gate.state"), ["gate.state=read-write"]);
    run(&metered, &service, &script, [get(), get(), get()]).await;
    assert_eq!(
        holding("tower_geo.circuit.state"),
        [
            "circuit.state=closed,circuit=reads,region=secondary",
            "circuit.state=closed,circuit=writes,region=primary",
            "circuit.state=closed,circuit=writes,region=secondary",
            "circuit.state=open,circuit=reads,region=primary",
        ]
    );
    assert_eq!(holding("tower_geo.gate.state"), ["gate.state=read-only"]);
    tokio::time::sleep(secs(30)).await;
    service.operator().reset(&PRIMARY).unwrap();
    assert_eq!(holding("tower_geo.gate.state"), ["gate.state=read-write"]);
    assert_eq!(
        metered.of("tower_geo.budget.level"),
        points(&[("region=primary", 500.0), ("region=secondary", 500.0)])
    );
    service.operator().read_only();
    run(&metered, &service, &script, [get()]).await;
    assert_eq!(
        metered.of("tower_geo.budget.limit"),
        points(&[("region=primary", 500.0), ("region=secondary", 500.0)])
    );
}

/// E3, R9: what became of the rest of bodies that broke off. The layer that resumes may stand outside
/// of the one that records, so it is looked up.
#[tokio::test(start_paused = true)]
async fn resumes_are_counted_by_what_became_of_them() {
    let metered = Metered::new();
    let service = built(builder().breaker(None).retry(retry().max_retries(1)));
    let _metrics = Metrics::new(&metered.meter(), &service);
    let whole = || {
        let whole = Reply::ok("0123456789").header("content-length", "10");
        whole.header("etag", "\"v1\"").cut_body_after(4)
    };
    let rest = |etag| {
        let rest = Reply::status(206).body("456789").header("etag", etag);
        rest.header("content-range", "bytes 4-9/10")
    };
    assert_eq!(metered.of("tower_geo.resumes"), points(&[]));
    for (next, outcome) in [
        (rest("\"v1\""), true),
        (rest("\"v1\""), true),
        (rest("\"v2\""), false),
        (Reply::status(404), false),
        (Reply::status(400), false),
    ] {
        let script = Script::new().any_method(P, [whole(), next]);
        let stack = ServiceBuilder::new()
            .layer(ResumeLayer::new(service.clone()).clone_bodies())
            .layer(service.layer().clone_bodies())
            .service(script.service());
        let film = stack.oneshot(get()).await.unwrap();
        assert_eq!(film.into_body().collect().await.is_ok(), outcome);
    }
    assert_eq!(
        metered.of("tower_geo.resumes"),
        points(&[
            ("resume.outcome=given-up", 1.0),
            ("resume.outcome=resumed", 2.0),
            ("resume.outcome=version-changed", 2.0),
        ])
    );
}

/// E3, G2: a gate on a server sees requests of another service, which no layer on the client does.
#[tokio::test(start_paused = true)]
async fn writes_that_a_server_refuses_are_counted_by_reason() {
    let metered = Metered::new();
    let service = built(builder());
    let _metrics = Metrics::new(&metered.meter(), &service);
    let handler = tower::service_fn(async |_: http::Request<Body>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(Body::default()))
    });
    let server = ReadOnlyGateLayer::new(service.clone()).on_server();
    let ask = async |method| {
        let request = request(method, "shop.test", "/orders/1");
        let answer = server.layer(handler).oneshot(request).await.unwrap();
        answer.status().as_u16()
    };
    assert_eq!(ask(Method::PUT).await, 200);
    let name = "tower_geo.server.writes.refused";
    assert_eq!(metered.of(name), points(&[]));
    service.operator().read_only();
    assert_eq!(ask(Method::PUT).await, 503);
    assert_eq!(ask(Method::DELETE).await, 503);
    assert_eq!(ask(Method::GET).await, 200);
    service.operator().read_write();
    service.operator().force_open(&PRIMARY).unwrap();
    assert_eq!(ask(Method::PUT).await, 503);
    assert_eq!(
        metered.of(name),
        points(&[
            ("http.response.status_code=503,gate.reason=breaker", 1.0),
            ("http.response.status_code=503,gate.reason=operator", 2.0),
        ])
    );
}

/// The gauges of a service end with it; a meter, which lives on, does not keep it alive.
#[tokio::test(start_paused = true)]
async fn gauges_end_with_their_service() {
    let metered = Metered::new();
    let service = built(builder());
    let metrics = Metrics::new(&metered.meter(), &service);
    assert!(!metered.of("tower_geo.gate.state").is_empty());
    drop((metrics, service));
    assert!(metered.of("tower_geo.gate.state").is_empty());
}

/// I3, I8: other hosts pass unrecorded, and what is neither read nor write is a send, but no
/// operation.
#[tokio::test(start_paused = true)]
async fn other_hosts_pass_unrecorded() {
    let metered = Metered::new();
    let script = healthy().any_method("login.example.test", [Reply::ok("token")]);
    let service = built(builder());
    let requests = [
        request(Method::GET, "login.example.test", "/token?code=1"),
        request(Method::OPTIONS, P, "/photos/cat"),
    ];
    for answer in run(&metered, &service, &script, requests).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    assert!(metered.of("tower_geo.operation.sends").is_empty());
    let sends = metered.of("http.client.request.duration");
    assert_eq!(sends.len(), 1);
    assert!(sends[0].0.contains("method=OPTIONS"), "{sends:?}");
}

/// A caller who leaves is recorded, on both levels; without the number of sends.
#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_is_recorded() {
    let metered = Metered::new();
    let script = Script::new().any_method(P, [Reply::hang()]);
    let service = built(builder());
    let call = run(&metered, &service, &script, [get()]);
    assert!(tokio::time::timeout(secs(2), call).await.is_err());
    assert_eq!(
        metered.of("tower_geo.operation.duration"),
        points(&[("error.type=cancelled,intent=read", 1.0)])
    );
    assert!(metered.of("tower_geo.operation.sends").is_empty());
    let sends = metered.of("http.client.request.duration");
    assert!(sends[0].0.contains("error.type=cancelled"), "{sends:?}");
}

/// A method that is not of HTTP could be anything: it has one name.
#[tokio::test(start_paused = true)]
async fn unknown_methods_have_one_name() {
    let metered = Metered::new();
    let service = built(builder());
    let odd = request(Method::from_bytes(b"SECRET").unwrap(), P, "/photos/cat");
    run(&metered, &service, &healthy(), [odd]).await;
    let sends = metered.of("http.client.request.duration");
    assert!(sends[0].0.contains("method=_OTHER"), "{sends:?}");
}

/// The layers change nothing: answers, errors and their kinds are those of the stack.
#[tokio::test(start_paused = true)]
async fn recording_changes_no_outcome() {
    let metered = Metered::new();
    for (script, request, wanted) in [
        (healthy(), get(), "200"),
        (primary_down(), get(), "200"),
        (
            Script::new().any_method(P, [Reply::refused()]),
            append(),
            "transport",
        ),
        (
            Script::new().any_method(P, [Reply::reset()]),
            append(),
            "unknown-outcome",
        ),
        (
            Script::new().any_method(P, [Reply::status(409)]),
            append(),
            "409",
        ),
    ] {
        let plain = service().layer().clone_bodies().layer(script.service());
        let copy = request.clone();
        assert_eq!(word(&plain.oneshot(copy).await), wanted);
        let recorded = run(&metered, &service(), &script, [request]).await;
        assert_eq!(word(&recorded[0]), wanted);
    }
}
