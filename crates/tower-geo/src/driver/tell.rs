//! What is told of an operation that does not simply succeed (E3, T9).
//!
//! Nothing of a request is told but its region: no query, no header, no body. The healthy path
//! does not come by here.

use http::Response;
use tower_geo_policy::freshness::Freshness;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::verdict::Verdict;

use super::sending::Driver;
use crate::error::Error;

impl<S, P, RB, PB> Driver<S, P, Response<RB>, PB> {
    /// A send leaves that is not simply the first, to where the request says.
    pub(super) fn tell_send(&mut self) {
        let (operation, known) = (&self.operation, self.operation.known());
        let span = tracing::debug_span!(
            "send",
            service = self.state.name(),
            region = known.name(&self.state, operation.region()),
            attempt = operation.attempt(),
            kind = operation.kind().as_str(),
            wait = ?operation.waited(),
        );
        if !span.is_disabled() {
            self.kept.get_or_insert_default().span = Some(span);
        }
        self.tell_resend();
    }

    /// If it is a further one, listeners see it (T9).
    pub(super) fn tell_resend(&self) {
        let Some(resend) = self.operation.resend() else {
            return;
        };
        let known = self.operation.known();
        tracing::debug!(
            service = self.state.name(),
            region = known.name(&self.state, resend.region),
            attempt = resend.attempt,
            kind = resend.kind.as_str(),
            after = resend.after.map(Verdict::as_str),
            wait = ?resend.waited,
            "a further send leaves"
        );
        if self.state.has_listeners() {
            self.state.tell_resend(resend, self.now());
        }
    }

    pub(super) fn tell_wait(&self, until: Tick) {
        tracing::trace!(
            service = self.state.name(),
            attempt = self.operation.sends() + 1,
            wait = ?until.since(self.now()),
            "waiting for the next send"
        );
    }

    /// What became of a send that was not simply handed over.
    pub(super) fn tell_end(&mut self, ending: &str, verdict: Verdict) {
        let (operation, known) = (&self.operation, self.operation.known());
        tracing::debug!(
            service = self.state.name(),
            region = known.name(&self.state, operation.region()),
            attempt = operation.attempt(),
            kind = operation.kind().as_str(),
            ending,
            verdict = verdict.as_str(),
            wait = ?operation.waited(),
            "a send has ended"
        );
        // A hedge runs in the span of nobody: what ends with it is not the span of another send.
        if let Some(kept) = self.kept.as_mut().filter(|_| !operation.is_hedging()) {
            kept.span = None;
        }
    }

    /// An answer of a copy was not handed over, because the copy is too far behind (F3).
    pub(super) fn tell_stale(&self) {
        let runtime = self.state.extra();
        let last = runtime.copies.last_sync.get();
        let known = self.operation.known();
        tracing::debug!(
            service = self.state.name(),
            region = known.name(&self.state, self.operation.region()),
            attempt = self.operation.attempt(),
            behind = ?last.behind(self.state.instant(self.now())),
            "the copy is too far behind for this read"
        );
        if last.status().is_none() && runtime.first_warning_of_unknown_age() {
            tracing::warn!(
                service = self.state.name(),
                "reads have a limit of staleness, but nobody has told yet how far the copy is \
                 behind, so that none of its answers is handed over: start `spawn_last_sync`, or \
                 call `record_last_sync`"
            );
        }
    }

    /// An answer is handed over that was redirected or took more than one send.
    pub(super) fn tell_served(&self, region: RegionId, freshness: Option<Freshness>) {
        let known = self.operation.known();
        tracing::debug!(
            service = self.state.name(),
            region = known.name(&self.state, region),
            attempts = self.operation.sends(),
            freshness = freshness.map(Freshness::as_str),
            "an answer is handed over"
        );
    }

    /// The operation has ended without an answer. The caller is told, so it is no warning.
    pub(super) fn tell_failure(&self, error: &Error) {
        tracing::debug!(
            service = self.state.name(),
            error = error.kind().as_str(),
            attempts = error.trail().sends().len(),
            retry_after = ?error.retry_after(),
            "an operation has ended without an answer"
        );
    }
}
