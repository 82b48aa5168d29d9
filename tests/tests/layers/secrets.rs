//! Is anything told that is not for everybody's eyes (E3)? No query string, no signature, no token,
//! no value of a header: not in events, spans and metrics, nor in what errors print.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use http::{Method, Request};
use http_body_util::BodyExt;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_geo::telemetry::Metrics;
use tower_geo::{
    Account, BoxError, Event, GeoService, LogEvents, MonitorSettings, ReadOnlyGateLayer,
    ReplicationStats, ReplicationStatus, RequestOptions, ResumeLayer, Served,
};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;
use crate::watching::{Metered, Told};

/// What stands in the requests and answers of these tests and nowhere else.
const SECRETS: [&str; 9] = [
    "s3cr3t-signature",
    "s3cr3t-query",
    "s3cr3t-key",
    "s3cr3t-token",
    "s3cr3t-header",
    "s3cr3t-answer",
    "s3cr3t-body",
    "s3cr3t-cookie",
    "sig=",
];

fn secret(method: Method, host: &str) -> Request<Body> {
    let mut request = request(
        method,
        host,
        "/photos/cat?prefix=s3cr3t-query&sv=2024-11-04&sp=rw&sig=s3cr3t-signature%3D",
    );
    for (name, value) in [
        ("authorization", "SharedKey contoso:s3cr3t-key"),
        ("x-ms-copy-source-authorization", "Bearer s3cr3t-token"),
        (
            "x-ms-copy-source",
            "https://other.test/c?sig=s3cr3t-signature",
        ),
        ("x-ms-client-request-id", "s3cr3t-header"),
        ("x-ms-encryption-key", "s3cr3t-header"),
        ("cookie", "a=s3cr3t-cookie"),
        ("x-ms-blob-type", "BlockBlob"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    *request.body_mut() = Body::from("s3cr3t-body");
    request
}

/// An error that says all it knows, as those of some clients do.
#[derive(Debug)]
#[allow(dead_code, reason = "printed, and read by nobody")]
struct Talkative {
    url: String,
    headers: String,
    cause: std::io::Error,
}

impl fmt::Display for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "error sending {} with SharedKey contoso:s3cr3t-key",
            self.url
        )
    }
}

impl StdError for Talkative {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.cause)
    }
}

/// Everything that anybody is told, in one text.
#[derive(Clone, Default)]
struct Heard(Arc<std::sync::Mutex<String>>);

impl Heard {
    fn note(&self, text: &dyn fmt::Debug) {
        let mut all = self.0.lock().unwrap();
        all.push_str(&format!("{text:?}\n{text:#?}\n"));
    }

    /// What may be told has no secret in it, and something was told.
    fn check(&self, least: usize) {
        let all = self.0.lock().unwrap();
        assert!(all.len() >= least, "only {} was told: {all}", all.len());
        for secret in SECRETS {
            let found = all.lines().find(|line| line.contains(secret));
            assert_eq!(found, None, "`{secret}` was told");
        }
    }
}

impl tower_geo::Listener for Heard {
    fn on_event(&self, event: &Event) {
        self.note(event);
    }
}

