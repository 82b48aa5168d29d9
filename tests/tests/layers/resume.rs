//! R9: a download that breaks off is resumed, and two versions are never joined.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, IF_MATCH, IF_NONE_MATCH, RANGE};
use http::{HeaderValue, Method, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use proptest::prelude::*;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_geo::body::CloneBodies;
use tower_geo::fault::{Answer, FaultLayer, Rule};
use tower_geo::resume::{Resume, ResumeBody, Resuming};
use tower_geo::{
    Error, ErrorKind, EventKind, GeoLayer, GeoService, GeoStack, ResumeLayer, RetryLayer, SendKind,
};
use tower_geo_testkit::strict::{Reply, Script, ScriptService};

use crate::support::{
    Body, Calls as _, P, PRIMARY, S, builder, get, ms, put, request, retry, secs,
};

/// The stack with resuming over a script.
fn over(
    service: &GeoService,
    script: &Script,
) -> Resume<GeoStack<ScriptService, CloneBodies>, CloneBodies> {
    ServiceBuilder::new()
        .layer(ResumeLayer::new(service.clone()).clone_bodies())
        .layer(service.layer().clone_bodies())
        .service(script.service())
}

/// 200 with the digits, of a version.
fn whole(etag: &str) -> Reply {
    Reply::ok("0123456789")
        .header("etag", etag)
        .header("content-length", "10")
}

/// 206 with the digits from there, of a version.
fn part(from: usize, etag: &str) -> Reply {
    Reply::status(206)
        .body(&"0123456789"[from..])
        .header("etag", etag)
        .header("content-range", &format!("bytes {from}-9/10"))
        .header("content-length", &(10 - from).to_string())
}

/// A body as text, and how it ended.
async fn read<B>(body: B) -> (String, Option<Error>)
where
    B: http_body::Body<Data = Bytes, Error = Error>,
{
    let mut body = Box::pin(body);
    let mut text = String::new();
    loop {
        match body.frame().await {
            None => return (text, None),
            Some(Err(error)) => {
                let after = body.frame().await;
                assert!(
                    !matches!(after, Some(Ok(_))),
                    "nothing comes after an error"
                );
                return (text, Some(error));
            }
            Some(Ok(frame)) => {
                text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap())
            }
        }
    }
}

/// What one download comes to.
async fn download(
    service: &GeoService,
    script: &Script,
    request: Request<Body>,
) -> (String, Option<Error>) {
    let response = over(service, script).oneshot(request).await.unwrap();
    read(response.into_body()).await
}

fn header(script: &Script, send: usize, name: &str) -> Option<String> {
    let sends = script.sends();
    let value = sends[send].headers.get(name)?;
    Some(value.to_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_rest_is_fetched_of_the_same_version() {
    let script = Script::new().any_method(P, [whole("\"1\"").cut_body_after(4), part(4, "\"1\"")]);
    let mut request = get();
    let old = HeaderValue::from_static("\"0\"");
    request.headers_mut().insert(IF_NONE_MATCH, old);
    let began = Instant::now();
    let response = over(&builder().build().unwrap(), &script)
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(began.elapsed(), ms(0), "the head does not wait");
    let mut body = Box::pin(response.into_body());
    assert!(body.can_be_resumed());
    assert_eq!(body.size_hint().exact(), Some(10));
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "0123");
    assert_eq!(body.size_hint().exact(), Some(6));
    assert!(!body.is_end_stream());
    let rest = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(rest, "456789");
    assert!(body.is_end_stream());
    assert_eq!(body.resumes(), 1);
    assert!(body.frame().await.is_none());
    assert_eq!((body.resumes(), body.size_hint().exact()), (1, Some(0)));
    // T1: the first return to a region waits for `delay`.
    assert_eq!(began.elapsed(), secs(1));
    assert_eq!(header(&script, 1, RANGE.as_str()).unwrap(), "bytes=4-");
    assert_eq!(header(&script, 1, IF_MATCH.as_str()).unwrap(), "\"1\"");
    assert_eq!(header(&script, 1, IF_NONE_MATCH.as_str()), None);
}

/// The rest of the caller's own range is asked for, in the header that the caller used.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_part_ends_where_the_part_ends() {
    for name in ["range", "x-ms-range"] {
        let of = |from: usize, to: usize| {
            Reply::status(206)
                .body(&"0123456789"[from..=to])
                .header("etag", "\"1\"")
                .header("content-range", &format!("bytes {from}-{to}/10"))
                .header("content-length", &(to + 1 - from).to_string())
        };
        let script = Script::new().any_method(P, [of(2, 7).cut_body_after(3), of(5, 7)]);
        let mut request = get();
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static("bytes=2-7"));
        let (text, error) = download(&builder().build().unwrap(), &script, request).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text, "234567");
        assert_eq!(header(&script, 1, name).unwrap(), "bytes=5-7");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_resumed() {
    let service = builder().retry(retry().body_idle(secs(5))).build().unwrap();
    let script =
        Script::new().any_method(P, [whole("\"1\"").stall_body_after(4), part(4, "\"1\"")]);
    let began = Instant::now();
    let (text, error) = download(&service, &script, get()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text, "0123456789");
    assert_eq!(began.elapsed(), secs(6));
}

