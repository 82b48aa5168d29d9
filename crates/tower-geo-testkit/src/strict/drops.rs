use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

/// Counts how many of the values that it wrapped exist, and how many there ever were.
///
/// ```
/// use tower_geo_testkit::strict::DropCounter;
///
/// let counter = DropCounter::new();
/// let future = counter.wrap(std::future::pending::<()>());
/// assert_eq!((counter.alive(), counter.made()), (1, 1));
/// drop(future);
/// assert_eq!((counter.alive(), counter.made()), (0, 1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct DropCounter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    alive: AtomicUsize,
    made: AtomicUsize,
}

impl DropCounter {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A body or future (or anything) that is counted. A clone counts as one more.
    pub fn wrap<T>(&self, value: T) -> Counted<T> {
        Counted {
            value,
            _ticket: self.ticket(),
        }
    }

    /// How many exist.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.0.alive.load(Ordering::Acquire)
    }

    /// How many were made, clones included.
    #[must_use]
    pub fn made(&self) -> usize {
        self.0.made.load(Ordering::Acquire)
    }

    fn ticket(&self) -> Ticket {
        self.0.alive.fetch_add(1, Ordering::AcqRel);
        self.0.made.fetch_add(1, Ordering::AcqRel);
        Ticket(self.clone())
    }
}

#[derive(Debug)]
struct Ticket(DropCounter);

impl Clone for Ticket {
    fn clone(&self) -> Self {
        self.0.ticket()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.alive.fetch_sub(1, Ordering::AcqRel);
    }
}

pin_project! {
    /// A value that a [`DropCounter`] counts; a body or a future if the value is one.
    #[derive(Clone, Debug)]
    pub struct Counted<T> {
        #[pin]
        value: T,
        _ticket: Ticket,
    }
}

impl<T: Future> Future for Counted<T> {
    type Output = T::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        self.project().value.poll(cx)
    }
}

impl<T: Body> Body for Counted<T> {
    type Data = T::Data;
    type Error = T::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<T::Data>, T::Error>>> {
        self.project().value.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.value.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.value.size_hint()
    }
}
