use std::task::{Context, Poll};

use http::{Request, Response};
use tower_geo_policy::operation::circuit_of;
use tower_geo_policy::service_state::{Admission, Circuit};
use tower_service::Service;

use super::future::{ResponseFuture, Watch};
use super::pending::Pending;
use crate::body::SettleBody;
use crate::error::{BoxError, Error};
use crate::handoff::Handoff;
use crate::runtime::{self, State};
use crate::scope::{self, Rank};

/// Counts what becomes of every send and refuses those to a region that is not trusted. See the
/// [module](super).
#[derive(Clone, Debug)]
pub struct CircuitBreaker<S> {
    inner: S,
    state: State,
}

impl<S> CircuitBreaker<S> {
    pub(crate) const fn new(inner: S, state: State) -> Self {
        Self { inner, state }
    }

    /// The service below.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service below.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service below.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// What the outcome of this request is to be held against, or why it is not sent.
    fn admit<B>(&self, request: &mut Request<B>) -> Result<Option<Watch>, Error> {
        let state = &self.state;
        if let Some(above) = scope::misplaced_above(state.id(), Rank::Breaker) {
            return Err(scope::misplaced(state, Rank::Breaker, above));
        }
        let handoff = if request.extensions().is_empty() {
            None
        } else {
            Handoff::take(request.extensions_mut(), state)
        };
        let Some(region) = state.regions().region_of(request.uri()) else {
            return Ok(None);
        };
        let directed = handoff.as_ref().and_then(Handoff::region);
        if directed.is_some_and(|directed| directed != region) {
            return Err(Error::config(
                state,
                "a send was directed to another region and no redirect carried it out: put a \
                 GeoRedirectLayer below the RetryLayer",
            ));
        }
        let intent = state
            .provider()
            .intent(request.method(), request.uri(), request.headers())
            .intent;
        if intent.is_neutral() {
            return Ok(None);
        }
        let circuit = circuit_of(intent);
        let now = state.tick(runtime::now());
        let slot = handoff.as_ref().and_then(Handoff::take_slot);
        let given = handoff.map(|handoff| handoff.failure_given());
        let (sent, is_probe) = match slot {
            Some(slot) => (Some(state.probe_started(slot, circuit, now)), true),
            None => match state.admit(region, circuit, now, &state.extra().random) {
                Ok(Admission::Probe(slot)) => (Some(state.probe_started(slot, circuit, now)), true),
                Ok(_) => (state.send_started(region, circuit, now), false),
                Err(refusal) => return Err(Error::breaker_open(state, refusal.until, now)),
            },
        };
        let sent = sent.map(|sent| match given {
            Some(given) => {
                let sent = if given.reads { sent.failure_given(Circuit::Reads) } else { sent };
                if given.writes { sent.failure_given(Circuit::Writes) } else { sent }
            }
            None => sent,
        });
        Ok(Some(Watch {
            pending: Pending::new(state.clone(), sent),
            region,
            intent,
            is_probe,
            started: now,
        }))
    }
}

impl<S, B, RB> Service<Request<B>> for CircuitBreaker<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: http_body::Body,
{
    type Response = Response<SettleBody<RB>>;
    type Error = Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.admit(&mut request) {
            Ok(watch) => {
                let _scope = scope::enter(self.state.id(), Rank::Breaker);
                ResponseFuture::sending(self.inner.call(request), watch)
            }
            Err(error) => ResponseFuture::refused(error),
        }
    }
}
