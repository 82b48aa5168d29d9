use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ETAG, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, timeout};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::*;
use crate::{BoxError, ClassifyFault, Fault, StandardFaults};

type Wire = Request<Full<Bytes>>;
type Answered = std::future::Ready<Result<Response<Full<Bytes>>, io::Error>>;

/// A client that counts its calls and answers `200 0123456789` with an ETag.
fn client(
    calls: &Arc<AtomicU32>,
) -> impl Service<
    Wire,
    Response = Response<Full<Bytes>>,
    Error = io::Error,
    Future = Answered,
> + Clone
+ use<> {
    let calls = Arc::clone(calls);
    service_fn(move |_| {
        calls.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::new(Full::from("0123456789"));
        let etag = HeaderValue::from_static("\"1\"");
        response.headers_mut().insert(ETAG, etag);
        std::future::ready(Ok(response))
    })
}

fn get() -> Wire {
    Request::get("https://a.test/x")
        .body(Full::default())
        .unwrap()
}

fn layer(answer: Answer) -> FaultLayer {
    let rule = Rule::host("a.test").answer(answer);
    let layer = FaultLayer::builder().rule(rule).build().unwrap();
    layer.switch().enable();
    layer
}

/// What one send over a rule with this answer comes to, and how often the client was called.
async fn meet(answer: Answer) -> (Result<Response<FaultBody<Full<Bytes>>>, BoxError>, u32) {
    let calls = Arc::default();
    let service = layer(answer).layer(client(&calls));
    let met = service.oneshot(get()).await;
    (met, calls.load(Ordering::Relaxed))
}

