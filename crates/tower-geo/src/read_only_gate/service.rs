use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_geo_policy::breaker::Circuit;
use tower_geo_policy::gate::{GateCheck, GateStatus, ReadOnly};
use tower_geo_policy::intent::Intent;
use tower_geo_policy::operation::RequestOptions;
use tower_geo_policy::retry_settings::Replay;
use tower_geo_policy::tick::Tick;
use tower_service::Service;

use super::body::GateBody;
use super::future::{ResponseFuture, ServerFuture};
use super::refusal;
use crate::error::{BoxError, Error};
use crate::handoff::Handoff;
use crate::known::Known;
use crate::runtime::{self, State, service_id};
use crate::scope::{self, Rank};

/// On a client: a refused write is an [`Error`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FailFast;

/// On a server: a refused write is answered with 503.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AnswerUnavailable;

/// What is known of the readiness of the service below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// It was not asked since the last call.
    Unasked,
    /// It said *not yet*, and may keep a place in a queue for us.
    Pending,
    /// It is ready for one call, and may keep a permit for us.
    Ready,
}

/// Refuses writes while they cannot succeed. See the [module](super).
#[derive(Debug)]
pub struct ReadOnlyGate<S, M = FailFast> {
    inner: S,
    state: State,
    manner: M,
    /// What the service below said to the last `poll_ready`. A clone has not asked.
    readiness: Readiness,
    /// The layer above that belongs below, or is this one again (E4).
    misplaced: Option<Rank>,
}

impl<S: Clone, M: Clone> Clone for ReadOnlyGate<S, M> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            state: self.state.clone(),
            manner: self.manner.clone(),
            readiness: Readiness::Unasked,
            misplaced: None,
        }
    }
}

impl<S, M> ReadOnlyGate<S, M> {
    pub(crate) const fn new(inner: S, state: State, manner: M) -> Self {
        Self {
            inner,
            state,
            manner,
            readiness: Readiness::Unasked,
            misplaced: None,
        }
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

    /// Ready at once while read-only, so that refusals need nothing from below (G2).
    #[inline]
    fn poll_inner<B, E>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>>
    where
        S: Service<Request<B>, Error = E>,
    {
        if !self.state.is_calm() && self.is_read_only() {
            return Poll::Ready(Ok(()));
        }
        match self.inner.poll_ready(cx) {
            Poll::Ready(Ok(())) => {
                self.readiness = Readiness::Ready;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.readiness = Readiness::Pending;
                // Turning read-only wakes this caller, who is then refused.
                self.state
                    .extra()
                    .gate_followers
                    .waiting
                    .register(cx.waker());
                if !self.state.is_calm() && self.is_read_only() {
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending
            }
        }
    }

    fn is_read_only(&self) -> bool {
        let now = self.state.tick(runtime::now());
        self.state.gate(now).status == GateStatus::ReadOnly
    }

    /// What the gate is asked about a request, if it is asked at all: for leave to write.
    fn intent_to_write<B>(&self, request: &Request<B>) -> Option<Intent> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let intent = self.state.provider().intent(method, uri, headers).intent;
        intent.is_write().then_some(intent)
    }

    /// Whether a write lets others go first: the next one would be a trial, whose fate is better not
    /// left unknown (B4).
    fn steps_aside<B>(&self, intent: Intent, request: &Request<B>, now: Tick) -> bool {
        let is_harmless = || {
            let options = request.extensions().get::<RequestOptions>();
            intent.is_harmless_to_repeat()
                || options.is_some_and(RequestOptions::is_replayable)
                || self.state.extra().retry.get_replay() == Replay::All
        };
        self.state.trial_is_due(now) && !is_harmless()
    }
}

/// Asks for leave to write; a trial write gets its slot handed on.
pub(super) fn ask<B>(state: &State, request: &mut Request<B>, now: Tick) -> Result<(), ReadOnly> {
    match state.check_gate(now) {
        GateCheck::Pass => Ok(()),
        GateCheck::Trial(slot) => {
            request
                .extensions_mut()
                .insert(Handoff::of_gate(state, slot));
            Ok(())
        }
        GateCheck::Refused(refused) => {
            for writer in state.writers() {
                for circuit in Circuit::BOTH {
                    state.note_operation(writer, circuit, now);
                }
            }
            state.extra().write_was_refused(refused.why, now);
            tracing::debug!(
                service = state.name(),
                why = refused.why.as_str(),
                retry_after = ?refused.until.map(|until| until.since(now)),
                "a write was refused: read-only"
            );
            Err(refused)
        }
        // Nothing that this version knows refuses it.
        _ => Ok(()),
    }
}

impl<S: Clone, M> ReadOnlyGate<S, M> {
    /// A call uses readiness up, also one that is refused: a gate that is kept must not keep a
    /// permit, or a place in the queue for one, from others. A clone has neither.
    fn give_readiness_back(&mut self) {
        if self.readiness != Readiness::Unasked {
            self.inner = self.inner.clone();
            self.readiness = Readiness::Unasked;
        }
    }

