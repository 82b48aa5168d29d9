//! T6: never cut, never sent in part.

use std::collections::VecDeque;
use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::BodyExt;

use super::*;
use crate::body::{BodyPolicy, Buffering};

/// A body of single frames, of unknown length, that can be read once.
struct Frames(VecDeque<&'static str>);

impl Frames {
    fn new(frames: &[&'static str]) -> Self {
        Self(frames.iter().copied().collect())
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(
            self.0
                .pop_front()
                .map(|frame| Ok(Frame::data(frame.into()))),
        )
    }
}

async fn text(body: ReplayBody<Frames>) -> String {
    let bytes = body.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// T6: up to the cap it can be sent again.
#[tokio::test]
async fn a_body_under_the_cap_is_given_again() {
    let policy = Buffering::up_to(16);
    let body = policy.prepare(Frames::new(&["twelve ", "bytes"]));
    let kept = policy.keep(&body).unwrap();
    assert_eq!(text(body).await, "twelve bytes");
    assert!(policy.is_whole(&kept));
    let third = policy.keep(&kept).unwrap();
    assert_eq!(text(kept).await, "twelve bytes");
    assert_eq!(text(third).await, "twelve bytes");
}

/// T6: past the cap it can no longer be sent again.
#[tokio::test]
async fn a_body_over_the_cap_is_gone() {
    let policy = Buffering::up_to(16);
    let body = policy.prepare(Frames::new(&["these are more ", "than sixteen bytes"]));
    let kept = policy.keep(&body).unwrap();
    assert_eq!(text(body).await, "these are more than sixteen bytes");
    assert!(!policy.is_whole(&kept));
    let error = kept.collect().await.unwrap_err();
    assert!(error.downcast_ref::<BodyGone>().is_some(), "never a part");
}

/// T6: of which nothing was taken, it can always be sent again, also with a cap of 0.
#[tokio::test]
async fn a_body_of_which_nothing_was_taken_is_whole() {
    let policy = Buffering::up_to(0);
    let body = policy.prepare(Frames::new(&["frames"]));
    let kept = policy.keep(&body).unwrap();
    assert!(!policy.is_whole(&kept), "the first send may still read it");
    drop(body);
    assert!(policy.is_whole(&kept));
    assert_eq!(text(kept).await, "frames");
}

/// T6: what was read of a send that ended early is read again, the rest comes from the source.
#[tokio::test]
async fn a_half_read_body_goes_on_where_it_ended() {
    let policy = Buffering::up_to(16);
    let mut body = policy.prepare(Frames::new(&["one ", "two ", "three"]));
    let kept = policy.keep(&body).unwrap();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "one ");
    drop(body);
    assert!(policy.is_whole(&kept));
    assert_eq!(text(kept).await, "one two three");
}

/// T10: the time-out of the attempt begins when the last byte was taken.
#[tokio::test(start_paused = true)]
async fn the_upload_is_under_way_until_the_last_byte_is_taken() {
    let policy = Buffering::up_to(0);
    let mut body = policy.prepare(Frames::new(&["a", "b"]));
    let kept = policy.keep(&body).unwrap();
    assert_eq!(policy.upload(&kept), Upload::UnderWay);
    body.frame().await.unwrap().unwrap();
    assert_eq!(policy.upload(&kept), Upload::UnderWay);
    body.frame().await.unwrap().unwrap();
    assert!(body.frame().await.is_none());
    assert_eq!(policy.upload(&kept), Upload::TakenAt(runtime::now()));
}
