//! What is the caller told, and what is kept silent (E1, E2, E3, V2, I3, I8, R10)?

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{HeaderValue, Method, Request, StatusCode};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_geo::{
    Circuit, CircuitPhase, Ending, ErrorKind, LocationMode, RequestOptions, SendKind, Served,
};
use tower_geo_testkit::strict::{Reply, Script};

use crate::support::*;

/// E2: on the healthy path nothing is put into extensions: neither of the answer nor of the
/// request that reaches the client.
#[tokio::test(start_paused = true)]
async fn a_healthy_answer_has_no_extensions() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let client = || {
        let seen = Arc::clone(&seen);
        service_fn(move |request: Request<Body>| {
            seen.lock().unwrap().push(request.extensions().len());
            async { Ok::<_, Infallible>(http::Response::new(Body::from("primary"))) }
        })
    };
    each_layer!(service(), client(), |name, stack| {
        for request in [get(), put(), append()] {
            let answer = stack
                .until_ready()
                .await
                .unwrap()
                .call(request)
                .await
                .unwrap();
            assert_eq!(answer.extensions().len(), 0, "{name}");
        }
    });
    assert_eq!(*seen.lock().unwrap(), [0; 15]);
}

/// E2: nor does a final answer that is no success have any: 404 of the primary is an answer.
#[tokio::test(start_paused = true)]
async fn a_first_answer_of_the_primary_needs_no_words() {
    for status in [404, 409, 412, 304, 403] {
        let script = Script::new().any_method(P, [Reply::status(status)]);
        let stack = service().layer().clone_bodies().layer(script.service());
        let answer = stack.oneshot(get()).await.unwrap();
        assert_eq!(answer.status(), status);
        assert!(Served::of(answer.extensions()).is_none());
        assert_eq!(script.sends().len(), 1);
    }
}

/// E1, R10: an answer that needed more than one send carries its region and the trail.
#[tokio::test(start_paused = true)]
async fn a_redirected_answer_carries_the_trail() {
    let script = Script::new()
        .any_method(
            P,
            [
                Reply::status(503).after(ms(20)),
                Reply::refused(),
                Reply::ok("primary"),
            ],
        )
        .any_method(S, [Reply::reset().after(ms(10)), Reply::status(429)]);
    let stack = service().layer().clone_bodies().layer(script.service());
    let answer = stack.oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let served = Served::of(answer.extensions()).unwrap();
    assert_eq!(
        (served.region_name(), served.is_from_copy()),
        ("primary", false)
    );
    assert_eq!(served.freshness(), None);
    let trail: Vec<_> = served
        .trail()
        .sends()
        .iter()
        .map(|send| {
            let ending = match send.ending {
                Ending::Answer(status) => status.as_str().to_owned(),
                Ending::Fault(fault) => fault.to_string(),
                _ => "?".to_owned(),
            };
            let at = u64::try_from(send.at.as_millis()).unwrap();
            (served.name_of(send.region), send.kind, at, ending)
        })
        .collect();
    let (first, fall_over, again) = (SendKind::First, SendKind::FallOver, SendKind::Retry);
    assert_eq!(trail.len(), 5, "{trail:?}");
    assert_eq!(trail[0], ("primary", first, 0, "503".to_owned()));
    assert_eq!(
        (trail[1].0, trail[1].1, trail[1].2),
        ("secondary", fall_over, 20)
    );
    assert_eq!(
        (trail[2].0, trail[2].1, trail[2].2),
        ("primary", again, 1020)
    );
    assert_eq!(
        (trail[3].0, trail[3].1, trail[3].2),
        ("secondary", again, 1030)
    );
    assert_eq!(
        (trail[4].0, trail[4].1, trail[4].2),
        ("primary", again, 3020)
    );
    assert_eq!(served.trail().sends()[2].waited, ms(990));
}

/// R10, F2: an answer of a copy says so, also when it was the first.
#[tokio::test(start_paused = true)]
async fn an_answer_of_a_copy_says_so() {
    let script = healthy();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    service.operator().force_open(&PRIMARY).unwrap();
    let mut pinned = get();
    pinned
        .extensions_mut()
        .insert(RequestOptions::new().pin(SECONDARY));
    for request in [get(), pinned, request(Method::GET, S, "/photos/cat")] {
        let answer = stack.clone().oneshot(request).await.unwrap();
        let served = Served::of(answer.extensions()).unwrap();
        assert!(served.is_from_copy());
        assert!(served.freshness().is_some());
        assert_eq!(served.trail().sends().len(), 1);
    }
}

