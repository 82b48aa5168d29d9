use super::{SigningError, SigningServiceError};
use crate::error::BoxError;
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The response future of a service that signs.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        // The request was handed on, signed if it had to be.
        Sent { #[pin] inner: F },
        // It could not be signed; taken by the one poll that returns it.
        Unsigned { error: Option<SigningError> },
    }
}

impl<F> ResponseFuture<F> {
    pub(crate) const fn sent(inner: F) -> Self {
        Self {
            state: State::Sent { inner },
        }
    }

    pub(crate) const fn unsigned(error: SigningError) -> Self {
        Self {
            state: State::Unsigned { error: Some(error) },
        }
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
{
    type Output = Result<R, SigningServiceError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Sent { inner } => {
                Poll::Ready(ready!(inner.poll(cx)).map_err(SigningServiceError::inner))
            }
            // A future polled after it was ready stays pending rather than panic.
            StateProj::Unsigned { error } => error.take().map_or(Poll::Pending, |error| {
                Poll::Ready(Err(SigningServiceError::sign(error)))
            }),
        }
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Sent { .. } => "sent",
            State::Unsigned { .. } => "unsigned",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