/// R9, T1: the longest limits that can be set are limits that are never reached, not panics.
#[tokio::test(start_paused = true)]
async fn the_longest_waits_are_waits() {
    let settings = retry()
        .delay(Duration::MAX)
        .max_delay(Duration::MAX)
        .body_idle(Duration::MAX);
    let service = builder().retry(settings).build().unwrap();
    for reply in [
        whole("\"1\"").cut_body_after(4),
        whole("\"1\"").stall_body_after(4),
    ] {
        let script = Script::new().any_method(P, [reply]);
        let body = download(&service, &script, get());
        let waited = tokio::time::timeout(secs(86_400), body).await;
        assert!(waited.is_err());
    }
}

/// The rest may come from another region, when it has the same version there.
#[tokio::test(start_paused = true)]
async fn the_rest_may_come_from_another_region() {
    let script = Script::new()
        .any_method(P, [whole("\"1\"").cut_body_after(4), Reply::refused()])
        .any_method(S, [part(4, "\"1\"")]);
    let (text, error) = download(&builder().build().unwrap(), &script, get()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text, "0123456789");
    assert_eq!(script.hosts(), [P, P, S]);
}

/// What does not go on exactly where the body broke off, in the same version, ends it.
#[tokio::test(start_paused = true)]
async fn two_versions_are_never_joined() {
    let other_part = |range: &str| {
        Reply::status(206)
            .body("456789")
            .header("etag", "\"1\"")
            .header("content-range", range)
    };
    for (what, answer, kind) in [
        ("412", Reply::status(412), ErrorKind::VersionChanged),
        ("416", Reply::status(416), ErrorKind::VersionChanged),
        ("404", Reply::status(404), ErrorKind::VersionChanged),
        ("another etag", part(4, "\"2\""), ErrorKind::VersionChanged),
        ("a weak etag", part(4, "W/\"1\""), ErrorKind::VersionChanged),
        (
            "the whole of another version",
            whole("\"2\""),
            ErrorKind::VersionChanged,
        ),
        ("the whole", whole("\"1\""), ErrorKind::Transport),
        ("no range", other_part(""), ErrorKind::Transport),
        (
            "a later start",
            other_part("bytes 5-9/10"),
            ErrorKind::Transport,
        ),
        (
            "an earlier end",
            other_part("bytes 4-8/10"),
            ErrorKind::Transport,
        ),
        (
            "another size",
            other_part("bytes 4-9/11"),
            ErrorKind::Transport,
        ),
        (
            "an encoding",
            part(4, "\"1\"").header("content-encoding", "gzip"),
            ErrorKind::Transport,
        ),
        (
            "another length",
            part(4, "\"1\"").body("45678"),
            ErrorKind::Transport,
        ),
        ("403", Reply::status(403), ErrorKind::Transport),
    ] {
        let script = Script::new().any_method(P, [whole("\"1\"").cut_body_after(4), answer]);
        let (text, error) = download(&builder().build().unwrap(), &script, get()).await;
        let error = error.unwrap();
        assert_eq!(
            (text.as_str(), error.kind()),
            ("0123", kind),
            "{what}: {error}"
        );
        assert!(error.source().is_some(), "why it broke off is told");
    }
}

