use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::azure_core::Error;
use ::azure_core::http::Body as TheirBody;
use ::azure_core::stream::SeekableStream;
use bytes::Bytes;
use futures::Stream;
use http_body::{Body, Frame, SizeHint};
use tower_geo::body::BodyPolicy;

/// A request body of the SDK: bytes, which can be sent again, or a stream, which cannot.
///
/// Its size is exact where the SDK knows it.
pub struct SdkBody {
    kind: Kind,
}

enum Kind {
    Bytes(Bytes),
    Stream {
        stream: Box<dyn SeekableStream>,
        /// What is still to come, if the stream has told.
        left: Option<u64>,
    },
}

impl SdkBody {
    /// The bytes, unless this is a stream.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&Bytes> {
        match &self.kind {
            Kind::Bytes(bytes) => Some(bytes),
            Kind::Stream { .. } => None,
        }
    }
}

impl From<TheirBody> for SdkBody {
    fn from(body: TheirBody) -> Self {
        let kind = match body {
            TheirBody::Bytes(bytes) => Kind::Bytes(bytes),
            TheirBody::SeekableStream(stream) => Kind::Stream {
                left: stream.len(),
                stream,
            },
        };
        Self { kind }
    }
}

impl From<SdkBody> for TheirBody {
    fn from(body: SdkBody) -> Self {
        match body.kind {
            Kind::Bytes(bytes) => Self::Bytes(bytes),
            Kind::Stream { stream, .. } => Self::SeekableStream(stream),
        }
    }
}

impl From<Bytes> for SdkBody {
    fn from(bytes: Bytes) -> Self {
        Self {
            kind: Kind::Bytes(bytes),
        }
    }
}

impl Default for SdkBody {
    fn default() -> Self {
        Bytes::new().into()
    }
}

impl fmt::Debug for SdkBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Bytes(bytes) => write!(f, "SdkBody({} bytes)", bytes.len()),
            Kind::Stream {
                left: Some(left), ..
            } => write!(f, "SdkBody(stream of {left} bytes)"),
            Kind::Stream { left: None, .. } => f.write_str("SdkBody(stream)"),
        }
    }
}

impl Body for SdkBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match &mut self.kind {
            Kind::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Kind::Stream { stream, left } => {
                let read = ready!(Pin::new(&mut **stream).poll_next(cx));
                Poll::Ready(read.map(|read| {
                    let bytes = read?;
                    if let Some(left) = left {
                        let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                        *left = left.saturating_sub(read);
                    }
                    Ok(Frame::data(bytes))
                }))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Bytes(bytes) => bytes.is_empty(),
            Kind::Stream { left, .. } => *left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Bytes(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Kind::Stream {
                left: Some(left), ..
            } => SizeHint::with_exact(*left),
            Kind::Stream { left: None, .. } => SizeHint::default(),
        }
    }
}

/// Keeps bodies of the SDK that are bytes, without a copy, so that they can be sent again. Streams
/// are sent once and left to the SDK, which can rewind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SdkBodies;

impl BodyPolicy<SdkBody> for SdkBodies {
    type Body = SdkBody;

    fn prepare(&self, body: SdkBody) -> SdkBody {
        body
    }

    fn keep(&self, body: &SdkBody) -> Option<SdkBody> {
        // A clone of a stream shares its position, and its file.
        body.as_bytes().map(|bytes| bytes.clone().into())
    }

    fn is_whole(&self, _kept: &SdkBody) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::azure_core::stream::BytesStream;

    fn drain(mut body: SdkBody) -> Vec<u8> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut cx) {
            all.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
        all
    }

    #[test]
    fn both_kinds_of_bodies_have_their_size_and_give_all_bytes() {
        let bytes = Bytes::from(vec![5; 200_000]);
        let stream: Box<dyn SeekableStream> = Box::new(BytesStream::new(bytes.clone()));
        for body in [
            TheirBody::Bytes(bytes.clone()),
            TheirBody::SeekableStream(stream),
        ] {
            let body = SdkBody::from(body);
            assert_eq!(body.size_hint().exact(), Some(200_000));
            assert!(!body.is_end_stream());
            assert_eq!(drain(body), bytes);
        }
    }

    #[test]
    fn bytes_are_kept_without_a_copy() {
        let bytes = Bytes::from(vec![7; 100]);
        let body = SdkBodies.prepare(TheirBody::Bytes(bytes.clone()).into());
        let kept = SdkBodies.keep(&body).unwrap();
        assert_eq!(kept.as_bytes().unwrap().as_ptr(), bytes.as_ptr());
    }

    /// T6: a stream is sent once.
    #[test]
    fn streams_are_not_kept() {
        let stream: Box<dyn SeekableStream> = Box::new(BytesStream::new("once"));
        let body = SdkBodies.prepare(TheirBody::SeekableStream(stream).into());
        assert!(SdkBodies.keep(&body).is_none());
    }
}
