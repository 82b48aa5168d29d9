//! The bare minimum that does the same work: where a goal is missed, the gap is to be judged by
//! what no code could save.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::floor_stack;
use super::subject::{Client, Number, PendingOnce, calls, trivial, with_headers};
use crate::row::{Call, FLOOR, Row};

pub(super) const ROWS: &[Row] = &[
    Row::calls(
        "floor/nothing",
        FLOOR,
        "the closure that every row is called through",
        || Box::new(|| _ = black_box(0)),
    ),
    Row::calls(
        "floor/clock",
        FLOOR,
        "one time stamp (see the notes)",
        || Box::new(|| _ = black_box(tokio::time::Instant::now())),
    ),
    Row::calls(
        "breaker/closed",
        FLOOR,
        "a state word is read twice, a call enters, leaves and is counted: no rule, no check",
        breaker,
    ),
    Row::calls(
        "bare/number",
        FLOOR,
        "no breaker: the service that tower-resilience's is layered on",
        || calls(Number, || 7),
    ),
    Row::calls(
        "floor/passing",
        FLOOR,
        "four layers that only pass on",
        || calls(four(Client), trivial),
    ),
    Row::calls(
        "stack/trivial",
        FLOOR,
        "four layers written by hand that do the same for a good answer, and nothing else",
        || floor_stack::over(Client, trivial),
    ),
    Row::calls(
        "stack/request",
        FLOOR,
        "the same four with 8 headers",
        || floor_stack::over(Client, with_headers()),
    ),
    Row::calls(
        "stack/pending-once",
        FLOOR,
        "the same four over a client that is Pending once; a time-out is armed",
        || floor_stack::over(PendingOnce, with_headers()),
    ),
    Row::calls(
        "floor/timer",
        FLOOR,
        "a timer of tokio is made, armed by a poll, and dropped",
        || {
            Box::new(|| {
                let sleep = tokio::time::sleep(LONG);
                let mut sleep = std::pin::pin!(sleep);
                let mut context = Context::from_waker(std::task::Waker::noop());
                assert!(sleep.as_mut().poll(&mut context).is_pending());
            })
        },
    ),
];

const LONG: std::time::Duration = std::time::Duration::from_secs(10);

/// What a breaker cannot do without: its state is looked at before and after, the call is known
/// while it is in flight, and its success is counted.
fn breaker() -> Call {
    #[repr(align(128))]
    struct Words {
        state: AtomicU64,
        flight: AtomicU64,
        bucket: AtomicU64,
    }

    #[inline(never)]
    fn admit_and_settle(words: &Words) -> bool {
        let before = words.state.load(Relaxed);
        words.flight.fetch_add(1, Relaxed);
        // The call would be here.
        words.flight.fetch_sub(1, Relaxed);
        words.bucket.fetch_add(1, Relaxed);
        before == words.state.load(Relaxed)
    }

    let words = Box::new(Words {
        state: AtomicU64::new(0),
        flight: AtomicU64::new(0),
        bucket: AtomicU64::new(0),
    });
    Box::new(move || assert!(admit_and_settle(black_box(&words))))
}

fn four<S>(service: S) -> Passing<Passing<Passing<Passing<S>>>> {
    let layer = PassingLayer;
    layer.layer(layer.layer(layer.layer(layer.layer(service))))
}

#[derive(Clone, Copy)]
struct PassingLayer;

impl<S> Layer<S> for PassingLayer {
    type Service = Passing<S>;

    fn layer(&self, inner: S) -> Passing<S> {
        Passing(inner)
    }
}

/// Does nothing, with a future of its own.
#[derive(Clone, Copy)]
struct Passing<S>(S);

pin_project! {
    struct PassingFuture<F> {
        #[pin]
        inner: F,
    }
}

impl<F: Future> Future for PassingFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().inner.poll(cx)
    }
}

impl<S: Service<R>, R> Service<R> for Passing<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = PassingFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let inner = self.0.call(request);
        PassingFuture { inner }
    }
}