/// A resume that fails is not repeated: it was a whole operation, with its own retries (T8).
#[tokio::test(start_paused = true)]
async fn a_resume_that_fails_ends_the_body() {
    let service = builder().retry(retry().max_retries(1)).build().unwrap();
    let script = Script::new()
        .any_method(P, [whole("\"1\"").cut_body_after(4), Reply::reset()])
        .any_method(S, [Reply::reset()]);
    let (text, error) = download(&service, &script, get()).await;
    let error = error.unwrap();
    assert_eq!(
        (text.as_str(), error.kind()),
        ("0123", ErrorKind::Transport)
    );
    assert_eq!(script.hosts(), [P, P, S]);
    let cause = error.source().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(
        cause.trail().sends().len(),
        2,
        "the trail of the resume is told"
    );
}

/// T2: after `max_retries` resumes in a row that gave nothing it ends; one byte begins anew.
#[tokio::test(start_paused = true)]
async fn resumes_without_progress_are_limited() {
    let service = || builder().retry(retry().max_retries(2)).build().unwrap();
    let script = Script::new().any_method(
        P,
        [
            whole("\"1\"").cut_body_after(0),
            part(0, "\"1\"").cut_body_after(0),
        ],
    );
    let began = Instant::now();
    let (text, error) = download(&service(), &script, get()).await;
    assert_eq!(text, "");
    assert_eq!(error.unwrap().kind(), ErrorKind::Transport);
    assert_eq!(script.sends().len(), 3);
    // T1: 1 s, then 2 s.
    assert_eq!(began.elapsed(), secs(3));

    let replies = (0..10).map(|from| part(from, "\"1\"").cut_body_after(1));
    let replies = [whole("\"1\"").cut_body_after(0)]
        .into_iter()
        .chain(replies);
    let script = Script::new().any_method(P, replies);
    let service = builder()
        .retry(retry().max_retries(1))
        .breaker(None)
        .build()
        .unwrap();
    let response = over(&service, &script).oneshot(get()).await.unwrap();
    let mut text = String::new();
    let mut body = Box::pin(response.into_body());
    while text.len() < 10 {
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&data).unwrap());
    }
    assert_eq!((text.as_str(), body.resumes()), ("0123456789", 10));
}

/// T4: a resume takes 14 tokens, which come back when the rest has come; without them it ends.
#[tokio::test(start_paused = true)]
async fn a_resume_pays_as_a_return_does() {
    let level = |service: &GeoService| service.budget(&PRIMARY).unwrap().0;
    let script =
        || Script::new().any_method(P, [whole("\"1\"").cut_body_after(4), part(4, "\"1\"")]);

    let service = builder().build().unwrap();
    let response = over(&service, &script()).oneshot(get()).await.unwrap();
    let mut body = Box::pin(response.into_body());
    body.frame().await.unwrap().unwrap();
    assert_eq!(level(&service), 500);
    let stalled = Script::new().any_method(
        P,
        [
            whole("\"1\"").cut_body_after(4),
            part(4, "\"1\"").stall_body_after(2),
        ],
    );
    let response = over(&service, &stalled).oneshot(get()).await.unwrap();
    let mut body = Box::pin(response.into_body());
    for _ in 0..2 {
        body.frame().await.unwrap().unwrap();
    }
    // The head of the rest was a success of its own operation, which gives back 1.
    assert_eq!(level(&service), 500 - 14 + 1);
    drop(body);
    assert_eq!(
        level(&service),
        500,
        "V4: dropped after a good head is a success"
    );

    let (_, error) = download(&service, &script(), get()).await;
    assert!(error.is_none());
    assert_eq!(level(&service), 500);

    let cut_again = Script::new().any_method(
        P,
        [
            whole("\"1\"").cut_body_after(4),
            part(4, "\"1\"").cut_body_after(2),
            Reply::status(412),
        ],
    );
    let (_, error) = download(&service, &cut_again, get()).await;
    assert_eq!(error.unwrap().kind(), ErrorKind::VersionChanged);
    assert!(
        level(&service) < 500 - 14,
        "two were paid and not given back"
    );

    let poor = builder().retry(retry().budget(13)).build().unwrap();
    let script = script();
    let (text, error) = download(&poor, &script, get()).await;
    assert_eq!(
        (text.as_str(), error.unwrap().kind()),
        ("0123", ErrorKind::Transport)
    );
    assert_eq!(script.sends().len(), 1);
}

