//! How are request bodies sent again, and how long may an upload take (T6, T10)?

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body::{Body as HttpBody, Frame};
use tokio::time::Sleep;
use tower::{Layer, ServiceExt};
use tower_geo::{Ending, ErrorKind, RetryLayer, Served};
use tower_geo_testkit::strict::{DropCounter, Reply, Script};

use crate::support::*;

/// A body that gives one piece at a time, with a pause before each.
struct Drip {
    pieces: VecDeque<&'static str>,
    pause: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Drip {
    fn new(pieces: impl IntoIterator<Item = &'static str>, pause: Duration) -> Self {
        Self {
            pieces: pieces.into_iter().collect(),
            pause,
            sleep: None,
        }
    }
}

impl HttpBody for Drip {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.pieces.is_empty() {
            return Poll::Ready(None);
        }
        let pause = self.pause;
        if !pause.is_zero() {
            let sleep = self
                .sleep
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
            ready!(sleep.as_mut().poll(cx));
            self.sleep = None;
        }
        let piece = self.pieces.pop_front();
        Poll::Ready(piece.map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }
}

fn upload(pause: Duration) -> Request<Drip> {
    Request::put(format!("https://{P}/photos/cat"))
        .header("x-ms-blob-type", "BlockBlob")
        .body(Drip::new(["me", "o", "w!"], pause))
        .unwrap()
}

/// T6: a streaming body is kept while it is sent, and sent again whole.
#[tokio::test(start_paused = true)]
async fn a_buffered_body_is_sent_again_whole() {
    for first in [Reply::status(503), Reply::reset(), Reply::refused()] {
        let script = Script::new().any_method(P, [first, Reply::status(500), Reply::status(201)]);
        let stack = service().layer().buffer_bodies(5).layer(script.service());
        let answer = stack.oneshot(upload(ms(10))).await.unwrap();
        assert_eq!(answer.status(), 201);
        let bodies: Vec<_> = script
            .sends()
            .into_iter()
            .filter_map(|send| send.body)
            .collect();
        assert!(bodies.len() >= 2);
        assert!(bodies.iter().all(|body| body == "meow!"), "{bodies:?}");
    }
}

/// T6: past the cap it is not replayable: an error when a send would be due, with the answer in
/// its trail.
#[tokio::test(start_paused = true)]
async fn a_body_past_the_cap_is_not_replayable() {
    let script = Script::new().any_method(P, [Reply::status(503)]);
    let stack = service().layer().buffer_bodies(4).layer(script.service());
    let error = stack.oneshot(upload(ms(0))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReplayable);
    let sends = error.trail().sends();
    assert_eq!(sends.len(), 1);
    assert!(matches!(sends[0].ending, Ending::Answer(status) if status == 503));
    assert_eq!(
        script.sends()[0].body.as_deref(),
        Some(&b"meow!"[..]),
        "it was sent whole, once"
    );
}

/// T6: with *unknown outcome* if the send was ambiguous.
#[tokio::test(start_paused = true)]
async fn a_body_past_the_cap_with_a_lost_answer_has_an_unknown_outcome() {
    let script = Script::new().any_method(P, [Reply::reset()]);
    let stack = service().layer().buffer_bodies(4).layer(script.service());
    let error = stack.oneshot(upload(ms(0))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome);
    assert_eq!(script.sends().len(), 1);
}

/// T6: *unreachable* before the first byte is always replayable, with a cap of 0 too.
#[tokio::test(start_paused = true)]
async fn a_body_of_which_nothing_was_taken_is_sent_again() {
    let script =
        Script::new().any_method(P, [Reply::refused(), Reply::refused(), Reply::status(201)]);
    let stack = service().layer().buffer_bodies(0).layer(script.service());
    assert_eq!(stack.oneshot(upload(ms(10))).await.unwrap().status(), 201);
    assert_eq!(script.sends().len(), 3);
    assert_eq!(script.sends()[2].body.as_deref(), Some(&b"meow!"[..]));
}

/// T6: by default only empty bodies are sent again; a final answer to another is handed over all
/// the same.
#[tokio::test(start_paused = true)]
async fn by_default_only_empty_bodies_are_sent_again() {
    let script = Script::new()
        .on(P, Method::PUT, [Reply::status(201), Reply::status(503)])
        .on(P, Method::DELETE, [Reply::status(503), Reply::status(202)]);
    let stack = service().layer().layer(script.service());
    assert_eq!(stack.clone().oneshot(put()).await.unwrap().status(), 201);
    let error = stack.clone().oneshot(put()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReplayable);
    let delete = request(Method::DELETE, P, "/photos/cat");
    let answer = stack.oneshot(delete).await.unwrap();
    assert_eq!(answer.status(), 202);
    assert_eq!(
        Served::of(answer.extensions())
            .unwrap()
            .trail()
            .sends()
            .len(),
        2
    );
}

/// DESIGN 6: nothing of a body is kept once its operation has ended.
#[tokio::test(start_paused = true)]
async fn no_copy_of_a_body_outlives_its_operation() {
    let script = Script::new().any_method(P, [Reply::status(503), Reply::ok("done")]);
    let bodies = DropCounter::new();
    let stack = service().layer().clone_bodies().layer(script.service());
    let answer = stack
        .oneshot(put().map(|body| bodies.wrap(body)))
        .await
        .unwrap();
    assert_eq!(bodies.alive(), 0);
    assert!(
        bodies.made() <= 3,
        "one copy for each further send: {}",
        bodies.made()
    );
    drop(answer);
    let script = healthy();
    let bodies = DropCounter::new();
    let stack = service().layer().clone_bodies().layer(script.service());
    stack
        .oneshot(put().map(|body| bodies.wrap(body)))
        .await
        .unwrap();
    assert_eq!((bodies.made(), bodies.alive()), (2, 0), "E2: one copy");
}

/// T10: an upload that moves is not cut, however long it takes; when its last byte was taken the
/// time-out begins.
#[tokio::test(start_paused = true)]
async fn an_upload_that_moves_is_not_cut() {
    for cap in [0, 1024] {
        let script = Script::new().any_method(P, [Reply::status(201).after(secs(4))]);
        let service = builder()
            .retry(retry().attempt_timeout(secs(5)))
            .build()
            .unwrap();
        let stack = service.layer().buffer_bodies(cap).layer(script.service());
        let begun = tokio::time::Instant::now();
        assert_eq!(stack.oneshot(upload(secs(7))).await.unwrap().status(), 201);
        assert_eq!(
            begun.elapsed(),
            secs(25),
            "21 s of upload, 4 s for the answer"
        );
        assert_eq!(script.sends().len(), 1);
    }
}

/// T10: and it is cut when no answer comes within the time-out after that.
#[tokio::test(start_paused = true)]
async fn an_upload_is_cut_after_its_last_byte() {
    let script = Script::new().any_method(P, [Reply::hang()]);
    let service = builder()
        .retry(retry().attempt_timeout(secs(5)).max_retries(0))
        .build()
        .unwrap();
    let stack = RetryLayer::new(service)
        .buffer_bodies(1024)
        .layer(script.service());
    let begun = tokio::time::Instant::now();
    let error = stack.oneshot(upload(secs(7))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownOutcome);
    assert!(error.is_timeout());
    assert_eq!(begun.elapsed(), secs(26));
}

/// T10: the second send of a body that is kept counts from its own last byte.
#[tokio::test(start_paused = true)]
async fn the_time_out_of_a_repeated_upload_begins_anew() {
    let script = Script::new().any_method(P, [Reply::hang(), Reply::status(201).after(secs(4))]);
    let service = builder()
        .retry(retry().attempt_timeout(secs(5)))
        .build()
        .unwrap();
    let stack = service.layer().buffer_bodies(1024).layer(script.service());
    let begun = tokio::time::Instant::now();
    assert_eq!(stack.oneshot(upload(secs(2))).await.unwrap().status(), 201);
    assert_eq!(begun.elapsed(), secs(6 + 5 + 1 + 4));
}

/// T3: but the deadline holds for uploads, too.
#[tokio::test(start_paused = true)]
async fn an_upload_ends_at_the_deadline() {
    let script = Script::new().any_method(P, [Reply::status(201)]);
    let service = builder().retry(retry().deadline(secs(10))).build().unwrap();
    let stack = service.layer().buffer_bodies(1024).layer(script.service());
    let begun = tokio::time::Instant::now();
    let error = stack.oneshot(upload(secs(7))).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::UnknownOutcome,
        "it was sent, in part"
    );
    assert_eq!(begun.elapsed(), secs(10));
}
