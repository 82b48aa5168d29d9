//! A streaming body that keeps what it has given, up to a cap, so that it can be sent again (T6).

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};

use super::Upload;
use crate::runtime;

/// A request body that can be sent again as long as all of it is still there.
///
/// Made by [`Buffering`](super::Buffering). Several handles read the same source one after the
/// other: each gives the kept frames first and then goes on with the source. Reading a handle whose
/// beginning is no longer there is an error, never a part of the body.
pub struct ReplayBody<B: Body> {
    shared: Option<Arc<Mutex<Shared<B>>>>,
    /// How many of the kept frames this handle has given.
    given: usize,
}

struct Shared<B: Body> {
    source: Pin<Box<B>>,
    kept: Vec<Kept<B::Data>>,
    bytes: usize,
    cap: usize,
    /// Some frame was given and not kept.
    lossy: bool,
    ended: bool,
    /// When the newest handle came to the end.
    taken_at: Option<Instant>,
    hint_at_start: SizeHint,
}

enum Kept<D> {
    Data(D),
    Trailers(http::HeaderMap),
}

impl<D: Clone> Kept<D> {
    fn frame(&self) -> Frame<D> {
        match self {
            Self::Data(data) => Frame::data(data.clone()),
            Self::Trailers(trailers) => Frame::trailers(trailers.clone()),
        }
    }
}

impl<B: Body> ReplayBody<B> {
    pub(crate) fn new(body: B, cap: usize) -> Self {
        let hint_at_start = body.size_hint();
        let ended = body.is_end_stream();
        Self {
            shared: Some(Arc::new(Mutex::new(Shared {
                source: Box::pin(body),
                kept: Vec::new(),
                bytes: 0,
                cap,
                lossy: false,
                ended,
                taken_at: None,
                hint_at_start,
            }))),
            given: 0,
        }
    }

    /// Another handle on the same body that starts at its beginning.
    pub(crate) fn rewound(&self) -> Self {
        if let Some(shared) = &self.shared {
            lock(shared).taken_at = None;
        }
        Self {
            shared: self.shared.clone(),
            given: 0,
        }
    }

    /// Whether a handle from the start would give the whole body, and nobody reads it any more.
    pub(crate) fn is_whole(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| {
            // One count is this handle. A client that still reads an earlier one would take
            // frames away from the next send.
            let only_reader = Arc::strong_count(shared) == 1;
            let shared = lock(shared);
            !shared.lossy && (shared.ended || only_reader)
        })
    }
}

impl<B: Body> ReplayBody<B> {
    /// How far the handle that is being sent has come.
    pub(crate) fn upload(&self) -> Upload {
        let Some(shared) = &self.shared else {
            return Upload::Unwatched;
        };
        let shared = lock(shared);
        match shared.taken_at {
            Some(at) => Upload::TakenAt(at),
            // An empty body has been taken before it was sent.
            None if shared.ended && shared.kept.is_empty() => Upload::Unwatched,
            None => Upload::UnderWay,
        }
    }
}

fn lock<B: Body>(shared: &Mutex<Shared<B>>) -> MutexGuard<'_, Shared<B>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The beginning of a body is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyGone;

impl fmt::Display for BodyGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the beginning of the request body is no longer there")
    }
}

impl std::error::Error for BodyGone {}

impl<B: Body> Default for ReplayBody<B> {
    fn default() -> Self {
        Self {
            shared: None,
            given: 0,
        }
    }
}

impl<B: Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody")
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

impl<B> Body for ReplayBody<B>
where
    B: Body,
    B::Data: Clone,
    B::Error: Into<crate::BoxError>,
{
    type Data = B::Data;
    type Error = crate::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        let Some(shared) = &this.shared else {
            return Poll::Ready(None);
        };
        let mut shared = lock(shared);
        if let Some(kept) = shared.kept.get(this.given) {
            this.given += 1;
            let frame = kept.frame();
            if shared.ended && this.given == shared.kept.len() {
                shared.note_taken();
            }
            return Poll::Ready(Some(Ok(frame)));
        }
        if shared.lossy && this.given == 0 {
            return Poll::Ready(Some(Err(Box::new(BodyGone))));
        }
        if shared.ended {
            shared.note_taken();
            return Poll::Ready(None);
        }
        let frame = match ready!(shared.source.as_mut().poll_frame(cx)) {
            None => {
                shared.ended = true;
                shared.note_taken();
                return Poll::Ready(None);
            }
            Some(Err(error)) => {
                shared.lossy = true;
                return Poll::Ready(Some(Err(error.into())));
            }
            Some(Ok(frame)) => frame,
        };
        shared.keep(&frame);
        if shared.source.is_end_stream() {
            shared.ended = true;
            shared.note_taken();
        }
        this.given += 1;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| {
            let shared = lock(shared);
            shared.ended && self.given >= shared.kept.len()
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(shared) = &self.shared else {
            return SizeHint::with_exact(0);
        };
        let shared = lock(shared);
        match self.given {
            0 => shared.hint_at_start,
            // What is kept and not given yet comes before what the source still has.
            given if given < shared.kept.len() => SizeHint::default(),
            _ => shared.source.size_hint(),
        }
    }
}

impl<B: Body> Shared<B> {
    fn note_taken(&mut self) {
        self.taken_at.get_or_insert_with(runtime::now);
    }
}

impl<B> Shared<B>
where
    B: Body,
    B::Data: Clone,
{
    fn keep(&mut self, frame: &Frame<B::Data>) {
        if self.lossy {
            return;
        }
        let kept = match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) => {
                self.bytes = self.bytes.saturating_add(data.remaining());
                Some(Kept::Data(data.clone()))
            }
            (None, Some(trailers)) => Some(Kept::Trailers(trailers.clone())),
            (None, None) => None,
        };
        match kept {
            Some(kept) if self.bytes <= self.cap => self.kept.push(kept),
            _ => {
                self.lossy = true;
                self.kept = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests;
