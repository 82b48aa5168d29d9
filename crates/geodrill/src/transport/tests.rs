use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower_service::Service;

use super::{RequestBody, ResponseBody, Told, Transport, WireFault};
use crate::account::Accounts;
use crate::format::{self, Fault, Syntax};
use crate::judge;
use crate::script::Script;
use crate::stage::{Reply, Sends, Stage, Ticket};

const SECOND: Duration = Duration::from_secs(1);

/// A transport whose only host answers so, and where it writes its sends down.
fn wire(answer: &str) -> (Transport, Arc<Stage>, Arc<Sends>) {
    let text = format!(
        r#"{{"services": {{"s": {{"provider": "azure-storage", "endpoint": "https://a.test"}}}},
             "rules": [{{"host": "a.test", "answers": [{answer}]}}]}}"#
    );
    let mut drill = format::read(&text, Syntax::Json).unwrap();
    let stage = Arc::new(Stage::new(
        Script::new(&mut drill),
        Accounts::default(),
        Vec::new(),
        1,
        true,
    ));
    let region_of = Arc::new(|_: &Uri| Some(0));
    let teller = |_: &http::Extensions| Told::default();
    let (wire, judge) = (Arc::clone(&stage), judge::by_status);
    let transport = Transport::new(wire, 0, region_of, teller, judge, None);
    let sends = Arc::new(Sends::new(vec![http::header::HOST].into()));
    (transport, stage, sends)
}

fn request(sends: &Arc<Sends>, body: RequestBody) -> Request<RequestBody> {
    Request::put("https://A.test:443/x?y")
        .extension(Ticket(Arc::clone(sends)))
        .body(body)
        .unwrap()
}

fn whole() -> RequestBody {
    RequestBody::new(Bytes::from_static(b"abc"), false)
}

async fn send(
    transport: &mut Transport,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, WireFault> {
    poll_fn(|cx| Service::<Request<RequestBody>>::poll_ready(transport, cx))
        .await
        .unwrap();
    transport.call(request).await
}

/// A body that tells whether it was read, by panicking.
struct Unread;

impl Body for Unread {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        panic!("the body was read");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_after_its_latency_and_is_written_down() {
    let (mut transport, stage, sends) =
        wire(r#"{"status": 201, "headers": {"etag": "x"}, "body": "hello", "latency": "20ms"}"#);
    let response = send(&mut transport, request(&sends, whole()))
        .await
        .unwrap();
    assert_eq!(stage.now_ms(), 20);
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["etag"], "x");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "hello");
    let record = sends.lock().list[0].clone();
    assert_eq!((record.at_ms, record.took_ms), (0, 20));
    assert_eq!(
        (record.host.as_str(), record.path.as_str()),
        ("a.test", "/x?y")
    );
    assert_eq!(
        record.reply,
        Some(Reply::Status {
            code: 201,
            good: true
        })
    );
    assert_eq!(record.headers[0].1, "a.test");
}

/// T6: a connection that never came about has taken nothing of the body.
#[tokio::test(start_paused = true)]
async fn no_connection_takes_no_byte_of_the_body() {
    for (word, fault) in [
        ("connect", Fault::Connect),
        ("dns", Fault::Dns),
        ("tls", Fault::Tls),
    ] {
        let (mut transport, _, sends) = wire(&format!(r#"{{"fault": "{word}"}}"#));
        let request = Request::put("https://a.test/")
            .extension(Ticket(Arc::clone(&sends)))
            .body(Unread)
            .unwrap();
        let error = transport.call(request).await.unwrap_err();
        assert_eq!(error.fault(), Some(fault));
        assert_eq!(sends.lock().list[0].reply, Some(Reply::Fault(fault)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_dropped_was_cancelled_or_timed_out() {
    for (leaves, reply) in [(true, Reply::Cancelled), (false, Reply::Timeout)] {
        let (mut transport, _, sends) = wire(r#"{"fault": "hang"}"#);
        let call = send(&mut transport, request(&sends, whole()));
        let mut call = Box::pin(call);
        assert!(timeout(SECOND, &mut call).await.is_err());
        sends.lock().caller_leaves = leaves;
        drop(call);
        let record = sends.lock().list[0].clone();
        assert_eq!((record.reply, record.took_ms), (Some(reply), 1_000));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_the_reply_of_its_send() {
    let (mut transport, _, sends) =
        wire(r#"{"status": 200, "body": "0123456789", "cut_after": 4}"#);
    let response = send(&mut transport, request(&sends, whole()))
        .await
        .unwrap();
    let mut body = pin!(response.into_body());
    assert_eq!(body.size_hint().exact(), Some(10));
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "0123");
    assert!(!body.is_end_stream());
    assert!(body.frame().await.unwrap().unwrap_err().fault().is_none());
    assert!(body.frame().await.is_none());
    assert_eq!(sends.lock().list[0].reply, Some(Reply::Cut));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_told_when_it_is_given_up() {
    let (mut transport, _, sends) =
        wire(r#"{"status": 200, "body": "0123456789", "stall_after": 4}"#);
    let response = send(&mut transport, request(&sends, whole()))
        .await
        .unwrap();
    {
        let mut body = pin!(response.into_body());
        body.frame().await.unwrap().unwrap();
        assert!(timeout(SECOND, body.frame()).await.is_err());
        assert_eq!(
            sends.lock().list[0].reply,
            Some(Reply::Status {
                code: 200,
                good: true
            })
        );
    }
    let record = sends.lock().list[0].clone();
    assert_eq!((record.reply, record.took_ms), (Some(Reply::Stall), 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_body_nobody_reads_keeps_its_status() {
    let (mut transport, _, sends) =
        wire(r#"{"status": 503, "body": "0123456789", "stall_after": 4}"#);
    drop(
        send(&mut transport, request(&sends, whole()))
            .await
            .unwrap(),
    );
    assert_eq!(
        sends.lock().list[0].reply,
        Some(Reply::Status {
            code: 503,
            good: false
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_send_of_no_operation_is_in_the_background() {
    let (mut transport, stage, sends) = wire(r#"{"status": 200}"#);
    let mut request = request(&sends, whole());
    request.extensions_mut().remove::<Ticket>();
    send(&mut transport, request).await.unwrap();
    let seen = stage.seen();
    assert_eq!(seen.background.len(), 1);
    assert_eq!(seen.sends_in_all, 1);
    assert!(sends.lock().list.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_no_length_and_no_copy() {
    let stream = RequestBody::new(Bytes::from(vec![0; 3_000]), true);
    assert!(stream.try_clone().is_none() && !stream.is_end_stream());
    assert_eq!(stream.size_hint().exact(), None);
    let mut stream = pin!(stream);
    let mut pieces = 0;
    while let Some(frame) = stream.frame().await {
        frame.unwrap();
        pieces += 1;
    }
    assert_eq!(pieces, 3);
    let whole = whole();
    assert_eq!(whole.size_hint().exact(), Some(3));
    assert!(whole.try_clone().is_some());
    assert!(RequestBody::new(Bytes::new(), false).is_end_stream());
}