/// E1: the trail is in the error as well.
#[tokio::test(start_paused = true)]
async fn an_error_carries_the_trail() {
    let script = Script::new()
        .any_method(P, [Reply::refused()])
        .any_method(S, [Reply::reset()]);
    let service = builder().retry(retry().max_retries(2)).build().unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let error = stack.oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    let names: Vec<_> = error
        .trail()
        .sends()
        .iter()
        .map(|send| error.name_of(send.region))
        .collect();
    assert_eq!(names, ["primary", "secondary", "primary"]);
    assert!(!error.was_never_sent(), "the copy may have seen it");
    let text = error.to_string();
    assert!(
        text.contains("primary") && text.contains("secondary"),
        "{text}"
    );
    assert!(text.contains("GET") && text.contains(P), "{text}");
}

/// V2: 409, 412 and the 404 of a DELETE after an ambiguous send may be its own doing.
#[tokio::test(start_paused = true)]
async fn a_conflict_after_an_ambiguous_send_says_so() {
    let delete = || request(Method::DELETE, P, "/photos/cat");
    for (write, first, status, suspicious) in [
        (put(), Reply::reset(), 412, true),
        (put(), Reply::reset(), 409, true),
        (put(), Reply::status(500), 409, true),
        (put(), Reply::refused(), 409, false),
        (put(), Reply::status(429), 409, false),
        (put(), Reply::reset(), 404, false),
        (put(), Reply::reset(), 201, false),
        (delete(), Reply::reset(), 404, true),
    ] {
        let script = Script::new().any_method(P, [first, Reply::status(status)]);
        let stack = service().layer().clone_bodies().layer(script.service());
        let answer = stack.oneshot(write).await.unwrap();
        assert_eq!(answer.status(), status);
        let served = Served::of(answer.extensions()).unwrap();
        assert_eq!(served.is_after_ambiguous(), suspicious, "{status}");
    }
}

/// E3, HOUSE 5: no error prints a query, a signature or a header.
#[tokio::test(start_paused = true)]
async fn no_error_prints_a_secret() {
    let secret = |method: Method, host: &str| {
        let mut request = request(method, host, "/photos/cat?sv=2024-11-04&sig=SeCrEt%3D");
        let key = HeaderValue::from_static("SharedKey contoso:SeCrEt");
        request.headers_mut().insert("authorization", key.clone());
        request.headers_mut().insert("x-ms-client-request-id", key);
        request
    };
    let mut said = Vec::new();
    let mut say = |what: &str, error: tower_geo::Error| {
        said.push(what.to_owned());
        let mut text = format!("{error} {error:?} {error:#?}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text} {cause}");
            source = cause.source();
        }
        for secret in ["SeCrEt", "sig=", "sv=", "SharedKey"] {
            assert!(!text.contains(secret), "{what}: {text}");
        }
    };
    for reply in [Reply::refused(), Reply::reset(), Reply::hang()] {
        let script = Script::new()
            .any_method(P, [reply.clone()])
            .any_method(S, [reply]);
        for method in [Method::GET, Method::PUT, Method::POST] {
            let service = service();
            let stack = service.layer().clone_bodies().layer(script.service());
            let error = stack
                .clone()
                .oneshot(secret(method.clone(), P))
                .await
                .unwrap_err();
            say("fault", error);
            service.operator().force_open(&PRIMARY).unwrap();
            service.operator().force_open(&SECONDARY).unwrap();
            say(
                "open",
                stack
                    .clone()
                    .oneshot(secret(method.clone(), P))
                    .await
                    .unwrap_err(),
            );
            let mut pinned = secret(method, P);
            let nowhere = tower_geo::RegionRef::Named("moon".to_owned());
            pinned
                .extensions_mut()
                .insert(RequestOptions::new().pin(nowhere));
            say("pinned", stack.clone().oneshot(pinned).await.unwrap_err());
        }
    }
    let script = healthy();
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    let at_copy = secret(Method::PUT, S);
    say(
        "write to a copy",
        stack.clone().oneshot(at_copy).await.unwrap_err(),
    );
    let mut relative = secret(Method::GET, P);
    *relative.uri_mut() = "/photos/cat?sig=SeCrEt".parse().unwrap();
    say(
        "relative",
        stack.clone().oneshot(relative).await.unwrap_err(),
    );
    assert_eq!(said.len(), 29);
}

/// E4, I8: a relative URI names no region; the error says what to do.
#[tokio::test(start_paused = true)]
async fn a_relative_uri_is_a_config_error() {
    let script = healthy();
    let stack = service().layer().clone_bodies().layer(script.service());
    let mut relative = get();
    *relative.uri_mut() = "/photos/cat".parse().unwrap();
    let error = stack.oneshot(relative).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("absolute"), "{error}");
    assert!(script.sends().is_empty());
}

