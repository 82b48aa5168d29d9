//! A transport whose answer is given frame by frame, and the frames that came out above a client.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::channel::mpsc;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use http_body_util::StreamBody;

type Frames = mpsc::UnboundedReceiver<Result<Frame<Bytes>, Infallible>>;

/// The hand that gives the frames.
pub(crate) struct Hand(mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>);

impl Hand {
    pub(crate) fn give(&self, data: &'static str) {
        let frame = Frame::data(Bytes::from_static(data.as_bytes()));
        self.0.unbounded_send(Ok(frame)).unwrap();
    }

    /// Gives trailers, and ends the body.
    pub(crate) fn end(self) {
        let mut trailers = HeaderMap::new();
        trailers.insert(
            "x-ms-content-crc64",
            HeaderValue::from_static("77uWZTolTHU"),
        );
        self.0
            .unbounded_send(Ok(Frame::trailers(trailers)))
            .unwrap();
    }
}

/// A transport that answers once, with two values of one header and a body that is given by hand.
pub(crate) fn by_hand<B>() -> (
    Hand,
    impl tower::Service<
        Request<B>,
        Response = Response<StreamBody<Frames>>,
        Error = tower_geo::BoxError,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + 'static,
)
where
    B: Send + 'static,
{
    let (hand, frames) = mpsc::unbounded();
    let answer = Arc::new(Mutex::new(Some(frames)));
    let service = tower::service_fn(move |_: Request<B>| {
        let answer = answer.clone();
        async move {
            let frames = answer.lock().unwrap().take().ok_or("it answers once")?;
            Ok(Response::builder()
                .header("etag", "\"1\"")
                .header("last-modified", "Tue, 01 Jul 2025 00:00:00 GMT")
                .header("x-ms-meta-of", "one")
                .header("x-ms-meta-of", "two")
                .header("x-ms-meta-bytes", HeaderValue::from_bytes(b"caf\xe9")?)
                .body(StreamBody::new(frames))?)
        }
    });
    (Hand(hand), service)
}

/// The values that [`by_hand`]'s answer has of one header.
pub(crate) fn values(headers: &HeaderMap, name: &str) -> Vec<Vec<u8>> {
    let values = headers.get_all(name).iter();
    values.map(|value| value.as_bytes().to_vec()).collect()
}

/// What a body has to give now: nothing yet (`None`), or a frame. Data as text, and names of
/// trailers.
pub(crate) fn now<B>(body: &mut B) -> Option<String>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Debug,
{
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(body).poll_frame(&mut cx) {
        Poll::Pending => None,
        Poll::Ready(None) => Some("the end".into()),
        Poll::Ready(Some(frame)) => Some(match frame.unwrap().into_data() {
            Ok(data) => String::from_utf8_lossy(&data).into_owned(),
            Err(frame) => format!(
                "{:?}",
                frame.into_trailers().unwrap().keys().next().unwrap()
            ),
        }),
    }
}