/// The outages that are played, by what primary and secondary reply.
fn outages() -> Vec<(&'static str, Vec<Reply>, Vec<Reply>)> {
    let answer = |status| {
        Reply::status(status)
            .header("x-ms-request-id", "s3cr3t-answer")
            .header("etag", "\"s3cr3t-answer\"")
            .header("set-cookie", "a=s3cr3t-cookie")
            .body("s3cr3t-body")
    };
    vec![
        ("healthy", vec![answer(200)], vec![answer(200)]),
        ("primary down", vec![answer(503)], vec![answer(200)]),
        ("both down", vec![answer(503)], vec![answer(500)]),
        ("no connection", vec![Reply::refused()], vec![answer(200)]),
        (
            "nobody there",
            vec![Reply::refused()],
            vec![Reply::refused()],
        ),
        ("reset", vec![Reply::reset()], vec![answer(404)]),
        ("black hole", vec![Reply::hang()], vec![Reply::hang()]),
        (
            "slow",
            vec![answer(200).after(secs(5))],
            vec![answer(200).after(ms(20))],
        ),
        (
            "throttled",
            vec![
                answer(503)
                    .header("x-ms-error-code", "ServerBusy")
                    .header("retry-after", "2"),
            ],
            vec![
                answer(503)
                    .header("x-ms-error-code", "ServerBusy")
                    .header("retry-after", "900"),
            ],
        ),
        (
            "not allowed",
            vec![answer(403).header("x-ms-error-code", "AuthenticationFailed")],
            vec![answer(403).header("x-ms-error-code", "InsufficientAccountPermissions")],
        ),
        (
            "not readable",
            vec![answer(503)],
            vec![answer(403).header("x-ms-error-code", "InsufficientAccountPermissions")],
        ),
        (
            "broken bodies",
            vec![answer(200).header("content-length", "11").cut_body_after(6)],
            vec![answer(200)],
        ),
        (
            "lost and found",
            vec![Reply::reset(), answer(412), answer(409)],
            vec![answer(412)],
        ),
    ]
}

/// One outage, with reads, writes and dequeues in it, watched by everybody.
async fn play(heard: &Heard, told: &Told, outage: &str, service: GeoService, script: Script) {
    let metered = Metered::new();
    let metrics = Metrics::new(&metered.meter(), &service);
    let wire = script.clone();
    let client = service_fn(move |request: Request<Body>| {
        let (url, headers) = (
            request.uri().to_string(),
            format!("{:?}", request.headers()),
        );
        let wire = wire.service();
        async move {
            wire.oneshot(request).await.map_err(|error| {
                let cause = error;
                Box::new(Talkative {
                    url,
                    headers,
                    cause,
                }) as BoxError
            })
        }
    });
    let stack = ServiceBuilder::new()
        .layer(ResumeLayer::new(service.clone()).clone_bodies())
        .layer(metrics.operations())
        .layer(service.layer().clone_bodies())
        .layer(metrics.sends())
        .service(client);
    for round in 0..2 {
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH] {
            for host in [P, S] {
                let mut request = secret(method.clone(), host);
                if round == 1 {
                    let options = RequestOptions::new().replayable();
                    heard.note(&options);
                    request.extensions_mut().insert(options);
                }
                match stack.clone().oneshot(request).await {
                    Ok(answer) => {
                        if let Some(served) = Served::of(answer.extensions()) {
                            heard.note(served);
                        }
                        if let Err(error) = answer.into_body().collect().await {
                            heard.note(&error);
                            heard.note(&error.to_string());
                        }
                    }
                    Err(error) => {
                        heard.note(&error);
                        heard.note(&error.to_string());
                        heard.note(error.trail());
                    }
                }
            }
        }
        // A download that can be resumed: its token does not cover the headers.
        let mut film = secret(Method::GET, P);
        let token = "Bearer s3cr3t-token".parse().unwrap();
        film.headers_mut().insert("authorization", token);
        if let Ok(answer) = stack.clone().oneshot(film).await
            && let Err(error) = answer.into_body().collect().await
        {
            heard.note(&error);
            heard.note(&error.to_string());
        }
        // Callers who do not wait.
        let call = stack.clone().oneshot(secret(Method::GET, P));
        let _left = tokio::time::timeout(ms(1500), call).await;
        tokio::time::sleep(secs(31)).await;
    }
    // A server in front of it turns a write away, whose request is no less secret.
    service.operator().read_only();
    let handler = service_fn(async |_: Request<Body>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(Body::default()))
    });
    let server = ReadOnlyGateLayer::new(service.clone()).on_server();
    let refused = server.layer(handler).oneshot(secret(Method::PUT, P)).await;
    let (head, problem) = refused.unwrap().into_parts();
    assert_eq!(head.status, 503);
    heard.note(&head);
    heard.note(&problem.collect().await.unwrap().to_bytes());
    heard.note(&service);
    heard.note(&stack);
    heard.note(&service.gate());
    heard.note(&service.last_sync());
    heard.note(&metered.points());
    let recorded = |name| !metered.of(name).is_empty();
    assert!(recorded("http.client.request.duration"), "{outage}");
    assert!(recorded("tower_geo.server.writes.refused"), "{outage}");
    assert_eq!(recorded("tower_geo.resumes"), outage == "broken bodies");
    assert!(
        outage == "healthy" || !told.lines().is_empty(),
        "{outage} was not told"
    );
}