/// I8: a request for another authority passes untouched: not gated, redirected, retried, refused
/// or counted.
#[tokio::test(start_paused = true)]
async fn a_foreign_authority_passes_untouched() {
    const LOGIN: &str = "login.microsoftonline.com";
    const OTHER: &str = "fabrikam.blob.core.windows.net";
    let script = Script::new()
        .any_method(LOGIN, [Reply::status(503)])
        .any_method(OTHER, [Reply::status(503)]);
    let service = service();
    let stack = service.layer().clone_bodies().layer(script.service());
    service.operator().read_only();
    service.operator().force_open(&PRIMARY).unwrap();
    for (host, method) in [
        (LOGIN, Method::POST),
        (OTHER, Method::PUT),
        (OTHER, Method::GET),
    ] {
        script.clear_sends();
        let answer = stack
            .clone()
            .oneshot(request(method, host, "/token?x=1"))
            .await
            .unwrap();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.extensions().len(), 0);
        let sends = script.sends();
        assert_eq!(sends.len(), 1);
        assert_eq!(
            (&*sends[0].authority, &*sends[0].target),
            (host, "/token?x=1")
        );
        assert!(sends[0].headers.is_empty());
    }
    let circuit = service.circuit(&PRIMARY, Circuit::Reads).unwrap();
    assert_eq!(circuit.streak, 0);
}

/// I3: neutral requests are sent once, and neither gated, redirected, retried, refused nor counted.
#[tokio::test(start_paused = true)]
async fn a_neutral_request_is_sent_once_whatever_happens() {
    let script = Script::new().any_method(P, [Reply::status(503)]);
    let service = builder()
        .location_mode(LocationMode::SecondaryThenPrimary)
        .build()
        .unwrap();
    let stack = service.layer().clone_bodies().layer(script.service());
    let neutral = || {
        [
            request(Method::OPTIONS, P, "/photos/cat"),
            request(Method::POST, P, "/?restype=service&comp=userdelegationkey"),
        ]
    };
    for _ in 0..5 {
        for request in neutral() {
            assert_eq!(stack.clone().oneshot(request).await.unwrap().status(), 503);
        }
    }
    assert_eq!(script.hosts(), [P; 10]);
    assert_eq!(
        phase(&service, &PRIMARY, Circuit::Reads),
        CircuitPhase::Closed
    );
    service.operator().force_open(&PRIMARY).unwrap();
    service.operator().begin_maintenance().unwrap();
    for request in neutral() {
        assert_eq!(stack.clone().oneshot(request).await.unwrap().status(), 503);
    }
}

/// R8: a redirect changes the authority and `Host`, nothing else, and not the caller's request.
#[tokio::test(start_paused = true)]
async fn a_redirect_changes_the_authority_and_host_only() {
    let script = primary_down();
    let stack = service().layer().clone_bodies().layer(script.service());
    let target = "/photos/cat%20one?sv=1&sig=a%2Fb%3D&restype=&x";
    let mut read = request(Method::GET, P, target);
    for (name, value) in [("host", P), ("range", "bytes=1-"), ("x-ms-date", "now")] {
        read.headers_mut().insert(name, value.parse().unwrap());
    }
    stack.oneshot(read).await.unwrap();
    let sends = script.sends();
    let (first, second) = (&sends[0], &sends[1]);
    assert_eq!((&*first.authority, &*second.authority), (P, S));
    assert_eq!((&*first.target, &*second.target), (target, target));
    assert_eq!(second.headers["host"], S);
    let rest = |headers: &http::HeaderMap| {
        let mut rest = headers.clone();
        rest.remove("host");
        rest
    };
    assert_eq!(rest(&first.headers), rest(&second.headers));
}

/// R4: 404 of the secondary is no answer while the primary can be asked, but is one in its place.
#[tokio::test(start_paused = true)]
async fn not_found_at_the_secondary_asks_the_primary() {
    for (mode, hosts, status) in [
        (
            LocationMode::SecondaryThenPrimary,
            &[S, P][..],
            StatusCode::OK,
        ),
        (LocationMode::SecondaryOnly, &[S], StatusCode::NOT_FOUND),
    ] {
        let script = Script::new()
            .any_method(P, [Reply::ok("primary")])
            .any_method(S, [Reply::status(404)]);
        let service = builder().location_mode(mode).build().unwrap();
        let stack = service.layer().clone_bodies().layer(script.service());
        assert_eq!(stack.oneshot(get()).await.unwrap().status(), status);
        assert_eq!(script.hosts(), hosts);
    }
}
