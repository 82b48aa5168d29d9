//! The body that a client of the proxy sends, when nobody wants the rest of it.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

/// How long the rest of an upload is taken, and how long nothing of it may come.
const LINGER: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(5);

/// The body of a request, which is read to its end for a while when it is dropped before.
///
/// An answer can be there before the upload is: a write is refused, say. A connection that is closed
/// while its client still writes is reset, and many clients tell of that instead of the answer.
#[derive(Debug)]
pub struct Upload {
    /// `None` once it has ended, or if nothing is sent before it is asked for.
    body: Option<Body>,
    lingers: bool,
}

impl Upload {
    /// With `waits`, the client begins when it is told to continue: then there may be no rest.
    pub(crate) const fn new(body: Body, waits: bool) -> Self {
        Self {
            body: Some(body),
            lingers: !waits,
        }
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Whoever asks for the body has told the client to go on.
        self.lingers = true;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(rest), true, Ok(runtime)) = (rest, self.lingers, Handle::try_current()) {
            runtime.spawn(timeout(LINGER, discard(rest)));
        }
    }
}

async fn discard(mut rest: Body) {
    let mut silence = pin!(sleep(SILENCE));
    std::future::poll_fn(|cx| {
        loop {
            match Pin::new(&mut rest).poll_frame(cx) {
                Poll::Ready(Some(Ok(_))) => {
                    silence.set(sleep(SILENCE));
                }
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                Poll::Pending => return silence.as_mut().poll(cx),
            }
        }
    })
    .await;
}