/// What is not known to be one version of plain bytes passes untouched.
#[tokio::test(start_paused = true)]
async fn other_answers_are_not_resumed() {
    let ok = || Reply::ok("0123456789").header("etag", "\"1\"");
    for (what, reply) in [
        (
            "no etag",
            Reply::ok("0123456789").header("content-length", "10"),
        ),
        ("a weak etag", whole("W/\"1\"")),
        ("no length", ok()),
        (
            "a length that is none",
            ok().header("content-length", "ten"),
        ),
        (
            "an encoding",
            whole("\"1\"").header("content-encoding", "gzip"),
        ),
        (
            "a structured body",
            whole("\"1\"").header("x-ms-structured-body", "XSM/1.0"),
        ),
        (
            "a part of nothing",
            Reply::status(206)
                .body("0123456789")
                .header("etag", "\"1\"")
                .header("content-length", "10"),
        ),
        (
            "an error",
            Reply::status(400)
                .body("0123456789")
                .header("etag", "\"1\"")
                .header("content-length", "10"),
        ),
    ] {
        let script = Script::new().any_method(P, [reply.cut_body_after(4), part(4, "\"1\"")]);
        let response = over(&builder().build().unwrap(), &script)
            .oneshot(get())
            .await
            .unwrap();
        let body = response.into_body();
        assert!(!body.can_be_resumed(), "{what}");
        let (text, error) = read(body).await;
        assert_eq!(text, "0123", "{what}");
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Transport, "{what}");
        assert_eq!(
            crate::support::io_kind(&error),
            Some(io::ErrorKind::UnexpectedEof)
        );
        assert_eq!(script.sends().len(), 1, "{what}");
    }
}

/// What is no read of this service, or is signed over its headers, passes untouched.
#[tokio::test(start_paused = true)]
async fn other_requests_are_not_resumed() {
    let signed = |scheme: &str| {
        let mut get = get();
        let value = HeaderValue::try_from(format!("{scheme} contoso:c2ln")).unwrap();
        get.headers_mut().insert(AUTHORIZATION, value);
        get
    };
    for (what, request, resumed) in [
        ("a write", put(), false),
        (
            "a foreign host",
            request(Method::GET, "login.test", "/x"),
            false,
        ),
        ("shared key", signed("SharedKey"), false),
        ("a bearer token", signed("Bearer"), true),
    ] {
        let replies = || [whole("\"1\"").cut_body_after(4), part(4, "\"1\"")];
        let script = Script::new()
            .any_method(P, replies())
            .any_method("login.test", replies());
        let response = over(&builder().build().unwrap(), &script)
            .oneshot(request)
            .await
            .unwrap();
        assert_eq!(response.body().can_be_resumed(), resumed, "{what}");
    }
    // I2: a GET that takes a message off a queue.
    let queue = GeoService::azure_storage("https://contoso.queue.core.windows.net")
        .build()
        .unwrap();
    let script = Script::new().any_method("contoso.queue.core.windows.net", [whole("\"1\"")]);
    for (target, resumed) in [("/q/messages", false), ("/q/messages?peekonly=true", true)] {
        let get = request(Method::GET, "contoso.queue.core.windows.net", target);
        let response = over(&queue, &script).oneshot(get).await.unwrap();
        assert_eq!(response.body().can_be_resumed(), resumed, "{target}");
    }
}

