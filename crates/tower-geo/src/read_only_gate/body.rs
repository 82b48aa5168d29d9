use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a response that passed the gate of a server, or of its refusal.
    #[derive(Debug)]
    pub struct GateBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = KindProj]
    enum Kind<B> {
        Passed { #[pin] inner: B },
        Problem { text: Option<Bytes> },
    }
}

impl<B> GateBody<B> {
    pub(super) const fn passed(inner: B) -> Self {
        Self {
            kind: Kind::Passed { inner },
        }
    }

    pub(super) fn problem(text: String) -> Self {
        Self {
            kind: Kind::Problem {
                text: Some(text.into()),
            },
        }
    }
}

impl<B: Body<Data = Bytes>> Body for GateBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.project().kind.project() {
            KindProj::Passed { inner } => inner.poll_frame(cx),
            KindProj::Problem { text } => {
                Poll::Ready(text.take().map(|text| Ok(Frame::data(text))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { inner } => inner.is_end_stream(),
            Kind::Problem { text } => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { inner } => inner.size_hint(),
            Kind::Problem { text } => {
                let length = text.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
        }
    }
}
