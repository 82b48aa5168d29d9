use std::task::{Context, Poll};

use http::{Request, Response};
use tower_geo_policy::breaker::{Admission, Circuit, Circuits, Sent};
use tower_geo_policy::operation::{Misfit, circuit_of};
use tower_geo_policy::region::RegionId;
use tower_geo_policy::tick::Tick;
use tower_service::Service;

use super::future::{ResponseFuture, Watch};
use super::pending::Pending;
use crate::background::BackgroundSend;
use crate::body::SettleBody;
use crate::error::{BoxError, Error};
use crate::fresh_connections::Probe;
use crate::handoff::Handoff;
use crate::known::Known;
use crate::runtime::{self, State, service_id};
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
    #[inline(always)]
    fn admit<B>(
        &self,
        request: &mut Request<B>,
        handoff: Option<&Handoff>,
    ) -> Result<Option<Watch>, Error> {
        let state = &self.state;
        let known = match handoff {
            None => Known::now(state),
            Some(handoff) => handoff.known(),
        };
        let Some(region) = known.regions(state).region_of(request.uri()) else {
            return Ok(None);
        };
        // Directed elsewhere and here all the same: there is no redirect above. What was handed
        // on is then meant for another region, and dropped.
        let handoff = handoff.filter(|handoff| handoff.region().is_none_or(|at| at == region));
        let intent = state
            .provider()
            .intent(request.method(), request.uri(), request.headers())
            .intent;
        if intent.is_neutral() {
            return Ok(None);
        }
        // R1: with no driver above to refuse it, a write that names a copy would get there.
        if intent.is_write() && !known.takes_writes(state, region) {
            return Err(Error::misfit(state, Misfit::WriteToCopy));
        }
        let circuit = circuit_of(intent);
        let now = state.tick(runtime::now());
        let sent = match handoff {
            // The healthy path: nothing is unusual, and nothing was handed on.
            None => match state.send_if_calm(region, circuit, now) {
                Some(sent) => Some(sent),
                None => self.admit_to(request, region, circuit, None, now)?,
            },
            Some(handoff) => self.admit_to(request, region, circuit, Some(handoff), now)?,
        };
        Ok(Some(Watch {
            pending: Pending::new(state.clone(), sent),
            intent,
        }))
    }

    /// Asks the circuit, with whatever a layer above has handed on.
    #[cold]
    fn admit_to<B>(
        &self,
        request: &mut Request<B>,
        region: RegionId,
        circuit: Circuit,
        handoff: Option<&Handoff>,
        now: Tick,
    ) -> Result<Option<Sent>, Error> {
        let state = &self.state;
        let given = handoff.map_or(Circuits::NONE, Handoff::failure_given);
        let slot = match handoff.and_then(Handoff::take_slot) {
            Some(slot) => Some(slot),
            None => match state.admit(region, circuit, now) {
                Ok(Admission::Probe(slot)) => Some(slot),
                Ok(_) => None,
                Err(refusal) => {
                    // An operation that is driven above has told the circuit already (B4).
                    if !scope::is_driven(service_id(state)) {
                        state.note_operation(region, circuit, now);
                    }
                    tracing::debug!(
                        service = state.name(),
                        region = Known::now(state).name(state, region),
                        circuit = circuit.as_str(),
                        retry_after = ?refusal.until.map(|until| until.since(now)),
                        "a send was refused: the circuit is open"
                    );
                    return Err(Error::breaker_open(state, refusal.until, now));
                }
            },
        };
        Ok(match slot {
            Some(slot) => {
                // For a layer below that makes connections (R12).
                request.extensions_mut().insert(Probe::OF_CIRCUIT);
                state.probe_started(slot, circuit, given, now)
            }
            None if given.is_empty() => state.send_started(region, circuit, now),
            None => state.send_restarted(region, circuit, given, now),
        })
    }
}

impl<S, B, RB> Service<Request<B>> for CircuitBreaker<S>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    RB: http_body::Body,
{
    type Response = Response<SettleBody<RB>>;
    type Error = Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    #[inline]
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(mistake) = scope::mistake(&self.state, Rank::Breaker, request.uri()) {
            return self.refuse(mistake);
        }
        if !request.extensions().is_empty() {
            return self.call_with_extensions(request);
        }
        match self.admit(&mut request, None) {
            Ok(Some(watch)) => self.send(request, watch),
            Ok(None) => self.pass(request),
            Err(error) => self.refuse(error),
        }
    }
}

impl<S: Clone> CircuitBreaker<S> {
    #[inline(always)]
    fn send<B>(&mut self, request: Request<B>, watch: Watch) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>>,
    {
        let _scope = scope::enter_own(service_id(&self.state), Rank::Breaker);
        ResponseFuture::sending(self.inner.call(request), Some(watch))
    }

    /// Sends what is not counted. Apart, so that the usual send is built once, and where it is to
    /// be.
    #[inline(never)]
    fn pass<B>(&mut self, request: Request<B>) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>>,
    {
        let _scope = scope::enter(service_id(&self.state), Rank::Breaker);
        ResponseFuture::sending(self.inner.call(request), None)
    }

    /// There may be something that a layer above hands on.
    #[inline(never)]
    fn call_with_extensions<B>(&mut self, mut request: Request<B>) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>>,
    {
        if BackgroundSend::is_of(request.extensions(), &self.state) {
            return self.pass(request);
        }
        let handoff = Handoff::take(request.extensions_mut(), &self.state);
        match self.admit(&mut request, handoff.as_ref()) {
            Ok(Some(watch)) => self.send(request, watch),
            Ok(None) => self.pass(request),
            Err(error) => self.refuse(error),
        }
    }

    #[cold]
    fn refuse<F>(&mut self, error: Error) -> ResponseFuture<F> {
        // A call uses readiness up, and a clone is not ready: a service that is kept must
        // not keep a permit from others.
        self.inner = self.inner.clone();
        ResponseFuture::refused(error)
    }
}
