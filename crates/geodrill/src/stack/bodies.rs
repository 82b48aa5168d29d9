//! Which request bodies can be sent again.

use http_body_util::Either;
use tower_geo::body::{BodyPolicy, Buffering, ReplayBody, Upload};

use crate::format::Retry;
use crate::transport::RequestBody;

/// Whole bodies are cloned; streams are kept up to a cap while they are sent, which is 0 unless
/// the drill says otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrillBodies(Buffering);

impl DrillBodies {
    pub(super) fn new(retry: Option<&Retry>) -> Self {
        let cap = retry.and_then(|retry| retry.buffer).unwrap_or(0);
        Self(Buffering::up_to(usize::try_from(cap).unwrap_or(usize::MAX)))
    }
}

/// Whole bodies are cloned, streams are sent once.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeBodies;

impl BodyPolicy<RequestBody> for WholeBodies {
    type Body = RequestBody;

    fn prepare(&self, body: RequestBody) -> RequestBody {
        body
    }

    fn keep(&self, body: &RequestBody) -> Option<RequestBody> {
        body.try_clone()
    }

    fn is_whole(&self, _kept: &RequestBody) -> bool {
        true
    }
}

impl BodyPolicy<RequestBody> for DrillBodies {
    type Body = Either<RequestBody, ReplayBody<RequestBody>>;

    fn prepare(&self, body: RequestBody) -> Self::Body {
        match body.try_clone() {
            Some(_) => Either::Left(body),
            None => Either::Right(self.0.prepare(body)),
        }
    }

    fn keep(&self, body: &Self::Body) -> Option<Self::Body> {
        match body {
            Either::Left(whole) => whole.try_clone().map(Either::Left),
            Either::Right(stream) => {
                BodyPolicy::<RequestBody>::keep(&self.0, stream).map(Either::Right)
            }
        }
    }

    fn is_whole(&self, kept: &Self::Body) -> bool {
        match kept {
            Either::Left(_) => true,
            Either::Right(stream) => BodyPolicy::<RequestBody>::is_whole(&self.0, stream),
        }
    }

    fn upload(&self, kept: &Self::Body) -> Upload {
        match kept {
            Either::Left(_) => Upload::Unwatched,
            Either::Right(stream) => BodyPolicy::<RequestBody>::upload(&self.0, stream),
        }
    }
}
