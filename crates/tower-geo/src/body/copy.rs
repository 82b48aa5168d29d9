//! Whether the body of a request is there a second time.

use std::time::Instant;

use http::Request;
use http_body::Body;

use super::replay::ReplayBody;

/// How a layer that sends again comes by the body of a request.
///
/// | policy | body that goes in | body that the service below gets | cost |
/// |---|---|---|---|
/// | [`EmptyBodies`] (default) | `Body + Default` | the same | nothing; a body that is not empty is sent once |
/// | [`CloneBodies`] | `Clone` | the same | a clone |
/// | [`Buffering`] | any `Body` | [`ReplayBody`] | an allocation, and the bytes up to a cap |
pub trait BodyPolicy<B>: Clone {
    /// What the service below gets.
    type Body;

    /// Prepares a body for its first send.
    fn prepare(&self, body: B) -> Self::Body;

    /// The same with the request around it. Worth an implementation where a body stays as it is,
    /// and a request need not be taken apart.
    #[inline]
    fn prepare_request(&self, request: Request<B>) -> Request<Self::Body> {
        request.map(|body| self.prepare(body))
    }

    /// What has to be kept of a prepared body to send it again, or `None` if that is impossible.
    fn keep(&self, body: &Self::Body) -> Option<Self::Body>;

    /// The same with the request around it: a copy that can be sent later.
    #[inline]
    fn keep_request(&self, request: &Request<Self::Body>) -> Option<Request<Self::Body>> {
        let mut copy = Request::new(self.keep(request.body())?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        *copy.version_mut() = request.version();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }

    /// Whether what was kept can still be sent, whole (T6).
    fn is_whole(&self, kept: &Self::Body) -> bool;

    /// Whether [`upload`](Self::upload) knows more than nothing. Then a body is kept also where it
    /// will not be sent again.
    fn watches_uploads(&self) -> bool {
        false
    }

    /// How far the body has been taken, for the time-out of the attempt (T10).
    fn upload(&self, _kept: &Self::Body) -> Upload {
        Upload::Unwatched
    }
}

/// How far a request body has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Upload {
    /// Nobody knows: the time-out of the attempt counts from the send.
    Unwatched,
    /// Not all of it: the time-out has not begun.
    UnderWay,
    /// The last byte was taken then.
    TakenAt(Instant),
}

/// Sends a request with an empty body again, and no other (the default).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmptyBodies;

impl<B: Body + Default> BodyPolicy<B> for EmptyBodies {
    type Body = B;

    fn prepare(&self, body: B) -> B {
        body
    }

    #[inline]
    fn prepare_request(&self, request: Request<B>) -> Request<B> {
        request
    }

    fn keep(&self, body: &B) -> Option<B> {
        body.is_end_stream().then(B::default)
    }

    fn is_whole(&self, _kept: &B) -> bool {
        true
    }
}

/// Clones bodies, for those where that is cheap: `Full<Bytes>`, or the bodies of `object_store`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloneBodies;

impl<B: Clone> BodyPolicy<B> for CloneBodies {
    type Body = B;

    fn prepare(&self, body: B) -> B {
        body
    }

    #[inline]
    fn prepare_request(&self, request: Request<B>) -> Request<B> {
        request
    }

    fn keep(&self, body: &B) -> Option<B> {
        Some(body.clone())
    }

    #[inline]
    fn keep_request(&self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }

    fn is_whole(&self, _kept: &B) -> bool {
        true
    }
}

/// Keeps the bytes of a streaming body while it is sent, up to a cap (T6).
///
/// Past the cap the request can no longer be sent again. A body of which nothing was taken can
/// always be, also with a cap of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    cap: usize,
}

impl Buffering {
    /// Keeps at most `cap` bytes for each request.
    #[must_use]
    pub const fn up_to(cap: usize) -> Self {
        Self { cap }
    }
}

impl<B: Body> BodyPolicy<B> for Buffering
where
    B::Data: Clone,
{
    type Body = ReplayBody<B>;

    fn prepare(&self, body: B) -> ReplayBody<B> {
        ReplayBody::new(body, self.cap)
    }

    fn keep(&self, body: &ReplayBody<B>) -> Option<ReplayBody<B>> {
        Some(body.rewound())
    }

    fn is_whole(&self, kept: &ReplayBody<B>) -> bool {
        kept.is_whole()
    }

    fn watches_uploads(&self) -> bool {
        true
    }

    fn upload(&self, kept: &ReplayBody<B>) -> Upload {
        kept.upload()
    }
}
