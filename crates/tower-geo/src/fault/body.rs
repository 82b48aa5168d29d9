use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_geo_policy::fault::Fault;

use super::answer::End;
use super::error::InjectedFault;
use crate::error::BoxError;

pin_project! {
    /// The body of an answer: the client's own, or one that is made up; whole, or one that breaks
    /// off or stalls.
    ///
    /// Its size hint is that of the whole body, as that of a real body is which breaks off.
    pub struct FaultBody<B> {
        #[pin]
        source: Source<B>,
        end: End,
        // How many bytes have been given.
        given: u64,
        // The fault was handed over.
        broke: bool,
    }
}

pin_project! {
    #[project = SourceProj]
    enum Source<B> {
        Real { #[pin] body: B },
        Made { left: Bytes },
    }
}

impl<B> FaultBody<B> {
    /// The client's own body, as it is.
    pub(super) const fn whole(body: B) -> Self {
        Self::real(body, End::Whole)
    }

    pub(super) const fn real(body: B, end: End) -> Self {
        Self {
            source: Source::Real { body },
            end,
            given: 0,
            broke: false,
        }
    }

    pub(super) const fn made(body: Bytes, end: End) -> Self {
        Self {
            source: Source::Made { left: body },
            end,
            given: 0,
            broke: false,
        }
    }

    /// Whether no server gave this body.
    #[must_use]
    pub const fn is_made_up(&self) -> bool {
        matches!(self.source, Source::Made { .. })
    }
}

impl<B: Default> Default for FaultBody<B> {
    fn default() -> Self {
        Self::whole(B::default())
    }
}

impl<B> fmt::Debug for FaultBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultBody")
            .field("is_made_up", &self.is_made_up())
            .field("end", &self.end)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

impl<B> Body for FaultBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        let room = match *this.end {
            End::Whole => u64::MAX,
            End::CutAfter(bytes) | End::StallAfter(bytes) => bytes.saturating_sub(*this.given),
        };
        if room == 0 {
            return match this.end {
                // Nobody wakes the reader: only a time-out, or its own end, ends this.
                End::StallAfter(_) => Poll::Pending,
                End::Whole | End::CutAfter(_) if *this.broke => Poll::Ready(None),
                End::Whole | End::CutAfter(_) => {
                    *this.broke = true;
                    Poll::Ready(Some(Err(Box::new(InjectedFault::new(Fault::BodyCut)))))
                }
            };
        }
        let frame = match this.source.project() {
            SourceProj::Real { body } => match ready!(body.poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            },
            SourceProj::Made { left } if left.is_empty() => return Poll::Ready(None),
            SourceProj::Made { left } => {
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                Frame::data(left.split_to(room.min(left.len())).into())
            }
        };
        let mut data = match frame.into_data() {
            Ok(data) => data,
            Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
        };
        let length = data.remaining() as u64;
        *this.given = this.given.saturating_add(length.min(room));
        if length > room {
            // No more than the data holds, which fits into memory.
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            data = data.copy_to_bytes(room).into();
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match (self.end, &self.source) {
            (End::CutAfter(bytes) | End::StallAfter(bytes), _) if self.given >= bytes => self.broke,
            (_, Source::Real { body }) => body.is_end_stream(),
            (_, Source::Made { left }) => left.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Real { body } => body.size_hint(),
            Source::Made { left } => SizeHint::with_exact(left.len() as u64),
        }
    }
}
