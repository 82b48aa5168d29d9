//! OpenDAL's bodies and those of the crate `http-body`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use http_body::{Body, Frame, SizeHint};
use opendal::Buffer;
use tower_geo::BoxError;

use crate::transport::to_opendal;

/// A request body of OpenDAL: pieces of bytes, cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct BufferBody(Buffer);

impl From<Buffer> for BufferBody {
    fn from(buffer: Buffer) -> Self {
        Self(buffer)
    }
}

impl Body for BufferBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // It is a stream as well, whose `next` would have to be awaited.
        let piece = Iterator::next(&mut self.0);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.0.len()).unwrap_or(u64::MAX))
    }
}

/// The data of an answer, as OpenDAL reads it.
pub(crate) struct DataStream<B>(Pin<Box<B>>);

impl<B> DataStream<B> {
    pub(crate) fn new(body: B) -> Self {
        Self(Box::pin(body))
    }
}

impl<B> Stream for DataStream<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Item = opendal::Result<Buffer>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.0.as_mut().poll_frame(cx)) {
                // OpenDAL has no use for trailers.
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes.into())));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(to_opendal(error.into())))),
                None => return Poll::Ready(None),
            }
        }
    }
}