async fn text<B>(body: B) -> Result<String, B::Error>
where
    B: Body<Data = Bytes>,
{
    let bytes = body.collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_unless_it_is_switched_on() {
    let calls = Arc::default();
    let layer = layer(Answer::fault(FaultKind::Connect));
    let service = layer.layer(client(&calls));
    let switch = layer.switch();
    assert!(service.clone().oneshot(get()).await.is_err());
    switch.disable();
    assert_eq!(switch.report().unmatched().count(), 0);
    assert!(service.clone().oneshot(get()).await.is_ok());
    switch.enable();
    assert_eq!(switch.report().unmatched().count(), 1, "counts begin anew");
    assert!(service.oneshot(get()).await.is_err());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

/// Each fault is taken for what it stands for, also by those who know only `io::Error`.
#[tokio::test(start_paused = true)]
async fn faults_are_classified_as_what_they_stand_for() {
    for (kind, fault, io_kind) in [
        (
            FaultKind::Connect,
            Fault::Connect,
            io::ErrorKind::ConnectionRefused,
        ),
        (FaultKind::Dns, Fault::Dns, io::ErrorKind::NotFound),
        (FaultKind::Tls, Fault::Tls, io::ErrorKind::InvalidData),
        (
            FaultKind::Reset,
            Fault::Reset,
            io::ErrorKind::ConnectionReset,
        ),
    ] {
        let (met, calls) = meet(Answer::fault(kind)).await;
        let error = met.unwrap_err();
        assert_eq!(StandardFaults.classify(&*error), fault);
        let wrapped = io::Error::other(error);
        assert_eq!(
            StandardFaults.classify(&wrapped),
            fault,
            "inside a client's error"
        );
        let error = wrapped.into_inner().unwrap();
        let source = error.source().unwrap().downcast_ref::<io::Error>();
        assert_eq!(source.unwrap().kind(), io_kind);
        assert_eq!(calls, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hang_has_no_end_of_its_own() {
    let hour = Duration::from_secs(3_600);
    let met = timeout(hour, meet(Answer::fault(FaultKind::Hang))).await;
    assert!(met.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_made_up_answer_reaches_no_server() {
    let began = Instant::now();
    let answer = Answer::of(StatusCode::SERVICE_UNAVAILABLE)
        .header(RETRY_AFTER, HeaderValue::from_static("3"))
        .body("busy")
        .latency(Duration::from_millis(20));
    let (met, calls) = meet(answer).await;
    let response = met.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(20));
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[RETRY_AFTER], "3");
    assert!(!response.headers().contains_key(ETAG));
    let body = response.into_body();
    assert!(body.is_made_up());
    assert_eq!(body.size_hint().exact(), Some(4));
    assert_eq!(text(body).await.unwrap(), "busy");
    assert_eq!(calls, 0);
}

/// As a proxy does it that changes the status on the way back.
#[tokio::test(start_paused = true)]
async fn a_real_answer_is_changed_after_it_was_given() {
    let answer = Answer::real()
        .status(StatusCode::BAD_GATEWAY)
        .header(ETAG, HeaderValue::from_static("\"2\""));
    let (met, calls) = meet(answer).await;
    let response = met.unwrap();
    assert_eq!(calls, 1, "the request was really sent");
    assert_eq!(response.status(), 502);
    let etags: Vec<_> = response.headers().get_all(ETAG).iter().collect();
    assert_eq!(etags, ["\"2\""]);
    assert_eq!(text(response.into_body()).await.unwrap(), "0123456789");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_was_given_and_looks_like_a_reset() {
    let (met, calls) = meet(Answer::lost()).await;
    assert_eq!(calls, 1);
    assert_eq!(StandardFaults.classify(&*met.unwrap_err()), Fault::Reset);
}

#[tokio::test(start_paused = true)]
async fn bodies_break_off_where_the_rule_says() {
    for answer in [
        Answer::real().cut_after(4),
        Answer::of(StatusCode::OK).body("0123456789").cut_after(4),
    ] {
        let mut body = meet(answer).await.0.unwrap().into_body();
        assert_eq!(body.size_hint().exact(), Some(10));
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "0123");
        assert!(!body.is_end_stream());
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(StandardFaults.classify(&*error), Fault::BodyCut);
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
    }
    // One that is shorter is whole.
    let body = meet(Answer::real().cut_after(11))
        .await
        .0
        .unwrap()
        .into_body();
    assert_eq!(text(body).await.unwrap(), "0123456789");
}

#[tokio::test(start_paused = true)]
async fn bodies_stall_where_the_rule_says() {
    for answer in [
        Answer::real().stall_after(10),
        Answer::of(StatusCode::OK)
            .body("0123456789")
            .stall_after(10),
    ] {
        let mut body = meet(answer).await.0.unwrap().into_body();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "0123456789");
        assert!(
            timeout(Duration::from_secs(3_600), body.frame())
                .await
                .is_err()
        );
    }
}

/// T6: without a connection no byte of the body is taken; with one all are.
#[tokio::test(start_paused = true)]
async fn the_body_of_a_request_is_taken_only_when_there_is_a_connection() {
    for (kind, wanted) in [(FaultKind::Connect, 0), (FaultKind::Reset, 3)] {
        let taken = Arc::new(AtomicU32::new(0));
        let body = Counted(Arc::clone(&taken));
        let client =
            service_fn(|_| async { Ok::<_, io::Error>(Response::new(Full::<Bytes>::default())) });
        let service = layer(Answer::fault(kind)).layer(client);
        let request = Request::put("https://a.test/x").body(body).unwrap();
        assert!(service.oneshot(request).await.is_err());
        assert_eq!(taken.load(Ordering::Relaxed), wanted, "{kind:?}");
    }
}

/// Two frames, counted as they are taken.
struct Counted(Arc<AtomicU32>);

impl Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let more = self.0.fetch_add(1, Ordering::Relaxed) < 2;
        Poll::Ready(more.then(|| Ok(Frame::data(Bytes::from_static(b"x")))))
    }
}

#[tokio::test(start_paused = true)]
async fn times_count_from_switching_on() {
    let rule = Rule::host("a.test")
        .from(Duration::from_secs(10))
        .until(Duration::from_secs(20))
        .answer(Answer::of(StatusCode::GONE));
    let layer = FaultLayer::builder().rule(rule).build().unwrap();
    let service = layer.layer(client(&Arc::default()));
    tokio::time::sleep(Duration::from_secs(15)).await;
    layer.switch().enable();
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let response = service.clone().oneshot(get()).await.unwrap();
        statuses.push(response.status().as_u16());
        tokio::time::sleep(Duration::from_millis(6_667)).await;
    }
    assert_eq!(statuses, [200, 200, 410, 200]);
}

/// The same seed gives the same faults, and a rule that is added does not shift another's draws.
#[tokio::test(start_paused = true)]
async fn each_rule_draws_from_a_stream_of_its_own() {
    async fn faults(seed: u64, other_rule: bool) -> Vec<bool> {
        let half = |host: &str| {
            Rule::host(host)
                .rate(0.5)
                .answer(Answer::fault(FaultKind::Reset))
        };
        let mut builder = FaultLayer::builder().seed(seed).rule(half("a.test"));
        if other_rule {
            builder = builder.rule(half("*"));
        }
        let layer = builder.build().unwrap();
        layer.switch().enable();
        let service = layer.layer(client(&Arc::default()));
        for _ in 0..64 {
            let _ = service.clone().oneshot(get()).await;
        }
        let mut found = vec![(16..48).contains(&applied(&layer))];
        layer.switch().disable();
        layer.switch().enable();
        for _ in 0..64 {
            let before = applied(&layer);
            let _ = service.clone().oneshot(get()).await;
            found.push(applied(&layer) > before);
        }
        found
    }
    fn applied(layer: &FaultLayer) -> u64 {
        let report = layer.switch().report();
        report.rules().next().map_or(0, |(_, used)| used.applied)
    }
    let first = faults(1, false).await;
    assert!(first[0], "about half of them");
    assert_eq!(first, faults(1, false).await);
    assert_eq!(first, faults(1, true).await);
    assert_ne!(first, faults(2, false).await);
}

#[test]
fn answers_that_make_no_sense_are_refused_with_the_number_of_their_rule() {
    let ok = || Answer::of(StatusCode::OK).body("0123");
    for (answer, setting) in [
        (ok().cut_after(5), "cut_after"),
        (ok().stall_after(5), "stall_after"),
        (ok().cut_after(1).stall_after(2), "stall_after"),
        (Answer::of(StatusCode::CONTINUE), "status"),
        (Answer::real().body("x"), "body"),
        (
            Answer::fault(FaultKind::Dns).status(StatusCode::OK),
            "answers",
        ),
        (Answer::lost().cut_after(1), "answers"),
    ] {
        let rules = [
            Rule::host("a.test").answer(ok()),
            Rule::host("b.test").answer(answer),
        ];
        let mut builder = FaultLayer::builder();
        for rule in rules {
            builder = builder.rule(rule);
        }
        let error = builder.build().unwrap_err();
        assert_eq!(error.setting(), setting);
        assert!(error.to_string().contains("rule 2 (b.test)"), "{error}");
    }
    assert!(
        FaultLayer::builder()
            .rule(Rule::host("a.test"))
            .build()
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_report_names_the_rules_that_nothing_met() {
    let fault = || Answer::fault(FaultKind::Reset);
    let layer = FaultLayer::builder()
        .rule(Rule::host("typo.test").path("/x?sig=s*").answer(fault()))
        .rule(Rule::host("a.test").answer(fault()))
        .build()
        .unwrap();
    let switch = layer.switch();
    switch.enable();
    let _ = layer.layer(client(&Arc::default())).oneshot(get()).await;
    let report = switch.report();
    assert_eq!(
        report.unmatched().collect::<Vec<_>>(),
        [(1, "typo.test/x?…")]
    );
    assert_eq!(
        report.to_string(),
        "rule 1 (typo.test/x?…) never matched anything\nrule 2 (a.test) applied to 1 of 1 sends"
    );
}

/// A call that sends nothing keeps no permit of the service below.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_sent_leaves_an_unready_clone() {
    #[derive(Debug)]
    struct Permit(Arc<AtomicU32>, bool);
    impl Clone for Permit {
        fn clone(&self) -> Self {
            Self(Arc::clone(&self.0), false)
        }
    }
    impl Drop for Permit {
        fn drop(&mut self) {
            if self.1 {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
    impl Service<Wire> for Permit {
        type Response = Response<Full<Bytes>>;
        type Error = io::Error;
        type Future = std::future::Pending<Result<Self::Response, io::Error>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.1 = true;
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: Wire) -> Self::Future {
            std::future::pending()
        }
    }
    let permits = Arc::new(AtomicU32::new(0));
    let mut service =
        layer(Answer::fault(FaultKind::Hang)).layer(Permit(Arc::clone(&permits), false));
    poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    assert_eq!(permits.load(Ordering::Relaxed), 1);
    let mut call = pin!(service.call(get()));
    let polled = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
    assert!(polled);
    assert_eq!(permits.load(Ordering::Relaxed), 0);
}
