//! New connections for probes cost nobody else anything (R12).

use std::alloc::System;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tower::{Layer, Service};
use tower_geo::FreshConnectionsLayer;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Clone)]
struct Client;

impl Service<Request<()>> for Client {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(())))
    }
}

/// R12, E2: a call that is no probe allocates nothing, by a clone or by the one that is kept, and
/// its future is larger than the client's by no more than a word.
#[test]
fn what_is_no_probe_allocates_nothing() {
    let stack = FreshConnectionsLayer::new(|| Client).layer(Client);
    let cx = &mut Context::from_waker(std::task::Waker::noop());
    let mut requests: Vec<_> = (0..20).map(|_| Request::new(())).collect();
    let mut kept = stack.clone();
    let watch = Region::new(ALLOCATOR);
    for _ in 0..10 {
        for service in [&mut stack.clone(), &mut kept] {
            let _ = Service::<Request<()>>::poll_ready(service, cx);
            if let Some(request) = requests.pop() {
                let future = service.call(request);
                let word = size_of::<usize>();
                assert!(size_of_val(&future) <= size_of_val(&Client.call(Request::new(()))) + word);
                let _ = std::pin::pin!(future).poll(cx);
            }
        }
    }
    let change = watch.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0));
}