    /// The service below with its place in the queue; a clone is left.
    fn take_inner(&mut self) -> S {
        let clone = self.inner.clone();
        self.readiness = Readiness::Unasked;
        std::mem::replace(&mut self.inner, clone)
    }
}

impl<S, B, RB> Service<Request<B>> for ReadOnlyGate<S, FailFast>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = Error;
    type Future = ResponseFuture<S, Request<B>>;

    /// Looks at the order of the layers, too: an order is no other from one call to the next, and
    /// nothing as large as an answer has to be carried past a scope here.
    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let service = service_id(&self.state);
        self.misplaced = scope::misplaced_above(service, Rank::Gate);
        let _scope = scope::enter(service, Rank::Gate);
        self.poll_inner::<B, S::Error>(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_usual = self.misplaced().is_none()
            && self.state.is_calm()
            && self.readiness == Readiness::Ready;
        if !is_usual {
            return self.call_unusual(request);
        }
        self.readiness = Readiness::Unasked;
        ResponseFuture::passing(self.inner.call(request))
    }
}

impl<S> ReadOnlyGate<S, FailFast> {
    /// The layer above that belongs below, or is this one again (E4).
    #[inline]
    fn misplaced(&self) -> Option<Rank> {
        let above = || scope::misplaced_above(service_id(&self.state), Rank::Gate);
        self.misplaced.or_else(above)
    }

    #[inline(never)]
    fn call_unusual<B>(&mut self, mut request: Request<B>) -> ResponseFuture<S, Request<B>>
    where
        S: Service<Request<B>> + Clone,
    {
        let state = &self.state;
        if let Some(above) = self.misplaced() {
            return ResponseFuture::refused(scope::misplaced(state, Rank::Gate, above));
        }
        if !state.is_calm() {
            let known = Known::now(state);
            let is_ours = known.regions(state).region_of(request.uri()).is_some();
            if let Some(intent) = self.intent_to_write(&request).filter(|_| is_ours) {
                let now = state.tick(runtime::now());
                if self.steps_aside(intent, &request, now) {
                    let state = self.state.clone();
                    return ResponseFuture::aside(self.take_inner(), request, state);
                }
                if let Err(refused) = ask(state, &mut request, now) {
                    let error = refusal::error(state, &refused, now);
                    self.give_readiness_back();
                    return ResponseFuture::refused(error);
                }
            }
        }
        if self.readiness != Readiness::Ready {
            // Read-only at `poll_ready`: a read takes the readiness of the service below now.
            let service = service_id(&self.state);
            return ResponseFuture::readying(self.take_inner(), request, service);
        }
        self.readiness = Readiness::Unasked;
        ResponseFuture::passing(self.inner.call(request))
    }
}

impl<S, B, RB> Service<Request<B>> for ReadOnlyGate<S, AnswerUnavailable>
where
    S: Service<Request<B>, Response = Response<RB>, Error = Infallible> + Clone,
    RB: Body<Data = Bytes>,
{
    type Response = Response<GateBody<RB>>;
    type Error = Infallible;
    type Future = ServerFuture<S, Request<B>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_inner::<B, Infallible>(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The request is of another service than the one whose state is asked; the layers of a
        // client in the handler below begin anew, so no scope is entered.
        if !self.state.is_calm() && self.intent_to_write(&request).is_some() {
            let now = self.state.tick(runtime::now());
            if let Err(refused) = ask(&self.state, &mut request, now) {
                self.give_readiness_back();
                self.state.extra().tally.refused_on_server(refused.why);
                return ServerFuture::refused(refusal::response(&self.state, &refused, now));
            }
        }
        // A slot belongs to a send to the service, which is the handler's to make.
        request.extensions_mut().remove::<Handoff>();
        if self.readiness != Readiness::Ready {
            return ServerFuture::readying(self.take_inner(), request);
        }
        self.readiness = Readiness::Unasked;
        ServerFuture::passing(self.inner.call(request))
    }
}
