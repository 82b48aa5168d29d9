use super::{DropCounter, PanicsUnready, PendingTimes, Reply, Script, ScriptService};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use std::{
    future::poll_fn,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tower_service::Service;

const PRIMARY: &str = "contoso.blob.core.windows.net";
const SECONDARY: &str = "contoso-secondary.blob.core.windows.net";

fn request(method: Method, host: &str, body: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("https://{host}/c/b?x=1"))
        .header("x-ms-version", "2021-12-02")
        .body(Full::from(body.to_owned()))
        .unwrap()
}

fn ready_script() -> ScriptService {
    Script::new()
        .any_method(PRIMARY, [Reply::ok("meow")])
        .service()
}

async fn ready<S: Service<Request<Full<Bytes>>>>(service: &mut S)
where
    S::Error: std::fmt::Debug,
{
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
}

#[tokio::test]
async fn call_without_readiness_panics() {
    let mut service = PanicsUnready::new(ready_script());
    let call = |service: &mut PanicsUnready<ScriptService>| {
        let request = request(Method::GET, PRIMARY, "");
        catch_unwind(AssertUnwindSafe(|| drop(service.call(request)))).is_err()
    };
    assert!(call(&mut service), "never readied");
    ready(&mut service).await;
    assert!(call(&mut service.clone()), "a clone is not ready");
    assert!(!call(&mut service), "ready");
    assert!(call(&mut service), "readiness is used up");
}

#[tokio::test]
async fn readiness_takes_its_polls_anew_for_each_call() {
    let mut service = PendingTimes::new(PanicsUnready::new(ready_script()), 2);
    for _ in 0..2 {
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            Service::<Request<Full<Bytes>>>::poll_ready(&mut service, cx)
        })
        .await
        .unwrap();
        assert_eq!(polls, 3);
        service
            .call(request(Method::GET, PRIMARY, ""))
            .await
            .unwrap();
    }
}

#[test]
fn clones_are_counted_and_drops_too() {
    let counter = DropCounter::new();
    let body = counter.wrap(Full::<Bytes>::from("meow"));
    let twin = body.clone();
    assert_eq!((counter.alive(), counter.made()), (2, 2));
    drop(body);
    assert_eq!(counter.alive(), 1);
    drop(twin);
    assert_eq!((counter.alive(), counter.made()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn script_replies_in_order_and_repeats_the_last() {
    let script = Script::new()
        .on(
            PRIMARY,
            Method::GET,
            [
                Reply::status(503),
                Reply::ok("meow").header("etag", "\"1\""),
            ],
        )
        .any_method(PRIMARY, [Reply::status(403)]);
    let mut service = script.service();
    let mut seen = Vec::new();
    for method in [Method::GET, Method::GET, Method::GET, Method::PUT] {
        let answer = service.call(request(method, PRIMARY, "")).await.unwrap();
        seen.push(answer.status().as_u16());
    }
    assert_eq!(seen, [503, 200, 200, 403]);
}

#[tokio::test(start_paused = true)]
async fn script_logs_what_was_sent_and_when() {
    let script = Script::new()
        .any_method(PRIMARY, [Reply::status(201).after(Duration::from_secs(3))])
        .any_method(SECONDARY, [Reply::refused()]);
    let mut service = script.service();
    let start = Instant::now();

    let answer = service.call(request(Method::PUT, PRIMARY, "meow")).await;
    assert_eq!(answer.unwrap().status(), 201);
    let error = service
        .call(request(Method::GET, SECONDARY, "never taken"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);

    let sends = script.sends();
    assert_eq!(script.hosts(), [PRIMARY, SECONDARY]);
    assert_eq!(sends[0].method, Method::PUT);
    assert_eq!(sends[0].target, "/c/b?x=1");
    assert_eq!(sends[0].headers["x-ms-version"], "2021-12-02");
    assert_eq!(sends[0].body.as_deref(), Some(&b"meow"[..]));
    assert_eq!(sends[0].at - start, Duration::ZERO);
    assert_eq!(sends[1].at - start, Duration::from_secs(3));
    assert_eq!(sends[1].body, None);

    script.clear_sends();
    assert!(script.sends().is_empty());
}

#[tokio::test(start_paused = true)]
async fn script_resets_hangs_and_cuts() {
    let script = Script::new().any_method(
        PRIMARY,
        [
            Reply::reset(),
            Reply::hang(),
            Reply::ok("meow").cut_body_after(2),
            Reply::ok("meow").stall_body_after(2),
        ],
    );
    let mut service = script.service();
    let mut get = || service.call(request(Method::GET, PRIMARY, ""));

    assert_eq!(
        get().await.unwrap_err().kind(),
        io::ErrorKind::ConnectionReset
    );
    assert!(timeout(Duration::from_secs(3600), get()).await.is_err());

    let mut cut = get().await.unwrap().into_body();
    assert_eq!(
        cut.frame().await.unwrap().unwrap().into_data().unwrap(),
        "me"
    );
    let error = cut.frame().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);

    let mut stalled = get().await.unwrap().into_body();
    assert!(stalled.frame().await.unwrap().is_ok());
    let rest = timeout(Duration::from_secs(3600), stalled.frame());
    assert!(rest.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn replaced_replies_hold_for_every_method() {
    let script = Script::new().on(PRIMARY, Method::GET, [Reply::ok("meow")]);
    let mut service = script.service();
    script.replace(PRIMARY, [Reply::refused()]);
    let error = service.call(request(Method::GET, PRIMARY, "")).await;
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);

    let error = service.call(request(Method::GET, SECONDARY, "")).await;
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::Unsupported);
}