/// A body that just ends, too early or too late, is no whole body.
#[tokio::test(start_paused = true)]
async fn a_body_of_another_length_than_told_is_never_taken_for_whole() {
    // 10 were told, 4 come, and then the end.
    let short = || whole("\"1\"").cut_body_after(4).body("0123");
    let script = Script::new().any_method(P, [short(), part(4, "\"1\"")]);
    let (text, error) = download(&builder().build().unwrap(), &script, get()).await;
    // The hint of the body contradicts its head, so nothing was promised about it.
    assert_eq!((text.as_str(), error.is_none()), ("0123", true));
    assert_eq!(script.sends().len(), 1);

    let script = Script::new().any_method(
        P,
        [
            whole("\"1\"").cut_body_after(4),
            part(4, "\"1\"").body("456789X").cut_body_after(7),
        ],
    );
    let (text, error) = download(&builder().build().unwrap(), &script, get()).await;
    assert_eq!(
        (text.as_str(), error.unwrap().kind()),
        ("0123", ErrorKind::Transport)
    );
}

/// T9: a listener is told of each resume, as it leaves.
#[tokio::test(start_paused = true)]
async fn listeners_are_told_of_resumes() {
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&told);
    let service = builder()
        .listener(std::sync::Arc::new(move |event: &tower_geo::Event| {
            if let EventKind::Resend(resend) = event.kind {
                let region = event.region_name(resend.region).to_owned();
                let told = (region, resend.kind, resend.attempt, resend.waited);
                noted.lock().unwrap().push(told);
            }
        }))
        .build()
        .unwrap();
    let script = Script::new().any_method(P, [whole("\"1\"").cut_body_after(4), part(4, "\"1\"")]);
    let (_, error) = download(&service, &script, get()).await;
    assert!(error.is_none());
    let told = told.lock().unwrap();
    assert_eq!(
        *told,
        [("primary".to_owned(), SendKind::Resume, 2, secs(1))]
    );
}

/// All below sees that a request fetches a rest.
#[tokio::test(start_paused = true)]
async fn requests_for_a_rest_say_so() {
    let script = Script::new().any_method(P, [whole("\"1\"").cut_body_after(4), part(4, "\"1\"")]);
    let service = builder().build().unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&seen);
    let stack = ServiceBuilder::new()
        .layer(ResumeLayer::new(service.clone()).clone_bodies())
        .layer(service.layer().clone_bodies())
        .map_request(move |request: Request<Body>| {
            let told = Resuming::of(request.extensions()).map(|told| (told.nth, told.from));
            noted.lock().unwrap().push(told);
            request
        })
        .service(script.service());
    let response = stack.oneshot(get()).await.unwrap();
    read(response.into_body()).await;
    assert_eq!(*seen.lock().unwrap(), [None, Some((1, 4))]);
}

/// Dropped at every poll, nothing is left behind and nothing runs on.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_leaves_nothing_behind() {
    for polls in 0..8 {
        let service = builder().build().unwrap();
        let script = Script::new().any_method(
            P,
            [
                whole("\"1\"").cut_body_after(4),
                part(4, "\"1\"").after(secs(1)),
            ],
        );
        let response = ServiceBuilder::new()
            .layer(ResumeLayer::new(service.clone()).clone_bodies())
            .layer(service.layer().clone_bodies())
            .concurrency_limit(1)
            .service(script.service());
        let mut permits = response.clone();
        let mut body = Box::pin(response.oneshot(get()).await.unwrap().into_body());
        for _ in 0..polls {
            let _ = tokio::time::timeout(ms(300), body.frame()).await;
        }
        drop(body);
        let again = tokio::time::timeout(secs(60), permits.until_ready()).await;
        assert!(
            again.unwrap().is_ok(),
            "a permit was kept after {polls} polls"
        );
        let sends = script.sends().len();
        tokio::time::sleep(secs(60)).await;
        assert_eq!(script.sends().len(), sends);
    }
}