/// E3: through every kind of outage, nothing secret is told to anybody.
#[tokio::test(start_paused = true)]
async fn nothing_secret_is_ever_told() {
    let (heard, told) = (Heard::default(), Told::default());
    let _guard = tracing::subscriber::set_default(told.clone());
    for (outage, primary, secondary) in outages() {
        let script = Script::new()
            .any_method(P, primary)
            .any_method(S, secondary);
        let builder = builder()
            .breaker(breaker())
            .retry(retry().hedge(ms(500)).max_retries(3))
            .max_staleness(secs(600))
            .listener(Arc::new(heard.clone()))
            .listener(Arc::new(LogEvents::new()));
        heard.note(&builder);
        let service = builder.build().unwrap();
        if outage != "slow" {
            let stats = ReplicationStats::new(ReplicationStatus::Live, Some(noon()));
            service.record_last_sync(stats, noon());
        }
        play(&heard, &told, outage, service, script).await;
    }
    heard.note(&told.lines());
    heard.check(10_000);
    let spans = told.with("SPAN send");
    assert!(spans.len() > 10, "spans are among what was looked at");
}

/// E3: a monitor asks with a signed request of the user's; it tells nothing of it, whatever its
/// client says.
#[tokio::test(start_paused = true)]
async fn a_monitor_keeps_its_request_to_itself() {
    let (heard, told) = (Heard::default(), Told::default());
    let _guard = tracing::subscriber::set_default(told.clone());
    for reply in [
        Reply::refused(),
        Reply::status(503),
        Reply::ok("s3cr3t-body"),
    ] {
        let script = Script::new().any_method(P, [reply]);
        let service = built_for(&heard);
        let request = secret(Method::GET, P);
        let path = request.uri().path_and_query().unwrap().as_str();
        let settings = MonitorSettings::new(path).every(secs(1));
        heard.note(&settings);
        let task = service
            .spawn_monitor::<_, Body, _>(&settings, script.service())
            .unwrap();
        tokio::time::sleep(secs(10)).await;
        heard.note(&task);
        drop(task);
    }
    heard.note(&told.lines());
    heard.check(1);
}

fn built_for(heard: &Heard) -> GeoService {
    builder().listener(Arc::new(heard.clone())).build().unwrap()
}

/// E3: what is configured may hold secrets, and what is wrong with it is said without them.
#[test]
fn errors_of_configuration_say_nothing_secret() {
    let heard = Heard::default();
    let endpoint = "https://contoso.blob.core.windows.net/?sv=1&sig=s3cr3t-signature";
    let builder = GeoService::azure_storage(endpoint);
    heard.note(&builder);
    let error = builder.build().unwrap_err();
    heard.note(&error);
    heard.note(&error.to_string());
    let user = "https://user:s3cr3t-key@contoso.blob.core.windows.net";
    let error = GeoService::azure_storage(user).build().unwrap_err();
    heard.note(&error);
    heard.note(&error.to_string());
    for text in [
        "AccountName=contoso;AccountKey=s3cr3t-key",
        "AccountName=contoso;SharedAccessSignature=sv=1&sig=s3cr3t-signature",
        "AccountKey=s3cr3t-key;BlobEndpoint=https://a.test/?sig=s3cr3t-signature",
        "s3cr3t-key",
    ] {
        let builder = Account::from_connection_string(text);
        heard.note(&builder);
        match builder.build() {
            Ok(account) => heard.note(&account),
            Err(error) => {
                heard.note(&error);
                heard.note(&error.to_string());
            }
        }
    }
    heard.check(100);
}
