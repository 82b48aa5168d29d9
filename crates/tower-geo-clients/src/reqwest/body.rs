use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use ::reqwest::Body;
use bytes::Bytes;
use http_body::Body as _;
use tower_geo::body::BodyPolicy;

/// A request body of reqwest: bytes, which can be sent again, or a stream, which cannot.
///
/// Made by [`ReqwestBodies`]; [`ReqwestService`](super::ReqwestService) takes it.
pub struct RequestBody {
    kind: Kind,
}

enum Kind {
    Bytes(Bytes),
    Stream(Body),
}

impl RequestBody {
    /// The bytes, unless this is a stream.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&Bytes> {
        match &self.kind {
            Kind::Bytes(bytes) => Some(bytes),
            Kind::Stream(_) => None,
        }
    }
}

impl From<Body> for RequestBody {
    fn from(mut body: Body) -> Self {
        if body.as_bytes().is_none() {
            return Self {
                kind: Kind::Stream(body),
            };
        }
        // reqwest lends its bytes but gives them away only as a frame: the first is all of them.
        let mut cx = Context::from_waker(Waker::noop());
        let bytes = match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            _ => Bytes::new(),
        };
        Self {
            kind: Kind::Bytes(bytes),
        }
    }
}

impl From<RequestBody> for Body {
    fn from(body: RequestBody) -> Self {
        match body.kind {
            Kind::Bytes(bytes) => bytes.into(),
            Kind::Stream(body) => body,
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Bytes(bytes) => write!(f, "RequestBody({} bytes)", bytes.len()),
            Kind::Stream(_) => f.write_str("RequestBody(stream)"),
        }
    }
}

/// Keeps bodies of reqwest that are bytes, without a copy, so that they can be sent again. Streams
/// are sent once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReqwestBodies;

impl BodyPolicy<Body> for ReqwestBodies {
    type Body = RequestBody;

    fn prepare(&self, body: Body) -> RequestBody {
        body.into()
    }

    fn keep(&self, body: &RequestBody) -> Option<RequestBody> {
        body.as_bytes().map(|bytes| RequestBody {
            kind: Kind::Bytes(bytes.clone()),
        })
    }

    fn is_whole(&self, _kept: &RequestBody) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_without_a_copy() {
        let bytes = Bytes::from(vec![7; 100]);
        let at = bytes.as_ptr();
        let body = ReqwestBodies.prepare(Body::from(bytes));
        let kept = ReqwestBodies.keep(&body).unwrap();
        assert_eq!(body.as_bytes().unwrap().as_ptr(), at);
        assert_eq!(kept.as_bytes().unwrap().as_ptr(), at);
        assert_eq!(Body::from(kept).as_bytes().unwrap().as_ptr(), at);
    }

    #[test]
    fn empty_bodies_are_kept() {
        let body = ReqwestBodies.prepare(Body::from(""));
        assert_eq!(
            ReqwestBodies.keep(&body).unwrap().as_bytes().unwrap().len(),
            0
        );
    }

    /// T6: a stream is sent once.
    #[test]
    fn streams_are_not_kept() {
        let stream = Body::wrap(Body::from("once"));
        let body = ReqwestBodies.prepare(stream);
        assert!(ReqwestBodies.keep(&body).is_none());
        assert!(body.as_bytes().is_none());
    }
}