/// E4: below another layer of the same service, or there twice, it says so at the first call.
#[tokio::test(start_paused = true)]
async fn a_wrong_place_is_told_at_the_first_call() {
    let service = builder().build().unwrap();
    let script = Script::new().any_method(P, [whole("\"1\"")]);
    let resume = || ResumeLayer::new(service.clone()).clone_bodies();
    let below = RetryLayer::new(service.clone())
        .clone_bodies()
        .layer(resume().layer(script.service()));
    let error = below.oneshot(get()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(
        error
            .to_string()
            .contains("RetryLayer stands above ResumeLayer"),
        "{error}"
    );
    let twice = resume().layer(resume().layer(script.service()));
    let error = twice.oneshot(get()).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
    assert!(script.sends().is_empty());
}

/// The types of the layer go wherever those of the stack go.
#[test]
fn the_layer_and_its_bodies_can_be_sent() {
    fn check<T: Send + 'static>() {}
    type Stack = Resume<GeoStack<ScriptService, CloneBodies>, CloneBodies>;
    check::<ResumeLayer>();
    check::<Stack>();
    check::<<Stack as Service<Request<Body>>>::Future>();
    check::<<Stack as Service<Request<Body>>>::Response>();
    fn is_sync<T: Sync + Clone>() {}
    is_sync::<Stack>();
    is_sync::<ResumeLayer>();
    is_sync::<GeoLayer>();
    fn body_of<S, P, B, RB>(_: &Response<ResumeBody<S, P, B, RB>>)
    where
        S: Service<Request<B>>,
    {
    }
    let _ = body_of::<Stack, CloneBodies, Body, Body>;
}

proptest! {
    /// However often and wherever a download breaks off, and whichever region has which version:
    /// what is handed over is a beginning of one version, and all of it unless there is an error.
    #[test]
    fn what_is_handed_over_is_of_one_version(
        cuts in prop::collection::vec((0_u64..40, any::<bool>()), 0..8),
        change_after in prop::option::of(0_usize..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (text, error) = runtime.block_on(async {
            let mut primary = Rule::host(P);
            let mut secondary = Rule::host(S);
            for (bytes, stalls) in cuts {
                let answer = if stalls {
                    Answer::real().stall_after(bytes)
                } else {
                    Answer::real().cut_after(bytes)
                };
                primary = primary.answer_times(1, answer.clone());
                secondary = secondary.answer_times(1, answer);
            }
            let faults = FaultLayer::builder()
                .rule(primary.answer_times(1, Answer::real()))
                .rule(secondary.answer_times(1, Answer::real()))
                .build()
                .unwrap();
            faults.switch().enable();
            let client = Versions::new(change_after);
            let service = builder().build().unwrap();
            let stack = ServiceBuilder::new()
                .layer(ResumeLayer::new(service.clone()).clone_bodies())
                .layer(service.layer().clone_bodies())
                .layer(faults)
                .service_fn(move |request: Request<Body>| std::future::ready(client.answer(&request)));
            let response = stack.oneshot(get()).await.unwrap();
            read(response.into_body()).await
        });
        let version = |letter: char| letter.to_string().repeat(32);
        let is_beginning = version('a').starts_with(&text) || version('b').starts_with(&text);
        prop_assert!(is_beginning, "{}", text);
        prop_assert!(error.is_some() || text.len() == 32, "{}", text);
    }
}

/// An object of 32 letters that is overwritten after some requests.
#[derive(Clone)]
struct Versions {
    requests: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    change_after: Option<usize>,
}

impl Versions {
    fn new(change_after: Option<usize>) -> Self {
        Self {
            requests: std::sync::Arc::default(),
            change_after,
        }
    }

    fn answer(&self, request: &Request<Body>) -> io::Result<Response<Body>> {
        use std::sync::atomic::Ordering;
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        let changed = self.change_after.is_some_and(|after| before >= after);
        let (letter, etag) = if changed {
            ("b", "\"b\"")
        } else {
            ("a", "\"a\"")
        };
        let content = letter.repeat(32);
        let headers = request.headers();
        let mut response = Response::builder().header("etag", etag);
        if headers.get(IF_MATCH).is_some_and(|wanted| wanted != etag) {
            return Ok(response.status(412).body(Body::default()).unwrap());
        }
        let mut from = 0;
        if let Some(range) = headers.get(RANGE) {
            let range = range.to_str().unwrap();
            from = range
                .strip_prefix("bytes=")
                .unwrap()
                .strip_suffix('-')
                .unwrap()
                .parse()
                .unwrap();
            response = response
                .status(206)
                .header("content-range", format!("bytes {from}-31/32"));
        }
        Ok(response
            .body(Body::from(content[from..].to_owned()))
            .unwrap())
    }
}
